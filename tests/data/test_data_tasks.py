"""Answers given in one go: what is read, what is kept apart, and what is held out together."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks.splits import split_answers, split_hash

from predilect.data import Comparisons, check, k_folds_answers
from predilect.data import read as read_file
from predilect.data.canonical import AnswerColumns, canonical_answers
from predilect.errors import DataError

ONE = {"user": ["u"] * 4, "left": list("ppqr"), "right": list("qrpp"), "winner": list("pppp"), "task": [1, 1, 2, 2]}


def choices(n_users=30, n_tasks=8, n_items=9, n_shown=4, seed=0):
    """Choices of the first of some items drawn at random, by people with one task up to ``n_tasks``."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n_users):
        for task in range(1 + user % n_tasks):
            shown = rng.permutation(n_items)[: rng.integers(2, n_shown + 1)].tolist()
            rows += [(user, *((shown[0], other) if rng.random() < 0.5 else (other, shown[0])), shown[0], task)
                     for other in shown[1:]]  # fmt: skip
    return pl.DataFrame(rows, schema=["user", "left", "right", "winner", "task"], orient="row")


def read(frame, columns=None, reading=None):
    said = {"task": "task"} if "task" in frame.columns and reading is None else {}
    return Comparisons.from_frame(
        frame, columns=said | (columns or {}), reading={"answer_is": "item"} | (reading or {})
    )


def test_equal_answers_merge_within_a_task_only():
    frame = {"user": ["u"] * 6, "left": ["a"] * 6, "right": ["b"] * 6, "winner": ["a"] * 6,
             "task": [7, 7, 5, None, None, 9]}  # fmt: skip
    comparisons = Comparisons.from_frame(frame)
    assert comparisons.task.tolist() == [-1, 0, 1, 2]
    assert sorted(comparisons.weight.tolist()) == [1, 1, 2, 2]
    assert comparisons.weight[0] == 2  # the two that stand alone
    assert comparisons.intake.duplicates == 2
    assert comparisons.pooled().weight.tolist() == [6]
    assert comparisons.pooled().task is None
    assert comparisons.n_answers == 6
    assert "contradictions" not in {finding.code for finding in check(comparisons)}
    both = Comparisons.from_frame({**frame, "winner": list("abbaaa")})
    assert {finding.code: finding.count for finding in check(both)}["contradictions"] == 1
    assert both.task.max() == 2


def test_items_that_become_one_merge_within_a_task():
    frame = {"user": ["u"] * 3, "left": ["a1", "a2", "a1"], "right": ["b"] * 3, "winner": ["a1", "a2", "a1"],
             "task": [1, 1, 2]}  # fmt: skip
    comparisons = Comparisons.from_frame(frame, item_map={"a1": "a", "a2": "a", "b": "b"})
    assert comparisons.weight.tolist() == [1, 2]
    assert comparisons.task.tolist() == [0, 1]


def test_without_tasks_nothing_is_known():
    frame = choices().drop("task").sample(fraction=1, shuffle=True, seed=0)
    comparisons = read(frame)
    assert comparisons.task is None
    assert "task" not in comparisons.to_frame().columns
    blank = read(frame.with_columns(task=pl.lit(None, dtype=pl.String)), columns={"task": "task"})
    assert blank.task is None
    assert blank == comparisons
    none = (comparisons.user, comparisons.left, comparisons.right, comparisons.outcome, comparisons.weight, None)
    assert canonical_answers(AnswerColumns(*none)).task is None


def test_ids_of_any_kind():
    expected = Comparisons.from_frame(ONE, columns={"task": "task"})
    assert expected.task.tolist() == [0, 1, 0, 1]
    for ids in (
        ["x", "x", "1", "1"],
        [2.0, 2.0, 1.0, 1.0],
        pd.Series([5, 5, 9, 9], dtype="Int64"),
        [-3, -3, 2**40, 2**40],
    ):
        assert Comparisons.from_frame({**ONE, "task": ids}, columns={"task": "task"}) == expected
    assert Comparisons.from_frame({**ONE, "task": [1, 2, 1, 2]}, columns={"task": "task"}) != expected
    assert Comparisons.from_frame(ONE, reading={"task": "none"}) != expected
    for ids in ([0.5, 0.5, 1, 1], [True, True, False, False]):
        with pytest.raises(DataError, match='column "task"'):
            Comparisons.from_frame({**ONE, "task": ids}, columns={"task": "task"})
        assert Comparisons.from_frame({**ONE, "task": ids}).task is None  # it was only a guess


@pytest.mark.parametrize("name", ["Task_ID", "choice set", "choiceset", "choice_id"])
def test_the_column_is_guessed_and_told(name):
    frame = {name if column == "task" else column: values for column, values in ONE.items()}
    comparisons = Comparisons.from_frame(frame)
    assert comparisons == Comparisons.from_frame(ONE, columns={"task": "task"})
    assert comparisons.intake.columns["task"] == name
    ignored = Comparisons.from_frame(frame, reading={"task": "none"})
    assert (ignored.task, ignored.intake.ignored_columns) == (None, (name,))


