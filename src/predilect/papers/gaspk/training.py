"""Training of ``GaSPK``: trade-offs, the choice of a prior, characteristics and weights, the posterior."""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from predilect._base.progress import Watcher
from predilect._base.types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataWarning
from predilect.models.checks import hyperparameters_by_name
from predilect.models.estimator import Learned
from predilect.models.reading import Training
from predilect.papers.gaspk.calibration import MarginCalibration
from predilect.papers.gaspk.choosing import CandidateTrial, choose
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import best_start, left_open_at
from predilect.papers.gaspk.em.mode import CurvaturePoint, curvature_at, low_rank_at
from predilect.papers.gaspk.posterior.basis import PointBasis, kernel_parts
from predilect.papers.gaspk.posterior.posterior import GaSPKPosterior
from predilect.papers.gaspk.posterior.scores import item_scores
from predilect.papers.gaspk.prior import KernelPrior, by_evidence, fixed_by
from predilect.papers.gaspk.settings import FitSettings, GaSPKHyperparameters
from predilect.papers.gaspk.tradeoffs.choices import TradeOffChoices, read_choices
from predilect.papers.gaspk.tradeoffs.map import TradeOffMap

_MOST_LEFT_OUT = 0.01  # of the prior variance, before it is said
_FEW_QUESTIONS = 100  # whose variances on a grid are worked out exactly: a twentieth of a second each and more


class FittedGaSPK(NamedTuple):
    """Result of a fit."""

    learned: Learned
    choices: TradeOffChoices
    answers: TradeOffAnswers


def fit_gaspk(
    training: Training, settings: FitSettings, executor: ThreadPoolExecutor | None, watch: Watcher | None
) -> FittedGaSPK:
    """Fit a GaSPK; raises DataError as :func:`~predilect.papers.gaspk.tradeoffs.choices.read_choices`."""
    answers = training.comparisons
    personal = answers.has_users and answers.n_users > 1
    if not personal:
        settings = replace(settings, numbers=(1,))
    choices, coded = read_choices(settings, training)
    prior = KernelPrior(settings, choices, max(settings.numbers), answers.n_rows)
    chosen, trials = choose(settings, prior, coded, answers, training.space, executor, watch)
    if chosen.candidate.n_c < max(settings.numbers):
        # The best prior of the largest number is not that of the one that was found: as if that had been asked for.
        settings = replace(settings, numbers=(chosen.candidate.n_c,))
        prior = KernelPrior(settings, choices, chosen.candidate.n_c, answers.n_rows)
        chosen, more = choose(settings, prior, coded, answers, training.space, executor, watch)
        trials += more
    calibration = chosen.calibration if settings.spread is None else MarginCalibration(float(settings.spread))
    kernel, n_c, whole = chosen.candidate.kernel, chosen.candidate.n_c, coded.answers(answers)
    settings = replace(settings, concentration=chosen.candidate.concentration)
    at_bound: tuple[str, ...] = ()
    if (fixed := fixed_by(settings, kernel)) is not None:
        first = best_start(prior.basis(kernel), whole, n_c, replace(settings, n_starts=1), executor=executor).em
        search = by_evidence(
            kernel, choices.points, whole, first.gamma, first.delta, fixed=fixed, random_state=settings.random_state
        )
        kernel, at_bound = search.kernel, search.at_bound
    basis = prior.basis(kernel)
    progress = None if watch is None else (lambda share: watch("fitting characteristics, %", round(100 * share)))
    fitted = best_start(basis, whole, n_c, settings, executor=executor, progress=progress)
    em = fitted.em
    h = GaSPKHyperparameters.of(kernel, n_c, settings.concentration, calibration)
    posterior = posterior_of(settings, h, choices.trade_offs, training.space, em.mode.state, em.mode.w)
    _warn_of_low_rank(basis)
    report = {
        **coded.report, "backend": prior.backend, "rank": basis.rank, "learned_from": answers.n_answers,
        "left_out": basis.left_out, "at_bound": list(at_bound), "evidence_of_starts": list(fitted.evidences),
        "trials": [_of_trial(trial) for trial in trials],
    }  # fmt: skip
    learned = Learned(posterior, h, personal, em.delta, em.evidence, fitted.report, report)
    return FittedGaSPK(learned, choices, whole)


def _of_trial(trial: CandidateTrial) -> dict[str, Any]:
    return {
        **hyperparameters_by_name(trial.candidate.kernel), "n_components": trial.candidate.n_c,
        "concentration": trial.candidate.concentration, "log_loss": trial.log_loss,
        "spread": trial.calibration.spread, "open_share": trial.calibration.open_share,
    }  # fmt: skip


def _warn_of_low_rank(basis: PointBasis) -> None:
    if basis.left_out > _MOST_LEFT_OUT:
        warnings.warn(
            f"{basis.rank} coordinates for {basis.n_points} trade-offs leave out up to {100 * basis.left_out:.2g} % of "
            "the prior variance of an evaluation: it is taken for smoother than the kernel says. Take longer "
            "length-scales, fewer characteristics (n_components) or attributes, or a grid (levels)",
            DataWarning, stacklevel=6,
        )  # fmt: skip


def posterior_of(
    settings: FitSettings, h: GaSPKHyperparameters, trade_offs: TradeOffMap, space: FeatureSpace, state: CurvaturePoint,
    w: FloatArray,
) -> GaSPKPosterior:  # fmt: skip
    """The posterior at a mode ``w``; ``space`` holds the attributes of the items."""
    amplitude, _, antisymmetric = kernel_parts(h.kernel)
    curvature = curvature_at(state)
    low_rank = low_rank_at(state, curvature, settings)
    few = _FEW_QUESTIONS if settings.variances == "auto" else 0
    left_open = left_open_at(state, w, settings.estimator, h.concentration)
    return GaSPKPosterior(
        state.basis, w, curvature, state.gamma,
        item_scores(state.basis, h.kernel, trade_offs, space, settings.random_state), h.spread,
        prior_variance=0.5 * amplitude if antisymmetric else amplitude, low_rank=low_rank,
        exact_up_to=math.inf if low_rank is None else few,
        left_open=None if left_open is None else h.open_share * left_open,
        factors=h.calibration.factors_of(state.answers),
    )  # fmt: skip
