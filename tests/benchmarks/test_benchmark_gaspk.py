"""The page of GaSPK, and the crowds on grids that its cost is measured on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets.trade_offs import grid_crowd, grid_items, utility_planes
from benchmarks.gaspk_bars import bars
from benchmarks.gaspk_figures import phone_plans, pictures, principal_plane
from benchmarks.gaspk_page import _eigenpairs, markdown, write_page
from benchmarks.gaspk_runs import TEN, paired, point_of
from benchmarks.gaspk_scaling import HALVES, SHAPE, on_grid
from benchmarks.store import Store
from benchmarks.workers import alone
from scipy.stats import ttest_rel

from benchmarks import gaspk_scaling
from tolerances import EXACT


def record(task: str, model: str, seed: int, accuracy: float, log_loss: float, seconds: float = 1.0) -> dict:
    bins = {"count": [0.0] * 9 + [100.0], "confidence": [0.0] * 9 + [95.0], "correct": [0.0] * 9 + [90.0]}
    return {
        "task": task, "model": model, "seed": seed, "split_hash": f"{task} {seed}",
        "counts": {"people": 5, "items": 3, "train_answers": 80.0, "test_answers": 100.0},
        "scores": {"accuracy": accuracy, "log_loss": log_loss, "calibration_bins": bins},
        "cost": {"fit_cpu_s": seconds}, "warnings": [],
    }  # fmt: skip


def stored(folder: Path) -> Store:
    store = Store(folder / "learning-curves")
    rng = np.random.default_rng(0)
    for model, base in ((TEN, 0.86), ("gaspk-exact", 0.9), ("gp-person", 0.9), ("mixed-logit", 0.8)):
        for seed in range(4):
            for share in (10, 80):
                noise = 0.01 * rng.standard_normal()
                store.add(record(f"amt-cars@share={share}", model, seed, base + noise, 1.2 - base - noise))
    return store


def test_an_interval_is_that_of_students_t(tmp_path) -> None:
    values = [0.8, 0.84, 0.9, 0.81]
    found = point_of(values)
    assert found is not None
    low, high = ttest_rel(values, np.zeros(4)).confidence_interval(0.9)
    assert abs(found.mean - found.half - low) < EXACT
    assert abs(found.mean + found.half - high) < EXACT
    assert point_of([]) is None
    assert math.isnan(point_of([1.0]).half)


def test_differences_are_of_the_same_splits(tmp_path) -> None:
    a = [record("t", "a", seed, 0.5, 0.3) for seed in (0, 1, 2)]
    b = [record("t", "b", seed, 0.5, 0.1 * seed) for seed in (1, 2, 3)]
    found = paired(a, b, "log_loss")
    assert found is not None
    assert (found.n, round(found.mean, 12)) == (2, 0.15)
    b[0]["split_hash"] = "another"
    with pytest.raises(ValueError, match="different splits"):
        paired(a, b, "log_loss")


def test_the_page_shows_curves_and_bars(tmp_path) -> None:
    store = stored(tmp_path)
    page = markdown(store, [], {})
    assert "| accuracy | 10 % | 80 % | splits |" in page
    assert page.count("| mixed logit | ") == 3
    assert "missing" not in page
    met = {what: verdict for what, _, _, verdict in bars(store, [])}
    assert met["amt-cars, 80 %: accuracy of GaSPK"] == "yes"
    assert met["amt-cars, 80 %: accuracy of GaSPK, exact, no prior"] == "yes"
    # Predicted .95 where .90 were right.
    assert met["amt-cars, 80 %: calibration error of GaSPK"] == "**no**"


@pytest.mark.slow
def test_the_page_and_the_figure_are_written(tmp_path) -> None:
    stored(tmp_path)
    write_page(tmp_path)
    assert (tmp_path / "gaspk.md").read_text().startswith("# GaSPK")
    assert "GaSPK, exact, no prior" in (tmp_path / "figures" / "gaspk-learning-curves.svg").read_text()


def test_answers_on_a_grid_are_about_its_points() -> None:
    crowd = grid_crowd((3, 5), 400, 20, 0)
    assert crowd.code.min() >= 0
    assert crowd.code.max() < 15
    assert np.bincount(crowd.user).tolist() == [20] * 20
    assert [level.tolist() for level in crowd.levels] == [[-1, 0, 1], [-1, -0.5, 0, 0.5, 1]]


def test_differences_of_items_are_that_grid() -> None:
    task = grid_items(HALVES, 50, 10, 0, n_test=20)
    x = task.items.drop("item").to_numpy()
    differences = x[:, None, :] - x[None, :, :]
    assert [len(np.unique(np.round(differences[..., d], 9))) for d in range(8)] == list(SHAPE)
    assert task.train.n_answers == 50
    assert task.test.n_answers == 20


def test_em_on_a_small_grid_is_measured() -> None:
    found = on_grid(600, 20, "heuristic", 0, (3, 3, 5))
    assert found["n_grid"] == 45
    assert found["n_points"] <= 23
    assert 0 < found["round_cpu_s"] * found["rounds"] <= found["fit_cpu_s"]


def test_runs_that_are_there_are_not_repeated(tmp_path, monkeypatch) -> None:
    calls: list[tuple] = []

    def instead(function, *parameters, limit):
        calls.append(parameters)
        return {"fit_cpu_s": 1.0, "peak_mb": 1.0} if len(calls) > 1 else {"error": "no"}

    jobs = [({"size": name, "gamma": "heuristic", "seed": 0}, on_grid, (name,)) for name in ("a", "b")]
    monkeypatch.setattr(gaspk_scaling, "alone", instead)
    monkeypatch.setattr(gaspk_scaling, "write_page", lambda folder: None)
    monkeypatch.setitem(gaspk_scaling.PARTS, "grid", lambda seeds: jobs)
    command = ["--parts", "grid", "--out", str(tmp_path)]
    assert gaspk_scaling.main(command) == 1
    assert gaspk_scaling.main(command) == 0
    assert calls == [("a",), ("b",)]
    kept = json.loads((tmp_path / "figures" / "gaspk-scaling.json").read_text())["runs"]
    assert [r.get("error") for r in kept] == ["no", None]
    assert all("versions" in r["provenance"] for r in kept)


def test_simulated_people_mind_the_price_or_want_data() -> None:
    choices, plans = phone_plans()
    price, data = (dict(zip(plans["item"], plans[name], strict=True)) for name in ("price", "data"))
    dearer, more = [], []
    for user, left, right, winner in choices.iter_rows():
        loser = left + right - winner
        dearer.append((user < 40, np.sign(price[winner] - price[loser])))
        more.append((user < 40, np.sign(data[winner] - data[loser])))
    mean = {name: [np.mean([x for thrifty, x in rows if thrifty == who]) for who in (True, False)]
            for name, rows in (("price", dearer), ("data", more))}  # fmt: skip
    assert mean["price"][0] < mean["price"][1] - 0.2
    assert mean["data"][1] > mean["data"][0] + 0.2


@pytest.mark.slow
def test_pictures_are_drawn_and_the_same_again(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        pictures(folder)
    drawn = sorted((tmp_path / "a").iterdir())
    assert [path.name for path in drawn] == [
        "gaspk-characteristics.png", "gaspk-indifference.png", "gaspk-people.png"
    ]  # fmt: skip
    assert all(path.read_bytes() == (tmp_path / "b" / path.name).read_bytes() for path in drawn)


def test_eigenpairs_are_shown_as_the_paper_shows_them() -> None:
    def run(seed: int, log_loss: float) -> dict:
        return {
            "part": "eigenpairs", "task": "few", "seed": seed, "train_answers": 300, "log_loss": log_loss,
            "accuracy": 0.8, "calibration_error": 0.01, "predict_cpu_s": 1.0, "warnings": [], "report": {"rank": 400},
            "line": "gaspk@variances=low-rank@n_eigenpairs=10",
        }  # fmt: skip

    page = _eigenpairs([run(0, 0.4), run(1, 0.6)])
    assert "| few | low-rank | 10 | 400 | -0.5000 (0.2000) |" in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::predilect.errors.ConvergenceWarning")  # the published weights saturate
def test_trade_offs_of_two_attributes_lie_in_their_plane(tmp_path) -> None:
    task = utility_planes(4, 10, 0)
    assert task.items is not None
    attributes = [name for name in task.items.columns if name != "item"][-2:]
    held, agreed = principal_plane(task, attributes, tmp_path / "plane.png", cells=5)
    assert abs(held - 1.0) < EXACT
    assert 0.5 < agreed <= 1.0
    assert (tmp_path / "plane.png").stat().st_size > 5_000


@pytest.mark.slow
def test_a_process_of_its_own_ends_with_a_result_an_error_or_the_limit() -> None:
    assert alone(_answer, 6, limit=60.0) == {"found": 36}
    assert alone(_answer, 0, limit=60.0) == {"error": "ValueError: nothing"}
    assert "after 1 CPU s" in alone(_answer, -1, limit=1.0)["error"]


def _answer(number: int) -> dict[str, int]:
    if number == 0:
        raise ValueError("nothing")
    while number < 0:
        pass
    return {"found": number**2}
