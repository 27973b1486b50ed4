"""Choices of one item over others, written as pairs one after the other, are asked for, and found if it is said."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from benchmarks.splits import split_answers
from sklearn.model_selection import KFold, cross_val_score

from predilect import Population
from predilect.data import Comparisons, check, k_folds_answers, read
from predilect.data.canonical import choices_in_runs
from predilect.errors import DataError

COLUMNS = ["user", "left", "right", "winner"]


def choices(n_users=20, n_tasks=10, n_items=8, n_shown=4, seed=0, steep=1.0):
    """Choices by a utility of each person, the sides by chance; of one size, or of two up to ``n_shown``[1]."""
    rng = np.random.default_rng(seed)
    taste = steep * (np.linspace(1, -1, n_items) + rng.standard_normal((n_users, n_items)))
    least, most = n_shown if isinstance(n_shown, tuple) else (n_shown, n_shown)
    rows = []
    for user in range(n_users):
        for task in range(n_tasks):
            shown = rng.permutation(n_items)[: rng.integers(least, most + 1)]
            best = shown[np.argmax(taste[user, shown] + rng.gumbel(size=len(shown)))]
            for other in shown[shown != best]:
                pair = (best, other) if rng.random() < 0.5 else (other, best)
                rows.append((f"u{user:02}", *(f"i{item:02}" for item in (*pair, best)), task))
    return pl.DataFrame(rows, schema=[*COLUMNS, "task"], orient="row")


def found(frame, **options):
    """Answers whose column of tasks says which rows are one choice, or else rows that follow each other are."""
    column = {"task": "task"} if "task" in frame.columns else {}
    columns = column | options.pop("columns", {})
    said = {} if "task" in columns else {"reading": {"task": "runs"}}
    return Comparisons.from_frame(frame, columns=columns, **(said | options))


@pytest.mark.parametrize("n_shown", [3, 4, 6])
@pytest.mark.parametrize("n_items", [8, 30])
def test_choices_of_one_size_are_found_exactly(n_items, n_shown):
    frame = choices(n_items=n_items, n_shown=n_shown)
    answers = found(frame.drop("task"))
    assert answers == found(frame)
    assert answers.intake.choices_found == 200
    assert "task" not in answers.intake.columns
    told = " ".join(answers.intake.describe())
    assert "held together as 200 choices" in told
    assert 'say reading={"task": "none"}' in told
    assert "choices-without-tasks" not in {finding.code for finding in check(answers)}


def test_choices_of_several_sizes_are_held_together_at_least():
    """Two choices of the same item in a row may be taken for one, which holds more together and never less."""
    frame = choices(n_shown=(3, 6), n_items=10, n_tasks=14)
    answers = found(frame.drop("task"))
    assert answers.intake.choices_found > 150
    user, *item = (frame[name].rank("dense").to_numpy() - 1 for name in ("user", "left", "right"))
    outcome = np.where(frame["winner"] == frame["left"], 1, -1)
    codes = choices_in_runs(user, *item, outcome, np.ones(len(frame)))
    together = frame.with_columns(code=pl.Series(codes)).group_by("user", "task").agg(pl.col("code").n_unique())
    assert together["code"].max() == 1
    assert (codes >= 0).all()


def test_sides_names_readings_and_kinds_of_frames_make_no_difference(tmp_path):
    frame = choices().drop("task")
    expected = found(frame)
    swapped = frame.rename({"left": "right", "right": "left"})
    sides = frame.with_columns(
        winner=pl.when(pl.col("winner") == pl.col("left")).then(pl.lit("left")).otherwise(pl.lit("right"))
    )
    outcome = np.where(sides["winner"] == "left", 1, -1)
    frame.write_csv(tmp_path / "a.csv")
    for other in (
        found(swapped), found(sides), found(frame.to_pandas()), read(tmp_path / "a.csv", reading={"task": "runs"}),
        found(frame.drop("winner"), outcome=outcome), found(frame.drop("winner"), outcome=outcome > 0),
    ):  # fmt: skip
        assert other == expected
        assert other.intake.choices_found == 200


def test_rows_that_lie_together_as_choices_do_are_asked_about():
    """Nothing is decided by the order of the rows: a strong baseline against others looks the same."""
    frame = choices().drop("task")
    with pytest.raises(DataError) as told:
        Comparisons.from_frame(frame)
    message = str(told.value)
    assert re.search(r'Row 1: u00 prefers i\d\d to i\d\d .*: reading={"task": "none"}; or ', message)
    assert message.endswith('reading={"task": "runs"}.')
    with pytest.raises(DataError, match=r'reading={"task": "none"}'):
        Comparisons.from_frame(frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert found(frame).intake.choices_found == 200
    assert Comparisons.from_frame(frame, reading={"task": "none"}).task is None
    assert Comparisons.from_frame(frame, reading={"task": "none"}).task is None
    assert Comparisons.from_frame(frame, reading={"kind": "pairs"}).task is None
    baseline = pl.DataFrame({
        "judge": [f"j{k // 8}" for k in range(96)], "left": ["base"] * 96, "right": [f"m{k % 8}" for k in range(96)],
        "winner": ["base"] * 96,
    })  # fmt: skip
    with pytest.raises(DataError, match=r'reading={"task": "none"}; or .*: reading={"task": "runs"}\.$'):
        Comparisons.from_frame(baseline)
    assert not Comparisons.from_frame(baseline, reading={"task": "none"}).joint


def test_runs_are_choices_if_it_is_said_however_few_and_of_nobody():
    frame = {"left": ["p", "r", "q"], "right": ["q", "p", "r"], "winner": ["p", "p", "q"]}
    assert Comparisons.from_frame(frame, reading={"task": "runs"}).intake.choices_found == 1
    assert Comparisons.from_frame({**frame, "user": list("uuu")}, reading={"task": "runs"}).joint
    assert Comparisons.from_frame({**frame, "user": list("uvu")}, reading={"task": "runs"}).task is None


def test_a_column_of_tasks_or_no_task_decides():
    frame = choices()
    assert found(frame.drop("task"), reading={"task": "none"}).task is None
    assert Comparisons.from_frame(frame, reading={"task": "none"}).task is None
    pairs = frame.with_columns(task=pl.int_range(pl.len()))
    assert found(pairs).intake.choices_found == 0
    assert found(pairs.rename({"task": "block"}), columns={"task": "block"}).intake.choices_found == 0
    assert Comparisons.from_frame(frame.drop("task"), columns={"who": None}).task is None
    assert Comparisons.from_frame(frame.drop("user", "task")).task is None


def test_a_shuffled_frame_is_read_as_it_comes_and_what_was_found_stays():
    frame = choices().drop("task")
    answers = found(frame)
    rows = np.random.default_rng(0).permutation(answers.n_rows)[:300]
    part = answers.take(rows)
    assert np.array_equal(part.task, answers.task[np.sort(rows)])
    for mask in split_answers(answers, 0.4):
        assert np.array_equal(answers.take(mask).task, answers.task[mask])
    folds = k_folds_answers(answers)
    assert all(len(set(folds[answers.task == task])) == 1 for task in range(answers.task.max() + 1))
    assert found(answers.to_frame()) == answers
    assert answers.append(found(choices(seed=1).drop("task"))).intake.choices_found == 400


def test_rows_left_out_weights_and_merged_items():
    frame = choices().drop("task")
    counted = frame.with_columns(count=(pl.int_range(pl.len()) // 3) % 3)
    heavy = found(counted, columns={"weights": "count"})
    assert heavy.intake.left_out["weight zero"] == 201
    assert heavy.intake.choices_found == 133
    each = frame.with_columns(count=pl.int_range(pl.len()) % 3 + 1)  # pairs of one choice are counted alike
    assert found(each, columns={"weights": "count"}).task is None
    merged = {f"i{item:02}": f"m{item // 2}" for item in range(8)}
    mapped = found(frame, item_map=merged, reading={"task": "runs", "drop": "self"})
    assert mapped.intake.choices_found == 200
    assert mapped.task.max() + 1 == 200
    holes = frame.with_columns(winner=pl.when(pl.int_range(pl.len()) % 50 == 0).then(None).otherwise("winner"))
    assert found(holes, reading={"task": "runs", "drop": "unknown"}).intake.choices_found >= 150


def rankings(n_users=40, n_items=6, seed=0):
    """All pairs of everybody's ranking, best first."""
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(n_items) for _ in range(n_users)])
    first, second = np.triu_indices(n_items, 1)
    left, right = orders[:, first].ravel(), orders[:, second].ravel()
    return pl.DataFrame(
        {"user": np.repeat(np.arange(n_users), len(first)), "left": left, "right": right, "winner": left}
    )


