"""Everybody's E step: expectation propagation of all people, to convergence if asked, and the sums over them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.shards import Shard, map_shards
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import mirror, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.dense import add_person
from predilect.inference.people.ep import (
    FIRST_REST,
    MOST_THRESHOLD_STEPS,
    Slopes,
    Sums,
    answers_evidence,
    em_pass,
    engagement,
    next_threshold,
    refresh_sites,
)
from predilect.inference.people.lanes import em_lanes
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, each_once, is_quicker_by_items

MOST_SWEEPS = 100  # to convergence
SITE_TOLERANCE = 1e-10  # of one person: largest change of a margin in a sweep, in units of its noise
LOOSE_TOLERANCE = 1e-7  # above it the sweeps are said not to have converged
_SMALLEST_STEP = 0.1


@dataclass(frozen=True, slots=True)
class PersonPass:
    """Contribution of one person, on the own items."""

    user: int
    items: npt.NDArray[np.int32]
    x: FloatArray  # Xᵀ α, (k,)
    Q: FloatArray  # Xᵀ Q X, (k, k)
    engaged: float  # by which both are to be multiplied
    evidence: float  # log Z_u
    tie_factor: float  # by which the threshold is multiplied
    out: FloatArray  # (4,): evidence, its gradient and curvature in δ, largest change of a margin
    own_slopes: FloatArray  # (4 + 2 n_effects,), as in :class:`~predilect.inference.people.ep.Slopes`
    pull: FloatArray  # of each row on its offset, (n,)


class _Dense:
    """A person with very many answers, whose sites are swept in parallel, in place, with step control."""

    def __init__(self, people: People, user: int, sites: Sites, law: Law) -> None:
        rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
        self.outcome, self.task, self.weight = people.answers[rows], people.task[rows], people.weight[rows]
        self.precision, self.linear = sites.precision[rows], sites.linear[rows]  # views: the sites change in place
        self.items, self.person = people.dense(user, law)
        self.a = float(people.consistency[user])
        self.offset = self.a * people.offset[rows]
        self.refresh, self.add_evidence = (people.compiled(loop) for loop in (refresh_sites, answers_evidence))
        self._condition()

    def _condition(self) -> None:
        self.state = self.person.condition(self.weight * self.precision, self.weight * self.linear)

    def sweep(self, delta: float, n_sweeps: int, tolerance: float) -> float:
        """Sweeps with the fixed point of sequential ones; largest change of a margin in the last."""
        step, last, largest = 1.0, math.inf, 0.0
        for _ in range(n_sweeps):
            # What the copies of a row leave of the variance that there is without them, which is at most the prior's:
            # where they carry nearly all information, the difference has lost its digits and the bound has them.
            total = self.weight * self.precision
            share = np.maximum(1.0 - total * self.state.var, 1.0 / (1.0 + total * self.person.prior_var))
            largest = self.refresh(
                self.outcome, self.task, self.weight, self.state.mean, self.state.var, share, self.precision,
                self.linear, delta, self.offset, step,
            )  # fmt: skip
            if largest > last:
                step = max(0.5 * step, _SMALLEST_STEP)
            last = largest
            self._condition()
            if largest < tolerance:
                break
        return largest

    def evidence(self, delta: float) -> FloatArray:
        """Log Z, its gradient and curvature in δ, and gradient and information in the log of the consistency, (5,)."""
        out, state = np.zeros(5), self.state
        self.add_evidence(
            self.outcome, self.task, self.weight, state.mean, state.var, self.precision, self.linear,
            self.person.z_bar, delta, self.offset, self.person.of_noise(state), out,
        )  # fmt: skip
        out[0] += 0.5 * (state.quadratic - state.log_det)
        return out


def dense_pass(
    people: People, user: int, sites: Sites, law: Law, delta: float, spread: float, n_sweeps: int, tolerance: float
) -> PersonPass:  # fmt: skip
    """:func:`~predilect.inference.people.ep.em_pass` of one person, by dense factorisations."""
    dense, clicks, held = _Dense(people, user, sites, law), people.clicks[user], people.engaged[user]
    factor = float(people.tie_factor[user])
    theta, last, memory = math.log(factor), 0.0, (0.0, 0.0, 0.0, 1.0, max(FIRST_REST, tolerance))
    for i in range(MOST_THRESHOLD_STEPS + 1):
        own_delta = delta * factor
        largest = dense.sweep(own_delta, n_sweeps, memory[-1] if spread else tolerance)
        out = dense.evidence(own_delta)
        w, total = engagement(out[0], clicks, held)
        slope = own_delta * out[1]
        curvature = own_delta * own_delta * out[2] + slope
        if not spread or i == MOST_THRESHOLD_STEPS:
            break
        theta, *memory, done = next_threshold(theta, w * slope, w * curvature, spread, tolerance, *memory)
        last = memory[-2]
        if done:
            break
        factor = math.exp(theta)
    own_slopes = np.array([slope, curvature, out[3], out[4]])
    a, state = dense.a, dense.state
    x, Q = dense.person.sums(state)
    k = len(dense.items)
    if k < len(x):
        of_effects = np.column_stack((a * x[k:], a * a * np.diagonal(Q)[k:]))
        x, Q, own_slopes = x[:k], Q[:k, :k], np.append(own_slopes, of_effects)
    pull = a * dense.weight * (dense.linear - dense.precision * state.mean)
    totals = np.array([total, w * factor * out[1], w * factor * factor * out[2], max(largest, last)])
    return PersonPass(
        user, dense.items, a * x, a * a * Q, w, float(out[0]), factor, totals, w * own_slopes, w * pull
    )  # fmt: skip


_ROUNDING = 1e-8  # of the largest
_LARGE_STATE = 64  # items of a heavy person, whose matrices then take longer than what is done about them


@dataclass(frozen=True, slots=True)
class Expectation:
    """Sums over people (population.md section 3); curvatures have the cavities held."""

    evidence: float  # Σ log Z_u, in nats
    H: FloatArray  # Σ Xᵀ Q X, (M, M); on a basis Φᵀ . Φ
    D: FloatArray  # Σ (Xᵀ α αᵀ X - Xᵀ Q X), (M, M): twice the gradient of the evidence in Σ
    r: FloatArray  # Σ Xᵀ α, (M,): gradient in m
    r_items: FloatArray  # the same item by item, (n_items,)
    r_traits: FloatArray  # (M, n_traits): gradient in the effects of traits
    own_H: FloatArray  # diagonals of H and D over items; empty without item-specific residuals
    own_D: FloatArray
    slope_delta: float
    curvature_delta: float
    largest_change: float  # of a margin in the last sweep, in noise units
    # (n_users, 4 + 2 n_effects): gradient and curvature in the logarithm of each person's own threshold, gradient and
    # information in that of the consistency, and mean, and 1 less the variance, of own effects of covariates
    own_slopes: FloatArray = field(default_factory=lambda: np.zeros((0, 4)))
    r_covariates: FloatArray = field(default_factory=lambda: np.zeros(0))  # (n_covariates,): gradient in their effects
    engaged: FloatArray = field(default_factory=lambda: np.zeros(0))  # of each person, (n_users,)
    evidences: FloatArray = field(default_factory=lambda: np.zeros(0))  # log Z_u, (n_users,)
    # by which each person's threshold is multiplied, (n_users,): found where the thresholds have a spread
    tie_factor: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def ties(self) -> FloatArray:
        """Gradient and curvature in the logarithm of each person's own threshold, (n_users, 2)."""
        return self.own_slopes[:, :2]

    @property
    def care(self) -> FloatArray:
        """Gradient and information in the logarithm of each person's consistency, (n_users, 2)."""
        return self.own_slopes[:, 2:4]

    @property
    def is_sound(self) -> bool:
        """Whether all is finite and no margin variance or information is negative; otherwise the digits ran out."""
        information = np.diagonal(self.H)
        lost = float(information.min(initial=0.0)) < -_ROUNDING * float(information.max(initial=0.0))
        return math.isfinite(self.evidence) and math.isfinite(self.largest_change) and not lost


