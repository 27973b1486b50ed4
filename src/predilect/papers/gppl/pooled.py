"""GPPL fitted to pooled answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from predilect._base.progress import Report, Watcher
from predilect._base.types import BoolArray, FloatArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Kernel, Scaled
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.evidence import maximise_evidence
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.scaled import SCALED, fit_scaled
from predilect.inference.latent.sparse.fit import (
    ScalePrior,
    SparseFit,
    SparsePosterior,
    fit_sparse,
    fit_with_threshold,
    schedule_for,
)
from predilect.inference.latent.sparse.gradient import optimise_length_scales
from predilect.inference.latent.sparse.stochastic import Schedule
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.models.checks import choose_points, item_kernel, optimises
from predilect.models.reading import Training

INFERENCE = ("auto", "variational", "stochastic", "ep", "laplace")
_MOST_ITEMS_DENSE = 1000  # beyond it "auto" takes inducing points
_MOST_POINTS = 500
_MOST_POINTS_EVER = 5000  # dense algebra: some n² floats and n³ operations per iteration


class PooledFit(NamedTuple):
    """Result of a fit that an estimator keeps."""

    posterior: Any
    scale: float
    kernel: Kernel
    delta: float
    evidence: float
    report: Report
    search: dict[str, Any]


def fit_pooled_gppl(model: Any, training: Training, delta: float | None, watch: Watcher | None) -> PooledFit:
    """Fit of a GPPL with ``users="pooled"``."""
    answers, space = PooledAnswers.of(training.comparisons.pooled(), model._likelihood), training.space
    kernel = item_kernel(model, space, float(model.own_share))
    if model.inference in SCALED:
        return _fit_dense(model, answers, space, kernel, delta)
    points = points_of(model, kernel, space.matrix, space.known)
    projection = Projection.of(kernel, space.matrix, space.known, points)
    return fit_sparse_gppl(model, answers, projection, delta, watch)


def points_of(model: Any, kernel: Kernel, features: FloatArray, known: BoolArray) -> FloatArray | None:
    """Inducing points as ``model.n_inducing`` says; None: the items."""
    automatic = None if len(features) <= _MOST_ITEMS_DENSE else _MOST_POINTS
    return choose_points(model.n_inducing, automatic, _MOST_POINTS_EVER, kernel, features, known, model.seed_)


def fit_sparse_gppl(
    model: Any,
    answers: PooledAnswers,
    projection: Projection,
    delta: float | None,
    watch: Watcher | None,
    posterior: Callable[[SparseFit], Any] = SparseFit.posterior,
) -> PooledFit:
    """Variational inference, all answers at once or in batches; δ, s and length-scales are learned as asked."""
    prior = scale_prior(model)
    schedule = _schedule(model, len(answers.left), projection.n_points)
    tolerance = 1e-6 if isinstance(model.tol, str) else float(model.tol)
    search: dict[str, Any] = {"n_inducing": projection.n_points, "items_are_points": projection.A is None}

    def fit(at: float, start: SparseFit | None) -> SparseFit:
        return fit_sparse(
            answers, projection, prior, delta=at, rule=model.sites, surrogate=model.surrogate, schedule=schedule,
            max_iter=model.max_iter, tolerance=tolerance, random_state=model.seed_, start=start,
        )  # fmt: skip

    def learning(done: int) -> None:
        if watch:
            watch("learning the tie threshold", done)

    found = fit_with_threshold(answers, fit, learning) if delta is None else fit(delta, None)
    if optimises(model):
        if watch:
            watch("optimising length-scales", 1)
        found, best = optimise_length_scales(answers, projection, prior, delta=found.delta, max_iter=model.max_iter)
        search |= {
            "length_scales": {"evaluations": best.evaluations, "converged": best.converged},
            "at_bound": list(best.at_bounds),
        }
    return PooledFit(
        posterior(found), found.scale.value, found.projection.kernel, found.delta, found.bound, found.report, search
    )


def scale_prior(model: Any) -> ScalePrior:
    """Prior of s from a model's parameters, or s itself."""
    if isinstance(model.variance, str):
        shape, rate = map(float, model.scale_prior)
        return ScalePrior(shape, rate, float(model.noise_variance))
    return ScalePrior(1.0 / float(model.variance), 1.0, learned=False)


def _schedule(model: Any, n_rows: int, n_points: int) -> Schedule:
    schedule = schedule_for(n_rows, n_points, model.sites)
    size = schedule.batch_size
    if model.inference == "variational":
        size = None
    elif not isinstance(model.batch_size, str):
        size = int(model.batch_size)
    elif model.inference == "stochastic" and size is None:
        size = min(n_rows, 1000)
    return replace(
        schedule, batch_size=size, forgetting_rate=float(model.forgetting_rate), delay=float(model.delay),
        max_iter=min(schedule.max_iter, model.max_iter),
    )  # fmt: skip


def _fit_dense(
    model: Any, answers: PooledAnswers, space: FeatureSpace, kernel: Kernel, delta: float | None
) -> PooledFit:
    """Laplace's approximation or expectation propagation over all items."""
    prior = scale_prior(model)
    if answers.n_items > _MOST_POINTS_EVER:
        raise DataError(
            f'inference="{model.inference}" works on all {answers.n_items} items at once, and dense algebra holds '
            f'{_MOST_POINTS_EVER}. Use inference="auto"'
        )
    search: dict[str, Any] = {"n_inducing": answers.n_items, "items_are_points": True}
    if optimises(model) and space.informative:
        if not space.known.all():
            raise DataError(
                f'length_scale="optimise" with inference="{model.inference}" needs features of every item, but '
                f'{int((~space.known).sum())} have none. Give them, leave these items out, or use inference="auto"'
            )
        threshold = starting_threshold(answers.outcome, answers.weight, delta)
        best = maximise_evidence(
            Scaled(kernel, prior.rate / prior.shape), space.matrix, answers.left, answers.right, answers.outcome,
            answers.weight, answers.likelihood(threshold), method=model.inference,
        )  # fmt: skip
        assert isinstance(best.kernel, Scaled)
        kernel = best.kernel.kernel
        search |= {"length_scales": best.report.to_dict(), "at_bound": list(best.at_bound)}
    projection = Projection.of(kernel, space.matrix, space.known, None)
    found = fit_scaled(
        model.inference, projection.factor.lower @ projection.factor.lower.T, answers, shape=prior.shape,
        rate=prior.rate / (2.0 * prior.noise_var), scale=None if prior.learned else prior.shape / prior.rate,
        delta=delta,
    )  # fmt: skip
    latent = found.latent
    posterior = SparsePosterior(projection, latent.mean, latent.covariance(), found.scale)
    return PooledFit(posterior, found.scale, kernel, found.delta, latent.evidence, latent.report, search)
