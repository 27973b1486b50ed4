"""The moves of the search for hyper-parameters, in a table: what each proposes, what it must gain, and when it is made.

population.md section 4, "The prior", is in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from predilect._base.types import BoolArray, FloatArray
from predilect.data.orders import weights_of_rows
from predilect.inference.gaussian.dense import factorise
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.people.engaged import rate_of_clickers, with_clicks
from predilect.models.population.fit import PopulationState
from predilect.models.population.pooled import spread_of_item_ties
from predilect.models.population.prior import (
    SHARE_OF_PEOPLE,
    Candidate,
    Hyperparameters,
    are_few,
    least_strength,
    second_moment,
)
from predilect.models.population.search.climb import Proposals, climb, one_way
from predilect.models.population.search.evidence import rigid_hyperparameters
from predilect.models.population.search.folds import (
    FEWEST_PEOPLE,
    SIGNIFICANCE,
    Fold,
    Trial,
    is_better,
    quarters,
    run_trial,
)
from predilect.models.population.search.plan import Plan

# Standard errors of the paired difference that a move must gain, or any gain that means something.
ANY, HALF, ONE, CLEARLY = 0.0, SIGNIFICANCE, 1.0, 2.0  # ten answers of one stranger are one surprise more than ten
MAX_TRIALS, _WIDER = 10, 1.25  # EM steps are short: a consensus found so much wider than its prior may want far more
_DIRECTIONS = (1, 2, 3, 5, 8, 13, 21)  # how many are tried
_FIRST_TRAIT_SHARE, _FIRST_SPREAD = 0.1, 0.5  # the first over all traits, of how much people differ
_FIRST_CLICK_RATE, _ROUNDS_OF_CLICKERS = 0.3, 3  # the rate at which fits with clickers begin, and how many there are
_FEW_SURPRISES, _MOST_SURPRISE = 0.5, 50.0  # chance of a person's answers at random over that of the model
_FEWEST_CLICKERS = 0.05  # of fewer the unit takes no notice
# Laplace's evidence has people too alike in care. Where they differ in taste by more than this variance, with care
# known, a large spread passes lapses off as care.
SPREADS, WIDE_SPREADS, _LITTLE_TASTE = (0.25, 0.5), (1.0, 2.0), 0.05

Walked = Literal["strength", "variance", "consensus_variance", "length_scale", "feature_weight", "trait_scale"]


class Stride(NamedTuple):
    """How a hyper-parameter is walked: by what factor a step (w: of its odds), and how far."""

    factor: float
    low: float
    high: float
    # What the evidence takes too small: it wants the wider consensus, and misjudges w where one choice is several
    # answers. These go upwards only, and need only gain.
    upwards: bool = False


STRIDES: dict[Walked, Stride] = {
    "strength": Stride(math.sqrt(10.0), 1.0, 1e4),
    "variance": Stride(2.0, 0.02, 1e4),
    "consensus_variance": Stride(4.0, 1e-3, 1e4, upwards=True),
    "length_scale": Stride(2.0, 1e-3, 1e3),
    "feature_weight": Stride(8.0, 0.0, 0.999, upwards=True),
    "trait_scale": Stride(4.0, 1e-6, 1e4),
}
_USUAL: tuple[Walked, ...] = ("strength", "variance", "feature_weight", "strength")
_WITH_KERNEL: tuple[Walked, ...] = ("length_scale", "feature_weight", "strength")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A basis, a setting, and how they did."""

    candidate: Candidate
    setting: Hyperparameters
    trial: Trial


@dataclass(frozen=True, slots=True)
class Proposal:
    """A setting to try."""

    setting: Hyperparameters
    warm: Trial | None = None  # where its fits begin; the best trial unless given
    race: bool = False  # given up once the first folds are clearly behind
    needs: float | None = None  # standard errors, in the place of those of the move


