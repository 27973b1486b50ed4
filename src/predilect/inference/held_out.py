"""Answers held out within people: what hyper-parameters, bases and traits are chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons, Vocabulary, k_folds_answers
from predilect.inference.alone import Alone, predict_alone
from predilect.inference.calibration import Calibration, variance_factor
from predilect.inference.candidate import Candidate
from predilect.inference.population import PopulationState, fit_population
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.likelihoods.probit import threshold_for_tie_share, tilted
from predilect.posteriors.people import People, lay_out

__all__ = ["Fold", "Trial", "is_better", "masks_of_folds", "some_people", "with_items_of", "with_moderate_counts"]

FloatArray = npt.NDArray[np.float64]

_N_FOLDS = 5
MOST_PEOPLE = 1000
_ENOUGH_HELD_OUT = 600.0  # answers; more folds are fitted until so many were held out
_HEAVY_VOTER = 200  # answers
_ENOUGH_ANSWERS = 5000
_MOST_TYPICAL = 5.0  # rows
_UNSEEN = 0.5  # answers that what may happen, but did not, counts for
_TOLERANCE = 1e-4
_MAX_PASSES = 28
# As in the end: a setting that learns by heart shows it only after more passes than a trial has.
_TOLERANCE_AS_FITTED, _MAX_PASSES_AS_FITTED = 1e-5, 100
_WINDOW = 3  # iterations: settings are compared, not kept
MANY_FUNCTIONS = 300  # above, M x M algebra outweighs the answers: fewer passes and trials
_MAX_PASSES_MANY_FUNCTIONS = 25
# A choice must gain so many standard errors of the paired difference: small data should stay near the defaults.
_SIGNIFICANCE = 0.5
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
    factor : float
        That variance factor.
    """

    losses: FloatArray
    weights: FloatArray
    states: list[PopulationState]
    factor: float

    @classmethod
    def of(cls, runs: Sequence[Predicted], given: Calibration | None) -> Trial:
        """From the predictions of the folds, at a given calibration or at the best variance factor."""
        outcome, mean, var, weight, delta = _put_together(runs)
        if given is None:
            given = Calibration(variance_factor(outcome, mean, var, weight, delta))
        threshold = given.threshold_factor * delta
        losses = -given.log_chances(lambda v: tilted(outcome, mean, v, threshold)[0], var)
        return cls(losses, weight, [run.state for run in runs], given.factor)

    @property
    def converged(self) -> bool:
        """Whether the fits of all folds did."""
        return all(state.report.converged for state in self.states)

    @property
    def loss(self) -> float:
        """Mean log loss, in nats an answer."""
        return float(np.average(self.losses, weights=self.weights))


def is_better(trial: Trial, best: Trial) -> bool:
    """Whether a trial gains enough on another to be believed."""
    gain = best.losses - trial.losses
    weights = trial.weights / trial.weights.sum()
    mean = float(weights @ gain)
    error = float(np.sqrt(weights**2 @ (gain - mean) ** 2))
    return mean > max(_SIGNIFICANCE * error, SMALLEST_GAIN)


def _put_together(runs: Sequence[Predicted]) -> tuple[Any, ...]:
    """Outcome, mean, variance, weight and tie threshold of the rows of all folds."""
    outcome, mean, var, weight, tie_factor = (
        np.concatenate([getattr(run, name) for run in runs])
        for name in ("outcome", "mean", "var", "weight", "tie_factor")
    )
    delta = float(np.mean([run.state.delta for run in runs])) * tie_factor
    return outcome, mean, var, weight, delta


