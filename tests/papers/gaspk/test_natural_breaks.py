from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from predilect.papers.gaspk.tradeoffs import natural_breaks as module
from predilect.papers.gaspk.tradeoffs.natural_breaks import breaks_up_to
from tolerances import EXACT


def natural_breaks(*args, **options):
    """With as many levels as are asked for."""
    return breaks_up_to(*args, **options)[-1]


def squares_of(x, w, about=None):
    if about is None:
        about = x[0] + w @ (x - x[0]) / w.sum()
    return w @ (x - about) ** 2


def least_squares(x, w, n_levels, zero_is_level=False):
    """Referee: all partitions of the sorted values into classes that are not empty."""
    best = np.inf
    for cuts in combinations(range(1, len(x)), n_levels - 1):
        parts = list(pairwise((0, *cuts, len(x))))
        about = [0.0 if zero_is_level and not a else None for a, _ in parts]
        best = min(best, sum(squares_of(x[a:b], w[a:b], c) for (a, b), c in zip(parts, about, strict=True)))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("decades", [0, 12])
def test_no_partition_is_better(decades):
    rng = np.random.default_rng(decades)
    for _ in range(12):
        # Far outliers beside small differences: sums of squares must not be differences of large sums.
        x = np.unique(np.round(rng.normal(size=rng.integers(2, 7)) * 10.0 ** rng.integers(0, decades + 1), 3) + 0.0)
        x = np.unique(np.append(x, [0.001, 0.002, 0.004, 10.0**decades]))
        w = rng.integers(1, 6, size=len(x)).astype(float)
        for n_levels in range(1, len(x)):
            found = natural_breaks(x, n_levels, w)
            assert found.within == pytest.approx(least_squares(x, w, n_levels), rel=EXACT)
            assert len(found.levels) == n_levels


def test_no_partition_with_zero_is_better():
    rng = np.random.default_rng(0)
    for _ in range(25):
        x = np.unique(np.round(rng.gamma(1.0, size=rng.integers(1, 9)), 2) + 0.01)
        w = rng.integers(1, 6, size=len(x)).astype(float)
        for n_levels in range(1, len(x) + 1):
            found = natural_breaks(x, n_levels, w, zero_is_level=True)
            expected = least_squares(np.append(0.0, x), np.append(0.0, w), n_levels, zero_is_level=True)
            assert found.within == pytest.approx(expected, rel=EXACT, abs=1e-15)
            assert found.levels[0] == 0.0


def test_zero_and_mirror_is_the_best_symmetric_partition_of_the_values_and_their_negatives():
    x = np.random.default_rng(1).gamma(1.0, size=300)
    half = natural_breaks(x, 4, zero_is_level=True)
    both = natural_breaks(np.append(-x, x), 7)
    # The best partition of all into an odd number of classes happens to be symmetric for this sample.
    np.testing.assert_allclose(both.levels[3:], half.levels, atol=EXACT)
    assert both.within == pytest.approx(2 * half.within, rel=EXACT)


def test_k_means_is_never_better():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=200), rng.exponential(5.0, size=200), rng.integers(0, 9, size=100)])
    w = rng.exponential(size=500)
    for n_levels in (2, 5, 25):
        other = KMeans(n_levels, n_init=2, random_state=0).fit(x[:, None], sample_weight=w)
        found = natural_breaks(x, n_levels, w)
        assert found.within <= other.inertia_ * (1 + EXACT)
        assert found.within > 0.5 * other.inertia_  # and it measures the same


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    st.integers(1, 12),
    st.floats(-100, 100),
    st.floats(0.01, 100),
)
def test_invariants(values, n_levels, shift, factor):
    x = np.array(values, dtype=float)
    found = natural_breaks(x, n_levels)
    assert len(found.levels) == min(n_levels, len(np.unique(x))) == len(found.edges) + 1
    assert (np.diff(found.levels) > 0).all()
    # Levels are the means of the values nearest to them, and edges lie between the classes.
    place = np.searchsorted(found.edges, x)
    nearest = np.abs(x[:, None] - found.levels).min(axis=1)
    np.testing.assert_allclose(np.abs(x - found.levels[place]), nearest, atol=1e-12)
    for k, level in enumerate(found.levels):
        assert x[place == k].mean() == pytest.approx(level, abs=1e-12)
    assert found.within == pytest.approx((nearest**2).sum(), abs=1e-9)
    assert found.total == pytest.approx(len(x) * x.var(), abs=1e-9)
    # Repeating a value is a weight, and units do not matter.
    distinct, count = np.unique(x, return_counts=True)
    assert natural_breaks(distinct, n_levels, count).levels.tobytes() == found.levels.tobytes()
    moved = natural_breaks(shift + factor * x, n_levels)
    assert moved.within == pytest.approx(factor**2 * found.within, rel=1e-9, abs=1e-9)


def test_fewer_values_than_levels_are_the_levels():
    found = natural_breaks([0.3, 0.1, 0.3, -0.0], 7)
    assert found.levels.tolist() == [0.0, 0.1, 0.3]
    assert (found.within, found.share_lost) == (0.0, 0.0)
    assert natural_breaks([0.1, 0.3], 7, zero_is_level=True).levels.tolist() == [0.0, 0.1, 0.3]
    assert natural_breaks([2.0, 2.0], 3).share_lost == 0.0
    assert natural_breaks([1.0, 5.0, 9.0], 3, [1, 0, 2]).levels.tolist() == [1.0, 9.0]


def test_all_numbers_of_levels_at_once():
    x = np.random.default_rng(3).normal(size=80)
    together = breaks_up_to(x, 9)
    for n_levels, found in enumerate(together, start=1):
        alone = natural_breaks(x, n_levels)
        assert found.levels.tobytes() == alone.levels.tobytes()
        assert found.within == alone.within
    assert together[0].share_lost == pytest.approx(1.0)
    assert (np.diff([found.within for found in together]) < 0).all()


def test_many_values_are_merged_first_and_outliers_stay_apart(monkeypatch):
    x = np.append(np.random.default_rng(5).normal(size=3000), [1e6, 1e6 + 1])
    exact = natural_breaks(x, 6)
    whole = natural_breaks(np.abs(x), 6, zero_is_level=True)
    monkeypatch.setattr(module, "MOST_DISTINCT", 600)
    binned = natural_breaks(x, 6)
    assert exact.within < binned.within < 1.02 * exact.within
    assert binned.levels[-1] == exact.levels[-1] == 1e6 + 0.5
    # The squares are those of the values, not of the bins.
    nearest = np.abs(x[:, None] - binned.levels).min(axis=1)
    assert binned.within == pytest.approx((nearest**2).sum(), rel=1e-3)
    pinned = natural_breaks(np.abs(x), 6, zero_is_level=True)
    assert pinned.within > whole.within
    assert pinned.levels[0] == 0.0
