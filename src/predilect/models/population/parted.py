"""The fit to answers in parts: the search of ``fit``, whose passes over the answers a pool of workers makes.

A pass sends the parameters to the workers and gets sums back, added in one order whoever the workers are. What is of
one person (the own threshold, the consistency) is maximised where the person's answers lie, and is no coordinate of
the search: at its maximum it has no part in the gradient. Each pass is written down under a digest of all before it, so
that a fit that was stopped goes through the same passes again without their work.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from predilect._base.stored import DAMAGE
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.errors import DataError
from predilect.inference.gaussian.covariates import unit_of
from predilect.inference.gaussian.dense import factorise
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.people.engaged import shares_of, unit_of_noise
from predilect.inference.people.expectation import Expectation
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.sandwich import widened_by_people
from predilect.models.population.effects import MOST_PEOPLE, sd_of_unit, with_unsure_tastes
from predilect.models.population.fit import (
    PopulationState,
    climb,
    fit_thresholds,
    report_of,
    starting_point,
)
from predilect.models.population.maximisation import Point, Progress, Search
from predilect.models.population.prior import Hyperparameters, PopulationPrior
from predilect.models.population.search.plan import Plan
from predilect.models.population.search.selection import Selection
from predilect.models.population.search.without_answers import threshold_of_ties
from predilect.models.population.train import chosen_of, predicting, to_begin, tolerance_of
from predilect.parts import Parts
from predilect.parts.cells import (
    START,
    Counts,
    Pass,
    Spec,
    added,
    clickers,
    counts,
    finish,
    gamma_information,
    groups_of,
    keep,
    of_sample,
    sweep,
    unpacked,
)
from predilect.parts.pools import Pool

_WINDOW, _SITE_TOLERANCE = 5, 1e-9  # as of fit_population
_OWN_GAIN = 1e-3  # of the tolerance: what steps in people's own coordinates may leave


@dataclass(frozen=True)
class _Crowd:
    """What a search asks of the people, who are elsewhere."""

    counts: Counts
    thresholds: Thresholds | None
    n_covariates: int

    @property
    def outcome(self) -> FloatArray:
        """Whether there are ties."""
        return np.array([0.0 if self.counts.ties else 1.0])

    @property
    def traits(self) -> FloatArray:
        """None of people."""
        return np.zeros((self.counts.n_users, 0))

    @property
    def patterns(self) -> FloatArray:
        """As many columns as there are covariates."""
        return np.zeros((1, self.n_covariates))

    @property
    def item_idx(self) -> range:
        """As long as there are pairs of a person and an own item."""
        return range(self.counts.n_pairs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.counts, name)

    def scale_of_thresholds(self, delta: float | None) -> tuple[float, bool]:
        """As of :class:`~predilect.inference.people.layout.People`."""
        if self.thresholds is None:
            weight = np.array([self.counts.ties, self.counts.n_answers - self.counts.ties])
            start = starting_threshold(np.array([0, 1], np.int8), weight, delta)
            return start, delta is None and self.counts.ties > 0.0
        return self.thresholds.scale, not (delta and self.thresholds.tie_threshold)


class Passes:
    """Passes over the parts, and what was found in those that were made before."""

    def __init__(self, spec: Spec, pool: Pool, n_parts: int, n_functions: int) -> None:
        self.spec, self.pool = spec, pool
        self.groups = groups_of(n_parts, n_functions * (n_functions + 1))
        self.now, self.n_lost, self.n_known = START, 0, 0
        self.own_gain = 0.0
        self.counts: Counts | None = None  # of all parts, as the fit takes them

    def sums(self, work: Any, *args: Any) -> Any:
        """What ``work`` finds in all parts, added up in their order."""
        total: Any = None
        for found in self.pool.each(work, self.spec, self.groups, *args):
            total = found if total is None else added(total, found)
        return total

    def next(self, law: Any, delta: float, gamma: FloatArray, n_sweeps: int, tolerance: float) -> Pass:
        """The pass that comes after those so far."""
        digest = hashlib.blake2b(self.now.encode(), digest_size=8)
        for array in (
            law.Sigma,
            law.mean,
            law.Phi,
            law.rho,
            gamma,
            np.array([delta, n_sweeps, tolerance, self.own_gain]),
        ):
            digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return Pass(law, delta, gamma, n_sweeps, tolerance, self.now, digest.hexdigest(), (), self.own_gain)

    def expectation(self, one: Pass, held: Iterable[str]) -> Expectation:
        """Sums over all people after a pass; at once if it was made before."""
        file = self.spec.scratch / "passes" / f"{one.after}.npz"
        self.now = one.after
        try:
            with file.open("rb") as opened, np.load(opened) as known:
                sums = unpacked(Expectation(**{name: _number(known[name]) for name in known.files}))
            self.n_known += 1
            return sums
        except DAMAGE:  # it is not there, or cannot be read
            pass
        found, lost = self.sums(sweep, one._replace(keep=tuple(held)))
        self.n_lost += lost
        arrays = {part.name: getattr(found, part.name) for part in fields(Expectation)}
        keep(file, lambda new: np.savez(new, **arrays))
        return unpacked(found)


def _number(array: FloatArray) -> Any:
    return array.item() if array.ndim == 0 else array


class PartedSearch(Search):
    """The search over answers in parts; what is of one person is no coordinate of it."""

    def __init__(
        self, over: Passes, crowd: _Crowd, prior: PopulationPrior, progress: Progress | None, learn_delta: bool
    ) -> None:
        people: Any = crowd
        super().__init__(people, prior, None, progress, _WINDOW, learn_delta)
        self.over = over
        self.held_names: list[str] = []
        self.learn_ties = self.learn_care = False  # by the workers

    def people_at(self, point: Point) -> Any:
        return self.people

    def evaluate(self, point: Point, n_sweeps: int = 2) -> Expectation:
        self.passes += 1
        one = self.over.next(self.law(point), point.delta, point.gamma, n_sweeps, self.site_tolerance)
        return self.over.expectation(one, self.held_names)

    def held(self) -> Any:
        self.held_names = [self.over.now]
        return self.over.now

    def restore(self, held: Any) -> None:
        self.over.now = held

    def _C_gamma(self, point: Point) -> FloatArray:
        if not len(point.gamma):
            return np.zeros((0, 0))
        one = Pass(self.law(point), point.delta, point.gamma, 2, self.site_tolerance, self.over.now, self.over.now)
        information = self.over.sums(gamma_information, one)
        return factorise(information + self.gamma_precision * np.eye(len(point.gamma))).inverse()


def fit_over_parts(
    over: Passes, prior: PopulationPrior, plan: Plan, begin: PopulationState | None, progress: Progress | None
) -> PopulationState:
    """Maximum of J over the population, as ``fit_population`` finds it; states of the parts are left converged."""
    began = time.perf_counter()
    found: Counts = over.sums(counts)
    over.counts = found
    over.spec = spec = replace(over.spec, click_shares=shares_of(found.of_grades))
    crowd = _Crowd(found, spec.thresholds, len(spec.unit))
    scale, learn_delta = crowd.scale_of_thresholds(plan.delta)
    if learn_delta and begin is not None and begin.delta > 0.0:
        scale = begin.delta
    tolerance = tolerance_of(plan.tolerance, found.n_rows)
    over.own_gain = _OWN_GAIN * tolerance * found.n_answers / max(sum(map(len, over.groups)), 1)
    search = PartedSearch(over, crowd, replace(prior, click_rate=0.0), progress, learn_delta)  # workers know of clicks
    point = starting_point(search, scale, begin, own=False)
    enough = tolerance * found.n_answers
    point, residual = climb(search, point, enough, plan.max_iter, is_new=begin is None)
    one = over.next(search.law(point), point.delta, point.gamma, 100, _SITE_TOLERANCE)
    end = over.sums(finish, one, bool(len(point.gamma)))
    over.now = one.after
    search.passes += 1
    final = unpacked(end.expectation)
    metric = search.metric(point, final)
    C_m, C_gamma, C_answers = metric.C_m, metric.C_gamma, None
    if end.covariates is not None:
        C_answers = C_m
        C_m, C_gamma = end.covariates.joint(C_m, search.gamma_precision)
    residual = residual if final.is_sound else math.inf
    nothing = np.zeros(0)
    return PopulationState(
        point.m, point.Sigma, C_m, point.delta, Sites.flat(0), final.evidence,
        final.evidence + end.log_prior + search.log_prior(point), report_of(search, residual, tolerance,
        found.n_answers, began), point.offset, metric.offset_variance, point.own_scale, point.B, metric.C_B, nothing,
        nothing, nothing, nothing, point.gamma, C_gamma,
        None if spec.thresholds is None else spec.thresholds.scaled(point.delta), prior.covariate_spread,
        C_answers=C_answers,
    )  # fmt: skip


def as_it_predicts(
    over: Passes, posterior: PopulationPosterior, state: PopulationState, made: Begun
) -> tuple[PopulationPosterior, Hyperparameters]:
    """A posterior with nobody in it, in the steps of ``train_personal``; what these ask of people a sample says."""
    plan, chosen, nobody = made.plan, made.selection.hyperparameters, posterior.people
    one = Pass(posterior.law, state.delta, state.gamma, 2, _SITE_TOLERANCE, over.now, over.now)
    assert over.counts is not None  # as the fit leaves it
    is_small = "variance" not in plan.given and over.counts.n_active <= MOST_PEOPLE
    if chosen.click_rate or len(state.gamma) or is_small:
        people, sites = of_sample(over.spec, plan.answers, one)
        posterior = replace(posterior, people=people, sites=sites)
    if "variance" not in plan.given:
        posterior = with_unsure_tastes(posterior, state, made.prior)
        if is_small and posterior.people.n_active == over.counts.n_active:  # a sample's is less sure than the crowd's
            chosen = replace(chosen, unit_sd=sd_of_unit(posterior, state, made.prior, plan.given))
    if chosen.click_rate:
        scores, score, weight = over.sums(clickers, one, posterior.C_m)
        C_m = widened_by_people(posterior.C_m, scores)
        posterior = replace(posterior, C_m=C_m, C_answers=posterior.C_predicted)
    posterior = predicting(posterior, plan, chosen, state.delta)
    if chosen.click_rate:
        unit = unit_of_noise(score, weight)
        shares = tuple(over.spec.click_shares.tolist())
        posterior, chosen = posterior.in_unit(unit), replace(chosen, unit=unit, click_shares=shares)
    return replace(posterior, people=nobody, sites=Sites.flat(0)), chosen


@dataclass(frozen=True)
class Begun:
    """What a fit to parts begins with: the plan for a sample of the people, and what was chosen by it."""

    plan: Plan
    selection: Selection
    prior: PopulationPrior
    thresholds: Thresholds | None
    begin: PopulationState | None
    n_basis: int | None


def begun(plan: Plan, n_answers: float, start: Selection | None) -> Begun:
    """Choose hyper-parameters, basis and cuts by the people of a plan, and fit to these if they are not all.

    ``n_answers``: of all people. ``start``: what an earlier fit chose, and its population if that is of the same
    items.
    """
    if start is None:
        plan, selection = chosen_of(plan)
    else:
        found = replace(start.hyperparameters, click_shares=(), unit=1.0, unit_sd=0.0)
        plan, selection = replace(plan, traits=None), replace(start, hyperparameters=found)
    staged = to_begin(plan, selection)
    begin, thresholds = staged.begin, staged.thresholds
    chosen = selection.hyperparameters
    if thresholds is not None:
        begin = staged.stage(plan, begin)
        options = staged.options | {
            "tolerance": tolerance_of(plan.tolerance, plan.answers.n_rows), "max_iter": plan.max_iter
        }  # fmt: skip
        begin = fit_thresholds(staged.laid_out(plan), staged.prior, begin, chosen.item_tie_spread, **options)
        thresholds = begin.thresholds
    elif plan.awaits_ties or (plan.answers.n_answers < n_answers and (start is None or begin is None)):
        begin = staged.stage(plan, begin)
    if plan.awaits_ties and begin is not None:
        posterior = begin.posterior(staged.laid_out(plan), staged.prior)
        delta = threshold_of_ties(posterior, n_ties=0.0, n_answers=n_answers, seed=plan.random_state)
        plan = replace(plan, delta=delta)
    return Begun(plan, selection, staged.prior, thresholds, begin, staged.n_basis)


def spec_of(
    parts: Parts, work: Path, plan: Plan, with_side: bool, chosen: Hyperparameters, made: Begun, rms: FloatArray
) -> Spec:
    """What workers need to know of a fit."""
    answers = plan.answers
    spec = Spec(
        parts.path.resolve(), parts.checksum, work, answers.items, made.n_basis, plan.likelihood, made.thresholds,
        with_side, answers.grades, answers.joint, unit_of(rms) if len(rms) else np.zeros(0),
        chosen.tie_spread if answers.has_ties or answers.grades else 0.0, chosen.consistency_spread,
        tuple(chosen.covariate_spread), chosen.click_rate,
    )  # fmt: skip
    digest = hashlib.blake2b(digest_size=6)
    for one in (
        spec.checksum, answers.items.ids, spec.n_basis, plan.likelihood.name, spec.with_side, spec.grades, spec.joint,
        spec.unit.tolist(), spec.tie_spread, spec.consistency_spread, spec.covariate_spread,
        spec.click_rate,
        None if made.thresholds is None else (made.thresholds.cuts.tolist(), made.thresholds.of_items.tolist()),
    ):  # fmt: skip
        digest.update(repr(one).encode())
    return replace(spec, scratch=work / digest.hexdigest())


def refuse_unable(parts: Parts, personal: bool) -> None:
    """DataError for what a fit to parts does not do."""
    if parts.has_contexts:
        raise DataError(
            f"the answers of {parts.path} have contexts, which a fit to parts does not know. Partition the files "
            f"without: {either('leave -c context= out', 'columns={...} without context')}"
        )
    if not personal:
        raise DataError(
            f"a fit to parts is of people: {either('--personal no', 'personal=False')} pools them. Of pooled answers "
            f"only the counts of pairs matter: {either('rank', 'fit a model to')} a table of them with weights"
        )
