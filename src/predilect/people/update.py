"""Modes of people's own tie thresholds at a fixed population, found together with the sites.

log δ_u = log δ + θ_u with θ_u ~ N(0, σ²). Given m, Σ, δ and σ a person's θ_u depends on nobody else's, so the result
depends on the person's answers only, not on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.gaussian.sites import Sites
from predilect.people.convergence import (
    FIRST_REST,
    HIGHEST_CHORD,
    LARGEST_STEP,
    LOWEST_CHORD,
    MOST_THRESHOLD_STEPS,
    TOO_SHORT,
    next_threshold,
    people_at_rest,
    person_at_rest,
)
from predilect.people.distribution import Law
from predilect.people.expectation import Expectation, PersonPass, dense_pass, expectation
from predilect.people.layout import People, has_many_copies, lay_out_columns
from predilect.people.overlay import Person, joined, person_of, picked, side_by_side
from predilect.people.posterior import PopulationPosterior
from predilect.shards import Shard, map_shards

FloatArray = npt.NDArray[np.float64]


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


def threshold_at_rest(
    evaluate: Callable[[float, float], tuple[float, float]], log_factor: float, spread: float, tolerance: float
) -> tuple[float, float]:
    """The same for one person, whose sweeps need not converge at every θ.

    ``evaluate`` sweeps the sites at θ to a tolerance; it need be only as tight as the last step of θ, and ``tolerance``
    at the end. For a person with few answers :func:`~predilect.people.convergence.person_at_rest` does
    this.
    """
    theta, gradient, step, chord, last, rest = log_factor, 0.0, 0.0, 0.0, 1.0, max(FIRST_REST, tolerance)
    slope, curvature = evaluate(theta, rest)
    for _ in range(MOST_THRESHOLD_STEPS):
        theta, gradient, step, chord, last, rest, done = next_threshold(
            theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest
        )
        if done:
            break
        slope, curvature = evaluate(theta, rest)
    return theta, last


MOST_SETTLING_SWEEPS = 100


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


CodeArray = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Rows of several users: a key is the user's position times the number of kinds of answers, plus the kind."""

    rows: Rows
    kinds: CodeArray  # keys of one user's answers that occur here or in the change, ascending
    traits: FloatArray  # (n_people, n_traits)
    tie_factor: FloatArray  # (n_people,)

    @classmethod
    def of(cls, posterior: PopulationPosterior, users: CodeArray, traits: FloatArray, key: CodeArray) -> Group:
        """Users of a posterior, with distinct ascending codes; ``key`` are the answers that will come or go.

        Codes from the number of known users on are new, with ``traits`` (n_new, n_traits). O(their answers).
        """
        overlay, n_base = posterior.overlay.people, posterior.people.n_users
        base = users[[user < n_base and user not in overlay for user in users.tolist()]]
        beside = {
            user: overlay[user] if user in overlay else Person.silent(traits[user - posterior.n_users][None])
            for user in np.setdiff1d(users, base).tolist()
        }
        people, sites = picked(posterior.people, posterior.sites, base)
        if beside:
            others = side_by_side(list(beside.values()), posterior.n_items)
            order = np.argsort(np.concatenate((base, np.array(list(beside)))))
            people, sites = joined(people, sites, others, order)
        owner = np.repeat(np.arange(len(users)), np.diff(people.answer_ptr))
        start = people.item_ptr[owner]
        own = keys_of(people.item_idx[start + people.left], people.item_idx[start + people.right], people.outcome)
        kinds = np.unique(np.concatenate((own, key)))
        place = owner * len(kinds) + kinds.searchsorted(own)
        return cls(
            Rows.of(place, people.weight, (sites.precision, sites.linear)), kinds, people.traits, people.tie_factor
        )

    def keys(self, owner: CodeArray, key: CodeArray) -> CodeArray:
        """Keys in the group of answers, from the positions of their users in it."""
        return np.asarray(owner * len(self.kinds) + self.kinds.searchsorted(key))

    def layout(self, rows: Rows, like: PopulationPosterior) -> tuple[People, Sites]:
        """Layout of the users with other rows."""
        left, right, outcome = sides_of(self.kinds[rows.key % len(self.kinds)])
        people = lay_out_columns(
            rows.key // len(self.kinds), left, right, outcome, rows.weight, n_items=like.n_items, traits=self.traits,
            tie_factor=self.tie_factor, largest_state=like.people.largest_state, n_basis=like.n_basis,
        )  # fmt: skip
        return people, Sites(rows.carried[0].copy(), rows.carried[1].copy())


SITE_TOLERANCE = 1e-10  # largest change of a margin in a sweep, in units of its noise
LOOSE_TOLERANCE = 1e-7  # above it the sweeps are said not to have converged
_QUICK = 2.0**18  # multiply-adds of one product of matrices, below which BLAS keeps to one thread by itself

