"""The preference kernel."""

from __future__ import annotations

import numpy as np

from predilect.inference.gaussian.design import preference
from predilect.inference.gaussian.kernels import squared_exponential
from tolerances import EXACT

N_ITEMS = 6
RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((N_ITEMS, 2))
K = squared_exponential(FEATURES, FEATURES, 1.0)
LEFT, RIGHT = (np.array(side) for side in zip(*[(i, j) for i in range(N_ITEMS) for j in range(i)], strict=True))


def design(left, right):
    D = np.zeros((len(left), N_ITEMS))
    D[np.arange(len(left)), left] += 1.0
    D[np.arange(len(left)), right] -= 1.0
    return D


def test_it_is_the_covariance_of_differences():
    D = design(LEFT, RIGHT)
    np.testing.assert_allclose(preference(K, LEFT, RIGHT), D @ K @ D.T, atol=1e-14)
    other = design(RIGHT[:4], LEFT[3:7])
    np.testing.assert_allclose(preference(K, LEFT, RIGHT, RIGHT[:4], LEFT[3:7]), D @ K @ other.T, atol=1e-14)
    whole = preference(K, LEFT, RIGHT)
    np.testing.assert_array_equal(whole, whole.T)
    i, j, k, m = 4, 1, 3, 2
    printed = K[i, k] + K[j, m] - K[i, m] - K[j, k]
    one = preference(K, np.array([i]), np.array([j]), np.array([k]), np.array([m]))
    assert abs(one[0, 0] - printed) < 1e-14


def test_an_item_against_itself_never_varies():
    same = np.arange(N_ITEMS)
    np.testing.assert_array_equal(preference(K, same, same, LEFT, RIGHT), 0.0)


def test_its_rank_is_below_the_number_of_items():
    singular = np.linalg.svd(preference(K, LEFT, RIGHT), compute_uv=False)
    assert singular[N_ITEMS - 2] > 1e-6
    assert singular[N_ITEMS - 1] < EXACT


def test_what_is_common_to_both_items_of_a_pair_does_not_count():
    level = RNG.standard_normal(N_ITEMS)
    moved = K + 3.0 + level[:, None] + level[None, :]
    np.testing.assert_allclose(preference(moved, LEFT, RIGHT), preference(K, LEFT, RIGHT), atol=1e-13)
