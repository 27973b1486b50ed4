"""Probability of a partial order: that all of some correlated normal differences are above 0.

An answer about several alternatives says that differences s = B g of their noisy utilities are positive, one a row;
given the utilities s ~ N(z, N), N = ½ B Bᵀ, as each alternative has noise of variance ½ (population.md section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from predilect._base.compile import kernel
from predilect._base.types import FloatArray, IntArray
from predilect.inference.likelihoods.probit import moments_scalar, tilted_scalar

_MAX_SWEEPS = 100
# Of a row's difference, in units of its noise; the second where only values are asked, whose error is its square.
_TOLERANCE, _TOLERANCE_OF_VALUES = 1e-9, 1e-6


@kernel
def orthants(
    row_ptr: IntArray, cell_ptr: IntArray, mean: FloatArray, C: FloatArray, N: FloatArray, factor: FloatArray,
    noise: float, tolerance: float, log_z: FloatArray, slope: FloatArray, alpha: FloatArray, Q: FloatArray,
) -> None:  # fmt: skip
    """Expectation propagation of each order, as :meth:`Orders.evidence` describes; ``alpha`` and ``Q`` may be empty."""
    most = 0
    for t in range(row_ptr.shape[0] - 1):
        most = max(most, row_ptr[t + 1] - row_ptr[t])
    V = np.empty((most, most))
    mu = np.empty(most)
    lam = np.empty(most)
    eta = np.empty(most)
    c = np.empty(most)
    e = np.empty(most)
    for t in range(row_ptr.shape[0] - 1):
        first = row_ptr[t]
        cell = cell_ptr[t]
        n = row_ptr[t + 1] - first
        for p in range(n):
            mu[p] = mean[first + p]
            lam[p] = 0.0
            eta[p] = 0.0
            for q in range(p + 1):  # the lower triangle
                V[p, q] = factor[t] * C[cell + p * n + q] + noise * N[cell + p * n + q]
        log_det = 0.0
        for _ in range(_MAX_SWEEPS):
            largest = 0.0
            for p in range(n):
                v = V[p, p]
                rest = 1.0 - lam[p] * v
                v_c = v / rest
                m_c = (mu[p] - v * eta[p]) / rest
                gradient, curvature = moments_scalar(1, m_c, v_c - 1.0, 0.0)
                rest = 1.0 - curvature * v_c
                d_lam = curvature / rest - lam[p]
                d_eta = (gradient + curvature * m_c) / rest - eta[p]
                lam[p] += d_lam
                eta[p] += d_eta
                change = (abs(d_lam) * (1.0 + abs(mu[p])) + abs(d_eta - d_lam * mu[p])) * v / (1.0 + math.sqrt(v))
                largest = max(largest, change)
                gain = d_lam / (1.0 + d_lam * v)
                shift = (d_eta - d_lam * mu[p]) / (1.0 + d_lam * v)
                log_det += math.log1p(d_lam * v)
                for i in range(p):
                    c[i] = V[p, i]
                for i in range(p, n):
                    c[i] = V[i, p]
                for i in range(n):
                    mu[i] += shift * c[i]
                    scaled = gain * c[i]
                    for j in range(i + 1):
                        V[i, j] -= scaled * c[j]
            if largest < tolerance:
                break
        value = -0.5 * log_det
        for p in range(n):
            m_p = mean[first + p]
            v = V[p, p]
            rest = 1.0 - lam[p] * v
            v_c = v / rest
            m_c = (mu[p] - v * eta[p]) / rest
            one, _, _, _, _ = tilted_scalar(1, m_c, v_c - 1.0, 0.0)
            rest = 1.0 + lam[p] * v_c
            value += one + 0.5 * math.log(rest)
            value += 0.5 * (lam[p] * m_c * m_c - 2.0 * m_c * eta[p] - v_c * eta[p] * eta[p]) / rest
            value += eta[p] * m_p - 0.5 * lam[p] * m_p * m_p
            c[p] = eta[p] - lam[p] * mu[p]
            e[p] = eta[p] - lam[p] * m_p
        along = 0.0
        for p in range(n):
            for q in range(n):
                between = V[p, q] if q <= p else V[q, p]
                value += 0.5 * e[p] * between * e[q]
                inside = -lam[p] * between * lam[q]
                if p == q:
                    inside += lam[p]
                along += 0.5 * (c[p] * c[q] - inside) * C[cell + p * n + q]
                if Q.shape[0]:
                    Q[cell + p * n + q] = inside
            if alpha.shape[0]:
                alpha[first + p] = c[p]
        log_z[t] = value
        slope[t] = along


class Evidence(NamedTuple):
    """Log probabilities of orders, and derivatives."""

    log_z: FloatArray  # (n_orders,)
    slope: FloatArray  # in the factor, (n_orders,)
    alpha: FloatArray  # in the means, (n_rows,)
    Q: FloatArray  # minus the second ones, with the cavities held, cell by cell as ``Orders.C``


@dataclass(frozen=True, slots=True)
class Orders:
    """Partial orders whose differences s have means, covariances and noise; rows turned so that s > 0 is the answer.

    ``row_ptr`` (n_orders + 1,): rows of each order. The n x n covariances lie one after the other, row by row.
    """

    row_ptr: IntArray
    mean: FloatArray  # (n_rows,)
    C: FloatArray  # of the utilities
    N: FloatArray  # of the noise

    @classmethod
    def together(cls, parts: list[Orders]) -> Orders:
        """One set after the other."""
        before = np.cumsum([0, *(len(part.mean) for part in parts)])
        ptr = [part.row_ptr[:-1] + start for part, start in zip(parts, before[:-1], strict=True)]
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "C", "N"))
        return cls(np.concatenate((*ptr, before[-1:])), *columns)

    def variances(self) -> FloatArray:
        """Mean variance of each order's rows, (n_orders,)."""
        size = np.diff(self.row_ptr)
        start, one, other = cells_of(self.row_ptr)
        return np.asarray(np.add.reduceat(np.where(one == other, self.C, 0.0), start[:-1]) / size)

    def evidence(self, factor: FloatArray | float = 1.0, noise: float = 1.0, *, derivatives: bool = False) -> Evidence:
        """Log P(s > 0), s ~ N(mean, factor C + noise N), by EP; for one row exact, with two mostly within .005.

        O(n³) for each of some five sweeps over an order of n rows.
        """
        n_orders = len(self.row_ptr) - 1
        log_z, slope = np.empty(n_orders), np.empty(n_orders)
        alpha, Q = (np.empty(len(one) if derivatives else 0) for one in (self.mean, self.C))
        factor = np.full(n_orders, factor) if np.ndim(factor) == 0 else np.ascontiguousarray(factor)
        orthants(
            self.row_ptr, _cell_ptr(self.row_ptr), self.mean, self.C, self.N, factor, float(noise),
            _TOLERANCE if derivatives else _TOLERANCE_OF_VALUES, log_z, slope, alpha, Q,
        )  # fmt: skip
        return Evidence(log_z, slope, alpha, Q)


