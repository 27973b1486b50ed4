"""Part-worths, importances, willingness to pay and shares against values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.decisions.conjoint import (
    RULES,
    coefficients,
    importances,
    logit_chances,
    market_shares,
    part_worths,
    willingness_to_pay,
)
from predilect.errors import DataError
from tolerances import EXACT


class Given:
    """Draws of coefficients of a price and of two brands, (U, R, 3)."""

    levels = (("price", ""), ("brand", "a"), ("brand", "b"))
    of_one_population = False

    def __init__(self, c):
        self.c = np.asarray(c, dtype=float)
        self.n_people = len(self.c)

    def coefficients(self, user):
        return self.c.mean(axis=0) if user < 0 else self.c[user]

    def population(self):
        return None

    def pay_of_people(self, price):
        return None

    def ranges(self, user):
        c = self.c[user]
        return np.column_stack([3.0 * np.abs(c[:, 0]), np.abs(c[:, 1] - c[:, 2])])

    def utilities(self, user, rows):
        return self.c[user] @ rows.T

    def chances(self, V, user, rows):
        return logit_chances(V)


RNG = np.random.default_rng(0)
BRAND = RNG.normal(1.0, 0.2, size=(5, 400))
SOME = Given(np.stack([RNG.normal(-2.0, 0.1, size=(5, 400)), BRAND, -BRAND], axis=2))
ROWS = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # brand a for one more than brand b


def test_part_worths_are_summaries_of_each_person():
    table = part_worths(SOME, list("uvwxy"))
    assert table["user"][:4] == ["u", "u", "u", "v"]
    assert table["level"][:3] == ["", "a", "b"]
    np.testing.assert_allclose(table["mean"][3:6], SOME.c[1].mean(axis=0), atol=EXACT)
    np.testing.assert_allclose(table["sd"][3:6], SOME.c[1].std(axis=0), atol=EXACT)
    inside = (table["lower"][0] < SOME.c[0][:, 0]) & (SOME.c[0][:, 0] < table["upper"][0])
    assert abs(inside.mean() - 0.95) < 0.01


class OneOfAll(Given):
    """One number of everybody, each drawn around its posterior mean at one estimate of how people differ."""

    levels = (("price", ""),)
    of_one_population = True


@pytest.mark.slow
def test_the_spread_between_people_is_as_sure_as_one_population_leaves_it():
    n, own, within = 60, 1.0, 1.5  # sd of people, and of what is seen of each
    inside = []
    for _ in range(300):
        seen = RNG.normal(RNG.normal(0.0, own, n), within)
        between = max(seen.var() - within**2, 1e-6)
        share = between / (between + within**2)
        draws = share * seen[:, None] + np.sqrt(between * (1.0 - share)) * RNG.standard_normal((n, 200))
        table = coefficients(OneOfAll(draws[..., None]))
        inside.append(table["spread_lower"][0] < own < table["spread_upper"][0])
    assert 0.92 <= np.mean(inside) <= 0.99


def test_a_spread_of_which_answers_say_nothing_may_be_anything():
    alone = coefficients(OneOfAll(RNG.standard_normal((1, 200, 1))))  # one function for all
    assert [alone[name][0] for name in ("spread", "spread_lower", "spread_upper")] == [0.0, 0.0, 0.0]
    table = coefficients(OneOfAll(RNG.permuted(np.tile(RNG.standard_normal((1, 200, 1)), (5, 1, 1)), axis=1)))
    assert 0.0 <= table["spread_lower"][0] < 1e-3 * table["spread"][0]
    assert table["spread_upper"][0] > 1e3 * table["spread"][0]


def test_importances_are_shares_of_the_range():
    table = importances(Given([[[-1.0, 2.0, -2.0]], [[-1.0, 0.5, -0.5]]]))
    np.testing.assert_allclose(table["importance"], [(3 / 7 + 3 / 4) / 2, (4 / 7 + 1 / 4) / 2], atol=EXACT)
    np.testing.assert_allclose(table["spread"], (3 / 4 - 3 / 7) / 2, atol=EXACT)
    assert np.isfinite(importances(Given([[[0.0, 0.0, 0.0]]]))["importance"]).all()


KNOWN = np.random.default_rng(2).normal([-1.0, 0.8], [0.6, 0.5], size=(60, 2))  # people whose coefficients are known
CERTAIN = Given(np.repeat(np.column_stack([KNOWN, -KNOWN[:, 1]])[:, None], 4000, axis=1))


def test_of_a_population_averages_are_as_unsure_as_a_sample_of_people():
    """Of draws that agree nothing is left but the bootstrap, whose variance is the sample's over U + 1."""
    table, same = importances(CERTAIN), importances(CERTAIN, "respondents")
    assert table["of"] == ["population"] * 2
    assert same["of"] == ["respondents"] * 2
    np.testing.assert_allclose(same["upper"], same["lower"], atol=EXACT)
    np.testing.assert_array_equal(same["importance"], table["importance"])
    np.testing.assert_array_equal(same["spread"], table["spread"])
    sd = table["spread"] / np.sqrt(61)
    np.testing.assert_allclose((table["upper"] - table["lower"]) / 3.92, sd, rtol=0.05)  # of 4 000 draws
    np.testing.assert_allclose((table["upper"] + table["lower"]) / 2.0, table["importance"], atol=0.2 * sd[0])