def test_a_task_that_may_be_a_topic_is_asked_about():
    """Two answers of a person on one topic, both for one item, look like one choice."""
    with pytest.raises(DataError) as told:
        Comparisons.from_frame(ONE)
    assert 'task by "task"): columns={"task": "task"}; or Row 1: u prefers p to q' in str(told.value)
    assert str(told.value).endswith('reading={"task": "none"}.')
    assert Comparisons.from_frame(ONE, columns={"task": "task"}).joint
    assert not Comparisons.from_frame(ONE, reading={"task": "none"}).joint
    assert not Comparisons.from_frame(ONE, reading={"kind": "pairs"}).joint
    # Where a topic cannot be a choice, its answers are held together and nothing else.
    topics = Comparisons.from_frame({**ONE, "winner": list("prpp")})
    assert not topics.joint
    assert topics.intake.columns["task"] == "task"


def test_many_tasks_that_are_all_like_choices_are_choices_unless_one_item_is_in_all():
    frame = choices()
    assert Comparisons.from_frame(frame, reading={"answer_is": "item"}) == read(frame)
    baseline = {"user": [f"u{k // 16}" for k in range(160)], "left": [99] * 160, "right": [k % 8 for k in range(160)],
                "winner": [99] * 160, "task": [k // 4 % 5 for k in range(160)]}  # fmt: skip
    with pytest.raises(DataError, match=r'columns={"task": "task"}; or .*: reading={"task": "none"}\.$'):
        Comparisons.from_frame(baseline, reading={"answer_is": "item"})


def test_what_is_no_task_is_not_guessed():
    # Everybody's answers are one task: rather the kind of question. Named, it is believed.
    constant = {**ONE, "task": ["essay"] * 4}
    guessed = Comparisons.from_frame(constant)
    assert guessed.task is None
    assert guessed.intake.ignored_columns == ("task",)
    assert Comparisons.from_frame(constant, columns={"task": "task"}).task.tolist() == [0, 0]
    # Where nobody is told apart, 1, 2, ... may be anybody's.
    assert Comparisons.from_frame(ONE, columns={"who": None}).task is None
    assert Comparisons.from_frame(ONE, columns={"who": None, "task": "task"}).task.tolist() == [0, 1, 0, 1]
    with pytest.raises(DataError, match=r'no column "round" \(given as task\)'):
        Comparisons.from_frame(ONE, columns={"task": "round"})
    with pytest.raises(DataError, match="cannot be both task and user"):
        Comparisons.from_frame(ONE, columns={"who": "user", "task": "user"})


def test_files(tmp_path):
    frame = choices()
    path = tmp_path / "v.csv.gz"
    with gzip.open(path, "wb") as stream:
        frame.write_csv(stream)
    text = frame.with_columns(pl.all().cast(pl.String))
    assert read_file(path, columns={"task": "task"}, reading={"answer_is": "item"}) == read(text)
    assert read_file(path, reading={"answer_is": "item", "task": "none"}).intake.ignored_columns == ("task",)


def test_take_and_more_items_carry_tasks():
    comparisons = read(choices())
    some = comparisons.take(comparisons.user % 2 == 0)
    assert np.array_equal(some.task, comparisons.task[comparisons.user % 2 == 0])
    assert comparisons.take([]).task is None
    more = comparisons.with_items([-1, 100])
    assert np.array_equal(more.task, comparisons.task)
    with pytest.raises(ValueError, match="read-only"):
        comparisons.task[0] = 3
    with pytest.raises(DataError, match="one code a row"):
        Comparisons(comparisons.users, comparisons.items, *([[0]] * 5), task=[0, 1])


def test_appended_tasks_are_never_the_same():
    first, plain = (
        Comparisons.from_frame(ONE, columns={"task": "task"}),
        Comparisons.from_frame(ONE, reading={"task": "none"}),
    )
    twice = {name: column * 2 for name, column in ONE.items()} | {"task": [1, 1, 2, 2, 3, 3, 4, 4]}
    assert first.append(first) == Comparisons.from_frame(twice, columns={"task": "task"})
    for both in (first.append(plain), plain.append(first)):
        assert both.n_answers == 8
        assert sorted(set(both.task.tolist())) == [-1, 0, 1]
    assert plain.append(plain).task is None


def test_folds_keep_tasks_together_and_people_in_training():
    comparisons = read(choices())
    single = [u for u in range(comparisons.n_users) if len(set(comparisons.task[comparisons.user == u])) == 1]
    assert single
    for n_folds in (2, 5):
        folds = k_folds_answers(comparisons, n_folds, random_state=1)
        for task in range(comparisons.task.max() + 1):
            assert len(set(folds[comparisons.task == task])) == 1
        for user in range(comparisons.n_users):
            mine = comparisons.user == user
            dealt = dict(zip(comparisons.task[mine].tolist(), folds[mine].tolist(), strict=True))
            counts = np.bincount([fold for fold in dealt.values() if fold >= 0], minlength=n_folds)
            assert counts.max() - counts.min() <= 1
            assert (set(dealt.values()) == {-1}) == (user in single)
            assert counts.max() < len(dealt)
        answers = np.bincount(folds[folds >= 0], comparisons.weight[folds >= 0])
        assert np.ptp(answers) < 0.2 * answers.mean()
    train, test = split_answers(comparisons, 0.3)
    assert not set(comparisons.task[test]) & set(comparisons.task[train])
    assert set(comparisons.user[train]) == set(range(comparisons.n_users))
    assert not np.isin(comparisons.user[test], single).any()
    assert 0.2 < test.mean() < 0.4


def test_sizes_of_folds_differ_within_a_person_by_one_task_at_most():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 30, 20)
    frame = {"user": ["u"] * sizes.sum(), "left": [0] * sizes.sum(), "right": 1 + np.arange(sizes.sum()),
             "task": np.repeat(np.arange(20), sizes)}  # fmt: skip
    comparisons = Comparisons.from_frame(frame, outcome=np.ones(sizes.sum()), columns={"task": "task"})
    assert np.ptp(np.bincount(k_folds_answers(comparisons, 4))) <= sizes.max()


def test_tasks_of_one_pair_each_leave_the_splits_as_they_are():
    rng = np.random.default_rng(1)
    pairs = pl.DataFrame([(u, a, b) for u in range(20) for a in range(6) for b in range(a + 1, 6)],
                         schema=["user", "left", "right"], orient="row").sample(fraction=0.6, seed=2)  # fmt: skip
    outcome = rng.choice([1, -1], len(pairs))
    plain = Comparisons.from_frame(pairs, outcome=outcome)
    tasks = Comparisons.from_frame(pairs.with_columns(task=pl.Series(rng.permutation(len(pairs)))), outcome=outcome)
    assert tasks.task is not None
    assert np.array_equal(k_folds_answers(plain), k_folds_answers(tasks))
    assert np.array_equal(split_answers(plain)[1], split_answers(tasks)[1])


def test_answers_that_stand_alone_are_held_out_by_pair():
    frame = choices().with_columns(task=pl.when(pl.col("task") < 3).then("task"))
    comparisons = read(frame)
    folds = k_folds_answers(comparisons, 3)
    alone = comparisons.task == -1
    pairs = {}
    for u, a, b, fold in zip(*(getattr(comparisons, n)[alone] for n in ("user", "left", "right")), folds[alone],
                             strict=True):  # fmt: skip
        pairs.setdefault((u, a, b), set()).add(fold)
    assert len(pairs) > 20
    assert all(len(found) == 1 for found in pairs.values())


def test_the_fingerprint_of_a_split_does_not_depend_on_tasks():
    frame = choices(n_items=4)
    known, plain = read(frame), read(frame, reading={"task": "none"})
    assert known.n_rows > plain.n_rows
    assert split_hash(np.ones(known.n_rows, bool), known) == split_hash(np.ones(plain.n_rows, bool), plain)
    folds = k_folds_answers(known)
    assert split_hash(folds, known) != split_hash(k_folds_answers(known, random_state=1), known)
    shuffled = read(frame.sample(fraction=1, shuffle=True, seed=1))
    assert split_hash(folds, known) == split_hash(k_folds_answers(shuffled), shuffled)


def test_choices_without_tasks_are_noticed():
    rng = np.random.default_rng(3)
    shown = np.array([rng.permutation(8)[:4] for _ in range(200)])
    frame = pl.DataFrame({"user": np.repeat(np.arange(200) // 10, 3), "left": np.repeat(shown[:, 0], 3),
                          "right": shown[:, 1:].ravel(), "winner": np.repeat(shown[:, 0], 3),
                          "task": np.repeat(np.arange(200), 3)})  # fmt: skip
    found = {finding.code: finding for finding in check(read(frame, reading={"task": "none"}))}
    assert "out of 4, each written as 3 pairs" in found["choices-without-tasks"].message
    assert 'columns={"task": "NAME"}' in found["choices-without-tasks"].message
    single = frame.gather_every(3)
    orders = np.array([rng.permutation(8) for _ in range(20)])
    first, second = np.triu_indices(8, 1)
    ranked = pl.DataFrame({"user": np.repeat(np.arange(20), len(first)), "left": orders[:, first].ravel(),
                           "right": orders[:, second].ravel(), "winner": orders[:, first].ravel()})  # fmt: skip
    asked_twice = pl.concat([single, single])
    apart = {"task": "none"}
    for other in (read(frame), read(frame, reading=apart).pooled(), read(single, reading=apart), read(ranked),
                  read(asked_twice, reading=apart)):  # fmt: skip
        assert "choices-without-tasks" not in {finding.code for finding in check(other)}
