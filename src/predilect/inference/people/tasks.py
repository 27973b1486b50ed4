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
    """Room for one task at a time, of a person with k items and q own effects of covariates; s = m + q, d = k + q.

    The first three are of all rows of the person, (n,), each right while the row's task is loaded.
    """

    a: Any  # positions in the state of the row's utilities, with noise where the item has several rows of the task
    b: Any
    noise: Any  # variance of the row's own noise
    members: Any  # positions of the task's m items, and then of the effects, in the state, (s,)
    place: Any  # of each own item among the members, (k,)
    n_rows: Any  # of each of the task's items, (m,)
    at: Any  # position in the state of its utility, (m,)
    K: Any  # (r, r)
    told: Any  # Aᵀ η', (r,)
    M: Any  # (r, s)
    W: Any  # (K M)ᵀ, (s, r)
    y: Any  # scratch, (d,)
    rows: Any  # covariances of the utilities with noise with the state, (r, d)


@inner_kernel
def room_of_task(k, q, n, among_items):
    """Room for a task of at most k items of a person with n rows; None where ``among_items`` is."""
    if among_items is None:
        return None
    s = k + q
    whole = np.empty((5, max(n, s)), dtype=np.int64)
    numbers = np.empty((3, max(n, s)))
    return Block(
        whole[0], whole[1], numbers[0], np.empty(s, dtype=np.int64), whole[2], whole[3], whole[4], np.empty((k, k)),
        numbers[1], np.empty((k, s)), np.empty((s, k)), numbers[2], np.empty((s, s)),
    )  # fmt: skip


@inner_kernel
def size_with_noise(d, k, among_items):
    """Size of the state with the utilities with noise of a task; those of at most k items."""
    return d if among_items is None else d + k


@inner_kernel
def chain(task, before, after):
    """The row of the same task ``before`` and ``after`` each, (n,); -1 for none."""
    for p in range(task.shape[0]):
        before[p] = -1
        after[p] = -1
        if task[p] < 0:
            continue
        for q in range(p - 1, -1, -1):
            if task[q] == task[p]:
                before[p] = q
                after[q] = p
                break


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
def _join(i, m, members, place, n_rows):
    """Make an own item a member, or count one more row of it; how many members there are."""
    at = place[i]
    if 0 <= at < m and members[at] == i:
        n_rows[at] += 1
        return m
    place[i] = m
    members[m] = i
    n_rows[m] = 1
    return m + 1


@inner_kernel
def load_task(first, d, q, left, right, after, block):
    """The items, effects and rows of the task whose first row is ``first``; numbers of items, and of those with several
    rows.
    """
    members, place, n_rows, at = block.members, block.place, block.n_rows, block.at
    p = first
    m = 0
    while p >= 0:
        m = _join(left[p], m, members, place, n_rows)
        m = _join(right[p], m, members, place, n_rows)
        p = after[p]
    r = 0
    for i in range(m):
        at[i] = members[i]
        if n_rows[i] > 1:
            at[i] = d + r
            r += 1
    for j in range(q):
        members[m + j] = d - q + j
    p = first
    while p >= 0:
        a, b = place[left[p]], place[right[p]]
        block.a[p], block.b[p] = at[a], at[b]
        block.noise[p] = 0.5 * ((n_rows[a] == 1) + (n_rows[b] == 1))
        p = after[p]
    return m, r


@inner_kernel
def without_noise(noise, lam, eta):
    """The site (Λ', η') of a row's margin without its own noise."""
    return lam / (1.0 + noise * lam), eta / (1.0 + noise * lam)


@inner_kernel
def begin_anew(m, d, C, mu, block):
    """Utilities with noise of the task that is loaded, as the last states, where nothing is known of the noise."""
    members, at = block.members, block.at
    for i in range(m):
        g = at[i]
        if g < d:
            continue
        item = members[i]
        mu[g] = mu[item]
        for j in range(item + 1):
            C[g, j] = C[item, j]
        for j in range(item + 1, d):
            C[g, j] = C[j, item]
        for h in range(i):
            if at[h] >= d:
                C[g, at[h]] = C[g, members[h]]
        C[g, g] = C[g, item] + 0.5


@inner_kernel
def _of_others(first, m, r, d, answers, sway, after, block):
    """K, Aᵀ η', M and W of the task that is loaded, under the sites of its rows."""
    place, at, K, told, M, W, y = block.place, block.at, block.K, block.told, block.M, block.W, block.y
    s = m + (0 if sway is None else sway.shape[1])
    for h in range(r):
        told[h] = 0.0
        for i in range(r):
            K[h, i] = 0.5 if h == i else 0.0
        for i in range(s):
            M[h, i] = 0.0
    for i in range(m):
        if at[i] >= d:
            M[at[i] - d, i] = 2.0
    p = first
    while p >= 0:
        a, b = block.a[p] - d, block.b[p] - d
        lam, eta = without_noise(block.noise[p], answers.lam[p], answers.eta[p])
        for h in range(r):
            y[h] = (K[h, a] if a >= 0 else 0.0) - (K[h, b] if b >= 0 else 0.0)
        gain = lam / (1.0 + lam * ((y[a] if a >= 0 else 0.0) - (y[b] if b >= 0 else 0.0)))
        for h in range(r):
            along = gain * y[h]
            if along != 0.0:
                for i in range(r):
                    K[h, i] -= along * y[i]
        if a >= 0:
            told[a] += eta
            if b < 0:
                M[a, place[answers.right[p]]] += lam
        if b >= 0:
            told[b] -= eta
            if a < 0:
                M[b, place[answers.left[p]]] += lam
        if sway is not None:
            for j in range(sway.shape[1]):
                if a >= 0:
                    M[a, m + j] -= lam * sway[p, j]
                if b >= 0:
                    M[b, m + j] += lam * sway[p, j]
        p = after[p]
    for i in range(s):
        for g in range(r):
            W[i, g] = 0.0
        for h in range(r):
            value = M[h, i]
            if value != 0.0:
                for g in range(r):
                    W[i, g] += value * K[h, g]
    return s


