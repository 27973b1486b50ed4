"""Margins by rows and by items against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.latent.pooled import laplacian
from predilect.inference.latent.sparse import problem as margins
from predilect.inference.latent.sparse.problem import (
    ItemMargins,
    RowMargins,
    _margins_of,
    graph_laplacian,
    natural_parameters,
    sparse_laplacian,
)
from tolerances import EXACT


def pairs(n_items, n, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n)
    return left, (left + rng.integers(1, n_items, n)) % n_items


@pytest.mark.parametrize(("n_items", "n", "M"), [(300, 40, 5), (8, 500, 5), (400, 300, 5), (20, 500, 20)])
def test_rows_and_items_are_the_same_sums(n_items, n, M):
    rng = np.random.default_rng(1)
    B, (left, right) = rng.normal(size=(n_items, M)), pairs(n_items, n)
    X = B[left] - B[right]
    weight, values, u = rng.random(n), rng.normal(size=n), rng.normal(size=M)
    Lambda = np.eye(M) + X.T @ X
    lower = np.linalg.cholesky(Lambda)
    for way in (RowMargins(X), ItemMargins(B, left, right), _margins_of(B, left, right)):
        np.testing.assert_allclose(way.mean(u), X @ u, atol=EXACT)
        variance = np.einsum("pi,ij,pj->p", X, np.linalg.inv(Lambda), X)
        np.testing.assert_allclose(way.variance(lower), variance, atol=EXACT)
        np.testing.assert_allclose(way.information(weight), X.T @ (weight[:, None] * X), rtol=1e-12, atol=EXACT)
        np.testing.assert_allclose(way.gather(values), values @ X, atol=EXACT)
        precision, linear = natural_parameters(way, weight, values, 0.7)
        np.testing.assert_allclose(precision, 0.7 * np.eye(M) + way.information(weight), atol=EXACT)
        np.testing.assert_array_equal(linear, way.gather(values))


def test_each_way_is_taken_where_it_costs_less(monkeypatch):
    B = np.ones((1000, 50))
    assert isinstance(_margins_of(B, *pairs(1000, 100)), RowMargins)
    many = _margins_of(B, *pairs(30, 50_000))
    assert isinstance(many, ItemMargins)
    assert len(many.B) <= 30  # only items that occur
    assert _margins_of(B, *pairs(1000, 50_000)).B is B
    monkeypatch.setattr(margins, "_MOST_ELEMENTS", 10)
    assert isinstance(_margins_of(B, *pairs(1000, 100)), ItemMargins)


def test_the_sparse_laplacian_is_the_dense_one():
    left, right = pairs(9, 30)
    weight = np.random.default_rng(2).random(30)
    sparse = sparse_laplacian(9, left, right, weight)
    np.testing.assert_allclose(sparse.toarray(), laplacian(9, left, right, weight), atol=EXACT)
    assert isinstance(graph_laplacian(9, left, right, weight), np.ndarray)
    far = graph_laplacian(900, left, right, weight)
    np.testing.assert_allclose(far[:9, :9].toarray(), laplacian(9, left, right, weight), atol=EXACT)
