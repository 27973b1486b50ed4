"""Sites, and modes of people's own tie thresholds, run to convergence at a fixed population."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Intervals
from predilect.inference.likelihoods.probit import tilted_scalar
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.engaged import with_clicks
from predilect.inference.people.ep import (
    Answers,
    Prior,
    are_better_among_items,
    begin,
    marginal,
    marginal_of_effects,
    replay,
    room_of_state,
    shape_of,
    sweep,
)
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, has_many_copies
from predilect.inference.people.person import Person, side_by_side
from predilect.inference.people.tasks import room_of_task

MOST_THRESHOLD_STEPS = 40
LARGEST_STEP = 1.0
# A chord's slope is accepted within these factors of the curvature with the cavities held.
LOWEST_CHORD, HIGHEST_CHORD = 0.2, 5.0
TOO_SHORT = 1e-9  # a step whose chord would be rounding
# Tolerance of the sites of one person at first, and as a share of the last step.
FIRST_REST, REST = 1e-3, 0.02
_OF_THRESHOLD = 5.0  # how much more a threshold may be left to move, in its logarithm, than a margin


@kernel
def next_threshold(theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest):
    """Chord step of a person's θ = log of the own threshold, and the tolerance of the sites after it.

    ``gradient, step, chord, last, rest`` are what the call before returned; at first anything, 0, 0, 1 and
    :data:`FIRST_REST`. Returns them with θ, and whether θ, unchanged then, and the sites have converged.
    """
    before = gradient
    gradient = slope - theta / spread**2
    if abs(step) > TOO_SHORT:
        chord = (before - gradient) / step
    hessian = max(-curvature, 0.0) + spread**-2
    if chord > 0.0:
        hessian = min(max(chord, LOWEST_CHORD * hessian), HIGHEST_CHORD * hessian)
    step = min(max(gradient / hessian, -LARGEST_STEP), LARGEST_STEP)
    earlier, last = last, abs(step)
    if last > _OF_THRESHOLD * tolerance:
        # Chords leave an error of the order of the last two steps' product: where that is little, it was the last.
        rest = tolerance if last * earlier < tolerance else max(min(rest, REST * last), tolerance)
        return theta + step, gradient, step, chord, last, rest, False
    return theta, gradient, 0.0, chord, last, tolerance, not rest > tolerance


@inner_kernel
def _pull_of_threshold(shape, answers, delta, state):
    """Gradient and curvature, with the cavities held, of the person's evidence in log δ."""
    C, mu, a, b = state.C, state.mu, state.a, state.b
    slope = 0.0
    curvature = 0.0
    for p in range(answers.left.shape[0]):
        if answers.task[p] >= 0:
            continue
        v, mean = marginal(C, mu, a[p], b[p])
        if shape.d > shape.m:
            of_effects = marginal_of_effects(C, mu, a[p], b[p], answers.sway, p, shape.m, shape.d)
            v, mean = v + of_effects[0], mean + of_effects[1]
        denominator = 1.0 - answers.lam[p] * v
        v_c = v / denominator
        m_c = (mean - v * answers.eta[p]) / denominator
        _, _, _, slope_delta, curvature_delta = tilted_scalar(
            answers.outcome[p], m_c + answers.consistency * answers.offset[p], v_c, delta
        )
        slope += answers.weight[p] * slope_delta
        curvature += answers.weight[p] * curvature_delta
    slope *= delta
    return slope, delta * delta * curvature + slope


@kernel
def person_at_rest(answers, among_items, prior, Phi, delta, theta, spread, n_sweeps, tolerance):
    """One person's sites run to convergence, in place, and with a ``spread`` the threshold δ exp(θ) with them.

    ``answers``: :class:`~predilect.inference.people.ep.Answers`, whose ``items`` are positions in ``prior`` and
    ``Phi``. A spread of 0 holds θ. Returns θ and the last change of a margin, or the last step of θ where that is
    larger.

    The state lives through all values of θ: sites need not be replayed for each, nor arrays laid out.
    """
    n, k = answers.left.shape[0], answers.items.shape[0]
    shape = shape_of(answers.task, k, answers.sway.shape[1])
    state = room_of_state(shape.d, k, n, among_items, Phi)
    block = room_of_task(k, answers.sway.shape[1], n, among_items)
    begin(shape, answers, prior, Phi, state, block)
    replay(shape, answers, state, block)
    fixed = spread == 0.0
    gradient, step, chord, last, done = 0.0, 0.0, 0.0, 0.0 if fixed else 1.0, False
    rest = tolerance if fixed else max(FIRST_REST, tolerance)
    change = 0.0
    for i in range(MOST_THRESHOLD_STEPS + 1):
        own_delta = delta * math.exp(theta)
        for _ in range(n_sweeps):
            _, change = sweep(shape, answers, own_delta, state, block)
            if change < rest:
                break
        if fixed or i == MOST_THRESHOLD_STEPS:
            break
        slope, curvature = _pull_of_threshold(shape, answers, own_delta, state)
        theta, gradient, step, chord, last, rest, done = next_threshold(
            theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest
        )
        if done:
            break
    return theta, max(change, last)


