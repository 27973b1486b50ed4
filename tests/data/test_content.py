"""Random draws follow what was answered, and no name."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import Comparisons, Population
from predilect.data import k_folds_answers
from predilect.data.content import dealt, keys_of_answers, summed
from predilect.data.features import FeatureSpace
from predilect.data.splits import some_people

N_ITEMS, N_USERS = 8, 30


def answers(n=400, seed=0):
    rng = np.random.default_rng(seed)
    user, left = rng.integers(N_USERS, size=n), rng.integers(N_ITEMS, size=n)
    right = (left + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS
    taste = rng.standard_normal((N_USERS, N_ITEMS)) + np.linspace(-1.0, 1.0, N_ITEMS)
    z = taste[user, left] - taste[user, right] + rng.standard_normal(n)
    return user, left, right, np.where(np.abs(z) < 0.2, 0, np.sign(z)).astype(int)


def named(columns, people, items):
    user, left, right, outcome = columns
    return {
        "user": [f"p{people[k]:02d}" for k in user], "left": [f"i{items[k]}" for k in left],
        "right": [f"i{items[k]}" for k in right], "outcome": outcome.tolist(),
    }  # fmt: skip


@pytest.fixture
def pair():
    """The same answers under two sets of names, and the new number of each person and item."""
    rng = np.random.default_rng(1)
    people, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    columns = answers()
    plain = Comparisons.from_frame(named(columns, np.arange(N_USERS), np.arange(N_ITEMS)), reading={"positive": "left"})
    return plain, Comparisons.from_frame(named(columns, people, items), reading={"positive": "left"}), people, items


def place(rows: Comparisons, people, items):
    """(person, pair, outcome) of each row in the names of the first set, so that rows can be put side by side."""
    user, left, right = np.argsort(people)[rows.user], np.argsort(items)[rows.left], np.argsort(items)[rows.right]
    sign = np.where(left < right, rows.outcome, -rows.outcome)
    return np.lexsort((sign, np.maximum(left, right), np.minimum(left, right), user))


def test_names_change_no_key_and_no_fold(pair):
    plain, other, people, items = pair
    same = place(other, people, items)
    np.testing.assert_array_equal(keys_of_answers(other)[same], keys_of_answers(plain))
    assert len(set(keys_of_answers(plain).tolist())) == plain.n_rows  # so that nothing is left to the order of codes
    folds = k_folds_answers(plain, keys=keys_of_answers(plain))
    np.testing.assert_array_equal(k_folds_answers(other, keys=keys_of_answers(other))[same], folds)
    some, of_others = (
        some_people(rows, np.random.default_rng(3), 10, keys=keys_of_answers(rows))[1] for rows in (plain, other)
    )
    assert sorted(people[some]) == sorted(of_others)


def test_features_tell_items_apart_that_answers_do_not_in_any_order_of_columns():
    # Nobody saw an item twice, so that all answers look alike.
    rows = Comparisons.from_frame({
        "user": ["a", "b", "c"], "left": ["i0", "i2", "i4"], "right": ["i1", "i3", "i5"], "winner": ["left"] * 3
    })  # fmt: skip
    assert len(set(keys_of_answers(rows).tolist())) == 1
    matrix = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    space = FeatureSpace(matrix, np.ones(6, dtype=bool))
    found = keys_of_answers(rows, space)
    assert len(set(found.tolist())) == 3
    turned = FeatureSpace(np.ascontiguousarray(matrix[:, ::-1]) * (1.0 + 1e-12), np.ones(6, dtype=bool))
    np.testing.assert_array_equal(keys_of_answers(rows, turned), found)
    unknown = FeatureSpace(matrix, np.zeros(6, dtype=bool))
    assert len(set(keys_of_answers(rows, unknown).tolist())) == 1


def test_values_are_dealt_by_key():
    keys = np.array([5, 1, 3], dtype=np.uint64)
    assert dealt(np.array([0.1, 0.2, 0.3]), keys).tolist() == [0.3, 0.1, 0.2]
    assert summed(np.full(3, 2**63, dtype=np.uint64), np.array([0, 0, 1]), 3).tolist() == [0, 2**63, 0]


@pytest.mark.slow
def test_names_change_no_prediction_of_the_defaults(pair):
    plain, other, people, items = pair
    model, renamed = Population(n_jobs=1).fit(plain), Population(n_jobs=1).fit(other)
    asked = tuple(column[:100] for column in answers(seed=2))
    first, second = named(asked, np.arange(N_USERS), np.arange(N_ITEMS)), named(asked, people, items)
    del first["outcome"], second["outcome"]
    # The search for hyper-parameters ends within its tolerance, from sums in another order.
    np.testing.assert_allclose(renamed.predict_proba(second), model.predict_proba(first), atol=2e-3)
    settings, others = model.hyperparameters_, renamed.hyperparameters_
    assert (settings.strength, settings.consistency_spread) == (others.strength, others.consistency_spread)
