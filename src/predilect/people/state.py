"""Gaussian state of one user in pair or item space (population.md sections 2, 3).

A ``Phi`` of None: the items are the basis. Numba compiles nothing of a branch that ``Phi is None`` rules out, and what
only a basis of functions needs takes as long to compile as all else. So with a ``sway`` of None: answers have no
covariates. One without columns: nobody has effects of them of their own.
"""

from __future__ import annotations

import numpy as np

from predilect._compile import inner_kernel, kernel
from predilect.people.rank_one import add_effects, catch_up, direction, late_updates, rank_one, take_in


@inner_kernel
def _prior_state(in_pair_space, items, la, lb, first, n, k, cov, own, C, mu):
    """Fill the lower triangle of the user's prior covariance, and its mean, where the items are the basis."""
    for i in range(n if in_pair_space else k):
        mu[i] = own[la[first + i]] - own[lb[first + i]] if in_pair_space else own[i]
    if in_pair_space:
        with_items = np.empty(k)
        for p in range(n):
            a = items[la[first + p]]
            b = items[lb[first + p]]
            for i in range(k):
                with_items[i] = cov[a, items[i]] - cov[b, items[i]]
            for q in range(p + 1):
                C[p, q] = with_items[la[first + q]] - with_items[lb[first + q]]
    else:
        for i in range(k):
            for j in range(i + 1):
                C[i, j] = cov[items[i], items[j]]


@inner_kernel
def _prior_state_on_basis(in_pair_space, items, la, lb, first, n, k, cov, Phi, rho, own, C, mu, R):
    """The same on a basis of functions, of which the rows go into ``R``."""
    d = n if in_pair_space else k
    L = np.empty((d, Phi.shape[1]))
    for i in range(d):
        mu[i] = own[la[first + i]] - own[lb[first + i]] if in_pair_space else own[i]
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
def needs_pair_space(task, first, n, k):
    """Whether a user's state is of the margins: it is the smaller one, or rows of a task share noise, which items have
    no place for.
    """
    if n <= k:
        return True
    for p in range(first, first + n):  # noqa: SIM110 -- Numba compiles no generators
        if task[p] >= 0:
            return True
    return False


@inner_kernel
def shared_noise(a, b, a2, b2):
    """Covariance of the noise of two rows of one task: each item has noise of variance ½."""
    total = 0.0
    if a == a2:
        total += 0.5
    if b == b2:
        total += 0.5
    if a == b2:
        total -= 0.5
    if b == a2:
        total -= 0.5
    return total


@inner_kernel
def _prior_of_effects(in_pair_space, sway, first, n, k, a, C, mu):
    """What own effects of covariates add to the prior, before utilities are multiplied by the consistency a."""
    if in_pair_space:
        for p in range(n):
            for q in range(p + 1):
                for j in range(sway.shape[1]):
                    C[p, q] += sway[first + p, j] * sway[first + q, j]
        return
    for i in range(k, k + sway.shape[1]):
        mu[i] = 0.0
        for j in range(i):
            C[i, j] = 0.0
        C[i, i] = a * a


@inner_kernel
def n_effects(sway):
    """Number of covariates of which people have effects of their own."""
    return 0 if sway is None else sway.shape[1]


@inner_kernel
def room_of_state(d, k, n, Phi):
    """Arrays ``C, mu, c, own, R, before`` for a state of size d, on k items and of n answers.

    Made here for all callers: Numba compiles what makes an array once for each function that is called from Python.
    """
    M = 0 if Phi is None else Phi.shape[1]
    return np.empty((d, d)), np.empty(d), np.empty(d), np.empty(k), np.empty((d, M)), np.empty(n, dtype=np.int64)


@inner_kernel
def room_of_sums(s, d):
    """Arrays ``x, Q, W`` for the sums of a person with a state of size d."""
    return np.empty(s), np.empty((s, s)), np.empty((s, d))


