"""Choice of the prior of the pooled model by Laplace's evidence, in which the utilities are integrated out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from predilect.data import Comparisons
from predilect.data.features import FeatureSpace
from predilect.latent.pooled import PooledState, fit_pooled
from predilect.likelihoods.views import PairLikelihood, Probit
from predilect.models.population.prior import Functions, Hyperparameters
from predilect.progress import Watcher

_GRID = {"consensus_variance": (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0), "feature_weight": (0.0, 0.5, 0.9, 0.98)}
_MIDDLE = 1.0  # of the variances
_ITEMS_FOR_FEATURE_SEARCH = 1500


@dataclass(frozen=True, slots=True)
class Pooled:
    """Pooled model at the s_t and w that were chosen."""

    state: PooledState
    variance: float
    weight: float
    trials: list[dict[str, float]]


def search_pooled(
    comparisons: Comparisons,
    space: FeatureSpace,
    start: Hyperparameters,
    given: Mapping[str, Any],
    delta: float | None,
    watch: Watcher | None,
    functions: Functions | None = None,
    likelihood: type[PairLikelihood] = Probit,
) -> Pooled:
    """Pooled model at the s_t and w of the largest Laplace evidence, unless ``given``: first s_t, then w."""
    rows = comparisons.pooled()
    Phi = None if functions is None else functions.rows(space)
    trials: list[dict[str, float]] = []
    if delta is None and not comparisons.has_ties:
        delta = 0.0

    @cache
    def run(scale: float, weight: float, delta: float | None) -> PooledState:
        K = functions.prior_covariance(weight) if functions else space.covariance(weight, start.length_scale)
        state = fit_pooled(rows, K, scale, delta=delta, Phi=Phi, likelihood=likelihood)
        trials.append({"consensus_variance": scale, "feature_weight": weight, "log_evidence": state.evidence})
        if watch:
            watch("fitting the pooled model", len(trials))
        return state

    scale, weight = start.consensus_variance, start.feature_weight
    searches_scale = "consensus_variance" not in given
    searches_weight = may_search_weight(comparisons, space, given) if functions is None else functions.has_weight
    # The threshold hardly depends on the prior, and takes ten fits: it is found before the search, and anew in the end.
    middle = run(_MIDDLE if searches_scale else scale, weight, delta).delta
    if searches_scale:
        # A weak prior about 1, a factor e² wide: three answers that agree should not select the largest scale.
        scale = max(
            _GRID["consensus_variance"],
            key=lambda s: run(s, weight, middle).evidence - 0.5 * (math.log(s) / 2.0) ** 2,
        )
    if searches_weight:
        weight = max(_GRID["feature_weight"], key=lambda w: run(scale, w, middle).evidence)
    return Pooled(run(scale, weight, delta), scale, weight, trials)


def may_search_weight(comparisons: Comparisons, space: FeatureSpace, given: Mapping[str, float]) -> bool:
    """Whether w of a kernel is searched, where it is not given."""
    # Each further kernel costs a factorisation of all items; with very many the default must do.
    return "feature_weight" not in given and space.informative and comparisons.n_items <= _ITEMS_FOR_FEATURE_SEARCH