class Predicted(NamedTuple):
    """Margins of the answers that a fold held out, and the fit."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    var: FloatArray
    weight: FloatArray
    tie_factor: FloatArray
    state: PopulationState


class Fold:
    """One split of the answers, fitted again and again under different priors."""

    def __init__(
        self, comparisons: Comparisons, test: npt.NDArray[np.bool_], space: FeatureSpace, traits: FloatArray | None,
        delta: float | None, n_basis: int | None, executor: ThreadPoolExecutor | None,
    ) -> None:  # fmt: skip
        self.comparisons, self.held_out = comparisons, test
        train = comparisons.take(~test)
        self.people = lay_out(train, n_basis=n_basis)
        self.traits = traits
        self.test = comparisons.take(test)
        self.space = space
        if delta is None and comparisons.has_ties and not train.has_ties:
            # Nothing is there to learn it from, but without one the ties held out would be impossible.
            delta = threshold_for_tie_share(_UNSEEN / (train.n_answers + 2.0 * _UNSEEN))
        self.delta = delta
        self.executor = executor

    def run(
        self,
        candidate: Candidate,
        setting: Hyperparameters,
        warm: PopulationState | None,
        population: PopulationState | None = None,
        *,
        as_fitted: bool = False,
    ) -> Predicted:
        """Fit, loosely or as the model will be, and predict the rows held out."""
        prior = candidate.prior(setting, self.space)
        people = self._people(setting)
        most = _MAX_PASSES_MANY_FUNCTIONS if prior.n_functions > MANY_FUNCTIONS else _MAX_PASSES
        state = fit_population(
            people,
            prior,
            delta=self.delta,
            start=warm,
            population=population,
            tolerance=_TOLERANCE_AS_FITTED if as_fitted else _TOLERANCE,
            max_passes=_MAX_PASSES_AS_FITTED if as_fitted else most,
            n_closed_form=3 if warm is None and population is None else 1,
            site_tolerance=1e-4,
            window=_WINDOW,
            executor=self.executor,
        )
        test = self.test
        posterior = state.posterior(people, prior)
        mean, var = posterior.margins(test.user, test.left, test.right, executor=self.executor)
        return Predicted(test.outcome, mean, var, test.weight, posterior.tie_factors(test.user), state)

    def alone(
        self, candidate: Candidate, setting: Hyperparameters, state: PopulationState, most_work: float,
        rng: np.random.Generator,
    ) -> Alone:  # fmt: skip
        """Predict rows held out, each from all other answers of its person, at the population of a fit."""
        posterior = state.posterior(self._people(setting), candidate.prior(setting, self.space))
        return predict_alone(
            self.comparisons, self.held_out, posterior, state.delta, most_work=most_work, rng=rng,
            executor=self.executor,
        )  # fmt: skip

    def _people(self, setting: Hyperparameters) -> People:
        if setting.trait_scale and self.traits is not None:
            return replace(self.people, traits=self.traits)
        return self.people


def some_people(
    comparisons: Comparisons, rng: np.random.Generator, most: int = MOST_PEOPLE
) -> tuple[Comparisons, npt.NDArray[np.int64]]:
    """At most so many people with more than one row, renumbered, and their old codes; items stay as they are.

    The very few who hold most of the answers cost most of the time (up to the cube of their number of answers) and say
    little about how people differ, so they are left out where the others are enough.
    """
    counts = np.bincount(comparisons.user, minlength=comparisons.n_users)
    able = np.flatnonzero(counts > 1)
    light = able[counts[able] <= _HEAVY_VOTER]
    if counts[light].sum() >= _ENOUGH_ANSWERS:
        able = light
    if len(able) == comparisons.n_users <= most:
        return comparisons, np.arange(comparisons.n_users)
    # People with one answer cannot be tested but do train: keep their share.
    share = min(1.0, most / max(len(able), 1))
    single = np.flatnonzero(counts == 1)
    chosen = [
        rng.permutation(group)[: min(most, max(1, round(share * len(group))))] for group in (able, single) if len(group)
    ]
    keep = np.zeros(comparisons.n_users, dtype=bool)
    keep[np.concatenate(chosen)] = True
    rows = comparisons.take(keep[comparisons.user])
    codes, user = np.unique(rows.user, return_inverse=True)
    users = Vocabulary(rows.users.labels(codes))
    return replace(rows, users=users, user=user.astype(np.int32)), codes.astype(np.int64)


def with_moderate_counts(comparisons: Comparisons) -> Comparisons:
    """The same answers, no row of which counts more than five typical rows (the median's).

    All copies of a row are held out together, since a model that saw some of them would know the others by heart: they
    are one surprise or none, however many they are. One person who repeats an answer 10⁴ times would otherwise decide
    how sure everybody's chances may be.
    """
    if not comparisons.n_rows:
        return comparisons
    most = _MOST_TYPICAL * float(np.median(comparisons.weight))
    if comparisons.weight.max() <= most:
        return comparisons
    return replace(comparisons, weight=np.minimum(comparisons.weight, most))


def with_items_of(comparisons: Comparisons, space: FeatureSpace) -> tuple[Comparisons, FeatureSpace]:
    """Only the items that occur, and where they lie."""
    codes, position = np.unique(np.concatenate([comparisons.left, comparisons.right]), return_inverse=True)
    if len(codes) == comparisons.n_items:
        return comparisons, space
    left, right = position[: comparisons.n_rows], position[comparisons.n_rows :]
    items = Vocabulary(comparisons.items.labels(codes))
    rows = replace(comparisons, items=items, left=left.astype(np.int32), right=right.astype(np.int32))
    return rows, FeatureSpace(space.matrix[codes], space.known[codes])


def masks_of_folds(
    comparisons: Comparisons, seed: np.random.SeedSequence, enough: float = _ENOUGH_HELD_OUT
) -> list[npt.NDArray[np.bool_]]:
    """As many of five folds as it takes to hold out enough answers: which rows each holds out.

    With more, the first ones are the same.
    """
    fold = k_folds_answers(comparisons, _N_FOLDS, random_state=seed)
    masks: list[npt.NDArray[np.bool_]] = []
    held_out = 0.0
    for k in range(_N_FOLDS):
        mask = fold == k
        if not mask.any() or held_out >= enough:
            continue
        masks.append(mask)
        held_out += float(comparisons.weight[mask].sum())
    return masks