@inner_kernel
def prior_of_person(
    u, in_pair_space, items, la, lb, task, sway, first, n, k, traits, consistency, cov, Phi, rho, m, shift, own, C, mu,
    R, before,
):  # fmt: skip
    """Fill the user's prior: means ``own`` (k) and ``mu`` (d), the lower triangle ``C``, and the rows ``R`` of a basis.

    In pair space also the row of the same task ``before`` each (n), -1 for none.

    Utilities but for ``R`` are multiplied by the user's consistency a, so that answers have noise of variance 1. Rows
    of a ``task`` have it in ``C``, as they share it. The user's own effects of covariates, in standard deviations of
    their spread, are in the margins in pair space, and the last states in item space.
    """
    a = consistency[u]
    for i in range(k):
        own[i] = m[items[i]]
        for j in range(traits.shape[1]):
            own[i] += shift[items[i], j] * traits[u, j]
        own[i] *= a
    if Phi is None:
        _prior_state(in_pair_space, items, la, lb, first, n, k, cov, own, C, mu)
    else:
        _prior_state_on_basis(in_pair_space, items, la, lb, first, n, k, cov, Phi, rho, own, C, mu, R)
    if sway is not None:
        _prior_of_effects(in_pair_space, sway, first, n, k, a, C, mu)
    for i in range(n if in_pair_space else k):
        for j in range(i + 1):
            C[i, j] *= a * a
    if in_pair_space:
        for p in range(n):
            g = first + p
            before[p] = -1
            if task[g] < 0:
                continue
            C[p, p] += 1.0
            for q in range(p - 1, -1, -1):
                if task[first + q] == task[g]:
                    before[p] = q
                    break
            q = before[p]
            while q >= 0:
                h = first + q
                C[p, q] += shared_noise(la[g], lb[g], la[h], lb[h])
                q = before[q]


@inner_kernel
def unscale(a, x, Q, n):
    """Sums (n), (n, n) of utilities that were multiplied by the consistency, as those of the utilities."""
    for i in range(n):
        x[i] *= a
        for j in range(n):
            Q[i, j] *= a * a


@inner_kernel
def replay(in_pair_space, la, lb, weight, sway, lam, eta, first, n, d, C, mu, c, late):
    """Update the prior state to the posterior under the stored sites; log |I + Λ^½ G Λ^½|."""
    log_det = 0.0
    n_late = 0
    for p in range(n):
        if lam[first + p] == 0.0 and eta[first + p] == 0.0:
            continue
        w = weight[first + p]
        a = p if in_pair_space else la[first + p]
        b = -1 if in_pair_space else lb[first + p]
        v, mean = direction(C, mu, a, b, d, c)
        if sway is not None and not in_pair_space:
            v, mean = add_effects(C, mu, a, b, d, c, sway, first + p)
        v -= catch_up(late, n_late, a, b, sway, first + p, d, c)
        change, n_late = rank_one(C, mu, c, d, w * lam[first + p], w * eta[first + p], v, mean, late, n_late)
        log_det += change
    take_in(C, d, late, n_late)
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
def _add(value, a, b, Q):
    """Add to Q a value times the square of the design of an answer about items a and b."""
    Q[a, a] += value
    Q[a, b] -= value
    Q[b, a] -= value
    Q[b, b] += value


@inner_kernel
def _add_effects(value, a, b, sway, g, k, Q):
    """The same for answer g, in the rows and columns of own effects of covariates."""
    for i in range(sway.shape[1]):
        Q[k + i, a] += value * sway[g, i]
        Q[k + i, b] -= value * sway[g, i]
        Q[a, k + i] += value * sway[g, i]
        Q[b, k + i] -= value * sway[g, i]
        for j in range(sway.shape[1]):
            Q[k + i, k + j] += value * sway[g, i] * sway[g, j]


