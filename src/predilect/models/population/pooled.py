"""The pooled model: its posterior, the choice of its prior by Laplace's evidence, and a fit to other answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART, PLAIN, codes, numbers, outcomes, positive, unless
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.features import FeatureSpace
from predilect.data.keyed_rows import Rows, copies_in_one, copies_of_sides, keys_of, sides_of
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.dense import covariances, symmetrise, widened
from predilect.inference.gaussian.posterior import GaussianPosterior, Utilities
from predilect.inference.latent.pooled import (
    PooledAnswers,
    PooledOrders,
    PooledPrior,
    PooledState,
    first_thresholds,
    fit_pooled,
    margins_without_each,
    refit_pooled,
)  # fmt: skip
from predilect.inference.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.empirical_bayes import tie_spread_of
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.queries import NEWCOMER
from predilect.models.population.batches import keyed
from predilect.models.population.prior import Functions, Hyperparameters


@dataclass(frozen=True, slots=True)
class Believed:
    """Prior of a pooled model, without its covariance, which is as large as the posterior's."""

    hyperparameters: Hyperparameters
    space: FeatureSpace
    functions: Functions | None

    def covariance(self) -> FloatArray:
        """Prior covariance of the items' utilities, or of the functions of a basis, (M, M)."""
        h = self.hyperparameters
        if self.functions is None:
            return h.consensus_variance * self.space.covariance(h.consensus_weight, h.length_scale)
        return h.consensus_variance * self.functions.prior_covariance(h.consensus_weight)


