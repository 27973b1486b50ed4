"""Graded answers: margin plus noise lies between two cuts. people.md, "Cuts of grades".

Cuts 0 <= c_0 < c_1 < ... are symmetric about 0 and in units of the noise: c_0 is the tie threshold, or 0 where no tie
is offered; "left is better by grade g" says that z + n lies in (c_{g-1}, c_g), where the last is infinite; a tie that
it lies in (-c_0, c_0); and an answer of which only the side is known that it lies beyond c_0.

An answer is a *code*: 0 a tie, ±1 only the side is known, ±(1 + g) the side and the grade g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from predilect._base.compile import kernel
from predilect._base.stored import PLAIN, amounts, numbers, optional
from predilect._base.types import FloatArray, IntArray
from predilect.inference.likelihoods.probit import tilted_arrays
from predilect.inference.likelihoods.special import log_ndtr_scalar, mills_ratio_scalar, strict_scalar
from predilect.inference.likelihoods.views import PairLikelihood

MOST_GRADES = 6  # keys of answers have four bits for a code


@kernel
def interval_scalar(ends: FloatArray, m: float, v: float, scale: float) -> tuple[float, float, float, float, float]:
    """(log Ẑ, ∂/∂m, -∂²/∂m², ∂/∂c, ∂²/∂c²) of log E P(c a < z + n < c b), z ~ N(m, v), for the ``ends`` (a, b) and c,
    the ``scale``; one of the two ends may be infinite.
    """
    s = math.sqrt(1.0 + v)
    low, high = ends[0], ends[1]
    if high == math.inf or low == -math.inf:
        side, near = (1.0, low) if high == math.inf else (-1.0, -high)
        value, rho, curvature = strict_scalar((side * m - near * scale) / s)
        curvature /= s * s
        return value, side * rho / s, curvature, -near * rho / s, -near * near * curvature
    # Turned about so that 0 is nearest to the upper end, b, and relative to the density there: exponents of the size of
    # m² never cancel.
    sign = -1.0
    a, b = (low * scale - m) / s, (high * scale - m) / s
    if a + b > 0.0:
        sign, a, b, low, high = 1.0, -b, -a, -high, -low
    gap = 0.5 * (b - a) * (b + a)
    far = math.exp(gap)  # φ(a) / φ(b)
    rho_b = mills_ratio_scalar(b)
    inside = 1.0 - far * rho_b / mills_ratio_scalar(a)  # Z / Φ(b)
    edge_b = rho_b / inside  # φ(b) / Z
    edge_a = far * edge_b
    slope = -math.expm1(gap) * edge_b
    curvature = slope * slope + b * edge_b - a * edge_a
    slope_scale = high * edge_b - low * edge_a
    curvature_scale = low * low * a * edge_a - high * high * b * edge_b - slope_scale * slope_scale
    return (
        log_ndtr_scalar(b) + math.log(inside), sign * slope / s, curvature / (s * s), slope_scale / s,
        curvature_scale / (s * s),
    )  # fmt: skip


class Intervals(PairLikelihood):
    """P(δ a < z + n < δ b) of each answer: an "outcome" is its ends (a, b), the delta δ their unit."""

    __slots__ = ()
    name = "intervals"
    tilted_scalar = interval_scalar

    @classmethod
    def all_tilted(
        cls, outcome: npt.ArrayLike, m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0
    ) -> tuple[FloatArray, ...]:
        ends = np.array(outcome, dtype=float)
        m, v, delta = (np.array(np.broadcast_to(x, len(ends)), dtype=float) for x in (m, v, delta))
        out = np.empty((5, len(ends)))
        cls.compiled(tilted_arrays)(ends, m, v, delta, out)
        return tuple(out)


class GradeRows(NamedTuple):
    """Answers whose thresholds are learned; arrays (n,), of which z ~ N(``mean``, ``var``) without the answer."""

    code: npt.NDArray[np.int8]
    weight: FloatArray
    mean: FloatArray
    var: FloatArray
    factor: FloatArray  # of the person's cuts
    left: IntArray
    right: IntArray


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Cuts c_0 < c_1 < ..., in units of the noise, and the logarithms ψ of the factors of items.

    Those of an answer about items l and r are exp((ψ_l + ψ_r) / 2) times as large.
    """

    # one for each grade, or one for models without; the first is the tie threshold, 0 without ties
    cuts: Annotated[FloatArray, amounts("grades")]
    # ψ, (n_items,); empty where all are 0
    of_items: Annotated[FloatArray, optional(numbers("I|0"))] = field(default_factory=lambda: np.zeros(0))
    names: Annotated[tuple[str, ...], PLAIN] = ()  # of the grades, from slight to strong

    def checked(self) -> None:
        """ValueError unless each grade has a cut, or there are none, and cuts ascend."""
        names, without = self.names, not self.names and len(self.cuts) == 1 and len(self.of_items)
        if not without and not 1 < len(names) == len(set(names)) == len(self.cuts) <= MOST_GRADES:
            raise ValueError(f"{len(self.cuts)} cuts of the grades {names}")
        if (np.diff(self.cuts) <= 0.0).any():
            raise ValueError("the cuts do not ascend")

    @property
    def tie_threshold(self) -> float:
        """c_0."""
        return float(self.cuts[0])

    @property
    def n_grades(self) -> int:
        """Number of grades of each side; 0 without grades."""
        return len(self.cuts) if len(self.cuts) > 1 else 0

    @property
    def scale(self) -> float:
        """The first positive cut, which is the unit of :meth:`ends`."""
        return float(self.cuts[0] or self.cuts[1])

    @cached_property
    def table(self) -> FloatArray:
        """Ends of each code from -(1 + n_grades) on, (n_codes, 2)."""
        above = np.append(self.cuts, np.inf) / self.scale
        sides = [(above[0], np.inf)]
        if self.n_grades:
            sides += list(pairwise(above))
        return np.array([*((-b, -a) for a, b in reversed(sides)), (-above[0], above[0]), *sides]) + 0.0

    def ends(self, code: npt.NDArray[np.int8], left: IntArray, right: IntArray) -> FloatArray:
        """Ends of the intervals of answers in units of ``scale``, (n, 2)."""
        return self.table[code + len(self.table) // 2] * self.of_pairs(left, right)[:, None]

    def of_pairs(self, left: IntArray, right: IntArray) -> FloatArray:
        """Factors of the cuts of pairs, (n,)."""
        if not len(self.of_items):
            return np.ones(len(left))
        psi = np.append(self.of_items, 0.0)  # items that came later have the usual ones
        left, right = np.minimum(left, len(psi) - 1), np.minimum(right, len(psi) - 1)
        return np.asarray(np.exp(0.5 * (psi[left] + psi[right])))

    def views(self, rows: GradeRows) -> tuple[FloatArray, ...]:
        """Log E P of answers with its derivatives, as of :meth:`Intervals.all_tilted`, (n,) each."""
        ends = self.ends(rows.code, rows.left, rows.right)
        return Intervals.all_tilted(ends, rows.mean, rows.var, self.scale * rows.factor)

    def information(self, rows: GradeRows) -> FloatArray:
        """Information of answers about each ψ, (n_items,)."""
        delta = self.scale * rows.factor
        _, _, _, slope, curvature = self.views(rows)
        of_rows = -0.25 * rows.weight * (delta * delta * curvature + delta * slope)
        n = len(self.of_items)
        return np.maximum(np.bincount(rows.left, of_rows, n) + np.bincount(rows.right, of_rows, n), 0.0)

    def scaled(self, scale: float) -> Thresholds:
        """With another scale."""
        return replace(self, cuts=self.cuts / self.scale * scale)

    def change_from(self, other: Thresholds) -> float:
        """Largest change of a cut in units of the first, and of the logarithm of an item's factor or of the scale."""
        of_cuts = np.abs(self.cuts / self.scale - other.cuts / other.scale).max()
        of_items = np.abs(self.of_items - other.of_items).max(initial=0.0)
        return float(max(of_cuts, of_items, abs(math.log(self.scale / other.scale))))

    @classmethod
    def first(
        cls, code: npt.NDArray[np.int8], weight: FloatArray, n_grades: int, ties: float, names: tuple[str, ...] = ()
    ) -> Thresholds:  # fmt: skip
        """Where the search begins: the cuts at which shares of grades are these if all margins were 0.

        ``ties``: the tie threshold, 0 if no tie is offered; taken as given where there are no ties.
        """
        if not n_grades:
            return cls(np.array([ties]))
        graded = np.abs(code) > 1
        count = np.bincount(np.abs(code[graded]) - 2, weight[graded], n_grades) + 0.5  # none is impossible
        decided = float(weight[code != 0].sum())
        tied = float(weight[code == 0].sum()) + 0.5 if ties else 0.0
        share = np.append(tied, np.cumsum(count)[:-1] / count.sum() * decided + tied) / (tied + decided)
        cuts = ndtri(0.5 * (1.0 + share))
        return cls(cuts * (ties / cuts[0]) if ties else cuts, names=names)

    def learned(self, rows: GradeRows, spread: float = 0.0, *, learn_scale: bool = False) -> Thresholds:
        """Maximum of Σ w log E P(answer) over the cuts in units of the first, and of the factors of items, if they have
        a ``spread`` σ: ψ ~ N(0, σ²).

        Increments have a weak normal prior of their logarithm about those that there are. With the margins' laws held,
        each being that without the answer, a fixed point of this and of EP is a stationary point of EP's evidence.
        """
        from scipy.optimize import minimize

        search = _CutObjective(self, rows, spread, learn_scale)
        if not len(search.start):
            return self
        size = np.ones(len(search.start))
        if spread and len(self.of_items):  # coordinates of which answers and prior say about equally much
            information = self.information(rows)
            size[:] = 1.0 / math.sqrt(1.0 + 2.0 * information.sum())
            size[-len(information) :] = 1.0 / np.sqrt(information + spread**-2)

        def scaled(z: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = search(size * z)
            return value, size * gradient

        found = minimize(
            scaled, search.start / size, jac=True, method="L-BFGS-B", options={"gtol": 1e-4 * size.min(), "ftol": 1e-9}
        )
        return search.at(size * found.x)


_INCREMENT_SD = 1.5  # of the logarithm of an increment: it decides only where a handful of answers have the grade


class _CutObjective:
    """Negative log posterior and its gradient: the logarithms of scale and increments, and ψ."""

    def __init__(self, given: Thresholds, rows: GradeRows, spread: float, learn_scale: bool) -> None:
        self.given, self.rows, self.spread, self.learn_scale = given, rows, spread, learn_scale
        self.n_fixed = 1 if given.cuts[0] else 2  # relative cuts that are 0 or 1
        first = Thresholds.first(rows.code, rows.weight, given.n_grades, given.tie_threshold)
        self.centre = self._increments(first)
        n_items = len(given.of_items) if spread else 0
        self.start = np.concatenate([[0.0] if learn_scale else [], self._increments(given), given.of_items[:n_items]])

    def _increments(self, thresholds: Thresholds) -> FloatArray:
        return np.log(np.diff(thresholds.cuts)[self.n_fixed - 1 :] / thresholds.scale)

    def _parts(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        size = float(x[0]) if self.learn_scale else 0.0
        x = x[int(self.learn_scale) :]
        return size, x[: len(self.centre)], x[len(self.centre) :]

    def at(self, x: FloatArray) -> Thresholds:
        """Thresholds of a point."""
        size, increments, psi = self._parts(x)
        relative = self.given.cuts[: self.n_fixed] / self.given.scale
        relative = np.append(relative, relative[-1] + np.cumsum(np.exp(increments)))
        cuts = relative * (self.given.scale * math.exp(size))
        return replace(self.given, cuts=cuts, of_items=psi if self.spread else self.given.of_items)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        rows, now = self.rows, self.at(x)
        _, increments, psi = self._parts(x)
        ends = now.ends(rows.code, rows.left, rows.right)
        delta = now.scale * rows.factor
        value, slope, _, of_scale, _ = Intervals.all_tilted(ends, rows.mean, rows.var, delta)
        away = (increments - self.centre) / _INCREMENT_SD
        loss = 0.5 * float(away @ away) - float(rows.weight @ value)
        pull = rows.weight * delta * of_scale  # of the logarithm of a row's factor
        gradient = [np.array([-pull.sum()])] if self.learn_scale else []
        gradient.append(away / _INCREMENT_SD - np.exp(increments) * self._of_increments(now, ends, slope, of_scale))
        if len(psi):
            of_items = np.bincount(rows.left, pull, len(psi)) + np.bincount(rows.right, pull, len(psi))
            loss += 0.5 * float(psi @ psi) / self.spread**2
            gradient.append(psi / self.spread**2 - 0.5 * of_items)
        return loss, np.concatenate(gradient)

    def _of_increments(self, now: Thresholds, ends: FloatArray, slope: FloatArray, of_scale: FloatArray) -> FloatArray:
        """Gradient in the increments of the relative cuts, from those of each row in its margin and its scale."""
        n = now.n_grades
        if len(self.centre) == 0:
            return np.zeros(0)
        rows = self.rows
        weight = rows.weight * now.scale * rows.factor * now.of_pairs(rows.left, rows.right)
        bounded = np.isfinite(ends).all(axis=1)
        high = np.where(np.isfinite(ends[:, 1]), -slope, 0.0)
        low_end, high_end = ends[bounded].T
        high[bounded] = (of_scale[bounded] + low_end * slope[bounded]) / (high_end - low_end)
        low = np.where(np.isfinite(ends[:, 0]), -slope - high, 0.0)
        below, above = (np.bincount(rows.code + n + 1, weight * part, 2 * n + 3) for part in (low, high))
        grades = np.arange(1, n)  # the upper cut of each, and the lower cut of the next
        plus, minus = n + 2 + grades, n - grades
        of_cuts = above[plus] - below[minus] + below[plus + 1] - above[minus - 1]
        return np.cumsum(of_cuts[::-1])[::-1][self.n_fixed - 1 :]
