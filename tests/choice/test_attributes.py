"""Greedy forward selection of attributes: planted ones are found, noise is not, and the path's numbers are right."""

from __future__ import annotations

import doctest
import json
import sys

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from predilect.data import Comparisons, ItemFeatures, k_folds_answers
from predilect.data.content import keys_of_answers
from predilect.errors import DataError
from predilect.evaluation import accuracy, log_loss, paired_difference, select_attributes
from simulate import answers as simulated
from simulate import comparisons, random_pairs
from tolerances import EXACT

N_ITEMS = 30


class LeastSquares:
    """A probit of differences of attributes with fixed, not so small, shrinkage: quick, and no model of predilect."""

    def __init__(self, attributes: list[str]) -> None:
        self.attributes = attributes

    def fit(self, answers: Comparisons, items: ItemFeatures) -> LeastSquares:
        self.columns = [k for k, output in enumerate(items.outputs) if output.source in self.attributes]
        self.matrix, _ = items.align(answers.items)
        x = self._differences(answers)
        if not np.abs(x).max() > 0:
            raise DataError(f"no difference in {', '.join(self.attributes)}.")
        self.weights = np.linalg.solve(x.T @ x + 5.0 * np.eye(x.shape[1]), x.T @ answers.outcome)
        return self

    def predict_log_proba(self, answers: Comparisons) -> np.ndarray:
        p = ndtr(self._differences(answers) @ self.weights)
        return np.log(np.column_stack([p, np.full(len(p), 1e-300), 1.0 - p]))

    def _differences(self, answers: Comparisons) -> np.ndarray:
        return (self.matrix[answers.left] - self.matrix[answers.right])[:, self.columns]


