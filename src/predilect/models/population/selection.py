"""Choice of the basis and the hyper-parameters: first by evidence, then by held-out answers.

m and Σ are point estimates, so neither the evidence nor J may choose ν₀: the first prefers the weakest prior, the
second the strongest (population.md section 4). Answers held out within people find the best. Scales far off would end
at a weak prior that merely gets rid of them, so the evidence of the rigid population (``evidence.py``) sets them first,
for each basis by itself; held-out answers then choose among the bases, and a short walk follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from predilect._base.types import BoolArray, FloatArray
from predilect.data.comparisons import n_joint
from predilect.data.orders import weights_of_rows
from predilect.data.splits import MOST_PEOPLE, masks_of_folds, thinned, with_moderate_counts
from predilect.inference.gaussian.dense import factorise
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.people.engaged import PRIOR_OF_RATE, with_clicks
from predilect.inference.people.layout import lay_out, with_own
from predilect.models.population.evidence import SHARE_OF_PEOPLE, by_evidence, rigid_hyperparameters
from predilect.models.population.fit import PopulationState
from predilect.models.population.held_out import (
    ENOUGH_TO_CALIBRATE,
    FEWEST_PEOPLE,
    MANY_FUNCTIONS,
    MOST_TO_CALIBRATE,
    RANGES,
    SIGNIFICANCE,
    Fold,
    Trial,
    Walked,
    calibrated,
    digits,
    is_better,
    quarters,
    run_trial,
    step,
)
from predilect.models.population.plan import Plan
from predilect.models.population.pooled import pooled_effects, pooled_thresholds, spread_of_item_ties
from predilect.models.population.prior import (
    Candidate,
    Functions,
    Hyperparameters,
    PopulationPrior,
    are_few,
    least_strength,
    second_moment,
)

_WALK: tuple[Walked, ...] = ("strength", "variance", "feature_weight", "strength")
_WALK_WITH_KERNEL: tuple[Walked, ...] = ("length_scale", "feature_weight", "strength")
_UPWARDS: tuple[Walked, ...] = ("consensus_variance", "feature_weight")
_MAX_TRIALS, _WIDER = 10, 1.25  # EM steps are short: a consensus found so much wider than its prior may want far more
# Few people: the walk starts nearly rigid, where a fit takes few passes, and goes down while held-out answers gain.
_NEARLY_RIGID = 10.0**1.5  # times the least strength, three steps above it
# How many directions are tried, and how many times as many people and rows as usual: fewer do not show them.
_DIRECTIONS, _FOR_DIRECTIONS = (1, 2, 3, 5, 8, 13, 21), 4
_ANSWERS_AN_ENTRY = 5  # of Σ, below which it is not free: with 1.5 a free one was .002 to .018 nats an answer behind
_FEWEST_HELD_OUT = 20.0
_ENOUGH_HELD_OUT = 1500.0  # of fewer a fold by chance decides, on whether people differ in care for one
_ENOUGH_FOR_SCALES = 4000  # rows
_ENOUGH_PEOPLE, _ENOUGH_ROWS = 300, 30_000
_PEOPLE_WITH_KERNEL = 700  # a pass is several times as long
# Bases differ by more than settings do, but with few people the one with the fewest functions looks best.
# A quarter of the crowd, within these: for the evidence of each basis, and for the answers held out that compare them.
_PEOPLE_FOR_EVIDENCE, _PEOPLE_FOR_BASIS = (160, 500), (400, 500)
_ERRORS_OF_BASIS = 1.0  # which a basis of more functions must gain: the one-standard-error rule
_FIRST_TRAIT_SHARE, _FIRST_SPREAD = 0.1, 0.5  # the first over all traits, of how much people differ
_CLEARLY = 2.0  # standard errors; and ten answers of one stranger are one surprise more than ten
# Rates of clickers, where fits with them begin, how many there are, and what the evidence must gain, in nats.
_CLICK_RATES, _FIRST_CLICK_RATE, _ROUNDS_OF_CLICKERS, _WORTH_A_TRIAL = np.geomspace(0.01, 0.9, 40), 0.3, 2, 2.0
_FEW_SURPRISES, _MOST_SURPRISE = 0.5, 50.0  # chance of a person's answers at random over that of the model
_FEWEST_CLICKERS = 0.05  # of fewer the unit takes no notice
_SCALES = ("variance", "consensus_variance")
# Laplace's evidence has people too alike in care. Where they differ in taste by more than this variance, with care
# known, a large spread passes lapses off as care.
_SPREADS, _WIDE_SPREADS, _LITTLE_TASTE, _ERRORS_OF_SPREAD = (0.25, 0.5), (1.0, 2.0), 0.05, 1.0


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
        start = replace(start, trait_scale=_first_trait_scale(start.variance, plan.traits))
    if not free and len(bases) == 1 and (plan.traits is None or plan.traits_must):
        return Selection(start, Candidate.of(bases[0], plan.space), [], some.answers.n_users, 0.0, None)
    # With a basis of functions, items that nobody here saw would only cost time.
    part = some.for_bases(bases)
    n_basis = max((functions.n_functions for functions in bases if functions is not None), default=None)
    few = _are_few_for_covariance(plan)
    masks = masks_of_folds(part.answers, seeds[1], _ENOUGH_HELD_OUT, keys=part.keys())
    search = _Search(part, masks, n_basis, free, few)
    first, evident = search, part  # several bases are compared by fewer people
    n_first, n_evident = (
        int(np.clip(plan.answers.n_users // 4, *of)) for of in (_PEOPLE_FOR_BASIS, _PEOPLE_FOR_EVIDENCE)
    )
    if len(bases) > 1 and some.answers.n_users > n_first:
        fewer = some.some(seeds[2], n_first).for_bases(bases)
        masks = masks_of_folds(fewer.answers, seeds[3], _ENOUGH_HELD_OUT, keys=fewer.keys())
        first = _Search(fewer, masks, n_basis, free, few)
    if len(bases) > 1:
        evident = first.plan.some(seeds[2], n_evident)
    scales = first.scales(evident, start, seeds[6])
    if first.n_held_out < _FEWEST_HELD_OUT:
        setting = scales(Candidate.of(bases[0], first.plan.space))
        candidate = Candidate.of(bases[0], plan.space)
        return Selection(setting, candidate, [], some.answers.n_users, first.n_held_out, None)
    best = first.best_of(bases, scales)
    if first is not search:
        search.trials += first.trials
        best = search.again(best, search.scales(part, start, seeds[6]))
    best = search.walked(best, evident, seeds[7])
    setting = replace(best.setting, calibration=best.trial.calibration)
    begin = best.trial.states[0]
    if None not in bases:  # the offsets are those of the items that took part
        begin = replace(begin, offset=np.zeros(0))
    if "calibration" in free:
        setting = _calibrated(plan, bases, search, replace(best, setting=setting), begin, some is plan, seeds)
    if "strength" in free and search.has_few_people(best.candidate, best.setting):
        # Against the prior of Σ answers weigh by their number: a strength at which a fold's are not learned by heart
        # may let all of them be.
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
    """Whether answers are too few for a free covariance of many items, which would learn them by heart."""
    n_items = plan.answers.n_items
    return n_items > MANY_FUNCTIONS and plan.answers.n_answers < _ANSWERS_AN_ENTRY * n_items * (n_items + 1) / 2


def _calibrated(
    plan: Plan, bases: Sequence[Functions | None], search: _Search, best: _Found, begin: PopulationState,
    all_took_part: bool, seeds: Sequence[SeedSequence],
) -> Hyperparameters:  # fmt: skip
    """The setting with its calibration, by more folds where a fit takes little time; ``begin``: where they start."""
    part, folds, states, candidate = search.plan, search.folds, best.trial.states, best.candidate
    quick = candidate.prior(best.setting, part.space).n_functions <= MANY_FUNCTIONS and not candidate.has_kernel
    widened = quick and not all_took_part  # to people whom the search left out
    # An answer about several items says as much of its chances as its rows would.
    enough = ENOUGH_TO_CALIBRATE * float(np.mean(weights_of_rows(plan.answers) / plan.answers.weight))
    if widened:
        part = plan.some(seeds[4], MOST_TO_CALIBRATE).for_bases(bases)
        folds, candidate = [], Candidate.of(candidate.functions, part.space)
    if quick:  # of those who took part further folds of the same kind
        masks = masks_of_folds(part.answers, seeds[1], enough, keys=part.keys())[len(folds) :]
        folds = folds + [Fold(part, test, search.n_basis) for test in masks]
    if widened:
        states = [folds[0].fit(candidate, best.setting, None, begin)]
    return calibrated(best.setting, candidate, folds, states, np.random.default_rng(seeds[5]))


@dataclass(frozen=True, slots=True)
class _Found:
    candidate: Candidate
    setting: Hyperparameters
    trial: Trial


class _Search:
    """Trials on the same folds, counted and kept."""

    def __init__(
        self, plan: Plan, masks: Sequence[BoolArray], n_basis: int | None, free: Sequence[str], may_hold_shape: bool
    ) -> None:
        self.may_hold_shape = may_hold_shape
        self.plan, self.space, self.n_basis, self.free = plan, plan.space, n_basis, free
        self.folds = [Fold(plan, test, n_basis) for test in masks]
        self.trials: list[dict[str, Any]] = []

    @property
    def n_held_out(self) -> float:
        """Answers held out over the folds."""
        return sum(float(weights_of_rows(fold.test).sum()) for fold in self.folds)

    def run(
        self, candidate: Candidate, setting: Hyperparameters, warm: Trial | None,
        population: PopulationState | None = None, **how: bool,
    ) -> Trial:  # fmt: skip
        """Fit and judge, and note; arguments as of :func:`~predilect.models.population.held_out.run_trial`."""
        trial = run_trial(self.folds, candidate, setting, self.given(setting), warm, population, **how)
        setting = replace(setting, calibration=trial.calibration)
        self.trials.append({"basis": candidate.kind, **setting.to_dict(), "log_loss": trial.loss_beside(warm)})
        if self.plan.watch:
            self.plan.watch("choosing the prior by held-out answers", len(self.trials))
        return trial

    def scales(self, plan: Plan, start: Hyperparameters, seed: SeedSequence) -> Callable[[Candidate], Hyperparameters]:
        """Hyper-parameters of a candidate by the evidence of the people in ``plan``."""
        answers, delta = plan.answers, plan.delta
        gamma, thresholds = pooled_effects(answers, delta, plan.likelihood), pooled_thresholds(answers, delta)
        fewer = thinned(answers, _ENOUGH_FOR_SCALES, random_state=seed, keys=plan.keys())
        laid_out = partial(lay_out, n_basis=self.n_basis, likelihood=plan.likelihood, thresholds=thresholds)
        people, part = (with_own(laid_out(rows), np.zeros(0), np.zeros(0), gamma) for rows in (answers, fewer))
        return lambda candidate: by_evidence(
            people, part, plan.space, candidate, start, self.free, delta, plan.executor
        )

    def best_of(self, bases: Sequence[Functions | None], scales: Callable[[Candidate], Hyperparameters]) -> _Found:
        """The best basis at its scales by the evidence."""
        best: _Found | None = None
        for functions in bases:
            candidate = Candidate.of(functions, self.space)
            setting = scales(candidate)
            if "strength" in self.free and self.may_hold_shape and functions is None:
                setting = replace(setting, directions=0)
            elif "strength" in self.free and self.has_few_people(candidate, setting):
                setting = replace(setting, strength=min(_NEARLY_RIGID * setting.strength, RANGES["strength"][1]))
            found = _Found(candidate, setting, self.run(candidate, setting, None))
            if len(bases) > 1 and not found.trial.converged:  # many functions that have not converged may overfit later
                found = self.stiffened(found)
            # Items that do as well as functions will do better with more people, or more answers.
            if best is None or is_better(found.trial, best.trial, 0.0 if functions is None else _ERRORS_OF_BASIS):
                best = found
        assert best is not None
        return best

    def again(self, best: _Found, scales: Callable[[Candidate], Hyperparameters]) -> _Found:
        """What fewer people found best, on these folds; at the scales of all who take part where these gain."""
        candidate = Candidate.of(best.candidate.functions, self.space)
        setting, known = best.setting, best.trial.states[0]
        best = _Found(candidate, setting, self.run(candidate, setting, None, known))
        by_all = scales(candidate)
        by_all = replace(by_all, strength=max(by_all.strength, setting.strength))
        if by_all == setting:
            return best
        trial = self.run(candidate, by_all, None, known)
        return _Found(candidate, by_all, trial) if is_better(trial, best.trial) else best

    def walked(self, best: _Found, evident: Plan, seed: SeedSequence) -> _Found:
        """From the best basis to the best setting: what differs between people, the walk, and traits."""
        if "tie_spread" in self.free:
            best = self.with_own_thresholds(best)
        if "item_tie_spread" in self.free:
            best = self.with_item_ties(best, spread_of_item_ties(evident.answers))
        before = best.setting
        if before.directions is None:  # where Σ is held, scales are far off before the walk
            best = self.with_clickers(best)
        if "consistency_spread" in self.free:
            best = self.with_consistency(best)
        best = self.with_wider_consensus(self.with_directions(self.walk(best)))
        if best.setting != before or before.directions is not None:  # else both were tried at this very setting
            if "consistency_spread" in self.free and not best.setting.consistency_spread:
                best = self.with_consistency(best)  # before tastes have the scale they want, care may not show
            if not best.setting.click_rate:
                best = self.with_clickers(best)
        best = self.with_own_effects(best)
        if self.plan.traits is not None and not self.plan.traits_must:
            best = self.with_traits(best, self.plan.traits, seed)
        if (
            best.setting.trait_scale
        ):  # what is left of people's differences, once traits explain some, has another shape
            best = self.walk(best, ("trait_scale", "strength", "variance"))
        return best

    def warmed(self, best: _Found, setting: Hyperparameters) -> Trial:
        """The best trial with its first fold fitted at another setting, of which the evidence is asked for a spread."""
        state = self.folds[0].fit(best.candidate, setting, best.trial.states[0])
        return replace(best.trial, states=[state, *best.trial.states[1:]])

    def given(self, setting: Hyperparameters) -> Calibration | None:
        """Calibration that is not to be learned."""
        return None if "calibration" in self.free else setting.calibration

    def walk(self, best: _Found, names: tuple[Walked, ...] = ()) -> _Found:
        """One hyper-parameter at a time, of ``names`` or in the usual order, as long as held-out answers gain."""
        first = best.candidate.prior(best.setting, self.space)
        least = self.least_strength(first)
        # Held-out answers say little of how far people differ, on which intervals hang: that it is less than by the
        # evidence, which knows of no traits and directions, must be clear.
        by_evidence = not names and best.setting.directions is None
        names = names or (_WALK_WITH_KERNEL if best.candidate.has_kernel else _WALK)
        few = self.has_few_people(best.candidate, best.setting)
        tried = {digits(best.setting)}
        most = len(self.trials) - 1 + _MAX_TRIALS
        for name in names:
            functions = best.candidate.functions
            weightless = functions is not None and not functions.has_weight
            # The evidence of w is misled where one choice is several answers, so that there tasks held out decide.
            fixed = name == "feature_weight" and (weightless or self.folds[0].comparisons.task is None)
            # Answers held out by few people mislead the choice of s₀; the evidence, which takes all, does not.
            fixed |= name == "variance" and few
            fixed |= name == "strength" and best.setting.directions is not None
            if name not in (*self.free, "trait_scale") or fixed:
                continue
            for direction in (1,) if name in _UPWARDS else (-1, 1):
                # The evidence wants the wider consensus too, and takes w too small: these need only gain.
                n_errors = 0.0 if name in _UPWARDS else SIGNIFICANCE
                if by_evidence and name == "variance" and direction < 0:
                    n_errors = _CLEARLY
                moved = False
                while len(self.trials) < most:
                    setting = step(best.setting, name, direction, least)
                    if setting is None or digits(setting) in tried:
                        break
                    tried.add(digits(setting))
                    candidate = best.candidate.with_length(setting.length_scale, self.space)
                    trial = self.run(candidate, setting, best.trial, race=True)
                    if not is_better(trial, best.trial, n_errors):
                        break
                    best, moved = _Found(candidate, setting, trial), True
                if moved:
                    break
        return best

    def least_strength(self, prior: PopulationPrior) -> float:
        """Below it a fold may learn its answers by heart."""
        people = self.folds[0].people
        return least_strength(prior, people.n_active, people.n_answers)

    def has_few_people(self, candidate: Candidate, setting: Hyperparameters) -> bool:
        """Whether people are few for what may vary on its own."""
        return are_few(self.folds[0].people.n_active, candidate.prior(setting, self.space))

    def with_directions(self, best: _Found) -> _Found:
        """The same with a few directions in which people differ, where Σ is not free, as long as that gains."""
        if best.setting.directions is None:
            return best
        found, usual = best, SHARE_OF_PEOPLE * best.setting.consensus_variance if "variance" in self.free else 0.0
        for n in _DIRECTIONS:  # which the evidence of a rigid population does not see: from what people usually differ
            setting = replace(found.setting, directions=n, variance=max(found.setting.variance, usual))
            trial = self.run(found.candidate, setting, found.trial, race=True)
            if not is_better(trial, found.trial, 0.0):
                break
            found = replace(found, setting=setting, trial=trial)
        return found if found is best else self.walk(found, ("variance",))

    def stiffened(self, best: _Found) -> _Found:
        """As fitted in the end, and stiffer as long as that gains."""
        best = replace(best, trial=self.run(best.candidate, best.setting, best.trial, as_fitted=True))
        while "strength" in self.free and (setting := step(best.setting, "strength", 1, 0.0)) is not None:
            warm = best.trial if best.trial.converged else None
            trial = self.run(best.candidate, setting, warm, as_fitted=True)
            if not is_better(trial, best.trial, 0.0):
                break
            best = replace(best, setting=setting, trial=trial)
        return best

    def tried(self, best: _Found, setting: Hyperparameters, n_errors: float = SIGNIFICANCE,
              warm: Trial | None = None) -> _Found:  # fmt: skip
        """The same with another setting, if that gains."""
        trial = self.run(best.candidate, setting, warm or best.trial)
        return _Found(best.candidate, setting, trial) if is_better(trial, best.trial, n_errors) else best

    def with_wider_consensus(self, best: _Found) -> _Found:
        """The same with a wider prior of the consensus, if it was found wider and that gains, and what goes with it."""
        state, inverse = best.trial.states[0], best.candidate.prior(best.setting, self.space).precision_of_consensus()
        if second_moment(inverse, state.m, state.C_m) < _WIDER * best.setting.consensus_variance * len(inverse):
            return best
        wider = self.walk(best, ("consensus_variance",))
        return best if wider is best else self.walk(wider)

    def with_own_thresholds(self, best: _Found) -> _Found:
        """The same with a tie threshold for each person, if that gains; their spread by the evidence."""
        trial = self.warmed(best, replace(best.setting, tie_spread=_FIRST_SPREAD))
        spread = trial.tie_spread(_FIRST_SPREAD)
        return self.tried(best, replace(best.setting, tie_spread=spread), warm=trial) if spread else best

    def with_item_ties(self, best: _Found, spread: float) -> _Found:
        """The same with factors of items for the tie threshold, of a ``spread`` by the evidence, if that gains."""
        return self.tried(best, replace(best.setting, item_tie_spread=spread), _ERRORS_OF_SPREAD) if spread else best

    def with_own_effects(self, best: _Found) -> _Found:
        """The same with effects of covariates that differ over people, if that gains; their spread by the evidence."""
        first = (_FIRST_SPREAD,) * self.folds[0].people.patterns.shape[1]
        if not first:
            return best
        trial = self.warmed(best, replace(best.setting, covariate_spread=first))
        setting = replace(best.setting, covariate_spread=trial.effect_spreads(first))
        new = self.tried(best, setting, _ERRORS_OF_SPREAD, trial)
        return new if new.trial.objective > best.trial.objective + len(first) else best  # a nat for each spread

    def rigid(self, best: _Found, setting: Hyperparameters, free: Sequence[str]) -> Hyperparameters:
        """Scales by the evidence of a rigid population, of the first fold."""
        people = with_clicks(best.trial.states[0].people_with_own(self.folds[0].people), setting.click_rate)
        return rigid_hyperparameters(
            people, self.space, setting, free, candidate=best.candidate, delta=self.plan.delta,
            executor=self.plan.executor,
        )  # fmt: skip

    def with_clickers(self, best: _Found) -> _Found:
        """The same with a share of people who click at random, if the evidence wants some and held-out answers gain."""
        if "click_rate" not in self.free:
            return best
        of_model, of_clicks = self.folds[0].evidences(best.candidate, best.setting, best.trial.states[0])
        if np.exp(np.minimum(of_clicks - of_model, _MOST_SURPRISE)).mean() < _FEW_SURPRISES:
            return best  # it would be 1 if answers were those of the model, and is next to nothing if nobody clicks
        found = best
        for consistency in dict.fromkeys((0.0, best.setting.consistency_spread)):
            setting = replace(best.setting, click_rate=_FIRST_CLICK_RATE, consistency_spread=consistency)
            warm = best.trial
            for k in range(_ROUNDS_OF_CLICKERS):
                if k:  # the first, at the scales of a fit without them, mostly finds too few
                    setting = self.rigid(best, setting, [name for name in _SCALES if name in self.free])
                warm = self.warmed(replace(best, trial=warm), setting)
                gain, rate = self.gain_by_clickers(best, warm.states[0])
                if rate < _FEWEST_CLICKERS:
                    return found  # people's consistency would explain more of them away
                setting = replace(setting, click_rate=rate)
            if gain >= _WORTH_A_TRIAL:  # the evidence wants them: that needs no more than to gain
                found = self.tried(found, setting, 0.0, warm)
        return found

    def gain_by_clickers(self, best: _Found, state: PopulationState) -> tuple[float, float]:
        """Gain of the evidence by the best rate of clickers at a fit, with the prior of the rate, and that rate."""
        of_model, of_clicks = self.folds[0].evidences(best.candidate, best.setting, state)
        rates = _CLICK_RATES[:, None]
        gains = np.logaddexp(np.log1p(-rates) + of_model, np.log(rates) + of_clicks) - of_model
        gain = gains.sum(axis=1) + PRIOR_OF_RATE * np.log1p(-_CLICK_RATES)
        return float(gain.max()), float(_CLICK_RATES[gain.argmax()])

    def with_consistency(self, best: _Found) -> _Found:
        """The same with a consistency of each person, of the smallest spread on which none clearly gains."""
        best = self.with_spread(best, best.setting, _SPREADS)
        if best.setting.consistency_spread < _SPREADS[-1]:
            return best
        # Scales found with one consistency for all take some of what people differ in it for taste.
        scaled = self.rigid(best, best.setting, [name for name in _SCALES if name in self.free])
        return best if scaled.variance > _LITTLE_TASTE else self.with_spread(best, scaled, _WIDE_SPREADS)

    def with_spread(self, best: _Found, setting: Hyperparameters, spreads: Sequence[float]) -> _Found:
        """The best, or a setting with the first of the spreads of people's consistency on which none clearly gains."""
        for spread in spreads:
            setting = replace(setting, consistency_spread=spread)
            trial = self.run(best.candidate, setting, best.trial, race=True)
            if is_better(trial, best.trial, _ERRORS_OF_SPREAD):
                best = _Found(best.candidate, setting, trial)
            elif trial.loss_beside(best.trial) > best.trial.loss:  # a larger one would lose more
                break
        return best

    def with_traits(self, best: _Found, traits: FloatArray, seed: SeedSequence) -> _Found:
        """The same with traits of people, if known people or strangers gain, and neither clearly lose.

        Their scale comes from how far people differ, and an EM step.
        """
        prior, Sigma = best.candidate.prior(best.setting, self.space), best.trial.states[0].Sigma
        spread = float(np.vdot(factorise(prior.K).inverse(), Sigma)) / prior.n_functions
        setting = replace(best.setting, trait_scale=_first_trait_scale(spread, traits))
        trial = self.warmed(best, setting)
        state = trial.states[0]
        inverse = prior.precision_of_consensus()
        moment = sum(second_moment(inverse, effect, state.C_B) for effect in state.B.T)
        setting = replace(setting, trait_scale=moment / state.B.size)
        found = _Found(best.candidate, setting, self.run(best.candidate, setting, trial))
        pairs = [(best.trial, found.trial, SIGNIFICANCE)]
        fold, given = self.folds[0], self.given(setting)
        if fold.comparisons.n_users >= FEWEST_PEOPLE:
            left_out = quarters(fold, np.random.default_rng(seed))[0]
            without, with_them = (
                fold.strangers(one.candidate, one.setting, one.trial.states[0], left_out, given, seed)
                for one in (best, found)
            )
            pairs.append((without, with_them, _CLEARLY))
        gain = any(is_better(new, old, errors) for old, new, errors in pairs)
        return found if gain and not any(is_better(old, new, _CLEARLY) for old, new, _ in pairs) else best


def _first_trait_scale(variance: float, traits: FloatArray) -> float:
    return _FIRST_TRAIT_SHARE * variance / max(int(traits.shape[1]), 1)