@dataclass(frozen=True, slots=True)
class PooledPosterior(GaussianPosterior):
    """Utilities of everybody as one, with their prior and the calibration of predictions.

    ``covariance`` takes all answers for independent; what comes out takes people, if ``dependence`` (M, M) is known.
    """

    believed: Believed | None = None
    calibration: Calibration = UNCALIBRATED
    # of the effects of covariates too: J = M + A with A of them
    dependence: Annotated[FloatArray | None, numbers("J J")] = None
    share: Annotated[float, PLAIN] = 1.0  # of it, as of the answers at the fit, that is left
    between_people: FloatArray | None = None  # the covariance with it
    covariates: Annotated[CovariateEffects | None, PART] = None  # of answers
    # where there are grades, or items tie more or less than others
    thresholds: Annotated[Thresholds | None, PART] = None
    # covariance of utilities, or weights of functions, and effects of covariates
    joint: Annotated[FloatArray | None, covariances("J J")] = None

    @classmethod
    def of(
        cls, mean: FloatArray, covariance: FloatArray, Phi: FloatArray | None, believed: Believed,
        dependence: FloatArray | None, covariates: CovariateEffects | None = None, thresholds: Thresholds | None = None,
        share: float = 1.0,
    ) -> PooledPosterior:  # fmt: skip
        """Posterior under hyper-parameters, by which predictions are calibrated; arguments as of :meth:`moved`."""
        calibration = believed.hyperparameters.calibration_of_predictions
        first = cls(
            mean, covariance, Phi, believed, calibration, dependence, covariates=covariates, thresholds=thresholds
        )
        return first.moved(mean, covariance, share)

    @classmethod
    def restored(
        cls, mean: FloatArray, covariance: FloatArray, Phi: FloatArray | None, believed: Believed,
        dependence: FloatArray | None, joint: FloatArray | None, covariates: CovariateEffects | None,
        thresholds: Thresholds | None, share: float = 1.0,
    ) -> PooledPosterior:  # fmt: skip
        """Posterior of a saved model; ValueError if covariances are not those of its utilities and effects."""
        if covariates is not None:
            mean = np.append(mean, covariates.mean)
        if (covariates is None) != (joint is None) or (dependence is not None and len(dependence) != len(mean)):
            raise ValueError(f"covariances of other than {len(mean)} parameters")
        if joint is not None and (
            len(joint) != len(mean) or (joint[: len(covariance), : len(covariance)] != covariance).any()
        ):
            raise ValueError(f"two covariances of {len(covariance)} utilities")
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a share of {share} of the answers")
        if dependence is not None and not np.array_equal(dependence, dependence.T):
            raise ValueError("dependence is not symmetric")
        if (Phi is None) != (believed.functions is None):
            raise ValueError("functions of the items without a basis, or a basis without functions")
        C = covariance if joint is None else joint
        return cls.of(mean, C, Phi, believed, dependence, covariates, thresholds, share)

    def moved(self, mean: FloatArray, covariance: FloatArray, share: float) -> PooledPosterior:
        """The same with other answers; how much those of one person hang together is held.

        ``mean`` and ``covariance`` are of utilities, or weights of functions, and then of the effects of covariates.
        ``share`` of the answers at the fit are left: ``dependence`` is a sum over them.
        """
        effects, wider = self.covariates, None
        M = len(mean) if effects is None else len(mean) - len(effects.mean)
        if self.dependence is not None:
            # Differences alone depend on answers; what a flat prior leaves of the mean would drown them in rounding.
            C = covariance
            if self.Phi is None:
                C = C.copy()
                C[:, :M] -= C[:, :M].mean(axis=1, keepdims=True)
            # Where answers were taken back, those that are left may be too few for all of it.
            wider = widened(covariance, share * symmetrise(C @ self.dependence @ C.T))
        if effects is not None:
            known = covariance if wider is None else wider
            effects = replace(effects, mean=mean[M:], covariance=known[M:, M:])
        return replace(
            self, mean=mean[:M], covariance=covariance[:M, :M], covariates=effects, share=share,
            between_people=None if wider is None else wider[:M, :M], joint=None if effects is None else covariance,
        )  # fmt: skip

    def person(self, user: int = -1) -> Utilities:
        """Utilities in the form that boards are made from."""
        return self._plain().person()

    def extended(self, A: FloatArray, R: FloatArray, *, consensus_variance: float) -> GaussianPosterior:
        """With new items."""
        return self._plain().extended(A, R, consensus_variance=consensus_variance)

    def _plain(self) -> GaussianPosterior:
        known = self.covariance if self.between_people is None else self.between_people
        return GaussianPosterior(self.mean, known, self.Phi)

    def prior(self) -> Utilities:
        assert self.believed is not None
        return GaussianPosterior(np.zeros(len(self.mean)), self.believed.covariance(), self.Phi).person()


_GRID = {"consensus_variance": (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0), "feature_weight": (0.0, 0.5, 0.9, 0.98)}
_FIRST_SCALE = 4.0  # prior variance of the utilities, where only the effects of covariates are wanted
_MOST_ITEMS_DENSE = 5000
_MIDDLE = 1.0  # of the variances
_ITEMS_FOR_FEATURE_SEARCH = 1500


@dataclass(frozen=True, slots=True)
class Pooled:
    """Pooled model at the s_t and w that were chosen."""

    state: PooledState
    variance: float
    weight: float
    trials: list[dict[str, float]]
    item_tie_spread: float = 0.0


