"""Folds of the answers, on which settings are fitted and judged by the answers held out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons
from predilect.data.splits import shuffled_people
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.likelihoods.probit import threshold_for_tie_share
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.empirical_bayes import effect_spreads_of, tie_spread_of
from predilect.inference.people.engaged import evidences
from predilect.inference.people.layout import People, lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationState, fit_population
from predilect.models.population.pooled import pooled_thresholds, shift_of_newcomers
from predilect.models.population.prior import MANY_FUNCTIONS, Candidate, Hyperparameters
from predilect.models.population.search.calibration import variance_factor
from predilect.models.population.search.held_out import (
    STEPS,
    HeldOut,
    asked_of,
    predict_alone,
    predict_newcomers,
)
from predilect.models.population.search.plan import Plan

_UNSEEN = 0.5  # answers that what may happen, but did not, counts for
_TOLERANCE = 1e-4
_MAX_PASSES = 28
# As in the end: a setting that overfits shows it only after more passes than a trial has.
_TOLERANCE_AS_FITTED, _MAX_PASSES_AS_FITTED = 1e-5, 100
_SITE_TOLERANCE = 1e-3
_WINDOW = 3  # iterations: settings are compared, not kept
_MAX_PASSES_MANY_FUNCTIONS = 25
# A choice must gain so many standard errors of the paired difference: small data should stay near the defaults.
SIGNIFICANCE = 0.5
SMALLEST_GAIN = 1e-4  # nats an answer: a gain that means nothing should not weaken a prior, however sure it is


@dataclass(frozen=True, slots=True)
class Trial:
    """How one setting did.

    Attributes
    ----------
    losses, weights : arrays of float, shape (n,)
        Log loss of each row held out, with the variance factor that suits the setting, and how many answers it stands
        for.
    states : list of PopulationState
        One a fold.
    calibration : Calibration
        The one that is held fixed, or that variance factor.
    partial : tuple of Trial
        The same on the first fold alone, on the first two, and so on; fewer where the others were not worth a fit.
    """

    losses: FloatArray
    weights: FloatArray
    states: list[PopulationState]
    calibration: Calibration
    partial: tuple[Trial, ...] = ()

    @classmethod
    def of(
        cls, predicted: Sequence[Predicted], given: Calibration | None, likelihood: type[PairLikelihood] = Probit,
        states: Sequence[PopulationState] = (), partial: tuple[Trial, ...] = (),
    ) -> Trial:  # fmt: skip
        """From the predictions of the folds, at a given calibration or at the best variance factor."""
        asked: HeldOut = HeldOut.together([fold.asked for fold in predicted])
        delta = float(np.mean([fold.delta for fold in predicted]))
        asked = asked._replace(delta=delta * asked.delta)
        if given is None:
            given = Calibration(variance_factor(asked, likelihood))
        of_one_kind = asked._replace(kind=np.zeros_like(asked.kind))
        losses = -of_one_kind.log_chances(given, likelihood)
        return cls(losses, asked.weight, list(states), given, partial)

    @property
    def converged(self) -> bool:
        """Whether the fits of all folds did."""
        return all(state.report.converged for state in self.states)

    @property
    def loss(self) -> float:
        """Mean log loss, in nats an answer."""
        return float(np.average(self.losses, weights=self.weights))

    @property
    def objective(self) -> float:
        """Mean of J over the fits, in nats."""
        return float(np.mean([state.objective for state in self.states]))

    def loss_on_common_folds(self, best: Trial | None) -> float:
        """Mean log loss, of all folds that another trial has: what it would be if the others differed as the first."""
        if best is None or len(self.partial) >= len(best.partial):
            return self.loss
        return self.loss + best.loss - best.partial[len(self.partial)].loss

    def tie_spread(self, first: float) -> float:
        """Spread of people's own tie thresholds by the evidence, fitted at the ``first``; 0 where none has ties."""
        state = self.states[0]
        tied = state.tie_information > 0.0
        return tie_spread_of(state.log_tie_factor[tied], state.tie_information[tied], first) if tied.any() else 0.0

    def effect_spreads(self, first: tuple[float, ...]) -> tuple[float, ...]:
        """Spreads of people's own effects of covariates by the evidence, after a fit at the ``first``."""
        return effect_spreads_of(self.states[0].own_effects, first)


