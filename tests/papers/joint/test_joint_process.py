"""The joint process given messages, against dense conditioning of the whole Kronecker product."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import Own, Scaled, Stationary, White, matern
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.process import CellRows, JointProcess
from tolerances import EXACT

RNG = np.random.default_rng(1)
N_USERS, N_ITEMS, N = 4, 5, 25
USERS, ITEMS = RNG.normal(size=(N_USERS, 2)), RNG.normal(size=(N_ITEMS, 3))
USER, LEFT = RNG.integers(N_USERS, size=N), RNG.integers(N_ITEMS, size=N)
RIGHT = (LEFT + RNG.integers(1, N_ITEMS, size=N)) % N_ITEMS
SITES = Sites(RNG.gamma(2.0, 0.3, N), RNG.normal(size=N))
KERNEL = JointKernel(
    KernelTable.of(Own(Stationary([1.0, 2.0], "squared-exponential"), 0.5), USERS),
    KernelTable.of(Scaled(Own(matern([1.0, 0.7, 1.5]), 0.2), 1.7), ITEMS),
)
PAIRS = np.array([(u, i, j) for u in range(N_USERS) for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j])


def process(kernel=KERNEL):
    rows = CellRows.of(USER, LEFT, RIGHT, N_ITEMS)
    return JointProcess.of(kernel, rows, SITES)


def dense(K_u, K_x):
    """Mean and covariance of all utilities, user-major."""
    K = np.kron(K_u, K_x)
    H = np.zeros((N, len(K)))
    H[np.arange(N), USER * len(K_x) + LEFT] += 1.0
    H[np.arange(N), USER * len(K_x) + RIGHT] -= 1.0
    gain = K @ H.T @ np.linalg.inv(H @ K @ H.T + np.diag(1.0 / SITES.precision))
    return gain @ (SITES.linear / SITES.precision), K - gain @ H @ K


def test_answers_say_the_same_as_of_the_whole_product():
    found = process()
    mean, S = dense(KERNEL.users.covariance(), KERNEL.items.covariance())
    for u in range(N_USERS):
        here = slice(N_ITEMS * u, N_ITEMS * (u + 1))
        m, C = found.utilities(u)
        np.testing.assert_allclose(m, mean[here], atol=EXACT)
        np.testing.assert_allclose(C, S[here, here], atol=EXACT)
    u, i, j = PAIRS.T
    a, b = N_ITEMS * u + i, N_ITEMS * u + j
    m, v = found.margins(u, i, j)
    np.testing.assert_allclose(m, mean[a] - mean[b], atol=EXACT)
    np.testing.assert_allclose(v, S[a, a] + S[b, b] - 2.0 * S[a, b], atol=EXACT)
    average = np.kron(np.full(N_USERS, 1.0 / N_USERS), np.eye(N_ITEMS))
    m, C = found.crowd().dense()
    np.testing.assert_allclose(m, average @ mean, atol=EXACT)
    np.testing.assert_allclose(C, average @ S @ average.T, atol=EXACT)


def test_people_apart_are_decoupled():
    """K_users = I: each person's utilities hang on their own answers alone."""
    apart = replace(KERNEL, users=KernelTable.of(White(1.0), USERS))
    found = process(apart)
    for u in range(N_USERS):
        own = np.flatnonzero(u == USER)
        rows = CellRows.of(np.zeros(len(own), dtype=int), LEFT[own], RIGHT[own], N_ITEMS)
        alone = JointProcess.of(
            replace(apart, users=KernelTable.of(White(1.0), USERS[u : u + 1])), rows,
            Sites(SITES.precision[own], SITES.linear[own]),
        )  # fmt: skip
        for a, b in zip(found.utilities(u), alone.utilities(0), strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)
    assert np.abs(found.utilities(0)[0] - process().utilities(0)[0]).max() > 0.01


def test_people_as_one_are_pooled():
    """K_users = 1 1ᵀ: everybody has the utilities of all answers as one person's."""
    alike = replace(KERNEL, users=KernelTable.of(Stationary(1.0), np.zeros((N_USERS, 0))))
    found = process(alike)
    rows = CellRows.of(np.zeros(N, dtype=int), LEFT, RIGHT, N_ITEMS)
    pooled = JointProcess.of(replace(alike, users=KernelTable.of(White(1.0), np.zeros((1, 0)))), rows, SITES)
    for u in range(N_USERS):
        for a, b in zip(found.utilities(u), pooled.utilities(0), strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)


def test_new_people_and_items_by_features():
    """They are rows of the whole product that nobody answered about."""
    who, what = RNG.normal(size=(1, 2)), RNG.normal(size=(2, 3))
    known = np.array([True, False])
    found = process().with_users(who).with_items(what, known)
    users = KERNEL.users.with_rows(who).covariance()
    items = KERNEL.items.with_rows(what, known).covariance()
    mean, S = dense(users, items)
    n = len(items)
    here = slice(n * N_USERS, n * (N_USERS + 1))
    m, C = found.utilities(N_USERS)
    np.testing.assert_allclose(m, mean[here], atol=EXACT)
    np.testing.assert_allclose(C, S[here, here], atol=EXACT)
    stranger = process().with_users(np.zeros((1, 2))).utilities(N_USERS)
    for a, b in zip(process().utilities(-1), stranger, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.crowd().mean.shape == (n,)
