"""Compiled loops of the factor model: people's weights, and sums over answers for one component."""

from __future__ import annotations

import math

import numpy as np

from predilect._compile import kernel


@kernel
def update_people(
    start, stop, user_ptr, pair, weight, precision, linear, delta_0, delta, D, prior, mu, Sigma, log_det
):  # fmt: skip
    """Posterior of the weights of people ``start`` to ``stop`` given the sites: modern.md (3.4).

    ``precision``, ``linear`` (n_rows,): site of one of ``weight`` answers, log p(y | z) ~ linear z - precision z²/2;
    ``delta_0`` (n_pairs,): mean margin of the consensus; ``delta``, ``D`` (n_pairs, C); ``prior`` (n_users, C): prior
    mean, covariance I. ``mu`` (n_users, C), ``Sigma`` (n_users, C, C), ``log_det`` (n_users,) are set.
    """
    C = delta.shape[1]
    L = np.empty((C, C))
    h = np.empty(C)
    inv = np.empty((C, C))
    for u in range(start, stop):
        for c in range(C):
            for k in range(c):
                L[c, k] = 0.0
            L[c, c] = 1.0
            h[c] = prior[u, c]
        for p in range(user_ptr[u], user_ptr[u + 1]):
            q = pair[p]
            tau = weight[p] * precision[p]
            nu = weight[p] * linear[p] - tau * delta_0[q]
            for c in range(C):
                d = delta[q, c]
                h[c] += nu * d
                scaled = tau * d
                for k in range(c + 1):
                    L[c, k] += scaled * delta[q, k]
                L[c, c] += tau * D[q, c]
        total = 0.0
        for j in range(C):  # the Cholesky factor, row by row
            for k in range(j):
                s = L[j, k]
                for i in range(k):
                    s -= L[j, i] * L[k, i]
                L[j, k] = s / L[k, k]
            s = L[j, j]
            for i in range(j):
                s -= L[j, i] * L[j, i]
            L[j, j] = math.sqrt(s)  # at least 1: the prior is in it
            total -= 2.0 * math.log(L[j, j])
        log_det[u] = total
        for j in range(C):  # inv = L⁻¹, lower
            inv[j, j] = 1.0 / L[j, j]
            for k in range(j):
                s = 0.0
                for i in range(k, j):
                    s -= L[j, i] * inv[i, k]
                inv[j, k] = s * inv[j, j]
        for c in range(C):
            for k in range(c + 1):
                s = 0.0
                for i in range(c, C):
                    s += inv[i, c] * inv[i, k]
                Sigma[u, c, k] = s
                Sigma[u, k, c] = s
        for c in range(C):
            s = 0.0
            for k in range(C):
                s += Sigma[u, c, k] * h[k]
            mu[u, c] = s


@kernel
def component_sums(c, user, pair, weight, precision, linear, margin, delta, mu, Sigma, W, H):
    """Precision and linear term of component ``c`` for every pair: modern.md (3.6), before the design of the items.

    ``margin`` (n_rows,): current mean margins. Sets W, H (n_pairs,): Σ ω_p and Σ h_p over the rows of each pair.
    """
    C = mu.shape[1]
    full = Sigma.shape[2] == C and C > 1
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        tau = weight[p] * precision[p]
        cross = 0.0
        if full:
            for k in range(C):
                cross += Sigma[u, c, k] * delta[q, k]
            own = Sigma[u, c, c]
        else:
            own = Sigma[u, c, 0]
            cross = own * delta[q, c]
        omega = tau * (mu[u, c] * mu[u, c] + own)
        W[q] += omega
        H[q] += (weight[p] * linear[p] - tau * margin[p]) * mu[u, c] - tau * cross + omega * delta[q, c]
