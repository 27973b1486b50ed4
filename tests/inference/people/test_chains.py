"""How pairs stand to what people answered, against a closure of everybody's answers by matrix powers."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.people.layout import lay_out
from predilect.inference.people.queries import IMPLIED, kinds_in
from simulate import answers, comparisons, crowd


def expected_kind(rows, user, left, right, n_items) -> int:
    own = rows.user == user
    seen = set(np.r_[rows.left[own], rows.right[own]].tolist())
    unseen = (left not in seen) + (right not in seen)
    if unseen:
        return unseen
    step, strict = np.zeros((2, n_items, n_items), dtype=bool)
    for a, b, y in zip(rows.left[own], rows.right[own], rows.outcome[own], strict=True):
        step[a, b] |= y >= 0
        step[b, a] |= y <= 0
        strict[a, b] |= y > 0
        strict[b, a] |= y < 0
    reach = np.linalg.matrix_power(np.eye(n_items) + step, n_items) > 0.5
    if reach[left, right] != reach[right, left]:
        return IMPLIED
    both = np.flatnonzero(reach[left] & reach[:, left])
    return IMPLIED if right in both and not strict[np.ix_(both, both)].any() else 0


@pytest.mark.parametrize(("per_person", "delta"), [(3, 0.0), (6, 0.4), (15, 0.3), (40, 0.0)])
def test_every_pair_of_everybody(per_person, delta):
    rows = crowd(7, 15, 9, per_person, delta=delta)
    data = comparisons(rows)
    people = lay_out(data)
    rng = np.random.default_rng(0)
    left, right = np.nonzero(~np.eye(9, dtype=bool))
    users, left, right = np.repeat(np.arange(15), len(left)), np.tile(left, 15), np.tile(right, 15)
    order = rng.permutation(len(users))
    found = np.empty(len(users), dtype=np.int8)
    found[order] = kinds_in(people, users[order], left[order], right[order])
    expected = [expected_kind(data, *asked, 9) for asked in zip(users, left, right, strict=True)]
    np.testing.assert_array_equal(found, expected)
    assert len(set(expected)) > 1


def test_those_without_answers_and_items_that_are_new():
    people = lay_out(comparisons(crowd(1, 4, 5, 6)))
    users, left, right = np.array([-1, 0, 3, -1]), np.array([0, 5, 6, 7]), np.array([1, 6, 5, 8])
    np.testing.assert_array_equal(kinds_in(people, users, left, right), [2, 2, 2, 2])
    nothing = np.zeros(0, dtype=np.int64)
    assert len(kinds_in(people, nothing, nothing, nothing)) == 0


def test_a_contradiction_implies_nothing_and_a_tie_is_level():
    # 0 over 1 over 2 over 0; 3 level with 4, which is over 5; 6 level with 7, which is level with 8.
    sides = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [6, 7], [7, 8]]).T
    rows = answers(np.zeros(7), *sides, [1, 1, -1, 0, 1, 0, 0], n_items=9)
    people = lay_out(comparisons(rows))
    asked = np.array([[0, 1], [0, 2], [3, 5], [4, 5], [5, 4], [0, 4], [3, 4], [6, 8], [6, 4]]).T
    found = kinds_in(people, np.zeros(9, dtype=np.int64), *asked)
    np.testing.assert_array_equal(found, [0, 0, 3, 3, 3, 0, 3, 3, 0])
    # That 0 is over 2 is not what the ties of 0 and 1, and of 1 and 2, say: then none of the three is implied.
    sides = np.array([[0, 1], [1, 2], [0, 2]]).T
    people = lay_out(comparisons(answers(np.zeros(3), *sides, [0, 0, 1], n_items=3)))
    np.testing.assert_array_equal(kinds_in(people, np.zeros(3, dtype=np.int64), *sides), [0, 0, 0])
