"""The covariance of people and items together against the Kronecker product (T7)."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.kernel import slope
from predilect.inference.gaussian.kernels import Own, Scaled, Stationary, matern
from predilect.papers.joint.covariance import JointKernel, KernelTable
from tolerances import EXACT, ITERATIVE

RNG = np.random.default_rng(3)
USERS, ITEMS = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 3))
KNOWN = np.array([True, True, False, True, False])


def kernel():
    return JointKernel(
        KernelTable.of(Own(Stationary([1.0, 2.0], "squared-exponential"), 0.5), USERS),
        KernelTable.of(Scaled(Own(matern([1.0, 0.7, 1.5]), 0.2), 1.7), ITEMS, KNOWN),
    )


CELLS = np.array([(u, i) for u in range(4) for i in range(5)], dtype=float)


def test_cells_are_the_kronecker_product():
    joint = kernel()
    K_u, K_x = joint.users.covariance(), joint.items.covariance()
    np.testing.assert_allclose(joint(CELLS), np.kron(K_u, K_x), atol=EXACT)
    assert K_x[2, 4] == K_x[2, 0] == 0.0  # without features: alike to no other
    assert K_x[2, 2] == pytest.approx(K_x[0, 0], abs=EXACT)


@pytest.mark.parametrize("cross", [False, True])
def test_gradient(cross):
    joint, rng = kernel(), np.random.default_rng(5)
    x = CELLS[[0, 3, 7, 12, 19, 0]]
    y = CELLS[[1, 3, 14]] if cross else None
    weights = rng.normal(size=(len(x), len(x if y is None else y)))
    found = joint.gradient(x, y, weights)
    expected = slope(lambda t: np.vdot(weights, joint.with_theta(t)(x, y)), joint.theta)
    np.testing.assert_allclose(found, expected, atol=ITERATIVE)
    assert len(found) == len(joint.names) == len(joint.theta)


def test_rows_one_by_one():
    """Variances, covariances of pairs and their gradient, as a kernel of (person, item) has them; some people alone."""
    joint, rng = kernel(), np.random.default_rng(6)
    K = joint(CELLS)
    np.testing.assert_allclose(joint.diagonal(CELLS), np.diagonal(K), atol=EXACT)
    other = np.roll(CELLS, 3, axis=0)
    np.testing.assert_allclose(joint.pairs(CELLS, other), np.diagonal(np.roll(K, 3, axis=1)), atol=EXACT)
    some = CELLS[[1, 7, 12]]
    np.testing.assert_allclose(joint(some, CELLS), K[[1, 7, 12]], atol=EXACT)
    weights = rng.normal(size=len(CELLS))
    expected = slope(lambda t: weights @ joint.with_theta(t).diagonal(CELLS), joint.theta)
    np.testing.assert_allclose(joint.diagonal_gradient(CELLS, weights), expected, atol=ITERATIVE)


def test_more_people_and_items():
    joint, more = kernel(), RNG.normal(size=(2, 3))
    items = joint.items.with_rows(more, np.array([True, False]))
    K = items.covariance()
    np.testing.assert_allclose(K[:5, :5], joint.items.covariance(), atol=EXACT)
    np.testing.assert_allclose(K[5, :5][KNOWN], items.kernel(more[:1], ITEMS[KNOWN])[0], atol=EXACT)
    assert not K[6, :6].any()


def test_rows_of_another_shape():
    with pytest.raises(ValueError, match=r"\(person, item\)"):
        kernel()(np.zeros((3, 3)))
