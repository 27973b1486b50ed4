"""What models of many people share: new items, traits of people, and the base of those with factors and weights."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any

from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART
from predilect._base.text import either, setting
from predilect._base.types import FloatArray
from predilect.data.features import FeatureSpace, Traits
from predilect.errors import DataError
from predilect.inference.factors.answers import CrowdWeights
from predilect.inference.factors.posterior import FactorPosterior
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.gaussian.projection import Projection
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import PairQueries, Training, rows_of_features


def crowd_margins(model: Any, queries: PairQueries, posterior: PopulationPosterior) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the queried margins, (n,)."""
    with workers(model.n_jobs) as executor:
        return posterior.margins(queries.users, queries.left, queries.right, executor=executor)


def with_new_items(
    posterior: PopulationPosterior, prior: Projection, new: FeatureSpace, *, spread: float, consensus_spread: float
) -> PopulationPosterior:
    """With items appended that have no answers, f_new = A f + r given all users' utilities f of the others.

    A = K_*o K_oo⁻¹; the covariance of r is K_** - A K_o* times ``spread``, for the consensus ``consensus_spread``.
    """
    n = posterior.n_items
    everything = prior.with_items(new.matrix, new.known)
    assert everything.A is not None
    A, R = everything.A[n:], everything.residual()[n:, n:]
    consensus = GaussianPosterior(posterior.m, posterior.C_m).extended(A, R, consensus_variance=consensus_spread)
    # ``extended`` takes the spread apart as scale (strength + trace) / (strength + n).
    return posterior.extended(A, R, consensus=consensus, scale=spread, strength=0.0, trace=float(n))


def traits_of_people(model: Any, training: Training) -> tuple[Traits | None, FloatArray | None]:
    """Map from user features to traits, and all users' traits; None unless asked for, DataError if there are none."""
    if not model.user_features:
        return None, None
    if training.people is None:
        raise DataError(
            f"{setting('user_features', True)} needs features of people. Give them "
            f"({either('--people FILE', 'people=...')}), or leave it out"
        )
    aligned = training.people.align(training.comparisons.users)
    traits = Traits.of(*aligned)
    return (traits, traits.transform(*aligned)) if traits.rotation.shape[1] else (None, None)


def traits_of_new_users(model: Any, queries: PairQueries, people: Any) -> FloatArray | None:
    """Traits of unseen users, row by row of the queries; None if they do not matter."""
    if people is None or not queries.new_users or model._traits is None or model.user_features_ is None:
        return None
    rows = rows_of_features(queries.new_users, model.user_features_, people)
    return queries.of_new_users(model._traits.transform(*rows))


class FactorEstimator(Estimator):
    """Base of estimators with functions of the items that people share and weigh."""

    item_features = True  # whether features of items count: an argument of subclasses
    n_jobs: int | None
    posterior_: Annotated[FactorPosterior, PART]
    _traits: Annotated[Traits | None, PART]

    @abstractmethod
    def _fit(self, training: Training, delta: float | None, watch: Watcher | None) -> tuple[Learned, Traits | None]:
        """As :meth:`_learn`, with the traits of people if they are used."""

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        with workers(self.n_jobs):
            learned, self._traits = self._fit(training, delta, watch)
        return learned

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new = self.posterior_, self._new_items(queries, items)
        traits = traits_of_new_users(self, queries, people)
        if new is not None:
            posterior = posterior.with_items(new.matrix, new.known & self.item_features)
        return posterior.margins(queries.users, queries.left, queries.right, traits=traits)

    def _given(self) -> dict[str, Any]:
        given = super()._given()
        return given | {"known": given["known"] & self.item_features}

    def _restored(self, parts: dict[str, Any]) -> None:
        weights = self.posterior_.weights
        if isinstance(weights, CrowdWeights) and self._traits is None and weights.effects.shape[1] > 1:
            raise ValueError(f"{weights.effects.shape[1] - 1} effects of traits that people do not have")


def describe_features(model: Any, *, item_features: bool = True) -> list[str]:
    """Sentences on the features of items, if they are used, and of users."""
    lines = []
    if model.features_ is not None and item_features:
        lines.append(f"Item features: {', '.join(model.features_.sources) or 'none of use'}.")
    if model.user_features_ is not None:
        how = "used" if model._traits is not None else "not used"
        lines.append(f"Features of people: {', '.join(model.user_features_.sources) or 'none of use'}; {how}.")
    return lines
