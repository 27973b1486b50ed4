"""Training of the population model: hyper-parameter selection, then the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.data.content import keys_of_answers
from predilect.data.features import FeatureSpace
from predilect.data.splits import thinned, with_moderate_counts
from predilect.errors import DataError
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.dense import Factor, factorise, symmetrise
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.latent.sandwich import dependence
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.people.contexts import with_contexts
from predilect.inference.people.engaged import consistency_of_others, shares_of_answers, unit_of_noise
from predilect.inference.people.expectation import expectation
from predilect.inference.people.law import Effects
from predilect.inference.people.layout import People, lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.sandwich import scores_of_people, widened_by_people
from predilect.models.population.effects import sd_of_unit, with_unsure_tastes
from predilect.models.population.fit import PopulationState, fit_population, fit_thresholds, loosely
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
    searchable,
)
from predilect.models.population.search.plan import Plan
from predilect.models.population.search.selection import Selection, select_model
from predilect.models.population.search.without_answers import (
    PRIOR,
    nothing_learned,
    prior_posterior,
    threshold_of_ties,
)
from predilect.models.population.segments import fit_segments

# Dense items x items algebra: about 50 n² floats, scipy's bounds among them, and a few n³ operations a pass.
MOST_ITEMS_PERSONAL = 3000
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


def train_personal(plan: Plan) -> Trained:
    """Population model with hyper-parameters selected on held-out answers.

    DataError if there are more items than dense algebra can hold.
    """
    plan, start, bases = _to_choose(plan)
    if not plan.answers.n_rows:
        return _train_nothing(plan, None if None in bases else bases[0])
    plan, selection = selected(plan, start, bases)
    chosen = selection.hyperparameters
    staged = to_begin(plan, selection)
    state, posterior, variances = _fitted(plan, selection, staged)
    if plan.segments is not None:
        chosen = replace(chosen, segment_variances=tuple(variances.tolist()))
    if "variance" not in plan.given:
        posterior = with_unsure_tastes(posterior, state, staged.prior)
        chosen = replace(chosen, unit_sd=sd_of_unit(posterior, state, staged.prior, plan.given))
    if chosen.click_rate:
        scores = scores_of_people(posterior.people, posterior.sites, posterior.law, posterior.C_m)
        posterior = replace(posterior, C_m=widened_by_people(posterior.C_m, scores))
    posterior = with_contexts(posterior, plan.answers)
    if chosen.click_rate or plan.segments is not None or plan.answers.context is not None:
        posterior = _by_answers_alone(posterior, staged.prior, plan)
    posterior = predicting(posterior, plan, chosen, state.delta)
    if chosen.click_rate:
        unit = unit_of_noise(*consistency_of_others(posterior.people, chosen.consistency_spread))
        shares = tuple(shares_of_answers(posterior.people).tolist())
        posterior, chosen = posterior.in_unit(unit), replace(chosen, unit=unit, click_shares=shares)
    return Trained(
        posterior, chosen, posterior.people.tie_threshold(state.delta), state.evidence, state.report,
        selection.to_dict(), selection.candidate.functions,
    )  # fmt: skip


def selected(plan: Plan, start: Hyperparameters, bases: list[Functions | None]) -> tuple[Plan, Selection]:
    """Hyper-parameters and basis by evidence and held-out answers; the plan without traits that are not used."""
    start, free = _to_search(plan, start, bases)
    selection = select_model(plan, bases, start, free)
    return (plan if selection.hyperparameters.trait_scale else replace(plan, traits=None)), selection


def chosen_of(plan: Plan) -> tuple[Plan, Selection]:
    """:func:`selected`, from what the plan says of the basis; DataError if there are too many items."""
    plan, start, bases = _to_choose(plan)
    return selected(plan, start, bases)


def _to_choose(plan: Plan) -> tuple[Plan, Hyperparameters, list[Functions | None]]:
    """The plan, where the search for hyper-parameters starts, and the bases to choose from; DataError."""
    if plan.traits is not None and not plan.traits.shape[1]:
        plan = replace(plan, traits=None)  # features are the same for all people
    start = _start(plan)
    bases = _bases(plan, start.length_scale)
    if None in bases:
        _refuse_many_items(plan.answers.n_items, MOST_ITEMS_PERSONAL, "the model of people")
    return plan, start, bases


def predicting(
    posterior: PopulationPosterior, plan: Plan, chosen: Hyperparameters, delta: float
) -> PopulationPosterior:
    """The posterior as it predicts: calibrated, and with the mean of people whom it was learned without."""
    posterior = replace(posterior, calibration=chosen.calibration_of_predictions)
    if not chosen.calibration.newcomer_weight:
        return posterior
    rows = with_moderate_counts(plan.answers)
    keys = keys_of_answers(rows, plan.space)
    rows = thinned(rows, _ROWS_FOR_NEWCOMERS, random_state=plan.random_state, keys=keys)
    shift = shift_of_newcomers(posterior, rows, posterior.people.tie_threshold(delta))
    return replace(posterior, newcomer_shift=chosen.calibration.newcomer_weight * shift)


def _train_nothing(plan: Plan, functions: Functions | None) -> Trained:
    """The prior."""
    h = _start(replace(plan, given=PRIOR | dict(plan.given)))
    posterior, delta = prior_posterior(plan, h, functions)
    return Trained(posterior, h, delta, 0.0, nothing_learned(), {"chosen": h.to_dict()}, functions)


def _to_search(plan: Plan, start: Hyperparameters, bases: list[Functions | None]) -> tuple[Hyperparameters, list[str]]:
    """Where the search starts, and which hyper-parameters it is about."""
    answers, given = plan.answers, plan.given
    informed: set[str] = {"features"} if plan.space.informative else set()
    if plan.space.informative and "consensus_feature_weight" not in given and None in bases:
        weight = start.feature_weight
        if may_search_weight(answers, plan.space, given):
            apart = replace(answers, joint=False)
            weight = search_pooled(
                apart, plan.space, start, given, plan.delta, plan.watch, None, plan.likelihood
            ).weight
        start = replace(start, consensus_feature_weight=weight)
    # A threshold that is given is shared by all people.
    if answers.has_ties and plan.delta is None:
        informed |= {"ties", "cuts"}
    if answers.grades:
        informed.add("cuts")
    if not answers.has_ties and not answers.grades:  # thresholds are not identified
        start = replace(start, tie_spread=0.0)
    if not answers.has_ties:
        start = replace(start, item_tie_spread=0.0)
    return start, [name for name in searchable(informed) if name not in given]


def _by_answers_alone(posterior: PopulationPosterior, prior: PopulationPrior, plan: Plan) -> PopulationPosterior:
    """With the covariance of the consensus that answers move, where more than answers went into C_m."""
    found = expectation(
        posterior.people, posterior.sites, posterior.law, 1.0, n_sweeps=0, executor=plan.executor
    )  # fmt: skip
    precision = prior.precision_of_consensus() / prior.consensus_variance
    return replace(posterior, C_answers=factorise(symmetrise(precision + found.H)).inverse())


def _fitted(
    plan: Plan, selection: Selection, staged: Staged
) -> tuple[PopulationState, PopulationPosterior, FloatArray]:
    """The fit to all people; with variances of segments."""
    chosen, prior, thresholds, begin = selection.hyperparameters, staged.prior, staged.thresholds, staged.begin
    people, options = staged.laid_out(plan), staged.options
    options |= {"tolerance": tolerance_of(plan.tolerance, plan.answers.n_rows), "max_iter": plan.max_iter}

    def fit(people: People, prior: PopulationPrior, start: PopulationState | None = None) -> PopulationState:
        cut = people if start is None else people.with_thresholds(start.thresholds)
        first = options if thresholds is None else loosely(options)
        state = fit_population(cut, prior, start=start, population=begin, **first)
        if plan.awaits_ties:
            delta = threshold_of_ties(
                state.posterior(cut, prior), n_ties=0.0, n_answers=cut.n_answers, seed=plan.random_state
            )
            state = fit_population(cut, prior, start=state, **options | {"delta": delta})
        if thresholds is None:
            return state
        return fit_thresholds(people, prior, state, chosen.item_tie_spread, **options)

    if plan.segments is not None:
        return fit_segments(fit, people, prior, plan.segments, plan.executor)
    state = fit(people, prior)
    return state, state.posterior(people, prior), np.zeros(0)


@dataclass(frozen=True, slots=True)
class Staged:
    """Where the fit to all people begins: the prior, the cuts, and a population fitted to some of them."""

    prior: PopulationPrior
    thresholds: Thresholds | None
    begin: PopulationState | None
    n_basis: int | None
    options: dict[str, Any]  # of fit_population

    def laid_out(self, plan: Plan) -> People:
        """Layout of the answers of a plan."""
        return lay_out(
            plan.answers, n_basis=self.n_basis, likelihood=plan.likelihood, traits=plan.traits,
            thresholds=self.thresholds,
        )  # fmt: skip

    def stage(self, plan: Plan, begin: PopulationState | None) -> PopulationState:
        """A loose fit to the people of a plan."""
        return fit_population(
            self.laid_out(plan), self.prior, tolerance=plan.tolerance or _STAGE_TOLERANCE,
            max_iter=min(plan.max_iter, _STAGE_PASSES), population=begin, site_tolerance=1e-4, **self.options,
        )  # fmt: skip


def to_begin(plan: Plan, selection: Selection) -> Staged:
    """What the fit to all people begins with; of large crowds, most passes are over some of the people."""
    chosen, candidate, begin = selection.hyperparameters, selection.candidate, selection.start
    n_basis = None if candidate.functions is None else candidate.functions.n_functions
    thresholds = None if begin is None else begin.thresholds
    if begin is None or chosen.item_tie_spread:
        thresholds = pooled_thresholds(plan.answers, plan.delta, chosen.item_tie_spread)
    watch = plan.watch
    options: dict[str, Any] = {
        "delta": plan.delta, "executor": plan.executor,
        "progress": None if watch is None else lambda done, _: watch("fitting", done),
    }  # fmt: skip
    staged = Staged(candidate.prior(chosen, plan.space), thresholds, begin, n_basis, options)
    n_people, rng = _PEOPLE_TO_START, np.random.default_rng(plan.random_state)
    while plan.answers.n_users > 2 * n_people:
        begin = staged.stage(plan.some(rng, n_people), begin)
        n_people *= _GROWTH
    return replace(staged, begin=begin)


def tolerance_of(given: float | None, n_rows: int) -> float:
    """Nats an answer by which J must rise, by default."""
    return _TOLERANCE * max(1.0, math.sqrt(n_rows / _ANSWERS_AT_TOLERANCE)) if given is None else given


def _bases(plan: Plan, length_scale: float) -> list[Functions | None]:
    """Candidate bases in order of preference; None is the items. The rule is in docs/which-model.md."""
    basis, space, answers = plan.basis, plan.space, plan.answers
    n_items, n_columns = len(space.known), space.matrix.shape[1]
    if basis == "items" or (basis == "auto" and not space.informative):
        return [None]
    if not space.informative:
        raise DataError(
            f'basis="{basis}" needs features of the items, and at least two items that differ in them. '
            f'Give them ({either("--items FILE", "items=...")}), or use basis="items"'
        )
    n_inducing = plan.n_inducing or int(np.clip(math.sqrt(answers.n_rows), *_INDUCING))
    kinds = [basis]
    if basis == "auto":
        linear = n_columns <= min(_MOST_ATTRIBUTES, n_items - 1)
        few_items = n_items <= _MOST_ITEMS_AS_BASIS
        kinds = ["attributes"] if linear else []  # the fewest functions first
        if n_items > n_inducing:  # both together hold the kernel alone as a limit
            kinds += ["attributes+inducing" if linear and not few_items else "inducing"]
        if few_items or not kinds:
            kinds += ["items"] if n_items <= MOST_ITEMS_PERSONAL else ["inducing"]
    points = np.zeros((0, n_columns))
    if any(kind.endswith("inducing") for kind in kinds):
        points = inducing_points(space, n_inducing, plan.random_state)
    assert all(kind in BASES for kind in kinds)
    own = 2.0 * answers.n_answers / n_items >= _ANSWERS_FOR_OWN
    return [None if kind == "items" else Functions.of(kind, space, points, length_scale, own) for kind in kinds]


def train_pooled(plan: Plan) -> Trained:
    """Pooled model; what is not given maximises Laplace's evidence on a small grid.

    The utilities are integrated out here, so the evidence may choose the prior. DataError as :func:`train_personal`.
    """
    answers, space = plan.answers, plan.space
    start = _start(plan)
    functions = _pooled_basis(plan, start.length_scale)
    if functions is None:
        _refuse_many_items(answers.n_items, _MOST_ITEMS_POOLED, "the pooled model")
    found = search_pooled(
        answers, space, start, plan.given, plan.delta, plan.watch, functions, plan.likelihood,
        plan.given.get("item_tie_spread") if answers.has_ties else 0.0,
    )  # fmt: skip
    best = found.state
    chosen = replace(
        start, consensus_variance=found.variance, feature_weight=found.weight, consensus_feature_weight=None,
        consistency_spread=0.0, click_rate=0.0, item_tie_spread=found.item_tie_spread,
    )  # fmt: skip
    kind = {"kind": "items"} if functions is None else functions.to_dict()
    Phi = None if functions is None else functions.rows(space)
    C, covariates = best.covariance(), None
    if best.rows.covariates is not None:
        covariates = CovariateEffects(best.mode[len(best.m) :], C[len(best.m) :, len(best.m) :])
    posterior = PooledPosterior.of(
        best.mode, C, Phi, Believed(chosen, space, functions), dependence(best, C, answers), covariates,
        best.rows.thresholds,
    )  # fmt: skip
    if plan.awaits_ties:
        delta = threshold_of_ties(posterior, n_ties=0.0, n_answers=answers.n_answers, seed=plan.random_state)
        return train_pooled(replace(plan, delta=delta))
    return Trained(
        posterior, chosen, best.tie_threshold, best.evidence, best.report,
        {"chosen": chosen.to_dict(), "basis": kind, "trials": found.trials}, functions,
    )  # fmt: skip


def _pooled_basis(plan: Plan, length_scale: float) -> Functions | None:
    """Basis of the pooled model: the items, or the richest functions where there are too many items."""
    few = len(plan.space.known) <= MOST_ITEMS_PERSONAL
    if plan.basis == "items" or (plan.basis == "auto" and (few or not plan.space.informative)):
        return None
    found = _bases(plan, length_scale)[-1]
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
    h = hyperparameters.in_unit()
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
    consensus, C_answers = (
        None
        if C is None
        else GaussianPosterior(posterior.m, C).extended(A_t, R_t, consensus_variance=h.consensus_variance)
        for C in (posterior.C_m, posterior.C_answers)
    )
    assert consensus is not None
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
        C_answers=None if C_answers is None else C_answers.covariance,
    )  # fmt: skip


def _condition(
    space: FeatureSpace, new: FeatureSpace, weight: float, length_scale: float
) -> tuple[FloatArray, FloatArray, Factor]:
    """A = K_*o K_oo⁻¹ and R = K_** - A K_o* of new items, and the factor of K_oo."""
    K_oo = factorise(space.covariance(weight, length_scale))
    K_new = space.cross(new, weight, length_scale)
    A = K_oo.solve(K_new.T).T
    return A, new.covariance(weight, length_scale) - A @ K_new.T, K_oo


def _start(plan: Plan) -> Hyperparameters:
    settings: dict[str, Any] = {**DEFAULTS, "length_scale": plan.length_scale, **plan.given}
    if not plan.space.informative:
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