def search_pooled(
    comparisons: Comparisons,
    space: FeatureSpace,
    start: Hyperparameters,
    given: Mapping[str, Any],
    delta: float | None,
    watch: Watcher | None,
    functions: Functions | None = None,
    likelihood: type[PairLikelihood] = Probit,
    item_tie_spread: float | None = 0.0,
) -> Pooled:
    """Pooled model at the s_t and w of the largest Laplace evidence, unless ``given``: first s_t, then w.

    ``item_tie_spread=None`` finds σ_ψ.
    """
    rows = comparisons.pooled()
    Phi = None if functions is None else functions.rows(space)
    trials: list[dict[str, float]] = []
    if delta is None and not comparisons.has_ties:
        delta = 0.0

    @cache
    def run(scale: float, weight: float, delta: float | Thresholds | None, spread: float = 0.0) -> PooledState:
        K = functions.prior_covariance(weight) if functions else space.covariance(weight, start.length_scale)
        state = fit_pooled(rows, K, scale, delta=delta, Phi=Phi, likelihood=likelihood, item_tie_spread=spread)
        trials.append({"consensus_variance": scale, "feature_weight": weight, "log_evidence": state.evidence})
        if watch:
            watch("fitting the pooled model", len(trials))
        return state

    scale, weight = start.consensus_variance, start.feature_weight
    searches_scale = "consensus_variance" not in given
    searches_weight = may_search_weight(comparisons, space, given) if functions is None else functions.has_weight
    # The threshold hardly depends on the prior, and takes ten fits: it is found before the search, and anew in the end.
    found = run(_MIDDLE if searches_scale else scale, weight, delta, item_tie_spread or 0.0)
    if item_tie_spread is None:
        item_tie_spread = 0.0 if delta is not None else spread_of_item_ties(rows, found)
        if item_tie_spread:
            found = run(_MIDDLE if searches_scale else scale, weight, delta, item_tie_spread)
    middle = found.rows.thresholds or found.delta
    if searches_scale:
        # A weak prior about 1, a factor e² wide: three answers that agree should not select the largest scale.
        scale = max(
            _GRID["consensus_variance"],
            key=lambda s: run(s, weight, middle).evidence - 0.5 * (math.log(s) / 2.0) ** 2,
        )
    if searches_weight:
        weight = max(_GRID["feature_weight"], key=lambda w: run(scale, w, middle).evidence)
    return Pooled(run(scale, weight, delta, item_tie_spread), scale, weight, trials, item_tie_spread)


def may_search_weight(comparisons: Comparisons, space: FeatureSpace, given: Mapping[str, float]) -> bool:
    """Whether w of a kernel is searched, where it is not given."""
    # Each further kernel costs a factorisation of all items; with very many the default must do.
    return "feature_weight" not in given and space.informative and comparisons.n_items <= _ITEMS_FOR_FEATURE_SEARCH


_FIRST_VARIANCE = 4.0
_MOST_ITEMS_FOR_CUTS = 3000  # a dense matrix; with more the cuts begin where shares of grades put them
_FIRST_ITEM_SPREAD, _MOST_ROUNDS, _RESTING = 0.3, 10, 0.02
_LEAST_GAIN = 3.0  # nats of evidence, below which items are taken to tie alike


def pooled_thresholds(comparisons: Comparisons, delta: float | None, item_tie_spread: float = 0.0) -> Thresholds | None:
    """Cuts of grades, and factors of items, from which the search of personal models begins; None without both.

    Rows of a task count by themselves here, and in what else a search begins with: it takes a fraction of the time.
    """
    comparisons = replace(comparisons, joint=False)
    first = first_thresholds(comparisons, delta, item_tie_spread)
    if first is None or comparisons.n_items > _MOST_ITEMS_FOR_CUTS:
        return first
    K = np.eye(comparisons.n_items)
    return fit_pooled(comparisons, K, _FIRST_VARIANCE, delta=delta, item_tie_spread=item_tie_spread).rows.thresholds


