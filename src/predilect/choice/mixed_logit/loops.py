"""Compiled loops of the mixed logit: the likelihood of people's choices, their modes.

Names of arrays: U people, T choices, R rows (an alternative minus the chosen one), d coefficients, of which the first n
vary between people, G columns of traits with the constant first, K classes. A person's state z (d,) becomes
coefficients c(z) by ``kind`` and ``price``, see :func:`coefficients`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.small import cholesky, copy, fill, solve_lower, solve_upper

_MOST = 1e45  # of a product of odds before its logarithm is taken: times _MOST_ODDS it is finite
_MOST_UTILITY = 600.0  # beyond which the chance of a choice is 0, and its slope stays finite
_MOST_ODDS = 1e260  # of _MOST_UTILITY nearly
_LOG2, _LOG2_HIGH, _LOG2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_WHOLE = 6755399441055744.0  # 1.5 2⁵², to which a number is added to round it: its last bits are then the whole number
_SMALL_STEP = 1e-6  # of Newton's, in units of a coefficient


class ChoiceRows(NamedTuple):
    """Choices of all people, and what their coefficients are of a state."""

    D: FloatArray  # (d, R): a coefficient's numbers lie side by side, for the processor to take several at once
    weight: FloatArray  # of choices, (T,)
    row_ptr: IntArray  # (T + 1,)
    choice_ptr: IntArray  # (U + 1,)
    kind: npt.NDArray[np.int8]  # (d,)
    price: int


@kernel
def coefficients(z: FloatArray, kind: npt.NDArray[np.int8], price: int, c: FloatArray) -> None:
    """Write c(z): z, exp z or -exp z by kind; with a price column all others are times its size, exp z_price."""
    for k in range(len(z)):
        c[k] = z[k] if kind[k] == 0 else kind[k] * math.exp(z[k])
    if price >= 0:
        size = math.exp(z[price])
        for k in range(len(z)):
            if k != price:
                c[k] *= size


@inner_kernel
def _exp(x: float) -> float:
    """Exponential of a number between ±700, to 2⁻⁵¹ of it, in steps that the processor takes for several at once.

    x = k log 2 + r; the power series of exp r, times 2ᵏ, whose bits are those of 1 with k added to the exponent.
    """
    shifted = x * _LOG2 + _WHOLE
    k = shifted - _WHOLE
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = 1.0 / 39916800.0 + r * (1.0 / 479001600.0)
    p = 1.0 / 40320.0 + r * (1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * p))
    p = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * p))
    p = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * p))))
    bits = (np.float64(shifted).view(np.int64) << 52) + np.float64(1.0).view(np.int64)
    return p * np.int64(bits).view(np.float64)


@inner_kernel
def room_of(rows: ChoiceRows) -> FloatArray:
    """Room for the odds of anybody's rows, and up to seven more."""
    most = 0
    for u in range(len(rows.choice_ptr) - 1):
        most = max(most, rows.row_ptr[rows.choice_ptr[u + 1]] - rows.row_ptr[rows.choice_ptr[u]])
    return np.empty(most + 7)