_NO_ROWS = np.zeros((0, 0))


def is_quick(person: Person, law: Law) -> bool:
    """Whether a person's update needs no matrix product large enough for BLAS to start threads."""
    n, k = len(person.outcome), len(person.items)
    return min(n, k) < 64 and min(n, k) ** 2 * law.Phi.shape[1] < _QUICK


def settled(
    person: Person, law: Law, delta: float, *, largest_state: int, spread: float = 0.0
) -> tuple[Person, float]:  # fmt: skip
    """Fixed point of expectation propagation for one person; with ``spread`` σ also of the own threshold.

    Returns the person and what the last sweep changed, in noise units of a margin; above :data:`SITE_TOLERANCE` if it
    did not converge. The loop is :func:`~predilect.people.convergence.person_at_rest` on the person's
    own items; O(n min(n, k)²) a sweep for n answers on k items.
    """
    n = len(person.outcome)
    if not n:
        return (person._replace(tie_factor=np.ones(1)) if spread else person), 0.0
    person = person._replace(precision=person.precision.copy(), linear=person.linear.copy())
    items = person.items
    k = len(items)
    if min(n, k) > largest_state // 8 or has_many_copies(person.weight, largest_state):
        people, sites = person.layout(len(law.mean), largest_state)
        if people.is_heavy[0]:
            return _dense_at_rest(person, people, sites, law, delta, spread)
    if law.has_basis:
        cov, Phi = law.cov[items], law.Phi[items]
        rho = law.rho[items] if len(law.rho) else law.rho
    else:
        cov, Phi, rho = law.Sigma[items[:, None], items], _NO_ROWS, law.rho
    theta, change = person_at_rest(
        np.arange(k, dtype=np.int32), person.left, person.right, person.outcome, person.weight, person.traits,
        person.precision, person.linear, cov, Phi, rho, law.mean[items], law.shift[items], delta,
        math.log(person.tie_factor.item(0)), spread, MOST_SETTLING_SWEEPS, SITE_TOLERANCE,
    )  # fmt: skip
    return (person._replace(tie_factor=np.array([math.exp(theta)])) if spread else person), change


def _dense_at_rest(
    person: Person, people: People, sites: Sites, law: Law, delta: float, spread: float
) -> tuple[Person, float]:
    """:func:`settled` for a person with very many answers, whose layout is ``people``; ``sites`` change in place."""

    def sweep(tie_factor: FloatArray, tolerance: float) -> PersonPass:
        own = replace(people, tie_factor=tie_factor)
        return dense_pass(own, 0, sites, law, delta, MOST_SETTLING_SWEEPS, tolerance)

    if not spread:
        return person, float(sweep(person.tie_factor, SITE_TOLERANCE).out[3])
    change, factor = 0.0, person.tie_factor.copy()

    def evaluate(theta: float, tolerance: float) -> tuple[float, float]:
        nonlocal change
        factor[0] = math.exp(theta)
        done = sweep(factor, tolerance)
        change = float(done.out[3])
        return done.ties.item(0), done.ties.item(1)

    _, last = threshold_at_rest(evaluate, math.log(factor[0]), spread, SITE_TOLERANCE)
    return person._replace(tie_factor=factor), max(change, last)


def settled_together(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    executor: ThreadPoolExecutor | None,
    *,
    spread: float = 0.0,
) -> tuple[list[Person], float]:
    """:func:`settled` for many people, in threads; ``sites`` change in place."""
    theta = np.log(people.tie_factor)

    def work(shard: Shard) -> float:
        return float(people_at_rest(
            shard[0], shard[1], people.answer_ptr, people.item_ptr, people.item_idx, people.left, people.right,
            people.outcome, people.weight, people.traits, sites.precision, sites.linear, law.cov,
            law.Phi, law.rho, law.mean, law.shift, delta, theta, spread,
            people.is_heavy, MOST_SETTLING_SWEEPS, SITE_TOLERANCE,
        ))  # fmt: skip

    def work_dense(shard: Shard) -> tuple[Person, float]:
        person = person_of(people, sites, shard[0])
        layout = person.layout(people.n_items, people.largest_state)
        return _dense_at_rest(person, *layout, law, delta, spread)

    change = max(map_shards(work, people.shards, executor), default=0.0)
    if spread:
        silent = np.diff(people.answer_ptr) == 0
        people = replace(people, tie_factor=np.where(silent, 1.0, np.exp(theta)))
    persons = [person_of(people, sites, user) for user in range(people.n_users)]
    heavy = people.heavy.tolist()
    done = map_shards(work_dense, [(user, user + 1) for user in heavy], executor)
    for user, (person, its_change) in zip(heavy, done, strict=True):
        persons[user] = person
        change = max(change, its_change)
    return persons, change
