"""Choice of the basis and the hyper-parameters: first by evidence, then by held-out answers.

m and Σ are point estimates, so neither the evidence nor J may choose ν₀: the first prefers the weakest prior, the
second the strongest (population.md section 4). Answers held out within people find the best. Scales far off would end
at a weak prior that merely gets rid of them, so the evidence of the rigid population (``evidence.py``) sets them first,
for each basis by itself; held-out answers then choose among the bases, and a short walk follows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from predilect.data.comparisons import n_joint
from predilect.data.orders import weights_of_rows
from predilect.data.splits import MOST_PEOPLE, masks_of_folds, thinned, with_moderate_counts
from predilect.inference.people.layout import lay_out, with_own
from predilect.models.population.fit import PopulationState
from predilect.models.population.pooled import pooled_effects, pooled_thresholds
from predilect.models.population.prior import MANY_FUNCTIONS, Candidate, Functions, Hyperparameters
from predilect.models.population.search.calibration import calibration, newcomer_factor, newcomer_weight
from predilect.models.population.search.evidence import by_evidence
from predilect.models.population.search.folds import (
    FEWEST_PEOPLE,
    Fold,
    PeopleLeftOut,
    is_better,
    quarters,
)
from predilect.models.population.search.held_out import HeldOut
from predilect.models.population.search.moves import (
    ANY,
    MOVES,
    ONE,
    STRIDES,
    Chosen,
    HeldOutSearch,
    first_trait_scale,
    step,
)
from predilect.models.population.search.plan import Plan

# Few people: the walk starts nearly rigid, where a fit takes few passes, and goes down while held-out answers gain.
_NEARLY_RIGID = 10.0**1.5  # times the least strength, three steps above it
_FOR_DIRECTIONS = 4  # times as many people and rows as usual: fewer do not show them
_ANSWERS_AN_ENTRY = 5  # of Σ, below which it is not free: with 1.5 a free one was .002 to .018 nats an answer behind
_FEWEST_HELD_OUT = 20.0
_ENOUGH_HELD_OUT = 1500.0  # of fewer a fold by chance decides, on whether people differ in care for one
_ENOUGH_FOR_SCALES = 4000  # rows
_ENOUGH_PEOPLE, _ENOUGH_ROWS = 300, 30_000
_PEOPLE_WITH_KERNEL = 700  # a pass is several times as long
# Bases differ by more than settings do, but with few people the one with the fewest functions looks best.
# A quarter of the crowd, within these: for the evidence of each basis, and for the answers held out that compare them.
_PEOPLE_FOR_EVIDENCE, _PEOPLE_FOR_BASIS = (160, 500), (400, 500)
_MOST_TO_CALIBRATE = 2000  # people: with fewer than there are, margins are not those of the fit to all
_ENOUGH_TO_CALIBRATE = 3000.0  # answers held out
_ENOUGH_NEWCOMERS = 1000.0  # answers of people left out, at each step
_MOST_WORK = 1e8  # multiply-adds of a sweep, over all folds; about half a second


@dataclass(frozen=True, slots=True)
class Selection:
    """What was searched and what was chosen."""

    hyperparameters: Hyperparameters  # the choice; a ``trait_scale`` of 0 says that traits of people are not used
    candidate: Candidate  # the basis of the utilities
    trials: list[dict[str, Any]]  # each setting tried, with its held-out log loss in nats an answer
    # n_people, n_held_out: people that took part, and answers that were held out (over the folds fitted)
    n_people: int
    n_held_out: float
    start: PopulationState | None  # the population fitted last at the chosen setting: where the full fit may start

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for the report."""
        functions = self.candidate.functions
        return {
            "chosen": self.hyperparameters.to_dict(),
            "basis": {"kind": "items"} if functions is None else functions.to_dict(),
            "user_features": self.hyperparameters.trait_scale > 0.0,
            "trials": self.trials,
            "n_people": self.n_people,
            "n_held_out": self.n_held_out,
        }


