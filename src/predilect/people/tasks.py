"""Rows of a task among a person's items: the noise that they share is integrated out task by task.

Given the utilities u of the m items of a task and the person's own effects γ of covariates, those with noise of
variance ½, v, have covariance K = (2 I + Aᵀ Λ A)⁻¹ and mean K (2 u + Aᵀ η - Aᵀ Λ S γ) under the sites (Λ, η) of rows
A v + S γ. So the margin aᵀ v + sᵀ γ of a row has mean wᵀ x + aᵀ K Aᵀ η and variance wᵀ C w + aᵀ K a, for the state x =
(u, γ) with covariance C and w = (2 K a, s - Sᵀ Λ A K a): its site is a rank-one update of C and of K. Those of one
task's rows are linear combinations, z, of the columns of C on the task: they are found among these, with C -= C X C for
the sum X of their gains times z zᵀ (population.md, "Several alternatives"). O(k m + m²) a row for k items, and its
share of C.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from predilect._compile import inner_kernel


class Block(NamedTuple):
    """Room for one task at a time, of a person with k items and q own effects of covariates; s = m + q, d = k + q."""

    members: Any  # positions of the task's items, and then of the effects, in the state, (s,)
    place: Any  # of each own item among the members, (k,)
    K: Any  # (m, m)
    told: Any  # Aᵀ η, (m,)
    cross: Any  # Aᵀ Λ S, (m, q)
    S: Any  # C among the members when the task began, (s, s)
    columns: Any  # and with all states, (s, d)
    X: Any  # (s, s); or the covariance of (v, γ)
    w: Any  # direction of a row, (s,)
    y: Any  # S w, (s,)
    z: Any  # w - X S w, (s,)
    mean: Any  # E (v, γ), (s,)
    pull: Any  # Aᵀ α and Sᵀ α, (s,)
    beside: Any  # covariance of (v, γ) with a margin, (s,)


@inner_kernel
def room_of_task(k, q, among_items):
    """Room for a task of at most k items; None where ``among_items`` is."""
    if among_items is None:
        return None
    s = k + q
    return Block(
        np.empty(s, dtype=np.int64), np.empty(k, dtype=np.int64), np.empty((k, k)), np.empty(k), np.empty((k, q)),
        np.empty((s, s)), np.empty((s, s)), np.empty((s, s)), np.empty(s), np.empty(s), np.empty(s), np.empty(s),
        np.empty(s), np.empty(s),
    )  # fmt: skip


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
def _join(i, m, members, place):
    """Make an own item a member; how many there are."""
    at = place[i]
    if 0 <= at < m and members[at] == i:
        return m
    place[i] = m
    members[m] = i
    return m + 1


@inner_kernel
def effects_of_row(p, sway):
    """Covariates of row p; None without."""
    return None if sway is None else sway[p]


@inner_kernel
def tell(a, b, m, lam, eta, row, K, told, cross, y):
    """Add precision and precision-mean to the margin of members a and b, with covariates ``row``; ``y`` is scratch."""
    for i in range(m):
        y[i] = K[i, a] - K[i, b]
    gain = lam / (1.0 + lam * (y[a] - y[b]))
    for i in range(m):
        along = gain * y[i]
        for j in range(m):
            K[i, j] -= along * y[j]
    told[a] += eta
    told[b] -= eta
    if row is not None:
        for j in range(row.shape[0]):
            cross[a, j] += lam * row[j]
            cross[b, j] -= lam * row[j]


@inner_kernel
def load_task(first, has_sites, answers, sway, after, block):
    """The task whose first row is ``first``, with the sites of its rows or without; the number of its items."""
    members, place, K, told, cross, y = block.members, block.place, block.K, block.told, block.cross, block.y
    left, right = answers.left, answers.right
    m = 0
    p = first
    while p >= 0:
        m = _join(left[p], m, members, place)
        m = _join(right[p], m, members, place)
        p = after[p]
    for i in range(m):
        told[i] = 0.0
        for j in range(m):
            K[i, j] = 0.5 if i == j else 0.0
        for j in range(cross.shape[1]):
            cross[i, j] = 0.0
    for j in range(cross.shape[1]):
        members[m + j] = answers.items.shape[0] + j
    p = first if has_sites else -1
    while p >= 0:
        w = answers.weight[p]
        a, b = place[left[p]], place[right[p]]
        tell(a, b, m, w * answers.lam[p], w * answers.eta[p], effects_of_row(p, sway), K, told, cross, y)
        p = after[p]
    return m


@inner_kernel
def begin_task(m, d, C, block):
    """Covariances of the members with all states, before any of the task's updates."""
    members, S, columns, X = block.members, block.S, block.columns, block.X
    s = m + block.cross.shape[1]
    for h in range(s):
        i = members[h]
        for j in range(i + 1):
            columns[h, j] = C[i, j]
        for j in range(i + 1, d):
            columns[h, j] = C[j, i]
        for g in range(s):
            S[h, g] = columns[h, members[g]]
            X[h, g] = 0.0