def ratings(n_users=40, n_items=9, n_levels=3, seed=0):
    """All pairs rated differently."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n_users):
        rating = rng.integers(n_levels, size=n_items)
        rows += [(user, a, b, a) for a in range(n_items) for b in range(n_items) if rating[a] > rating[b]]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def at_random(n_users=40, n_answers=30, n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(n_items, size=n_users * n_answers)
    right = (left + rng.integers(1, n_items, size=len(left))) % n_items
    winner = np.where(rng.random(len(left)) < 0.5 + 0.4 * np.sign(right - left), left, right)
    return pl.DataFrame(
        {"user": np.repeat(np.arange(n_users), n_answers), "left": left, "right": right, "winner": winner}
    )


@pytest.mark.parametrize("made", [rankings, lambda: rankings(60, 3), lambda: rankings(30, 12), ratings,
                                  lambda: ratings(n_levels=2), lambda: ratings(80, 12, 5)])  # fmt: skip
@pytest.mark.parametrize(
    "order", [None, ["user", "winner"], ["winner", "user"], ["user", "right"], ["user", "left", "right"]]
)
def test_pairs_of_rankings_and_ratings_are_no_choices_however_sorted(made, order):
    frame = made() if order is None else made().sort(order, maintain_order=True)
    assert Comparisons.from_frame(frame, reading={"answer_is": "item"}).task is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_answers", [4, 15, 60])
@pytest.mark.parametrize("order", [[], ["winner"], ["user", "winner"], ["winner", "user"], ["user", "left", "right"]])
def test_pairs_at_random_are_no_choices_however_sorted(seed, n_answers, order):
    frame = at_random(n_answers=n_answers, seed=seed)
    frame = frame.sort(order, maintain_order=True) if order else frame
    assert Comparisons.from_frame(frame, reading={"answer_is": "item"}).task is None


def test_a_few_rows_in_a_row_are_no_choices():
    frame = choices(n_users=3, n_tasks=3).drop("task")
    assert Comparisons.from_frame(frame).task is None
    assert Comparisons.from_frame(frame.head(2)).task is None


@pytest.mark.slow
def test_cross_validation_over_a_frame_and_updates_go_on():
    frame = choices(n_users=6, n_tasks=15).rename({"task": "choice_set"}).to_pandas()
    model = Population(strength=5.0, variance=1.0, consensus_variance=1.0, n_jobs=1)
    assert np.isfinite(cross_val_score(model, frame, cv=KFold(3, shuffle=True, random_state=0))).all()
    model.fit(frame.iloc[:200])
    assert model.update(frame.iloc[200:]).n_answers_ == len(frame)


def test_choices_are_asked_about_though_no_winner_comes_back_in_any_order():
    won = [(f"u{who}", best, other) for who in range(6) for best, others in (("c", "ab"), ("a", "bcd"), ("b", "cd"))
           for other in others]  # fmt: skip
    for rows in (won, sorted(won)):
        table = dict(zip(("user", "left", "right"), zip(*rows, strict=True), strict=True))
        with pytest.raises(DataError, match=r'reading={"task": "none"}; or .*: reading={"task": "runs"}\.$'):
            Comparisons.from_frame({**table, "winner": [best for _, best, _ in rows]})