def is_better(trial: Trial, best: Trial, n_errors: float = SIGNIFICANCE) -> bool:
    """Whether a trial gains enough on another to be believed: so many standard errors."""
    if len(trial.partial) < len(best.partial):
        return False
    gain = best.losses - trial.losses
    weights = trial.weights / trial.weights.sum()
    mean = float(weights @ gain)
    error = float(np.sqrt(weights**2 @ (gain - mean) ** 2))
    return mean > max(n_errors * error, SMALLEST_GAIN)


class Predicted(NamedTuple):
    """Answers that a fold held out, with people's factors of its tie threshold in the place of theirs."""

    asked: HeldOut
    delta: float


class Fold:
    """One split of the answers, fitted again and again under different priors."""

    def __init__(self, plan: Plan, test: BoolArray, n_basis: int | None = None) -> None:
        self.plan, self._held_out, self._n_basis = plan, test, n_basis
        self.comparisons, self.space, self.executor = plan.answers, plan.space, plan.executor
        train = self.comparisons.take(~test)
        self.test = self.comparisons.take(test)
        delta = plan.delta
        if delta is None and self.comparisons.has_ties and not train.has_ties:
            # Nothing is there to learn it from, but without one the ties held out would be impossible.
            delta = threshold_for_tie_share(_UNSEEN / (train.n_answers + 2.0 * _UNSEEN))
        self.people = lay_out(
            train, n_basis=n_basis, likelihood=plan.likelihood, thresholds=pooled_thresholds(train, delta)
        )
        self._with_item_ties: dict[float, People] = {}
        self.delta = delta

    def fit(
        self,
        candidate: Candidate,
        setting: Hyperparameters,
        warm: PopulationState | None,
        population: PopulationState | None = None,
        *,
        as_fitted: bool = False,
    ) -> PopulationState:
        """Fit to the other rows, loosely or as the model will be."""
        prior = candidate.prior(setting, self.space)
        most = _MAX_PASSES_MANY_FUNCTIONS if prior.n_functions > MANY_FUNCTIONS else _MAX_PASSES
        return fit_population(
            self._people(setting),
            prior,
            delta=self.delta,
            start=warm,
            population=population,
            tolerance=_TOLERANCE_AS_FITTED if as_fitted else _TOLERANCE,
            max_iter=_MAX_PASSES_AS_FITTED if as_fitted else most,
            site_tolerance=_SITE_TOLERANCE,
            window=_WINDOW,
            kept=False,
            executor=self.executor,
        )

    def predict(self, candidate: Candidate, setting: Hyperparameters, state: PopulationState) -> Predicted:
        """Margins of the rows held out, at a fit to the others."""
        posterior = state.posterior(self._people(setting), candidate.prior(setting, self.space))
        asked = asked_of(self.test, posterior, self.test.user, 1.0, self.executor, with_kinds=False)
        return Predicted(asked, posterior.people.tie_threshold(state.delta))

    def evidences(
        self, candidate: Candidate, setting: Hyperparameters, state: PopulationState
    ) -> tuple[FloatArray, FloatArray]:
        """Log evidence of each person who answered, and of clicking at random, (n_active,) each.

        At a fit, with the consensus as it is known without the person's own answers.
        """
        posterior = state.posterior(self._people(setting), candidate.prior(setting, self.space))
        return evidences(
            posterior.people, state.sites.copy(), posterior.law, state.C_m, setting.consistency_spread, state.delta,
            self.executor,
        )  # fmt: skip

    def alone(
        self, candidate: Candidate, setting: Hyperparameters, state: PopulationState, most_work: float,
        rng: np.random.Generator,
    ) -> HeldOut:  # fmt: skip
        """Predict rows held out, each from all other answers of its person, at the population of a fit."""
        posterior = state.posterior(self._people(setting), candidate.prior(setting, self.space))
        return predict_alone(
            self.comparisons, self._held_out, posterior, state.delta, most_work=most_work, rng=rng,
            executor=self.executor,
        )  # fmt: skip

    def begin(self, other: Fold, state: PopulationState) -> PopulationState:
        """Where fits begin: a fit to another split, whose sites of the rows in both are near those to be found."""
        sites = Sites.flat(len(self._held_out))
        sites.precision[~other._held_out], sites.linear[~other._held_out] = state.sites.precision, state.sites.linear
        return replace(state, sites=Sites(sites.precision[~self._held_out], sites.linear[~self._held_out]))

    def leave_out(
        self, candidate: Candidate, setting: Hyperparameters, start: PopulationState, who: BoolArray
    ) -> PeopleLeftOut:
        """People left out whole (n_users,), with the population of the others."""
        others = Fold(self.plan, who[self.comparisons.user], self._n_basis)
        state = others.fit(candidate, setting, others.begin(self, start))
        posterior = state.posterior(others._people(setting), candidate.prior(setting, others.space))
        return PeopleLeftOut(self.comparisons, who, posterior, state.delta, self.executor)

    def strangers(
        self, candidate: Candidate, setting: Hyperparameters, start: PopulationState, left_out: BoolArray,
        given: Calibration | None, seed: np.random.SeedSequence,
    ) -> Trial:  # fmt: skip
        """How people ``left_out`` (n_users,) whole are predicted before they answer; same questions for one seed."""
        others = self.leave_out(candidate, setting, start, left_out)
        (asked,) = others.predict(np.random.default_rng(seed), steps=(0,))
        return Trial.of([Predicted(asked, 1.0)], given, self.people.likelihood)

    def _people(self, setting: Hyperparameters) -> People:
        people = self.people
        if setting.item_tie_spread:
            if setting.item_tie_spread not in self._with_item_ties:
                train = self.comparisons.take(~self._held_out)
                found = pooled_thresholds(train, self.delta, setting.item_tie_spread)
                self._with_item_ties = {setting.item_tie_spread: people.with_thresholds(found)}
            people = self._with_item_ties[setting.item_tie_spread]
        if setting.trait_scale and self.plan.traits is not None:
            return replace(people, traits=self.plan.traits)
        return people


