"""Predictions for known users, the consensus integrated out: E dᵀf and Var dᵀf of population.md section 3.

S, the prior covariance of utilities of :mod:`predilect.people.state`, takes the place of Σ there.
"""

from __future__ import annotations

import numpy as np

from predilect._compile import inner_kernel, kernel
from predilect.people.state import person_statistics, prior_mean, prior_state, replay

_QUERIES_AT_ONCE = 256


@kernel
def person_sums(u, answer_ptr, item_ptr, item_idx, la, lb, weight, traits, lam, eta, cov, Phi, rho, m, shift):
    """The sums x (k) and Q (k x k) of user u at the stored sites."""
    first = answer_ptr[u]
    n = answer_ptr[u + 1] - first
    items = item_idx[item_ptr[u] : item_ptr[u + 1]]
    k = items.shape[0]
    in_pair_space = n <= k
    d = n if in_pair_space else k
    C = np.empty((d, d))
    mu = np.empty(d)
    c = np.empty(d)
    x = np.empty(k)
    own = np.empty(k)
    Q = np.empty((k, k))
    P = np.empty((d, d))
    W = np.empty((d, d))
    R = np.empty((d if Phi.shape[1] > 0 else 0, Phi.shape[1]))
    prior_mean(u, items, m, shift, traits, own)
    prior_state(in_pair_space, items, la, lb, first, n, k, cov, Phi, rho, own, C, mu, R)
    replay(in_pair_space, la, lb, weight, lam, eta, first, n, d, C, mu, c)
    person_statistics(in_pair_space, la, lb, weight, lam, eta, first, n, k, C, mu, x, Q, P, W)
    return x, Q


@kernel
def predict_margins(
    users, query_ptr, left, right, answer_ptr, item_ptr, item_idx, la, lb, weight, traits, lam, eta, cov, Phi, rho, m,
    shift, C_m, own_C, C_shift, mean, var,
):  # fmt: skip
    """Mean and variance of the margins of queries grouped by user, into ``mean`` and ``var``.

    Queries ``query_ptr[i] .. query_ptr[i + 1]`` belong to user ``users[i]``. ``own_C`` is the item-specific variance of
    the consensus, ``C_shift`` the posterior covariance of the effect of one trait.
    """
    for i in range(users.shape[0]):
        u = users[i]
        items = item_idx[item_ptr[u] : item_ptr[u + 1]]
        x, Q = person_sums(u, answer_ptr, item_ptr, item_idx, la, lb, weight, traits, lam, eta, cov, Phi, rho, m, shift)
        first = query_ptr[i]
        last = query_ptr[i + 1]
        C = C_m
        if traits.shape[1] > 0:
            size = 0.0
            for j in range(traits.shape[1]):
                size += traits[u, j] ** 2
            C = np.empty(C_m.shape)
            for j in range(C.shape[0]):
                for h in range(C.shape[1]):
                    C[j, h] = C_m[j, h] + size * C_shift[j, h]
        if Phi.shape[1] == 0:
            _by_items(items, x, Q, left, right, first, last, cov, C, mean, var)
        else:
            _by_basis(items, x, Q, left, right, first, last, cov, Phi, rho, C, own_C, mean, var)
        for q in range(first, last):
            mean[q] += m[left[q]] - m[right[q]]
            for j in range(traits.shape[1]):
                mean[q] += (shift[left[q], j] - shift[right[q], j]) * traits[u, j]


@inner_kernel
def _by_items(items, x, Q, left, right, first, last, Sigma, C_m, mean, var):
    """Change of the mean, and the variance, of one user's queries, where the items are the basis."""
    k = items.shape[0]
    own_C = np.empty((k, k))
    for j in range(k):
        for h in range(k):
            own_C[j, h] = C_m[items[j], items[h]]
    for start in range(first, last, _QUERIES_AT_ONCE):
        n = min(_QUERIES_AT_ONCE, last - start)
        c = np.empty((n, k))
        for q in range(n):
            for j in range(k):
                c[q, j] = Sigma[left[start + q], items[j]] - Sigma[right[start + q], items[j]]
        e = np.dot(c, Q)
        shared = np.dot(e, own_C)
        for q in range(n):
            a = left[start + q]
            b = right[start + q]
            value = 0.0
            spread = Sigma[a, a] + Sigma[b, b] - 2.0 * Sigma[a, b]
            spread += C_m[a, a] + C_m[b, b] - 2.0 * C_m[a, b]
            for j in range(k):
                value += c[q, j] * x[j]
                spread += e[q, j] * (shared[q, j] - c[q, j] - 2.0 * (C_m[a, items[j]] - C_m[b, items[j]]))
            mean[start + q] = value
            var[start + q] = spread