def select_model(
    plan: Plan, bases: Sequence[Functions | None], start: Hyperparameters, free: Sequence[str]
) -> Selection:
    """Scales and shape from the evidence; then the basis, a walk on strength and scale, and traits by held-out answers.

    At most 1 000 people take part, down to 300 where these gave more than 30 000 answers, and at most five folds. Of
    the ``bases`` (None: the items), in order of preference, a later one must gain to be chosen. What of ``start`` is
    not ``free`` stays. Traits of people are used if held-out answers gain by it, or if they must.

    population.md section 4. Evidence costs some 40 E steps a basis, the walk eight loose fits to at most 1 000 people.
    """
    plan = replace(plan, answers=with_moderate_counts(plan.answers))
    seeds = SeedSequence(plan.random_state).spawn(8)
    some = plan.some(seeds[0], _most_people(plan, bases))
    if plan.traits_must and plan.traits is not None:
        start = replace(start, trait_scale=first_trait_scale(start.variance, plan.traits))
    if not free and len(bases) == 1 and (plan.traits is None or plan.traits_must):
        return Selection(start, Candidate.of(bases[0], plan.space), [], some.answers.n_users, 0.0, None)
    # With a basis of functions, items that nobody here saw would only cost time.
    part = some.for_bases(bases)
    n_basis = max((functions.n_functions for functions in bases if functions is not None), default=None)
    few = _are_few_for_covariance(plan)
    masks = masks_of_folds(part.answers, seeds[1], _ENOUGH_HELD_OUT, keys=part.keys())
    search = HeldOutSearch(part, masks, n_basis, free, seeds[7])
    first = search  # several bases are compared by fewer people
    n_first, n_evident = (
        int(np.clip(plan.answers.n_users // 4, *of)) for of in (_PEOPLE_FOR_BASIS, _PEOPLE_FOR_EVIDENCE)
    )
    if len(bases) > 1 and some.answers.n_users > n_first:
        fewer = some.some(seeds[2], n_first).for_bases(bases)
        masks = masks_of_folds(fewer.answers, seeds[3], _ENOUGH_HELD_OUT, keys=fewer.keys())
        first = HeldOutSearch(fewer, masks, n_basis, free, seeds[7])
    if len(bases) > 1:
        search.evident = first.plan.some(seeds[2], n_evident)
    scales = _scales_of(first, search.evident, start, seeds[6])
    if first.n_held_out < _FEWEST_HELD_OUT:
        setting = scales(Candidate.of(bases[0], first.plan.space))
        candidate = Candidate.of(bases[0], plan.space)
        return Selection(setting, candidate, [], some.answers.n_users, first.n_held_out, None)
    search.best = _best_of(first, bases, scales, few)
    if first is not search:
        search.trials += first.trials
        search.best = _again(search, search.best, _scales_of(search, part, start, seeds[6]))
    search.make(MOVES)
    best = search.best
    setting = replace(best.setting, calibration=best.trial.calibration)
    begin = best.trial.states[0]
    if None not in bases:  # the offsets are those of the items that took part
        begin = replace(begin, offset=np.zeros(0))
    if "calibration" in free:
        setting = _calibrated(plan, bases, search, replace(best, setting=setting), begin, some is plan, seeds)
    if "strength" in free and search.has_few_people(best.candidate, best.setting):
        # Against the prior of Σ answers weigh by their number: a strength at which a fold does not overfit may let the
        # fit to all answers overfit.
        share = search.folds[0].people.n_answers / search.folds[0].comparisons.n_answers
        setting = replace(setting, strength=setting.strength / share)
    candidate = Candidate.of(best.candidate.functions, plan.space)
    return Selection(setting, candidate, search.trials, some.answers.n_users, search.n_held_out, begin)


def _most_people(plan: Plan, bases: Sequence[Functions | None]) -> int:
    """How many people take part: of those who answered much fewer will do."""
    answers = plan.answers
    kernel = any(functions is not None and len(functions.points) for functions in bases)
    most, enough = _PEOPLE_WITH_KERNEL if kernel else MOST_PEOPLE, _ENOUGH_ROWS
    if None in bases and _are_few_for_covariance(plan):
        most, enough = _FOR_DIRECTIONS * most, _FOR_DIRECTIONS * enough
    # A row of a task costs the square of the rows, others that of the items.
    larger = answers.n_rows / (max(answers.n_users, 1) * answers.n_items) if n_joint(answers) else 1.0
    n_rows = max(int(answers.n_rows * max(larger, 1.0) ** 2), 1)
    return min(most, max(_ENOUGH_PEOPLE, enough * answers.n_users // n_rows))


def _are_few_for_covariance(plan: Plan) -> bool:
    """Whether answers are so few that a free covariance of many items would overfit."""
    n_items = plan.answers.n_items
    return n_items > MANY_FUNCTIONS and plan.answers.n_answers < _ANSWERS_AN_ENTRY * n_items * (n_items + 1) / 2


def _scales_of(
    search: HeldOutSearch, plan: Plan, start: Hyperparameters, seed: SeedSequence
) -> Callable[[Candidate], Hyperparameters]:
    """Hyper-parameters of a candidate by the evidence of the people in ``plan``."""
    answers, delta = plan.answers, plan.delta
    gamma, thresholds = pooled_effects(answers, delta, plan.likelihood), pooled_thresholds(answers, delta)
    fewer = thinned(answers, _ENOUGH_FOR_SCALES, random_state=seed, keys=plan.keys())
    laid_out = partial(lay_out, n_basis=search.n_basis, likelihood=plan.likelihood, thresholds=thresholds)
    people, part = (with_own(laid_out(rows), np.zeros(0), np.zeros(0), gamma) for rows in (answers, fewer))
    return lambda candidate: by_evidence(people, part, plan.space, candidate, start, search.free, delta, plan.executor)


def _best_of(
    search: HeldOutSearch, bases: Sequence[Functions | None], scales: Callable[[Candidate], Hyperparameters], few: bool
) -> Chosen:
    """The best basis at its scales by the evidence; ``few``: answers, for a free covariance of the items."""
    best: Chosen | None = None
    for functions in bases:
        candidate = Candidate.of(functions, search.space)
        setting = scales(candidate)
        if "strength" in search.free and few and functions is None:
            setting = replace(setting, directions=0)
        elif "strength" in search.free and search.has_few_people(candidate, setting):
            setting = replace(setting, strength=min(_NEARLY_RIGID * setting.strength, STRIDES["strength"].high))
        found = Chosen(candidate, setting, search.run(candidate, setting, None))
        if len(bases) > 1 and not found.trial.converged:  # many functions that have not converged may overfit later
            found = _in_full(search, found)
        # Items that do as well as functions will do better with more people, or more answers.
        if best is None or is_better(found.trial, best.trial, ANY if functions is None else ONE):
            best = found
    assert best is not None
    return best


def _in_full(search: HeldOutSearch, found: Chosen) -> Chosen:
    """As fitted in the end, and with more strength as long as that gains."""
    best = replace(found, trial=search.run(found.candidate, found.setting, found.trial, as_fitted=True))
    while "strength" in search.free and (setting := step(best.setting, "strength", 1, 0.0)) is not None:
        warm = best.trial if best.trial.converged else None
        trial = search.run(best.candidate, setting, warm, as_fitted=True)
        if not is_better(trial, best.trial, ANY):
            break
        best = replace(best, setting=setting, trial=trial)
    return best


def _again(search: HeldOutSearch, best: Chosen, scales: Callable[[Candidate], Hyperparameters]) -> Chosen:
    """What fewer people found best, on these folds; at the scales of all who take part where these gain."""
    candidate = Candidate.of(best.candidate.functions, search.space)
    setting, known = best.setting, best.trial.states[0]
    best = Chosen(candidate, setting, search.run(candidate, setting, None, known))
    by_all = scales(candidate)
    by_all = replace(by_all, strength=max(by_all.strength, setting.strength))
    if by_all == setting:
        return best
    trial = search.run(candidate, by_all, None, known)
    return Chosen(candidate, by_all, trial) if is_better(trial, best.trial) else best


def _calibrated(
    plan: Plan, bases: Sequence[Functions | None], search: HeldOutSearch, best: Chosen, begin: PopulationState,
    all_took_part: bool, seeds: Sequence[SeedSequence],
) -> Hyperparameters:  # fmt: skip
    """The setting with its calibration, by more folds where a fit takes little time; ``begin``: where they start."""
    part, folds, states, candidate = search.plan, search.folds, best.trial.states, best.candidate
    quick = candidate.prior(best.setting, part.space).n_functions <= MANY_FUNCTIONS and not candidate.has_kernel
    widened = quick and not all_took_part  # to people whom the search left out
    # An answer about several items says as much of its chances as its rows would.
    enough = _ENOUGH_TO_CALIBRATE * float(np.mean(weights_of_rows(plan.answers) / plan.answers.weight))
    if widened:
        part = plan.some(seeds[4], _MOST_TO_CALIBRATE).for_bases(bases)
        folds, candidate = [], Candidate.of(candidate.functions, part.space)
    if quick:  # of those who took part further folds of the same kind
        masks = masks_of_folds(part.answers, seeds[1], enough, keys=part.keys())[len(folds) :]
        folds = folds + [Fold(part, test, search.n_basis) for test in masks]
    if widened:
        states = [folds[0].fit(candidate, best.setting, None, begin)]
    return _by_folds(best.setting, candidate, folds, states, np.random.default_rng(seeds[5]))


def _by_folds(
    setting: Hyperparameters,
    candidate: Candidate,
    folds: Sequence[Fold],
    states: Sequence[PopulationState],
    rng: np.random.Generator,
) -> Hyperparameters:
    """Hyper-parameters with the calibration chosen by leave-one-out predictions.

    Its numbers for newcomers are chosen last, by people who are left out whole.

    ``states`` are fits to the first of the ``folds``; ``rng`` chooses rows where leave-one-out predictions take long.
    """
    parts = []
    for number, fold in enumerate(folds):
        known = number < len(states)
        state = states[number] if known else fold.fit(candidate, setting, fold.begin(folds[0], states[0]))
        parts.append(fold.alone(candidate, setting, state, _MOST_WORK / len(folds), rng))
    alone: HeldOut = HeldOut.together(parts)
    first, likelihood = folds[0], folds[0].people.likelihood
    found = calibration(alone, likelihood)
    left_out, seeds, predicted = list[PeopleLeftOut](), list[np.random.Generator](), list[list[HeldOut]]()
    parts_left_out = quarters(first, rng)
    n_asked = 0.0
    n_parts = 1 if len(states[0].m) > MANY_FUNCTIONS else len(parts_left_out)
    for who in parts_left_out[:n_parts] if first.comparisons.n_users >= FEWEST_PEOPLE else []:
        if n_asked >= _ENOUGH_NEWCOMERS:
            break
        left_out.append(first.leave_out(candidate, setting, states[0], who))
        seeds.append(copy.deepcopy(rng))
        predicted.append(left_out[-1].predict(rng))
        n_asked += predicted[-1][0].weight.sum()
    if n_asked:
        found = replace(found, newcomer_factor=newcomer_factor(found, _by_step(predicted), likelihood))
        shifts = [part.shift(found) for part in left_out]
        at = [_by_step(predicted)]
        for weight in (0.5, 1.0):
            every = zip(left_out, seeds, shifts, strict=True)
            at.append(_by_step([part.predict(copy.deepcopy(seed), shift=weight * d) for part, seed, d in every]))
        found = replace(found, newcomer_weight=newcomer_weight(found, at, likelihood))
    return replace(setting, calibration=found)


def _by_step(parts: list[list[HeldOut]]) -> list[HeldOut]:
    """Predictions of all parts together, step by step."""
    return [HeldOut.together(list(of_step)) for of_step in zip(*parts, strict=True)]