@inner_kernel
def person_statistics(in_pair_space, la, lb, weight, sway, lam, eta, first, n, k, C, mu, c, x, Q, W):
    """The sums x = Xᵀ α (s) and Xᵀ Q X (s x s), on the k own items of the user and the own effects of covariates."""
    s = k + n_effects(sway)
    for i in range(s):
        x[i] = 0.0
        for j in range(s):
            Q[i, j] = 0.0
        for j in range(n if in_pair_space else s):
            W[i, j] = 0.0
    if in_pair_space:
        for p in range(n):
            g = first + p
            a = la[g]
            b = lb[g]
            total = weight[g] * lam[g]
            alpha = weight[g] * eta[g] - total * mu[p]
            x[a] += alpha
            x[b] -= alpha
            # Of Xᵀ Q X = Z + Zᵀ, Z = Xᵀ L X with the lower triangle L of Q and half of its diagonal; W = Xᵀ L.
            for q in range(p + 1):
                c[q] = -total * C[p, q] * weight[first + q] * lam[first + q]
            c[p] = 0.5 * (c[p] + total)
            for q in range(p + 1):
                W[a, q] += c[q]
                W[b, q] -= c[q]
            if sway is not None:
                for j in range(sway.shape[1]):
                    x[k + j] += sway[g, j] * alpha
                    for q in range(p + 1):
                        W[k + j, q] += sway[g, j] * c[q]
        for q in range(n):
            a = la[first + q]
            b = lb[first + q]
            for i in range(s):
                Q[a, i] += W[i, q]
                Q[b, i] -= W[i, q]
                if sway is not None:
                    for j in range(sway.shape[1]):
                        Q[k + j, i] += W[i, q] * sway[first + q, j]
        for i in range(s):
            for j in range(i + 1):
                Q[i, j] += Q[j, i]
                Q[j, i] = Q[i, j]
        return
    # Item space: P = Xᵀ Λ X is a weighted graph Laplacian and Xᵀ Q X = P - P S P.
    for g in range(first, first + n):
        a = la[g]
        b = lb[g]
        total = weight[g] * lam[g]
        mean = mu[a] - mu[b]
        if sway is not None:
            for j in range(sway.shape[1]):
                mean += sway[g, j] * mu[k + j]
        alpha = weight[g] * eta[g] - total * mean
        x[a] += alpha
        x[b] -= alpha
        _add(total, a, b, Q)
        if sway is not None:
            for j in range(sway.shape[1]):
                x[k + j] += sway[g, j] * alpha
            _add_effects(total, a, b, sway, g, k, Q)
    for i in range(s):  # W = P S, with P in Q
        for h in range(s):
            value = Q[i, h]
            if value != 0.0:
                for j in range(h + 1):
                    W[i, j] += value * C[h, j]
                for j in range(h + 1, s):
                    W[i, j] += value * C[j, h]
    for g in range(first, first + n):  # Q = P - W P, the rows of P being those of Xᵀ Λ X
        a = la[g]
        b = lb[g]
        total = weight[g] * lam[g]
        for i in range(s):
            change = W[i, a] - W[i, b]
            if sway is not None:
                for j in range(sway.shape[1]):
                    change += W[i, k + j] * sway[g, j]
            flow = total * change
            Q[i, a] -= flow
            Q[i, b] += flow
            if sway is not None:
                for j in range(sway.shape[1]):
                    Q[i, k + j] -= flow * sway[g, j]
    for i in range(s):
        for j in range(i):
            Q[j, i] = Q[i, j]


@kernel
def person_sums(
    u, answer_ptr, item_ptr, item_idx, la, lb, task, weight, sway, traits, consistency, lam, eta, cov, Phi, rho, m,
    shift,
):  # fmt: skip
    """The sums x (s) and Q (s x s) of user u at the stored sites, on own items and own effects of covariates."""
    first = answer_ptr[u]
    n = answer_ptr[u + 1] - first
    items = item_idx[item_ptr[u] : item_ptr[u + 1]]
    k = items.shape[0]
    in_pair_space = needs_pair_space(task, first, n, k)
    s = k + n_effects(sway)
    d = n if in_pair_space else s
    C, mu, c, own, R, before = room_of_state(d, k, n, Phi)
    x, Q, W = room_of_sums(s, d)
    prior_of_person(
        u, in_pair_space, items, la, lb, task, sway, first, n, k, traits, consistency, cov, Phi, rho, m, shift, own, C,
        mu, R, before,
    )  # fmt: skip
    replay(in_pair_space, la, lb, weight, sway, lam, eta, first, n, d, C, mu, c, late_updates(d))
    person_statistics(in_pair_space, la, lb, weight, sway, lam, eta, first, n, k, C, mu, c, x, Q, W)
    unscale(consistency[u], x, Q, s)
    return x, Q
