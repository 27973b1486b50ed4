"""Compiled variational Bayes for z = Σ_d w_ud h_dq, with both factors Gaussian and independent."""

from __future__ import annotations

import math

from predilect._compile import inner_kernel, kernel


@inner_kernel
def _divergence(mean, var, prior_mean, prior_var):
    """Σ KL(N(mean, var) || N(prior_mean, prior_var)); entries without prior variance are fixed and do not count."""
    total = 0.0
    for i in range(mean.shape[0]):
        for d in range(mean.shape[1]):
            v = prior_var[i, d]
            if v > 0.0:
                gap = mean[i, d] - prior_mean[i, d]
                total += 0.5 * (math.log(v / var[i, d]) + (var[i, d] + gap * gap) / v - 1.0)
    return total


@kernel
def product_moments(user, pair, w_mean, w_var, h_mean, h_var, mean, var):
    """Mean and variance of the margin of every row, set in place: collaborative.md 3, m_g and v_g."""
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        m = 0.0
        v = 0.0
        for d in range(w_mean.shape[1]):
            m += w_mean[u, d] * h_mean[q, d]
            v += w_mean[u, d] ** 2 * h_var[q, d] + w_var[u, d] * (h_mean[q, d] ** 2 + h_var[q, d])
        mean[p] = m
        var[p] = v


@kernel
def product_passes(
    user, pair, precision, linear, w_prior_mean, w_prior_var, h_prior_mean, h_prior_var, w_mean, w_var, h_mean, h_var,
    margin, tolerance, most, S, H, bounds,
):  # fmt: skip
    """Coordinate ascent over the functions, weights and then values of each, to convergence; number of passes.

    ``precision, linear`` (n_rows,): message of all copies of each answer, log p ~ linear z - precision z²/2. Priors f̂3
    of the weights (n_users, D), where a variance of 0 holds a weight, and f̂4 of the values (n_pairs, D). Changed in
    place: moments of Q(W) and Q(H), ``margin`` (n_rows,), ``bounds`` (most,) after each pass without the terms in the
    messages only; ``S, H`` are work arrays.

    collaborative.md 3, f̂2: each update is exact given the others, so that the bound never falls. Its form here divides
    by no variance, so that a prior variance may be 0. 16 n_rows D operations a pass.
    """
    n, D = user.shape[0], w_mean.shape[1]
    n_users, n_pairs = w_mean.shape[0], h_mean.shape[0]
    for p in range(n):
        z = 0.0
        for d in range(D):
            z += w_mean[user[p], d] * h_mean[pair[p], d]
        margin[p] = z
    last = -math.inf
    for done in range(most):
        for d in range(D):
            S[:n_users] = 0.0
            H[:n_users] = 0.0
            for p in range(n):
                u, q = user[p], pair[p]
                m = h_mean[q, d]
                margin[p] -= w_mean[u, d] * m  # of the other functions, until the weight has moved
                S[u] += precision[p] * (m * m + h_var[q, d])
                H[u] += m * (linear[p] - precision[p] * margin[p])
            for u in range(n_users):
                v = w_prior_var[u, d]
                w_var[u, d] = v / (1.0 + v * S[u])
                w_mean[u, d] = (w_prior_mean[u, d] + v * H[u]) / (1.0 + v * S[u])
            S[:n_pairs] = 0.0
            H[:n_pairs] = 0.0
            for p in range(n):
                u, q = user[p], pair[p]
                m = w_mean[u, d]
                S[q] += precision[p] * (m * m + w_var[u, d])
                H[q] += m * (linear[p] - precision[p] * margin[p])
            for q in range(n_pairs):
                v = h_prior_var[q, d]
                h_var[q, d] = v / (1.0 + v * S[q])
                h_mean[q, d] = (h_prior_mean[q, d] + v * H[q]) / (1.0 + v * S[q])
            for p in range(n):
                margin[p] += w_mean[user[p], d] * h_mean[pair[p], d]
        bound = -_divergence(w_mean, w_var, w_prior_mean, w_prior_var)
        bound -= _divergence(h_mean, h_var, h_prior_mean, h_prior_var)
        for p in range(n):
            u, q = user[p], pair[p]
            v = 0.0
            for d in range(D):
                v += w_mean[u, d] ** 2 * h_var[q, d] + w_var[u, d] * (h_mean[q, d] ** 2 + h_var[q, d])
            bound += linear[p] * margin[p] - 0.5 * precision[p] * (margin[p] ** 2 + v)
        bounds[done] = bound
        if bound - last < tolerance:
            return done + 1
        last = bound
    return most
