"""The joint posterior of people and items against dense Gaussian conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.gaussian.kernels import Product, Selected, matern
from predilect.gaussian.projection import Projection
from predilect.latent.sparse.fit import SparsePosterior
from predilect.models.gppl.pooled import JointPosterior
from tolerances import EXACT, ITERATIVE

RNG = np.random.default_rng(0)
USERS, ITEMS = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 3))
KU, KI = matern([1.0, 1.5]), matern([1.0, 2.0, 1.5])
KERNEL = Product((Selected(KU, (0, 1)), Selected(KI, (2, 3, 4))), ("users", "items"))
SCALE = 0.5
GRID = np.hstack([np.repeat(USERS, 4, axis=0), np.tile(ITEMS, (5, 1))])
SEEN = RNG.choice(20, 8, replace=False)


@pytest.fixture(scope="module")
def posterior():
    """Observations with Gaussian noise at some (person, item) pairs, which are the points."""
    K = KERNEL(GRID[SEEN]) / SCALE
    y = RNG.normal(size=8)
    gain = K @ np.linalg.inv(K + 0.3 * np.eye(8))
    projection = Projection.of(KERNEL, GRID[SEEN], np.ones(8, dtype=bool), GRID[SEEN] + 0.0)
    process = SparsePosterior(projection, gain @ y, K - gain @ K, SCALE)
    return JointPosterior(process, KU, KI, USERS, ITEMS), y


def dense(y, rows):
    K, cross = KERNEL(GRID[SEEN]) / SCALE + 0.3 * np.eye(8), KERNEL(rows, GRID[SEEN]) / SCALE
    solved = np.linalg.solve(K, cross.T)
    return solved.T @ y, KERNEL(rows) / SCALE - cross @ solved


def test_people_are_conditioned_on_what_others_answered(posterior):
    joint, y = posterior
    for user in range(5):
        mean, covariance = joint.utilities(user)
        m, C = dense(y, GRID[4 * user : 4 * user + 4])
        np.testing.assert_allclose(mean, m, atol=ITERATIVE)
        np.testing.assert_allclose(covariance, C, atol=ITERATIVE)


def test_margins_are_those_of_the_utilities(posterior):
    joint, _ = posterior
    users, left, right = np.array([0, 3, 4, -1]), np.array([0, 1, 2, 3]), np.array([3, 2, 0, 1])
    mean, var = joint.margins(users, left, right)
    for row, user in enumerate(users.tolist()):
        m, C = joint.utilities(user)
        a, b = left[row], right[row]
        assert mean[row] == pytest.approx(m[a] - m[b], abs=EXACT)
        assert var[row] == pytest.approx(C[a, a] + C[b, b] - 2 * C[a, b], abs=EXACT)


def test_a_stranger_by_features_and_without(posterior):
    joint, y = posterior
    x = np.array([[0.3, -0.2]])
    pair = np.array([0]), np.array([1])
    mean, var = joint.margins(np.array([-1]), *pair, traits=x)
    m, C = dense(y, np.hstack([np.repeat(x, 4, axis=0), ITEMS]))
    assert mean[0] == pytest.approx(m[0] - m[1], abs=ITERATIVE)
    assert var[0] == pytest.approx(C[0, 0] + C[1, 1] - 2 * C[0, 1], abs=ITERATIVE)
    nobody, average = (joint.margins(np.array([-1]), *pair, traits=traits) for traits in (None, np.zeros((1, 2))))
    np.testing.assert_array_equal(nobody, average)


def test_the_crowd_is_the_average_of_the_people(posterior):
    joint, y = posterior
    mean, covariance = joint.consensus()
    m, C = dense(y, GRID)
    average = np.tile(np.eye(4), (1, 5)) / 5
    np.testing.assert_allclose(mean, average @ m, atol=ITERATIVE)
    np.testing.assert_allclose(covariance, average @ C @ average.T, atol=ITERATIVE)


def test_new_items_by_their_features(posterior):
    joint, y = posterior
    new = RNG.normal(size=(2, 3))
    mean, covariance = joint.with_items(new).utilities(2)
    rows = np.hstack([np.repeat(USERS[2:3], 6, axis=0), np.vstack([ITEMS, new])])
    m, C = dense(y, rows)
    np.testing.assert_allclose(mean, m, atol=ITERATIVE)
    np.testing.assert_allclose(covariance, C, atol=ITERATIVE)
