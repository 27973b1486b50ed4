"""Bars of choice models that no other benchmark has: ``python -m benchmarks.conjoint bayes`` (one core, CPU s).

- bayes: hierarchical Bayes on all choices of electricity, full covariance; convergence, willingness to pay.
- simulated: simulated likelihood, diagonal covariance, beside xlogit in turns, 500 draws of each; and by xlogit's own
  draws, our likelihood of its estimates and our maximum beside its.
- part-worths: of electricity, population beside hierarchical Bayes; at the defaults, with one consistency for all, and
  with what the mixed logit has: that, and nothing of its own for each item.
- consistencies: part-worths of both beside those of simulated people, some of whom answer more consistently.
- best-worst: 1 000 people, 12 sets of five of 30 items, scores of everybody.
- many: 100 000 tasks of the best of four out of 300 profiles, each on offer in five cases of six.
- ratings: Facebook and ten movies, half of the ratings of everybody with at least four known, five splits; log
  loss of the strict pairs that hold an unknown rating, learned from levels and from strict pairs.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.datasets.ratings import most_rated, strict_pairs
from benchmarks.sets import difference
from benchmarks.task import read_csv
from predilect import Comparisons, MixedLogit, Population
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.problem import ChoiceProblem, problem_of
from predilect.choice.mixed_logit.simulated import Simulated, fit_simulated
from predilect.data import ItemFeatures
from predilect.data.choices import choices_of

ATTRIBUTES = ["pf", "cl", "loc", "wk", "tod", "seas"]
N_DRAWS = 500
LIKE_BAYES: dict[str, dict[str, Any]] = {
    "defaults": {}, "one consistency": {"consistency": 0.0},
    "as the mixed logit": {"consistency": 0.0, "feature_weight": 1.0},
}  # fmt: skip


def timed(make: Callable[[], Any]) -> tuple[float, Any]:
    """CPU s of the second of two calls, as the first may compile; and what it returned."""
    make()
    began = time.process_time()
    found = make()
    return time.process_time() - began, found


def electricity() -> tuple[Comparisons, pl.DataFrame]:
    """All choices, and the attributes of the contracts."""
    return Comparisons.from_frame(read_csv("electricity", "comparisons.csv.gz")), read_csv("electricity", "items.csv")


def worths(model: Any) -> str:
    """Ratios of mean coefficients to that of the price, and the interval of the first."""
    table = model.worth.coefficients()
    mean = dict(zip(table["attribute"], table["mean"], strict=True))
    return ", ".join(f"{name} {-mean[name] / mean['pf']:.2f}" for name in ATTRIBUTES[2:])


def bayes() -> None:
    """Seconds, split R-hat, effective sizes, willingness to pay."""
    answers, items = electricity()
    seconds, model = timed(lambda: MixedLogit(n_jobs=1).fit(answers, items=items))
    found = model.report_["prior"]
    print(f"{seconds:.1f} s; R-hat of means {max(found['r_hat_means']):.4f}, of variances "
          f"{max(found['r_hat_variances']):.4f}; effective size of means {min(found['effective_size_means']):.0f}; "
          f"willingness to pay {worths(model)}")  # fmt: skip


def simulated() -> None:
    """Maxima by the draws of each, willingness to pay, seconds in turns."""
    import xlogit

    answers, items = electricity()
    frame = read_csv("electricity", "choices_long.csv.gz").sort("user", "task", "alt")
    task = frame.select(pl.struct("user", "task").rank("dense")).to_series().to_numpy()

    def theirs() -> Any:
        model = xlogit.MixedLogit()
        model.fit(
            frame.select(ATTRIBUTES).to_numpy(), frame["choice"].to_numpy(), varnames=ATTRIBUTES, ids=task,
            alts=frame["alt"].to_numpy(), panels=frame["user"].to_numpy(), n_draws=N_DRAWS, verbose=0,
            randvars=dict.fromkeys(ATTRIBUTES, "n"),
        )  # fmt: skip
        return model

    def ours() -> Any:
        return MixedLogit(method="simulated", covariance="diagonal", n_draws=N_DRAWS, n_jobs=1).fit(
            answers, items=items
        )

    peer, model = theirs(), ours()
    print(f"maxima, draws of each: xlogit {peer.loglikelihood:.1f}, ours {model.log_evidence_:.1f}; "
          f"willingness to pay {worths(model)}")  # fmt: skip
    problem, draws = in_its_draws(peer, answers, items, model)
    # In units of our columns, which ``report`` takes to those of the attributes.
    report = model.columns_.report[[model.columns_.attributes.index(name) for name in ATTRIBUTES]]
    mean, spread = np.split(np.asarray(peer.coeff_), 2)
    theirs_in_ours = np.linalg.solve(report, mean), np.linalg.solve(report, spread)
    at_theirs = Simulated(problem, draws, diagonal=True).of_people(np.concatenate(theirs_in_ours))[0].sum()

    def by_its_draws() -> float:
        found = fit_simulated(
            problem, draws, diagonal=True, max_iter=model.max_iter, tolerance=1e-5, random_state=0, watch=None
        )
        return float(found.values.sum())

    print(f"its draws: its estimates, by xlogit {peer.loglikelihood:.4f}, by ours {at_theirs:.4f}; "
          f"our maximum {by_its_draws():.2f}")  # fmt: skip
    for _ in range(3):
        print("CPU s:", *(f"{name} {timed_once(make):.2f}" for name, make in (("xlogit", theirs), ("ours", ours))))


def in_its_draws(
    peer: Any, answers: Comparisons, items: pl.DataFrame, model: MixedLogit
) -> tuple[ChoiceProblem, FloatArray]:
    """Our problem, and the Halton draws of xlogit (U, R, d) for its people and columns."""
    answers = answers.with_items(ItemFeatures.from_frame(items).ids)
    problem = problem_of(choices_of(answers), model.columns_, np.ones((answers.n_users, 1)), answers.n_users)
    drawn = np.swapaxes(peer._generate_draws(answers.n_users, N_DRAWS), 1, 2)  # by its order of people and attributes
    people = np.argsort(np.argsort(np.array(answers.users.labels(np.arange(answers.n_users)))))[problem.people]
    columns = [ATTRIBUTES.index(model.columns_.attributes[k]) for k in np.abs(model.columns_.report).argmax(axis=0)]
    return problem, np.ascontiguousarray(drawn[people][:, :, columns])


def timed_once(make: Callable[[], Any]) -> float:
    """CPU s of a call."""
    began = time.process_time()
    make()
    return time.process_time() - began


def part_worths() -> None:
    """Correlations over people of each attribute's part-worths, and willingness to pay of both."""
    answers, items = electricity()
    bayes = MixedLogit(n_jobs=1).fit(answers, items=items)
    theirs = bayes.worth.parts()
    print("MixedLogit", worths(bayes))
    for name, given in LIKE_BAYES.items():
        model = Population(basis="attributes", n_jobs=1, **given).fit(answers, items=items)
        told, apart = with_and_without_consistency(model)
        print(f"{name}: least correlation of an attribute {least(told, theirs):.4f}, divided by the consistency "
              f"{least(apart, theirs):.4f}; {worths(model)}")  # fmt: skip


