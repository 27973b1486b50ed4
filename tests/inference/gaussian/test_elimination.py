"""Sparse matrices by elimination: what dense algebra says of the same matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from predilect.inference.gaussian.dense import Factor
from predilect.inference.gaussian.solve import Elimination
from predilect.inference.latent.pooled import laplacian
from simulate import random_pairs
from tolerances import CONVERGED, EXACT


def star(n: int) -> np.ndarray:
    """One item that is compared with all others."""
    return laplacian(n, np.zeros(n - 1, dtype=int), np.arange(1, n), np.linspace(0.1, 2.0, n - 1))


def random_graph(n: int, n_pairs: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return laplacian(n, *random_pairs(rng, n_pairs, n), rng.gamma(1.0, size=n_pairs))


GRAPHS = {
    "nothing connected": np.zeros((5, 5)),
    "one item": np.zeros((1, 1)),
    "star": star(40),
    "path": laplacian(60, np.arange(59), np.arange(1, 60), np.ones(59)),
    "random": random_graph(300, 700),
    "full": random_graph(12, 200),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("precision", [0.5, 1e-6])
def test_elimination_is_the_dense_factor(name, precision):
    A = GRAPHS[name] + precision * np.eye(len(GRAPHS[name]))
    found = Elimination.of(csr_array(A))
    assert found.jitter == 0.0
    expected = np.linalg.inv(A)
    inverse, right = found.inverse(), np.random.default_rng(1).standard_normal(len(A))
    # The smallest eigenvalue is the precision, that of all utilities moved together.
    atol = EXACT * max(1.0, 1.0 / precision)
    np.testing.assert_allclose(inverse, expected, atol=atol, rtol=CONVERGED)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(found.solve(right), expected @ right, atol=10 * atol)
    assert abs(found.log_det() - np.linalg.slogdet(A)[1]) < CONVERGED


def test_little_of_a_sparse_graph_is_left_to_be_dense():
    A = random_graph(300, 450) + np.eye(300)
    left = Elimination.of(csr_array(A))
    while not isinstance(left, Factor):
        left = left.rest
    assert len(left.lower) < 100