MOST_SETTLING_SWEEPS = 100
SITE_TOLERANCE = 1e-10  # largest change of a margin in a sweep, in units of its noise
LOOSE_TOLERANCE = 1e-7  # above it the sweeps are said not to have converged
_QUICK = 2.0**18  # multiply-adds of one product of matrices, below which BLAS keeps to one thread by itself
# Sweeps to convergence of every person's sites, in place, with the population held.
settle = partial(expectation, n_sweeps=MOST_SETTLING_SWEEPS, tolerance=1e-9)


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


_CHORD = 0.1  # of the logarithm of a consistency


def information_of_consistency(
    people: People, sites: Sites, law: Law, delta: float, slope: FloatArray, *, tolerance: float,
    executor: ThreadPoolExecutor | None,
) -> FloatArray:  # fmt: skip
    """Information of people's answers about the logarithm of their consistency, (n_users,), by a chord.

    ``slope`` (n_users,) of their evidence where the sites are.
    """
    moved = replace(people, consistency=people.consistency * math.exp(_CHORD))
    further = settle(moved, sites.copy(), law, delta, tolerance=tolerance, executor=executor).care[:, 0]
    return np.maximum((slope - further) / _CHORD, 0.0)


def is_quick(person: Person, law: Law) -> bool:
    """Whether a person's update needs no matrix product large enough for BLAS to start threads."""
    n, k = len(person.outcome), len(person.items)
    return min(n, k) < 64 and min(n, k) ** 2 * law.Phi.shape[1] < _QUICK


def settled(
    person: Person, law: Law, delta: float, *, largest_state: int, spread: float = 0.0,
    likelihood: type[PairLikelihood] = Probit,
) -> tuple[Person, float]:  # fmt: skip
    """Fixed point of expectation propagation for one person; with ``spread`` σ also of the own threshold.

    Returns the person and what the last sweep changed, in noise units of a margin; above :data:`SITE_TOLERANCE` if it
    did not converge. O(n min(n, k)²) a sweep for n answers on k items.
    """
    n, k = len(person.outcome), len(person.items)
    in_tasks = (person.task >= 0).any()
    among_items = 1 if in_tasks and are_better_among_items.py_func(n, k) else None
    size = n if in_tasks and not among_items else min(n, k)
    if not n:
        return (person._replace(tie_factor=np.ones(1)) if spread else person), 0.0
    if size > largest_state // 8 or has_many_copies(person.weight, largest_state):
        people, sites = side_by_side([person], len(law.mean), largest_state=largest_state)
        people = replace(people, likelihood=likelihood)
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
        cov, Phi, rho = law.Sigma[items[:, None], items], None, law.rho
    answers = Answers(
        np.searchsorted(items, items).astype(np.int32), person.left, person.right, person.answers, person.task,
        person.weight, person.offset, precision, linear, person.sway, person.traits[0], person.consistency.item(0),
    )  # fmt: skip
    theta, change = (Intervals if len(person.ends) else likelihood).compiled(person_at_rest)(
        answers, among_items, Prior(cov, rho, law.mean[items], law.shift[items]), Phi, delta,
        math.log(person.tie_factor.item(0)), spread, MOST_SETTLING_SWEEPS, SITE_TOLERANCE,
    )  # fmt: skip
    factor = np.array([math.exp(theta)]) if spread else person.tie_factor
    return person._replace(precision=precision, linear=linear, tie_factor=factor), change


def with_engagement(
    person: Person, law: Law, delta: float, rate: float, shares: FloatArray, *, largest_state: int,
    likelihood: type[PairLikelihood] = Probit,
) -> Person:  # fmt: skip
    """A person at rest with the probability of not clicking at random; ``shares`` as of
    :func:`~predilect.inference.people.engaged.log_chances_of_clicks`.
    """
    people, sites = side_by_side([person], len(law.mean), largest_state=largest_state)
    people = with_clicks(replace(people, likelihood=likelihood), rate, shares)
    return person._replace(engaged=expectation(people, sites, law, delta, n_sweeps=0).engaged)