def spread_of_item_ties(comparisons: Comparisons, state: PooledState | None = None) -> float:
    """σ_ψ, by which thresholds of ties depend on the items, of largest evidence; 0 where that gains little.

    people.md, "Cuts of grades". Laplace's evidence, with what answers say of the factors taken for independent;
    ``state`` is a pooled fit to these answers.
    """
    n = comparisons.n_items
    if not comparisons.has_ties or n > _MOST_ITEMS_FOR_CUTS:
        return 0.0
    if state is None:
        comparisons = replace(comparisons, joint=False)
        state = fit_pooled(comparisons, np.eye(n), _FIRST_VARIANCE)
    first = state.rows.thresholds or Thresholds(np.array([state.delta]))
    rows = margins_without_each(state.rows, state.prior, state.mode, state.delta, comparisons.pooled().code)
    plain = first.learned(rows, learn_scale=True)
    found, spread = replace(plain, of_items=np.zeros(n)), _FIRST_ITEM_SPREAD
    for _ in range(_MOST_ROUNDS):
        found = found.learned(rows, spread, learn_scale=True)
        information, before = found.information(rows), spread
        spread = tie_spread_of(found.of_items, information, spread)
        if abs(spread - before) < _RESTING * before:
            break
    gain = float(rows.weight @ (found.views(rows)[0] - plain.views(rows)[0]))
    gain -= 0.5 * float(found.of_items @ found.of_items / spread**2 + np.log1p(spread**2 * information).sum())
    return spread if gain > _LEAST_GAIN else 0.0


def pooled_effects(rows: Comparisons, delta: float | None, likelihood: type[PairLikelihood]) -> FloatArray:
    """Effects of covariates in the pooled model, where a search begins, (n_covariates,)."""
    rows = replace(rows, joint=False)
    if rows.covariates is None:
        return np.zeros(0)
    if rows.n_items > _MOST_ITEMS_DENSE:
        return np.zeros(rows.covariates.shape[1])
    state = fit_pooled(rows, np.eye(rows.n_items), _FIRST_SCALE, delta=delta, likelihood=likelihood)
    return state.mode[rows.n_items :]


@dataclass(frozen=True, slots=True)
class PooledColumns:
    """Answers of a pooled model as they are stored, without people: those by themselves, and then each task's rows."""

    left: Annotated[npt.NDArray[np.int32], codes("R", "I")]
    right: Annotated[npt.NDArray[np.int32], codes("R", "I")]
    outcome: Annotated[npt.NDArray[np.int8], outcomes("R", "grades")]
    weight: Annotated[FloatArray, positive("R")]
    variant: Annotated[npt.NDArray[np.int32] | None, unless(0, codes("R", "V"))]
    task: Annotated[npt.NDArray[np.int32] | None, unless(0, codes("R", "R"))]  # from 1 on; 0 for one answer
    # Which of the copies of their items the left and right alternatives of a task's rows are
    copies: Annotated[IntArray | None, unless(0, codes("R 2", "R", "int64"))] = None

    @classmethod
    def of(cls, rows: Rows) -> PooledColumns:
        """Columns of the rows."""
        rows = rows.at(np.argsort(rows.task, kind="stable"))
        left, right, outcome, variant = sides_of(rows.key)
        task = np.searchsorted(np.unique(rows.task[rows.task >= 0]), rows.task, side="right")
        return cls(
            left.astype(np.int32), right.astype(np.int32), outcome, rows.weight, variant.astype(np.int32),
            task.astype(np.int32), np.stack(copies_of_sides(rows.copies), axis=1),
        )  # fmt: skip

    def rows(self) -> Rows:
        """The rows; ValueError if they are not in order, or not of two items."""
        copies = np.zeros(len(self.left), dtype=np.int64) if self.copies is None else copies_in_one(*self.copies.T)
        if ((self.left > self.right) | ((self.left == self.right) & (copies == 0))).any():
            raise ValueError("an answer compares an item with itself, or with one before it")
        keys = keys_of(self.left, self.right, self.outcome, 0 if self.variant is None else self.variant)
        task = np.full(len(keys), -1) if self.task is None else self.task.astype(np.int64) - 1
        n = int((task < 0).sum())
        if (np.diff(keys[:n]) <= 0).any() or (np.diff(task) < 0).any():
            raise ValueError("the answers do not ascend")
        if (self.weight[n:] != 1.0).any() or (self.outcome[n:] == 0).any():
            raise ValueError("an answer about several alternatives that is a tie, or counts more than once")
        return Rows.new(np.zeros_like(keys), keys, self.weight, copies, task).merged()


