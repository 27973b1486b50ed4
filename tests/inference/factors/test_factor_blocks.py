"""The compiled loops of the factor model against the same sums in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.sweep import component_sums, update_people
from tolerances import EXACT

N_USERS, N_PAIRS, N_ROWS, C = 5, 7, 40, 3


def inputs():
    rng = np.random.default_rng(0)
    user = np.sort(rng.integers(N_USERS - 1, size=N_ROWS))  # the last has no answers
    columns = user, rng.integers(N_PAIRS, size=N_ROWS), *rng.uniform(0.2, 2.0, (2, N_ROWS)), rng.normal(size=N_ROWS)
    return rng, columns, rng.normal(size=(N_PAIRS, C)), rng.uniform(0.1, 1.0, (N_PAIRS, C))


def test_weights_of_people():
    rng, (user, pair, weight, precision, linear), delta, D = inputs()
    delta_0, prior = rng.normal(size=N_PAIRS), rng.normal(size=(N_USERS, C))
    mu, Sigma, log_det = np.empty((N_USERS, C)), np.empty((N_USERS, C, C)), np.empty(N_USERS)
    ptr = np.searchsorted(user, np.arange(N_USERS + 1))
    update_people(ptr, pair, weight, precision, linear, delta_0, delta, D, prior, mu, Sigma, log_det)
    for u in range(N_USERS):
        q, tau = pair[user == u], (weight * precision)[user == u]
        P = np.eye(C) + delta[q].T @ (tau[:, None] * delta[q]) + np.diag(tau @ D[q])
        h = prior[u] + delta[q].T @ ((weight * linear)[user == u] - tau * delta_0[q])
        np.testing.assert_allclose(Sigma[u], np.linalg.inv(P), atol=EXACT)
        np.testing.assert_allclose(mu[u], np.linalg.solve(P, h), atol=EXACT)
        assert abs(log_det[u] + np.linalg.slogdet(P)[1]) < EXACT


@pytest.mark.parametrize("full", [True, False])
def test_sums_of_one_component(full):
    rng, (user, pair, weight, precision, linear), delta, _ = inputs()
    mu, margin = rng.normal(size=(N_USERS, C)), rng.normal(size=N_ROWS)
    root = rng.normal(size=(N_USERS, C, C))
    whole = root @ root.transpose(0, 2, 1)
    if not full:
        whole = whole * np.eye(C)
    Sigma = whole if full else np.ascontiguousarray(np.diagonal(whole, axis1=1, axis2=2)[:, :, None])
    for c in range(C):
        W, H = np.zeros((2, N_PAIRS))
        component_sums(c, user, pair, weight, precision, linear, margin, delta, mu, Sigma, W, H)
        tau = weight * precision
        omega = tau * (mu[user, c] ** 2 + whole[user, c, c])
        h = (weight * linear - tau * margin) * mu[user, c] + omega * delta[pair, c]
        h -= tau * np.einsum("pk,pk->p", whole[user, c], delta[pair])
        np.testing.assert_allclose(W, np.bincount(pair, omega, N_PAIRS), atol=EXACT)
        np.testing.assert_allclose(H, np.bincount(pair, h, N_PAIRS), atol=EXACT)
