"""Losses of acting on a belief: hand-made cases, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.errors import DataError
from predilect.inference.likelihoods.probit import outcome_log_probabilities
from predilect.papers.compression.losses import (
    LOSSES,
    find_loss,
    log_loss,
    losses_of_draws,
    recommendation,
    regret,
    zero_one,
)
from tolerances import EXACT

TRUTH = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
BELIEF = np.array([1.0, 0.5, 0.0]), np.diag([0.3, 0.2, 0.1])
ALL = np.ones(3, dtype=bool)


def test_by_hand():
    np.testing.assert_allclose(zero_one(TRUTH, *BELIEF, ALL), [0.0, 2 / 3])
    np.testing.assert_allclose(recommendation(TRUTH, *BELIEF, ALL), [0.0, 100 / 3])
    np.testing.assert_allclose(regret(TRUTH, *BELIEF, ALL), [0.0, 2.0])
    without_first = np.array([False, True, True])
    np.testing.assert_allclose(regret(TRUTH, *BELIEF, without_first), [2.0, 0.0])
    np.testing.assert_allclose(recommendation(TRUTH, *BELIEF, without_first), [100 / 3, 0.0])
    np.testing.assert_allclose(zero_one(TRUTH, *BELIEF, without_first), [0.0, 2 / 3])
    np.testing.assert_allclose(zero_one(TRUTH, np.zeros(3), BELIEF[1], ALL), 0.5)


def test_log_loss_is_that_of_answers_drawn_from_the_truth():
    rng = np.random.default_rng(0)
    left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
    log_p = outcome_log_probabilities(
        BELIEF[0][left] - BELIEF[0][right], np.diag(BELIEF[1])[left] + np.diag(BELIEF[1])[right], 0.0
    )
    answers = TRUTH[0][left] - TRUTH[0][right] + rng.standard_normal((200_000, 3)) > 0
    drawn = -np.where(answers, log_p[:, 0], log_p[:, 2]).mean(axis=1)
    assert abs(log_loss(TRUTH[:1], *BELIEF, ALL)[0] - drawn.mean()) < 4 * drawn.std() / np.sqrt(len(drawn))


def test_of_many_items_some_pairs_stand_for_all():
    rng = np.random.default_rng(1)
    truth, mean = rng.standard_normal((40, 200)), rng.standard_normal(200)
    assert abs(zero_one(truth, mean, np.eye(200), np.ones(200, dtype=bool)).mean() - 0.5) < 0.03
    assert zero_one(mean[None], mean, np.eye(200), np.ones(200, dtype=bool))[0] == 0.0


def test_a_new_loss_is_one_function():
    def of_first(truth, mean, covariance, kept):
        return (truth[:, 0] - mean[0]) ** 2

    name, function = find_loss(of_first)
    assert name == "of_first"
    assert function is of_first
    np.testing.assert_allclose(losses_of_draws(of_first, TRUTH, *BELIEF, ALL), [4.0, 1.0], atol=EXACT)
    for known in LOSSES:
        assert find_loss(known) == (known, LOSSES[known])


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda truth, mean, covariance, kept: np.array([1.0, np.nan]), r"gave nan for 1 of 2 draws \(first: draw 1\)"),
        (lambda truth, mean, covariance, kept: np.array([np.inf, 0.0]), "gave inf"),
        (lambda truth, mean, covariance, kept: 1.0, r"one number for each of 2 draws"),
        (lambda truth, mean, covariance, kept: np.array(["a", "b"]), r"one number for each of 2 draws"),
        ("hinge", "one of 'zero_one', .*, or a function of 4 arguments"),
    ],
)
def test_what_is_no_loss_is_refused(loss, said):
    with pytest.raises(DataError, match=said):
        losses_of_draws(loss, TRUTH, *BELIEF, ALL)
