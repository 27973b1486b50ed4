"""What a choice researcher relies on, measured: latent classes, elasticities, designs, and the time of large studies.

``python -m benchmarks.choice_kit classes | elasticities | designs | time | many``; the lines are noted in
results/choice_kit.md. The referees of the first three are those of the tests.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.gaspk_numbers import customers
from predilect import Comparisons, GaSPK, MixedLogit, Population
from predilect.decisions import design

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from referees import coordinate_exchange
from referees import latent_class as referee

Z = 1.959963985
COEFFICIENTS = np.array([[-1.5, 1.0, 0.2, 1.0], [0.3, -1.0, 1.5, 0.0], [-0.3, 0.2, -0.5, -2.0]])
SHARES = np.array([0.5, 0.3, 0.2])
NAMES = ["price", "speed", "size", "weight"]


def chosen_first(X: Any, best: Any) -> Any:
    """Alternatives of each choice, (T, k, d), the chosen one first."""
    order = np.argsort(np.arange(X.shape[1]) != best[:, None], axis=1, kind="stable")
    return np.take_along_axis(X, order[:, :, None], axis=1)


def frame_of(X: Any, best: Any, person: Any) -> pl.DataFrame:
    """A row an alternative of choices (T, k, d)."""
    T, k, d = X.shape
    names = NAMES if d == 4 else [f"x{i}" for i in range(d)]
    return pl.DataFrame({
        "person": np.repeat(person, k), "task": np.repeat(np.arange(T), k),
        "chosen": (np.arange(k) == best[:, None]).astype(int).ravel(),
        **dict(zip(names, X.reshape(-1, d).T, strict=True)),
    })  # fmt: skip


def classes(n_studies: int = 20, U: int = 300, T: int = 8) -> None:
    """Three classes: the likelihood that is reached, shares, and the cover of coefficients' intervals."""
    short, apart, inside, total = 0, [], 0, 0
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        label, person = rng.choice(3, U, p=SHARES), np.repeat(np.arange(U), T)
        X = rng.normal(size=(U * T, 3, 4)).round(2)
        best = (np.einsum("tkd,td->tk", X, COEFFICIENTS[label[person]]) + rng.gumbel(size=X.shape[:2])).argmax(axis=1)
        model = MixedLogit(distributions="fixed", n_classes=3).fit(Comparisons.from_frame(frame_of(X, best, person)))
        value = referee.best_of_em(chosen_first(X, best), person, 3, 20, seed)[0]
        table = pl.DataFrame(model.summary().table)
        share = table.filter(pl.col("what") == "share")["estimate"].to_numpy()
        apart.append(np.abs(share - SHARES).max())
        found = [table.filter(what=f"class {k + 1}").sort(pl.col("attribute").replace_strict(NAMES, range(4)))
                 for k in range(3)]  # fmt: skip
        held = [
            np.abs(one["estimate"] - truth) <= Z * one["hessian"]
            for one, truth in zip(found, COEFFICIENTS, strict=True)
        ]
        inside, total = inside + int(np.sum([one.sum() for one in held])), total + 12
        short += model.log_evidence_ < value - 0.01
        print(f"study {seed}: ours {model.log_evidence_:.3f}, theirs {value:.3f}, shares {share.round(3)}", flush=True)
    print(f"likelihood at least the best of 20 starts less .01: {n_studies - short} of {n_studies}; all shares within "
          f".05: {int((np.array(apart) <= 0.05).sum())}, largest error {max(apart):.3f}; "
          f"cover {inside / total:.3f}")  # fmt: skip


def elasticities(n_studies: int = 200, U: int = 200, T: int = 6) -> None:
    """Cover of intervals of own and cross elasticities of a logit."""
    c, inside = np.array([-0.8, 0.6, 0.4, -0.3]), []
    offer = np.array([[2.0, 0.5, 0.0, 1.0], [1.0, 0.0, 0.5, 0.0], [3.0, 1.0, 1.0, -1.0]])
    p = np.exp(offer @ c) / np.exp(offer @ c).sum()
    truth = (np.eye(3) - p) * c[0] * offer[:, 0]
    table = pl.DataFrame({"item": ["a", "b", "c"], **dict(zip(NAMES, offer.T, strict=True))})
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(U * T, 3, 4)).round(2) + np.array([2.0, 0.0, 0.0, 0.0])
        best = ((X @ c) + rng.gumbel(size=X.shape[:2])).argmax(axis=1)
        frame = frame_of(X, best, np.repeat(np.arange(U), T))
        model = MixedLogit(distributions="fixed", random_state=seed).fit(frame)
        found = pl.DataFrame(model.worth.elasticities(["a", "b", "c"], "price", items=table))
        lower, upper = found["lower"].to_numpy(), found["upper"].to_numpy()
        inside.append((lower <= truth.ravel()) & (truth.ravel() <= upper))
    print(f"cover of own and cross elasticities over {n_studies} studies: {np.mean(inside):.3f}, by each "
          f"{np.mean(inside, axis=0).round(2)}")  # fmt: skip


