"""Variances of pairs against their definition, whichever way they are made."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.gaussian import design as pairs
from predilect.inference.gaussian.design import pair_variance, squared_differences
from tolerances import EXACT

N_ITEMS, M = 9, 4
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((N_ITEMS, M))
ROOT = RNG.standard_normal((M, M))
S = ROOT @ ROOT.T


def some(n, seed=1):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, N_ITEMS, n)
    return left, (left + rng.integers(1, N_ITEMS, n)) % N_ITEMS


def dense(K, left, right):
    D = np.eye(len(K))[left] - np.eye(len(K))[right]
    return np.diag(D @ K @ D.T)


@pytest.mark.parametrize("n", [3, N_ITEMS + 1, 200])  # by pairs, by items, or with the covariance of the items
@pytest.mark.parametrize("dense_items", [0, 2000])
def test_variances_are_those_of_dense_algebra(n, dense_items, monkeypatch):
    monkeypatch.setattr(pairs, "_DENSE_ITEMS", dense_items)
    monkeypatch.setattr(pairs, "_ROWS_AT_ONCE", 7)
    left, right = some(n)
    K = ROWS @ S @ ROWS.T
    np.testing.assert_allclose(pair_variance(K, left, right), dense(K, left, right), atol=EXACT)
    np.testing.assert_allclose(pair_variance(S, left, right, ROWS), dense(K, left, right), atol=EXACT)


def test_squared_differences_are_those_of_a_root(monkeypatch):
    left, right = some(50)
    for in_cache in (1, 2**16):
        monkeypatch.setattr(pairs, "_IN_CACHE", in_cache)
        np.testing.assert_allclose(
            squared_differences(ROWS, left, right), dense(ROWS @ ROWS.T, left, right), atol=EXACT
        )
    np.testing.assert_array_equal(squared_differences(np.zeros((N_ITEMS, 0)), left, right), 0.0)


def test_an_item_against_itself_never_varies():
    same = np.arange(N_ITEMS)
    np.testing.assert_array_equal(pair_variance(ROWS @ S @ ROWS.T, same, same), 0.0)
    np.testing.assert_array_equal(pair_variance(S, same, same, ROWS), 0.0)
    np.testing.assert_array_equal(squared_differences(ROWS, same, same), 0.0)
    assert pair_variance(np.full((3, 3), 0.1), np.array([0]), np.array([2]))[0] >= 0.0
