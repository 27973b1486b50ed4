"""Choose the hyper-parameters of the population model: first by evidence, then by held-out answers.

m and Σ are point estimates, so neither the evidence nor J may choose ν₀: the first prefers the weakest prior, the
second the strongest (population.md section 4). Answers that were held out within people do find the best. Since a
search from a scale that is far off ends at a weak prior that merely gets rid of it, scales, weight and length-scale
first come from the evidence of the rigid population (:mod:`predilect.inference.rigid`); a short walk by held-out
answers follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons, Vocabulary, k_folds_answers
from predilect.inference.population import PopulationPrior, PopulationState, fit_population
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.inference.rigid import rigid_hyperparameters
from predilect.likelihoods.probit import tilted
from predilect.posteriors.people import lay_out
from predilect.posteriors.population import PopulationPosterior

__all__ = ["DEFAULTS", "Selection", "select_hyperparameters"]

FloatArray = npt.NDArray[np.float64]

DEFAULTS = {"scale": 4.0, "consensus_scale": 4.0, "feature_weight": 0.5}

# The walk: which hyper-parameters, by what factor a step, and how far. What features explain (w, ℓ) is left to the
# evidence: walking on them cost a third of the time and gained nothing on any data set tried.
_STEPS = {"strength": math.sqrt(10.0), "scale": 2.0}
_RANGES = {"strength": (1.0, 1e4), "scale": (0.02, 1e4)}
# With less strength than this, in items, one person can have a direction of Σ to himself, and J keeps rewarding it.
_LEAST_STRENGTH = 0.5
_WALK = ("strength", "scale", "strength")

_N_FOLDS = 5
_MOST_PEOPLE = 1000
_ENOUGH_HELD_OUT = 600.0  # answers; more folds are fitted until so many were held out
_FEWEST_HELD_OUT = 20.0
_HEAVY_VOTER = 200  # answers
_ENOUGH_ANSWERS = 5000
_TOLERANCE = 1e-4
_MAX_PASSES = 60
_WINDOW = 3  # iterations: settings are compared, not kept
_MANY_ITEMS = 300  # above, items x items algebra outweighs the answers: fewer passes and trials
_MAX_PASSES_MANY_ITEMS = 25
# A move must gain so many standard errors of the paired difference: small data should stay near the defaults.
_SIGNIFICANCE = 0.5
_MAX_TRIALS = 10


@dataclass(frozen=True, slots=True)
class Selection:
    """What was searched and what was chosen.

    Attributes
    ----------
    hyperparameters : Hyperparameters
        The choice.
    trials : list of dict
        Each setting tried, with its held-out log loss in nats an answer.
    n_people, n_held_out : int, float
        People that took part, and answers that were held out (over the folds fitted).
    start : PopulationState or None
        The population fitted last at the chosen setting: where the full fit may start.
    """

    hyperparameters: Hyperparameters
    trials: list[dict[str, float]]
    n_people: int
    n_held_out: float
    start: PopulationState | None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for the report."""
        return {
            "chosen": self.hyperparameters.to_dict(),
            "trials": self.trials,
            "n_people": self.n_people,
            "n_held_out": self.n_held_out,
        }


@dataclass(frozen=True, slots=True)
class _Trial:
    losses: FloatArray  # an answer row held out
    weights: FloatArray
    states: list[PopulationState]

    @property
    def loss(self) -> float:
        return float(np.average(self.losses, weights=self.weights))