def with_and_without_consistency(model: Population) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part-worths in the noise of the person, as they are told, and on the scale of all people."""
    told = model.worth.parts()
    ids = told["user"].unique(maintain_order=True)
    care = pl.DataFrame({"user": ids, "care": [model.posterior_.consistency_of(code) for code in range(len(ids))]})
    return told, told.join(care, on="user").with_columns(pl.col("mean") / pl.col("care"))


def least(one: pl.DataFrame, other: pl.DataFrame) -> float:
    """Least correlation over people of an attribute's part-worths."""
    both = one.join(other, on=["user", "attribute", "level"])
    return float(both.group_by("attribute").agg(pl.corr("mean", "mean_right"))["mean"].min())


def consistencies() -> None:
    """Least correlation of an attribute's part-worths with those that simulated answers were made of.

    People have tastes from the distribution of electricity's, and consistencies of their own, log-normal, sd .5.
    """
    answers, items = electricity()
    told = (
        MixedLogit(n_jobs=1).fit(answers, items=items).part_worths().pivot(on="attribute", index="user", values="mean")
    )
    # In units of our noise, as far apart as people are and not only their means.
    found = told.select(ATTRIBUTES).to_numpy() * np.sqrt(3.0) / np.pi
    shown = read_csv("electricity", "choices_long.csv.gz").sort("user", "task", "alt")
    x, people = shown.select(ATTRIBUTES).to_numpy(), shown["user"].rank("dense").to_numpy().astype(int) - 1
    for seed in range(3):
        rng = np.random.default_rng(seed)
        taste = rng.multivariate_normal(found.mean(axis=0), 1.3 * np.cov(found.T), size=people.max() + 1)
        care = np.exp(0.5 * rng.normal(size=len(taste)))
        felt = np.einsum("rk,rk->r", x, taste[people]) * care[people] + np.sqrt(0.5) * rng.normal(size=len(x))
        table = shown.select(pl.concat_str(ATTRIBUTES, separator=" ").alias("item"), *ATTRIBUTES, "user", "task")
        table = table.with_columns(felt=felt).with_columns(
            choice=(pl.col("felt") == pl.col("felt").max().over("user", "task")).cast(int)
        )
        simulated = Comparisons.from_frame(table.select("user", "task", "item", "choice"))
        profiles = table.select("item", *ATTRIBUTES).unique(maintain_order=True)
        users = shown["user"].unique(maintain_order=True)
        columns = {"user": users.to_numpy().repeat(len(ATTRIBUTES)), "attribute": ATTRIBUTES * len(users)}
        truth = {
            name: pl.DataFrame(columns | {"level": "", "mean": values.ravel()})
            for name, values in (("tastes", taste), ("tastes times consistency", taste * care[:, None]))
        }
        bayes = MixedLogit(n_jobs=1).fit(simulated, items=profiles).part_worths()
        ours = with_and_without_consistency(Population(basis="attributes", n_jobs=1).fit(simulated, items=profiles))
        for name, real in truth.items():
            print(f"{seed}, {name}: mixed logit {least(bayes, real):.3f}, population {least(ours[0], real):.3f}, "
                  f"divided by the consistency {least(ours[1], real):.3f}", flush=True)  # fmt: skip


