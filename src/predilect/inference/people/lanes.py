"""The E step of many people side by side: what :mod:`~predilect.inference.people.ep` does with one, on arrays of lanes.

The last axis of an array is the lanes, one person each, so that the loops over it run on several at once. People of a
group are of one kind, with about equally many answers; what one has fewer than another, rows or states, has variance 0
and weighs nothing. Nobody's numbers depend on those beside them, but for rounding.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect.inference.likelihoods.probit import tilted_in_lanes
from predilect.inference.people.ep import (
    AT_ONCE,
    answers_of,
    cavity,
    change_of_margin,
    covariance_on_basis,
    engagement,
    gain_and_shift,
    quadratic_of_site,
    refresh_site,
    room_of_state,
    scatter_basis,
    scatter_means,
    site_at,
)

LANES = 32
AT_A_TIME = 8  # as many the processor may work on at once: the width of a group is a multiple of it
_PITCH = LANES + 8  # so that numbers of one lane do not fall into a few sets of the processor's cache
_SECOND_SWEEP = 0.25  # of a group, for which the others wait; fewer are worked on again, together with those of others
_FURTHEST = 1e100  # of a product, before its logarithm is taken

# Rows of a table of a group's numbers, one a lane. Loops over lanes index few arrays, as the compiler vectorises none
# over many.
_V, _MEAN, _V_C, _M_C, _M, _DELTA, _ACTIVE, _LARGEST, _DET, _LOG_DET, _CARE, _D_LAM, _D_ETA, _SHIFT, _SHARE = range(15)
_GAIN, _ALONG, _X, _OWN = 15, 19, 23, 27  # the first three AT_ONCE, the last 5 times
# and of each of its rows: what was answered if that is strict, otherwise 0; the margin before the answers is Z_BAR
_Y, _WEIGHT, _OFFSET, _Z_BAR, _LAM, _ETA, _ALPHA = range(7)
_ROW, _A, _B = range(3)  # row of the columns, -1 for none, and the states of left and right


class Lanes(NamedTuple):
    """Room for a group with states of size d and n rows."""

    C: Any  # (d (d + 1) / 2, PITCH): lower triangles, row by row
    mu: Any  # (d, LANES)
    late: Any  # (AT_ONCE, d, LANES): directions of updates that C has not had yet
    codes: Any  # (n, 3, LANES)
    rows: Any  # (n, 7, LANES)
    of: Any  # (32, LANES)
    moments: Any  # (5, LANES): as ``tilted_scalar`` gives them
    user: Any  # (LANES,)
    n: Any  # (LANES,): rows of each
    # Of one person at a time: codes of the items of the rows, (2, n), precisions and α of the rows, (2, n)
    items: Any
    own: Any


@inner_kernel
def _room_of_lanes(d, n):
    whose = np.empty((2, LANES), dtype=np.int64)
    return Lanes(
        np.empty((d * (d + 1) // 2, _PITCH)), np.empty((d, LANES)), np.empty((AT_ONCE, d, LANES)),
        np.empty((n, 3, LANES), dtype=np.int64), np.empty((n, 7, LANES)), np.empty((32, LANES)),
        np.empty((5, LANES)), whose[0], whose[1],
        np.empty((2, n), dtype=np.uint64),  # without a sign, for which an index would be looked at
        np.empty((2, n)),
    )  # fmt: skip


@inner_kernel
def _sign(outcome, row):
    """A strict answer; 0 for a tie, and for an interval."""
    if outcome.ndim == 1:
        return float(outcome[row])
    return 0.0


@inner_kernel
def _items_of_rows(first, n, own, item_idx, left, right, items):
    """Codes of the items of a person's rows."""
    for p in range(n):
        items[0, p] = item_idx[own + left[first + p]]
        items[1, p] = item_idx[own + right[first + p]]