def select_hyperparameters(
    comparisons: Comparisons,
    space: FeatureSpace,
    start: Hyperparameters,
    free: Sequence[str],
    *,
    delta: float | None = None,
    random_state: int = 0,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Selection:
    """Take scales and shape from the evidence, then walk, one hyper-parameter at a time, while held-out answers gain.

    Parameters
    ----------
    comparisons : Comparisons
        All answers; at most 1 000 people take part, and at most five folds.
    space : FeatureSpace
        Item features.
    start : Hyperparameters
        Where to start; what is not in ``free`` stays.
    free : sequence of str
        Names of hyper-parameters to choose.
    delta : float, optional
        Tie threshold, if it is held fixed.
    random_state : int
        Chooses people and folds.
    executor, progress
        Threads; a callback (trials so far).

    Returns
    -------
    selection : Selection

    Notes
    -----
    population.md section 4. The evidence's choice costs some 40 E steps, the walk about eight warm-started, loose fits,
    each to at most 1 000 people.
    """
    seeds = np.random.SeedSequence(random_state).spawn(2)
    some = _some_people(comparisons, np.random.default_rng(seeds[0]))
    if not free:
        return Selection(start, [], some.n_users, 0.0, None)
    folds = _folds(some, seeds[1])
    n_held_out = sum(float(some.weight[test].sum()) for test in folds)
    start = rigid_hyperparameters(lay_out(some), space, start, free, delta=delta, executor=executor)
    if n_held_out < _FEWEST_HELD_OUT:
        return Selection(start, [], some.n_users, n_held_out, None)
    runs = [_Fold(some, test, space, delta, executor) for test in folds]
    trials: list[dict[str, float]] = []

    def run(setting: Hyperparameters, warm: _Trial | None) -> _Trial:
        results = [fold.run(setting, None if warm is None else warm.states[i]) for i, fold in enumerate(runs)]
        trial = _Trial(
            np.concatenate([r[0] for r in results]), np.concatenate([r[1] for r in results]), [r[2] for r in results]
        )
        trials.append({**setting.to_dict(), "log_loss": trial.loss})
        if progress:
            progress(len(trials))
        return trial

    best_setting, best = start, run(start, None)
    tried = {start}
    walk = _WALK if comparisons.n_items <= _MANY_ITEMS else _WALK[:1]
    for name in walk:
        if name not in free:
            continue
        for direction in (-1, 1):
            moved = False
            while len(trials) < _MAX_TRIALS:
                setting = _step(best_setting, name, direction, _LEAST_STRENGTH * comparisons.n_items)
                if setting is None or setting in tried:
                    break
                tried.add(setting)
                trial = run(setting, best)
                if not _better(trial, best):
                    break
                best_setting, best, moved = setting, trial, True
            if moved:
                break
    return Selection(best_setting, trials, some.n_users, n_held_out, best.states[0])


class _Fold:
    """One split of the answers, fitted again and again under different priors."""

    def __init__(
        self, comparisons: Comparisons, test: npt.NDArray[np.bool_], space: FeatureSpace, delta: float | None,
        executor: ThreadPoolExecutor | None,
    ) -> None:  # fmt: skip
        self.people = lay_out(comparisons.take(~test))
        self.test = comparisons.take(test)
        self.space = space
        self.delta = delta
        self.executor = executor

    def run(
        self, setting: Hyperparameters, warm: PopulationState | None
    ) -> tuple[FloatArray, FloatArray, PopulationState]:
        prior = PopulationPrior.of(setting, self.space)
        many = self.people.n_items > _MANY_ITEMS
        state = fit_population(
            self.people,
            prior,
            delta=self.delta,
            start=warm,
            tolerance=_TOLERANCE,
            max_passes=_MAX_PASSES_MANY_ITEMS if many else _MAX_PASSES,
            n_closed_form=3 if warm is None else 1,
            site_tolerance=1e-4,
            window=_WINDOW,
            executor=self.executor,
        )
        posterior = PopulationPosterior(state.m, state.C_m, state.Sigma, self.people, state.sites)
        test = self.test
        mean, var = posterior.margins(test.user, test.left, test.right, executor=self.executor)
        return -tilted(test.outcome, mean, var, state.delta)[0], test.weight, state


def _some_people(comparisons: Comparisons, rng: np.random.Generator) -> Comparisons:
    """At most 1 000 people with more than one row, renumbered; items stay as they are.

    The very few who hold most of the answers cost most of the time (up to the cube of their number of answers) and say
    little about how people differ, so they are left out where the others are enough.
    """
    counts = np.bincount(comparisons.user, minlength=comparisons.n_users)
    able = np.flatnonzero(counts > 1)
    light = able[counts[able] <= _HEAVY_VOTER]
    if counts[light].sum() >= _ENOUGH_ANSWERS:
        able = light
    if len(able) == comparisons.n_users <= _MOST_PEOPLE:
        return comparisons
    # People with one answer cannot be tested but do train: keep their share.
    share = min(1.0, _MOST_PEOPLE / max(len(able), 1))
    single = np.flatnonzero(counts == 1)
    chosen = [
        rng.permutation(group)[: min(_MOST_PEOPLE, max(1, round(share * len(group))))]
        for group in (able, single)
        if len(group)
    ]
    keep = np.zeros(comparisons.n_users, dtype=bool)
    keep[np.concatenate(chosen)] = True
    rows = comparisons.take(keep[comparisons.user])
    codes, user = np.unique(rows.user, return_inverse=True)
    return replace(rows, users=Vocabulary(rows.users.labels(codes)), user=user.astype(np.int32))


def _folds(comparisons: Comparisons, seed: np.random.SeedSequence) -> list[npt.NDArray[np.bool_]]:
    """Test masks: as many of five folds as it takes to hold out enough answers."""
    fold = k_folds_answers(comparisons, _N_FOLDS, random_state=seed)
    masks: list[npt.NDArray[np.bool_]] = []
    held_out = 0.0
    for k in range(_N_FOLDS):
        mask = fold == k
        if not mask.any() or held_out >= _ENOUGH_HELD_OUT:
            continue
        masks.append(mask)
        held_out += float(comparisons.weight[mask].sum())
    return masks


def _step(setting: Hyperparameters, name: str, direction: int, least_strength: float) -> Hyperparameters | None:
    """The setting one step along, or None at the end of the range."""
    value = getattr(setting, name) * _STEPS[name] ** direction
    low, high = _RANGES[name]
    if name == "strength":
        low = max(low, least_strength)
    return replace(setting, **{name: value}) if low <= value <= high else None


def _better(trial: _Trial, best: _Trial) -> bool:
    gain = best.losses - trial.losses
    weights = trial.weights / trial.weights.sum()
    mean = float(weights @ gain)
    error = float(np.sqrt(weights**2 @ (gain - mean) ** 2))
    return mean > _SIGNIFICANCE * error
