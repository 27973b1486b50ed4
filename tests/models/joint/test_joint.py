"""The covariance of people and items together against the Kronecker product (T7: cov = k_u k_preference)."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.kernel import slope
from predilect.gaussian.kernels import Own, Scaled, Stationary, matern
from predilect.models.joint.covariance import JointKernel, Table
from tolerances import EXACT, ITERATIVE

RNG = np.random.default_rng(3)
USERS, ITEMS = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 3))
KNOWN = np.array([True, True, False, True, False])
NUGGETS = (0.3, 0.2)


def kernel(nuggets=None):
    return JointKernel(
        Table.of(Own(Stationary([1.0, 2.0], "squared-exponential"), 0.5), USERS),
        Table.of(Scaled(Own(matern([1.0, 0.7, 1.5]), 0.2), 1.7), ITEMS, KNOWN),
        nuggets,
    )


def rows(n, seed=0):
    """(person, left, right), one of them twice."""
    rng = np.random.default_rng(seed)
    left = rng.integers(5, size=n)
    found = np.column_stack([rng.integers(4, size=n), left, (left + rng.integers(1, 5, size=n)) % 5]).astype(float)
    found[-1] = found[0]
    return found


def incidence(margins):
    """H, from cells user-major to margins."""
    H = np.zeros((len(margins), 20))
    for k, (u, i, j) in enumerate(margins.astype(int)):
        H[k, 5 * u + i] += 1.0
        H[k, 5 * u + j] -= 1.0
    return H


CELLS = np.array([(u, i) for u in range(4) for i in range(5)], dtype=float)


def test_cells_are_the_kronecker_product():
    joint = kernel()
    K_u, K_x = joint.users.covariance(), joint.items.covariance()
    np.testing.assert_allclose(joint(CELLS), np.kron(K_u, K_x), atol=EXACT)
    assert K_x[2, 4] == K_x[2, 0] == 0.0  # without features: alike to no other
    assert K_x[2, 2] == pytest.approx(K_x[0, 0], abs=EXACT)


def test_margins_are_differences_of_cells():
    joint, margins = kernel(), rows(9)
    H = incidence(margins)
    K = np.kron(joint.users.covariance(), joint.items.covariance())
    np.testing.assert_allclose(joint(margins), H @ K @ H.T, atol=EXACT)
    other = incidence(rows(6, 1))
    np.testing.assert_allclose(joint(margins, rows(6, 1)), H @ K @ other.T, atol=EXACT)


def test_nuggets_are_of_single_answers():
    plain, margins = kernel(), rows(9)
    K = kernel(NUGGETS)(margins)
    u, left, right = margins.T.astype(int)
    K_u, K_x = plain.users.covariance(), plain.items.covariance()
    own = (K_u[u, u] + NUGGETS[0]) * (K_x[left, left] + K_x[right, right] - 2.0 * K_x[left, right] + NUGGETS[1])
    np.testing.assert_allclose(np.diagonal(K), own, atol=EXACT)
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_allclose(K[off], plain(margins)[off], atol=EXACT)  # the last row repeats the first one


@pytest.mark.parametrize("nuggets", [None, NUGGETS])
@pytest.mark.parametrize("what", ["same", "cross", "cells"])
def test_gradient(nuggets, what):
    joint, rng = kernel(nuggets), np.random.default_rng(5)
    x = CELLS[[0, 3, 7, 12, 19]] if what == "cells" else rows(9)
    y = rows(6, 1) if what == "cross" else None
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
        kernel()(np.zeros((3, 4)))