def best_worst() -> None:
    """Seconds of the fit and of everybody's scores, and correlation of utilities with the truth."""
    rng = np.random.default_rng(0)
    n_people, n_items = 1000, 30
    truth = rng.normal(size=n_items) + rng.normal(size=(n_people, n_items))
    columns: dict[str, list[Any]] = {name: [] for name in ("user", *(f"item{k}" for k in range(5)), "best", "worst")}
    for person in range(n_people):
        for _ in range(12):
            shown = rng.permutation(n_items)[:5]
            felt = truth[person, shown] + np.sqrt(0.5) * rng.normal(size=5)
            columns["user"].append(f"p{person:04d}")
            for k, item in enumerate(shown):
                columns[f"item{k}"].append(f"i{item:02d}")
            columns["best"].append(f"i{shown[felt.argmax()]:02d}")
            columns["worst"].append(f"i{shown[felt.argmin()]:02d}")
    answers = Comparisons.from_frame(pl.DataFrame(columns))
    print(answers)
    seconds, model = timed(lambda: Population(n_jobs=1).fit(answers))
    found = [model.posterior_.person(code).mean for code in range(answers.n_users)]
    known = np.argsort(np.array(answers.items.labels(np.arange(n_items))))
    r = np.mean([np.corrcoef(one[known], real)[0, 1] for one, real in zip(found, truth, strict=True)])
    table = model.scores(size=5, user="p0000")
    print(f"{seconds:.1f} s; mean correlation with the truth {r:.3f}; {len(table)} scores of a person")


