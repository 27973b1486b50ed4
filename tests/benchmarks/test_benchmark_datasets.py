"""The real data sets: deterministic splits with the shapes that the protocols state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl
import pytest
from benchmarks.datasets import GROUPS, MOST_SEEDS, TASKS, default_seeds
from benchmarks.task import Task, expect

from predilect.errors import DataError

# The arguments by topic, whose seed is the topic, have tests of their own (test_benchmark_arguments.py).
REAL = [name for name in TASKS if not name.startswith(("generator", "ukp-topics"))]
# The large ones, seconds each: a table of a million ratings, all votes of five conversations, 84 000 labels of pairs.
LARGE = ("movielens", "polis", "sushi-b", "sushi-original-b", "ukpconvarg")


@cache
def task_of(name: str) -> Task:
    """The task of the first seed, which no test changes."""
    return TASKS[name](0)


@pytest.fixture(scope="module", autouse=True)
def forget_tasks() -> Iterator[None]:
    """Leave no answers in memory once the tests are done."""
    yield
    task_of.cache_clear()


def each(names: list[str]) -> list[object]:
    return [pytest.param(n, marks=pytest.mark.slow) if n.startswith(LARGE) else n for n in names]


# Task: people, items, training and test answers; None where they depend on the seed.
SHAPES: dict[str, tuple[int | None, ...]] = {
    "sushi-a-small": (100, 10, 500, 2500),
    "sushi-a": (100, 10, 2000, 2500),
    "sushi-a15": (1000, 10, 15000, 5000),
    "sushi-b": (5000, 100, 50000, 5000),
    "sushi-original-a-small": (100, 10, 500, 2500),
    "sushi-original-a": (100, 10, 2000, 2500),
    "sushi-original-a15": (1000, 10, 15000, 5000),
    "sushi-original-b": (5000, 100, 50000, 5000),
    "llmfao-models": (124, 59, None, None),
    "llmfao-responses": (124, 750, None, None),
    "ukpconvarg": (3815, 1052, None, None),
    "ukpconvarg-crowdsample": (1442, 1052, None, None),
    "electricity": (361, 35, None, None),
    "swissmetro": (1191, None, None, None),
    "tax-plans": (None, None, 12000, 4000),
    "amt-cars": (53, 10, None, None),
    "jura": (100, 7, 1500, 600),
    "uk-election-2010": (632, 8, None, None),
    "facebook-social": (97, 39, 3880, 3880),
    "movielens-10": (None, 10, None, None),
    "movielens-200": (942, 200, None, None),
    "polis": (None, None, None, None),
}
TOTALS = {"llmfao-models": 8931, "llmfao-responses": 8931, "ukpconvarg": 84445, "ukpconvarg-crowdsample": 16927,
          "electricity": 12924, "swissmetro": 19755, "amt-cars": 2362, "uk-election-2010": 6761}  # fmt: skip
WITH_TIES = {"llmfao-models", "llmfao-responses", "ukpconvarg", "ukpconvarg-crowdsample", "facebook-social"}


@pytest.mark.slow  # real data, all of it
@pytest.mark.data
@pytest.mark.parametrize("name", each(REAL))
def test_splits(name: str) -> None:
    task, again, other = task_of(name), TASKS[name](0), TASKS[name](1)
    assert task.name == name
    assert task.split_hash == again.split_hash != other.split_hash
    found = (task.train.n_users, task.train.n_items, task.train.n_answers, task.test.n_answers)
    for value, stated in zip(found, SHAPES[name], strict=True):
        assert stated is None or value == stated
    assert task.train.n_answers + task.test.n_answers == TOTALS.get(name, task.train.n_answers + task.test.n_answers)
    assert task.train.items == task.test.items
    assert (task.train.has_ties and task.test.has_ties) == (name in WITH_TIES) == (task.implied is None)
    # The orientation says nothing of the winner: ids do not decide.
    strict = task.test.outcome[task.test.outcome != 0]
    assert 0.2 < (strict > 0).mean() < 0.8
    if task.items is not None:
        assert set(task.train.items.ids) <= set(task.items["item"].to_list())


@pytest.mark.data
@pytest.mark.parametrize("name", each([n for n in REAL if not n.startswith(("electricity", "swissmetro"))]))
def test_no_pair_of_a_person_is_on_both_sides(name: str) -> None:
    task = task_of(name)
    sides = [
        set(zip(side.users.labels(side.user).tolist(), side.left.tolist(), side.right.tolist(), strict=True))
        for side in (task.train, task.test)
    ]
    assert not sides[0] & sides[1]


@pytest.mark.data
@pytest.mark.parametrize("name", ["electricity", "swissmetro", "tax-plans"])
def test_training_answers_of_choices_carry_their_tasks(name: str) -> None:
    task = task_of(name)
    assert task.test.task is None
    assert task.train.task is not None
    sizes = np.bincount(task.train.task, task.train.weight)
    assert sizes.max() == {"electricity": 3, "swissmetro": 2, "tax-plans": 1}[name]
    # Whoever is chosen is chosen in all pairs of the task.
    winner = np.where(task.train.outcome > 0, task.train.left, task.train.right)
    assert len(np.unique(np.stack([task.train.task, winner]), axis=1).T) == len(sizes)


@pytest.mark.data
def test_sushi_answers_and_gold_agree() -> None:
    task = TASKS["sushi-b"](2)
    assert task.gold is not None
    score = {(user, item): s for user, item, s in task.gold.iter_rows()}
    for side in (task.train, task.test):
        users, left, right = (
            ids.labels(codes).tolist()
            for ids, codes in ((side.users, side.user), (side.items, side.left), (side.items, side.right))
        )
        for u, a, b, y in list(zip(users, left, right, side.outcome, strict=True))[:2000]:
            assert (score[u, a] - score[u, b]) * y > 0


@pytest.mark.data
def test_implied_sushi_answers_are_right_and_as_common_as_stated() -> None:
    # benchmarks/README.md: 48 % (20 + 25), 31 % (15 + 5), 14 % (B).
    for name, stated in (("sushi-a", 0.48), ("sushi-a15", 0.31), ("sushi-b", 0.14)):
        implied = task_of(name).implied
        assert implied is not None
        assert abs(implied.mean() - stated) < 0.03


@pytest.mark.slow
@pytest.mark.data
def test_polis_holds_out_statements() -> None:
    task = task_of("polis")
    seen = [
        {
            (user, item)
            for codes in (side.left, side.right)
            for user, item in zip(side.users.labels(side.user).tolist(), codes.tolist(), strict=True)
        }
        for side in (task.train, task.test)
    ]
    assert not seen[0] & seen[1]


def test_wrong_data_is_named() -> None:
    with pytest.raises(DataError, match="holds 3 users, not 4"):
        expect("toy", users=(3, 4), items=(2, 2))


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.delenv("PREDILECT_DATA", raising=False)
    with pytest.raises(DataError, match="set PREDILECT_DATA"):
        TASKS["sushi-a"](0)
    monkeypatch.setenv("PREDILECT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="no folder"):
        TASKS["jura"](0)


def test_groups_and_seeds() -> None:
    assert set(SHAPES) == set(REAL)
    assert all(set(group) <= set(TASKS) for group in GROUPS.values())
    assert default_seeds("sushi-a") == list(range(10))
    assert default_seeds("sushi-b") == [0, 1, 2]
    assert default_seeds("sushi-original-b") == [0, 1]
    assert np.isin(list(MOST_SEEDS), list(TASKS)).all()


def _turned(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(frame.columns[::-1])


@pytest.mark.slow  # real data, all of it
@pytest.mark.data
@pytest.mark.parametrize("name", each(REAL))
def test_files_are_read_by_the_names_of_their_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, read = task_of(name), pl.read_csv
    monkeypatch.setattr(pl, "read_csv", lambda *args, **options: _turned(read(*args, **options)))
    assert TASKS[name](0).split_hash == task.split_hash
