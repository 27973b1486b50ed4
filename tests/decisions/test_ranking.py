"""Boards against brute force over the same draws, closed forms, and hand-made tiers."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from predilect.data import Vocabulary
from predilect.decisions import ranking
from predilect.decisions.ranking import Board, best_items, beyond_chance, board_columns, rank_utilities
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import DrawnUtilities, Utilities
from simulate import random_covariance
from tolerances import EXACT, STATISTICAL

MEAN = np.random.default_rng(0).standard_normal(7)
COVARIANCE = random_covariance(np.random.default_rng(1), 7)


def rank_items(mean: np.ndarray, covariance: np.ndarray, **options: int) -> Board:
    return rank_utilities(Utilities.of(mean, covariance), **options)


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


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0])
def test_long_tiers_are_those_of_comparing_each_leader_with_all_behind(spread):
    """Tiers of one item to all 500, with a step of 64 from one look to the next."""
    rng = np.random.default_rng(0)
    mean, C = spread * rng.standard_normal(500), np.diag(rng.uniform(0.01, 0.3, 500))
    board = rank_utilities(Utilities.of(mean, C), n_draws=10)
    tiers, leader = [1], 0
    for place in range(1, 500):
        gap, sd = board.mean[leader] - board.mean[place], np.hypot(*np.sqrt(np.diag(C)[board.item[[leader, place]]]))
        if norm.cdf(gap / sd) > 0.95:
            leader = place
        tiers.append(tiers[-1] + (leader == place))
    np.testing.assert_array_equal(board.tier, tiers)


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


@pytest.mark.parametrize(
    ("mean", "covariance"),
    [
        ([np.nan, 0.0], np.eye(2)), ([1.7e308, 1.7e308], np.eye(2)), ([0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]),
        ([0.0, 1.0], [[np.inf, 0.0], [0.0, 1.0]]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_numbers_that_do_not_go_together_make_no_board(mean, covariance):
    with pytest.raises(DataError, match="cannot be worked out"):
        rank_items(np.array(mean), np.array(covariance))


def test_what_is_certain_has_no_interval():
    board = rank_items(np.array([0.0, 5.0, -5.0]), 1e-6 * np.eye(3))
    np.testing.assert_array_equal(board.rank_low, board.rank)
    np.testing.assert_array_equal(board.rank_high, board.rank)
    np.testing.assert_array_equal(board.p_best, [1, 0, 0])


def test_columns_carry_ids_and_counts_in_the_order_of_the_board():
    board = rank_items(np.array([0.0, 2.0, 1.0]), np.eye(3))
    results = np.array([[2.0, 1.0, 2.0], [6.0, 0.0, 0.0], [0.0, 4.0, 3.0]])
    columns = board_columns(board, Vocabulary(["a", "b", "c"]), results)
    assert list(columns["item"]) == ["b", "c", "a"]
    for name, expected in {"n": [6, 7, 5], "wins": [6, 0, 2], "ties": [0, 4, 1], "losses": [0, 3, 2]}.items():
        assert columns[name].tolist() == expected
        assert columns[name].dtype == np.int64
    assert columns["win_share"].to_list() == pytest.approx([1.0, 2 / 7, 0.5])
    half = np.array([[0.5, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    columns = board_columns(board, Vocabulary([1, 2, 3]), half)
    assert columns["n"].to_list() == [6.0, 0.0, 0.5]
    assert columns["win_share"].to_list() == [1.0, None, 1.0]
    of_people = board_columns(board, Vocabulary([1, 2, 3]), half[:, :1])  # of a small model, how many alone
    assert of_people["n"].to_list() == [6.0, 0.0, 0.5]
    assert of_people["wins"].to_list() == of_people["win_share"].to_list() == [None] * 3
    np.testing.assert_array_equal(columns["p_best"], board.p_best)


# Factored utilities


def factored(seed: int, n_items: int, n_functions: int, n_own: int, own: bool) -> Utilities:
    """On a basis, with something of their own for some items, and a variance of their own for the rest or for none."""
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n_items, n_functions))
    items = np.sort(rng.permutation(n_items)[:n_own])
    rest = rng.uniform(0.02, 0.3, n_items) if own else np.zeros(0)
    if own:
        rest[items] = 0.0
    covariance = 0.05 * random_covariance(rng, n_functions + n_own)
    mean = Phi @ rng.standard_normal(n_functions)
    return Utilities(mean, covariance, Phi, items, rest)


FACTORED = {
    "functions alone": (0, 0, False), "and some items": (1, 4, False), "and variances": (2, 0, True),
    "and both": (3, 4, True), "and every item": (4, 12, False),
}  # fmt: skip


@pytest.mark.parametrize("what", FACTORED)
def test_a_factored_board_is_the_dense_one(what):
    seed, n_own, own = FACTORED[what]
    utilities = factored(seed, 12, 3, n_own, own)
    mean, covariance = utilities.dense()
    n_draws = 20_000
    board, dense = rank_utilities(utilities, n_draws=n_draws), rank_items(mean, covariance, n_draws=n_draws)
    for name in ("item", "rank", "tier"):
        np.testing.assert_array_equal(getattr(board, name), getattr(dense, name))
    assert board.tier[-1] > 1
    for name in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(getattr(board, name), getattr(dense, name), atol=EXACT)
    # Draws: against many more of the dense covariance, by numpy.
    normal = np.random.default_rng(9).multivariate_normal(mean, covariance, 200_000, method="eigh")
    places = 1 + np.argsort(np.argsort(-normal, axis=1), axis=1)
    both = 1 / n_draws + 1 / 200_000
    p = (places == 1).mean(axis=0)
    assert np.all(np.abs(by_item(board, "p_best") - p) <= STATISTICAL * np.sqrt(p * (1 - p) * both) + 5 / n_draws)
    slack = STATISTICAL * math.sqrt(0.025 * 0.975 * both)
    for name, share in (("rank_low", 0.025), ("rank_high", 0.975)):
        place = by_item(board, name)
        assert np.all((places <= place).mean(axis=0) > share - slack)
        assert np.all((places < place).mean(axis=0) < share + slack)


def test_factored_draws_have_the_dense_covariance():
    utilities = factored(3, 12, 3, 4, own=True)
    mean, covariance = utilities.dense()
    n = 50_000
    draws = utilities.draws(n, np.random.default_rng(1), np.linalg.cholesky(utilities.covariance)) - mean
    error = np.sqrt((covariance**2 + np.outer(np.diagonal(covariance), np.diagonal(covariance))) / n)
    assert np.all(np.abs(draws.T @ draws / n - covariance) < 1.2 * STATISTICAL * error)  # of 78 entries the worst
    assert np.all(np.abs(draws.mean(axis=0)) < STATISTICAL * np.sqrt(np.diagonal(covariance) / n))


def test_draws_in_parts_are_draws_all_the_same(monkeypatch):
    utilities = factored(3, 12, 3, 4, own=True)
    whole = rank_utilities(utilities, n_draws=20_000)
    monkeypatch.setattr(ranking, "_ENTRIES_AT_ONCE", 12 * 777)
    parts = rank_utilities(utilities, n_draws=20_000)
    p = whole.p_best
    assert abs(parts.p_best.sum() - 1.0) < EXACT
    assert np.all(np.abs(parts.p_best - p) <= STATISTICAL * np.sqrt(2 * p * (1 - p) / 20_000) + 5 / 20_000)
    for name in ("rank_low", "rank_high"):
        assert np.abs(getattr(parts, name) - getattr(whole, name)).max() <= 1
    np.testing.assert_array_equal(parts.tier, whole.tier)


@pytest.mark.slow
def test_more_than_ten_thousand_items_in_bounded_memory(monkeypatch):
    n_items = 12_000
    utilities = factored(6, n_items, 4, 3, own=True)
    monkeypatch.setattr(ranking, "_ENTRIES_AT_ONCE", 1_000_000)
    tracemalloc.start()
    board = rank_utilities(utilities)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.3 * 8 * n_items**2  # a covariance of the items alone would be more than three times as much
    np.testing.assert_array_equal(np.sort(board.item), np.arange(n_items))
    counts = 1000 * board.p_best  # so many draws, where items are so many
    np.testing.assert_allclose(counts, np.rint(counts), atol=EXACT)
    assert abs(board.p_best.sum() - 1.0) < EXACT
    assert np.all(np.diff(board.mean) <= 0)
    assert np.all((board.rank_low >= 1) & (board.rank_low <= board.rank_high) & (board.rank_high <= n_items))
    inside = np.mean((board.rank_low <= board.rank) & (board.rank <= board.rank_high))
    assert inside > 0.95
    # a tier opens at the first item of which its leader is better with probability above .95
    assert board.tier[0] == 1
    assert set(np.diff(board.tier)) == {0, 1}
    leader = 0
    for place in range(1, 200):
        mean, var = utilities.margins(board.item[[leader]], board.item[[place]])
        opens = norm.cdf(mean[0] / math.sqrt(var[0])) > 0.95
        assert opens == (board.tier[place] > board.tier[place - 1])
        leader = place if opens else leader


def test_scores_that_differ_by_what_iterations_leave_open_are_tied_and_in_the_order_of_the_ids():
    rng = np.random.default_rng(5)
    mean = np.array([0.5, 0.0, 2.0, 0.0, 0.5, 2.0, 0.0]) * 1e3
    covariance = 1e6 * COVARIANCE
    exact = rank_items(mean, covariance)
    np.testing.assert_array_equal(exact.item, [2, 5, 0, 4, 1, 3, 6])
    for _ in range(20):
        board = rank_items(mean + 1e-5 * rng.standard_normal(7), covariance)
        for name in ("item", "rank_low", "rank_high", "p_best", "tier"):
            np.testing.assert_array_equal(getattr(board, name), getattr(exact, name))
        np.testing.assert_array_equal(np.diff(board.mean)[[0, 2, 4, 5]], 0.0)
    apart = rank_items(mean + 1e-3 * np.arange(7), covariance)  # by a millionth: that is a difference
    np.testing.assert_array_equal(apart.item, [5, 2, 4, 0, 6, 3, 1])


def test_items_that_nothing_tells_apart_are_ranked_by_their_ids_in_every_draw():
    # Two pairs of items with the same utilities in every draw, but for rounding.
    rng = np.random.default_rng(6)
    same = np.array([0, 1, 0, 1, 2])
    exact = None
    for noise in (0.0, *[1e-15] * 20):
        Phi = np.eye(3)[same] + noise * rng.standard_normal((5, 3))
        mean = np.array([0.2, 0.0, -0.1])[same] + noise * rng.standard_normal(5)
        own = np.zeros(0)
        board = rank_utilities(Utilities(mean, np.eye(3), Phi, np.zeros(0, dtype=np.int64), own))
        exact = exact or board
        for name in ("item", "rank_low", "rank_high", "p_best", "tier"):
            np.testing.assert_array_equal(getattr(board, name), getattr(exact, name))
    assert by_item(exact, "p_best")[[2, 3]].sum() == 0.0


def test_a_leader_that_is_ahead_by_rounding_alone_opens_no_tier():
    board = rank_items(np.array([1.0 + 1e-12, 1.0, 0.0]), np.diag([1e-30, 1e-30, 1e-4]))
    np.testing.assert_array_equal(board.tier, [1, 1, 2])


@pytest.mark.parametrize("n_draws", [7, 21, 50])
def test_a_rank_interval_ends_at_ranks_that_were_drawn(n_draws):
    covariance = COVARIANCE + 4.0 * np.eye(7)
    board = rank_items(MEAN, covariance, random_state=3, n_draws=n_draws)
    draws = MEAN + np.random.default_rng(3).standard_normal((n_draws, 7)) @ np.linalg.cholesky(covariance).T
    ordered = np.sort(1 + (draws[:, None, :] > draws[:, :, None]).sum(axis=2), axis=0)
    np.testing.assert_array_equal(by_item(board, "rank_low"), ordered[math.ceil(0.025 * n_draws) - 1])
    np.testing.assert_array_equal(by_item(board, "rank_high"), ordered[math.ceil(0.975 * n_draws) - 1])


def test_the_rule_of_benjamini_and_hochberg():
    def of_p(*p):
        z = np.abs(ndtri(np.array(p) / 2.0))
        return beyond_chance(z * np.resize([1.0, -1.0], len(z)))  # the sign plays no part

    # By hand: ordered p = .001, .02, .03, .2, thresholds .0125, .025, .0375, .05 → the first three pass.
    np.testing.assert_array_equal(of_p(0.2, 0.03, 0.001, 0.02), [False, True, True, True])
    assert not of_p(0.2, 0.9).any()
    # The second is above its own threshold, and passes because the third is below.
    assert of_p(0.001, 0.034, 0.036).all()


def test_the_best_of_each_person_stand_as_on_a_board():
    """Scores that differ by rounding are tied: they are equal, and in the order of the ids."""
    mean = np.array([[1.0, 1.0 + 1e-9, -2.0], [0.0, -1.0, 1.0]])
    posterior = SimpleNamespace(
        centred_utilities=lambda who, executor: (mean[who].copy(), np.ones((len(who), 3))),
        widenings=lambda who: np.ones(len(who)),
    )
    model = SimpleNamespace(
        posterior_=posterior, users_=Vocabulary(pl.Series(["p", "q"])), items_=Vocabulary(pl.Series(["a", "b", "c"]))
    )
    order, columns = best_items(model, 0, 2, 2, None)
    np.testing.assert_array_equal(order, [[0, 1], [2, 0]])
    assert columns["mean"][0] == columns["mean"][1]


def test_draws_that_are_all_the_same_make_a_board():
    """As few draws of somebody may be, whose covariance has no factor."""
    Phi = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    utilities = DrawnUtilities.drawn(Phi, np.tile([0.5, -1.0], (40, 1)))
    board = rank_utilities(utilities)
    assert board.item.tolist() == [0, 1, 2]
    np.testing.assert_allclose(board.mean, np.array([0.5, -1.0, -2.0]) - np.mean([0.5, -1.0, -2.0]), atol=EXACT)
    assert board.sd.tolist() == [0.0] * 3
    assert board.p_best.tolist() == [1.0, 0.0, 0.0]
