"""Measures of predictions against hand-made cases and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.metrics import (
    brier,
    calibration_bins,
    calibration_error,
    kendall_tau_per_person,
    kendall_tau_pooled,
    strict_accuracy,
    tie_share_log_proba,
)
from scipy.stats import kendalltau
from sklearn import metrics as sk

from predilect.errors import DataError
from predilect.evaluation import accuracy, answer_losses, log_loss
from predilect.evaluation.metrics import reliability
from tolerances import EXACT

OUTCOME = np.array([1, 0, -1, 1])
PROBA = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])
NAMES = np.array(["right", "tie", "left"])  # of outcomes -1, 0, 1


def random_case(seed: int, n: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, n), rng.dirichlet(np.ones(3), n), rng.integers(1, 4, n).astype(float)


def test_accuracy_counts_the_likeliest_of_three_and_shares_equal_ones() -> None:
    assert accuracy(OUTCOME, np.log(PROBA)) == 0.5
    assert accuracy(OUTCOME, np.log(PROBA), [1, 1, 2, 1]) == 0.6
    half = np.log(np.full((2, 3), 1 / 3))
    assert abs(accuracy([1, -1], half) - 1 / 3) < EXACT


def test_strict_accuracy_leaves_ties_out() -> None:
    # Row 4 is a fair coin between left and right.
    assert abs(strict_accuracy(OUTCOME, np.log(PROBA)) - 2.5 / 3) < EXACT
    assert math.isnan(strict_accuracy([0], np.log([[0.2, 0.6, 0.2]])))


def test_measures_agree_with_scikit_learn() -> None:
    y, p, w = random_case(1)
    labels, names = ["left", "right", "tie"], NAMES[y + 1]
    columns = p[:, [0, 2, 1]]
    assert abs(log_loss(y, np.log(p), w) - sk.log_loss(names, columns, labels=labels, sample_weight=w)) < EXACT
    guess = np.array(labels)[columns.argmax(axis=1)]
    assert abs(accuracy(y, np.log(p), w) - sk.accuracy_score(names, guess, sample_weight=w)) < EXACT
    one_against_rest = [sk.brier_score_loss(names == label, columns[:, i]) for i, label in enumerate(labels)]
    assert abs(brier(y, np.log(p)) - sum(one_against_rest)) < EXACT


def test_log_loss_is_not_clipped() -> None:
    assert abs(log_loss([1], [[-800.0, -np.inf, -1e-300]]) - 800.0) < EXACT
    assert log_loss([0], [[math.log(0.5), -np.inf, math.log(0.5)]]) == math.inf


def test_answer_losses_are_those_of_the_outcome() -> None:
    np.testing.assert_allclose(answer_losses(OUTCOME, np.log(PROBA)), -np.log([0.5, 0.35, 0.6, 0.3]), rtol=EXACT)


def test_calibration_by_hand() -> None:
    # Bins (.4, .5]: confidences .5, .4 -> (.3, .4]. Row 1 right, row 2 (.4) wrong, row 3 (.6) right, row 4 (.4) wrong.
    bins = calibration_bins(OUTCOME, np.log(PROBA))
    np.testing.assert_allclose(bins.count, [0, 0, 0, 2, 1, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(bins.confidence[3:6], [0.8, 0.5, 0.6])
    np.testing.assert_allclose(bins.correct[3:6], [0, 1, 1])
    assert abs(calibration_error(bins) - (0.8 + 0.5 + 0.4) / 4) < EXACT


def test_calibration_pools_and_vanishes_for_true_probabilities() -> None:
    rng = np.random.default_rng(0)
    left = rng.random(200_000)
    y = np.where(rng.random(len(left)) < left, 1, -1)
    with np.errstate(divide="ignore"):
        logp = np.log(np.column_stack([left, np.zeros_like(left), 1 - left]))
    halves = calibration_bins(y[::2], logp[::2]) + calibration_bins(y[1::2], logp[1::2])
    assert abs(calibration_error(halves) - calibration_error(calibration_bins(y, logp))) < EXACT
    assert calibration_error(halves) < 4 * math.sqrt(0.25 / len(y) * 5)  # at most about sqrt(5 bins) standard errors
    assert calibration_error(calibration_bins(y, np.where(logp == logp.max(1, keepdims=True), 0.0, -np.inf))) > 0.2


def test_tie_share_baseline() -> None:
    train = [0, 1, -1, 1]
    np.testing.assert_allclose(tie_share_log_proba(train), np.log([0.375, 0.25, 0.375]), atol=EXACT)
    np.testing.assert_allclose(tie_share_log_proba(train, [3, 1, 1, 1]), np.log([0.25, 0.5, 0.25]), atol=EXACT)
    assert np.isneginf(tie_share_log_proba([1, -1])[1])
    assert np.isneginf(tie_share_log_proba([1])[1])


def test_kendall_tau_per_person() -> None:
    person = ["a", "b", "a", "b", "a", "b", "c", "c", "d"]
    gold = [3, 1, 2, 2, 1, 3, 1, 1, 5]
    predicted = [3, 1, 1, 1, 2, 1, 1, 2, 3]
    # a: of (3,1,2) against (3,2,1) two of three pairs agree; b is constant (0); c and d say nothing.
    assert abs(kendall_tau_per_person(predicted, gold, person) - 0.5 * (1 / 3 + 0.0)) < EXACT
    assert math.isnan(kendall_tau_per_person([1, 2], [1, 1], ["a", "a"]))


def test_kendall_tau_pooled_centres_people() -> None:
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(20), 6)
    gold = np.concatenate([rng.permutation(6) for _ in range(20)])
    predicted = gold + rng.standard_normal(len(gold))
    shifted = predicted + 10 * person
    centred = predicted.reshape(20, 6) - predicted.reshape(20, 6).mean(axis=1, keepdims=True)
    order = rng.permutation(len(gold))
    tau = kendall_tau_pooled(shifted[order], gold[order], person[order])
    assert abs(tau - kendalltau(centred.ravel(), gold).statistic) < EXACT


@pytest.mark.parametrize(
    ("outcome", "log_proba", "says"),
    [
        ([1, 0], np.log(PROBA), "shape"),
        ([2, 0, 1, 1], np.log(PROBA), "outcomes must be"),
        (OUTCOME, PROBA + 1.0, "at most 0"),
        (OUTCOME, np.full((4, 3), np.nan), "NaN"),
        ([], np.zeros((0, 3)), "n > 0"),
    ],
)
def test_wrong_input_is_named(outcome: list[int], log_proba: np.ndarray, says: str) -> None:
    with pytest.raises(DataError, match=says):
        accuracy(outcome, log_proba)


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        kendall_tau_pooled([1.0, np.nan], [1, 2], [0, 0])


def test_reliability_is_the_share_that_came_of_what_was_given_a_probability():
    # Two people; left is given .9 and comes three times out of four, tie .1 and comes once.
    proba = np.tile([0.9, 0.1, 0.0], (4, 1))
    with np.errstate(divide="ignore"):
        found = reliability([1, 1, 0, 1], np.log(proba), ["a", "a", "b", "b"])
    assert [(round(one.predicted, 12), one.observed, one.n) for one in found] == [(0.1, 0.25, 4.0), (0.9, 0.75, 4.0)]
    # Sums of the groups' deviations are ±.5, so the standard error is sqrt(2 (.25 + .25)) / 4 = .25.
    assert abs(found[1].lower - (0.75 - 1.959964 * 0.25)) < 1e-6
    assert found[1].upper == 1.0


def test_reliability_of_true_probabilities_is_the_diagonal_and_copies_of_a_person_add_nothing():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(3), 6000)
    outcome = 1 - (rng.random(6000)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    who = rng.integers(300, size=6000)
    found = reliability(outcome, np.log(proba), who)
    assert sum(one.lower <= one.predicted <= one.upper for one in found) >= 8
    again = reliability(np.repeat(outcome, 4), np.log(np.repeat(proba, 4, axis=0)), np.repeat(who, 4))
    assert abs(again[4].upper - found[4].upper) < EXACT
    assert again[4].n == 4 * found[4].n