class PairsOfOrders(NamedTuple):
    """Pairs of items whose margins' variances make the covariances of orders' rows.

    Cov(a - b, c - d) is half of Var(a - d) + Var(b - c) - Var(a - c) - Var(b - d).
    """

    order: IntArray  # of each pair, (n,)
    left: IntArray  # items, (n,)
    right: IntArray
    place: IntArray  # of the four pairs of each cell, n being one of an item with itself, (4, n_cells)

    @classmethod
    def of(cls, ptr: IntArray, winner: IntArray, loser: IntArray) -> PairsOfOrders:
        """For rows "winner over loser" of orders that begin at ``ptr``."""
        _, one, other = cells_of(ptr)
        size = np.diff(ptr)
        n_items, n = int(max(winner.max(initial=0), loser.max(initial=0))) + 1, len(winner)
        of_row = n_items * np.repeat(np.arange(len(size)), size)
        members, place = np.unique(np.concatenate((of_row + winner, of_row + loser)), return_inverse=True)
        m = np.bincount(members // n_items, minlength=len(size))  # items of each order
        first, square = np.cumsum(m) - m, np.cumsum(m * m) - m * m
        order = np.repeat(np.arange(len(size)), size**2)
        winner, loser = place[:n] - first[of_row // n_items], place[n:] - first[of_row // n_items]
        keys, same = np.empty((4, len(one)), dtype=np.int64), np.empty((4, len(one)), dtype=bool)
        sides = (winner[one], loser[other]), (loser[one], winner[other]), (winner[one], winner[other]), (
            loser[one], loser[other])  # fmt: skip
        for row, (a, b) in enumerate(sides):
            keys[row], same[row] = square[order] + np.minimum(a, b) * m[order] + np.maximum(a, b), a == b
        asked = np.zeros(int((m * m).sum()), dtype=bool)
        asked[keys[~same]] = True
        known = np.flatnonzero(asked)
        places = np.where(same, len(known), (np.cumsum(asked) - 1)[keys])
        order = np.repeat(np.arange(len(m)), m * m)[known]
        left, right = np.divmod(known - square[order], m[order])
        return cls(order, members[first[order] + left] % n_items, members[first[order] + right] % n_items, places)

    def covariances(self, var: FloatArray) -> FloatArray:
        """Cell by cell, from the variances of the pairs' margins, (n,)."""
        parts = np.append(var, 0.0)[self.place]
        return np.asarray(0.5 * (parts[0] + parts[1] - parts[2] - parts[3]))


def _cell_ptr(row_ptr: IntArray) -> IntArray:
    """Where each order's n x n cells begin, (n_orders + 1,)."""
    return np.concatenate(([0], np.cumsum(np.diff(row_ptr) ** 2)))


def cells_of(row_ptr: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Where each order's n x n cells begin, (n_orders + 1,), and the two rows, over all orders, of each cell."""
    size = np.diff(row_ptr)
    start = _cell_ptr(row_ptr)
    order = np.repeat(np.arange(len(size)), size**2)
    place = np.arange(start[-1]) - start[order]
    return start, row_ptr[order] + place // size[order], row_ptr[order] + place % size[order]


def shared_noise(row_ptr: IntArray, winner: IntArray, loser: IntArray) -> FloatArray:
    """½ B Bᵀ of each order, cell by cell, for rows "winner over loser"."""
    _, one, other = cells_of(row_ptr)
    same = np.equal(winner[one], winner[other]).astype(float) + (loser[one] == loser[other])
    return 0.5 * (same - (winner[one] == loser[other]) - (loser[one] == winner[other]))