class HeldOutSearch:
    """Trials on the same folds, counted and kept, and the best of them."""

    def __init__(
        self, plan: Plan, masks: Sequence[BoolArray], n_basis: int | None, free: Sequence[str], seed: SeedSequence
    ) -> None:
        self.plan, self.space, self.n_basis, self.free, self.seed = plan, plan.space, n_basis, free, seed
        self.evident = plan  # whose evidence is asked
        self.folds = [Fold(plan, test, n_basis) for test in masks]
        self.trials: list[dict[str, Any]] = []
        self.best: Chosen
        self.latest: Trial
        self._made: dict[str, Hyperparameters] = {}  # the setting at which a move was made last

    @property
    def n_held_out(self) -> float:
        """Answers held out over the folds."""
        return sum(float(weights_of_rows(fold.test).sum()) for fold in self.folds)

    def run(
        self, candidate: Candidate, setting: Hyperparameters, warm: Trial | None,
        population: PopulationState | None = None, **how: bool,
    ) -> Trial:  # fmt: skip
        """Fit and judge, and note; arguments as of :func:`~predilect.models.population.search.folds.run_trial`."""
        trial = run_trial(self.folds, candidate, setting, self.given(setting), warm, population, **how)
        setting = replace(setting, calibration=trial.calibration)
        self.trials.append({"basis": candidate.kind, **setting.to_dict(), "log_loss": trial.loss_on_common_folds(warm)})
        if self.plan.watch:
            self.plan.watch("choosing the prior by held-out answers", len(self.trials))
        return trial

    def make(self, moves: Sequence[Move]) -> None:
        """Moves one after the other, none of them twice at the same setting."""
        for move in moves:
            before = self.best
            if self._made.get(move.name) == before.setting or not move.when(self):
                continue
            self._made[move.name] = before.setting
            climb(move.proposals(self), partial(self._gains, move))
            if self.best is not before:
                self.make(move.then)

    def _gains(self, move: Move, proposal: Proposal) -> bool:
        best = self.best
        candidate = best.candidate.with_length(proposal.setting.length_scale, self.space)
        self.latest = self.run(candidate, proposal.setting, proposal.warm or best.trial, race=proposal.race)
        new = Chosen(candidate, proposal.setting, self.latest)
        gained = move.judge(self, best, new, move.needs if proposal.needs is None else proposal.needs)
        if gained:
            self.best = new
        return gained

    def warmed(self, setting: Hyperparameters, trial: Trial | None = None) -> Trial:
        """A trial, or the best, with its first fold fitted at another setting, whose evidence is asked for a spread."""
        trial = trial or self.best.trial
        state = self.folds[0].fit(self.best.candidate, setting, trial.states[0])
        return replace(trial, states=[state, *trial.states[1:]])

    def rigid(self, best: Chosen, setting: Hyperparameters) -> Hyperparameters:
        """Scales by the evidence of a rigid population, of the first fold."""
        people = with_clicks(best.trial.states[0].people_with_own(self.folds[0].people), setting.click_rate)
        free = [name for name in ("variance", "consensus_variance") if name in self.free]
        return rigid_hyperparameters(
            people, self.space, setting, free, candidate=best.candidate, delta=self.plan.delta,
            executor=self.plan.executor,
        )  # fmt: skip

    def given(self, setting: Hyperparameters) -> Calibration | None:
        """Calibration that is not to be learned."""
        return None if "calibration" in self.free else setting.calibration

    def has_few_people(self, candidate: Candidate, setting: Hyperparameters) -> bool:
        """Whether people are few for what may vary on its own."""
        return are_few(self.folds[0].people.n_active, candidate.prior(setting, self.space))


@dataclass(frozen=True, slots=True)
class Move:
    """A row of the table."""

    name: str
    proposals: Callable[[HeldOutSearch], Proposals[Proposal]]
    needs: float = HALF  # standard errors
    when: Callable[[HeldOutSearch], bool] = lambda search: True
    then: tuple[Move, ...] = ()  # moves that follow where it gained
    judge: Callable[[HeldOutSearch, Chosen, Chosen, float], bool] = lambda search, old, new, needs: is_better(
        new.trial, old.trial, needs
    )


# The walk.


def digits(setting: Hyperparameters) -> tuple[str, ...]:
    """What steps change, to nine digits, by which a setting that was reached by other steps is known to be the same."""
    return tuple(f"{getattr(setting, name):.9g}" for name in STRIDES)


def step(setting: Hyperparameters, name: Walked, direction: int, least: float) -> Hyperparameters | None:
    """The setting one step along, or None at the end of the range; ``least`` is of the strength."""
    stride = STRIDES[name]
    value, factor = getattr(setting, name), stride.factor**direction
    value = value * factor / (1.0 - value + value * factor) if name == "feature_weight" else value * factor
    low = max(stride.low, least) if name == "strength" else stride.low
    return replace(setting, **{name: value}) if low <= value <= stride.high else None


def _is_walked(search: HeldOutSearch, name: Walked, few: bool) -> bool:
    if name not in (*search.free, "trait_scale"):
        return False
    if name == "feature_weight":
        # The evidence of w is misled where one choice is several answers, so that there tasks held out decide.
        functions = search.best.candidate.functions
        return (functions is None or functions.has_weight) and search.folds[0].comparisons.task is not None
    # Answers held out by few people mislead the choice of s₀; the evidence, which takes all, does not.
    return not (name == "variance" and few) and not (name == "strength" and search.best.setting.directions is not None)