_ENOUGH_TO_GIVE_UP = 600.0


def run_trial(
    folds: Sequence[Fold], candidate: Candidate, setting: Hyperparameters, given: Calibration | None,
    warm: Trial | None = None, population: PopulationState | None = None, *, as_fitted: bool = False,
    race: bool = False,
) -> Trial:  # fmt: skip
    """Fit and judge; ``warm`` is a trial on the same folds, ``population`` a fit to other answers.

    In a ``race`` a setting that the first folds have behind ``warm`` is given up, once these hold enough answers: by
    what it would take to win on the first, by twice that on two, and so on. Few such settings win on all.
    """
    states: list[PopulationState] = []
    predicted: list[Predicted] = []
    trials: list[Trial] = []
    for i, fold in enumerate(folds):
        start = None if warm is None else warm.states[i]
        states.append(fold.fit(candidate, setting, start, population, as_fitted=as_fitted))
        predicted.append(fold.predict(candidate, setting, states[i]))
        trials.append(Trial.of(predicted, given, fold.people.likelihood, states, tuple(trials)))
        best = warm.partial[i] if race and warm is not None and i + 1 < len(folds) else None
        enough_held_out = trials[i].weights.sum() >= _ENOUGH_TO_GIVE_UP
        if best is not None and enough_held_out and is_better(best, trials[i], (1 + i) * SIGNIFICANCE):
            break
    return trials[-1]


@dataclass(frozen=True, slots=True)
class PeopleLeftOut:
    """People left out whole, ``who`` (n_users,) of ``comparisons``, with the population of the others."""

    comparisons: Comparisons
    who: BoolArray
    posterior: PopulationPosterior
    delta: float
    executor: ThreadPoolExecutor | None

    def predict(
        self, rng: np.random.Generator, steps: Sequence[int] = STEPS, shift: FloatArray | None = None
    ) -> list[HeldOut]:
        """Predictions of them, step by step, with their mean shifted by ``shift`` (M,)."""
        posterior = replace(self.posterior, newcomer_shift=shift)
        return predict_newcomers(
            self.comparisons, self.who, posterior, self.delta, rng=rng, steps=steps, executor=self.executor
        )

    def shift(self, calibration: Calibration) -> FloatArray:
        """Shift of their mean by the answers of the others, (M,)."""
        posterior = replace(self.posterior, calibration=calibration)
        others = self.comparisons.take(~self.who[self.comparisons.user])
        return shift_of_newcomers(posterior, others, posterior.people.tie_threshold(self.delta))


# One part of the people is left out at a time; some answers of each of fewer people say nothing of a factor.
_PEOPLE_PARTS, FEWEST_PEOPLE = 4, 40


def quarters(fold: Fold, rng: np.random.Generator) -> list[BoolArray]:
    """The people of a fold in random parts, masks (n_users,), that are left out one after the other."""
    answers = fold.comparisons
    part = shuffled_people(answers, rng, fold.plan.keys()) % _PEOPLE_PARTS
    return [part == number for number in range(_PEOPLE_PARTS)]
