from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.folding import CLOSE, distinct_points, merge_close

# Tenths carry rounding errors: 0.1 + 0.2 is not 0.3.
ROWS = arrays(
    np.float64,
    st.tuples(st.integers(1, 25), st.integers(1, 4)),
    elements=st.builds(lambda a, b: 0.1 * a - 0.1 * b, st.integers(-4, 4), st.integers(-4, 4)),
)


def fold(t):
    """Each row's point, and its sign."""
    found = distinct_points(t)
    return found.points[found.code], found.sign


@given(ROWS)
def test_folding(t):
    points, sign = fold(t)
    np.testing.assert_allclose(sign[:, None] * points, t, atol=CLOSE)
    again, nothing = fold(points)
    assert again.tobytes() == points.tobytes()
    assert (nothing == 1).all()
    first = [row[row != 0][0] if row.any() else 1.0 for row in points]
    assert (np.array(first) > 0).all()
    # Left and right exchanged: the same point, the other sign.
    swapped, other = fold(-t)
    assert swapped.tobytes() == points.tobytes()
    assert (other == np.where(points.any(axis=1), -sign, 1)).all()
    assert not np.signbit(points[points == 0]).any()


@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_distinct_points(t, antisymmetric, random):
    points, code, sign = distinct_points(t, antisymmetric)
    np.testing.assert_allclose(sign[:, None] * points[code], t, atol=CLOSE)
    # In whole tenths there is no rounding: the referee.
    whole = [tuple(row) for row in np.round(10 * t).astype(int).tolist()]
    if antisymmetric:
        whole = [max(row, tuple(-v for v in row)) for row in whole]
    else:
        assert (sign == 1).all()
    assert np.round(10 * points).astype(int).tolist() == [list(row) for row in sorted(set(whole))]
    # Neither the order of rows nor, when folded, the sides matter.
    order = list(range(len(t)))
    random.shuffle(order)
    turn = np.array([random.choice([-1, 1]) if antisymmetric else 1 for _ in order])
    other = distinct_points(turn[:, None] * t[order], antisymmetric)
    assert other.points.tobytes() == points.tobytes()
    assert (other.code == code[order]).all()


def test_values_that_differ_by_rounding_are_one_wherever_they_fall():
    values = np.array([[0.1 + 0.2], [0.3], [-0.3], [-0.0], [0.1 + 0.2 - 0.3]])
    assert merge_close(values).ravel().tolist() == [0.3, 0.3, -0.3, 0.0, 0.0]
    # Differences of standardised prices: rounded to 12 digits some equal ones would stay two.
    cut_apart = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        cents = rng.integers(0, 400, size=50)
        price = 0.05 * cents + rng.integers(1, 100)
        x = (price - price.mean()) / price.std()
        left, right = np.triu_indices(50, 1)
        t = np.abs(x[left] - x[right])
        n_different = len(np.unique(np.abs(cents[left] - cents[right])))
        cut_apart += len({f"{value:.11e}" for value in t}) > n_different
        assert len(np.unique(merge_close(t[:, None]))) == n_different
    assert cut_apart > 0


def test_many_dimensions_and_different_rows():
    # More combinations of values than an int64 can count.
    rng = np.random.default_rng(0)
    some = rng.integers(-5, 6, size=(40, 60)).astype(float)
    which = rng.integers(0, 40, size=500)
    turn = rng.choice([-1, 1], size=500)
    points, code, sign = distinct_points(turn[:, None] * some[which])
    assert len(points) == len(np.unique(which))
    np.testing.assert_array_equal(sign[:, None] * points[code], turn[:, None] * some[which])
    assert (np.lexsort(points.T[::-1]) == np.arange(len(points))).all()


def test_nothing_and_bad_input():
    points, code, sign = distinct_points(np.zeros((0, 3)))
    assert points.shape == (0, 3)
    assert len(code) == len(sign) == 0
    with pytest.raises(DataError, match=r"1 of 2 trade-offs are not finite \(first: row 1, dimension 0, nan"):
        distinct_points([[1.0, 2.0], [np.nan, 0.0]])
    with pytest.raises(DataError, match="shape"):
        distinct_points(np.zeros(3))