@inner_kernel
def _load(people, width, by_item, d, n_rows, columns, delta, prior, Phi, state, R, lanes):
    """People into the lanes, and nobody into those up to ``width``."""
    size = people.shape[0]
    C, mu, codes, rows, of, items = lanes.C, lanes.mu, lanes.codes, lanes.rows, lanes.of, lanes.items
    answer_ptr, item_ptr, item_idx = columns.answer_ptr, columns.item_ptr, columns.item_idx
    left, right, outcome, weight, offset = columns.left, columns.right, columns.outcome, columns.weight, columns.offset
    lam, eta, traits, cov = columns.lam, columns.eta, columns.traits, prior.cov
    mean, shift, own = prior.mean, prior.shift, state.own
    for lane in range(width):
        u = people[min(lane, size - 1)]
        first = answer_ptr[u]
        n = answer_ptr[u + 1] - first if lane < size else 0
        own_first = item_ptr[u]
        k = item_ptr[u + 1] - own_first if lane < size else 0
        lanes.user[lane] = u
        lanes.n[lane] = n
        care = columns.consistency[u]
        of[_CARE, lane] = care
        of[_DELTA, lane] = delta * columns.tie_factor[u]
        of[_DET, lane] = 1.0
        of[_LOG_DET, lane] = 0.0
        of[_LARGEST, lane] = 0.0
        of[_ACTIVE, lane] = 1.0
        for i in range(k):
            item = item_idx[own_first + i]
            value = mean[item]
            for j in range(traits.shape[1]):
                value += shift[item, j] * traits[u, j]
            own[i] = care * value
        for p in range(n):
            a = left[first + p]
            b = right[first + p]
            codes[p, _ROW, lane] = first + p
            codes[p, _A, lane] = a
            codes[p, _B, lane] = b
            rows[p, _Y, lane] = _sign(outcome, first + p)
            rows[p, _WEIGHT, lane] = weight[first + p]
            rows[p, _OFFSET, lane] = care * offset[first + p]
            rows[p, _Z_BAR, lane] = own[a] - own[b]
            rows[p, _LAM, lane] = lam[first + p]
            rows[p, _ETA, lane] = eta[first + p]
        for p in range(n, n_rows):
            for i in range(3):
                codes[p, i, lane] = 0
            for i in range(7):
                rows[p, i, lane] = 0.0
            codes[p, _ROW, lane] = -1
            rows[p, _WEIGHT, lane] = 1.0
        states = k if by_item else n
        for i in range(states):
            mu[i, lane] = own[i] if by_item else rows[i, _Z_BAR, lane]
        for i in range(states, d):
            mu[i, lane] = 0.0
        scale = care * care
        t = 0
        if Phi is not None:
            answers = answers_of(u, columns)
            covariance_on_basis(n, answers.items, answers.left, answers.right, prior, Phi, scale, state.C, R[lane])
            for p in range(n):
                for q in range(p + 1):
                    C[t, lane] = state.C[p, q]
                    t += 1
        elif not by_item:
            _items_of_rows(first, n, own_first, item_idx, left, right, items)
            for p in range(n):
                a, b = items[0, p], items[1, p]
                for q in range(p + 1):
                    i, j = items[0, q], items[1, q]
                    C[t, lane] = scale * (cov[a, i] - cov[b, i] - (cov[a, j] - cov[b, j]))
                    t += 1
        else:
            for i in range(k):
                for j in range(i + 1):
                    C[t, lane] = scale * cov[item_idx[own_first + i], item_idx[own_first + j]]
                    t += 1
        for t in range(states * (states + 1) // 2, d * (d + 1) // 2):
            C[t, lane] = 0.0


@inner_kernel
def _column(C, p, d, width, c):
    """Column p of the C of each lane."""
    t = p * (p + 1) // 2
    for i in range(p + 1):
        for lane in range(width):
            c[i, lane] = C[t + i, lane]
    t += p
    for i in range(p + 1, d):
        t += i
        for lane in range(width):
            c[i, lane] = C[t, lane]


@inner_kernel
def _difference(C, p, d, width, codes, c):
    """Column a less column b of the C of each lane, for its own a and b of row p."""
    for i in range(d):
        first = i * (i + 1) // 2
        for lane in range(width):
            a, b = codes[p, _A, lane], codes[p, _B, lane]
            s = first + a if a <= i else a * (a + 1) // 2 + i
            t = first + b if b <= i else b * (b + 1) // 2 + i
            c[i, lane] = C[np.uint64(s), lane] - C[np.uint64(t), lane]


@inner_kernel
def _along(by_item, p, width, codes, c, of, at):
    """What the direction c has of row p's margin, into ``of``."""
    if not by_item:
        for lane in range(width):
            of[at, lane] = c[p, lane]
    else:
        for lane in range(width):
            of[at, lane] = c[codes[p, _A, lane], lane] - c[codes[p, _B, lane], lane]


@inner_kernel
def _catch_up(late, n_late, d, width, of):
    """What late updates take from the direction of the next, and from its variance."""
    c = late[n_late]
    for h in range(n_late):
        gain, along = _GAIN + h, _ALONG + h
        for lane in range(width):
            of[_X, lane] = of[gain, lane] * of[along, lane]
            of[_V, lane] -= of[_X, lane] * of[along, lane]
        for i in range(d):
            for lane in range(width):
                c[i, lane] -= of[_X, lane] * late[h, i, lane]


@inner_kernel
def _margin(by_item, p, n_late, d, width, C, mu, late, codes, of):
    """Direction of row p into the next late update, variance and mean of its margin."""
    c = late[n_late]
    if not by_item:
        _column(C, p, d, width, c)
    else:
        _difference(C, p, d, width, codes, c)
    _along(by_item, p, width, codes, c, of, _V)
    _along(by_item, p, width, codes, mu, of, _MEAN)
    for h in range(n_late):
        _along(by_item, p, width, codes, late[h], of, _ALONG + h)
    _catch_up(late, n_late, d, width, of)


@inner_kernel
def _cavity(p, width, rows, of):
    """Variance and mean of the margin of row p without one copy of its site, and the mean with what else moves it."""
    for lane in range(width):
        m_c, v_c = cavity(of[_MEAN, lane], of[_V, lane], rows[p, _LAM, lane], rows[p, _ETA, lane])
        of[_M_C, lane], of[_V_C, lane] = m_c, v_c
        of[_M, lane] = of[_M_C, lane] + rows[p, _OFFSET, lane]


@inner_kernel
def _moments(p, width, outcome, codes, rows, of, moments):
    _cavity(p, width, rows, of)
    tilted_in_lanes(
        outcome, codes[p, _ROW], rows[p, _Y], of[_M], of[_V_C],
        of[_DELTA], width, moments,
    )  # fmt: skip


@inner_kernel
def _refresh(p, width, outcome, codes, rows, of, moments):
    """New sites of row p; what their precision and precision-mean change by."""
    _moments(p, width, outcome, codes, rows, of, moments)
    n_copies = 0
    for lane in range(width):
        lam, eta = site_at(moments[1, lane], moments[2, lane], of[_M_C, lane], of[_V_C, lane])
        of[_D_LAM, lane] = lam - rows[p, _LAM, lane]
        of[_D_ETA, lane] = eta - rows[p, _ETA, lane]
        n_copies += rows[p, _WEIGHT, lane] != 1.0
    if n_copies:
        for lane in range(width):
            w, lam, eta, v = rows[p, _WEIGHT, lane], rows[p, _LAM, lane], rows[p, _ETA, lane], of[_V, lane]
            if w != 1.0:
                new_lam, new_eta = refresh_site(
                    outcome[codes[p, _ROW, lane]], w, of[_MEAN, lane], v, 1.0 - w * lam * v, lam, eta,
                    of[_DELTA, lane], rows[p, _OFFSET, lane], 0.0,
                )  # fmt: skip
                of[_D_LAM, lane] = new_lam - lam
                of[_D_ETA, lane] = new_eta - eta
    for lane in range(width):
        v, mean = of[_V, lane], of[_MEAN, lane]
        d_lam = of[_ACTIVE, lane] * of[_D_LAM, lane]
        d_eta = of[_ACTIVE, lane] * of[_D_ETA, lane]
        rows[p, _LAM, lane] += d_lam
        rows[p, _ETA, lane] += d_eta
        d_lam *= rows[p, _WEIGHT, lane]
        d_eta *= rows[p, _WEIGHT, lane]
        change = change_of_margin(d_lam, d_eta, mean, v)
        of[_LARGEST, lane] = change if change > of[_LARGEST, lane] else of[_LARGEST, lane]
        of[_D_LAM, lane] = d_lam
        of[_D_ETA, lane] = d_eta


@inner_kernel
def _update(n_late, d, width, mu, late, of):
    """Take a change of sites into the means at once, and note it for the covariances."""
    gain = _GAIN + n_late
    for lane in range(width):
        factor, of[gain, lane], of[_SHIFT, lane] = gain_and_shift(
            of[_D_LAM, lane], of[_D_ETA, lane], of[_MEAN, lane], of[_V, lane]
        )
        of[_DET, lane] *= factor if factor > 0.0 else math.nan  # two that are negative would make a positive one
    for i in range(d):
        for lane in range(width):
            mu[i, lane] += of[_SHIFT, lane] * late[n_late, i, lane]


@inner_kernel
def _take_in(n_late, d, width, C, late, of):
    """Take the late updates from the covariances."""
    for h in range(n_late, AT_ONCE):
        for lane in range(width):
            of[_GAIN + h, lane] = 0.0
        for i in range(d):
            for lane in range(width):
                late[h, i, lane] = 0.0
    t = 0
    for i in range(d):
        for h in range(AT_ONCE):
            for lane in range(width):
                of[_X + h, lane] = of[_GAIN + h, lane] * late[h, i, lane]
        for j in range(i + 1):
            for lane in range(width):
                C[t, lane] -= (
                    of[_X, lane] * late[0, j, lane] + of[_X + 1, lane] * late[1, j, lane]
                    + of[_X + 2, lane] * late[2, j, lane] + of[_X + 3, lane] * late[3, j, lane]
                )  # fmt: skip
            t += 1
    for lane in range(width):
        if not 1.0 / _FURTHEST < of[_DET, lane] < _FURTHEST:
            of[_LOG_DET, lane] += math.log(of[_DET, lane])
            of[_DET, lane] = 1.0


@inner_kernel
def _through(refresh, by_item, d, n_rows, width, outcome, lanes):
    """Take in the answers one after the other: their stored sites, or with ``refresh`` the changes of a sweep."""
    C, mu, late, codes, rows, of, moments = (
        lanes.C, lanes.mu, lanes.late, lanes.codes, lanes.rows, lanes.of, lanes.moments
    )  # fmt: skip
    n_late = 0
    for p in range(n_rows):
        _margin(by_item, p, n_late, d, width, C, mu, late, codes, of)
        if refresh:
            _refresh(p, width, outcome, codes, rows, of, moments)
        else:
            for lane in range(width):
                of[_D_LAM, lane] = rows[p, _WEIGHT, lane] * rows[p, _LAM, lane]
                of[_D_ETA, lane] = rows[p, _WEIGHT, lane] * rows[p, _ETA, lane]
        _update(n_late, d, width, mu, late, of)
        n_late += 1
        if n_late == AT_ONCE or p == n_rows - 1:
            _take_in(n_late, d, width, C, late, of)
            n_late = 0


@inner_kernel
def _evidence(by_item, n_rows, width, outcome, lanes):
    """Parts of each person's log Z, and α of the rows: as ``_person_evidence`` of one person."""
    C, mu, codes, rows, of, moments = lanes.C, lanes.mu, lanes.codes, lanes.rows, lanes.of, lanes.moments
    for lane in range(width):
        of[_OWN, lane] = -0.5 * (of[_LOG_DET, lane] + math.log(of[_DET, lane]))
        of[_DET, lane] = 1.0
    for i in range(1, 5):
        for lane in range(width):
            of[_OWN + i, lane] = 0.0
    for p in range(n_rows):
        _along(by_item, p, width, codes, mu, of, _MEAN)
        if not by_item:
            t = p * (p + 1) // 2 + p
            for lane in range(width):
                of[_V, lane] = C[t, lane]
        else:
            for lane in range(width):
                a, b = codes[p, _A, lane], codes[p, _B, lane]
                i, j = max(a, b), min(a, b)
                first = i * (i + 1) // 2
                of[_V, lane] = C[first + i, lane] + C[j * (j + 1) // 2 + j, lane] - 2.0 * C[first + j, lane]
        _moments(p, width, outcome, codes, rows, of, moments)
        _evidence_of_row(p, width, rows, of, moments)
        if p % AT_ONCE == AT_ONCE - 1 or p == n_rows - 1:
            for lane in range(width):
                of[_OWN, lane] += 0.5 * math.log(of[_DET, lane])
                of[_DET, lane] = 1.0


@inner_kernel
def _evidence_of_row(p, width, rows, of, moments):
    for lane in range(width):
        w, lam, eta, z_bar = rows[p, _WEIGHT, lane], rows[p, _LAM, lane], rows[p, _ETA, lane], rows[p, _Z_BAR, lane]
        v, mean, v_c, m_c = of[_V, lane], of[_MEAN, lane], of[_V_C, lane], of[_M_C, lane]
        of[_DET, lane] *= 1.0 + lam * v_c if w == 1.0 else 1.0
        message = quadratic_of_site(lam, eta, m_c, v_c)
        of_prior = eta * z_bar - 0.5 * lam * z_bar * z_bar + 0.5 * (eta - lam * z_bar) * (mean - z_bar)
        alpha = w * (eta - lam * mean)
        slope = w * (eta * mean - lam * (mean * mean + v)) + rows[p, _OFFSET, lane] * alpha
        rows[p, _ALPHA, lane] = alpha
        of[_OWN, lane] += w * (moments[0, lane] + message + of_prior)
        of[_OWN + 1, lane] += w * moments[3, lane]
        of[_OWN + 2, lane] += w * moments[4, lane]
        of[_OWN + 3, lane] += slope
        of[_OWN + 4, lane] += slope * slope / w
    for lane in range(width):
        w = rows[p, _WEIGHT, lane]
        if w != 1.0:
            of[_OWN, lane] += 0.5 * w * math.log(1.0 + rows[p, _LAM, lane] * of[_V_C, lane])


@inner_kernel
def _add_rows(size, columns, lanes, S, sums):
    """Add the people's sums over rows to those over items; see :func:`_fold` for S."""
    C, rows, of, items, own = lanes.C, lanes.rows, lanes.of, lanes.items, lanes.own
    answer_ptr, item_ptr, item_idx, traits = columns.answer_ptr, columns.item_ptr, columns.item_idx, columns.traits
    left, right, r, r_traits = columns.left, columns.right, sums.r, sums.r_traits
    for lane in range(size):
        w, care = of[_SHARE, lane], of[_CARE, lane]
        u, n = lanes.user[lane], lanes.n[lane]
        if w == 0.0:
            continue
        _items_of_rows(answer_ptr[u], n, item_ptr[u], item_idx, left, right, items)
        for p in range(n):
            own[0, p] = care * rows[p, _WEIGHT, lane] * rows[p, _LAM, lane]
            own[1, p] = care * rows[p, _ALPHA, lane]
        t = 0
        for p in range(n):
            a, b = items[0, p], items[1, p]
            alpha, total = w * own[1, p], w * own[0, p]
            r[a] += alpha
            r[b] -= alpha
            for j in range(traits.shape[1]):
                r_traits[a, j] += alpha * traits[u, j]
                r_traits[b, j] -= alpha * traits[u, j]
            for q in range(p + 1):
                i, j = items[0, q], items[1, q]
                h = -total * C[t, lane] * own[0, q]
                g = alpha * own[1, q]
                if q == p:
                    h = 0.5 * (h + care * total)
                    g *= 0.5
                g -= h
                S[a, i, 0] += h
                S[a, i, 1] += g
                S[a, j, 0] -= h
                S[a, j, 1] -= g
                S[b, i, 0] -= h
                S[b, i, 1] -= g
                S[b, j, 0] += h
                S[b, j, 1] += g
                t += 1


@inner_kernel
def _fold(S, sums):
    """Add S + Sᵀ, of H and of D side by side, to their lower triangles."""
    H, D = sums.H, sums.D
    for i in range(S.shape[0]):
        for j in range(i + 1):
            H[i, j] += S[i, j, 0] + S[j, i, 0]
            D[i, j] += S[i, j, 1] + S[j, i, 1]


@inner_kernel
def _add_on_basis(size, first, columns, lanes, R, Q, sums):
    """Add the people's sums over rows to those on a basis."""
    C, rows, of, own = lanes.C, lanes.rows, lanes.of, lanes.own
    for lane in range(size):
        w, care = of[_SHARE, lane], of[_CARE, lane]
        u, n = lanes.user[lane], lanes.n[lane]
        if w == 0.0:
            continue
        answers = answers_of(u, columns)
        for p in range(n):
            own[0, p] = care * rows[p, _WEIGHT, lane] * rows[p, _LAM, lane]
            own[1, p] = care * rows[p, _ALPHA, lane]
        t = 0
        for p in range(n):
            for q in range(p + 1):
                Q[p, q] = -own[0, p] * C[t, lane] * own[0, q]
                t += 1
            Q[p, p] += care * own[0, p]
        items, left, right = answers.items, answers.left, answers.right
        scatter_means(n, own[1], w, items, left, right, answers.traits, sums.r, sums.r_traits)
        scatter_basis(n, own[1], Q, w, R[lane], items, left, right, sums, sums.D[u - first])


@inner_kernel
def _squares(d, n_rows, width, C, codes, rows, P, W):
    """Xᵀ Q X = P - P C P, with P = Xᵀ Λ X, into P (d (d + 1) / 2, LANES); W (d, d, LANES) is scratch, as is C."""
    for t in range(d * (d + 1) // 2):
        for lane in range(width):
            P[t, lane] = 0.0
    for p in range(n_rows):
        for lane in range(width):
            a, b = codes[p, _A, lane], codes[p, _B, lane]
            total = rows[p, _WEIGHT, lane] * rows[p, _LAM, lane]
            i, j = max(a, b), min(a, b)
            first = i * (i + 1) // 2
            P[first + i, lane] += total
            P[j * (j + 1) // 2 + j, lane] += total
            P[first + j, lane] -= total
    for i in range(d):
        for j in range(d):
            for lane in range(width):
                W[i, j, lane] = 0.0
            for h in range(d):
                s = max(i, h) * (max(i, h) + 1) // 2 + min(i, h)
                t = max(j, h) * (max(j, h) + 1) // 2 + min(j, h)
                for lane in range(width):
                    W[i, j, lane] += P[s, lane] * C[t, lane]
    for t in range(d * (d + 1) // 2):
        for lane in range(width):
            C[t, lane] = P[t, lane]  # of which the rows of the result ask, when P has those before them already
    for i in range(d):
        for j in range(i + 1):
            t = i * (i + 1) // 2 + j
            for h in range(d):
                s = max(j, h) * (max(j, h) + 1) // 2 + min(j, h)
                for lane in range(width):
                    P[t, lane] -= W[i, h, lane] * C[s, lane]


@inner_kernel
def _add_items(size, columns, lanes, P, x, sums):
    """Add the people's sums over items."""
    codes, rows, of, traits, item_idx = lanes.codes, lanes.rows, lanes.of, columns.traits, columns.item_idx
    item_ptr, H, D, r, r_traits = columns.item_ptr, sums.H, sums.D, sums.r, sums.r_traits
    for lane in range(size):
        w, care = of[_SHARE, lane], of[_CARE, lane]
        u = lanes.user[lane]
        if w == 0.0:
            continue
        k = item_ptr[u + 1] - item_ptr[u]
        for i in range(k):
            x[i] = 0.0
        for p in range(lanes.n[lane]):
            x[codes[p, _A, lane]] += care * rows[p, _ALPHA, lane]
            x[codes[p, _B, lane]] -= care * rows[p, _ALPHA, lane]
        t = 0
        for i in range(k):
            a = item_idx[item_ptr[u] + i]
            r[a] += w * x[i]
            for j in range(traits.shape[1]):
                r_traits[a, j] += w * x[i] * traits[u, j]
            for j in range(i + 1):  # items ascend: this is the lower triangle
                h = w * care * care * P[t, lane]
                H[a, item_idx[item_ptr[u] + j]] += h
                D[a, item_idx[item_ptr[u] + j]] += w * x[i] * x[j] - h
                t += 1


@inner_kernel
def _tell(size, columns, lanes, sums, slopes):
    """Keep the people's sites, their parts of the evidence and of its gradient, and their share in the sums: the
    probability of no clicker, or 0 of those who wait.
    """
    rows, of, out, of_people, of_rows = lanes.rows, lanes.of, sums.out, slopes.of_people, slopes.of_rows
    answer_ptr, lam, eta = columns.answer_ptr, columns.lam, columns.eta
    for lane in range(size):
        u = lanes.user[lane]
        first = answer_ptr[u]
        for p in range(lanes.n[lane]):
            lam[first + p] = rows[p, _LAM, lane]
            eta[first + p] = rows[p, _ETA, lane]
        if of[_SHARE, lane] == 0.0:
            continue
        w, evidence = engagement(of[_OWN, lane], columns.clicks[u], columns.engaged[u])
        of[_SHARE, lane] = w
        slopes.engaged[u] = w
        slopes.evidences[u] = of[_OWN, lane]
        slope, curvature = w * of[_OWN + 1, lane], w * of[_OWN + 2, lane]
        factor, delta = columns.tie_factor[u], of[_DELTA, lane]
        out[0] += evidence
        out[1] += factor * slope
        out[2] += factor * factor * curvature
        out[3] = max(out[3], of[_LARGEST, lane])
        of_people[u, 0] = delta * slope
        of_people[u, 1] = delta * delta * curvature + of_people[u, 0]
        of_people[u, 2] = w * of[_OWN + 3, lane]
        of_people[u, 3] = w * of[_OWN + 4, lane]
        if of_rows.shape[0]:
            for p in range(lanes.n[lane]):
                of_rows[first + p] = w * of[_CARE, lane] * rows[p, _ALPHA, lane]


@inner_kernel
def _group(queue, start, n, kinds):
    """End of the group that begins at ``start``: of one kind, and no more than there are lanes."""
    stop = start
    while stop < min(start + LANES, n) and kinds[queue[stop]] == kinds[queue[start]]:
        stop += 1
    return stop


@inner_kernel
def _largest(people, by_item, answer_ptr, item_ptr):
    """Size of the largest state among people, and their largest numbers of items and of rows."""
    d = 1
    k = 1
    n_rows = 1
    for u in people:
        rows = answer_ptr[u + 1] - answer_ptr[u]
        own = item_ptr[u + 1] - item_ptr[u]
        d = max(d, own if by_item[u] else rows)
        k = max(k, own)
        n_rows = max(n_rows, rows)
    return d, k, n_rows


@kernel
def em_lanes(first, queue, kinds, by_item, columns, prior, Phi, delta, n_sweeps, tolerance, sums, slopes):
    """:func:`~predilect.inference.people.ep.em_pass` of people ``queue`` (n,), in lanes, as far as each is of a kind.

    The sites are updated in place. ``kinds``, ``by_item`` (n_users,): as of
    :class:`~predilect.inference.people.layout.People`. ``first``: the first of the shard's people.
    """
    answer_ptr, item_ptr = columns.answer_ptr, columns.item_ptr
    n_lanes = 0
    while n_lanes < queue.shape[0] and kinds[queue[n_lanes]] > 0:
        n_lanes += 1
    d, k, n_rows = _largest(queue[:n_lanes], by_item, answer_ptr, item_ptr)
    state = room_of_state(d if Phi is not None else 1, k, n_rows, None, Phi)
    lanes = _room_of_lanes(d, n_rows)
    C, codes, rows, of = lanes.C, lanes.codes, lanes.rows, lanes.of
    wanted = sums.H.shape[0] > 0
    n_folded = sums.H.shape[0] if Phi is None and n_lanes and not by_item[queue[0]] else 0
    S = np.zeros((n_folded, n_folded, 2))
    on_basis = Phi is not None
    R = np.empty((LANES if on_basis else 0, d, state.R.shape[1]))
    any_by_item = n_lanes and by_item[queue[n_lanes - 1]]
    P = np.empty((d * (d + 1) // 2 if any_by_item else 0, LANES))
    W = np.empty((d if any_by_item else 0, d, LANES))
    x = np.empty(d)
    Q = np.empty((d if on_basis else 0, d))
    later = np.empty(n_lanes, dtype=np.int64)
    n_later = 0
    for again in range(2):
        people = later if again else queue
        n = n_later if again else n_lanes
        start = 0
        while start < n:
            stop = _group(people, start, n, kinds)
            d, k, n_rows = _largest(people[start:stop], by_item, answer_ptr, item_ptr)
            of_items = by_item[people[start]]
            size = stop - start
            width = (size + AT_A_TIME - 1) // AT_A_TIME * AT_A_TIME
            _load(people[start:stop], width, of_items, d, n_rows, columns, delta, prior, Phi, state, R, lanes)
            start = stop
            for lane in range(size):
                of[_SHARE, lane] = 1.0
            for sweep in range(again - 1, n_sweeps):  # the first takes in the stored sites
                for lane in range(width):
                    of[_LARGEST, lane] = 0.0 if of[_ACTIVE, lane] > 0.0 else of[_LARGEST, lane]
                _through(sweep >= again, of_items, d, n_rows, width, columns.outcome, lanes)
                if sweep < again:
                    continue
                n_active = 0
                for lane in range(width):
                    of[_ACTIVE, lane] = 0.0 if lane >= size or of[_LARGEST, lane] < tolerance else 1.0
                    n_active += of[_ACTIVE, lane] > 0.0
                if n_active == 0:
                    break
                if not again and sweep == 0 and n_sweeps > 1 and n_active < _SECOND_SWEEP * size:
                    for lane in range(size):
                        if of[_ACTIVE, lane] > 0.0:
                            of[_SHARE, lane] = 0.0
                            later[n_later] = lanes.user[lane]
                            n_later += 1
                    break
            _evidence(of_items, n_rows, width, columns.outcome, lanes)
            _tell(size, columns, lanes, sums, slopes)
            if not wanted:
                continue
            if Phi is not None:
                _add_on_basis(size, first, columns, lanes, R, Q, sums)
            elif of_items:
                _squares(d, n_rows, width, C, codes, rows, P, W)
                _add_items(size, columns, lanes, P, x, sums)
            else:
                _add_rows(size, columns, lanes, S, sums)
    _fold(S, sums)
