"""Willingness to pay over the people of a mixed logit: its median and mean, where the price has one sign for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.attributes import NEGATIVE, NORMAL, POSITIVE, TRIANGULAR, ItemColumns
from predilect.choice.mixed_logit.problem import Mixture
from predilect.decisions.conjoint import PayOfPeople

_NODES = np.linspace(-6.0, 6.0, 121)  # of the trapezoidal rule over the logarithm of the price
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_FEW = float(ndtri(0.01))  # of these people the part of the mean is said
_STEPS, _CLOSE = 100, 1e-10  # of the root that is the median
_LARGEST = 700.0  # of the logarithm of a number
_FLAT = 1e-300  # of a slope that no step can be made of
_LEAST = 1e-9  # of a standard deviation, beside what it is part of

_Distribution = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # of amounts (S,): P(pay <= them), and its slope


class _Amount(NamedTuple):
    """Coefficients sign exp y with y ~ N(m, v) in each draw and class; ``with_states``: covariances of y, (S, K, d)."""

    sign: FloatArray  # (S, K)
    m: FloatArray
    v: FloatArray
    with_states: FloatArray


@dataclass(frozen=True, slots=True)
class _States:
    """Means (S, K, d) and covariances (S, K, d, d) of the states of people with average covariates."""

    mean: FloatArray
    covariance: FloatArray
    kind: npt.NDArray[np.int8]
    report: FloatArray

    @classmethod
    def of(cls, law: Mixture, columns: ItemColumns) -> _States:
        """In the space of willingness to pay all are amounts of the price, whose coefficient is -1 then."""
        S, K, _, d = law.B.shape
        n, p = law.Omega.shape[-1], columns.price
        mean, kind, covariance = law.B[:, :, 0].copy(), columns.kind.copy(), np.zeros((S, K, d, d))
        covariance[..., :n, :n] = law.Omega
        if p >= 0:
            mean[..., p], kind[p] = -1.0, NORMAL
            covariance[..., p, :] = covariance[..., :, p] = 0.0
        return cls(mean, covariance, kind, columns.report)

    def state_of(self, level: int) -> int:
        """The state that a coefficient is of, the largest of those that it is a sum of."""
        return int(np.abs(self.report[level]).argmax())

    def variance(self, level: int) -> FloatArray:
        """Of a coefficient that is a sum of states, (S, K)."""
        row = self.report[level]
        return np.einsum("skij,i,j->sk", self.covariance, row, row)

    def amount(self, level: int) -> _Amount | None:
        """A coefficient that is log-normal, or the same for all people of a class; None for others."""
        row, place = self.report[level], self.state_of(level)
        if self.kind[place] in (NEGATIVE, POSITIVE):
            sign = np.full(self.mean.shape[:2], float(self.kind[place] * np.sign(row[place])))
            m = self.mean[..., place] + np.log(np.abs(row[place]))
            return _Amount(sign, m, self.covariance[..., place, place], self.covariance[..., place])
        if self.variance(level).any():
            return None
        value = self.mean @ row
        with np.errstate(divide="ignore"):
            return _Amount(np.sign(value), np.log(np.abs(value)), np.zeros_like(value), np.zeros_like(self.mean))


def pay_of_people(law: Mixture, columns: ItemColumns, price: int) -> PayOfPeople | None:
    """Median and mean over people of minus each reported coefficient over that at ``price``, for average covariates.

    None unless coefficients vary between people, and that of the price is log-normal or the same for all of a class: of
    a ratio to a normal coefficient there is no mean. ``docs/math/mixed-logit.md#6-predictions``. 10 ms a coefficient.
    """
    states = _States.of(law, columns)
    y = states.amount(price)
    if not columns.n_random or y is None:
        return None
    # In units of the price of the first class: a coefficient that is nearly 0 makes no amounts that no number holds.
    unit, y = y.m[:, :1], y._replace(m=y.m - y.m[:, :1])
    n = len(columns.report)
    median, mean, top = np.ones((len(law.B), n)), np.ones((len(law.B), n)), np.zeros(n)
    for level in (k for k in range(n) if k != price):
        row, z, place = states.report[level], states.amount(level), states.state_of(level)
        if z is not None:
            v = np.maximum(z.v + y.v - 2.0 * np.where(z.v > 0.0, y.with_states[..., place], 0.0), 0.0)
            side, m = -y.sign * z.sign, z.m - y.m
            with np.errstate(over="ignore"):
                means = side * np.exp(m + 0.5 * v)
                medians = side * np.exp(m)
            distribution = _of_amounts(side, m, np.sqrt(v), law.share)
        else:
            a, r, v = -y.sign * (states.mean @ row), -y.sign * (y.with_states @ row), y.v
            with np.errstate(over="ignore"):
                means, medians = (a - r) * np.exp(0.5 * v - y.m), a * np.exp(-y.m)
            is_triangular = states.kind[place] == TRIANGULAR
            distribution = _of_normals(a, states.variance(level), r, y, law.share, is_triangular)
        of_one_form = medians.shape[1] == 1 and (z is not None or not v.any())
        median[:, level] = medians[:, 0] if of_one_form else _median(distribution, (law.share * medians).sum(axis=1))
        mean[:, level] = (law.share * means).sum(axis=1)
        top[level] = float(np.median((law.share * ndtr(np.sqrt(v) + _FEW)).sum(axis=1)))
    with np.errstate(over="ignore"):
        return PayOfPeople(median * np.exp(-unit), mean * np.exp(-unit), top)


def _of_amounts(side: FloatArray, m: FloatArray, sd: FloatArray, share: FloatArray) -> _Distribution:
    """That of side exp N(m, sd²), a mixture over the classes, (S, K)."""
    sd = np.maximum(sd, _LEAST)

    def distribution(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        on_side = t[:, None] * side > 0.0
        size = np.where(on_side, np.abs(t)[:, None], 1.0)
        u = (np.log(size) - m) / sd
        below = np.where(on_side, np.where(side > 0.0, ndtr(u), ndtr(-u)), side <= 0.0)
        slope = np.where(on_side, np.exp(-0.5 * u * u) / (np.sqrt(2.0 * np.pi) * sd * size), 0.0)
        return (share * below).sum(axis=1), (share * slope).sum(axis=1)

    return distribution


def _of_normals(
    a: FloatArray, v: FloatArray, r: FloatArray, y: _Amount, share: FloatArray, is_triangular: bool
) -> _Distribution:
    """That of z exp(-y) with z ~ N(a, v) and covariance r with y, a mixture over the classes, (S, K).

    P(z <= t exp y | y) is averaged over y. Triangular z are independent of y.
    """
    s = np.sqrt(y.v)
    moved = np.divide(r, s, out=np.zeros_like(r), where=s > 0.0)
    sd = np.sqrt(np.maximum(v - moved**2, _LEAST**2 * v))[..., None]
    centre = a[..., None] + moved[..., None] * _NODES
    size = np.exp(np.minimum(y.m[..., None] + s[..., None] * _NODES, _LARGEST))

    def distribution(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = (t[:, None, None] * size - centre) / sd
        if is_triangular:
            rest = np.maximum(1.0 - np.abs(u) / np.sqrt(6.0), 0.0)
            below, slope = np.where(u < 0.0, 0.5 * rest**2, 1.0 - 0.5 * rest**2), rest / np.sqrt(6.0)
        else:
            below, slope = ndtr(u), np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        return (share * (below @ _WEIGHTS)).sum(axis=1), (share * ((slope * size / sd) @ _WEIGHTS)).sum(axis=1)

    return distribution


def _median(distribution: _Distribution, start: FloatArray) -> FloatArray:
    """Where a distribution is ½, (S,), by Newton's method within brackets that are halved in every third step."""
    size = np.abs(start) + np.finfo(np.float64).tiny
    low, high = start - size, start + size
    for end, step in ((low, -1.0), (high, 1.0)):
        width = size.copy()
        while (outside := step * (0.5 - distribution(end)[0]) > 0.0).any():
            width[outside] *= 4.0
            end[outside] += step * width[outside]
    t = start
    for turn in range(_STEPS):
        below, slope = distribution(t)
        low, high = np.where(below < 0.5, t, low), np.where(below < 0.5, high, t)
        newton = t - np.divide(below - 0.5, slope, out=np.full_like(t, np.inf), where=slope > _FLAT)
        usable = (newton >= low) & (newton <= high) & (turn % 3 < 2)
        moved = np.where(usable, newton, 0.5 * (low + high)) - t
        t = t + moved
        if (np.abs(moved) <= _CLOSE * np.abs(t)).all():
            break
    return t
