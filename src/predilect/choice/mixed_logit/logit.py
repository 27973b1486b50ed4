"""Coefficients that do not vary within a class of people: conditional and latent-class logit, by maximum likelihood."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from predilect._base.progress import Report, Watcher
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.problem import ChoiceProblem, Mixture
from predilect.choice.mixed_logit.simulated import populations_around
from predilect.errors import DataError

_STARTS, _SHORT, _FINISHED = 24, 25, 6  # random starts, the EM steps of each, and how many of them are finished
_LEAST_PEOPLE = 1.0  # of a class, or it has died
_RIDGE = 1e-4  # prior precision of a coefficient of a column of size 1, where answers leave it without a bound
_LEAST_CURVATURE = 1e-2  # of the log-likelihood, below which they do
_ENOUGH = 1e-13  # nats an answer that one more step of Newton's would gain
KEPT_PEOPLE, KEPT_LAWS = 200, 400


class LogLikelihoods(NamedTuple):
    """The log-likelihood at parameters: of each person (U,), slopes (U, P), minus the Hessian of the sum (P, P)."""

    values: FloatArray
    slopes: FloatArray
    H: FloatArray
    member: FloatArray  # posterior probabilities of the classes, (U, K)


@dataclass(frozen=True, slots=True)
class Classes:
    """The likelihood of K classes: log Σ_k π_uk Π P(chosen | c_k), log odds of π_uk to π_u1 being traits_u γ_k.

    Parameters stand in one vector: the coefficients by class, K d, then γ_2 to γ_K, (K - 1) G. With one class it is
    the conditional logit (McFadden 1974).
    """

    problem: ChoiceProblem
    n_classes: int

    def unpacked(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients (..., K, d) and γ (..., K, G), zeros first."""
        K, d, G = self.n_classes, self.problem.n_coefficients, self.problem.traits.shape[1]
        c = theta[..., : K * d].reshape(*theta.shape[:-1], K, d)
        gamma = theta[..., K * d :].reshape(*theta.shape[:-1], K - 1, G)
        return c, np.concatenate([np.zeros_like(gamma, shape=(*theta.shape[:-1], 1, G)), gamma], axis=-2)

    def packed(self, c: FloatArray, gamma: FloatArray) -> FloatArray:
        """The inverse of :meth:`unpacked`, for γ in any reference."""
        return np.concatenate([c.ravel(), (gamma[1:] - gamma[0]).ravel()])

    def members(self, c: FloatArray, log_share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log-likelihoods of people (U,) and posterior probabilities of classes (U, K)."""
        U, rows = self.problem.n_users, self.problem.rows
        joint = np.stack([loops.log_likelihoods(np.tile(one, (U, 1)), rows) for one in c], axis=1) + log_share
        values = logsumexp(joint, axis=1)
        return values, np.exp(joint - values[:, None])

    def at(self, theta: FloatArray) -> LogLikelihoods:
        """Value, slopes and exact Hessian: Σ_k w_uk (∇² + ∇∇ᵀ) a_uk - ∇l_u ∇l_uᵀ, l_u = log Σ_k exp a_uk."""
        p, K = self.problem, self.n_classes
        U, d, X = p.n_users, p.n_coefficients, p.traits
        G = X.shape[1]
        c, gamma = self.unpacked(theta)
        log_share = X @ gamma.T
        log_share -= logsumexp(log_share, axis=1, keepdims=True)
        values, w = self.members(c, log_share)
        share = np.exp(log_share)
        J, H = np.zeros((K, U, len(theta))), np.zeros((len(theta), len(theta)))
        for k in range(K):
            mine = slice(k * d, (k + 1) * d)
            s, curvature = np.empty((U, d)), np.empty((d, d))
            loops.slopes_at(c[k], np.ascontiguousarray(w[:, k]), p.rows, s, curvature)
            J[k, :, mine], H[mine, mine] = s, curvature
            for m in range(1, K):
                J[k, :, K * d + (m - 1) * G : K * d + m * G] = ((k == m) - share[:, m, None]) * X
        if K == 1:
            return LogLikelihoods(values, J[0], H, w)
        slopes = np.einsum("uk,kup->up", w, J)
        spread = share[:, 1:, None] * (np.eye(K - 1) - share[:, None, 1:])
        H[K * d :, K * d :] = np.einsum("ukl,ug,uh->kglh", spread, X, X, optimize=True).reshape([(K - 1) * G] * 2)
        for k in range(K):
            H -= (w[:, k, None] * J[k]).T @ J[k]
        return LogLikelihoods(values, slopes, H + slopes.T @ slopes, w)

    def em(self, c: FloatArray, n_steps: int) -> tuple[float, FloatArray, FloatArray]:
        """EM from coefficients (K, d) and equal shares: log-likelihood, coefficients, shares (K,).

        A step of maximisation is one of Newton's, with a ridge, for each class, and not longer than 1 in a column.
        """
        p, share = self.problem, np.full(self.n_classes, 1.0 / self.n_classes)
        ridge, slope = _RIDGE * np.eye(p.n_coefficients), np.empty((p.n_users, c.shape[1]))
        for _ in range(n_steps):
            _, w = self.members(c, np.log(share))
            share = np.maximum(w.mean(axis=0), 1e-12)
            c = c.copy()
            for k in range(self.n_classes):
                curvature = np.empty_like(ridge)
                mine = np.ascontiguousarray(w[:, k])
                loops.slopes_at(c[k], mine, p.rows, slope, curvature)
                step = np.linalg.solve(curvature + ridge, mine @ slope - _RIDGE * c[k])
                c[k] += step / max(1.0, float(np.abs(step).max()))
        return float(self.members(c, np.log(share))[0].sum()), c, share


def scores_of_answers(problem: ChoiceProblem, c: FloatArray) -> FloatArray:
    """Slopes of the log-likelihoods of answers at coefficients (d,) that all share, (n_answers, d), times √weight.

    So an answer of weight 2 counts in the sum of their squares as two do, and a tie, half a choice each way, or an
    order, one choice after the other, as one.
    """
    size, first = np.diff(problem.row_ptr), problem.row_ptr[:-1]
    V = problem.D @ c
    top = np.maximum(np.maximum.reduceat(V, first), 0.0)
    odds = np.exp(V - np.repeat(top, size))
    share = odds / np.repeat(np.exp(-top) + np.add.reduceat(odds, first), size)
    slopes = -problem.share[:, None] * np.add.reduceat(share[:, None] * problem.D, first, axis=0)
    order = np.argsort(problem.answer, kind="stable")
    start = np.flatnonzero(np.diff(problem.answer[order], prepend=-1))
    times = (problem.weight / problem.share)[order[start], None]
    return np.asarray(np.sqrt(times) * np.add.reduceat(slopes[order], start, axis=0))


class Maximum(NamedTuple):
    """Where a log-likelihood is largest, and what is known there."""

    theta: FloatArray
    at: LogLikelihoods
    report: Report
    is_bounded: bool  # without the ridge


def maximised(
    likelihood: Callable[[FloatArray], LogLikelihoods], theta: FloatArray, n: float, *, max_iter: int, tolerance: float,
    watch: Watcher | None = None,
) -> Maximum:  # fmt: skip
    """Newton's method: eigenvalues of the Hessian made positive, and the step halved until it climbs; ``n`` choices.

    Where answers leave a coefficient without a bound, as those that always go one way, again with a ridge.
    """
    begin, start, n_steps = time.perf_counter(), theta, 0
    for ridge in (0.0, _RIDGE):
        theta, found = start, likelihood(start)
        gained = np.inf
        for _ in range(max_iter):
            n_steps += 1
            if watch is not None:
                watch("maximising", n_steps)
            slope = found.slopes.sum(axis=0) - ridge * theta
            values, vectors = np.linalg.eigh(found.H + ridge * np.eye(len(theta)))
            step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), _RIDGE))
            gained, size = float(slope @ step), 1.0
            before = found.values.sum() - 0.5 * ridge * float(theta @ theta)
            while True:
                trial = theta + size * step
                there = likelihood(trial)
                climbed = there.values.sum() - 0.5 * ridge * float(trial @ trial)
                if climbed >= before - 1e-11 * abs(before) or size < 1e-6:
                    break
                size *= 0.5
            theta, found = trial, there
            if gained <= _ENOUGH * n:
                break
        is_bounded = ridge == 0.0 and float(np.linalg.eigvalsh(found.H)[0]) >= _LEAST_CURVATURE
        if is_bounded:
            break
    residual = float(np.abs(found.slopes.sum(axis=0) - ridge * theta).max()) / n
    report = Report(
        "Newton's method", n_steps, residual, tolerance, residual <= tolerance, 0.0, time.perf_counter() - begin,
        "nats a choice (the largest slope)", "raise max_iter, or take fewer attributes",
    )  # fmt: skip
    return Maximum(theta, found, report, is_bounded)


def fit_classes(
    problem: ChoiceProblem, n_classes: int, *, max_iter: int, tolerance: float, random_state: int, watch: Watcher | None
) -> Maximum:
    """The best of several starts of EM, each finished by Newton's method; classes by falling share.

    DataError if a class has nobody in all of them.
    """
    n, n_people = float(problem.weight.sum()), int((np.diff(problem.choice_ptr) > 0).sum())
    if n_classes > n_people:
        raise DataError(
            f"n_classes={n_classes} classes of {n_people} people: take at most one a person, and best far fewer"
        )
    one = Classes(problem, 1)
    given = {"max_iter": max_iter, "tolerance": tolerance, "watch": watch}
    pooled = maximised(one.at, np.zeros(problem.n_coefficients), n, **given)  # type: ignore[arg-type]
    if n_classes == 1:
        return pooled
    rng = np.random.default_rng(random_state)
    likelihood, G = Classes(problem, n_classes), problem.traits.shape[1]
    begun = []
    for number in range(_STARTS):
        if watch is not None:
            watch("starts of EM", number + 1)
        begun.append(likelihood.em(pooled.theta + rng.standard_normal((n_classes, len(pooled.theta))), _SHORT))
    begun.sort(key=lambda one: -one[0])
    best: Maximum | None = None
    for _, c, share in begun[:_FINISHED]:
        gamma = np.zeros((n_classes, G))
        gamma[:, 0] = np.log(share)
        found = maximised(likelihood.at, likelihood.packed(c, gamma), n, **given)  # type: ignore[arg-type]
        alive = found.at.member.sum(axis=0).min() >= _LEAST_PEOPLE
        if alive and (best is None or found.at.values.sum() > best.at.values.sum()):
            best = found
    if best is None:
        raise DataError(
            f"of n_classes={n_classes} classes at least one ends with less than one person, from the best {_FINISHED} "
            f"of {_STARTS} starts: these answers do not tell so many apart. Take n_classes={n_classes - 1} or fewer"
        )
    order = np.argsort(-best.at.member.sum(axis=0), kind="stable")
    c, gamma = likelihood.unpacked(best.theta)
    theta = likelihood.packed(c[order], gamma[order])
    return best._replace(theta=theta, at=likelihood.at(theta))


def law_of(likelihood: Classes, thetas: FloatArray) -> Mixture:
    """Populations (S,) of parameters (S, P); shares are those of the average over the people."""
    traits = likelihood.problem.traits
    c, gamma = likelihood.unpacked(thetas)
    B = np.zeros((len(thetas), likelihood.n_classes, traits.shape[1], c.shape[2]))
    B[:, :, 0] = c
    share = np.stack([softmax(traits @ one.T, axis=1).mean(axis=0) for one in gamma])
    empty = np.zeros((*share.shape, 0, 0))
    return Mixture(B, empty, share / share.sum(axis=1, keepdims=True), gamma if min(gamma.shape[1:]) > 1 else None)


def draws_of(
    likelihood: Classes, found: Maximum, information: FloatArray, rng: np.random.Generator
) -> tuple[Mixture, npt.NDArray[np.float32], FloatArray]:
    """Populations by the inverse ``information`` (P, P) of the standard errors, coefficients of people (U, R, d) and
    memberships (U, K), by their codes.
    """
    problem, K = likelihood.problem, likelihood.n_classes
    law = law_of(likelihood, populations_around(found.theta, information, rng, KEPT_LAWS))
    near = law_of(likelihood, populations_around(found.theta, information, rng, KEPT_PEOPLE))
    c = near.B[:, :, 0].astype(np.float32)
    member = np.empty_like(found.at.member)
    member[problem.people] = found.at.member
    U = problem.n_users
    if K == 1:
        return law, np.broadcast_to(c[None, :, 0], (U, *c[:, 0].shape)), member
    points = (np.arange(KEPT_PEOPLE) + 0.5) / KEPT_PEOPLE
    turns = rng.permuted(np.tile(np.arange(KEPT_PEOPLE), (U, 1)), axis=1)  # by place, not by name
    people = np.empty((U, *c[:, 0].shape), dtype=np.float32)
    for place, user in enumerate(problem.people):
        label = np.minimum(np.searchsorted(np.cumsum(found.at.member[place]), points), K - 1)
        people[user] = c[np.arange(KEPT_PEOPLE), label[turns[place]]]
    return law, people, member
