"""Empirical-Bayes fit of the population model: consensus m, population covariance Σ, tie threshold δ.

    J = Σ_u log Z_u - ½ ν₀ (log|Σ| + s₀ tr(K₀ Σ⁻¹)) - ½ mᵀ (s_t K₀)⁻¹ m          (population.md section 4)

A few closed-form steps (:mod:`predilect.inference.people.empirical_bayes`), then L-BFGS in coordinates whitened by them
(:mod:`predilect.models.population.maximisation`): its line search accepts a step only if J rises, and it takes a small
fraction of EM's passes (population.md section 4).
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.likelihoods.grades import GradeRows, Thresholds
from predilect.inference.people.empirical_bayes import information_of_consistency
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Basis, Effects
from predilect.inference.people.layout import People, with_own
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.queries import margins_in
from predilect.models.population.maximisation import Point, Progress, Search
from predilect.models.population.prior import PopulationPrior

# Of the sites at the end of a chord, and at least so many times what the others may move: only a spread rests on it.
_CHORD_TOLERANCE, _CHORD_LOOSER = 1e-4, 10.0
_WINDOW = 5  # the rise of J is judged over so many iterations, since single ones may stall


@dataclass(frozen=True, slots=True)
class PopulationState:
    """Fitted population; M items or functions of the basis."""

    m: FloatArray  # consensus, (M,)
    Sigma: FloatArray
    C_m: FloatArray  # posterior covariance of m, (M, M)
    delta: float
    sites: Sites
    evidence: float  # Σ log Z_u, in nats
    objective: float  # J, in nats
    report: Report
    offset: FloatArray  # item-specific residuals of the consensus, (n_items,) or empty
    offset_variance: FloatArray
    own_scale: float  # variance over people of item-specific residuals, per unit of their share
    B: FloatArray  # effects of traits, (M, n_traits)
    C_B: FloatArray  # covariance of the effect of each trait, (M, M)
    log_tie_factor: FloatArray  # of each person's threshold, (n_users,); empty where all share one
    tie_information: FloatArray  # of the answers about it, without the prior
    log_consistency: FloatArray  # of each person, (n_users,); empty where all have the same
    consistency_sd: FloatArray  # its posterior standard deviation
    gamma: FloatArray  # effects of covariates of answers, (n_covariates,)
    C_gamma: FloatArray  # their posterior covariance
    thresholds: Thresholds | None = None  # where there are grades, or items tie more or less than others
    covariate_spread: tuple[float, ...] = ()  # of people's own effects of covariates
    # Of each person's own effect of each covariate, in units of that spread: mean, and 1 less the variance, by turns
    own_effects: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    # probability that a person does not click at random, (n_users,); None: nobody does
    engaged: FloatArray | None = None
    C_answers: FloatArray | None = None  # C_m with effects of covariates held, where there are some

    def posterior(self, people: People, prior: PopulationPrior) -> PopulationPosterior:
        """Posterior of the population model."""
        basis = None
        if prior.Phi is not None:
            basis = Basis(
                prior.Phi, self.own_scale * prior.own_share, self.offset, self.offset_variance, self.own_scale
            )
        effects = Effects(self.B, self.C_B) if self.B.shape[1] else None
        people = self.people_with_own(people)
        covariates = None
        if len(self.gamma):
            covariates = CovariateEffects(self.gamma, self.C_gamma, spread=np.array(self.covariate_spread))
        return PopulationPosterior(
            self.m, self.C_m, self.Sigma, people, self.sites, basis, effects,
            calibration=Calibration(click_rate=prior.click_rate), covariates=covariates,
            C_answers=self.C_answers,
        )  # fmt: skip

    def people_with_own(self, people: People) -> People:
        """People with their own tie thresholds and consistency, and the effects of covariates."""
        own = with_own(
            people, self.log_tie_factor, self.log_consistency, self.gamma, self.consistency_sd, self.covariate_spread,
            self.engaged,
        )  # fmt: skip
        return own.with_thresholds(self.thresholds)


def fit_population(
    people: People,
    prior: PopulationPrior,
    *,
    delta: float | None = None,
    start: PopulationState | None = None,
    population: PopulationState | None = None,
    tolerance: float = 1e-5,
    max_iter: int = 300,
    site_tolerance: float = 1e-9,
    window: int = _WINDOW,
    kept: bool = True,
    executor: ThreadPoolExecutor | None = None,
    progress: Progress | None = None,
) -> PopulationState:
    """Maximum of J over m, Σ and, where there are ties, δ; with a basis also over the item-specific residuals.

    Where the prior has a spread of thresholds, each person's own factor of δ is maximised over too. ``start`` is a fit
    to the same answers under another prior, ``population`` one to other answers on the same items (its sites are not
    used). Stops when J rose by less than ``tolerance``, in nats an answer, over ``window`` iterations; at the end the
    sites are swept until no margin moves by more than ``site_tolerance``, in noise units. ``progress`` gets (passes,
    J). Unless ``kept`` is false, as of fits that are only compared, more room for what people differ in is tried at the
    end, in case J was at a saddle.

    population.md section 4. **Differs from the paper**: L-BFGS on (L⁻¹ m, the Cholesky factor of the whitened Σ, log δ)
    replaces over-relaxed EM. A pass costs one E step (:func:`~predilect.inference.people.expectation.expectation`) and
    about 3 M³ operations; memory about 12 M² + 5 n_items floats and L-BFGS's history.
    """
    began = time.perf_counter()
    scale, learn_delta = people.scale_of_thresholds(delta)
    search = Search(people, prior, executor, progress, window, learn_delta)
    sites = Sites.flat(people.n_rows) if start is None else start.sites.copy()
    start = start or population
    if learn_delta and start and start.delta > 0.0:
        scale = start.delta
    point = starting_point(search, scale, start, own=start is not population)
    search.sites = sites
    enough = tolerance * people.n_answers
    point, residual = climb(search, point, enough, max_iter, is_new=start is None, kept=kept)
    law = search.law(point)
    final = converge(
        search.people_at(point), sites, law, point.delta, spread=prior.tie_spread if search.learn_ties else 0.0,
        tolerance=site_tolerance, executor=executor,
    )  # fmt: skip
    if search.learn_ties:
        point = replace(point, log_tie_factor=np.log(final.tie_factor))
    search.passes += 1
    metric, consistency_sd = search.metric(point, final), np.zeros(0)
    if search.learn_care:
        information = information_of_consistency(
            search.people_at(point), sites, law, point.delta, final.care[:, 0],
            tolerance=max(_CHORD_LOOSER * site_tolerance, _CHORD_TOLERANCE), executor=executor,
        )  # fmt: skip
        consistency_sd = 1.0 / np.sqrt(information + prior.consistency_spread**-2)
    C_m, C_gamma, C_answers = metric.C_m, metric.C_gamma, None
    if len(point.gamma):
        C_answers = C_m
        C_m, C_gamma = search.information(point, final, sites).joint(C_m, search.gamma_precision)
    residual = residual if final.is_sound else math.inf
    report = report_of(search, residual, tolerance, people.n_answers, began)
    objective = final.evidence + search.log_prior(point)
    return PopulationState(
        point.m, point.Sigma, C_m, point.delta, sites, final.evidence, objective, report, point.offset,
        metric.offset_variance, point.own_scale, point.B, metric.C_B, point.log_tie_factor, metric.tie_information,
        point.log_consistency, consistency_sd, point.gamma, C_gamma,
        None if people.thresholds is None else people.thresholds.scaled(point.delta), prior.covariate_spread,
        final.own_slopes[:, 4:], final.engaged if prior.click_rate else None, C_answers,
    )  # fmt: skip


def starting_point(search: Search, scale: float, start: PopulationState | None, *, own: bool = True) -> Point:
    """Where a search begins: at another fit, or with nothing known; ``own``: whether that was of the same people.

    What the other fit does not have (offsets, trait effects, thresholds) starts at its default.
    """
    point = search.first_point(scale)
    if start is None:
        return point
    offset = start.offset if len(start.offset) == len(point.offset) else point.offset
    B = start.B if start.B.shape == point.B.shape else point.B
    own_scale = start.own_scale if len(point.offset) else point.own_scale

    def of_people(theirs: FloatArray, ours: FloatArray) -> FloatArray:
        return theirs if len(theirs) == len(ours) and own else ours

    return Point(
        start.m, start.Sigma, scale, offset, own_scale, B,
        of_people(start.log_tie_factor, point.log_tie_factor),
        of_people(start.log_consistency, point.log_consistency),
        start.gamma if len(start.gamma) == len(point.gamma) else point.gamma,
    )  # fmt: skip


def climb(
    search: Search, point: Point, enough: float, max_iter: int, *, is_new: bool, kept: bool = True
) -> tuple[Point, float]:
    """Maximum of J from a point on, until it rises by less than ``enough``, and its last rise; see fit_population."""
    point, residual, again = search.fixed_point(point, enough, max_iter)
    if again:
        n_steps = 3 if is_new else 1
        point, current = search.closed_form(point, n_steps if math.isinf(residual) else 0)
    while again and search.passes < max_iter:
        point, residual, again = search.lbfgs(point, current, enough, max_iter)
        if again:
            point, current = search.closed_form(point, 0)
        elif kept and (found := search.wider(point)) is not None:
            (point, current), residual, again = found, math.inf, True
    return point, residual


def report_of(search: Search, residual: float, tolerance: float, n_answers: float, began: float) -> Report:
    """How a fit went: ``residual`` and ``tolerance`` are in nats, and in nats an answer."""
    return Report(
        method="population EP",
        iterations=search.passes,
        residual=residual / n_answers,
        tolerance=tolerance,
        converged=residual <= tolerance * n_answers,  # before it is divided, which may round it to above the tolerance
        jitter=search.jitter,
        seconds=time.perf_counter() - began,
        unit="nats an answer",
        advice=either("look for extreme weights", "allow more passes (max_iter=...), or loosen the tolerance"),
    )


# Fits for cuts, and the change of their logarithms after which one is the last, in units of the tolerance's root: J is
# a parabola there.
_MOST_ROUNDS, _RESTING = 4, 6.0
# Of all fits but the last: the tolerance in units of that of the last, and that of the sites.
_LOOSER, _SITES_WHILE_LOOSE = 10.0, 1e-3
_PEOPLE_FOR_CUTS = 5000  # evenly among all: a few numbers need no more


def loosely(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a fit that another one follows, with other cuts."""
    return options | {"tolerance": _LOOSER * options["tolerance"], "site_tolerance": _SITES_WHILE_LOOSE, "kept": False}


