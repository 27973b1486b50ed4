"""When one setting is believed to be better than another."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predilect import Calibration
from predilect.models.population.held_out import Trial, is_better


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