def planted(seed: int, n_users: int = 60, per_person: int = 15) -> tuple[Comparisons, ItemFeatures]:
    """ "price" matters most, then "size"; "a" to "d" are noise, and "copy" is price with noise."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N_ITEMS, 6))
    user = np.repeat(np.arange(n_users), per_person)
    left, right = random_pairs(rng, len(user), N_ITEMS)
    utility = 1.5 * x[:, 0] + 0.8 * x[:, 1]
    outcome = np.where(rng.random(len(user)) < ndtr(utility[left] - utility[right]), 1, -1)
    frame = pl.DataFrame(
        {"item": np.arange(N_ITEMS), "a": x[:, 2], "size": x[:, 1], "b": x[:, 3], "price": x[:, 0], "c": x[:, 4],
         "copy": x[:, 0] + 2.0 * x[:, 5]}
    )  # fmt: skip
    data = comparisons(simulated(user, left, right, outcome, n_items=N_ITEMS, n_users=n_users))
    return data, ItemFeatures.from_frame(frame)


@pytest.mark.parametrize("seed", range(3))
def test_planted_attributes_are_found_and_noise_is_not(seed: int) -> None:
    found = select_attributes(LeastSquares, *planted(seed))
    assert found.attributes == ("price", "size")
    assert found.path[1].accuracy > found.path[0].accuracy
    assert not found.left_out
    assert json.loads(json.dumps(found.to_dict()))["attributes"] == ["price", "size"]


def test_frames_are_read_as_fit_reads_them() -> None:
    data, items = planted(1)
    names = items.sources
    matrix, known = items.align(data.items)
    assert known.all()
    frame = pl.DataFrame({"item": data.items.ids} | {name: matrix[:, k] for k, name in enumerate(names)})
    found = select_attributes(LeastSquares, data.to_frame(), frame, n_attributes=2)
    expected = select_attributes(LeastSquares, data, items, n_attributes=2)
    assert found.attributes == expected.attributes
    for one, other in zip(found.path, expected.path, strict=True):
        assert abs(one.log_loss - other.log_loss) < EXACT


def test_the_example_of_the_docstring() -> None:
    found = doctest.testmod(sys.modules[select_attributes.__module__])
    assert found.attempted > 0
    assert found.failed == 0


def test_by_log_loss_too() -> None:
    found = select_attributes(LeastSquares, *planted(0), criterion="log_loss")
    assert found.attributes == ("price", "size")
    assert found.path[1].log_loss < found.path[0].log_loss


def test_the_scores_are_those_of_fits_to_the_rest_of_the_answers() -> None:
    data, items = planted(1)
    found = select_attributes(LeastSquares, data, items, n_attributes=2, random_state=7)
    fold = k_folds_answers(data, 5, random_state=7, keys=keys_of_answers(data))
    log_proba = np.empty((data.n_rows, 3))
    for k in range(5):
        model = LeastSquares(["price", "size"]).fit(data.take(fold != k), items)
        log_proba[fold == k] = model.predict_log_proba(data.take(fold == k))
    last = found.path[-1]
    assert found.n_held_out == data.n_answers
    assert abs(last.accuracy - accuracy(data.outcome, log_proba, data.weight)) < EXACT
    assert abs(last.log_loss - log_loss(data.outcome, log_proba, data.weight)) < EXACT
    right = (log_proba.argmax(axis=1) == 1 - data.outcome).astype(float)
    alone = paired_difference(right, np.zeros(len(right)), data.user, weight=data.weight)
    assert abs(last.accuracy_error - alone.standard_error) < EXACT


def test_each_step_takes_the_best_that_is_left() -> None:
    data, items = planted(2)
    found = select_attributes(LeastSquares, data, items, n_attributes=3)
    taken = [step.attribute for step in found.path]
    for k in range(3):
        others = [name for name in items.sources if name not in taken[:k]]
        best = [
            select_attributes(LeastSquares, data, items, candidates=[*taken[:k], name], n_attributes=k + 1).path
            for name in others
        ]
        assert max(path[-1].accuracy for path in best) <= found.path[k].accuracy + EXACT


def test_as_many_as_asked_for() -> None:
    data, items = planted(0)
    found = select_attributes(LeastSquares, data, items, n_attributes=4)
    assert len(found.attributes) == len(found.path) == 4
    assert found.attributes[:2] == ("price", "size")
    assert found.n_fits == 5 * (6 + 5 + 4 + 3)


def test_many_answers_need_fewer_folds() -> None:
    data, items = planted(0, n_users=300)
    found = select_attributes(LeastSquares, data, items, n_attributes=1)
    assert 1000 <= found.n_held_out < 2000
    assert found.n_fits == 2 * 6


def test_an_attribute_that_cannot_be_used_is_left_out_with_the_reason() -> None:
    data, _ = planted(0)
    rng = np.random.default_rng(0)
    # Only an item that nobody was asked about differs from the others.
    lonely = np.append(np.zeros(N_ITEMS), 1.0)
    items = ItemFeatures.from_frame(
        pl.DataFrame({"item": np.arange(N_ITEMS + 1), "x": rng.standard_normal(N_ITEMS + 1), "lonely": lonely})
    )
    found = select_attributes(LeastSquares, data, items)
    assert found.attributes == ("x",)
    assert list(found.left_out) == ["lonely"]
    assert "no difference" in found.left_out["lonely"]
    with pytest.raises(DataError, match="no model could be fitted"):
        select_attributes(LeastSquares, data, items, candidates=["lonely"])


def test_the_order_of_columns_and_rows_does_not_matter() -> None:
    data, items = planted(1)
    found = select_attributes(LeastSquares, data, items, n_attributes=3)
    other = select_attributes(LeastSquares, data, items, n_attributes=3, candidates=items.sources[::-1])
    assert found.attributes == other.attributes


def test_progress_is_told_and_ends_at_everything() -> None:
    told: list[tuple[str, int]] = []
    data, items = planted(0, n_users=20)
    select_attributes(LeastSquares, data, items, n_attributes=2, watch=lambda *parts: told.append(parts))
    done = [share for _, share in told]
    assert done == sorted(done)
    assert done[-1] == 100
    assert "2 of at most 2" in told[-1][0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": ["weight"]}, "called weight"),
        ({"candidates": []}, "none given"),
        ({"candidates": ["a", "a"]}, "twice"),
        ({"n_attributes": 0}, "between 1 and 6"),
        ({"n_attributes": 7}, "between 1 and 6"),
        ({"criterion": "r2"}, "criterion"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], words: str) -> None:
    data, items = planted(0)
    with pytest.raises(DataError, match=words):
        select_attributes(LeastSquares, data, items, **settings)


def test_one_answer_a_person_cannot_be_held_out() -> None:
    data, items = planted(0, n_users=200, per_person=1)
    with pytest.raises(DataError, match="held out"):
        select_attributes(LeastSquares, data, items)
