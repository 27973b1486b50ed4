"""Compiled predictions of people's margins and utilities from the sums of their answers (population.md section 3).

A ``Phi`` of None: the items are the basis, as in :mod:`predilect.inference.people.ep`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.people.ep import person_sums


class Consensus(NamedTuple):
    """Posterior covariances of the consensus, of its item-specific parts, and of the effects of traits on it.

    ``C_shift`` (n, M, M) may have no rows: the last n - 1 traits have one each, those before them share the first.
    """

    C_m: Any  # (M, M)
    own_C: Any  # variances, (n_items,), or none
    C_shift: Any


class Queries(NamedTuple):
    """Pairs, grouped by user: ``ptr[i] .. ptr[i + 1]`` are of the i-th; ``asked`` (n, n_effects): their covariates, in
    the units of ``slope_columns``.
    """

    ptr: Any
    left: Any
    right: Any
    asked: Any


@kernel
def predict_margins(users, queries, columns, among_items, prior, Phi, consensus, mean, var):
    """Mean and variance of the margins of queries, into ``mean`` and ``var``; the first are those of ``users[0]``."""
    m, shift, cov = prior.mean, prior.shift, prior.cov
    left, right, traits = queries.left, queries.right, columns.traits
    for i in range(users.shape[0]):
        u = users[i]
        items = columns.item_idx[columns.item_ptr[u] : columns.item_ptr[u + 1]]
        x, Q = person_sums(u, columns, among_items, prior, Phi)
        first = queries.ptr[i]
        last = queries.ptr[i + 1]
        C = _with_effects(u, traits, consensus.C_m, consensus.C_shift)
        if Phi is None:
            _by_items(items, x, Q, queries, first, last, cov, C, mean, var)
        else:
            _by_basis(items, x, Q, queries, first, last, prior, Phi, C, consensus.own_C, mean, var)
        for q in range(first, last):
            mean[q] += m[left[q]] - m[right[q]]
            for j in range(traits.shape[1]):
                mean[q] += (shift[left[q], j] - shift[right[q], j]) * traits[u, j]


@inner_kernel
def _with_effects(u, traits, C_m, C_shift):
    """Covariance of the consensus and of the effects of the user's traits."""
    if C_shift.shape[0] == 0:  # None instead would have the whole loop compiled once more
        return C_m
    C = np.empty(C_m.shape)
    for j in range(C.shape[0]):
        for h in range(C.shape[1]):
            C[j, h] = C_m[j, h]
    for t in range(C_shift.shape[0]):
        last = traits.shape[1] - C_shift.shape[0] + t
        size = 0.0
        for j in range(last if t else 0, last + 1):
            size += traits[u, j] * traits[u, j]
        if size > 0.0:
            for j in range(C.shape[0]):
                for h in range(C.shape[1]):
                    C[j, h] += size * C_shift[t, j, h]
    return C


@inner_kernel
def _product(c, Q, out):
    """The row c Q, into ``out``; ``numpy.dot`` takes four times as long to compile."""
    for j in range(c.shape[0]):
        out[j] = 0.0
    for i in range(c.shape[0]):
        for j in range(c.shape[0]):
            out[j] += c[i] * Q[i, j]


@inner_kernel
def _asked(c, Q, own_C, e, shared):
    """Q c into ``e``, and C times its part on the own items into ``shared``."""
    _product(c, Q, e)  # by itself, as BLAS cuts a product of matrices by its number of rows
    _product(e[: own_C.shape[0]], own_C, shared)


@inner_kernel
def _by_items(items, x, Q, queries, first, last, Sigma, C_m, mean, var):
    """Change of the mean, and the variance, of one user's queries, where the items are the basis.

    What a query takes of Q and C is found once for each item that is asked about, and each own effect.
    """
    left, right, asked = queries.left, queries.right, queries.asked
    n_items = Sigma.shape[0]
    k = items.shape[0]
    s = x.shape[0]
    own_C = np.empty((k, k))
    for j in range(k):
        for h in range(k):
            own_C[j, h] = C_m[items[j], items[h]]
    place = np.empty(n_items, dtype=np.int64)
    for i in range(n_items):
        place[i] = -1
    n = s - k
    most = n + min(n_items, 2 * (last - first))
    E = np.empty((most, s))
    shared = np.empty((most, k))
    c = np.zeros(s)
    for j in range(n):
        c[k + j] = 1.0
        _asked(c, Q, own_C, E[j], shared[j])
        c[k + j] = 0.0
    for q in range(first, last):
        for side in range(2):
            i = right[q] if side else left[q]
            if place[i] < 0:
                for j in range(k):
                    c[j] = Sigma[i, items[j]]
                _asked(c, Q, own_C, E[n], shared[n])
                place[i] = n
                n += 1
        a = left[q]
        b = right[q]
        at_a = place[a]
        at_b = place[b]
        value = 0.0
        spread = Sigma[a, a] + Sigma[b, b] - 2.0 * Sigma[a, b]
        spread += C_m[a, a] + C_m[b, b] - 2.0 * C_m[a, b]
        for j in range(k):
            of_pair = Sigma[a, items[j]] - Sigma[b, items[j]]
            e = E[at_a, j] - E[at_b, j]
            of_all = shared[at_a, j] - shared[at_b, j]
            for h in range(s - k):
                e += asked[q, h] * E[h, j]
                of_all += asked[q, h] * shared[h, j]
            value += of_pair * x[j]
            spread += e * (of_all - of_pair - 2.0 * (C_m[a, items[j]] - C_m[b, items[j]]))
        for j in range(s - k):
            e = E[at_a, k + j] - E[at_b, k + j]
            for h in range(s - k):
                e += asked[q, h] * E[h, k + j]
            value += asked[q, j] * x[k + j]
            spread += asked[q, j] * (asked[q, j] - e)
        mean[q] = value
        var[q] = spread


@inner_kernel
def _by_basis(items, x, Q, queries, first, last, law, Phi, C_m, own_C, mean, var):
    """The same with a basis: b = d - Q c becomes Φᵀ b, and item-specific variances are added."""
    left, right, asked = queries.left, queries.right, queries.asked
    cov, rho = law.cov, law.rho
    k = items.shape[0]
    s = x.shape[0]
    n = last - first
    M = Phi.shape[1]
    rows = np.zeros((s, M))
    prior = np.zeros((s, M))
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
    for q in range(n):
        for j in range(k, s):
            c[q, j] = asked[first + q, j - k]
            spread[q] += c[q, j] ** 2
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
        for j in range(s):
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
def centred_utilities(users, columns, among_items, prior, Phi, C_m, mean, var):
    """Mean and variance of all utilities of ``users``, centred over the items, (n, n_items); no basis, no traits."""
    m, Sigma = prior.mean, prior.cov
    n_items = m.shape[0]
    Sigma_sum = np.zeros(n_items)
    C_sum = np.zeros(n_items)
    for i in range(n_items):
        for j in range(n_items):
            Sigma_sum[i] += Sigma[i, j]
            C_sum[i] += C_m[i, j]
    V_sum = np.empty(n_items)
    for row in range(users.shape[0]):
        u = users[row]
        items = columns.item_idx[columns.item_ptr[u] : columns.item_ptr[u + 1]]
        k = items.shape[0]
        x, Q = person_sums(u, columns, among_items, prior, Phi)
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
