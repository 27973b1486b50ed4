"""The Gaussian state of one person and its rank-one algebra, shared by fitting and prediction.

A person with n answers on k items is worked on in whichever space is smaller:

- *pair space* (n <= k): state C = (G⁻¹ + Λ)⁻¹, n x n, with G = X Σ Xᵀ, and μ, the mean of the margins;
- *item space* (k < n): state S = the posterior covariance of the person's k utilities, and their mean.

Both are built from the prior by one rank-one update an answer: no inverse, and right for sites of zero.
Only the lower triangle of a state is kept. Arrays that describe a person's answers are slices of the whole data that
begin at ``first``; ``la`` and ``lb`` are positions in the person's own list of items.
"""

from __future__ import annotations

import math

from predilect._compile import inner_kernel

__all__ = ["direction", "person_statistics", "prior_state", "rank_one", "replay"]


@inner_kernel
def direction(C, mu, a, b, n, c):
    """Covariance of every state with the margin of answer (a, b); b < 0 names state a itself. Variance, mean."""
    for i in range(a + 1):
        c[i] = C[a, i]
    for i in range(a + 1, n):
        c[i] = C[i, a]
    if b < 0:
        return c[a], mu[a]
    for i in range(b + 1):
        c[i] -= C[b, i]
    for i in range(b + 1, n):
        c[i] -= C[i, b]
    return c[a] - c[b], mu[a] - mu[b]


@inner_kernel
def rank_one(C, mu, c, n, d_lam, d_eta, v, mean):
    """Add precision d_lam and precision-mean d_eta along a direction with C times direction = c; log of 1 + d_lam v."""
    gain = d_lam / (1.0 + d_lam * v)
    shift = (d_eta - d_lam * mean) / (1.0 + d_lam * v)
    for i in range(n):
        ci = c[i]
        mu[i] += shift * ci
        scaled = gain * ci
        for j in range(i + 1):
            C[i, j] -= scaled * c[j]
    return math.log1p(d_lam * v)


@inner_kernel
def prior_state(in_pair_space, items, la, lb, first, n, k, Sigma, m, C, mu):
    """Fill the lower triangle of the person's prior covariance, and its mean."""
    if in_pair_space:
        for p in range(n):
            a = items[la[first + p]]
            b = items[lb[first + p]]
            mu[p] = m[a] - m[b]
            for q in range(p + 1):
                a2 = items[la[first + q]]
                b2 = items[lb[first + q]]
                C[p, q] = Sigma[a, a2] - Sigma[a, b2] - Sigma[b, a2] + Sigma[b, b2]
    else:
        for i in range(k):
            mu[i] = m[items[i]]
            for j in range(i + 1):
                C[i, j] = Sigma[items[i], items[j]]


@inner_kernel
def replay(in_pair_space, la, lb, weight, lam, eta, first, n, d, C, mu, c):
    """Bring the prior state to the posterior under the stored sites; log |I + Λ^½ G Λ^½|."""
    log_det = 0.0
    for p in range(n):
        if lam[first + p] == 0.0 and eta[first + p] == 0.0:
            continue
        w = weight[first + p]
        if in_pair_space:
            v, mean = direction(C, mu, p, -1, d, c)
        else:
            v, mean = direction(C, mu, la[first + p], lb[first + p], d, c)
        log_det += rank_one(C, mu, c, d, w * lam[first + p], w * eta[first + p], v, mean)
    return log_det


@inner_kernel
def person_statistics(in_pair_space, la, lb, weight, lam, eta, first, n, k, C, mu, x, Q, P, W):
    """The sums x = Xᵀ α (k) and Xᵀ Q X (k x k), on the person's own items."""
    for i in range(k):
        x[i] = 0.0
        for j in range(k):
            Q[i, j] = 0.0
    if in_pair_space:
        for p in range(n):
            g = first + p
            total = weight[g] * lam[g]
            alpha = weight[g] * eta[g] - total * mu[p]
            x[la[g]] += alpha
            x[lb[g]] -= alpha
            for q in range(p + 1):
                h = first + q
                value = -total * C[p, q] * weight[h] * lam[h]
                if p == q:
                    value += total
                    value *= 0.5  # the loop below adds both orders
                Q[la[g], la[h]] += value
                Q[la[g], lb[h]] -= value
                Q[lb[g], la[h]] -= value
                Q[lb[g], lb[h]] += value
                Q[la[h], la[g]] += value
                Q[lb[h], la[g]] -= value
                Q[la[h], lb[g]] -= value
                Q[lb[h], lb[g]] += value
        return
    # Item space: P = Xᵀ Λ X is a weighted graph Laplacian and Xᵀ Q X = P - P S P.
    for g in range(first, first + n):
        total = weight[g] * lam[g]
        alpha = weight[g] * eta[g] - total * (mu[la[g]] - mu[lb[g]])
        x[la[g]] += alpha
        x[lb[g]] -= alpha
        Q[la[g], la[g]] += total
        Q[lb[g], lb[g]] += total
        Q[la[g], lb[g]] -= total
        Q[lb[g], la[g]] -= total
    for i in range(k):
        for j in range(k):
            P[i, j] = Q[i, j]
    for i in range(k):  # W = P S
        for j in range(k):
            W[i, j] = 0.0
        for h in range(k):
            value = P[i, h]
            if value != 0.0:
                for j in range(h + 1):
                    W[i, j] += value * C[h, j]
                for j in range(h + 1, k):
                    W[i, j] += value * C[j, h]
    for i in range(k):  # Q = P - W P
        for h in range(k):
            value = W[i, h]
            for j in range(i + 1):
                Q[i, j] -= value * P[h, j]
    for i in range(k):
        for j in range(i):
            Q[j, i] = Q[i, j]
