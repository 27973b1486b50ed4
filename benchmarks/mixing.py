"""Whether chains of the mixed logit mix, and what its spreads hold: ``python -m benchmarks.mixing``.

Mixing: ten studies of 100 to 1 000 people who choose eight times the best of four, with 4 to 12 coefficients that
spread by 0 to 2; written down before the first look. The first, "phones", is a design with an outside option, answered
by people of two kinds with a log-normal price. The others are choices among 300 profiles of normal attributes. The
model is the default, with one thread; seconds of the processor are those of the whole fit, when all is compiled. Judged
are every mean, every spread of at least .2 and the correlations between those. Coverage: studies of 400 people and six
coefficients.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.store import made_with, missing, read_lines, write_whole
from predilect import MixedLogit
from predilect._base.json import plain
from predilect.choice.mixed_logit import training
from predilect.choice.mixed_logit.diagnosis import effective_size, r_hat
from predilect.choice.mixed_logit.sampler import Sample
from predilect.decisions import design
from predilect.errors import ConvergenceWarning

FloatArray = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
N_TASKS, N_SHOWN, N_PROFILES = 8, 4, 300
SPREAD, NEAR_ZERO = 0.2, 0.25
WHAT = ("means", "spreads", "correlations", "small spreads")


class Study(NamedTuple):
    """People, standard deviations of their coefficients, and the correlation of any two of these."""

    n_people: int
    spreads: tuple[float, ...]
    correlation: float = 0.0


STUDIES = {
    "phones": Study(400, ()),
    "400 x 6": Study(400, (0.0, 0.0, 0.2, 0.5, 1.0, 2.0)),
    "100 x 4": Study(100, (0.0, 0.2, 0.5, 1.0)),
    "100 x 8, up to 2": Study(100, (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0)),
    "200 x 6, none": Study(200, (0.0,) * 6),
    "200 x 12, alike": Study(200, (0.4,) * 12),
    "300 x 4, correlated": Study(300, (2.0, 2.0, 1.0, 1.0), 0.7),
    "600 x 8, correlated": Study(600, (0.1, 0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.5), 0.4),
    "1000 x 12": Study(1000, (0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)),
    "1000 x 12, correlated": Study(1000, (0.3,) * 6 + (0.8,) * 6, 0.5),
}
COVERED = Study(400, (0.0, 0.0, 0.2, 0.4, 0.8, 1.6), 0.3)


def answers_of(study: Study, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Answers and items of a study; means are of both signs, .2 to 1."""
    rng = np.random.default_rng(seed)
    n, T = len(study.spreads), study.n_people * N_TASKS
    mean = np.where(np.arange(n) % 2, -1.0, 1.0) * rng.uniform(0.2, 1.0, n)
    shared, own = rng.standard_normal((study.n_people, 1)), rng.standard_normal((study.n_people, n))
    z = np.sqrt(study.correlation) * shared + np.sqrt(1.0 - study.correlation) * own
    X = rng.standard_normal((N_PROFILES, n))
    who = np.repeat(np.arange(study.n_people), N_TASKS)
    sets = np.argsort(rng.random((T, N_PROFILES)), axis=1)[:, :N_SHOWN]
    utility = np.einsum("tak,tk->ta", X[sets], (mean + np.array(study.spreads) * z)[who])
    return _table(who, sets, utility + rng.gumbel(size=sets.shape)), _items(X)


def _table(who: Any, sets: Any, utility: FloatArray) -> pl.DataFrame:
    k = sets.shape[1]
    return pl.DataFrame({
        "user": np.repeat(who, k), "task": np.repeat(np.arange(len(who)), k), "item": sets.ravel(),
        "choice": (np.arange(k) == utility.argmax(axis=1)[:, None]).astype(int).ravel(),
    })  # fmt: skip


def _items(X: FloatArray) -> pl.DataFrame:
    return pl.DataFrame({"item": np.arange(len(X))} | {f"x{k:02d}": X[:, k] for k in range(X.shape[1])})