def walk(*names: Walked) -> Callable[[HeldOutSearch], Proposals[Proposal]]:
    """One hyper-parameter at a time, of ``names`` or in the usual order, as long as held-out answers gain."""

    def proposals(search: HeldOutSearch) -> Proposals[Proposal]:
        start, people = search.best, search.folds[0].people
        prior = start.candidate.prior(start.setting, search.space)
        # With less strength a fold may overfit.
        least, few = least_strength(prior, people.n_active, people.n_answers), are_few(people.n_active, prior)
        # Held-out answers say little of how far people differ, on which intervals hang: that it is less than by the
        # evidence, which knows of no traits and directions, must be clear.
        by_evidence = not names and start.setting.directions is None
        tried, most = {digits(start.setting)}, len(search.trials) - 1 + MAX_TRIALS

        def further(name: Walked, direction: int) -> Proposal | None:
            setting = step(search.best.setting, name, direction, least)
            if len(search.trials) >= most or setting is None or digits(setting) in tried:
                return None
            tried.add(digits(setting))
            clearly = by_evidence and name == "variance" and direction < 0
            return Proposal(setting, race=True, needs=ANY if STRIDES[name].upwards else CLEARLY if clearly else None)

        for name in names or (_WITH_KERNEL if start.candidate.has_kernel else _USUAL):
            if _is_walked(search, name, few):
                yield from one_way((1,) if STRIDES[name].upwards else (-1, 1), partial(further, name))

    return proposals


def _wants_wider_consensus(search: HeldOutSearch) -> bool:
    best = search.best
    state, inverse = best.trial.states[0], best.candidate.prior(best.setting, search.space).precision_of_consensus()
    return second_moment(inverse, state.m, state.C_m) >= _WIDER * best.setting.consensus_variance * len(inverse)


def directions(search: HeldOutSearch) -> Proposals[Proposal]:
    """A few directions in which people differ, where Σ is not free, as long as that gains."""
    # The evidence of a rigid population does not see them: from what people usually differ.
    usual = SHARE_OF_PEOPLE * search.best.setting.consensus_variance if "variance" in search.free else 0.0
    for n in _DIRECTIONS:
        setting = search.best.setting
        if not (yield Proposal(replace(setting, directions=n, variance=max(setting.variance, usual)), race=True)):
            return


# What people have of their own: the spread of each is that of the evidence.


def own_thresholds(search: HeldOutSearch) -> Proposals[Proposal]:
    """A tie threshold for each person."""
    setting = search.best.setting
    trial = search.warmed(replace(setting, tie_spread=_FIRST_SPREAD))
    if spread := trial.tie_spread(_FIRST_SPREAD):
        yield Proposal(replace(setting, tie_spread=spread), trial)


def item_ties(search: HeldOutSearch) -> Proposals[Proposal]:
    """Factors of items for the tie threshold."""
    if spread := spread_of_item_ties(search.evident.answers):
        yield Proposal(replace(search.best.setting, item_tie_spread=spread))


def own_effects(search: HeldOutSearch) -> Proposals[Proposal]:
    """Effects of covariates that differ over people."""
    setting = search.best.setting
    first = (_FIRST_SPREAD,) * search.folds[0].people.patterns.shape[1]
    trial = search.warmed(replace(setting, covariate_spread=first))
    yield Proposal(replace(setting, covariate_spread=trial.effect_spreads(first)), trial)


def _better_by_evidence_too(search: HeldOutSearch, old: Chosen, new: Chosen, needs: float) -> bool:
    nats = len(new.setting.covariate_spread)  # one for each spread
    return is_better(new.trial, old.trial, needs) and new.trial.objective > old.trial.objective + nats


def consistency(search: HeldOutSearch) -> Proposals[Proposal]:
    """A consistency of each person, of the smallest spread on which none clearly gains."""
    yield from _spreads(search, search.best.setting, SPREADS)
    if search.best.setting.consistency_spread == SPREADS[-1]:
        # Scales found with one consistency for all take some of what people differ in it for taste.
        scaled = search.rigid(search.best, search.best.setting)
        if scaled.variance <= _LITTLE_TASTE:
            yield from _spreads(search, scaled, WIDE_SPREADS)


def _spreads(search: HeldOutSearch, setting: Hyperparameters, spreads: Sequence[float]) -> Proposals[Proposal]:
    for spread in spreads:
        gained = yield Proposal(replace(setting, consistency_spread=spread), race=True)
        best = search.best.trial
        if not gained and search.latest.loss_on_common_folds(best) > best.loss:  # a larger one would lose more
            return