MEANS, MEMBERS, ALL = 0, 1, 2  # what is wanted of the utilities with noise: also covariances with some states, or all


@inner_kernel
def begin_task(first, m, r, d, wanted, answers, sway, state, block):
    """Utilities with noise of the task that is loaded, as the last states, under the sites of its rows."""
    members, K, told, W, y, rows = block.members, block.K, block.told, block.W, block.y, block.rows
    C, mu = state.C, state.mu
    s = _of_others(first, m, r, d, answers, sway, state.after, block)
    for g in range(r):
        mu[d + g] = 0.0
        for h in range(r):
            mu[d + g] += K[g, h] * told[h]
        for i in range(s):
            mu[d + g] += W[i, g] * mu[members[i]]
    if wanted == MEANS:
        return
    n = d if wanted == ALL else s
    for g in range(r):
        for j in range(n):
            rows[g, j] = 0.0
    for i in range(s):
        item = members[i]
        if wanted == ALL:
            for j in range(item + 1):
                y[j] = C[item, j]
            for j in range(item + 1, d):
                y[j] = C[j, item]
        else:
            for j in range(s):
                y[j] = C[item, members[j]] if members[j] <= item else C[members[j], item]
        for g in range(r):
            x = W[i, g]
            for j in range(n):
                rows[g, j] += x * y[j]
    for g in range(r):
        for j in range(n):
            C[d + g, j if wanted == ALL else members[j]] = rows[g, j]
        for h in range(g + 1):
            C[d + g, d + h] = K[g, h]
        for i in range(s):
            x = C[d + g, members[i]]
            for h in range(g + 1):
                C[d + g, d + h] += x * W[i, h]


@inner_kernel
def covariance_in_task(a, b, g, p, k, sway, C):
    """Covariance of the margin of row p, between states a and b, with state g; without the row's own noise."""
    value = (C[a, g] if a >= g else C[g, a]) - (C[b, g] if b >= g else C[g, b])
    if sway is not None:
        for j in range(sway.shape[1]):
            value += sway[p, j] * (C[k + j, g] if k + j >= g else C[g, k + j])
    return value


@inner_kernel
def margin_in_task(a, b, p, k, sway, C, mu):
    """Variance and mean of the margin of row p, between states a and b; without the row's own noise."""
    v = covariance_in_task(a, b, a, p, k, sway, C) - covariance_in_task(a, b, b, p, k, sway, C)
    mean = mu[a] - mu[b]
    if sway is not None:
        for j in range(sway.shape[1]):
            v += sway[p, j] * covariance_in_task(a, b, k + j, p, k, sway, C)
            mean += sway[p, j] * mu[k + j]
    return v, mean


@inner_kernel
def with_noise(v, mean, noise, lam, eta):
    """Variance and mean of a row's margin with its own noise, without its site: from those without the noise, of site
    (Λ', η').

    Without the site's part the variance is v / (1 - Λ' v).
    """
    share = 1.0 - lam * v
    return v / share + noise, (mean - v * eta) / share


@inner_kernel
def add_task(first, m, r, d, answers, sway, state, block, x, P):
    """Add to x = Xᵀ α, and to P what the task that has begun, under its sites, tells of items and own effects."""
    members, M, W, mu = block.members, block.M, block.W, state.mu
    k = answers.items.shape[0]
    for i in range(m):
        if block.at[i] >= d:
            P[members[i], members[i]] += 2.0
    p = first
    while p >= 0:
        a, b = block.a[p], block.b[p]
        lam, eta = without_noise(block.noise[p], answers.lam[p], answers.eta[p])
        alpha = eta - lam * (mu[a] - mu[b])
        if sway is not None:
            for h in range(sway.shape[1]):
                alpha -= lam * sway[p, h] * mu[k + h]
        i, j = answers.left[p], answers.right[p]
        x[i] += alpha
        x[j] -= alpha
        if a < d:
            P[i, i] += lam
        if b < d:
            P[j, j] += lam
        if a < d and b < d:
            P[i, j] -= lam
            P[j, i] -= lam
        if sway is not None:
            for h in range(sway.shape[1]):
                told = lam * sway[p, h]
                x[k + h] += sway[p, h] * alpha
                if a < d:
                    P[k + h, i] += told
                    P[i, k + h] += told
                if b < d:
                    P[k + h, j] -= told
                    P[j, k + h] -= told
                for g in range(sway.shape[1]):
                    P[k + h, k + g] += told * sway[p, g]
        p = state.after[p]
    s = m + d - k
    for i in range(s):
        for h in range(r):
            value = W[i, h]
            if value != 0.0:
                for j in range(s):
                    P[members[i], members[j]] -= value * M[h, j]