def pooled_rows(model: Any) -> Rows:
    """All answers of a pooled model, as if one person had given them."""
    if model._pooled_rows is None:
        rows, _ = keyed(model._log.comparisons.pooled(), model.posterior_.covariates)
        model._pooled_rows = rows.merged()
    held: Rows = model._pooled_rows
    return held


def refitted_pooled(model: Any, held: Rows, effects: CovariateEffects | None) -> PooledState:
    """Fit to other answers at the prior of a fitted model; ``effects`` has the patterns of their covariates."""
    h = model.hyperparameters_
    if model._pooled_prior is None:
        functions = model._functions
        if functions is None:
            K = model._space.covariance(h.feature_weight, h.length_scale)
        else:
            K = functions.prior_covariance(h.feature_weight)
        n_effects = 0 if effects is None else len(effects.mean)
        model._pooled_prior = PooledPrior.of(K, h.consensus_variance, model.posterior_.Phi, n_effects)
    held = held.at(np.argsort(held.task, kind="stable"))
    left, right, code, variant = sides_of(held.key)
    x = None if effects is None else effects.patterns[variant]
    one, other = copies_of_sides(held.copies)
    n_items = len(model.items_)
    orders = PooledOrders.of(held.task.astype(np.int32), left + n_items * one, right + n_items * other, code)
    answers = PooledAnswers(left, right, code, held.weight, n_items, model._likelihood, x, orders=orders)
    thresholds = model.posterior_.thresholds
    if thresholds is not None:
        answers = answers.at(thresholds, code)
    scale = model._delta
    with workers(model.n_jobs):
        start = model.posterior_.mean
        if effects is not None:
            start = np.append(start, effects.mean)
        state = refit_pooled(answers, model._pooled_prior, scale, start)
    if not state.report.converged:
        state.report.require(model.strict)
    return state


_SHIFT_TOLERANCE = 1e-8  # of a margin, in units of the noise


def shift_of_newcomers(posterior: PopulationPosterior, answers: Comparisons, delta: float) -> FloatArray:
    """Shift d of the mean at which the answers are likeliest if each is a stranger's, (M,), with the prior N(0, Σ).

    population.md section 4. Each answer counts once, with the traits of who gave it and the calibrated variance of a
    stranger's margin. Newton's method on a concave function, O(n_rows + M³) a step; with functions O(n_rows M² + M³).
    """
    users, left, right = answers.user, answers.left, answers.right
    traits = posterior.people.traits[users] if posterior.people.traits.shape[1] else None
    mean, var = posterior.margins(np.full(len(users), -1), left, right, traits=traits)
    if posterior.covariates is not None:
        mean, var = posterior.covariates.added(mean, var, answers.covariates)
    var = posterior.calibration.components(var, np.full(len(var), 2 + NEWCOMER))[0][1]
    cut = delta * np.broadcast_to(posterior.tie_factors_of_pairs(left, right), len(var))
    # Who clicks at random says nothing of what newcomers want.
    chance_engaged = posterior.people.engaged[users] if posterior.calibration.click_rate else 1.0
    weight = answers.weight * chance_engaged
    rows = PooledAnswers(left, right, answers.outcome, weight, answers.n_items)
    pooled = PooledPrior.of(posterior.Sigma, 1.0, posterior.law.functions)

    omitted, likelihood = posterior.calibration.omitted_ties, posterior.people.likelihood
    has_ties = bool(delta or answers.joint)

    def views(margin: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        if omitted and not has_ties:
            value, slope, curvature, *_ = likelihood.decided(answers.outcome, mean + margin, var, omitted)
            curvature = np.maximum(curvature, 0.0)  # of the probit it is not negative
        else:
            value, slope, curvature, *_ = likelihood.all_tilted(answers.outcome, mean + margin, var, cut)
        return float(weight @ value), weight * slope, weight * curvature

    return pooled.mode(rows, views, np.zeros(pooled.n_functions), _SHIFT_TOLERANCE).m
