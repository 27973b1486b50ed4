"""Boards against brute force over the same draws, closed forms, and hand-made tiers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from predilect.data import Vocabulary
from predilect.decisions.ranking import Board, board_columns, rank_items
from simulate import random_covariance
from tolerances import EXACT, STATISTICAL

MEAN = np.random.default_rng(0).standard_normal(7)
COVARIANCE = random_covariance(np.random.default_rng(1), 7)


def by_item(board: Board, name: str) -> np.ndarray:
    values = np.empty(len(board.item), dtype=getattr(board, name).dtype)
    values[board.item] = getattr(board, name)
    return values


def test_rank_intervals_and_p_best_against_brute_force():
    board = rank_items(MEAN, COVARIANCE, random_state=3)
    normal = np.random.default_rng(3).standard_normal((4000, 7))
    places = np.empty((4000, 7), dtype=int)
    for d, draw in enumerate(MEAN + normal @ np.linalg.cholesky(COVARIANCE).T):
        for i in range(7):
            places[d, i] = 1 + sum(draw[j] > draw[i] for j in range(7))
    ordered = np.sort(places, axis=0)
    # the smallest rank with at least 2.5 (97.5) % of the draws at or below it
    np.testing.assert_array_equal(by_item(board, "rank_low"), ordered[math.ceil(0.025 * 4000) - 1])
    np.testing.assert_array_equal(by_item(board, "rank_high"), ordered[math.ceil(0.975 * 4000) - 1])
    np.testing.assert_array_equal(by_item(board, "p_best"), (places == 1).mean(axis=0))
    assert board.p_best.sum() == pytest.approx(1.0, abs=EXACT)
    assert np.all(board.rank_low <= board.rank_high)


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0])
def test_p_best_of_two_items_in_closed_form(gap):
    S = np.array([[2.0, 0.7], [0.7, 1.0]])
    board = rank_items(np.array([gap, 0.0]), S, n_draws=40_000)
    p = norm.cdf(gap / math.sqrt(2.0 + 1.0 - 1.4))
    assert abs(by_item(board, "p_best")[0] - p) < STATISTICAL * math.sqrt(p * (1 - p) / 40_000)
    assert by_item(board, "rank_low")[0] == 1
    assert by_item(board, "rank_high")[0] == (2 if p < 0.975 else 1)


def test_scores_are_centred_and_intervals_follow_from_them():
    board = rank_items(MEAN, COVARIANCE)
    P = np.eye(7) - 1 / 7
    sd = np.sqrt(np.diagonal(P @ COVARIANCE @ P))
    np.testing.assert_allclose(by_item(board, "mean"), P @ MEAN, atol=EXACT)
    np.testing.assert_allclose(by_item(board, "sd"), sd, atol=EXACT)
    np.testing.assert_allclose(by_item(board, "lower"), norm.ppf(0.025, P @ MEAN, sd), atol=EXACT)
    np.testing.assert_allclose(by_item(board, "upper"), norm.ppf(0.975, P @ MEAN, sd), atol=EXACT)
    np.testing.assert_array_equal(board.item, np.argsort(-MEAN))
    np.testing.assert_array_equal(board.rank, np.arange(1, 8))


def test_only_differences_count():
    # A shift that all items share, of the mean or of every draw, changes no place and no tier.
    board = rank_items(MEAN, COVARIANCE)
    moved = rank_items(MEAN + 3.0, COVARIANCE + 2.0, n_draws=4000)
    for name in ("item", "rank", "tier"):
        np.testing.assert_array_equal(getattr(board, name), getattr(moved, name))
    for name in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(getattr(board, name), getattr(moved, name), atol=EXACT)
    np.testing.assert_allclose(board.p_best, moved.p_best, atol=STATISTICAL * math.sqrt(0.5 / 4000))


# Independent items with variance ½: a gap of 1.645 between two is 95 % sure, 1.644 is not.
TIERS = [
    ([0.0, -1.60, -1.64], [1, 1, 1]),
    ([0.0, -1.60, -1.65], [1, 1, 2]),
    # The second tier's leader is the item that opened it, and not the first tier's.
    ([0.0, -1.65, -3.0, -3.25, -3.35], [1, 2, 2, 2, 3]),
    ([9.0, 6.0, 3.0, 0.0], [1, 2, 3, 4]),
    # A new tier opens for good, and everything below belongs to it.
    ([0.0, -1.70, -1.71, -1.72], [1, 2, 2, 2]),
]


@pytest.mark.parametrize(("mean", "tiers"), TIERS)
def test_tiers_by_hand(mean, tiers):
    board = rank_items(np.array(mean), 0.5 * np.eye(len(mean)))
    np.testing.assert_array_equal(board.tier, tiers)
    order = np.random.default_rng(4).permutation(len(mean))
    shuffled = rank_items(np.array(mean)[order], 0.5 * np.eye(len(mean)))
    np.testing.assert_array_equal(shuffled.tier, tiers)


def test_a_tier_goes_by_the_difference_to_its_leader_and_not_by_single_variances():
    # b is nearly as uncertain as a, but moves with it: the two are told apart, and from c they are not.
    S = np.array([[4.0, 3.99, 0.0], [3.99, 4.0, 0.0], [0.0, 0.0, 4.0]])
    board = rank_items(np.array([1.0, 0.7, 0.5]), S)
    np.testing.assert_array_equal(board.tier, [1, 2, 2])


def test_an_item_in_the_middle_may_open_a_tier_that_a_worse_but_vaguer_one_stays_in():
    board = rank_items(np.array([0.0, -1.0, -1.1]), np.diag([0.01, 0.01, 100.0]))
    np.testing.assert_array_equal(board.tier, [1, 2, 2])
    board = rank_items(np.array([0.0, -1.0, -1.1]), np.diag([0.01, 100.0, 0.01]))
    np.testing.assert_array_equal(board.tier, [1, 1, 2])


def test_equal_scores_keep_the_order_of_the_ids():
    board = rank_items(np.zeros(50), np.eye(50))
    np.testing.assert_array_equal(board.item, np.arange(50))
    np.testing.assert_array_equal(board.tier, np.ones(50))
    board = rank_items(np.array([0.0, 1.0, 0.0, 1.0, 0.0]), np.eye(5))
    np.testing.assert_array_equal(board.item, [1, 3, 0, 2, 4])


def test_one_item_has_no_rival():
    board = rank_items(np.array([3.0]), np.array([[2.0]]))
    assert (board.mean[0], board.sd[0], board.p_best[0], board.tier[0]) == (0.0, 0.0, 1.0, 1)
    assert board.rank_low[0] == board.rank_high[0] == 1


def test_the_seed_decides_the_draws_and_nothing_else():
    one, again, other = (rank_items(MEAN, COVARIANCE, random_state=seed) for seed in (0, 0, 1))
    for name in Board.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))
    assert np.any(one.p_best != other.p_best)
    for name in ("item", "mean", "sd", "lower", "upper", "rank", "tier"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_what_is_certain_has_no_interval():
    board = rank_items(np.array([0.0, 5.0, -5.0]), 1e-6 * np.eye(3))
    np.testing.assert_array_equal(board.rank_low, board.rank)
    np.testing.assert_array_equal(board.rank_high, board.rank)
    np.testing.assert_array_equal(board.p_best, [1, 0, 0])


def test_columns_carry_ids_and_counts_in_the_order_of_the_board():
    board = rank_items(np.array([0.0, 2.0, 1.0]), np.eye(3))
    columns = board_columns(board, Vocabulary(["a", "b", "c"]), np.array([5.0, 6.0, 7.0]))
    assert list(columns["item"]) == ["b", "c", "a"]
    assert columns["n"].tolist() == [6, 7, 5]
    assert columns["n"].dtype == np.int64
    assert board_columns(board, Vocabulary([1, 2, 3]), np.array([0.5, 6.0, 7.0]))["n"].tolist() == [6.0, 7.0, 0.5]
    np.testing.assert_array_equal(columns["p_best"], board.p_best)
