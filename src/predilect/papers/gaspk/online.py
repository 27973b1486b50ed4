"""Online learning: the posterior of the characteristics is the prior of the next batch: docs/math/gaspk.md 3.1."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predilect._base.progress import Report
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import left_open_of, penalty_of, weights_given
from predilect.papers.gaspk.em.mode import state_at
from predilect.papers.gaspk.posterior.curvature import ByCoordinates, directions_of
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.posterior.scores import item_scores
from predilect.papers.gaspk.posterior.sums import unpacked
from predilect.papers.gaspk.settings import FitSettings
from predilect.papers.gaspk.tradeoffs.choices import TradeOffChoices

MOST_COORDINATES = 3000  # whose covariance is kept
_FOR_EACH = 10  # answers gone through anew for each new one, on average
_ROUNDS = 3  # of weights and characteristics
_STEPS = 50  # of Newton's method for the margins of a batch
_CLOSE = 1e-8  # of a margin


@dataclass(frozen=True, slots=True, eq=False)
class Absorbed:
    """The posterior after a batch, the log probability that the batch had (nats), and how it was found."""

    posterior: GaSPKPosterior
    evidence: float
    report: Report


def suffices(model: Any, n_answers: int) -> bool:
    """Whether the posterior of the characteristics will do as the prior of the next answers, ``n_answers`` in all then.

    Not if there will be a tenth more than when all were last gone through: what was made of answers while little was
    known stays as it was, and so do the weights of people who gave no more. DataError on a grid, or where rank n_c
    exceeds 3 000.
    """
    basis, n_c = model.posterior_.basis, model.hyperparameters_.n_components
    if not basis.grows or basis.rank * n_c > MOST_COORDINATES:
        raise DataError(
            f"online=True keeps a covariance of at most {MOST_COORDINATES} coordinates, and none on a grid; this model "
            f"has {basis.rank} for each of {n_c} characteristics. Leave online=True out."
        )
    learned_from = model.report_["prior"].get("learned_from", model.n_answers_)
    return bool(_FOR_EACH * (n_answers - learned_from) < learned_from)


def absorb(
    model: Any, choices: TradeOffChoices, moved: IntArray, known: TradeOffAnswers, batch: TradeOffAnswers,
    old_user: IntArray, space: FeatureSpace,
) -> Absorbed:  # fmt: skip
    """The posterior after ``batch``, whose answers are among ``told``; people and points have the codes of these.

    Laplace's method for the margins of the batch under the Gaussian that the characteristics have before it, in turn
    with the weights of the people in it, given all their own answers; what is left open of these the characteristics
    pay for, as in a fit (:func:`penalised`). (rank n_c)² n n_c operations for n answers about different trade-offs, and
    those of the weights of these people. Of models that :func:`suffices` lets through.
    """
    began = time.perf_counter()
    settings: FitSettings = model._settings
    before, delta, h = model.posterior_, model.tie_threshold_, model.hyperparameters_
    basis, n_c = before.basis, h.n_components
    covariance, start = before.curvature.covariance_matrix(), before.w
    if len(choices.points) > basis.n_points:
        basis = basis.extended(choices.points, moved)
        more = (basis.rank - len(start)) * n_c
        start = np.vstack([start, np.zeros((basis.rank - len(start), n_c))])
        prior = np.eye(len(covariance) + more)
        prior[: len(covariance), : len(covariance)] = covariance
        covariance = prior
    gamma = np.full((known.n_users, n_c), 1.0 / n_c)
    gamma[old_user] = before.gamma
    people = np.unique(batch.user)
    own, new = _of_people(known, people), _of_people(batch, people)

    def now_open(F: FloatArray) -> FloatArray:
        z = np.einsum("ic,ic->i", gamma[people][own.user], F[own.point])
        precision = own.weight * Probit(delta).at(own.outcome, z)[2]
        return left_open_of(own, F, gamma[people], precision, settings.estimator, h.concentration)

    w, charge = start, np.unique(batch.point)
    mean, V = start.ravel(), covariance
    for _ in range(_ROUNDS):
        F = basis.forward(w)
        gamma[people] = weights_given(settings, own, F, gamma[people], delta)
        if before.left_open is not None:
            Q = unpacked(penalty_of(state_at(basis, new, gamma[people], Probit(delta), w), now_open(F))[charge])
            mean, V = penalised(start.ravel(), covariance, basis.point_rows(charge), Q)
        A = directions_of(basis.point_rows(batch.point), gamma[batch.user])
        gain = A @ V  # (n, rank n_c)
        problem = Problem.of(
            symmetrise(gain @ A.T), np.arange(len(A)), None, batch.outcome, batch.weight, Probit(delta),
            mean=A @ mean, space="answers",
        )  # fmt: skip
        found = laplace(problem, tolerance=_CLOSE, max_iter=_STEPS)
        w = (mean + found.state.alpha @ gain).reshape(start.shape)
    half = found.state.factor.solve_lower(np.sqrt(found.state.precision)[:, None] * gain)
    left_open = None
    if before.left_open is not None:
        left_open = np.tile(_of_nobody(n_c, h.concentration), (known.n_users, 1, 1))
        left_open[old_user] = before.left_open
        left_open[people] = h.open_share * now_open(basis.forward(w))
    unchanged = basis is before.basis and space is model._space
    scores = before.scores
    if not unchanged:
        scores = item_scores(basis, h.kernel, choices.trade_offs, space, settings.random_state)
    posterior = replace(
        before, basis=basis, w=w, gamma=gamma, scores=scores, left_open=left_open,
        curvature=ByCoordinates((V - half.T @ half).reshape(basis.rank, n_c, basis.rank, n_c), follows=False),
        factors=h.calibration.factors_of(known),
    )  # fmt: skip
    report = Report(
        method="GaSPK (posterior as prior)", iterations=_ROUNDS, residual=found.report.residual, tolerance=_CLOSE,
        converged=found.report.converged, jitter=0.0, seconds=time.perf_counter() - began, unit="of a margin",
        advice="look for extreme weights, or leave online=True out.",
    )  # fmt: skip
    return Absorbed(posterior, found.evidence, report)


def penalised(
    mean: FloatArray, covariance: FloatArray, Phi: FloatArray, Q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """N(mean, covariance) of the coordinates w times exp(-Σ_t F_tᵀ Q_t F_t/2), F_t = Φ_t w: again mean and covariance.

    ``Phi`` (q, rank) has the rows of q trade-offs and ``Q`` (q, n_c, n_c) what they pay, 0 along (1, ..., 1).
    q n_c answers "0" of precision 1: that many times (rank n_c)² operations, or (rank n_c)³ where that is less.
    """
    if Q.shape[0] * Q.shape[1] > len(mean):
        prior = factorise(covariance)
        paid = np.einsum("tj,tcd,tk->jckd", Phi, Q, Phi, optimize=True).reshape(covariance.shape)
        factor = factorise(np.eye(len(mean)) + symmetrise(prior.lower.T @ paid @ prior.lower))
        half = factor.solve_lower(prior.lower.T)
        return half.T @ factor.solve_lower(prior.solve_lower(mean)), half.T @ half
    values, vectors = np.linalg.eigh(Q)
    root = vectors[:, :, 1:] * np.sqrt(np.maximum(values[:, None, 1:], 0.0))  # the first value is 0
    E = np.einsum("tj,tck->tkjc", Phi, root).reshape(-1, len(mean))
    gain = E @ covariance
    factor = factorise(np.eye(len(E)) + gain @ E.T)
    half = factor.solve_lower(gain)
    return mean - factor.solve(E @ mean) @ gain, covariance - half.T @ half


def _of_people(known: TradeOffAnswers, people: IntArray) -> TradeOffAnswers:
    """The answers of some people, who are coded in their order."""
    asked: BoolArray = np.isin(known.user, people)
    return TradeOffAnswers(
        np.searchsorted(people, known.user[asked]), known.point[asked], known.outcome[asked], known.weight[asked],
        len(people), known.n_points,
    )  # fmt: skip


def _of_nobody(n_c: int, concentration: float) -> FloatArray:
    """Covariance of the weights of a person without answers."""
    return np.asarray((np.eye(n_c) - 1.0 / n_c) / (concentration * n_c * n_c))