def phones(n_people: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Answers and items of a designed study: people of two kinds, a log-normal price, an outside option."""
    levels = {"brand": ["Acme", "Bolt", "Cora"], "price": [200, 300, 400, 500], "range": [30, 60, 90],
              "warranty": ["1y", "3y"]}  # fmt: skip
    plan = design(
        levels, n_tasks=N_TASKS, n_alternatives=N_SHOWN - 1, outside=True, n_blocks=3, balanced=True,
        priors={"price": (-0.006, 0.002), "range": 0.02, "warranty": {"3y": 0.3}, "None": -1.0},
        prohibited=[{"brand": "Cora", "price": 200}],
    )  # fmt: skip
    table = pl.DataFrame(plan.table)
    outside = table["price"].is_null().to_numpy()
    X = np.column_stack([
        (table["brand"] == "Acme").fill_null(False), (table["brand"] == "Cora").fill_null(False),
        table["price"].fill_null(0), table["range"].fill_null(0), (table["warranty"] == "3y").fill_null(False), outside,
    ]).astype(float)  # fmt: skip
    rng = np.random.default_rng(seed)
    e, keen = rng.standard_normal((n_people, 5)), rng.random(n_people) < 0.6
    c = np.column_stack([
        0.4 + 0.5 * e[:, 0], np.full(n_people, -0.2), -np.exp(-5.1 + 0.5 * e[:, 1]), 0.02 + 0.01 * e[:, 2],
        np.where(keen, 0.8 + 0.4 * e[:, 3], 0.1), -3.0 + 0.8 * e[:, 4],
    ])  # fmt: skip
    block = table["block"].to_numpy()
    tasks = np.stack([np.arange(len(table))[block == b].reshape(N_TASKS, N_SHOWN) for b in np.unique(block)])
    who = np.repeat(np.arange(n_people), N_TASKS)
    sets = tasks[np.arange(n_people) % len(tasks)].reshape(-1, N_SHOWN)
    utility = np.einsum("tak,tk->ta", X[sets], c[who]) + rng.gumbel(size=sets.shape)
    items = pl.DataFrame({
        "item": np.arange(len(table)), "Acme": X[:, 0], "Cora": X[:, 1], "price": X[:, 2], "range": X[:, 3],
        "warranty": X[:, 4], "none": X[:, 5],
    })  # fmt: skip
    return _table(who, sets, utility), items


def fitted(answers: pl.DataFrame, items: pl.DataFrame, **settings: Any) -> tuple[MixedLogit, Sample, float]:
    """The model, all its draws, and processor seconds."""
    kept: list[Sample] = []

    def keep(*given: Any, **more: Any) -> Sample:
        kept.append(sample(*given, **more))
        return kept[-1]

    sample = training.sample
    begin = time.process_time()
    with warnings.catch_warnings(), patch.object(training, "sample", keep):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MixedLogit(n_jobs=1, **settings).fit(answers, items=items)
    return model, kept[-1], time.process_time() - begin


def run(name: str, seed: int, **settings: Any) -> dict[str, Any]:
    """One study, in units of its attributes; those of the phones are taken to have size 1 within choices."""
    study = STUDIES.get(name, COVERED)
    answers, items = answers_of(study, seed) if study.spreads else phones(study.n_people, seed)
    model, drawn, seconds = fitted(answers, items, **settings)
    report = model.columns_.report
    column = np.abs(report).argmax(axis=1)
    unit = report[np.arange(len(column)), column] if study.spreads else np.ones(len(column))
    mean = drawn.law.B[:, 0, 0, column] * unit
    Omega = drawn.law.Omega[:, 0][:, column][:, :, column] * unit[:, None] * unit
    sd = np.sqrt(np.diagonal(Omega, axis1=1, axis2=2))
    large = np.array(study.spreads or sd.mean(axis=0)) >= SPREAD
    i, j = (np.flatnonzero(large)[one] for one in np.triu_indices(large.sum(), 1))
    found: dict[str, Any] = {}
    for what, draws in {
        "means": mean, "spreads": sd[:, large], "correlations": Omega[:, i, j] / (sd[:, i] * sd[:, j]),
        "small spreads": sd[:, ~large],
    }.items():  # fmt: skip
        chains = np.array(np.split(draws, model.n_chains))
        found[what] = [
            float(r_hat(chains).max(initial=1.0)),
            float(effective_size(chains).min(initial=np.inf)) if draws.shape[1] else 0.0,
        ]
    return plain({
        "study": name, "seed": seed, "cpu_s": seconds, "sweeps": model.report_["prior"]["draws"], **found,
        "mean": mean.mean(axis=0), "spread": sd.mean(axis=0),
        **{f"{100 * q:g} %": np.quantile(sd, q, axis=0) for q in (0.025, 0.95, 0.975)},
    })  # fmt: skip


def page(records: list[dict[str, Any]], command: str) -> str:
    """What is written to ``results/mixing.md``."""
    lines = [
        "# Whether the mixed logit mixes", "", str(__doc__).partition("\n\n")[2].strip(), "",
        "Largest split R-hat and smallest effective sample size. Small spreads are those below "
        f"{SPREAD}, which are not judged.", "",
        "| study | spreads | correlation | sweeps | means | spreads | correlations | small spreads | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    by_name = {record["study"]: record for record in records if record["study"] in STUDIES}
    for name, study in STUDIES.items():
        if name not in by_name:
            continue
        record = by_name[name]
        cells = [f"{r:.3f}, {size:.0f}" if size else "" for r, size in (record[what] for what in WHAT)]
        spreads = ", ".join(f"{one:g}" for one in study.spreads)
        told = [f"{name}: {study.n_people} people", spreads, f"{study.correlation:g}", str(record["sweeps"]), *cells]
        lines.append("| " + " | ".join([*told, f"{record['cpu_s']:.1f}"]) + " |")
    covered = [record for record in records if record["study"] not in STUDIES]
    if covered:
        true = np.array(COVERED.spreads)
        low, near, high = (np.array([r[q] for r in covered]) for q in ("2.5 %", "95 %", "97.5 %"))
        inside = (low <= true) & (true <= high)
        lines += [
            "", "## What intervals of spreads hold", "",
            f"{len(covered)} studies of {COVERED.n_people} people, correlation {COVERED.correlation:g}: share of 95 % "
            "intervals that hold the true spread; where it is 0, share of studies in which the 95th percentile is "
            f"below {NEAR_ZERO}.", "", "| spread | share | mean of the spread |", "|---|---|---|",
        ]  # fmt: skip
        means = np.mean([r["spread"] for r in covered], axis=0)
        for k, spread in enumerate(COVERED.spreads):
            holds = inside[:, k].mean() if spread else (near[:, k] < NEAR_ZERO).mean()
            lines.append(f"| {spread:g} | {holds:.3f} | {means[k]:.3f} |")
        judged = inside[:, true >= SPREAD]
        error = judged.mean(axis=1).std(ddof=1) / len(judged) ** 0.5
        lines += ["", f"Spreads of at least {SPREAD}: {judged.mean():.3f} ± {error:.3f}."]
    return "\n".join([*lines, "", made_with(command), ""])


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing", description=__doc__)
    parser.add_argument("--studies", default=";".join(STUDIES), help="names, with ; between them")
    parser.add_argument("--coverage", type=int, default=60, help="studies of coverage")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "mixing.jsonl"
    wanted = [(name, 0) for name in given.studies.split(";") if name]
    wanted += [("coverage", seed) for seed in range(given.coverage)]
    run("100 x 4", 0, n_draws=20)  # compiles
    for _, (record,) in missing(path, ("study", "seed"), wanted, run):
        print(record, file=sys.stderr, flush=True)
    write_whole({given.out / "mixing.md": page(read_lines(path), "python -m benchmarks.mixing")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