@inner_kernel
def _by_basis(items, x, Q, left, right, first, last, cov, Phi, rho, C_m, own_C, mean, var):
    """The same with a basis: b = d - Q c becomes Φᵀ b, and item-specific variances are added."""
    k = items.shape[0]
    n = last - first
    M = Phi.shape[1]
    rows = np.empty((k, M))
    prior = np.empty((k, M))
    for j in range(k):
        for h in range(M):
            rows[j, h] = Phi[items[j], h]
            prior[j, h] = cov[items[j], h]
    direction = np.empty((n, M))
    spread = np.empty(n)
    for q in range(n):
        a = left[first + q]
        b = right[first + q]
        total = 0.0
        for j in range(M):
            direction[q, j] = Phi[a, j] - Phi[b, j]
            total += direction[q, j] * (cov[a, j] - cov[b, j])
        spread[q] = total
    c = np.dot(direction, prior.T)
    if rho.shape[0] > 0:
        for q in range(n):
            a = left[first + q]
            b = right[first + q]
            spread[q] += rho[a] + rho[b] + own_C[a] + own_C[b]
            for j in range(k):
                if items[j] == a:
                    c[q, j] += rho[a]
                elif items[j] == b:
                    c[q, j] -= rho[b]
    e = np.dot(c, Q)
    rest = np.dot(e, rows)
    for q in range(n):
        for j in range(M):
            rest[q, j] = direction[q, j] - rest[q, j]
    shared = np.dot(rest, C_m)
    for q in range(n):
        value = 0.0
        total = spread[q]
        for j in range(k):
            value += c[q, j] * x[j]
            total -= c[q, j] * e[q, j]
        for j in range(M):
            total += shared[q, j] * rest[q, j]
        if rho.shape[0] > 0:
            for j in range(k):
                total += own_C[items[j]] * e[q, j] ** 2
                if items[j] == left[first + q]:
                    total -= 2.0 * own_C[items[j]] * e[q, j]
                elif items[j] == right[first + q]:
                    total += 2.0 * own_C[items[j]] * e[q, j]
        mean[first + q] = value
        var[first + q] = total


@kernel
def centred_utilities(
    users, answer_ptr, item_ptr, item_idx, la, lb, weight, traits, lam, eta, cov, Phi, rho, m, shift, C_m, mean, var
):
    """Mean and variance of all utilities of ``users``, centred over the items, (n, n_items); no basis, no traits."""
    n_items = m.shape[0]
    Sigma = cov
    Sigma_sum = np.zeros(n_items)
    C_sum = np.zeros(n_items)
    for i in range(n_items):
        for j in range(n_items):
            Sigma_sum[i] += Sigma[i, j]
            C_sum[i] += C_m[i, j]
    V_sum = np.empty(n_items)
    for row in range(users.shape[0]):
        u = users[row]
        items = item_idx[item_ptr[u] : item_ptr[u + 1]]
        k = items.shape[0]
        x, Q = person_sums(u, answer_ptr, item_ptr, item_idx, la, lb, weight, traits, lam, eta, cov, Phi, rho, m, shift)
        F = np.zeros((n_items, k))  # Σ_·o Q
        column = np.zeros(k)  # 1ᵀ F
        for i in range(n_items):
            total = m[i]
            for j in range(k):
                s = Sigma[i, items[j]]
                total += s * x[j]
                for h in range(k):
                    F[i, h] += s * Q[j, h]
            mean[row, i] = total
            for j in range(k):
                column[j] += F[i, j]
        weights = np.zeros(k)  # Σ_o· 1 + C_o· 1 - C_oo Fᵀ 1
        for j in range(k):
            weights[j] = Sigma_sum[items[j]] + C_sum[items[j]]
            for h in range(k):
                weights[j] -= C_m[items[j], items[h]] * column[h]
        grand = 0.0
        average = 0.0
        for i in range(n_items):
            total = Sigma_sum[i] + C_sum[i]
            for j in range(k):
                total -= F[i, j] * weights[j] + C_m[i, items[j]] * column[j]
            V_sum[i] = total
            grand += total
            average += mean[row, i]
        for i in range(n_items):
            own = Sigma[i, i] + C_m[i, i]
            for j in range(k):
                cross = 0.0
                for h in range(k):
                    cross += C_m[items[j], items[h]] * F[i, h]
                own += F[i, j] * (cross - Sigma[i, items[j]] - 2.0 * C_m[i, items[j]])
            mean[row, i] -= average / n_items
            var[row, i] = own - 2.0 * V_sum[i] / n_items + grand / (n_items * n_items)