def test_people_weigh_the_same_for_all_items_and_attributes():
    for lower, upper in ((one["lower"], one["upper"]) for one in (importances(SOME), importances(CERTAIN))):
        assert lower[0] + upper[1] == pytest.approx(1.0, abs=1e-3)  # of quantiles between draws
    for rule in RULES:
        _, lower, upper = market_shares(SOME, ROWS, rule)
        assert lower[0] + upper[1] == pytest.approx(1.0, abs=1e-3)


def test_the_same_seed_gives_the_same_bits():
    for made in (lambda seed: importances(SOME, seed=seed), lambda seed: market_shares(SOME, ROWS, "share", seed=seed)):
        one, again, other = (list(found.values()) if isinstance(found := made(k), dict) else found for k in (3, 3, 4))
        for column, same in zip(one, again, strict=True):
            np.testing.assert_array_equal(column, same)
        assert any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    with pytest.raises(ValueError, match="of must be one of 'population', 'respondents', not 'market'"):
        importances(SOME, "market")


@pytest.mark.parametrize("rule", RULES)
def test_an_interval_of_the_population_is_wider_and_both_are_around_one_share(rule):
    c = KNOWN[:, None] + 0.3 * np.random.default_rng(3).standard_normal((60, 400, 2))
    people = Given(np.concatenate([c, -c[..., 1:]], axis=2))
    found, alone = (market_shares(people, ROWS, rule, of) for of in ("population", "respondents"))
    np.testing.assert_array_equal(found[0], alone[0])
    assert ((found[2] - found[1]) > 1.2 * (alone[2] - alone[1])).all()
    for share, lower, upper in (found, alone):
        assert (lower >= 0.0).all()
        assert (lower <= share).all()
        assert (share <= upper).all()
        assert (upper <= 1.0).all()


def test_a_first_choice_is_as_unsure_as_what_is_best_in_the_draws():
    """Everybody's best item by mean utilities is one; in a quarter of the draws it is the other."""
    slopes = np.where(np.arange(400) % 4 == 0, 1.0, -1.0)
    unsure = Given([np.column_stack([np.roll(slopes, k), np.zeros((400, 2))]) for k in range(40)])
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    share, lower, upper = market_shares(unsure, rows, "first_choice")
    assert share.tolist() == [0.0, 1.0]
    ends = market_shares(unsure, rows, "randomised")[1:]
    np.testing.assert_array_equal([lower[0], upper[1]], [0.0, 1.0])
    np.testing.assert_array_equal([upper[0], lower[1]], [ends[1][0], ends[0][1]])


