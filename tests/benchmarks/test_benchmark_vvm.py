"""What compressing costs: losses by hand, the tasks, and the page."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.datasets.vvm import TASKS, Preferences, _never_dispreferred
from benchmarks.store import Store
from benchmarks.vvm import (
    CRITERIA,
    PRINTED,
    SHARES,
    main,
    recommendation_loss,
    run,
    zero_one_loss,
)
from benchmarks.vvm_page import (
    LABELS,
    MEASURES,
    PRINTED_LABELS,
    claim_lines,
    difference,
    pair_lines,
    points,
    table,
    write_page,
)

from benchmarks import vvm
from predilect.data import Comparisons
from tolerances import ITERATIVE


def answers(users, left, right, outcome, weight=None):
    columns = {"user": users, "left": left, "right": right}
    columns = columns if weight is None else columns | {"weight": weight}
    return Comparisons.from_frame(columns, outcome=outcome, reading={"tie": "0"})


def test_recommendation_loss_by_hand():
    best = np.array([[True, True, False, False], [False, False, False, True]])
    assert recommendation_loss(best, np.array([[3.0, 1, 2, 0], [0, 1, 2, 3]])) == 0.0
    assert recommendation_loss(best, np.array([[0.0, 1, 2, 0], [0, 1, 2, 3]])) == 12.5  # one of four, of one of two
    # All that are equally good are recommended: two that are not among the best, beside one that is.
    assert recommendation_loss(best, np.array([[2.0, 1, 2, 2], [0, 1, 2, 3]])) == 25.0
    assert recommendation_loss(best, np.array([[-np.inf, -np.inf, 2, 1], [-np.inf, -1, -2, -np.inf]])) == 25.0


def test_zero_one_loss_leaves_ties_out():
    test = answers(["a", "a", "b", "b"], [1, 1, 1, 2], [2, 3, 2, 3], [1, -1, 0, 1])
    data = Preferences(test, test, None, None, np.ones((2, 3), dtype=bool))
    right = test.outcome.astype(float)
    assert zero_one_loss(data, right) == 0.0
    assert zero_one_loss(data, np.where(right == 0, 5.0, -right)) == 100.0
    assert zero_one_loss(data, np.zeros(4)) == 50.0
    wrong_once = right.copy()
    wrong_once[np.flatnonzero(right == -1)] = 1.0
    assert zero_one_loss(data, wrong_once) == pytest.approx(100.0 / 3.0)


def test_an_answer_counts_as_often_as_it_was_given():
    test = answers(["a", "a"], [1, 2], [2, 3], [1, 1], [3, 1])
    data = Preferences(test, test, None, None, np.ones((1, 3), dtype=bool))
    first = (test.weight == 3.0) * 2.0 - 1.0  # right where the weight is 3
    assert zero_one_loss(data, first) == 25.0


def test_the_best_items_are_those_never_refused():
    given = answers(["a", "a", "b", "b", "b"], [1, 3, 1, 2, 3], [2, 2, 2, 3, 1], [1, 0, 1, 1, 1])
    # a refused 2 once of twice, never 1 and 3; b refused each once of twice.
    assert _never_dispreferred(given).tolist() == [[True, False, True], [True, True, True]]
    unasked = answers(["a", "b"], [1, 2], [2, 3], [1, 1])
    assert _never_dispreferred(unasked).tolist() == [[True, False, False], [False, True, False]]


def test_synthetic_people_like_half_of_the_items():
    data = TASKS["synthetic"](3, n_users=4, n_items=6)
    assert data.best.sum(axis=1).tolist() == [3, 3, 3, 3]
    for part in (data.train, data.test):
        left_won = part.outcome == 1
        assert data.best[part.user, np.where(left_won, part.left, part.right)].all()
        assert not data.best[part.user, np.where(left_won, part.right, part.left)].any()
        assert not part.has_ties
    assert data.train.n_answers + data.test.n_answers == 4 * 9
    assert abs(data.test.n_answers - 0.4 * 36) <= 2
    again, other = (TASKS["synthetic"](seed, n_users=4, n_items=6) for seed in (3, 4))
    assert np.array_equal(again.train.left, data.train.left)
    assert np.array_equal(again.best, data.best)
    assert not np.array_equal(other.best, data.best)
    fewer = TASKS["synthetic"](3, n_users=4, n_items=6, n_answers=12)
    assert fewer.train.n_answers + fewer.test.n_answers == 20


@pytest.fixture
def made(tmp_path):
    """Two repetitions of one task: the criterion named first loses 1 and 3, IVM 2 and 5, everything else 4."""
    store = Store(tmp_path / "vvm")
    for seed in (0, 1):
        for criterion in ("full", "voi", "ivm", "random"):
            for share in (100,) if criterion == "full" else (20, 50):
                loss = {"voi": (1.0, 3.0), "ivm": (2.0, 5.0)}.get(criterion, (4.0, 4.0))[seed]
                store.add({
                    "task": "made", "model": f"{criterion}@{share}", "criterion": criterion, "share": share,
                    "seed": seed, **dict.fromkeys(MEASURES, loss),
                })  # fmt: skip
    store.add({"task": "made", "model": "mean@20", "seed": 0, "error": "no such thing"})
    return store


def test_the_table(made):
    found = points(made, "made", "voi", "recommendation")
    assert {share: values.tolist() for share, values in found.items()} == {20: [1.0, 3.0], 50: [1.0, 3.0]}
    lines = table(made, "made", "recommendation")
    assert lines[0] == "Full: 4.00 ± 0.00, 2 repetitions."
    assert lines[2:4] == ["| kept | 20 % | 50 % |", "|---|---|---|"]
    rows = dict(zip(LABELS, lines[4:], strict=True))
    # The standard error of 1 and 3 is 1, of 2 and 5 it is 1.5; IVM is worse both times.
    assert rows["voi"] == "| value of information | 2.00 ± 1.00 (2/0) | 2.00 ± 1.00 (2/0) |"
    assert rows["ivm"] == "| IVM (entropy) | 3.50 ± 1.50 | 3.50 ± 1.50 |"
    assert rows["mean"] == "| highest mean |  |  |"  # a run that failed has no place in it
    assert "(" not in dict(zip(LABELS, table(made, "made", "zero_one")[4:], strict=True))["voi"]


def test_what_the_page_says_of_pairs_and_of_the_claims(made):
    assert difference(made, "made", "voi", "ivm", 20, "zero_one") == (1.5, 0.5)  # 2 - 1 and 5 - 3
    for seed, loss in enumerate((0.5, 2.0)):
        run_of = {"task": "made", "criterion": "pairs", "share": 20, "seed": seed, **dict.fromkeys(MEASURES, loss)}
        made.add({"model": "pairs@20", **run_of})
    row = next(line for line in pair_lines(made, ["made"]) if line.startswith("| made"))
    # Below random by 3.5 and 2, below IVM by 1.5 and 3: the means are 2.75 and 2.25, the standard errors .75.
    assert row.endswith("| 4.00 | 4.00 | +2.75 ± 0.75 | +2.25 ± 0.75 |  |  | yes |")
    lines = claim_lines(made, ["made"])
    assert "| made | value of information | our way | +1.50 ± 0.50 | +1.50 ± 0.50 |" in lines
    assert "- nowhere." in lines
    assert "- made: pairs told best 1.2; value of information 2.0; IVM (entropy) 3.5; random 4.0." in lines


@pytest.mark.slow
def test_the_page(made, tmp_path):
    for share, size in ((None, None), (20, 500)):
        made.add({
            "task": "speed", "model": f"10x200@{share or 'full'}", "seed": 0, "n_items": 10, "n_users": 200,
            "share": share, "n_answers": 30, "compress_seconds": 0.25, "microseconds_a_pair": 2.5, "bytes": size,
            "bytes_full": size and 2000,
        })  # fmt: skip
    write_page(tmp_path)
    page = (tmp_path / "vvm.md").read_text(encoding="utf-8")
    assert page.startswith("# What compressing costs")
    assert page.count("\n| value of information |") == len(MEASURES)
    assert "| 200 x 10 | full | 2.5 |  |  |  |" in page
    assert "| 200 x 10 | 20 % | 2.5 | 0.25 | 0 | 4.0 |" in page
    assert (tmp_path / "figures" / "vvm.png").stat().st_size > 10_000


@pytest.mark.slow
def test_a_tiny_repetition(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "tiny", lambda seed: TASKS["synthetic"](seed, n_users=6, n_items=4))
    monkeypatch.setattr(vvm, "SHARES", (25, 100))
    monkeypatch.setattr(vvm, "CRITERIA", ("voi", "gp-ucb", "random"))
    assert main(["--tasks", "tiny", "--repetitions", "2", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    store = Store(tmp_path / "vvm")
    assert len(store.records["tiny"]) == 2 * (1 + (3 + len(PRINTED)) * 2)
    for seed in (0, 1):
        record = {name: store.records["tiny"][name, seed] for name in store.models("tiny")}
        full = record["full@100"]
        for criterion in ("voi", "gp-ucb", "random"):
            # Whatever chooses, nothing is lost where everything is kept.
            for measure in MEASURES:
                assert record[f"{criterion}@100"][measure] == full[measure]
                assert abs(record["voi-printed@100"][measure] - full[measure]) < ITERATIVE
        for run_of in record.values():
            assert 0.0 <= run_of["zero_one"] <= 100.0
    first = store.records["tiny"]["full@100", 0]
    assert first["learned"]
    assert "settings" not in store.records["tiny"]["full@100", 1]
    assert not store.records["tiny"]["full@100", 1]["learned"]
    other = next(iter(run("tiny", 0, first["settings"])))
    assert other["zero_one"] == first["zero_one"]  # at the hyper-parameters that were learned
    before = (tmp_path / "vvm" / "tiny.json").read_bytes()
    assert main(["--tasks", "tiny", "--repetitions", "2", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "vvm" / "tiny.json").read_bytes() == before  # runs that are there are skipped


@pytest.mark.slow
def test_criteria_that_are_added_later_leave_the_others_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "tiny", lambda seed: TASKS["synthetic"](seed, n_users=6, n_items=4))
    monkeypatch.setattr(vvm, "SHARES", (50,))
    given = ["--tasks", "tiny", "--repetitions", "1", "--out", str(tmp_path)]
    assert main([*given, "--criteria", "voi"]) == 0
    before = Store(tmp_path / "vvm").records["tiny"]
    assert sorted(before) == [("full@100", 0), ("voi@50", 0)]
    assert main([*given, "--criteria", "voi,random"]) == 0
    after = Store(tmp_path / "vvm").records["tiny"]
    assert before.items() <= after.items()
    assert sorted(after) == [("full@100", 0), ("random@50", 0), ("voi@50", 0)]
    store = Store(tmp_path / "vvm")
    store.add(before["full@100", 0] | {"zero_one": before["full@100", 0]["zero_one"] + 1.0})
    with pytest.raises(SystemExit, match="has changed"):
        main([*given, "--criteria", "mean"])
    capsys.readouterr()


def test_every_criterion_has_a_label_and_the_shares_end_with_all():
    assert set(LABELS) == set(CRITERIA)
    assert set(PRINTED_LABELS) == set(PRINTED)
    assert SHARES[-1] == 100
