"""Update of people with new or removed answers at a fixed population.

population.md section 4, "Update". A person's sites depend on nobody else's once m and Σ are fixed, so the fixed point
depends on the person's answers only, not on their order. Sweeps start from the present sites.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from predilect.inference.compiled.person_at_rest import people_at_rest, person_at_rest
from predilect.inference.dense_ep import PersonPass, dense_pass
from predilect.inference.population import MOST_SETTLING_SWEEPS
from predilect.inference.thresholds import threshold_at_rest
from predilect.posteriors.law import Law
from predilect.posteriors.overlay import Person, person_of
from predilect.posteriors.people import People, Sites, has_many_copies
from predilect.scale.shards import Shard, map_shards

__all__ = ["LOOSE_TOLERANCE", "SITE_TOLERANCE", "is_quick", "settled", "settled_together"]

FloatArray = npt.NDArray[np.float64]

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
    did not converge. The loop is :func:`~predilect.inference.compiled.person_at_rest.person_at_rest` on the person's
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
