"""The calibration error that chance alone makes, against sums over binomial outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.calibration_floor import calibration_floor
from benchmarks.metrics import calibration_bins, calibration_error
from scipy.stats import binom

from predilect.errors import DataError
from tolerances import EXACT, STATISTICAL

N_DRAWS = 4000


def strict(p: float, n: int) -> np.ndarray:
    """Forecasts of left with probability p, without ties."""
    return np.broadcast_to([math.log(p), -np.inf, math.log1p(-p)], (n, 3)).copy()


def in_one_bin(p: float, n: int) -> tuple[float, float, float]:
    """Mean, standard deviation and 95 % point of |Bin(n, p) / n - p|."""
    k = np.arange(n + 1)
    error, chance = np.abs(k / n - p), binom.pmf(k, n, p)
    mean = float(chance @ error)
    order = np.argsort(error)
    upper = float(error[order][np.searchsorted(np.cumsum(chance[order]), 0.95)])
    return mean, math.sqrt(float(chance @ (error - mean) ** 2)), upper


@pytest.mark.parametrize("p", [0.65, 0.93])
def test_one_bin_is_a_binomial(p):
    n = 60
    mean, sd, upper = in_one_bin(p, n)
    floor = calibration_floor(strict(p, n), n_draws=N_DRAWS)
    assert abs(floor.mean - mean) < STATISTICAL * sd / math.sqrt(N_DRAWS)
    assert abs(floor.upper - upper) < 1.5 / n  # the quantile of a few steps of 1 / n


def test_ties_are_drawn_as_often_as_they_are_said_to_be():
    # The likeliest outcome is a tie: it is right with probability .7.
    n, mean, sd, _ = 80, *in_one_bin(0.7, 80)
    log_proba = np.broadcast_to(np.log([0.2, 0.7, 0.1]), (n, 3))
    floor = calibration_floor(log_proba, n_draws=N_DRAWS, random_state=3)
    assert abs(floor.mean - mean) < STATISTICAL * sd / math.sqrt(N_DRAWS)


def test_an_answer_in_several_test_sets_counts_once():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([2.0, 1.0, 2.0], 200)
    once = calibration_floor(np.log(proba), np.arange(200), n_draws=300)
    again = calibration_floor(np.log(np.tile(proba, (3, 1))), np.tile(np.arange(200), 3), n_draws=300)
    assert abs(once.mean - again.mean) < EXACT
    assert abs(once.upper - again.upper) < EXACT
    weighed = calibration_floor(np.log(proba), weight=np.full(200, 5.0), n_draws=300)
    assert abs(once.mean - weighed.mean) < EXACT
    apart = calibration_floor(np.log(np.tile(proba, (3, 1))), n_draws=300)
    assert abs(apart.mean * math.sqrt(3.0) / once.mean - 1.0) < 0.1


def test_forecasts_of_one_answer_share_its_outcome():
    # Two seeds say .8 and .6 of the same answers: the first is right whenever the second is.
    n = 400
    log_proba = np.concatenate([strict(0.8, n), strict(0.6, n)])
    names = np.tile(np.arange(n), 2)
    floor = calibration_floor(log_proba, names, n_draws=N_DRAWS)
    parts = [in_one_bin(p, n) for p in (0.8, 0.6)]
    mean = 0.5 * sum(part[0] for part in parts)  # of a sum of two bins, however they hang together
    sd = 0.5 * sum(part[1] for part in parts)
    assert abs(floor.mean - mean) < STATISTICAL * sd / math.sqrt(N_DRAWS)
    assert floor.upper > calibration_floor(log_proba, n_draws=N_DRAWS).upper


def test_a_calibrated_forecaster_lies_at_the_floor_and_another_above():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    y = 1 - (rng.random(3000)[:, None] > np.cumsum(proba, axis=1)[:, :2]).sum(axis=1)
    floor = calibration_floor(np.log(proba), n_draws=500)
    assert calibration_error(calibration_bins(y, np.log(proba))) < floor.upper
    bold = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    assert calibration_error(calibration_bins(y, np.log(bold))) > 3.0 * calibration_floor(np.log(bold)).upper


def test_certainty_leaves_nothing_to_chance():
    with np.errstate(divide="ignore"):
        floor = calibration_floor(np.log([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), n_draws=10)
    assert floor.mean == floor.upper == 0.0


def test_bad_input():
    with pytest.raises(DataError, match="names of 2 answers"):
        calibration_floor(strict(0.6, 2), [1, 2, 3])
    with pytest.raises(DataError, match="log-probabilities"):
        calibration_floor(np.exp(strict(0.6, 2)), [1, 2])
