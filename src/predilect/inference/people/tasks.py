"""Rows of a task among a person's items: the noise that they share joins the state while the task is worked on.

The utility with noise of variance ½, v, of each item with several rows of the task is a further state; the noise of
an item with one row is that row's own. So with ν, of 0, ½ or 1, the row's own noise, a site (Λ, η) of its margin is one
of (Λ', η') = (Λ, η) / (1 + ν Λ) on the margin without it, aᵀ v + bᵀ x for the state x = (u, γ) of the person's
utilities and own effects of covariates: a rank-one update of the state with v, as any other answer's. Given x, v has
under the sites of the task covariance K = (2 I + Aᵀ Λ' A)⁻¹ and mean K (M x + Aᵀ η') with M = 2 P - Aᵀ Λ' B, where P x
is v without noise: so it is found again when the task's turn comes (population.md, "Several alternatives"). O((k + r)²)
a row for k items, of which r have several rows of the task: one, of a best of many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel


class Block(NamedTuple):
    """Room for one task at a time, of a person with k items, r of them in several of its rows, and d states."""

    order: Any  # in which the rows are worked on, (n,)
    noise: Any  # variance of the own noise of each row that is not in the state, (n,)
    n_rows: Any  # of the task, of each own item, (k,)
    at: Any  # position in the state of its utility: with noise where the item has several rows of the task, (k,)
    K: Any  # (r, r)
    score: Any  # Aᵀ η', (r,)
    M: Any  # (r, d)
    W: Any  # K M, (r, d)


@inner_kernel
def room_of_task(k, q, n, among_items):
    """Room for a task of a person with k items, q own effects and n rows; None where ``among_items`` is."""
    if among_items is None:
        return None
    whole = np.empty((2, k), dtype=np.int64)
    return Block(
        np.empty(n, dtype=np.int64), np.empty(n), whole[0], whole[1], np.empty((k, k)), np.empty(k),
        np.empty((k, k + q)), np.empty((k, k + q)),
    )  # fmt: skip


@inner_kernel
def order_rows(is_of_margins, task, order, noise):
    """Rows of one task after each other, where the first of them is, unless the state is of the margins; no noise."""
    for p in range(task.shape[0]):
        order[p] = p
        noise[p] = 0.0
    if is_of_margins:
        return
    t = 0
    for p in range(task.shape[0]):
        if noise[p] == 0.0:  # not placed yet
            order[t] = p
            t += 1
            for q in range(p + 1, task.shape[0]):
                if task[q] == task[p] >= 0:
                    noise[q] = 1.0
                    order[t] = q
                    t += 1
    for p in range(task.shape[0]):
        noise[p] = 0.0


@inner_kernel
def sign(item, a, b):
    """What ``item`` counts in item a less item b."""
    return 1.0 * (item == a) - 1.0 * (item == b)


@inner_kernel
def starts_task(t, is_of_margins, task, order):
    """Whether row ``order[t]`` is the first of a task that is worked on among items."""
    p = order[t]
    return not is_of_margins and task[p] >= 0 and (t == 0 or task[order[t - 1]] != task[p])


@inner_kernel
def begin_task(t, are_new, shape, answers, state, block):
    """The utilities with noise of the task whose first row is ``order[t]``, as the last states; size of the state.

    Under the sites of its rows, which C has in it, unless they ``are_new``.
    """
    C, mu, y, a, b, m, d = state.C, state.mu, state.c, state.a, state.b, shape.m, shape.d
    n_rows, at, K, score, M, W = block.n_rows, block.at, block.K, block.score, block.M, block.W
    left, right, lam, eta, slope_columns = answers.left, answers.right, answers.lam, answers.eta, answers.slope_columns
    order, noise, task = block.order, block.noise, answers.task
    stop = t + 1
    while stop < task.shape[0] and task[order[stop]] == task[order[t]]:
        stop += 1
    rows = order[t:stop]
    r = _states_of_rows(rows, d, left, right, n_rows, at, a, b, noise)
    for h in range(r):
        score[h] = 0.0
        for i in range(r):
            K[h, i] = 0.5 if h == i else 0.0
        for i in range(d):
            M[h, i] = 0.0
    for i in range(m):
        if at[i] >= d:
            M[at[i] - d, i] = 2.0
    if not are_new:
        for p in rows:
            own = 1.0 + noise[p] * lam[p]
            total = lam[p] / own
            _add_precision(r, total, a[p] - d, b[p] - d, K, y)
            for side in range(2):
                one, other, factor = (b[p], a[p], -1.0) if side else (a[p], b[p], 1.0)
                if one >= d:
                    score[one - d] += factor * eta[p] / own
                    if other < d:
                        M[one - d, other] += total
                    for j in range(m, d):
                        M[one - d, j] -= factor * total * slope_columns[p, j - m]
    _product(r, d, K, M, W)
    for g in range(r):
        mu[d + g] = 0.0
        for h in range(r):
            mu[d + g] += K[g, h] * score[h]
        for i in range(d):
            mu[d + g] += W[g, i] * mu[i]
            C[d + g, i] = 0.0
    for i in range(d):
        if i < m and n_rows[i] == 0:
            continue
        for j in range(i + 1):
            y[j] = C[i, j]
        for j in range(i + 1, d):
            y[j] = C[j, i]
        for g in range(r):
            x = W[g, i]
            for j in range(d):
                C[d + g, j] += x * y[j]
    for g in range(r):
        for h in range(g + 1):
            C[d + g, d + h] = K[g, h]
        for i in range(d):
            if i >= m or n_rows[i] > 0:
                for h in range(g + 1):
                    C[d + g, d + h] += C[d + g, i] * W[h, i]
    return d + r


@inner_kernel
def _states_of_rows(rows, d, left, right, n_rows, at, a, b, noise):
    """States of the margins of the rows of a task, and the noise of their own; number of utilities with noise."""
    for i in range(n_rows.shape[0]):
        n_rows[i] = 0
        at[i] = i
    for p in rows:
        n_rows[left[p]] += 1
        n_rows[right[p]] += 1
    r = 0
    for p in rows:
        for i in (left[p], right[p]):
            if n_rows[i] > 1 and at[i] < d:
                at[i] = d + r
                r += 1
        a[p], b[p] = at[left[p]], at[right[p]]
        noise[p] = 0.5 * (n_rows[left[p]] == 1) + 0.5 * (n_rows[right[p]] == 1)
    return r


@inner_kernel
def _add_precision(r, precision, a, b, K, y):
    """Add a precision to the difference of states a and b, if they are not negative, of covariance K (r, r)."""
    for h in range(r):
        y[h] = (K[h, a] if a >= 0 else 0.0) - (K[h, b] if b >= 0 else 0.0)
    gain = precision / (1.0 + precision * ((y[a] if a >= 0 else 0.0) - (y[b] if b >= 0 else 0.0)))
    for h in range(r):
        along = gain * y[h]
        if along != 0.0:
            for i in range(r):
                K[h, i] -= along * y[i]


@inner_kernel
def _product(r, d, K, M, W):
    """K M into W (r, d)."""
    for g in range(r):
        for i in range(d):
            W[g, i] = 0.0
        for h in range(r):
            for i in range(d):
                W[g, i] += K[g, h] * M[h, i]


@inner_kernel
def add_shared_noise(r, m, d, n_rows, at, M, W, P):
    """Adds to P (d, d) what rows with a utility with noise tell of the other states."""
    for i in range(d):
        if i < m and n_rows[i] == 0:
            continue
        if i < m and at[i] >= d:
            P[i, i] += 2.0
        for h in range(r):
            x = W[h, i]
            for j in range(d):
                P[i, j] -= x * M[h, j]
