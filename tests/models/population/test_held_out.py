"""When one setting is believed to be better than another."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from predilect import Calibration
from predilect.inference.likelihoods.views import Probit
from predilect.models.population.prior import Hyperparameters
from predilect.models.population.search.folds import Predicted, Trial, is_better, run_trial
from predilect.models.population.search.held_out import HeldOut
from predilect.models.population.search.moves import digits, step
from tolerances import EXACT


def trial(losses, weights=None):
    losses = np.asarray(losses, dtype=float)
    return Trial(
        losses, np.ones(len(losses)) if weights is None else np.asarray(weights, dtype=float), [], Calibration()
    )


def gains(mean, n=400):
    """Gains with this mean and standard deviation 1."""
    return mean + np.where(np.arange(n) % 2, 1.0, -1.0)


@pytest.mark.parametrize(("errors", "believed"), [(0.45, False), (0.55, True), (0.01, False), (-1.0, False)])
def test_a_gain_counts_from_half_a_standard_error_of_its_mean(errors, believed):
    gain = gains(errors / math.sqrt(400))
    assert is_better(trial(np.zeros(400)), trial(gain)) == believed


def test_a_row_that_stands_for_many_answers_is_as_unsure_as_one():
    # Of 400 rows one has half of the weight: the error is half of its deviation, and hardly falls with the others.
    weights = np.append(np.full(399, 1.0), 399.0)
    gain = np.append(gains(0.0, 400)[:399], 1.0)
    mean = np.average(gain, weights=weights)
    error = math.sqrt(float(((weights / weights.sum()) ** 2 * (gain - mean) ** 2).sum()))
    for errors, believed in ((0.45, False), (0.55, True)):
        moved = gain - mean + errors * error
        assert is_better(trial(np.zeros(400), weights), trial(moved, weights)) == believed


class FoldOf:
    """A fold on which a setting, which is a number, predicts the margin that it is for every answer held out."""

    people = SimpleNamespace(likelihood=Probit)

    def __init__(self, n_right: int, n_wrong: int) -> None:
        self.outcome = np.repeat(np.array([1, -1], dtype=np.int8), (n_right, n_wrong))
        self.fitted: list[float] = []

    def fit(self, candidate, setting, warm, population, *, as_fitted):
        self.fitted.append(setting)
        return SimpleNamespace(report=SimpleNamespace(converged=True))

    def predict(self, candidate, setting, state):
        n = len(self.outcome)
        kind, ones = np.zeros(n, dtype=np.int8), np.ones(n)
        return Predicted(HeldOut(self.outcome, setting * ones, 0.1 * ones, ones, ones, kind), 0.0)


@pytest.mark.parametrize(("first", "others", "given_up"), [
    ((300, 700), (900, 100), True),  # the first fold has it behind, whatever the others would say
    ((510, 490), (900, 100), False),  # not by half a standard error
    ((900, 100), (300, 700), False),
    ((30, 70), (90, 10), False),  # nor by few answers
])  # fmt: skip
def test_a_setting_that_is_behind_on_the_first_fold_is_not_fitted_to_the_others(first, others, given_up):
    folds = [FoldOf(*first), FoldOf(*others), FoldOf(*others)]
    best = run_trial(folds, None, 0.02, Calibration())
    tried = run_trial(folds, None, 0.05, Calibration(), best, race=True)
    assert [len(fold.fitted) for fold in folds] == ([2, 1, 1] if given_up else [2, 2, 2])
    whole = run_trial(folds, None, 0.05, Calibration(), best)
    assert is_better(tried, best) == (is_better(whole, best) and not given_up)
    if given_up:  # what it is noted with is told by the first fold's difference alone
        assert tried.loss_on_common_folds(best) - best.loss == pytest.approx(
            whole.partial[0].loss - best.partial[0].loss, abs=EXACT
        )
    else:
        assert tried.loss_on_common_folds(best) == whole.loss


@pytest.mark.parametrize("name", ["strength", "variance", "feature_weight", "length_scale", "trait_scale"])
def test_a_setting_reached_by_other_steps_is_known_to_be_the_same(name):
    setting = Hyperparameters(30.0, 1.0, 1.0, 0.3, 1.0, trait_scale=0.1)
    for value in np.random.default_rng(0).uniform(0.1, 0.9, 50):
        start = replace(setting, **{name: float(value) * (50.0 if name == "strength" else 1.0)})
        there = step(start, name, 1, 0.0)
        assert digits(there) != digits(start)
        assert digits(step(there, name, -1, 0.0)) == digits(start)
