"""Choices that are held out, task by task, and predicted by several models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from predilect import Comparisons, MixedLogit, Population
from predilect.cli.worth import _held_out
from predilect.errors import ConvergenceWarning, DataError
from predilect.evaluation import holdout
from predilect.evaluation.holdout import held_out_tasks
from tolerances import EXACT


def choices(n_users=12, n_tasks=6, n_items=6, seed=0):
    """The best of three of items whose utilities fall with their number."""
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("user", "task", "left", "right", "winner")}
    for user in range(n_users):
        for task in range(n_tasks):
            shown = rng.choice(n_items, 3, replace=False)
            best = shown[np.argmax(-1.0 * shown + rng.normal(0.0, 0.5**0.5, 3))]
            for other in shown[shown != best]:
                for name, value in zip(columns, (f"u{user}", task, f"i{best}", f"i{other}", f"i{best}"), strict=True):
                    columns[name].append(value)
    return Comparisons.from_frame(columns, columns={"task": "task"})


DATA = choices()
ITEMS = {"item": [f"i{i}" for i in range(6)], "price": [float(i) for i in range(6)]}


class Oracle(BaseEstimator):
    """Predicts that the item of the lowest number is chosen with probability ``p``, the others alike."""

    def __init__(self, p=0.6):
        self.p = p

    def fit(self, answers, **_):
        self.seen_ = answers
        return self

    def predict_choice(self, X):
        number = X["item"].str.slice(1).cast(int).to_numpy()
        low = np.array([number[X["task"].to_numpy() == task].min() for task in X["task"]])
        return np.where(number == low, self.p, (1 - self.p) / 2)


@pytest.mark.parametrize("n_tasks", [1, 2, 9])
def test_whole_tasks_of_each_person_are_held_out(n_tasks):
    mask = held_out_tasks(DATA, n_tasks)
    for user in range(12):
        mine = DATA.user == user
        out, kept = set(DATA.task[mine & mask].tolist()), set(DATA.task[mine & ~mask].tolist())
        assert len(out) == min(n_tasks, 5)
        assert not out & kept


def test_nobody_with_two_tasks_is_said():
    one = Comparisons.from_frame({"user": ["a", "b"], "left": ["x", "x"], "right": ["y", "z"], "winner": ["x", "z"]})
    with pytest.raises(DataError, match="nobody has two tasks"):
        held_out_tasks(one, 1)
    with pytest.raises(DataError, match="at least 1 task"):
        held_out_tasks(DATA, 0)


def test_the_measures_are_those_of_the_held_out_choices():
    mask = held_out_tasks(DATA, 2)
    test = DATA.take(mask)
    table = holdout({"oracle": Oracle()}, DATA, n_tasks=2)
    assert table.columns == ["model", "people", "choices", "hit_rate", "log_loss", "share_error", "difference",
                             "lower", "upper", "converged"]  # fmt: skip
    assert table["model"].to_list() == ["oracle", "guessing"]
    assert table["converged"].to_list() == [None, None]
    assert table["choices"].to_list() == [24.0, 24.0]
    hits, losses, offered, chosen, predicted = [], [], {}, {}, {}
    for task in np.unique(test.task):
        rows = np.flatnonzero(test.task == task)
        shown = sorted({*test.left[rows], *test.right[rows]})
        best = {int(np.where(test.outcome[r] > 0, test.left[r], test.right[r])) for r in rows}.pop()
        p = {item: 0.6 if item == shown[0] else 0.2 for item in shown}
        hits.append(best == shown[0])
        losses.append(-math.log(p[best]))
        for item in shown:
            offered[item] = offered.get(item, 0) + 1
            predicted[item] = predicted.get(item, 0.0) + p[item]
        chosen[best] = chosen.get(best, 0) + 1
    first = table.row(0, named=True)
    assert abs(first["hit_rate"] - np.mean(hits)) < EXACT
    assert abs(first["log_loss"] - np.mean(losses)) < EXACT
    assert first["difference"] == 0.0
    guess = table.row(1, named=True)
    assert abs(guess["log_loss"] - math.log(3.0)) < EXACT
    assert abs(guess["hit_rate"] - 1 / 3) < EXACT
    assert abs(guess["difference"] - (math.log(3.0) - np.mean(losses))) < EXACT
    often = [item for item in offered if offered[item] >= 20]
    told = first["share_error"]
    if often:
        whole = sum(abs(predicted[i] - chosen.get(i, 0)) for i in often) / sum(offered[i] for i in often)
        assert abs(told - whole) < EXACT
    else:
        assert told is None


def test_errors_of_shares_are_of_items_that_are_offered_often():
    data = choices(n_users=40, n_tasks=6)
    table = holdout({"sure": Oracle(1.0 - 1e-9), "half": Oracle(0.8)}, data, n_tasks=3)
    error = dict(table.select("model", "share_error").iter_rows())
    assert 0.0 < error["half"] < error["guessing"]


def test_a_test_set_of_ones_own_is_predicted_by_what_is_left():
    mask = held_out_tasks(DATA, 3, random_state=5)
    own = holdout({"oracle": Oracle()}, DATA.take(~mask), DATA.take(mask))
    assert own.equals(holdout({"oracle": Oracle()}, DATA, n_tasks=3, random_state=5))


@pytest.mark.slow
def test_both_models_of_choices_beat_guessing():
    models = {
        "population": Population(basis="attributes", variance=0.5, strength=20.0, calibration=None, n_jobs=1),
        "mixed-logit": MixedLogit(n_draws=100, tol=1.0001, n_jobs=1),
    }
    with pytest.warns(ConvergenceWarning):
        table = holdout(models, DATA, items=ITEMS, n_tasks=2)
    assert table["model"].to_list() == ["population", "mixed-logit", "guessing"]
    assert table["converged"].to_list() == [True, False, None]
    assert "mixed-logit to the other tasks did not converge" in _held_out(table)[-1]
    assert (table["log_loss"][:2] < table["log_loss"][2] - 0.3).all()
    assert table["upper"][2] > table["difference"][2] > table["lower"][2] > 0.0
