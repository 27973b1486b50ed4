"""Records on disk, what they say together, the table and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.calibration_floor import calibration_floor
from benchmarks.store import (
    Store,
    difference,
    mean_and_error,
    pack_predictions,
    pooled_calibration,
    pooled_floor,
    write_whole,
)
from benchmarks.table import markdown

from benchmarks import __main__ as command
from benchmarks import workers
from tolerances import EXACT


def record(model: str, seed: int, loss: float, *, task: str = "sushi-a", split: str = "abc", **more: Any) -> dict:
    rng = np.random.default_rng(seed)
    losses = loss * 10 + rng.random(8)
    return {
        "task": task, "model": model, "seed": seed, "split_hash": split,
        "counts": {"people": 8, "items": 3, "train_answers": 80.0, "test_answers": 80.0, "test_ties": 0.0},
        "scores": {
            "accuracy": 0.9, "log_loss": float(losses.sum() / 80),
            "calibration_bins": {"count": [0.0] * 9 + [80.0], "confidence": [0.0] * 9 + [76.0],
                                 "correct": [0.0] * 9 + [72.0 + 8 * seed]},
        },
        "blocks": {"loss": losses.tolist(), "weight": [10.0] * 8},
        "cost": {"fit_cpu_s": 0.1}, "report": {},
        "provenance": {"cpu": "abacus", "versions": {"predilect": "0"}, "date": "2026-01-01T00:00:00"},
    } | more  # fmt: skip


def filled(folder: Path) -> Store:
    store = Store(folder)
    for seed in (0, 1):
        store.add(record("population", seed, 0.5))
        store.add(record("pooled", seed, 0.4))
        store.add(record("tie-share", seed, 0.7))
    return store


def test_records_come_back(tmp_path: Path) -> None:
    filled(tmp_path)
    store = Store(tmp_path)
    assert store.has("sushi-a", "pooled", 1)
    assert not store.has("sushi-a", "pooled", 2)
    assert not store.has("jura", "pooled", 1)
    assert store.runs("sushi-a", "pooled") == [record("pooled", 0, 0.4), record("pooled", 1, 0.4)]
    assert [path.name for path in tmp_path.iterdir()] == ["sushi-a.json"]


def test_predictions_stay_apart_and_come_back_as_a_floor(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet([2.0, 1.0, 2.0], (2, 90)), rng.integers(1, 3, (2, 90)).astype(float)
    names = np.stack([np.arange(90), np.arange(60, 150)]) + 2**31
    store = filled(tmp_path)
    assert store.floor("sushi-a", "population") is None
    packed = [pack_predictions(names[seed], proba[seed], weight[seed]) for seed in (0, 1)]
    store.add(record("population", 0, 0.5, predictions=packed[0]))
    assert store.floor("sushi-a", "population") is None  # of seed 1 nothing is known
    store.add(record("population", 1, 0.5, predictions=packed[1]))
    floor = Store(tmp_path).floor("sushi-a", "population")
    expected = calibration_floor(np.log(proba.reshape(-1, 3)), names.ravel(), weight.ravel())
    assert floor is not None
    assert abs(floor.mean - expected.mean) < 1e-4  # probabilities are kept to 1 in 65 535
    assert f"({floor.mean:.4f}, {floor.upper:.4f})" in markdown(store)
    assert pooled_floor(packed[:1]).mean > floor.mean
    # What is passed on holds the floor, and nothing of single answers; elsewhere it is known without them.
    text = (tmp_path / "sushi-a.json").read_text()
    assert "predictions" not in text
    assert packed[0]["name"] not in text
    (tmp_path / "predictions" / "sushi-a.json").unlink()
    elsewhere = Store(tmp_path)
    assert elsewhere.floor("sushi-a", "population") == floor
    assert elsewhere.floor("sushi-a", "pooled") is None
    # Another run makes it another.
    elsewhere.add(record("population", 1, 0.6))
    assert Store(tmp_path).floor("sushi-a", "population") is None


def test_a_repeated_run_replaces_the_old_one(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.add(record("pooled", 1, 0.3))
    assert len(Store(tmp_path).records["sushi-a"]) == 6


def test_differences_pool_seeds_and_resample_people(tmp_path: Path) -> None:
    store = filled(tmp_path)
    found = difference(store.runs("sushi-a", "population"), store.runs("sushi-a", "pooled"))
    assert found is not None
    # Both models share the noise of a block, so the difference is the same in every block.
    assert abs(found.mean - 0.1) < EXACT
    assert found.standard_error < 1e-8
    assert found.n_groups == 8
    assert difference(store.runs("sushi-a", "population"), []) is None
    with pytest.raises(ValueError, match="different splits"):
        difference([record("a", 0, 1.0)], [record("b", 0, 1.0, split="xyz")])


def test_means_and_calibration_over_seeds(tmp_path: Path) -> None:
    runs = filled(tmp_path).runs("sushi-a", "pooled")
    losses = [run["scores"]["log_loss"] for run in runs]
    mean, error = mean_and_error(runs, "scores", "log_loss") or (0, 0)
    assert abs(mean - np.mean(losses)) < EXACT
    assert abs(error - abs(losses[0] - losses[1]) / 2) < EXACT
    assert math.isnan((mean_and_error(runs[:1], "scores", "log_loss") or (0, 0))[1])
    assert mean_and_error(runs, "scores", "tau_person") is None
    # One seed is 4 answers short, the other 4 over: pooled they cancel.
    assert abs(pooled_calibration(runs)) < EXACT
    assert abs(pooled_calibration(runs[:1]) - 0.05) < EXACT


def test_table_shows_losing_cases_first_and_bars(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.add({"task": "sushi-a", "model": "peer", "seed": 0, "error": "ValueError: no"})
    page = markdown(store)
    assert page.index("| sushi-a | pooled | +0.1") < page.index("| sushi-a | tie-share | -0.2")
    assert "1 of 2 are worse by more than one standard error" in page
    assert "On 0 of 1 tasks population has the lowest log loss or is within one standard error of the lowest" in page
    assert "not on sushi-a (pooled)." in page
    assert page.index("**no**") < page.index("| yes |")
    # Two seeds that are wrong in opposite directions: pooled they are calibrated.
    assert "| sushi-a | calibration error | ≤ 0.015 | 0.0000 | yes |" in page
    assert "**peer failed** on seeds 0: ValueError: no" in page
    # By log loss, best first.
    assert page.index("| pooled | 2 |") < page.index("| population | 2 |") < page.index("| tie-share | 2 |")


def test_a_task_without_a_good_run_misses_its_bars(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add({"task": "sushi-b", "model": "population", "seed": 0, "error": "no result after 600 s"})
    assert "| sushi-b | any |  | every run failed | **no** |" in markdown(store)


def test_infinite_losses_are_kept_and_shown(tmp_path: Path) -> None:
    store = filled(tmp_path)
    bad = record("pooled", 2, 0.4, blocks=None)
    bad["scores"]["log_loss"] = math.inf
    store.add(bad)
    assert "inf" in markdown(Store(tmp_path))


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "file" / "bad.json"
    good.write_text("old")
    (tmp_path / "file").write_text("in the way of the folder")
    with pytest.raises(OSError, match="file"):
        write_whole({good: "new", bad: "new"})
    assert good.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "good.json"]


def test_command_runs_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[int]]] = []

    def runs(task: str, model: str, seeds: list[int], **_: Any) -> list[dict]:
        asked.append((model, list(seeds)))
        scores = {"predict_cpu_s": 0.0, "peak_mb": 1.0, "fit_cpu_s": 0.1}
        return [record(model, seed, 0.5, task=task, cost=scores) for seed in seeds]

    monkeypatch.setattr(command, "runs", runs)
    arguments = ["--tasks", "generator-10k", "--models", "population,pooled", "--out", str(tmp_path)]
    assert command.main([*arguments, "--seeds", "0-1"]) == 0
    assert command.main([*arguments, "--seeds", "1,2"]) == 0
    assert command.main([*arguments, "--seeds", "1", "--force"]) == 0
    assert [seeds for model, seeds in asked if model == "pooled"] == [[0, 1], [2], [1]]
    page = (tmp_path / "results.md").read_text()
    assert "## generator-10k" in page
    assert command.main(["--tasks", "none", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "results.md").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tasks", "nothing"], "no task is called 'nothing'"),
        (["--tasks", "sushi-a", "--models", "nobody"], "no model 'nobody'"),
        (["--tasks", "sushi-a"], "set PREDILECT_DATA"),
        (["--tasks", "generator-10k", "--seeds", "x"], "invalid literal"),
    ],
)
def test_command_refuses(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PREDILECT_DATA", raising=False)
    assert command.main(arguments) == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_its_own_measures_or_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = workers.runs("generator-10k", "tie-share", [0])
    assert abs(found["scores"]["log_loss"] - math.log(2)) < EXACT
    assert found["cost"]["peak_mb"] > 50
    ended = list(workers.runs("generator-10k", "tie-share", [0, 1], limit=0.01))
    assert [r["error"] for r in ended] == ["no result after 0.01 s"] * 2
    json.dumps(ended)
