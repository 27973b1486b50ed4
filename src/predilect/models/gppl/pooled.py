"""GPPL fitted to pooled answers, or jointly to people and items by their features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from predilect._stored import PART, numbers
from predilect._text import either
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import ItemFeatures, Vocabulary
from predilect.data.features import FeatureSpace
from predilect.errors import DataError, DataWarning
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.kernels import Kernel, Product, Scaled, Selected
from predilect.gaussian.posterior import Posterior, Utilities
from predilect.gaussian.projection import Projection
from predilect.latent.evidence import maximise_evidence
from predilect.latent.pooled import PooledAnswers
from predilect.latent.scaled import SCALED, fit_scaled
from predilect.latent.sparse.fit import (
    ScalePrior,
    SparseFit,
    SparsePosterior,
    fit_sparse,
    fit_with_threshold,
    schedule_for,
)
from predilect.latent.sparse.gradient import optimise_length_scales
from predilect.latent.sparse.stochastic import Schedule
from predilect.likelihoods.probit import starting_threshold
from predilect.models.checks import choose_points, item_kernel, make_kernel, optimises
from predilect.models.reading import Training
from predilect.progress import Report, Watcher

_ROWS_AT_ONCE = 20_000
_PEOPLE_FOR_AVERAGE = 2000


@dataclass(frozen=True, slots=True)
class JointPosterior(Posterior):
    """f(x_u, x_i) ~ GP with covariance k_users(x_u, x_u') k_items(x_i, x_i') / s, given the answers. crowdgppl.md 1.

    Guo, Bonilla and others. A user without features, such as an unseen one, has the mean features, zeros.
    """

    # over (user, item) pairs: rows of user features, then item features
    process: Annotated[SparsePosterior, PART]
    user_kernel: Kernel
    item_kernel: Kernel
    user_features: Annotated[FloatArray, numbers("U G")]
    item_features: Annotated[FloatArray, numbers("I F")]

    @classmethod
    def restored(
        cls, process: SparsePosterior, user_features: FloatArray, item_features: FloatArray, kernel: Kernel
    ) -> JointPosterior:  # fmt: skip
        """Posterior of a saved model; ValueError if its kernel is not one of these features."""
        n, d = user_features.shape[1], process.projection.points.shape[1]
        parts = kernel.kernels if isinstance(kernel, Product) else ()
        looked_at = [list(part.columns) for part in parts if isinstance(part, Selected)]
        if looked_at != [list(range(n)), list(range(n, d))] or d - n != item_features.shape[1]:
            raise ValueError("a kernel of other features than those of people, and of items")
        return _posterior(process, kernel, user_features, item_features)

    @property
    def n_items(self) -> int:
        return len(self.item_features)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, traits: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); ``traits`` (n, d_users) are read where ``users`` is -1."""
        people = self._people(users, traits)
        mean, var = np.empty(len(users)), np.empty(len(users))
        for start in range(0, len(users), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            who, n = people[some], len(people[some])
            rows = np.vstack([np.hstack([who, self.item_features[side[some]]]) for side in (left, right)])
            here = self._at(rows)
            index = np.arange(n)
            mean[some], var[some] = here.margins(index, index, index + n)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        return self._of(user).person()

    def prior(self) -> None:
        """Every user has a prior of their own, by their features."""
        return

    def prior_of(self, user: int) -> Utilities:
        return self._of(user).prior()

    def _of(self, user: int) -> SparsePosterior:
        who = np.repeat(self._people(np.array([user]), None), self.n_items, axis=0)
        return self._at(np.hstack([who, self.item_features]))

    def crowd(self) -> Utilities:
        """Average utilities of the users: a product kernel again, so that rows of all users need not be made.

        Beyond 2 000 users a regular subsample enters the prior variance of the average.
        """
        projection, S, s = self.process.projection, self.process.covariance, self.process.scale
        n = self.user_features.shape[1]
        points, some = projection.points, self.user_features[:: 1 + len(self.user_features) // _PEOPLE_FOR_AVERAGE]
        alike = self.user_kernel(points[:, :n], self.user_features).mean(axis=1)
        A = projection.factor.solve(self.item_kernel(points[:, n:], self.item_features) * alike[:, None]).T
        root = A @ projection.factor.lower
        prior = float(self.user_kernel(some, some).mean()) * self.item_kernel(self.item_features)
        covariance = symmetrise(A @ S @ A.T + (prior - root @ root.T) / s)
        return Utilities.of(A @ self.process.mean, covariance)

    def with_items(self, features: FloatArray) -> JointPosterior:
        """With more items, by their features (n_new, d_items)."""
        items = np.vstack([self.item_features, features])
        return JointPosterior(self.process, self.user_kernel, self.item_kernel, self.user_features, items)

    def _people(self, users: IntArray, traits: FloatArray | None) -> FloatArray:
        unknown = np.zeros((len(users), self.user_features.shape[1])) if traits is None else traits
        return np.where((users >= 0)[:, None], self.user_features[users], unknown)

    def _at(self, rows: FloatArray) -> SparsePosterior:
        p = self.process
        return SparsePosterior(p.projection.at(rows, np.ones(len(rows), dtype=bool)), p.mean, p.covariance, p.scale)


def fit_joint_gppl(model: Any, training: Training, delta: float | None, watch: Watcher | None) -> Fitted:
    """Fit of a GPPL with ``users="joint"``; DataError without features of the items, or of the users."""
    answers = training.comparisons
    users = aligned(training.people, answers.users, "people", either("--people FILE", "people=..."))
    items = aligned(training.features, answers.items, "items", either("--items FILE", "items=..."))
    pairs = np.concatenate([answers.user, answers.user]).astype(np.int64) * answers.n_items
    pairs += np.concatenate([answers.left, answers.right])
    unique, place = np.unique(pairs, return_inverse=True)
    features = np.hstack([users[unique // answers.n_items], items[unique % answers.n_items]])
    known = np.ones(len(unique), dtype=bool)
    n, d = users.shape[1], features.shape[1]
    kernel = Product(
        (
            Selected(make_kernel(model, model.user_kernel, users), tuple(range(n))),
            Selected(make_kernel(model, model.kernel, items), tuple(range(n, d))),
        ),
        ("users", "items"),
    )
    projection = Projection.of(kernel, features, known, points_of(model, kernel, features, known))
    left, right = place[: answers.n_rows], place[answers.n_rows :]
    rows = PooledAnswers(left, right, answers.outcome, answers.weight, len(unique), model._likelihood)
    found = fit_sparse_gppl(model, rows, projection, delta, watch)
    return found._replace(posterior=_posterior(found.posterior, found.kernel, users, items))


def aligned(features: ItemFeatures | None, ids: Vocabulary, what: str, how: str) -> FloatArray:
    """Rows of features for ids, zeros (the mean) where there are none, with a warning.

    DataError if there are no features at all, or none that differ.
    """
    if features is None or not features.matrix.shape[1]:
        raise DataError(f'users="joint" needs features of the {what} that differ. Give them ({how})')
    matrix, has_features = features.align(ids)
    if not has_features.all():
        first = f" (first: {ids.ids[int(np.argmin(has_features))]!r})" if what == "items" else ""  # people stay unnamed
        warnings.warn(
            f"{int((~has_features).sum())} of {len(ids)} {what} have no features{first}: the mean of the others is "
            "taken for them", DataWarning, stacklevel=5,
        )  # fmt: skip
    return matrix


def _posterior(process: Any, kernel: Kernel, users: FloatArray, items: FloatArray) -> JointPosterior:
    assert isinstance(kernel, Product)
    user_kernel, item_kernel = (part.kernel for part in kernel.kernels if isinstance(part, Selected))
    points = process.projection.points  # all that is kept of the pairs of the fit
    process = replace(process, projection=process.projection.at(points[:0], np.zeros(0, dtype=bool)))
    return JointPosterior(process, user_kernel, item_kernel, users, items)


INFERENCE = ("auto", "variational", "stochastic", "ep", "laplace")
_MOST_ITEMS_DENSE = 1000  # beyond it "auto" takes inducing points
_MOST_POINTS = 500
_MOST_POINTS_EVER = 5000  # dense algebra: some n² floats and n³ operations per iteration


class Fitted(NamedTuple):
    """Result of a fit that an estimator keeps."""

    posterior: Any
    scale: float
    kernel: Kernel
    delta: float
    evidence: float
    report: Report
    search: dict[str, Any]


def fit_pooled_gppl(model: Any, training: Training, delta: float | None, watch: Watcher | None) -> Fitted:
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
    model: Any, answers: PooledAnswers, projection: Projection, delta: float | None, watch: Watcher | None
) -> Fitted:
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
            "length_scales": {"evaluations": best.evaluations, "converged": best.converged, "message": best.message},
            "at_bound": list(best.at_bounds),
        }
    return Fitted(
        found.posterior(), found.scale.value, found.projection.kernel, found.delta, found.bound, found.report, search
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


def _fit_dense(model: Any, answers: PooledAnswers, space: FeatureSpace, kernel: Kernel, delta: float | None) -> Fitted:
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
    return Fitted(posterior, found.scale, kernel, found.delta, latent.evidence, latent.report, search)