@inner_kernel
def direct(a, b, m, row, K, told, cross, w):
    """The direction w of a row, half of it on the items; the variance and the mean that the margin has from K."""
    known = 0.0
    for i in range(m):
        w[i] = K[i, a] - K[i, b]
        known += w[i] * told[i]
    if row is not None:
        for j in range(row.shape[0]):
            along = row[j]
            for i in range(m):
                along -= cross[i, j] * w[i]
            w[m + j] = along
    return w[a] - w[b], known


@inner_kernel
def margin_in_task(v, mean, m, s, mu, members, S, X, w, y, z):
    """Variance and mean of a margin that has ``v, mean`` from K; w is doubled on the items, y and z are set."""
    for i in range(m):
        w[i] *= 2.0
    for i in range(s):
        total = 0.0
        for j in range(s):
            total += S[i, j] * w[j]
        y[i] = total
        mean += w[i] * mu[members[i]]
    for i in range(s):
        total = w[i]
        for j in range(s):
            total -= X[i, j] * y[j]
        z[i] = total
        v += y[i] * total
    return v, mean


@inner_kernel
def along_columns(lam, v, s, d, columns, X, z, c):
    """Covariance ``c`` of the state with the margin, along z; X takes in the update of precision lam that follows."""
    gain = lam / (1.0 + lam * v)
    for i in range(d):
        c[i] = 0.0
    for h in range(s):
        x = z[h]
        for i in range(d):
            c[i] += x * columns[h, i]
        for g in range(s):
            X[h, g] += gain * x * z[g]


@inner_kernel
def spread_in_task(m, block):
    """Covariance V (s, s) of the utilities with noise and of the own effects into ``X``, after :func:`begin_task`."""
    K, cross, S, V, y, beside = block.K, block.cross, block.S, block.X, block.y, block.beside
    s = m + cross.shape[1]
    for h in range(s):
        for j in range(s):
            y[j] = S[h, j]
        _given(m, y, K, cross, V[h])
        for j in range(m, s):
            V[h, j] = y[j]
    for h in range(s):
        for j in range(s):
            y[j] = V[j, h]
        _given(m, y, K, cross, beside)
        for i in range(m):
            V[i, h] = beside[i] + (K[i, h] if h < m else 0.0)


@inner_kernel
def _given(m, x, K, cross, out):
    """K (2 x - Aᵀ Λ S x) of the parts of a vector over the members, into ``out`` (m)."""
    for i in range(m):
        out[i] = 0.0
    for j in range(m):
        value = 2.0 * x[j]
        for h in range(cross.shape[1]):
            value -= cross[j, h] * x[m + h]
        for i in range(m):
            out[i] += K[i, j] * value


