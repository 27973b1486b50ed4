"""How sure each person's consistency is: intervals from the evidence of the person's answers at other values of it.

people.md, "Consistency of people".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.likelihoods.special import Z_95
from predilect.inference.people.expectation import converge

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from predilect.inference.gaussian.design import Sites
    from predilect.inference.people.law import Law
    from predilect.inference.people.layout import People

_LOGS = np.linspace(-6.0, 6.0, 401)  # of a consistency
_SPREADS = np.geomspace(0.03, 2.0, 60)  # of that logarithm, and weights of a flat prior
_WEIGHTS = np.gradient(_SPREADS)
_LONGEST_STEP, _TOLERANCE = 1.5, 1e-3
_LEAST = 1e-300
_AT_ONCE = 4096


class _Evidence(NamedTuple):
    """Log evidence of each person's answers, and its slope, at five even values of log a_u, (n_users, 5) each."""

    at: FloatArray
    value: FloatArray
    slope: FloatArray

    def on_grid(self, who: slice) -> FloatArray:
        """The evidence of some people at ``_LOGS``, 1 at its largest, (n, 401).

        Cubics between the five; a line above them, and below one in a_u, as of answers that are hardly better than
        chance.
        """
        at, value, slope = (x[who] for x in self)
        step = at[:, 1:2] - at[:, :1]
        place = (_LOGS - at[:, :1]) / step
        k = np.clip(np.floor(place).astype(np.int64), 0, 3)
        t = np.clip(place - k, 0.0, 1.0)
        y, z, dy, dz = (np.take_along_axis(x, k + n, axis=1) for x in (value, slope * step) for n in (0, 1))
        log = y + t * (dy + t * (3.0 * (z - y) - 2.0 * dy - dz + t * (2.0 * (y - z) + dy + dz)))
        log += slope[:, 4:] * np.maximum(_LOGS - at[:, 4:], 0.0)
        log += slope[:, :1] * np.expm1(np.minimum(_LOGS - at[:, :1], 0.0))
        return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _evidence(
    people: People, sites: Sites, law: Law, delta: float, spread: float, unit: float,
    executor: ThreadPoolExecutor | None,
) -> _Evidence:  # fmt: skip
    information = np.maximum(people.consistency_sd**-2 - spread**-2, 1e-9)
    step = np.minimum(4.0 / np.sqrt(information), _LONGEST_STEP)
    alone = replace(people, clicks=np.zeros(0), engaged=np.zeros(0))
    found = {}
    for way in ((0, 1, 2), (-1, -2)):
        near = sites.copy()
        for k in way:
            moved = replace(alone, consistency=people.consistency * np.exp(k * step))
            here = converge(moved, near, law, delta, tolerance=_TOLERANCE, sums=False, executor=executor)
            found[k] = here.evidences, here.care[:, 0]
    value, slope = (np.array(x).T for x in zip(*(found[k] for k in range(-2, 3)), strict=True))
    at = np.log(unit * people.consistency)[:, None] + np.multiply.outer(step, np.arange(-2.0, 3.0))
    return _Evidence(at, value, slope)


def _each(rows: FloatArray, by: FloatArray, n: int) -> list[FloatArray]:
    """Products of each row with those of a matrix, in n parts: one by one, to the same bits in whatever crowd."""
    return np.split(np.array([by @ one for one in rows]), n, axis=1)


def intervals_of_consistency(
    people: People, sites: Sites, law: Law, delta: float, spread: float, unit: float, *, unsure: bool,
    executor: ThreadPoolExecutor | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Ends of 95 % intervals of each person's consistency a_u, which hold the one found, (n_users,) each.

    Of θ = log a_u given its prior N(0, σ²) and the evidence Z_u(θ) of u's answers, the consensus as it was found. σ is
    the ``spread``; if that is ``unsure``, as held-out answers mostly choose too small a one, it has a posterior by
    Π_u ∫ Z_u(θ) N(θ; 0, σ²) dθ of who does not click, and θ is of the mixture. Then the ends move further away from the
    median, by v = σ² / Σ_u (1 - var(θ_u | σ) / σ²), how unsure these people leave where the median person is.

    Notes
    -----
    Five times the answers of everybody until they converge, and 400 numbers a person, of 4 096 people at once.
    """
    evidence = _evidence(people, sites, law, delta, spread, unit, executor)
    spreads, weight = (_SPREADS, _WEIGHTS) if unsure else (np.array([spread]), np.ones(1))
    prior = np.exp(-0.5 * (_LOGS / spreads[:, None]) ** 2) / spreads[:, None]
    moments = np.concatenate([prior * _LOGS**n for n in range(3)])
    share = np.where(np.diff(people.answer_ptr) > 0, people.engaged, 0.0)
    blocks = [slice(first, first + _AT_ONCE) for first in range(0, people.n_users, _AT_ONCE)]
    log_told, known, totals = np.zeros(len(spreads)), np.zeros(len(spreads)), []
    for who in blocks:
        total, first, second = _each(evidence.on_grid(who), moments, 3)
        total = np.maximum(total, _LEAST)
        totals.append(total)
        log_told += share[who] @ np.log(total)
        known += share[who] @ np.clip(1.0 - (second / total - (first / total) ** 2) / spreads**2, 0.0, 1.0)
    weight = weight * np.exp(log_told - log_told.max())
    weight /= weight.sum()
    # Where hardly anything is known, that of one person; who gives the spread gives the unit.
    level = float(weight @ (spreads**2 / np.maximum(known, 1.0))) if unsure else 0.0
    ends = np.empty((3, people.n_users))
    for who, total in zip(blocks, totals, strict=True):
        (mixed,) = _each(weight / total, prior.T, 1)
        density = evidence.on_grid(who) * mixed
        below = np.cumsum(density, axis=1)
        below = (below - 0.5 * density) / below[:, -1:]
        for end, share_below in zip(ends, (0.025, 0.5, 0.975), strict=True):
            end[who] = [np.interp(share_below, one, _LOGS) for one in below]
    low, median, high = ends
    lower = np.exp(median - np.sqrt((median - low) ** 2 + Z_95**2 * level)) / unit
    upper = np.exp(median + np.sqrt((high - median) ** 2 + Z_95**2 * level)) / unit
    return np.minimum(lower, people.consistency), np.maximum(upper, people.consistency)