def test_willingness_is_quantiles_of_the_ratio():
    table = willingness_to_pay(SOME, "price", 2)
    ratio = -SOME.c[2][:, 1] / SOME.c[2][:, 0]
    np.testing.assert_allclose(
        [table[name][0] for name in ("median", "lower", "upper")], np.quantile(ratio, [0.5, 0.025, 0.975]), atol=EXACT
    )
    assert table["said"] == ["", ""]
    assert table["attribute"] == ["brand", "brand"]


def test_a_price_that_may_not_matter_has_no_bounds():
    c = SOME.c.copy()
    c[..., 0] = RNG.normal(-0.1, 0.2, size=c.shape[:2])
    table = willingness_to_pay(Given(c), "price", 0)
    assert np.isinf(table["lower"]).all()
    assert np.isinf(table["upper"]).all()
    assert "unbounded: price may matter not at all" in table["said"][0]
    c[..., 0] = 1.0
    assert "more price is better" in willingness_to_pay(Given(c), "price")["said"][0]
    with pytest.raises(DataError, match='"brand" is no attribute that is a number; these are: price'):
        willingness_to_pay(SOME, "brand")


def test_shares_by_rule():
    c = Given([[[-2.0, 0.5, -0.5], [-0.5, 0.5, -0.5]], [[-2.0, 3.0, -3.0], [-2.0, 3.0, -3.0]]])
    V = np.array([[-2.0 + 0.5 + 0.5, -0.5 + 0.5 + 0.5], [-2.0 + 6.0, -2.0 + 6.0]])  # a above b, by person and draw
    p = 1.0 / (1.0 + np.exp(-V))
    share, lower, upper = market_shares(c, ROWS, "share")
    np.testing.assert_allclose(share, [p.mean(), 1.0 - p.mean()], atol=EXACT)
    assert (lower < share).all()
    assert (share < upper).all()
    np.testing.assert_allclose(market_shares(c, ROWS, "randomised")[0], [0.75, 0.25], atol=EXACT)
    np.testing.assert_allclose(market_shares(c, ROWS, "first_choice")[0], [0.5, 0.5], atol=EXACT)  # -1 and .5 make -.25
    with pytest.raises(ValueError, match="rule must be one of"):
        market_shares(c, ROWS, "logit")


def test_what_is_equally_good_is_shared():
    even = Given([[[0.0, 0.0, 0.0]]])
    np.testing.assert_allclose(market_shares(even, ROWS, "first_choice")[0], [0.5, 0.5], atol=EXACT)


@pytest.mark.parametrize("rule", ["share", "randomised"])
@pytest.mark.parametrize("n_draws", [2, 10, 400])
def test_a_share_lies_in_its_interval(rule, n_draws):
    """A price of which nearly all draws say that nobody pays it, and one that all do."""
    slopes = RNG.normal(-5.0, 1.0, size=n_draws)
    slopes[0] = 1.0
    dear = Given([np.column_stack([slopes, np.zeros((n_draws, 2))])])
    rows = np.array([[40.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    share, lower, upper = market_shares(dear, rows, rule)
    assert abs(share.sum() - 1.0) < EXACT
    assert (lower < share).all()
    assert (share < upper).all()


def test_95_of_100_draws_are_in_the_interval_of_a_share():
    """As many parts of those below the mean as of those above it: of a symmetric one the quantiles."""
    p = RNG.beta(0.3, 3.0, size=4000)
    skewed = Given([np.column_stack([np.log(p / (1.0 - p)), np.zeros((4000, 2))])])
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    share, lower, upper = (float(one[0]) for one in market_shares(skewed, rows, "share"))
    inside = (lower <= p) & (p <= upper)
    for part in (p <= share, p > share):
        assert abs(inside[part].mean() - 0.95) < 1e-3
    even = Given([np.column_stack([np.linspace(-2.0, 2.0, 4001), np.zeros((4001, 2))])])
    ends = np.quantile(1.0 / (1.0 + np.exp(-np.linspace(-2.0, 2.0, 4001))), [0.025, 0.975])
    np.testing.assert_allclose([one[0] for one in market_shares(even, rows, "share")[1:]], ends, atol=1e-4)
