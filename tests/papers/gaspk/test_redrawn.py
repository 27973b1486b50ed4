"""How sure shares are: fits to people weighted anew, beside Laplace's covariance and fits to people drawn again."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect import GaSPK
from predilect.papers.gaspk.redrawn import redrawn
from simulate_trade_offs import linear_choices
from tolerances import EXACT

SETTINGS = {"variance": 10.0, "concentration": 1.0, "n_restarts": 1, "n_jobs": 1, "spread": 1.0}
MARKET = pl.DataFrame({"item": ["new", "old"], "price": [9.0, 4.0], "comfort": [3.0, 1.0], "fuel": ["gas", "oil"]})
TRADE_OFFS = {"price": [4.0, -6.0, 2.0], "comfort": [0.0, 1.0, 3.0], "fuel=gas": [1, 0, -1]}


@pytest.fixture(scope="module")
def alike():
    """One evaluation for all, of the people who are thrifty."""
    answers, items = linear_choices()
    thrifty = answers.filter(pl.col("user").str.slice(1).cast(int) % 2 == 0)
    return GaSPK(n_components=1, **SETTINGS).fit(thrifty.drop("user"), items=items)


@pytest.fixture(scope="module")
def kinds():
    answers, items = linear_choices(n_users=60, n_answers=20)
    return GaSPK(n_components=2, **SETTINGS).fit(answers, items=items)


def evaluations(model, t, n):
    """Draws of the first person's evaluations, (n, q)."""
    codes = np.arange(len(t))
    found = [
        one.posterior.evaluations(np.zeros(len(t), dtype=int), t, codes)
        for one in redrawn(model, model.posterior_, t, n)
    ]
    assert all(np.abs(var).max() < EXACT for _, var in found) or model.hyperparameters_.n_components > 1
    return np.array([mean for mean, _ in found])


@pytest.mark.slow
def test_where_people_are_alike_draws_have_the_covariance_of_the_posterior(alike):
    t = alike.trade_offs_.from_units(TRADE_OFFS)
    mean, covariance = alike.evaluation_distribution(TRADE_OFFS)
    draws = evaluations(alike, t, 400)
    sd = np.sqrt(np.diag(covariance))
    assert np.abs(draws.mean(axis=0) - mean).max() < 0.25 * sd.max()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.2)
    found, expected = np.corrcoef(draws.T), covariance / np.outer(sd, sd)
    assert np.abs(found - expected).max() < 0.2


@pytest.mark.slow
def test_far_from_all_answers_draws_are_those_of_the_prior(alike):
    t = 50.0 * alike.trade_offs_.from_units({"price": [5.0], "comfort": [1.0]})
    draws = evaluations(alike, t, 400)
    assert draws.std() == pytest.approx(np.sqrt(alike.posterior_.prior_variance), rel=0.15)
    assert abs(draws.mean()) < 0.2 * draws.std()


@pytest.mark.slow
def test_shares_have_intervals_of_the_respondents_and_wider_ones_of_the_population(kinds):
    market = ["new", "old"]
    of_all, of_these = (
        kinds.worth.simulate({"a": market, "b": ["new", "i00", "i01"]}, items=MARKET, of=of)
        for of in ("population", "respondents")
    )
    for table in (of_all, of_these):
        assert table["scenario"].to_list() == ["a"] * 2 + ["b"] * 3
        assert ((table["lower"] < table["share"]) & (table["share"] < table["upper"])).all()
    np.testing.assert_array_equal(of_all["share"], of_these["share"])
    width = [(table["upper"] - table["lower"]).to_numpy() for table in (of_all, of_these)]
    assert (width[0][:2] > width[1][:2]).all()
    again = kinds.worth.simulate(market, items=MARKET)
    # With other trade-offs asked about the draws are others, of the same distribution.
    assert again["upper"][0] - again["lower"][0] == pytest.approx(width[0][0], rel=0.4)
    assert again.equals(kinds.worth.simulate(market, items=MARKET))


@pytest.mark.slow
def test_intervals_are_as_wide_as_shares_differ_between_fits_to_people_drawn_again(kinds):
    answers, items = linear_choices(n_users=60, n_answers=20)
    told = kinds.worth.simulate(["new", "old"], items=MARKET)
    rng, people, shares = np.random.default_rng(0), answers["user"].unique(maintain_order=True), []
    for _ in range(20):
        drawn = rng.integers(len(people), size=len(people))
        parts = [
            answers.filter(user=people[k]).with_columns(user=pl.lit(f"q{i}")) for i, k in enumerate(drawn.tolist())
        ]
        model = GaSPK(n_components=2, **SETTINGS).fit(pl.concat(parts), items=items)
        shares.append(model.worth.simulate(["new", "old"], items=MARKET)["share"][0])
    half = 0.5 * (told["upper"][0] - told["lower"][0])
    assert 1.96 * np.std(shares, ddof=1) == pytest.approx(half, rel=0.5)