def expectation(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    *,
    spread: float = 0.0,
    n_sweeps: int = 1,
    tolerance: float = 0.0,
    sums: bool = True,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """EP sweeps of every person's sites, in place, until none changes a margin by ``tolerance``; the sums over people.

    With a ``spread`` σ of the logarithm of people's own thresholds each is at its mode in the end, from the factor that
    it has on. Without ``sums`` those over items are empty, as are means of own effects.

    population.md sections 2 and 3. Time Σ_u n_u min(n_u, k_u)² + k_u³ for n_u answers on k_u items, and with a basis of
    M functions M min(n_u, k_u)² more and n_items M² in all; memory 2 n_items M floats a shard in flight, never anything
    of people x items x items. Nothing of n_items without sums.
    """
    options: dict[str, Any] = {"spread": spread, "n_sweeps": n_sweeps, "tolerance": tolerance, "executor": executor}
    if sums and law.has_basis and is_quicker_by_items(people.n_items, law.Phi.shape[1]) and not len(people.heavy):
        dense = Law(law.covariance(np.arange(people.n_items)), law.mean, shift=law.shift)
        return _on_basis(expectation(people, sites, dense, delta, **options), law)
    M = 0 if not sums else law.Phi.shape[1] if law.has_basis else people.n_items
    one_pass, in_lanes = people.compiled(em_pass), people.compiled(em_lanes)
    n_effects = people.patterns.shape[1]
    # Each person is in one shard: written, not summed.
    slopes = Slopes(
        np.zeros((people.n_users, 4 + 2 * people.slope_columns.shape[1])),
        np.zeros(people.n_rows if n_effects else 0),
        people.engaged.copy(),
        np.zeros(people.n_users),
        np.where(np.diff(people.answer_ptr) > 0, people.tie_factor, 1.0) if spread else people.tie_factor,
    )
    columns, prior = people.columns(sites), law.prior
    kind, alone = people.lanes(law.has_basis, spread > 0.0)
    others = columns._replace(is_heavy=~alone)

    def work(shard: Shard) -> Sums:
        total = _no_sums(people, law, M)
        if law.has_basis:
            total = total._replace(D=np.zeros((shard[1] - shard[0], M)))
        queue = people.queue[slice(*shard)]
        if kind[queue[0]]:
            in_lanes(
                shard[0], queue, kind, people.by_item, columns, prior, law.functions, delta, n_sweeps, tolerance, total,
                slopes,
            )  # fmt: skip
        if alone[slice(*shard)].any():
            one_pass(
                *shard, others, people.among_items, prior, law.functions, delta, spread, n_sweeps, tolerance, total,
                slopes,
            )  # fmt: skip
        return total._replace(D=total.D.T @ total.D) if law.has_basis else total

    def work_dense(shard: Shard) -> PersonPass:
        return dense_pass(people, shard[0], sites, law, delta, spread, n_sweeps, tolerance)

    parts = map_shards(work, people.shards, executor)
    total = next(parts, None) or _no_sums(people, law, M)  # nobody is in no shard
    for part in parts:
        largest = max(total.out[3], part.out[3])
        for whole, summand in zip(total, part, strict=True):
            whole += summand
        total.out[3] = largest
    # Threads of small matrices would wait for each other at the interpreter.
    is_large = np.diff(people.item_ptr)[people.heavy].max(initial=0) >= _LARGE_STATE
    each = [(user, user + 1) for user in people.heavy.tolist()]
    for person in map_shards(work_dense, each, executor if is_large else None):
        _add_dense(total, person, law, people.traits[person.user], sums=sums)
        slopes.of_people[person.user] = person.own_slopes
        slopes.engaged[person.user], slopes.evidences[person.user] = person.engaged, person.evidence
        slopes.tie_factor[person.user] = person.tie_factor
        if n_effects:
            slopes.of_rows[people.answer_ptr[person.user] : people.answer_ptr[person.user + 1]] = person.pull
    H, D, r, r_traits = total.H, total.D, total.r, total.r_traits
    if sums and law.has_basis:
        H, r, r_traits = symmetrise(law.Phi.T @ H), law.Phi.T @ r, law.Phi.T @ r_traits
        D = D - H
    elif sums:
        for lower in (H, D):
            mirror(lower)
    out = total.out
    return Expectation(
        float(out[0]), H, D, r, total.r, r_traits, total.own_H, total.own_D, float(out[1]), float(out[2]),
        float(out[3]), slopes.of_people, people.of_covariates(slopes.of_rows) if n_effects else np.zeros(0),
        slopes.engaged, slopes.evidences, slopes.tie_factor,
    )  # fmt: skip


def converge(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    *,
    spread: float = 0.0,
    tolerance: float = 1e-9,
    sums: bool = True,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """:func:`expectation` with sweeps until every person's sites, and thresholds with a ``spread``, have converged."""
    return expectation(
        people, sites, law, delta, spread=spread, n_sweeps=MOST_SWEEPS, tolerance=tolerance, sums=sums,
        executor=executor,
    )  # fmt: skip


def _on_basis(found: Expectation, law: Law) -> Expectation:
    """Sums over items projected on the functions of a basis."""
    own = len(law.rho) > 0
    return replace(
        found,
        H=symmetrise(law.Phi.T @ found.H @ law.Phi),
        D=symmetrise(law.Phi.T @ found.D @ law.Phi),
        r=law.Phi.T @ found.r,
        r_traits=law.Phi.T @ found.r_traits,
        own_H=np.diagonal(found.H).copy() if own else found.own_H,
        own_D=np.diagonal(found.D).copy() if own else found.own_D,
    )


def _no_sums(people: People, law: Law, M: int) -> Sums:
    n_items, n_own = (people.n_items, len(law.rho)) if M else (0, 0)
    return Sums(
        np.zeros((n_items, M)), np.zeros((M, M)), np.zeros(n_items), np.zeros((n_items, people.traits.shape[1])),
        np.zeros(n_own), np.zeros(n_own), np.zeros(4),
    )  # fmt: skip


def _add_dense(total: Sums, person: PersonPass, law: Law, traits: FloatArray, *, sums: bool) -> None:
    total.out[:3] += person.out[:3]
    total.out[3] = max(total.out[3], person.out[3])
    if not sums:
        return
    items, x, Q = each_once(person.items, person.x, person.Q)
    w = person.engaged
    x, Q, root = w * x, w * Q, math.sqrt(w) * x
    if law.has_basis:
        rows = law.Phi[items]
        total.H[items] += Q @ rows
        total.D[:] += np.outer(root @ rows, root @ rows)
    else:
        add_person(items, root, Q, total.H, total.D)
    if len(total.own_H):
        total.own_H[items] += np.diagonal(Q)
        total.own_D[items] += root * root - np.diagonal(Q)
    total.r[items] += x
    total.r_traits[items] += np.outer(x, traits)
