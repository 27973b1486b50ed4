"""Gaussian state of one user and its rank-one updates, in pair space or item space (population.md section 2).

Pair space (n answers <= k items): C = (G⁻¹ + Λ)⁻¹ and the mean μ of the margins; item space: S and mean of the user's
k utilities. Only lower triangles are kept. Arrays of answers are slices of the whole data from ``first`` on; ``la`` and
``lb`` are positions in the user's own items. Prior covariance S_ij = Σ_ij, or φ_i Σ φ_jᵀ + [i = j] ρ_i with a basis:
``cov`` is Σ or Φ Σ, ``Phi`` has no columns where the items are the basis, ρ may be empty.
"""

from __future__ import annotations

import math

import numpy as np

from predilect._compile import inner_kernel


@inner_kernel
def direction(C, mu, a, b, n, c):
    """Covariance of every state with the margin of answer (a, b), its variance and mean; b < 0 names state a itself."""
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
def prior_mean(u, items, m, shift, traits, own):
    """Fill the prior mean of the user's own items: the consensus, shifted by the user's traits."""
    for i in range(items.shape[0]):
        own[i] = m[items[i]]
        for j in range(traits.shape[1]):
            own[i] += shift[items[i], j] * traits[u, j]


@inner_kernel
def prior_state(in_pair_space, items, la, lb, first, n, k, cov, Phi, rho, own, C, mu, R):
    """Fill the lower triangle of the user's prior covariance, its mean, and in ``R`` the rows of a basis."""
    d = n if in_pair_space else k
    for i in range(d):
        mu[i] = own[la[first + i]] - own[lb[first + i]] if in_pair_space else own[i]
    if Phi.shape[1] == 0:
        if in_pair_space:
            for p in range(n):
                a = items[la[first + p]]
                b = items[lb[first + p]]
                for q in range(p + 1):
                    a2 = items[la[first + q]]
                    b2 = items[lb[first + q]]
                    C[p, q] = cov[a, a2] - cov[a, b2] - cov[b, a2] + cov[b, b2]
        else:
            for i in range(k):
                for j in range(i + 1):
                    C[i, j] = cov[items[i], items[j]]
        return
    L = np.empty((d, Phi.shape[1]))
    for i in range(d):
        a = items[la[first + i]] if in_pair_space else items[i]
        b = items[lb[first + i]] if in_pair_space else a
        for j in range(Phi.shape[1]):  # loops: expressions of arrays take far longer to compile
            R[i, j] = Phi[a, j] - Phi[b, j] if in_pair_space else Phi[a, j]
            L[i, j] = cov[a, j] - cov[b, j] if in_pair_space else cov[a, j]
    product = np.dot(L, R[:d].T)
    for i in range(d):
        for j in range(i + 1):
            C[i, j] = product[i, j]
    if rho.shape[0] == 0:
        return
    for p in range(d):
        if not in_pair_space:
            C[p, p] += rho[items[p]]
            continue
        a = la[first + p]
        b = lb[first + p]
        for q in range(p + 1):
            a2 = la[first + q]
            b2 = lb[first + q]
            if a == a2:
                C[p, q] += rho[items[a]]
            if b == b2:
                C[p, q] += rho[items[b]]
            if a == b2:
                C[p, q] -= rho[items[a]]
            if b == a2:
                C[p, q] -= rho[items[b]]


@inner_kernel
def replay(in_pair_space, la, lb, weight, lam, eta, first, n, d, C, mu, c):
    """Update the prior state to the posterior under the stored sites; log |I + Λ^½ G Λ^½|."""
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
def pair_statistics(weight, lam, eta, first, n, C, mu, alpha, Q):
    """α (n) and Q_u (n x n) in pair space (population.md section 3)."""
    for p in range(n):
        total = weight[first + p] * lam[first + p]
        alpha[p] = weight[first + p] * eta[first + p] - total * mu[p]
        for q in range(p + 1):
            value = -total * C[p, q] * weight[first + q] * lam[first + q]
            Q[p, q] = value
            Q[q, p] = value
        Q[p, p] += total


@inner_kernel
def person_statistics(in_pair_space, la, lb, weight, lam, eta, first, n, k, C, mu, x, Q, P, W):
    """The sums x = Xᵀ α (k) and Xᵀ Q X (k x k), on the user's own items."""
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
    for g in range(first, first + n):  # Q = P - W P, the rows of P being those of Xᵀ Λ X
        a = la[g]
        b = lb[g]
        total = weight[g] * lam[g]
        for i in range(k):
            flow = total * (W[i, a] - W[i, b])
            Q[i, a] -= flow
            Q[i, b] += flow
    for i in range(k):
        for j in range(i):
            Q[j, i] = Q[i, j]
