"""Scales of scores, and named pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, ndtr

from predilect import Comparisons, Population
from predilect.decisions.scales import SCALES, scale_of
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.likelihoods.special import Z_95
from predilect.inference.likelihoods.views import LOGISTIC_SLOPE
from simulate import comparisons, crowd
from tolerances import EXACT

SCORES = ["mean", "sd", "lower", "upper"]
ELO = LOGISTIC_SLOPE * 400.0 / math.log(10.0)


@pytest.fixture(scope="module")
def model():
    return Population(personal=False).fit(comparisons(crowd(4, n_users=8, n_items=6, per_person=30)))


@pytest.fixture(scope="module")
def of_people():
    return Population().fit(comparisons(crowd(5, n_users=8, n_items=5, per_person=20)))


def scores(board):
    return pl.DataFrame(board).select(SCORES).to_numpy()


def test_elo_points_with_a_base_move_all_scores_alike(model):
    plain, elo = scores(model.rank()), scores(model.rank(scale="elo", base=1000))
    shift = np.array([1000.0, 0.0, 1000.0, 1000.0])
    np.testing.assert_allclose(elo, ELO * plain + shift, rtol=0, atol=1e-9)
    others = pl.exclude(SCORES)
    assert pl.DataFrame(model.rank()).select(others).equals(pl.DataFrame(model.rank(scale="elo")).select(others))


@pytest.mark.parametrize("text", ["elo:1000:{}", "ELO:1000:{}", "Elo:1e3:{}"])
def test_base_and_anchor_in_the_name_of_a_scale(model, text):
    anchor = model.items_.ids[1]
    said = model.rank(scale=text.format(anchor))
    assert pl.DataFrame(said).equals(pl.DataFrame(model.rank(scale="elo", base=1000, anchor=anchor)))
    assert pl.DataFrame(model.rank(scale="logit:2")).equals(pl.DataFrame(model.rank(scale="logit", base=2)))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"scale": "elo:1000", "base": 1200}, "base or anchor a second time"), ({"scale": "elo:many"}, "is no number"),
        ({"scale": "elo:1000:"}, "names no item"), ({"scale": "ello:1000"}, "scale must be one of"),
    ],
)  # fmt: skip
def test_scales_that_are_said_badly_are_refused(model, said, message):
    with pytest.raises(DataError, match=message):
        model.rank(**said)


def test_an_anchor_has_the_base_and_intervals_are_of_the_distance_to_it(model):
    anchor = model.items_.ids[2]
    board = pl.DataFrame(model.rank(scale="elo", base=1500, anchor=anchor))
    mean, covariance = model.posterior_.crowd().dense()
    for row in board.iter_rows(named=True):
        i, j = model.items_.code(row["item"]), model.items_.code(anchor)
        sd = math.sqrt(max(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j], 0.0))
        expected = 1500 + ELO * (mean[i] - mean[j])
        assert row["mean"] == pytest.approx(expected, abs=1e-6)
        assert row["upper"] == pytest.approx(expected + Z_95 * ELO * sd, abs=1e-6)
    at = board.row(by_predicate=pl.col("item") == anchor, named=True)
    assert (at["mean"], at["sd"], at["lower"], at["upper"]) == (1500.0, 0.0, 1500.0, 1500.0)


def test_a_gap_of_elo_says_which_share_it_is_where_there_are_ties():
    unit = scale_of("elo", "probit")
    said = unit.ties(0.4)
    better, worse = ndtr(1.0 - 0.4), ndtr(-1.0 - 0.4)
    assert f"a win share, ties halved, of {100 * (better + 0.5 * (1 - better - worse)):.0f} %" in said
    usual = 100 / (1 + 10 ** (-unit.per_probit / 400))
    assert f"{usual:.0f} % by the usual formula of Elo" in said
    assert "formula of Elo" not in scale_of("probit", "probit").ties(0.4)
    assert unit.ties(0.0) == ""


def test_0_to_100_ends_at_the_first_and_the_last_item(model, of_people):
    for board in (model.rank(scale="0-100"), of_people.rank(of_people.users_.ids[1], scale="0-100")):
        mean = pl.DataFrame(board)["mean"].to_numpy()
        assert mean[0] == pytest.approx(100.0)
        assert mean[-1] == pytest.approx(0.0, abs=1e-9)
    plain, scaled = scores(model.rank()), scores(model.rank(scale="0-100"))
    gaps = np.diff(scaled[:, 0]) / np.diff(plain[:, 0])
    np.testing.assert_allclose(gaps, 100.0 / np.ptp(plain[:, 0]))
    np.testing.assert_allclose(scaled[:, 1] / plain[:, 1], gaps[0])


def test_equal_items_stand_at_50_of_100():
    items = Comparisons.from_frame({"left": ["a"], "right": ["b"], "winner": ["a"]}).items
    utilities = Utilities.of(np.zeros(2), np.eye(2))
    score, *_ = SCALES["0-100"].scores(utilities, items, np.zeros(2), np.ones(2))
    assert score.tolist() == [50.0, 50.0]


def test_shares_are_those_of_bradley_and_terry(model):
    board = pl.DataFrame(model.rank(scale="share"))
    worth = np.exp(LOGISTIC_SLOPE * pl.DataFrame(model.rank())["mean"].to_numpy())
    np.testing.assert_allclose(board["mean"], 100 * worth / worth.sum(), rtol=1e-9)
    assert (board["lower"] > 0).all()
    assert (board["lower"] < board["mean"]).all()
    assert (board["mean"] < board["upper"]).all()
    assert (board["upper"] < 100).all()


def test_the_share_of_one_of_two_is_the_chance_of_an_answer_and_its_interval_that_of_the_margin():
    items = Comparisons.from_frame({"left": ["a"], "right": ["b"], "winner": ["a"]}).items
    mean, covariance = np.array([0.4, -0.4]), np.array([[0.3, 0.1], [0.1, 0.2]])
    found = SCALES["share"].scores(Utilities.of(mean, covariance), items, mean, np.zeros(2))
    sd = math.sqrt(0.3 + 0.2 - 0.2)
    for values, z in ((found[0], 0.0), (found[2], -Z_95), (found[3], Z_95)):
        assert values[0] == pytest.approx(100 * expit(LOGISTIC_SLOPE * (0.8 + z * sd)), abs=1e-9)


@pytest.mark.parametrize("n_own", [0, 2])
def test_variances_about_a_weighted_mean_are_those_of_the_dense_covariance(n_own):
    rng = np.random.default_rng(3)
    Phi, root = rng.standard_normal((7, 3)), rng.standard_normal((3 + n_own, 3 + n_own))
    own = np.zeros(0)
    if n_own:
        own = rng.random(7)
        own[:n_own] = 0.0
    u = Utilities(rng.standard_normal(7), root @ root.T, Phi, np.arange(n_own), own)
    weights = rng.dirichlet(np.ones(7))
    mean, covariance = u.dense()
    A = np.eye(7) - weights
    found = u.centred_marginals(weights)
    np.testing.assert_allclose(found, (A @ mean, np.diagonal(A @ covariance @ A.T)), atol=EXACT, rtol=1e-10)
    np.testing.assert_allclose(u.centred_marginals(np.full(7, 1 / 7)), u.centred_marginals(), atol=EXACT, rtol=1e-10)


def test_a_share_near_100_has_finite_ends():
    mean = np.array([60.0, 0.0, -60.0])
    items = Comparisons.from_frame({"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "y"]}).items
    found = np.array(SCALES["share"].scores(Utilities.of(mean, np.eye(3)), items, mean, np.ones(3)))
    assert np.isfinite(found).all()
    assert found[0].sum() == pytest.approx(100.0)


def test_who_is_tied_with_the_leader(model):
    board = pl.DataFrame(model.rank())
    first = board["item"][0]
    table = pl.DataFrame(model.versus([(first, item) for item in board["item"][1:]]))
    assert board["tied_with_leader"].to_list() == [True, *(table["p_better"] <= 0.95).to_list()]
    assert not board["tied_with_leader"].all()
    assert board.filter(pl.col("tier") == 1)["tied_with_leader"].all()


def test_named_pairs(of_people):
    a, b = of_people.items_.ids[:2]
    (row,) = pl.DataFrame(of_people.versus([(a, b)], scale="elo")).to_dicts()
    mean, variance = of_people.posterior_.crowd().margins(np.array([0]), np.array([1]))
    assert row["p_better"] == pytest.approx(float(ndtr(mean / np.sqrt(variance))[0]))
    assert row["difference"] == pytest.approx(ELO * mean[0])
    chance = of_people.predict_proba({"left": [a], "right": [b]})[0]
    assert [row["p_left"], row["p_tie"], row["p_right"]] == chance.tolist()
    user = of_people.users_.ids[0]
    (own,) = pl.DataFrame(of_people.versus(a, b, user)).to_dicts()
    assert own["p_left"] == of_people.predict_proba({"user": [user], "left": [a], "right": [b]})[0, 0]
    (turned,) = pl.DataFrame(of_people.versus([(b, a)], user=user)).to_dicts()
    assert own["p_better"] + turned["p_better"] == pytest.approx(1.0)
    with pytest.raises(DataError, match="paired with itself"):
        of_people.versus([(a, a)])
    with pytest.raises(DataError, match="not known"):
        of_people.versus([(a, "nobody")])
    for array in (np.array([[a, b]]), ((a, b),), [[a, b]]):
        assert pl.DataFrame(of_people.versus(array, scale="elo")).to_dicts() == [row]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("P", "Q"), ("P", "Q", "R")], r"\('P', 'Q', 'R'\) at place 2.*name each pair"),
        (["PQ"], "got 'PQ' at place 1"),
        ([("P",)], r"\('P',\) at place 1"),
        ([{"P", "Q"}], "at place 1"),
        (("P", "Q"), r"got \('P', 'Q'\). If that is one pair, write \[\('P', 'Q'\)\]"),
        ("PQ", "got 'PQ'"),
        ({"left": ["P"], "right": ["Q"]}, "got {'left'"),
    ],
)
def test_what_are_no_pairs_are_refused(model, pairs, said):
    with pytest.raises(DataError, match="a list of pairs of two items, such as.*" + said):
        model.versus(pairs)


def test_a_person_after_a_list_of_pairs_is_named(model):
    with pytest.raises(DataError, match="A person is named: user='ann'"):
        model.versus([("P", "Q")], "ann")


def test_ids_that_are_integers_can_be_named_as_text():
    answers = {"left": [11, 12, 11], "right": [12, 13, 13], "winner": [11, 12, 11]}
    model = Population(personal=False).fit(answers)
    by_text, by_number = (model.rank(scale="elo", base=1000, anchor=one) for one in ("12", 12))
    assert pl.DataFrame(by_text).equals(pl.DataFrame(by_number))
    assert pl.DataFrame(model.versus([("11", "13")]))["p_better"][0] > 0.5


def test_scales_that_cannot_be_are_refused(model):
    with pytest.raises(DataError, match=r"scale must be one of 'probit', 'logit', .*, not 'percent'"):
        model.rank(scale="percent")
    with pytest.raises(DataError, match="base means nothing there"):
        model.rank(scale="share", base=1000)
    for base in (float("nan"), "x", "1000", True, [1.0]):
        with pytest.raises(DataError, match="base must be None or a number, not"):
            model.rank(base=base)
    with pytest.raises(DataError, match="not known"):
        model.rank(scale="elo", anchor="nobody")


def test_utilities_of_a_logit_model_are_log_odds_in_shares_too():
    assert scale_of("share", "logit").log_odds == 1.0
    assert scale_of("share", "probit").log_odds == LOGISTIC_SLOPE
    assert scale_of("share", "logit").of_differences.unit == "log-odds of one answer"
    anchored = scale_of("elo", "probit", 1000, "x")
    assert anchored == replace(SCALES["elo"], base=1000.0, anchor="x", meaning=anchored.meaning)
    assert anchored.meaning.endswith("x is at 1000 by definition, and intervals are of the distance to it.")
