"""Intervals of effects of covariates: what is not known of how people differ widens them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks import coverage
from predilect import Comparisons, Population
from predilect.inference.people.layout import lay_out
from predilect.models.population import effects, train
from predilect.models.population.effects import _Refits
from predilect.models.population.fit import fit_population
from predilect.models.population.prior import PopulationPrior
from simulate import random_pairs
from tolerances import EXACT, ITERATIVE

N_ITEMS = 6
QUICK = {
    "strength": 30.0,
    "consistency": 0.0,
    "clickers": 0.0,
    "calibration": None,
    "n_jobs": 1,
}  # and a scale to learn


def crowd(seed, n_users=30, n=12, effect=0.6, spread=0.3, taste=0.5):
    """Answers of people with a covariate of alternatives."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(N_ITEMS) + taste * rng.standard_normal((n_users, N_ITEMS))
    own = effect + spread * rng.standard_normal(n_users)
    user = np.repeat(np.arange(n_users), n)
    left, right = random_pairs(rng, len(user), N_ITEMS)
    x = rng.standard_normal((2, len(user)))
    z = f[user, left] - f[user, right] + own[user] * (x[0] - x[1]) + rng.standard_normal(len(user))
    columns = {"user": user, "left": left, "right": right, "winner": np.where(z > 0, left, right)}
    columns |= {"x_left": x[0], "x_right": x[1]}
    return Comparisons.from_frame(
        {name: column.tolist() for name, column in columns.items()}, columns={"covariates": ["x"]}
    )


def row(model):
    return model.covariates().to_dicts()[0]


@pytest.mark.slow
def test_the_interval_is_wider_and_all_else_as_it_was(monkeypatch):
    answers = crowd(0)
    wide = Population(**QUICK).fit(answers)
    monkeypatch.setattr(train, "with_unsure_tastes", lambda posterior, *_: posterior)
    narrow = Population(**QUICK).fit(answers)
    one, other = row(wide), row(narrow)
    assert one["effect"] == other["effect"]
    assert one["sd"] > 1.02 * other["sd"]
    assert one["sd"] < 3.0 * other["sd"]
    assert wide.utilities()["mean"].to_list() == narrow.utilities()["mean"].to_list()


def test_a_scale_that_is_given_is_known():
    given = {"strength": 60.0, "variance": 0.3, "consistency": 0.0, "calibration": None, "n_jobs": 1}
    model = Population(**given).fit(crowd(1))
    posterior = model.posterior_
    prior = PopulationPrior.of(model.hyperparameters_, model._space)
    state = fit_population(posterior.people, prior)
    expected = np.sqrt(state.C_gamma[0, 0]) / posterior.covariates.scale[0]
    assert row(model)["sd"] == pytest.approx(expected, rel=1e-4)


@pytest.fixture
def refits():
    answers = crowd(2)
    prior = PopulationPrior(np.eye(N_ITEMS), 20.0, 0.3, 1.0)
    people = lay_out(answers)
    return _Refits(people, prior, fit_population(people, prior))


def test_refits_hold_the_covariance_at_its_multiple(refits):
    state = refits.fit(refits.start, 2.0, np.array([0.4]), 1.0)
    np.testing.assert_allclose(state.Sigma, 2.0 * refits.prior.K, atol=1e-3)
    assert state.covariate_spread == (0.4,)
    # The larger what is noise to an effect, the larger the effect in units of what is left.
    assert state.gamma[0] > refits.start.gamma[0]


def test_one_value_of_everything_leaves_the_variance(refits, monkeypatch):
    monkeypatch.setattr(effects, "_FEW_LOG_SCALES", np.zeros(1))
    monkeypatch.setattr(effects, "_SPREADS", np.zeros(1))
    monkeypatch.setattr(effects, "_WEIGHTS", np.ones(1))
    assert refits.growth(0) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_of_many_people_some_say_by_how_much(monkeypatch):
    answers = crowd(3, n_users=40)
    every = row(Population(**QUICK).fit(answers))["sd"]
    monkeypatch.setattr(effects, "MOST_PEOPLE", 30)
    some = row(Population(**QUICK).fit(answers))["sd"]
    assert some == pytest.approx(every, rel=0.5)
    assert abs(some - every) > EXACT


@pytest.mark.slow
def test_names_of_people_say_nothing_of_who_is_asked(monkeypatch):
    monkeypatch.setattr(effects, "MOST_PEOPLE", 20)
    answers = crowd(4, n_users=40)
    frame = answers.to_frame()
    other = frame.with_columns(pl.col("user").replace_strict(dict(zip(range(40), [*range(80, 40, -1)], strict=True))))
    found = [
        Population(**QUICK).fit(Comparisons.from_frame(one, columns={"covariates": ["x"]})) for one in (frame, other)
    ]
    assert row(found[0])["sd"] == pytest.approx(row(found[1])["sd"], rel=ITERATIVE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_intervals_hold_the_effect_in_choices_of_sets():
    studies = [(spread, seed) for seed in range(1000, 1008) for spread in (0.0, 0.4)]
    records = [one for study in studies for one in coverage.covariates("choices of three", *study)]
    holds, error, _ = coverage.coverage(records, "effect")
    assert holds > 0.93 - 2 * max(error, 0.05), (holds, error)
