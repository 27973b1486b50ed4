"""Gibbs sampling of the factor model with strict probit answers: modern.md 9."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

__all__ = ["gibbs_probabilities"]


def gibbs_probabilities(user, left, right, outcome, K, n_users, n_components, test, *, s_0, s, sweeps, seed):
    """Mean over draws of Φ(z) for the test rows (user, left, right), scales held at s_0 and s."""
    rng = np.random.default_rng(seed)
    n, C = len(K), n_components
    K_inv = np.linalg.inv(K)
    prior = np.kron(np.diag([s_0] + [s] * C), K_inv)
    D = np.eye(n)[left] - np.eye(n)[right]
    f = np.linalg.cholesky(K) @ rng.normal(size=(n, C + 1)) * 0.5
    w = rng.normal(size=(n_users, C))
    total, burn = np.zeros(len(test[0])), sweeps // 5
    for sweep in range(sweeps):
        delta = D @ f
        z = delta[:, 0] + np.einsum("pc,pc->p", w[user], delta[:, 1:])
        # A normal about z of the answer's sign, by inverse distribution function in logs.
        aux = outcome * (outcome * z - ndtri_exp(np.log(rng.uniform(size=len(z))) + log_ndtr(outcome * z)))
        for u in range(n_users):
            rows = user == u
            d = delta[rows, 1:]
            L = np.linalg.cholesky(np.eye(C) + d.T @ d)
            mean = np.linalg.solve(L @ L.T, d.T @ (aux[rows] - delta[rows, 0]))
            w[u] = mean + np.linalg.solve(L.T, rng.normal(size=C))
        h = np.column_stack([np.ones(len(user)), w[user]])
        X = (h[:, :, None] * D[:, None, :]).reshape(len(user), -1)
        L = np.linalg.cholesky(prior + X.T @ X)
        mean = np.linalg.solve(L @ L.T, X.T @ aux)
        f = (mean + np.linalg.solve(L.T, rng.normal(size=len(mean)))).reshape(C + 1, n).T
        if sweep >= burn:
            u, a, b = test
            d = f[a] - f[b]
            total += ndtr(d[:, 0] + np.einsum("pc,pc->p", w[u], d[:, 1:]))
    return total / (sweeps - burn)
