"""Training of the population model: hyper-parameter selection, then the fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from predilect._text import either
from predilect._types import FloatArray
from predilect.data import Comparisons
from predilect.data.content import keys_of_answers
from predilect.data.features import FeatureSpace
from predilect.data.splits import some_people, thinned, with_moderate_counts
from predilect.errors import DataError
from predilect.gaussian.covariates import CovariateEffects
from predilect.gaussian.dense import Factor, factorise
from predilect.gaussian.posterior import GaussianPosterior
from predilect.latent.sandwich import dependence
from predilect.likelihoods.views import PairLikelihood, Probit
from predilect.models.population.fit import PopulationState, fit_population, fit_thresholds
from predilect.models.population.pooled import (
    Believed,
    PooledPosterior,
    may_search_weight,
    pooled_thresholds,
    search_pooled,
    shift_of_newcomers,
)
from predilect.models.population.prior import (
    BASES,
    DEFAULTS,
    Functions,
    Hyperparameters,
    PopulationPrior,
    inducing_points,
)
from predilect.models.population.segments import Segments, fit_segments
from predilect.models.population.selection import select_model
from predilect.people.contexts import with_contexts
from predilect.people.law import Effects
from predilect.people.layout import People, lay_out
from predilect.people.posterior import PopulationPosterior
from predilect.progress import Report, Watcher

# Dense items x items algebra: about 50 n² floats, scipy's bounds among them, and a few n³ operations a pass.
_MOST_ITEMS_PERSONAL = 3000
_MOST_ITEMS_POOLED = 10_000
# Stands for an improper flat prior, and keeps an item that never wins finite. All utilities share this variance, so
# that differences keep 8 digits after the point.
_FLAT_SCALE = 1e8
# The automatic choice of a basis, where items have features.
_MOST_ITEMS_AS_BASIS = 300
_MOST_ATTRIBUTES = 200
_ANSWERS_FOR_OWN = 10.0  # on an item: fewer do not identify its item-specific residual
_INDUCING = (50, 150)  # √answers, within these
# Large crowds are fitted in stages: so many people, then so many times more, then all.
_PEOPLE_TO_START, _GROWTH = 2000, 5
# Tolerance by default: beyond so many answers it grows with the root of their number, as a pass takes longer. In
# proportion to their number it left off at saddles (ukpconvarg, 67 606 rows: 830 nats before the maximum).
_TOLERANCE, _ANSWERS_AT_TOLERANCE = 1e-5, 5e3
_STAGE_TOLERANCE, _STAGE_PASSES = 1e-4, 40
_ROWS_FOR_NEWCOMERS = 100_000  # their mean shift is as many numbers as the consensus has


@dataclass(frozen=True, slots=True)
class Trained:
    """Trained population model; ``selection`` records the search, ``functions=None`` is the item basis."""

    posterior: PopulationPosterior | PooledPosterior
    hyperparameters: Hyperparameters
    delta: float
    log_evidence: float
    fit: Report
    selection: dict[str, Any]
    functions: Functions | None = None


def train_personal(
    comparisons: Comparisons,
    space: FeatureSpace,
    default_length_scale: float,
    given: Mapping[str, Any],
    *,
    basis: str,
    n_inducing: int | None,
    traits: FloatArray | None,
    traits_must: bool,
    segments: Segments | None,
    delta: float | None,
    tolerance: float | None,
    max_iter: int,
    random_state: int,
    executor: ThreadPoolExecutor | None,
    watch: Watcher | None,
    likelihood: type[PairLikelihood] = Probit,
) -> Trained:
    """Population model with hyper-parameters selected on held-out answers.

    ``given`` holds hyper-parameters fixed by the caller, ``default_length_scale`` is where the search for ℓ starts,
    ``tolerance=None`` grows with the number of answers beyond 5 000; ``segments`` join in at the final fit. DataError
    if there are more items than dense algebra can hold.
    """
    if traits is not None and not traits.shape[1]:
        traits = None  # features are the same for all people
    start = _start(space, default_length_scale, given)
    bases = _bases(basis, n_inducing, space, start.length_scale, comparisons, random_state)
    if None in bases:
        _refuse_many_items(comparisons.n_items, _MOST_ITEMS_PERSONAL, "Population(personal=True)")
    searchable = ["strength", "variance", "consensus_variance", "calibration"]
    if space.informative:
        searchable += ["feature_weight", "length_scale"]
        if "consensus_feature_weight" not in given and None in bases:
            weight = start.feature_weight
            if may_search_weight(comparisons, space, given):
                apart = replace(comparisons, joint=False)
                weight = search_pooled(apart, space, start, given, delta, watch, None, likelihood).weight
            start = replace(start, consensus_feature_weight=weight)
    # A threshold that is given is shared by all people.
    if (comparisons.has_ties and delta is None) or comparisons.grades:
        searchable.append("tie_spread")
    if comparisons.has_ties and delta is None:
        searchable.append("item_tie_spread")
    searchable.append("consistency_spread")
    if not comparisons.has_ties and not comparisons.grades:  # thresholds are not identified
        start = replace(start, tie_spread=0.0)
    if not comparisons.has_ties:
        start = replace(start, item_tie_spread=0.0)
    selection = select_model(
        comparisons,
        space,
        bases,
        start,
        [name for name in searchable if name not in given],
        traits=traits,
        traits_must=traits_must,
        delta=delta,
        random_state=random_state,
        executor=executor,
        progress=None if watch is None else lambda trial: watch("choosing the prior by held-out answers", trial),
        likelihood=likelihood,
    )
    chosen, candidate = selection.hyperparameters, selection.candidate
    prior = candidate.prior(chosen, space)
    n_basis = None if candidate.functions is None else candidate.functions.n_functions
    traits = traits if chosen.trait_scale else None
    laid_out = partial(lay_out, n_basis=n_basis, likelihood=likelihood)
    begin = selection.start
    fitting = None if watch is None else lambda done, _: watch("fitting", done)
    thresholds = None if begin is None else begin.thresholds
    if begin is None or chosen.item_tie_spread:
        thresholds = pooled_thresholds(comparisons, delta, chosen.item_tie_spread)
    n_people, rng = _PEOPLE_TO_START, np.random.default_rng(random_state)
    while comparisons.n_users > 2 * n_people:  # most passes are over some of the people
        some, codes = some_people(comparisons, rng, n_people, keys=keys_of_answers(comparisons, space))
        begin = fit_population(
            laid_out(
                some, traits=None if traits is None else traits[codes],
                thresholds=thresholds,
            ),
            prior, delta=delta,
            tolerance=tolerance or _STAGE_TOLERANCE, max_iter=min(max_iter, _STAGE_PASSES), population=begin,
            n_closed_form=1, site_tolerance=1e-4, executor=executor, progress=fitting,
        )  # fmt: skip
        n_people *= _GROWTH
    people = laid_out(comparisons, traits=traits, thresholds=thresholds)

    def fit(people: People, prior: PopulationPrior, start: PopulationState | None = None) -> PopulationState:
        options: dict[str, Any] = {
            "delta": delta, "tolerance": _tolerance(tolerance, comparisons.n_rows), "max_iter": max_iter,
            "executor": executor, "progress": fitting,
        }  # fmt: skip
        known = start or begin
        state = fit_population(
            people if start is None else people.with_thresholds(start.thresholds), prior, start=start,
            population=begin, n_closed_form=3 if known is None else 1, **options,
        )  # fmt: skip
        return state if thresholds is None else fit_thresholds(
            people, prior, state, chosen.item_tie_spread, n_closed_form=1, **options
        )  # fmt: skip

    if segments is None:
        state = fit(people, prior)
        posterior = state.posterior(people, prior)
    else:
        state, posterior, variances = fit_segments(fit, people, prior, segments, executor)
        chosen = replace(chosen, segment_variances=tuple(variances.tolist()))
    posterior = replace(with_contexts(posterior, comparisons), calibration=chosen.calibration_of_predictions)
    delta = posterior.people.tie_threshold(state.delta)
    if chosen.calibration.newcomer_weight:
        rows = with_moderate_counts(comparisons)
        rows = thinned(rows, _ROWS_FOR_NEWCOMERS, random_state=random_state, keys=keys_of_answers(rows, space))
        shift = chosen.calibration.newcomer_weight * shift_of_newcomers(posterior, rows, delta)
        posterior = replace(posterior, newcomer_shift=shift)
    return Trained(
        posterior, chosen, delta, state.evidence, state.report, selection.to_dict(), candidate.functions,
    )  # fmt: skip


def _tolerance(given: float | None, n_rows: int) -> float:
    return _TOLERANCE * max(1.0, math.sqrt(n_rows / _ANSWERS_AT_TOLERANCE)) if given is None else given


def _bases(
    basis: str,
    n_inducing: int | None,
    space: FeatureSpace,
    length_scale: float,
    comparisons: Comparisons,
    random_state: int,
) -> list[Functions | None]:
    """Candidate bases in order of preference; None is the items. The rule is in docs/which-model.md."""
    n_items, n_columns = len(space.known), space.matrix.shape[1]
    if basis == "items" or (basis == "auto" and not space.informative):
        return [None]
    if not space.informative:
        raise DataError(
            f'basis="{basis}" needs features of the items, and at least two items that differ in them. '
            f'Give them ({either("--items FILE", "items=...")}), or use basis="items"'
        )
    n_inducing = n_inducing or int(np.clip(math.sqrt(comparisons.n_rows), *_INDUCING))
    kinds = [basis]
    if basis == "auto":
        linear = n_columns <= min(_MOST_ATTRIBUTES, n_items - 1)
        few_items = n_items <= _MOST_ITEMS_AS_BASIS
        kinds = ["attributes"] if linear else []  # the fewest functions first
        if n_items > n_inducing:  # both together hold the kernel alone as a limit
            kinds += ["attributes+inducing" if linear and not few_items else "inducing"]
        if few_items or not kinds:
            kinds += ["items"] if n_items <= _MOST_ITEMS_PERSONAL else ["inducing"]
    points = np.zeros((0, n_columns))
    if any(kind.endswith("inducing") for kind in kinds):
        points = inducing_points(space, n_inducing, random_state)
    assert all(kind in BASES for kind in kinds)
    own = 2.0 * comparisons.n_answers / n_items >= _ANSWERS_FOR_OWN
    return [None if kind == "items" else Functions.of(kind, space, points, length_scale, own) for kind in kinds]


def train_pooled(
    comparisons: Comparisons,
    space: FeatureSpace,
    default_length_scale: float,
    given: Mapping[str, Any],
    *,
    basis: str,
    n_inducing: int | None,
    delta: float | None,
    random_state: int,
    watch: Watcher | None,
    likelihood: type[PairLikelihood] = Probit,
) -> Trained:
    """Pooled model; what is not ``given`` maximises Laplace's evidence on a small grid.

    The utilities are integrated out here, so the evidence may choose the prior. DataError as :func:`train_personal`.
    """
    start = _start(space, default_length_scale, given)
    functions = _pooled_basis(basis, n_inducing, space, start.length_scale, comparisons, random_state)
    if functions is None:
        _refuse_many_items(comparisons.n_items, _MOST_ITEMS_POOLED, "Population(personal=False)")
    found = search_pooled(
        comparisons, space, start, given, delta, watch, functions, likelihood,
        given.get("item_tie_spread") if comparisons.has_ties else 0.0,
    )  # fmt: skip
    best = found.state
    chosen = replace(
        start, consensus_variance=found.variance, feature_weight=found.weight, consensus_feature_weight=None,
        consistency_spread=0.0, item_tie_spread=found.item_tie_spread,
    )  # fmt: skip
    kind = {"kind": "items"} if functions is None else functions.to_dict()
    Phi = None if functions is None else functions.rows(space)
    C, covariates = best.covariance(), None
    if best.rows.covariates is not None:
        covariates = CovariateEffects(best.mode[len(best.m) :], C[len(best.m) :, len(best.m) :])
    posterior = PooledPosterior.of(
        best.mode, C, Phi, Believed(chosen, space, functions), dependence(best, C, comparisons), covariates,
        best.rows.thresholds,
    )  # fmt: skip
    return Trained(
        posterior, chosen, best.tie_threshold, best.evidence, best.report,
        {"chosen": chosen.to_dict(), "basis": kind, "trials": found.trials}, functions,
    )  # fmt: skip


def _pooled_basis(
    basis: str, n_inducing: int | None, space: FeatureSpace, length_scale: float, comparisons: Comparisons,
    random_state: int,
) -> Functions | None:  # fmt: skip
    """Basis of the pooled model: the items, or the richest functions where there are too many items."""
    if basis == "items" or (basis == "auto" and (len(space.known) <= _MOST_ITEMS_PERSONAL or not space.informative)):
        return None
    found = _bases(basis, n_inducing, space, length_scale, comparisons, random_state)[-1]
    # The pooled model has no item-specific residual on a basis: its prior would be as large as the items.
    return None if found is None else replace(found, own=False)


def extend(
    posterior: PopulationPosterior | GaussianPosterior,
    hyperparameters: Hyperparameters,
    space: FeatureSpace,
    new: FeatureSpace,
    functions: Functions | None = None,
) -> PopulationPosterior | GaussianPosterior:
    """Posterior with new items appended, predicted from their features (population.md section 6)."""
    h = hyperparameters
    if functions is not None:
        Phi = functions.rows(new)
        if isinstance(posterior, GaussianPosterior):
            assert posterior.Phi is not None
            return replace(posterior, Phi=np.vstack([posterior.Phi, Phi]))
        share = functions.own_share(Phi, new.known, h.feature_weight)
        return posterior.with_items(Phi, share, h.consensus_variance)
    A, R, K_oo = _condition(space, new, h.feature_weight, h.length_scale)
    if isinstance(posterior, GaussianPosterior):
        return posterior.extended(A, R, consensus_variance=h.consensus_variance)
    A_t, R_t, _ = _condition(space, new, h.consensus_weight, h.length_scale)
    consensus = GaussianPosterior(*posterior.consensus()).extended(A_t, R_t, consensus_variance=h.consensus_variance)
    trace = float(np.trace(K_oo.solve(posterior.Sigma))) / h.variance
    effects = posterior.effects
    if effects is not None:  # its prior is that of the consensus, with a scale of its own
        variances = [*([h.trait_scale] if h.trait_scale else []), *h.segment_variances]
        spread = np.array([
            GaussianPosterior(np.zeros(posterior.n_items), one).extended(A_t, R_t, consensus_variance=s_b).covariance
            for one, s_b in zip(effects.stack, variances, strict=True)
        ])  # fmt: skip
        B = np.vstack([effects.B, A_t @ effects.B])
        effects = Effects(B, spread[0] if effects.covariance.ndim == 2 else spread)
    shift = posterior.newcomer_shift
    return posterior.extended(
        A, R, consensus=consensus, scale=h.variance, strength=h.strength, trace=trace, effects=effects,
        newcomer_shift=None if shift is None else np.append(shift, A @ shift),
    )  # fmt: skip


def _condition(
    space: FeatureSpace, new: FeatureSpace, weight: float, length_scale: float
) -> tuple[FloatArray, FloatArray, Factor]:
    """A = K_*o K_oo⁻¹ and R = K_** - A K_o* of new items, and the factor of K_oo."""
    K_oo = factorise(space.covariance(weight, length_scale))
    K_new = space.cross(new, weight, length_scale)
    A = K_oo.solve(K_new.T).T
    return A, new.covariance(weight, length_scale) - A @ K_new.T, K_oo


def _start(space: FeatureSpace, default_length_scale: float, given: Mapping[str, float]) -> Hyperparameters:
    settings: dict[str, Any] = {**DEFAULTS, "length_scale": default_length_scale, **given}
    if not space.informative:
        settings["feature_weight"] = 0.0
    settings["consensus_variance"] = min(settings["consensus_variance"], _FLAT_SCALE)
    return Hyperparameters(**settings)


def _refuse_many_items(n_items: int, most: int, model: str) -> None:
    if n_items > most:
        raise DataError(
            f"there are {n_items} items, but {model} works with at most {most}: its algebra is dense, items x items. "
            f"Give features of the items ({either('--items FILE', 'items=...')}), on which utilities can hang instead, "
            f"map items to groups ({either('--map FILE', 'item_map=...')}), keep the items that matter, or, up to "
            f"{_MOST_ITEMS_POOLED} items, fit the pooled model ({either('--personal no', 'personal=False')})"
        )
