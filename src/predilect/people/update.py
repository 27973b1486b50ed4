"""Sites, and modes of people's own tie thresholds, run to convergence at a fixed population.

log δ_u = log δ + θ_u with θ_u ~ N(0, σ²). Given m, Σ, δ and σ a person's θ_u depends on nobody else's, so the result
depends on the person's answers only, not on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from predilect._types import FloatArray
from predilect.gaussian.design import Sites
from predilect.people.convergence import (
    HIGHEST_CHORD,
    LARGEST_STEP,
    LOWEST_CHORD,
    MOST_THRESHOLD_STEPS,
    TOO_SHORT,
    person_at_rest,
)
from predilect.people.expectation import Expectation, expectation
from predilect.people.layout import Law, People, has_many_copies
from predilect.people.overlay import Person, side_by_side

MOST_SETTLING_SWEEPS = 100
SITE_TOLERANCE = 1e-10  # largest change of a margin in a sweep, in units of its noise
LOOSE_TOLERANCE = 1e-7  # above it the sweeps are said not to have converged
_QUICK = 2.0**18  # multiply-adds of one product of matrices, below which BLAS keeps to one thread by itself
_NO_ROWS = np.zeros((0, 0))


def thresholds_at_rest(
    evaluate: Callable[[FloatArray], FloatArray], log_factor: FloatArray, spread: float, tolerance: float
) -> tuple[FloatArray, float]:
    """Modes θ_u of each person's evidence less θ_u² / 2σ², by one Newton step and then chords; the largest step left.

    ``evaluate`` runs the sites to convergence at θ (n,) and returns gradient and curvature, (n, 2). The curvature is
    that with the cavities held, since the sites' part would take a system of the size of a person's answers; chords see
    it for nothing. Some four to eight evaluations.
    """
    theta, last = log_factor, 0.0
    ties = evaluate(theta)
    gradient = ties[:, 0] - theta / spread**2
    chord = np.zeros_like(theta)  # not known yet
    for _ in range(MOST_THRESHOLD_STEPS):
        hessian = np.maximum(-ties[:, 1], 0.0) + spread**-2
        hessian = np.where(chord > 0.0, np.clip(chord, LOWEST_CHORD * hessian, HIGHEST_CHORD * hessian), hessian)
        step = np.clip(gradient / hessian, -LARGEST_STEP, LARGEST_STEP)
        last = float(np.max(np.abs(step), initial=0.0))
        if not last > tolerance:
            break
        theta, before = theta + step, gradient
        ties = evaluate(theta)
        gradient = ties[:, 0] - theta / spread**2
        chord = np.divide(before - gradient, step, out=np.zeros_like(step), where=np.abs(step) > TOO_SHORT)
    return theta, last


def settle_all(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    spread: float,
    log_tie_factor: FloatArray,
    *,
    tolerance: float = 1e-9,
    executor: ThreadPoolExecutor | None = None,
) -> tuple[FloatArray, Expectation, float]:
    """Convergence of all sites and, if ``spread`` > 0, of people's own tie thresholds, with the population held.

    Returns log factors of the thresholds, sums over people, and the last step of a threshold.
    """
    found: Expectation | None = None
    last = 0.0

    def evaluate(theta: FloatArray) -> FloatArray:
        nonlocal found
        own = replace(people, tie_factor=np.exp(theta)) if spread else people
        found = settle(own, sites, law, delta, tolerance=tolerance, executor=executor)
        return found.ties

    if spread:
        log_tie_factor, last = thresholds_at_rest(evaluate, log_tie_factor, spread, tolerance)
    else:
        evaluate(log_tie_factor)
    assert found is not None
    return log_tie_factor, found, last


def settle(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    *,
    tolerance: float = 1e-9,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """Sweeps to convergence of every person's sites, in place, with the population held."""
    return expectation(people, sites, law, delta, n_sweeps=MOST_SETTLING_SWEEPS, tolerance=tolerance, executor=executor)


def is_quick(person: Person, law: Law) -> bool:
    """Whether a person's update needs no matrix product large enough for BLAS to start threads."""
    n, k = len(person.outcome), len(person.items)
    return min(n, k) < 64 and min(n, k) ** 2 * law.Phi.shape[1] < _QUICK


def settled(
    person: Person, law: Law, delta: float, *, largest_state: int, spread: float = 0.0
) -> tuple[Person, float]:  # fmt: skip
    """Fixed point of expectation propagation for one person; with ``spread`` σ also of the own threshold.

    Returns the person and what the last sweep changed, in noise units of a margin; above :data:`SITE_TOLERANCE` if it
    did not converge. O(n min(n, k)²) a sweep for n answers on k items.
    """
    n, k = len(person.outcome), len(person.items)
    if not n:
        return (person._replace(tie_factor=np.ones(1)) if spread else person), 0.0
    if min(n, k) > largest_state // 8 or has_many_copies(person.weight, largest_state):
        people, sites = side_by_side([person], len(law.mean), largest_state=largest_state)
        if people.is_heavy[0]:
            start = np.log(person.tie_factor)
            theta, found, last = settle_all(people, sites, law, delta, spread, start, tolerance=SITE_TOLERANCE)
            factor = np.exp(theta) if spread else person.tie_factor
            person = person._replace(precision=sites.precision, linear=sites.linear, tie_factor=factor)
            return person, max(found.largest_change, last)
    items, precision, linear = person.items, person.precision.copy(), person.linear.copy()
    if law.has_basis:
        cov, Phi = law.cov[items], law.Phi[items]
        rho = law.rho[items] if len(law.rho) else law.rho
    else:
        cov, Phi, rho = law.Sigma[items[:, None], items], _NO_ROWS, law.rho
    theta, change = person_at_rest(
        np.arange(k, dtype=np.int32), person.left, person.right, person.outcome, person.weight, person.traits,
        precision, linear, cov, Phi, rho, law.mean[items], law.shift[items], delta,
        math.log(person.tie_factor.item(0)), spread, MOST_SETTLING_SWEEPS, SITE_TOLERANCE,
    )  # fmt: skip
    factor = np.array([math.exp(theta)]) if spread else person.tie_factor
    return person._replace(precision=precision, linear=linear, tie_factor=factor), change