@inner_kernel
def _write_odds(low: int, high: int, c: FloatArray, D: FloatArray, odds: FloatArray) -> None:
    """Write exp(D c) of rows, each an alternative against the chosen one; odds of :func:`room_of`."""
    fill(odds[: high - low + 7], 0.0)
    for k in range(len(c)):
        column, size = D[k, low:high], c[k]  # of an index that might be negative each is looked at by itself
        for i in range(len(column)):
            odds[i] += column[i] * size
    for i in range((high - low + 7) // 8 * 8):  # those of a rest would be taken one by one
        odds[i] = _exp(max(-_MOST_UTILITY, min(odds[i], _MOST_UTILITY)))


@inner_kernel
def _log_sum(low: int, high: int, c: FloatArray, D: FloatArray) -> float:
    """log(1 + Σ exp(D c)) over rows, whatever their size."""
    top, s = 0.0, 0.0
    for turn in range(2):
        for r in range(low, high):
            v = 0.0
            for k in range(len(c)):
                v += D[k, r] * c[k]
            if turn == 0:
                top = max(top, v)
            else:
                s += math.exp(v - top)
    return top + math.log(s + math.exp(-top))


@inner_kernel
def log_likelihood(u: int, c: FloatArray, rows: ChoiceRows, room: FloatArray) -> float:
    """Σ over the choices of person u of weight log P, P = 1 / (1 + Σ exp(D c)); room of :func:`room_of`."""
    weight, row_ptr, first, last = rows.weight, rows.row_ptr, rows.choice_ptr[u], rows.choice_ptr[u + 1]
    low, high = row_ptr[first], row_ptr[last]
    _write_odds(low, high, c, rows.D, room)
    total, odds = 0.0, 1.0
    for t in range(first, last):
        s = 1.0
        for r in range(row_ptr[t] - low, row_ptr[t + 1] - low):
            s += room[r]
        if s > _MOST_ODDS:
            total -= weight[t] * _log_sum(row_ptr[t], row_ptr[t + 1], c, rows.D)
        elif weight[t] == 1.0:
            odds *= s
            if odds > _MOST:
                total -= math.log(odds)
                odds = 1.0
        else:
            total -= weight[t] * math.log(s)
    return total - math.log(odds)


@kernel
def log_likelihoods(c: FloatArray, rows: ChoiceRows) -> FloatArray:
    """Log-likelihoods of people with coefficients c (U, d); shape (U,)."""
    found, room = np.empty(len(c)), room_of(rows)
    for u in range(len(c)):
        found[u] = log_likelihood(u, c[u], rows, room)
    return found


@inner_kernel
def _slope_and_curvature(
    u: int, c: FloatArray, rows: ChoiceRows, room: FloatArray, g: FloatArray, H: FloatArray
) -> float:  # fmt: skip
    """Write the gradient and minus the Hessian of person u's log-likelihood in c; return its value."""
    D, weight, row_ptr = rows.D, rows.weight, rows.row_ptr
    d, total = len(c), 0.0
    mean, x = np.empty(d), np.empty(d)
    fill(g, 0.0)
    for k in range(d):
        fill(H[k], 0.0)
    for t in range(rows.choice_ptr[u], rows.choice_ptr[u + 1]):
        low, n, top = row_ptr[t], row_ptr[t + 1] - row_ptr[t], 0.0
        for r in range(n):
            room[r] = 0.0
            for k in range(d):
                room[r] += D[k, low + r] * c[k]
            top = max(top, room[r])
        s = math.exp(-top)
        for r in range(n):
            room[r] = math.exp(room[r] - top)
            s += room[r]
        total -= weight[t] * (top + math.log(s))
        fill(mean, 0.0)
        for r in range(n):
            p = room[r] / s
            for k in range(d):
                x[k] = D[k, low + r]
                mean[k] += p * x[k]
                for j in range(k + 1):
                    H[k, j] += weight[t] * p * x[k] * x[j]
        for k in range(d):
            g[k] -= weight[t] * mean[k]
            for j in range(k + 1):
                H[k, j] -= weight[t] * mean[k] * mean[j]
    for k in range(d):
        for j in range(k):
            H[j, k] = H[k, j]
    return total


@inner_kernel
def log_likelihood_and_slope(
    u: int, z: FloatArray, rows: ChoiceRows, c: FloatArray, g: FloatArray, room: FloatArray
) -> float:
    """Log-likelihood of person u at the state z, whose coefficients and gradient (d,) are written."""
    D, row_ptr, first, last = rows.D, rows.row_ptr, rows.choice_ptr[u], rows.choice_ptr[u + 1]
    low, high = row_ptr[first], row_ptr[last]
    coefficients(z, rows.kind, rows.price, c)
    _write_odds(low, high, c, D, room)
    total = 0.0
    for t in range(first, last):
        s = 1.0
        for r in range(row_ptr[t] - low, row_ptr[t + 1] - low):
            s += room[r]
        total -= rows.weight[t] * (
            math.log(s) if s < _MOST_ODDS else _log_sum(row_ptr[t], row_ptr[t + 1], c, D)
        )  # fmt: skip
        for r in range(row_ptr[t] - low, row_ptr[t + 1] - low):
            room[r] *= rows.weight[t] / s
    for k in range(len(z)):
        column, n, one, two = D[k, low:high], high - low, 0.0, 0.0
        for i in range(0, n - 1, 2):  # two sums, which the processor does side by side
            one += column[i] * room[i]
            two += column[i + 1] * room[i + 1]
        g[k] = -(one + two + (column[n - 1] * room[n - 1] if n % 2 == 1 else 0.0))
    _slope_in_states(z, rows.kind, rows.price, c, g)
    return total


@inner_kernel
def _slope_in_states(
    z: FloatArray, kind: npt.NDArray[np.int8], price: int, c: FloatArray, g: FloatArray
) -> None:  # fmt: skip
    """Turn the slope in c into that in z."""
    size = math.exp(z[price]) if price >= 0 else 1.0
    if price >= 0:
        total = 0.0
        for k in range(len(z)):
            total += g[k] * c[k]
        g[price] = total / c[price]
    for k in range(len(z)):
        g[k] *= size if kind[k] == 0 and k != price else c[k]


@inner_kernel
def _in_states(
    z: FloatArray, kind: npt.NDArray[np.int8], price: int, c: FloatArray, g: FloatArray, H: FloatArray,
    work: FloatArray,
) -> None:  # fmt: skip
    """Turn slope and curvature in c into those in z, by J = dc/dz without the second derivatives.

    J has a diagonal and, with a price, the column of the price, dc_k/dz_price = c_k.
    """
    d = len(z)
    size = math.exp(z[price]) if price >= 0 else 1.0
    for turn in range(2):  # H J, and then Jᵀ of it
        for i in range(d):
            for j in range(d):
                work[i, j] = H[i, j] if turn == 0 else H[j, i]
        for i in range(d):
            if price >= 0:
                total = 0.0
                for k in range(d):
                    total += work[i, k] * c[k]
                work[i, price] = total / c[price]
            for k in range(d):
                slope = size if kind[k] == 0 and k != price else c[k]
                H[i, k] = work[i, k] * slope
    _slope_in_states(z, kind, price, c, g)


@kernel
def modes(
    z: FloatArray, n: int, mean: FloatArray, precision: FloatArray, rows: ChoiceRows, n_steps: int, slope: FloatArray,
    curvature: FloatArray,
) -> FloatArray:  # fmt: skip
    """Move the states z (U, d) to the modes of each person's log-likelihood + log N(mean_u, precision⁻¹) by Newton.

    The first n coordinates move. Slope (U, d) and curvature (U, d, d) of the log-likelihood are written. Returns (U,)
    log-likelihoods.
    """
    kind, price = rows.kind, rows.price
    U, d = z.shape
    c, g, H, work = np.empty(d), np.empty(d), np.empty((d, d)), np.empty((d, d))
    P, L, step, trial = np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(d)
    found, room = np.empty(U), room_of(rows)
    for u in range(U):
        n_left = n_steps if n > 0 else 0
        while True:
            coefficients(z[u], kind, price, c)
            value = _slope_and_curvature(u, c, rows, room, g, H)
            _in_states(z[u], kind, price, c, g, H, work)
            if n_left == 0:
                break
            n_left -= 1
            for i in range(n):
                step[i] = g[i]
                for j in range(n):
                    P[i, j] = H[i, j] + precision[i, j]
                    step[i] -= precision[i, j] * (z[u, j] - mean[u, j])
            objective = value + log_normal(z[u], mean[u], precision, n)
            cholesky(P, L, n)
            solve_lower(L, step, n)
            solve_upper(L, step, n)
            largest, size = 0.0, 1.0
            for _ in range(8):  # halve the step until it climbs
                copy(trial, z[u])
                for i in range(n):
                    trial[i] += size * step[i]
                coefficients(trial, kind, price, c)
                climbed = log_likelihood(u, c, rows, room) + log_normal(trial, mean[u], precision, n)
                if climbed >= objective - 1e-12:
                    for i in range(n):
                        largest = max(largest, abs(trial[i] - z[u, i]))
                    copy(z[u], trial)
                    break
                size *= 0.5
            if largest < _SMALL_STEP:
                n_left = 0
        copy(slope[u], g)
        for k in range(d):
            copy(curvature[u, k], H[k])
        found[u] = value
    return found


@kernel
def averaged(
    z: FloatArray, root: FloatArray, points: FloatArray, rows: ChoiceRows, slope: FloatArray, curvature: FloatArray
) -> None:  # fmt: skip
    """Write slopes and curvatures of people's log-likelihoods as :func:`modes`, averaged over states z + root point.

    ``root`` (U, n, n), ``points`` (S, n).
    """
    d, n, share = z.shape[1], root.shape[1], 1.0 / len(points)
    state, c, g, H, work = np.empty(d), np.empty(d), np.empty(d), np.empty((d, d)), np.empty((d, d))
    room = room_of(rows)
    for u in range(len(z)):
        fill(slope[u], 0.0)
        for i in range(d):
            fill(curvature[u, i], 0.0)
        for point in points:
            copy(state, z[u])
            for i in range(n):
                for j in range(i + 1):
                    state[i] += root[u, i, j] * point[j]
            coefficients(state, rows.kind, rows.price, c)
            _slope_and_curvature(u, c, rows, room, g, H)
            _in_states(state, rows.kind, rows.price, c, g, H, work)
            for i in range(d):
                slope[u, i] += share * g[i]
                for j in range(d):
                    curvature[u, i, j] += share * H[i, j]


@inner_kernel
def log_normal(z: FloatArray, mean: FloatArray, precision: FloatArray, n: int) -> float:
    """-½ (z - mean)ᵀ precision (z - mean) over the first n coordinates."""
    total = 0.0
    for i in range(n):
        for j in range(n):
            total -= 0.5 * (z[i] - mean[i]) * precision[i, j] * (z[j] - mean[j])
    return total


@kernel
def slopes_at(c: FloatArray, weight: FloatArray, rows: ChoiceRows, slope: FloatArray, curvature: FloatArray) -> None:
    """Write the slopes of people's log-likelihoods at coefficients c (d,) that all share, shape (U, d).

    ``curvature`` (d, d): minus the Hessian of the sum of these log-likelihoods with ``weight`` (U,).
    """
    d = len(c)
    H, room = np.empty((d, d)), room_of(rows)
    for k in range(d):
        fill(curvature[k], 0.0)
    for u in range(len(weight)):
        _slope_and_curvature(u, c, rows, room, slope[u], H)
        for k in range(d):
            for j in range(d):
                curvature[k, j] += weight[u] * H[k, j]


@kernel
def over_draws(
    mean: FloatArray, L: FloatArray, draws: FloatArray, rows: ChoiceRows, value: FloatArray, slope: FloatArray,
    cross: FloatArray,
) -> None:  # fmt: skip
    """Write log-likelihoods (U, R) at people's states mean (U, d) + L draw, draws (U, R, n), and slopes of their means.

    Those of log 1/R Σ exp value: ``slope`` (U, d) in the mean, and ``cross`` (U, n, n) in the lower triangle of L.
    """
    (U, R, n), d = draws.shape, mean.shape[1]
    z, c, each, room = np.empty(d), np.empty(d), np.empty((R, d)), room_of(rows)
    for u in range(U):
        top, total = -math.inf, 0.0
        for i in range(R):
            copy(z, mean[u])
            for j in range(n):
                for h in range(j + 1):
                    z[j] += L[j, h] * draws[u, i, h]
            value[u, i] = log_likelihood_and_slope(u, z, rows, c, each[i], room)
            top = max(top, value[u, i])
        for i in range(R):
            total += math.exp(value[u, i] - top)
        fill(slope[u], 0.0)
        for j in range(n):
            fill(cross[u, j], 0.0)
        for i in range(R):
            share = math.exp(value[u, i] - top) / total
            for k in range(d):
                slope[u, k] += share * each[i, k]
            for j in range(n):
                for h in range(j + 1):
                    cross[u, j, h] += share * each[i, j] * draws[u, i, h]