def fit_thresholds(
    people: People, prior: PopulationPrior, start: PopulationState, spread: float, **options: Any
) -> PopulationState:
    """Fits, each from the one before, until the cuts in units of the first, and factors of items, are at rest.

    ``spread`` is σ_ψ of the factors, ``options`` are those of :func:`fit_population`. A round takes the cuts of largest
    evidence with the margins' laws without each answer held; so at rest the gradient of the evidence in them is 0.
    people.md, "Cuts of grades".
    """
    state = start
    looser = loosely(options) | {"window": 1}
    for left in reversed(range(_MOST_ROUNDS)):
        old = state.thresholds
        assert old is not None
        new = old.learned(_without_each(state, people, prior), spread, learn_scale=not options.get("delta"))
        last = not left or new.scaled(old.scale).change_from(old) < _RESTING * math.sqrt(options["tolerance"])
        state = fit_population(
            people.with_thresholds(new), prior, start=replace(state, delta=new.scale),
            **options if last else looser,
        )  # fmt: skip
        if last:
            break
    return state


def _without_each(state: PopulationState, people: People, prior: PopulationPrior) -> GradeRows:
    """Laws of the margins of answers, each without one copy of it, in units of the noise of its person.

    The consensus is held at its mode; answers about several alternatives say nothing of cuts.
    """
    posterior = state.posterior(people, prior)
    basis, effects, people, sites = posterior.basis, posterior.effects, posterior.people, posterior.sites
    if basis is not None:
        basis = replace(basis, offset_variance=np.zeros_like(basis.offset_variance))
    if effects is not None:
        effects = replace(effects, covariance=np.zeros_like(effects.covariance))
    posterior = replace(posterior, C_m=np.zeros_like(posterior.C_m), C_answers=None, basis=basis, effects=effects)
    n_rows = np.diff(people.answer_ptr)
    users = np.flatnonzero(n_rows)
    who = np.repeat(np.arange(people.n_users), n_rows)
    rows = np.flatnonzero(np.isin(who, users[:: math.ceil(len(users) / _PEOPLE_FOR_CUTS)]) & (people.task < 0))
    who = who[rows]
    left, right = (people.item_idx[people.item_ptr[who] + of[rows]] for of in (people.left, people.right))
    mean, var = margins_in(
        posterior, posterior.law, people, sites, who, left, right, None, people.slope_columns[rows], None
    )
    a, precision, linear = people.consistency[who], sites.precision[rows], sites.linear[rows]
    mean, var = a * mean, a * a * var
    share = 1.0 - precision * var
    mean = (mean - var * linear) / share + a * people.offset[rows]
    weight = people.engaged[who] * people.weight[rows]
    return GradeRows(people.outcome[rows], weight, mean, var / share, people.tie_factor[who], left, right)