@inner_kernel
def pulls_in_task(first, m, answers, sway, after, mu, block):
    """Of the task that is loaded E (v, γ), and ``pull``, Aᵀ α and Sᵀ α, for α = η - Λ times the means of margins."""
    K, told, mean, pull, place, y = block.K, block.told, block.mean, block.pull, block.place, block.y
    s = m + block.cross.shape[1]
    for i in range(s):
        y[i] = mu[block.members[i]]
        pull[i] = 0.0
    _given(m, y, K, block.cross, mean)
    for i in range(m):
        for j in range(m):
            mean[i] += K[i, j] * told[j]
    for j in range(m, s):
        mean[j] = y[j]
    p = first
    while p >= 0:
        a, b = place[answers.left[p]], place[answers.right[p]]
        at = mean[a] - mean[b]
        if sway is not None:
            for j in range(sway.shape[1]):
                at += sway[p, j] * mean[m + j]
        alpha = answers.weight[p] * (answers.eta[p] - answers.lam[p] * at)
        pull[a] += alpha
        pull[b] -= alpha
        if sway is not None:
            for j in range(sway.shape[1]):
                pull[m + j] += sway[p, j] * alpha
        p = after[p]


@inner_kernel
def moments_in_task(p, m, answers, sway, block):
    """Variance and mean of the margin of row p, after :func:`spread_in_task` and :func:`pulls_in_task`.

    Its covariance with the utilities with noise, and with own effects, is ``beside`` then.
    """
    V, beside, mean = block.X, block.beside, block.mean
    a, b = block.place[answers.left[p]], block.place[answers.right[p]]
    s = m + block.cross.shape[1]
    at = mean[a] - mean[b]
    for i in range(s):
        beside[i] = V[i, a] - V[i, b]
    if sway is not None:
        for j in range(sway.shape[1]):
            at += sway[p, j] * mean[m + j]
            for i in range(s):
                beside[i] += sway[p, j] * V[i, m + j]
    v = beside[a] - beside[b]
    if sway is not None:
        for j in range(sway.shape[1]):
            v += sway[p, j] * beside[m + j]
    return v, at


@inner_kernel
def noise_of_row(p, first, m, mean, answers, sway, after, block):
    """Row p's part of tr (ααᵀ - Q) N, after :func:`moments_in_task` of the row."""
    beside, place, pull = block.beside, block.place, block.pull
    la, lb, lam = answers.left, answers.right, answers.lam
    a, b = place[la[p]], place[lb[p]]
    flow = 0.0
    q = first
    while q >= 0:
        i, j = place[la[q]], place[lb[q]]
        covariance = beside[i] - beside[j]
        if sway is not None:
            for h in range(sway.shape[1]):
                covariance += sway[q, h] * beside[m + h]
        flow += shared_noise(a, b, i, j) * lam[q] * covariance
        q = after[q]
    return 0.5 * (answers.eta[p] - lam[p] * mean) * (pull[a] - pull[b]) - lam[p] + lam[p] * flow


@inner_kernel
def add_information(first, m, answers, sway, after, block, P):
    """Add what the task that is loaded tells of items and own effects, 2 K Aᵀ Λ A on its items, to P."""
    members, K, cross = block.members, block.K, block.cross
    for i in range(m):
        P[members[i], members[i]] += 2.0
        for j in range(m):
            P[members[i], members[j]] -= 4.0 * K[i, j]
        for j in range(cross.shape[1]):
            told = 0.0
            for h in range(m):
                told += 2.0 * K[i, h] * cross[h, j]
            P[members[i], members[m + j]] += told
            P[members[m + j], members[i]] += told
    if sway is None:
        return
    for i in range(sway.shape[1]):
        for j in range(sway.shape[1]):
            told = 0.0
            for h in range(m):
                for g in range(m):
                    told -= cross[h, i] * K[h, g] * cross[g, j]
            p = first
            while p >= 0:
                told += answers.weight[p] * answers.lam[p] * sway[p, i] * sway[p, j]
                p = after[p]
            P[members[m + i], members[m + j]] += told
