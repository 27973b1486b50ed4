"""Margins by rows and by items against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.pooled import laplacian
from predilect.inference.sparse import margins
from predilect.inference.sparse.margins import (
    ItemMargins,
    RowMargins,
    margins_of,
    sparse_laplacian,
)
from tolerances import EXACT


def pairs(n_items, n, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n)
    return left, (left + rng.integers(1, n_items, n)) % n_items


@pytest.mark.parametrize(("n_items", "n"), [(300, 40), (8, 500), (400, 300)])
def test_rows_and_items_are_the_same_sums(n_items, n):
    rng = np.random.default_rng(1)
    B, (left, right) = rng.normal(size=(n_items, 5)), pairs(n_items, n)
    X = B[left] - B[right]
    weight, values, u = rng.random(n), rng.normal(size=n), rng.normal(size=5)
    Lambda = np.eye(5) + X.T @ X
    lower = np.linalg.cholesky(Lambda)
    for way in (RowMargins(X), ItemMargins(B, left, right), margins_of(B, left, right)):
        np.testing.assert_allclose(way.mean(u), X @ u, atol=EXACT)
        variance = np.einsum("pi,ij,pj->p", X, np.linalg.inv(Lambda), X)
        np.testing.assert_allclose(way.variance(lower), variance, atol=EXACT)
        np.testing.assert_allclose(way.information(weight), X.T @ (weight[:, None] * X), rtol=1e-12, atol=EXACT)
        np.testing.assert_allclose(way.gather(values), values @ X, atol=EXACT)


def test_each_way_is_taken_where_it_costs_less(monkeypatch):
    B = np.ones((1000, 50))
    assert isinstance(margins_of(B, *pairs(1000, 100)), RowMargins)
    many = margins_of(B, *pairs(30, 50_000))
    assert isinstance(many, ItemMargins)
    assert len(many.B) <= 30  # only items that occur
    assert margins_of(B, *pairs(1000, 50_000)).B is B
    monkeypatch.setattr(margins, "_MOST_ELEMENTS", 10)
    assert isinstance(margins_of(B, *pairs(1000, 100)), ItemMargins)


def test_the_sparse_laplacian_is_the_dense_one():
    left, right = pairs(9, 30)
    weight = np.random.default_rng(2).random(30)
    sparse = sparse_laplacian(9, left, right, weight)
    np.testing.assert_allclose(sparse.toarray(), laplacian(9, left, right, weight), atol=EXACT)
