"""Rank-one updates of a Gaussian state N(mu, C), of which the lower triangle of C is kept (population.md section 2).

Four updates of C are done in one pass over it, which takes half the time of four: until then they are *late*, and what
is read of C has to catch up with them.
"""

from __future__ import annotations

import math

import numpy as np

from predilect._base.compile import inner_kernel

AT_ONCE = 4  # as many as ``take_in`` writes out


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
def add_effects(C, mu, a, b, n, c, sway, g, first):
    """:func:`direction` in item space, of a margin with row g of ``sway`` times the states from ``first`` besides."""
    last = first + sway.shape[1]
    for j in range(first, last):
        x = sway[g, j - first]
        for i in range(j + 1):
            c[i] += x * C[j, i]
        for i in range(j + 1, n):
            c[i] += x * C[i, j]
    v = c[a] - c[b]
    mean = mu[a] - mu[b]
    for j in range(first, last):
        v += sway[g, j - first] * c[j]
        mean += sway[g, j - first] * mu[j]
    return v, mean


@inner_kernel
def late_updates(n):
    """Space for the updates of n states that are late: their directions, and in the last row their gains."""
    return np.empty((AT_ONCE + 1, max(n, AT_ONCE)))


@inner_kernel
def catch_up(late, n_late, a, b, sway, g, first, n, c):
    """Takes from ``c`` what ``n_late`` updates take from C, and returns what they take from the margin's variance."""
    taken = 0.0
    for h in range(n_late):
        along = late[h, a]
        if b >= 0:
            along -= late[h, b]
            if sway is not None:
                for j in range(first, first + sway.shape[1]):
                    along += sway[g, j - first] * late[h, j]
        scaled = late[AT_ONCE, h] * along
        for i in range(n):
            c[i] -= scaled * late[h, i]
        taken += scaled * along
    return taken


@inner_kernel
def take_in(C, n, late, n_late):
    """Takes the late updates from the lower triangle of C."""
    if n_late == 0:
        return
    for h in range(n_late, AT_ONCE):
        late[AT_ONCE, h] = 0.0
        for i in range(n):
            late[h, i] = 0.0
    for i in range(n):
        x0 = late[AT_ONCE, 0] * late[0, i]
        x1 = late[AT_ONCE, 1] * late[1, i]
        x2 = late[AT_ONCE, 2] * late[2, i]
        x3 = late[AT_ONCE, 3] * late[3, i]
        for j in range(i + 1):
            C[i, j] -= x0 * late[0, j] + x1 * late[1, j] + x2 * late[2, j] + x3 * late[3, j]


@inner_kernel
def rank_one(C, mu, c, n, d_lam, d_eta, v, mean, late, n_late):
    """Add precision d_lam and precision-mean d_eta along a direction with C times direction = c.

    The mean has it at once, C with the last of four. Returns log (1 + d_lam v) and how many updates are late.
    """
    gain = d_lam / (1.0 + d_lam * v)
    shift = (d_eta - d_lam * mean) / (1.0 + d_lam * v)
    for i in range(n):
        mu[i] += shift * c[i]
        late[n_late, i] = c[i]
    late[AT_ONCE, n_late] = gain
    n_late += 1
    if n_late == AT_ONCE:
        take_in(C, n, late, n_late)
        n_late = 0
    return math.log1p(d_lam * v), n_late
