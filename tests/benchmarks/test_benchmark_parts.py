"""Parts of tasks: shares of the training answers, nested and even, and attributes that are selected."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.datasets import default_seeds
from benchmarks.datasets.trade_offs import utility_planes
from benchmarks.learning_curves import task_name
from benchmarks.models import build
from benchmarks.parts import TEST_SHARE, find_loader, thinned
from benchmarks.selection import selected_attributes, selections
from benchmarks.task import Task, split_rows


def in_tasks(seed: int) -> Task:
    """Twenty people with ten choices of one of four items each: three answers a choice."""
    rng = np.random.default_rng(seed)
    user, choice = np.repeat(np.arange(20), 30), np.tile(np.repeat(np.arange(10), 3), 20)
    items = np.array([rng.permutation(8)[:4] for _ in range(200)])
    frame = pl.DataFrame(
        {"user": user, "left": np.repeat(items[:, 0], 3), "right": items[:, 1:].ravel(), "task": choice}
    )
    outcome = rng.choice([-1, 1], len(user))
    return split_rows("choices", seed, frame, outcome, (choice + user) % 5 == 0, "task")


def answers(task: Task) -> set[tuple[object, ...]]:
    train = task.train
    columns = [train.users.labels(train.user), train.items.labels(train.left), train.items.labels(train.right)]
    extra = [train.outcome] if train.task is None else [train.outcome, train.task]
    return set(zip(*(np.asarray(column).tolist() for column in [*columns, *extra]), strict=True))


@pytest.mark.parametrize("load", [in_tasks, lambda seed: utility_planes(4, 12, seed)])
def test_a_smaller_share_is_part_of_a_larger_one(load) -> None:
    whole = load(3)
    before = answers(whole)
    found = [thinned(whole, share) for share in (1.0, 0.5, 0.25)]
    assert answers(found[0]) == before
    for small, large in zip(found[1:], found[:-1], strict=True):
        assert answers(small) < answers(large)
        assert small.test is whole.test
    assert answers(thinned(load(3), 0.25)) == answers(found[-1])


def test_everybody_keeps_the_share_and_choices_stay_whole() -> None:
    whole = in_tasks(1)
    part = thinned(whole, 0.5)
    for user in range(20):
        kept = part.train.users.codes(pl.Series([user]), unknown="minus_one")[0]
        assert kept >= 0
        rows = part.train.user == kept
        # Of eight training choices, three answers each.
        assert len(np.unique(part.train.task[rows])) == 4
        assert part.train.weight[rows].sum() == 12


def test_people_without_answers_are_not_in_the_training() -> None:
    part = thinned(utility_planes(4, 30, 0), 0.005)
    assert 0 < part.train.n_users < 30
    assert len(np.unique(part.train.user)) == part.train.n_users


def test_the_share_is_right_on_average() -> None:
    whole = utility_planes(4, 40, 0)
    assert abs(thinned(whole, 0.3).train.n_answers / whole.train.n_answers - 0.3) < 0.01


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("moon", KeyError, "no task"),
        ("moon@share=10", KeyError, "no task"),
        ("amt-cars@share=90", ValueError, "1 to 80"),
        ("amt-cars@share=ten", ValueError, "PER CENT"),
        ("amt-cars@size=10", ValueError, "PER CENT"),
        ("sushi-b@share=10", ValueError, "amt-cars"),
    ],
)
def test_names_that_mean_nothing(name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        find_loader(name)


def test_names() -> None:
    assert task_name("uk-election-2010", "gaspk-exact", 20) == "uk-election-2010@share=20@select=8"
    assert task_name("uk-election-2010", "population", 20) == "uk-election-2010@share=20"
    assert default_seeds("swissmetro@share=20") == default_seeds("swissmetro")


@pytest.mark.data
def test_the_largest_share_is_the_task_itself() -> None:
    part, whole = find_loader("amt-cars@share=80")(0), find_loader("amt-cars")(0)
    assert part.split_hash == whole.split_hash
    small = find_loader("amt-cars@share=20")(0)
    assert abs(small.train.n_answers / whole.train.n_answers - 0.25) < 0.01
    assert small.test.n_answers / (small.test.n_answers + whole.train.n_answers) == pytest.approx(TEST_SHARE, abs=0.01)


@pytest.mark.slow
def test_a_selection_is_made_once_for_a_split(tmp_path, monkeypatch) -> None:
    task = utility_planes(3, 5, 0)
    path = tmp_path / "chosen" / "selected.json"
    found = selected_attributes(task, 2, path)
    assert found.columns[0] == "item"
    assert len(found.columns) == 3
    (kept,) = selections(path).values()
    assert kept["attributes"] == found.columns[1:]
    assert len(kept["path"]) == 2
    monkeypatch.setattr("predilect.evaluation.select_attributes", None)
    assert selected_attributes(task, 2, path).columns == found.columns


def test_planes_have_all_pairs_and_half_of_the_attributes_are_binary() -> None:
    task = utility_planes(7, 5, 0)
    assert task.train.n_answers + task.test.n_answers == 5 * 105
    x = task.items.drop("item").to_numpy()
    assert x.shape == (15, 7)
    binary = np.isin(x, (0.0, 1.0)).all(axis=0)
    assert binary.tolist() == [True] * 3 + [False] * 4
    own = utility_planes(6, 5, 0, own_instances=True)
    assert own.items.height == 75
    assert own.train.n_answers + own.test.n_answers == 5 * 105


@pytest.mark.slow
def test_gp_classification_of_each_person() -> None:
    task = utility_planes(3, 12, 0)
    fitted = build("gp-person")(task)
    log_proba = fitted.log_proba(task.test)
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1.0, atol=1e-9)
    y = 1 - task.test.outcome
    assert (log_proba.argmax(axis=1) == y).mean() > 0.8
    assert fitted.report()["not_converged"] == 0
    # Left and right swapped is the same question; somebody unknown is a coin.
    stranger = utility_planes(3, 40, 0).test
    unknown = ~np.isin(np.asarray(stranger.users.labels(stranger.user)), np.asarray(task.train.users.ids))
    np.testing.assert_allclose(fitted.log_proba(stranger)[unknown][:, 0], np.log(0.5), atol=1e-12)
