"""Published numbers beside ours, scaling and importances: the pages and figures from small stored results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.importances import figure as importance_figure
from benchmarks.importances import importances
from benchmarks.models import CROWDS, VARIANTS
from benchmarks.published import BARS, OURS, PUBLISHED, markdown, measured, ours
from benchmarks.published_notes import NOTES, REPETITIONS, WHY_NOT
from benchmarks.store import Store

from benchmarks import scaling
from tolerances import EXACT

MODEL = VARIANTS[r"crowdGPPL\u"]


def stored(folder: Path, task: str, values: list[float], **further: object) -> Store:
    store = Store(folder)
    for seed, value in enumerate(values):
        scores = {"accuracy": value, "log_loss": 1 - value, "tau_pooled": value - 0.1, "tau_person": value}
        report = {"component_importances": [0.1 * value, value]}
        store.add(
            {"task": task, "model": MODEL, "seed": seed, "scores": scores, "cost": {"fit_cpu_s": 1.5}, "report": report}
            | further
        )
    return store


def test_published_numbers_are_plausible_and_of_known_methods() -> None:
    for task, rows in PUBLISHED.items():
        assert len({(row.method, row.source) for row in rows}) == len(rows), task
        for row in rows:
            assert row.accuracy is None or 0.5 < row.accuracy < 1
            assert row.log_loss is None or 0 < row.log_loss < 3
            assert row.tau is None or 0 < row.tau < 1
    # Table 3, spot checks against protocols.md P2a.
    by_name = {(r.method, r.source): r for r in PUBLISHED["sushi-b"]}
    assert (by_name["GPPL-per-user", "article"].log_loss, by_name["GPPL-per-user", "article"].tau) == (0.60, 0.60)
    assert by_name["crowdGPPL", "preprint"].log_loss == 2.23
    assert {model.split("@")[0] for model in VARIANTS.values()} == {*CROWDS, "cp", "gpvu"}


def test_every_published_row_has_a_model_of_ours_or_a_reason() -> None:
    for task, rows in PUBLISHED.items():
        name = task.partition("/")[0]
        assert name in REPETITIONS
        for row in rows:
            assert ours(task, row.method) in VARIANTS.values() or (name, row.method) in WHY_NOT, (task, row.method)
    assert set(NOTES) <= set(PUBLISHED)
    methods = {(task.partition("/")[0], row.method) for task, rows in PUBLISHED.items() for row in rows}
    assert set(WHY_NOT) | {(task, method) for task in OURS for method in OURS[task]} <= methods


def test_page_shows_ours_beside_theirs_and_the_bars(tmp_path: Path) -> None:
    page = markdown(stored(tmp_path, "sushi-a", [0.86, 0.84] * 5))
    row = next(line for line in page.splitlines() if line.startswith(r"| crowdGPPL\u | article | 0.85"))
    assert f"`{MODEL}` | 0.850 ± 0.003 | 0.150 ± 0.003 | 0.750 ± 0.003 | 0.850 ± 0.003 | 1.50 ± 0.00 | 10 |" in row
    bars = [line for line in page.splitlines() if line.startswith(f"| sushi-a | `{MODEL}`")]
    assert len(bars) == 4
    assert [line.split("|")[-2].strip() for line in bars] == ["yes", "yes", "**no**", "yes"]
    # Bars are for all runs of a task.
    few = markdown(stored(tmp_path / "few", "sushi-a", [0.86, 0.84])).splitlines()
    rows = [line.split("|")[-3:-1] for line in few if line.startswith(f"| sushi-a | `{MODEL}`")]
    assert [[cell.strip() for cell in row] for row in rows] == [["2", "too few runs"]] * 4
    # Rows with fewer runs than published, or none, have a sentence.
    assert any("Fewer runs so far than the published 25" in line and "2 (1.5)" in line for line in few)
    model = VARIANTS["GPVU"]
    assert f"GPVU: not run so far (`python -m benchmarks --tasks sushi-a --models {model}`)." in few
    # Failed runs do not count, and a task without runs has empty cells.
    assert measured(Store(tmp_path / "empty"), "sushi-a", MODEL) == {}


def test_further_tests_have_their_own_rows(tmp_path: Path) -> None:
    other = {"consensus": {"accuracy": 0.8, "log_loss": 0.45, "tau": 0.5}}
    store = stored(tmp_path, "ukp-topics", [0.7, 0.7], further=other)
    assert measured(store, "ukp-topics/consensus", MODEL)["accuracy"][0] == pytest.approx(0.8, abs=EXACT)
    assert measured(store, "ukp-topics/consensus", MODEL)["tau"][0] == pytest.approx(0.5, abs=EXACT)
    assert measured(store, "ukp-topics", MODEL)["accuracy"][0] == pytest.approx(0.7, abs=EXACT)


def test_bars_are_those_of_models_that_exist() -> None:
    assert {bar.model for bar in BARS} <= set(VARIANTS.values())
    assert {bar.task for bar in BARS} <= set(PUBLISHED)


@pytest.mark.slow
def test_importances_are_sorted_and_drawn(tmp_path: Path) -> None:
    store = stored(tmp_path, "sushi-a", [0.8, 0.4])
    np.testing.assert_allclose(importances(store, "sushi-a", MODEL), [[0.8, 0.08], [0.4, 0.04]], atol=EXACT)
    assert importances(store, "sushi-a", "gppl").shape == (0, 0)
    assert importance_figure(store, ["sushi-a", "jura"], [MODEL], tmp_path / "x.svg")
    first = (tmp_path / "x.svg").read_bytes()
    assert importance_figure(store, ["sushi-a"], [MODEL], tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes() == first
    assert not importance_figure(store, ["jura"], [MODEL], tmp_path / "y.svg")


@pytest.mark.slow
def test_scaling_runs_and_figure(tmp_path: Path) -> None:
    task = scaling.crowded_items(300, 3, 2000)
    assert (task.train.n_items, task.train.n_answers, task.test.n_answers) == (300, 1960, 40)
    # Equal answers on a pair are one row; its outcome follows the utility: the best possible model would be useful.
    record = scaling.measure_once(task, "pooled@basis=inducing@n_inducing=20")
    assert record["accuracy"] > 0.6
    assert record["peak_mb"] >= record["before_mb"] > 0
    assert record["fit_cpu_s"] > 0
    runs = [{"curve": c, "line": "m", "x": x, **record} for c in ("pairs", "inducing") for x in (1.0, 2.0)]
    scaling.figure(runs, tmp_path / "s.svg")
    assert (tmp_path / "s.svg").stat().st_size > 1000
    assert [model for _, _, model in scaling.wanted("inducing", ["gppl@n_inducing={x}"])][:2] == [
        "gppl@n_inducing=25", "gppl@n_inducing=50",
    ]  # fmt: skip
    assert scaling.growth([r | {"fit_cpu_s": 3.0 * r["x"]} for r in runs]) == {"m": 2.0}
    assert scaling.growth(runs[:1]) == {}
    assert set(scaling.IN_BATCHES) < set(scaling.CURVES["pairs"])
    assert scaling.measure_once(task, "pooled@variance=-1")["error"].startswith("DataError")