def designs(n_studies: int = 1000, n_people: int = 200) -> None:
    """Four attributes of three levels, 12 tasks of three: D-error beside the referee's, errors beside simulations."""
    levels = {"price": [1, 2, 3], **{name: ["x", "y", "z"] for name in ("brand", "size", "care")}}
    effects = np.vstack([np.eye(2), [-1.0, -1.0]])
    codings = [np.array([[-1.0], [0.0], [1.0]]), effects, effects, effects]
    for what, b in (("without priors", np.zeros(7)), ("with priors", np.array([-0.6, 0.4, -0.1, 0.3, 0.0, -0.2, 0.1]))):
        places = {"brand": 1, "size": 3, "care": 5}
        said = {name: {"x": b[k], "y": b[k + 1], "z": -b[k] - b[k + 1]} for name, k in places.items()}
        begin = time.process_time()
        found = design(levels, 12, 3, priors={"price": b[0], **said})
        seconds = time.process_time() - begin
        theirs = coordinate_exchange.best_of(codings, 12, 3, b, 50, 0)
        print(f"{what}: D-error {found.d_error:.5f} in {seconds:.1f} CPU s, referee {theirs:.5f}, "
              f"ratio {found.d_error / theirs:.4f}", flush=True)  # fmt: skip
    X, rng = found._X[0], np.random.default_rng(0)
    p = np.exp(X @ b)
    p /= p.sum(axis=1, keepdims=True)
    counts = np.stack([rng.multinomial(n_people, one, size=n_studies) for one in p], axis=1)
    estimates = []
    for one in counts:  # each alternative of a task as the chosen one, with its count as weight
        sets = np.concatenate([np.roll(X, -j, axis=1) for j in range(3)])
        estimates.append(referee.logit(sets, one.T.ravel().astype(float)))
    sd = np.std(np.array(estimates) @ found._attributes.report.T, axis=0)
    promised = found.expected(n_people)["se"].to_numpy()
    print(f"simulated over promised errors, {n_studies} studies of {n_people}: {(sd / promised).round(3)}")


def many(n_people: int = 100_000) -> None:
    """CPU seconds of decisions for 10^5 customers between four tariffs, by GaSPK and by Population."""
    tariffs, pairs, _ = customers(n_people, 4, 0)
    rng = np.random.default_rng(0)
    new = pl.DataFrame({"item": [f"n{k}" for k in range(4)], "price": [25.0, 35.0, 45.0, 30.0], "green": [0, 1, 1, 0],
                        "months": [24, 12, 1, 1]})  # fmt: skip
    options = new["item"].to_list()
    for model in (GaSPK(n_components=3), Population()):
        begin = time.process_time()
        model.fit(pairs, items=tariffs)
        fitted = time.process_time()
        table = pl.DataFrame(model.decide_many(options, items=new, cost_wrong=40, cost_question=2))
        done = time.process_time()
        some = rng.choice(n_people, 100, replace=False)
        rows = {row["user"]: row for row in table.iter_rows(named=True)}
        alone = [model.decide(int(one), options, items=new, cost_wrong=40, cost_question=2) for one in some]
        same = sum(one.action == rows[int(u)]["action"] and abs(min(one.costs.values()) - rows[int(u)]["cost"]) < 1e-9
                   for one, u in zip(alone, some, strict=True))  # fmt: skip
        print(f"{type(model).__name__}: fit {fitted - begin:.1f}, decide {done - fitted:.1f} CPU s; "
              f"{same} of 100 as one by one", flush=True)  # fmt: skip


def large(T: int = 100_000, per_person: int = 10) -> tuple[pl.DataFrame, Any, Any]:
    """10^5 choices of four alternatives with five attributes."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(T // per_person), per_person)
    c = np.array([-1.0, 0.5, 0.8, -0.3, 0.2]) + 0.5 * rng.normal(size=(T // per_person, 5))
    X = rng.choice([0.0, 1.0, 2.0, 3.0], size=(T, 4, 5))
    X[:, :, 0] += rng.permuted(np.tile(np.arange(4.0) / 8.0, (T, 1)), axis=1)  # no two alternatives are alike
    best = (np.einsum("tkd,td->tk", X, c[person]) + rng.gumbel(size=(T, 4))).argmax(axis=1)
    return frame_of(X, best, person), X, best


def timings() -> None:
    """CPU seconds of the logit and of hierarchical Bayes, and its effective sizes."""
    frame, X, best = large()
    begin = time.process_time()
    answers = Comparisons.from_frame(frame)
    print(f"read: {time.process_time() - begin:.2f} CPU s")
    for _ in range(3):
        begin = time.process_time()
        logit = MixedLogit(distributions="fixed", n_jobs=1).fit(answers)
        print(f"logit: {time.process_time() - begin:.2f} CPU s")
    b = referee.logit(chosen_first(X, best))
    table = pl.DataFrame(logit.summary().table).sort("attribute")
    print("largest difference from the referee:", np.abs(table["estimate"].to_numpy() - b).max(), flush=True)
    for n_draws in ("auto", 4000):
        begin = time.process_time()
        prior = MixedLogit(n_draws=n_draws).fit(answers).report_["prior"]
        means, variances = (np.sort(prior[f"effective_size_{what}"]).round() for what in ("means", "variances"))
        print(f"hierarchical Bayes, {prior['draws']} sweeps of two chains: {time.process_time() - begin:.1f} CPU s, "
              f"effective sizes of means {means}, of variances {variances}; largest split R-hat "
              f"{max(prior['r_hat_means'] + prior['r_hat_variances']):.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    {"classes": classes, "elasticities": elasticities, "designs": designs, "many": many, "time": timings}[sys.argv[1]]()