def many() -> None:
    """Seconds and memory of a fit on attributes."""
    rng = np.random.default_rng(0)
    n_people, n_tasks, n_shown, n_items = 10_000, 10, 4, 300
    items = pl.DataFrame({"item": np.arange(n_items), "mode": rng.choice(["bus", "car", "train"], n_items),
                          "time": rng.integers(3, 20, n_items) * 10.0, "cost": rng.integers(1, 15, n_items) * 5.0,
                          "headway": rng.choice([10.0, 30.0, 60.0], n_items)})  # fmt: skip
    x = np.column_stack([items["mode"] == "car", items["mode"] == "train", *(items[c] for c in items.columns[2:])])
    taste = np.array([0.3, 0.2, -0.02, -0.03, -0.01])
    tastes = taste + np.abs(taste) * rng.normal(size=(n_people, 5))
    shown = rng.random((n_people * n_tasks, n_items)).argpartition(n_shown, axis=1)[:, :n_shown]
    user = np.repeat(np.arange(n_people), n_tasks)
    there = rng.random(shown.shape) < 5 / 6
    there[:, :2] = True
    felt = np.einsum("tkd,td->tk", x[shown], tastes[user]) + np.sqrt(0.5) * rng.normal(size=shown.shape)
    best = np.where(there, felt, -np.inf).argmax(axis=1)
    frame = pl.DataFrame({
        "user": np.repeat(user, n_shown), "task": np.repeat(np.arange(len(user)), n_shown), "item": shown.ravel(),
        "available": there.ravel().astype(int), "choice": (np.arange(n_shown) == best[:, None]).ravel().astype(int),
    })  # fmt: skip
    began = time.process_time()
    answers = Comparisons.from_frame(frame)
    reading = time.process_time() - began
    began = time.process_time()
    model = Population(basis="attributes", n_jobs=1).fit(answers, items=items)
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{answers.n_rows} rows; read in {reading:.1f} s, fit {time.process_time() - began:.1f} s, {size:.2f} GB")
    print(model.worth.coefficients())


def ratings() -> None:
    """Log losses of pairs by levels and by pairs."""
    pubs = [read_csv("facebook_social", f"ratings_{kind}.csv") for kind in ("pubs", "restaurants")]
    wide = [one.unpivot(index="user", variable_name="item", value_name="score") for one in pubs]
    movies = most_rated(10)[1]
    tables = {"facebook": pl.concat(wide).filter(pl.col("score") > 0), "movielens-10": movies}
    for name, table in tables.items():
        gains, losses = [], []
        for seed in range(5):
            losses.append(levels_and_pairs(table.filter(pl.len().over("user") >= 4), seed))
            gains.append(losses[-1][0] - losses[-1][1])
        levels, pairs = (np.concatenate([one[k] for one in losses]) for k in (0, 1))
        users = np.concatenate([one[2] for one in losses])
        print(f"{name}: levels {levels.mean():.4f}, pairs {pairs.mean():.4f}, {difference(levels, pairs, users)}; "
              f"by split {', '.join(f'{gain.mean():+.4f}' for gain in gains)}", flush=True)  # fmt: skip


def levels_and_pairs(table: pl.DataFrame, seed: int) -> tuple[Any, Any, Any]:
    """Log losses of strict pairs with an unknown rating by levels and by pairs, and whose they are."""
    table = table.with_columns(pl.col("user").cast(str), pl.col("item").cast(str)).sort("user", "item")
    table = table.with_columns(chance=pl.Series(np.random.default_rng(seed).random(len(table))))
    table = table.with_columns(known=pl.col("chance").rank("ordinal").over("user") * 2 <= pl.len().over("user"))
    known = table.filter("known")
    every = known.select("user", "item", rating="score", task=pl.lit(0))
    told = strict_pairs(known)
    asked = strict_pairs(table).join(told, on=["user", "left", "right"], how="anti").sort(pl.all())
    asked = asked.filter(pl.col("user").is_in(told["user"].unique().to_list()))
    of_levels = Comparisons.from_frame(every)
    of_pairs = Comparisons.from_frame(told.with_columns(winner="left"), reading={"side": False})
    seen = set(of_levels.items.ids) & set(of_pairs.items.ids)
    asked = asked.filter(pl.col("left").is_in(seen) & pl.col("right").is_in(seen))
    found = []
    for answers in (of_levels, of_pairs):
        p = Population(n_jobs=1).fit(answers).predict_log_proba(asked)
        found.append(np.logaddexp(0.0, p[:, -1] - p[:, 0]))  # of two sides, where there is no tie
    return found[0], found[1], asked["user"].to_numpy()


RUNS = {"bayes": bayes, "simulated": simulated, "part-worths": part_worths, "consistencies": consistencies,
        "best-worst": best_worst, "many": many, "ratings": ratings}  # fmt: skip


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conjoint", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", choices=RUNS, nargs="+")
    with threadpool_limits(1):
        for name in parser.parse_args().run:
            print(f"## {name}", flush=True)
            RUNS[name]()


if __name__ == "__main__":
    main()