def clickers(search: HeldOutSearch) -> Proposals[Proposal]:
    """A share of people who click at random, if the evidence wants some."""
    start, fold = search.best, search.folds[0]
    of_model, of_clicks = fold.evidences(start.candidate, start.setting, start.trial.states[0])
    if np.exp(np.minimum(of_clicks - of_model, _MOST_SURPRISE)).mean() < _FEW_SURPRISES:
        return  # it would be 1 if answers were those of the model, and is next to nothing if nobody clicks
    for spread in dict.fromkeys((0.0, start.setting.consistency_spread)):
        setting = replace(start.setting, click_rate=_FIRST_CLICK_RATE, consistency_spread=spread)
        warm = start.trial
        for k in range(_ROUNDS_OF_CLICKERS):
            if k:  # the first, at the scales of a fit without them, mostly finds too few
                setting = search.rigid(start, setting)
            warm = search.warmed(setting, warm)
            gain, rate = rate_of_clickers(*fold.evidences(start.candidate, setting, warm.states[0]))
            if rate < _FEWEST_CLICKERS:
                return  # people's consistency would explain more of them away
            setting = replace(setting, click_rate=rate)
        if gain > 0.0:
            yield Proposal(setting, warm)


def _no_worse(search: HeldOutSearch, old: Chosen, new: Chosen, needs: float) -> bool:
    """Whether held-out answers do not speak against what the evidence wants: few of them are of who clicks."""
    return len(new.trial.partial) >= len(old.trial.partial) and not is_better(old.trial, new.trial, needs)


# Traits.


def first_trait_scale(variance: float, traits: FloatArray) -> float:
    """The scale of traits, where people differ by a variance, from which its EM step is made."""
    return _FIRST_TRAIT_SHARE * variance / max(int(traits.shape[1]), 1)


def of_traits(search: HeldOutSearch) -> Proposals[Proposal]:
    """Traits of people; their scale comes from how far people differ, and an EM step."""
    best, traits = search.best, search.plan.traits
    assert traits is not None
    prior, Sigma = best.candidate.prior(best.setting, search.space), best.trial.states[0].Sigma
    spread = float(np.vdot(factorise(prior.K).inverse(), Sigma)) / prior.n_functions
    trial = search.warmed(replace(best.setting, trait_scale=first_trait_scale(spread, traits)))
    state, inverse = trial.states[0], prior.precision_of_consensus()
    moment = sum(second_moment(inverse, effect, state.C_B) for effect in state.B.T)
    yield Proposal(replace(best.setting, trait_scale=moment / state.B.size), trial)


def _better_for_strangers_too(search: HeldOutSearch, old: Chosen, new: Chosen, needs: float) -> bool:
    """Whether known people or strangers gain, and neither clearly lose."""
    pairs = [(old.trial, new.trial, needs)]
    fold, seed = search.folds[0], search.seed
    if fold.comparisons.n_users >= FEWEST_PEOPLE:
        left_out = quarters(fold, np.random.default_rng(seed))[0]
        without, with_them = (
            fold.strangers(one.candidate, one.setting, one.trial.states[0], left_out, search.given(new.setting), seed)
            for one in (old, new)
        )
        pairs.append((without, with_them, CLEARLY))
    gain = any(is_better(after, before, errors) for before, after, errors in pairs)
    return gain and not any(is_better(before, after, CLEARLY) for before, after, _ in pairs)


def _may_click(search: HeldOutSearch) -> bool:
    return "click_rate" in search.free and not search.best.setting.click_rate


_CONSISTENCY = Move(
    "consistency", consistency, ONE,
    lambda search: "consistency_spread" in search.free and not search.best.setting.consistency_spread,
)  # fmt: skip
_WALK = Move("walk", walk())
MOVES: tuple[Move, ...] = (
    Move("thresholds of people", own_thresholds, when=lambda search: "tie_spread" in search.free),
    Move("thresholds of items", item_ties, ONE, lambda search: "item_tie_spread" in search.free),
    # Where Σ is held, scales are far off before the walk.
    Move("clickers", clickers, CLEARLY, lambda search: _may_click(search) and search.best.setting.directions is None,
         judge=_no_worse),
    _CONSISTENCY,
    _WALK,
    Move("directions", directions, ANY, lambda search: search.best.setting.directions is not None,
         then=(Move("variance", walk("variance")),)),
    Move("wider consensus", walk("consensus_variance"), when=_wants_wider_consensus, then=(_WALK,)),
    _CONSISTENCY,  # before tastes have the scale they want, care may not show
    Move("clickers", clickers, CLEARLY, _may_click, judge=_no_worse),
    Move("effects of people", own_effects, ONE, lambda search: search.folds[0].people.patterns.shape[1] > 0,
         judge=_better_by_evidence_too),
    Move("traits", of_traits, when=lambda search: search.plan.traits is not None and not search.plan.traits_must,
         judge=_better_for_strangers_too),
    # What is left of people's differences, once traits explain some, has another shape.
    Move("walk with traits", walk("trait_scale", "strength", "variance"),
         when=lambda search: search.best.setting.trait_scale > 0.0),
)  # fmt: skip
