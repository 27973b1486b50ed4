"""Tie thresholds that depend on the items, pooled and personal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import entr
from test_graded_model import part

import simulate
from predilect import Comparisons, Population
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.inference.latent.pooled import first_thresholds
from predilect.inference.likelihoods.views import Probit
from predilect.inference.people.layout import lay_out
from predilect.models.population.fit import _without_each, fit_population
from predilect.models.population.pooled import spread_of_item_ties
from predilect.models.population.prior import Hyperparameters, PopulationPrior
from predilect.models.population.search.held_out import asked_of
from referees.information import bald_by_quadrature
from tolerances import CONVERGED, EXACT, STATISTICAL

FIXED = {"strength": 30.0, "variance": 0.5, "consensus_variance": 1.0, "calibration": None, "consistency": 0.0}
N_ITEMS, DELTA = 8, 0.5


def crowd(seed=0, n=6000, spread=0.6, n_users=60, taste=0.5):
    rng = np.random.default_rng(seed)
    psi = spread * rng.normal(size=N_ITEMS)
    f = rng.normal(size=N_ITEMS) + taste * rng.normal(size=(n_users, N_ITEMS))
    user, left = rng.integers(n_users, size=n), rng.integers(N_ITEMS, size=n)
    right = (left + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS
    seen = f[user, left] - f[user, right] + rng.normal(size=n)
    outcome = np.where(np.abs(seen) < DELTA * np.exp(0.5 * (psi[left] + psi[right])), 0, np.sign(seen)).astype(int)
    frame = {"user": user.tolist(), "left": left.tolist(), "right": right.tolist()}
    return frame, outcome, psi


def answers(frame, outcome):
    return Comparisons.from_frame(frame, outcome=outcome, reading={"side": False})


def model_of(personal, spread, **changes):
    settings = FIXED if personal else {"personal": False, "consensus_variance": 1.0}
    return Population(**settings, n_jobs=1, tie_threshold=("auto", 0.0, spread), **changes)


PAIRS = {
    "user": [0] * (N_ITEMS * N_ITEMS - N_ITEMS),
    "left": [i for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j],
    "right": [j for i in range(N_ITEMS) for j in range(N_ITEMS) if i != j],
}


@pytest.mark.slow
@pytest.mark.parametrize("personal", [True, False])
def test_factors_of_items_are_found(personal):
    frame, outcome, psi = crowd()
    model = model_of(personal, 0.6).fit(answers(frame, outcome))
    found = model.posterior_.thresholds.of_items
    assert np.corrcoef(found, psi)[0, 1] > 0.95
    np.testing.assert_allclose(found - found.mean(), psi - psi.mean(), atol=STATISTICAL * 0.08)
    assert any("Items tie differently" in line for line in model.describe())
    assert model.hyperparameters_.item_tie_spread == 0.6
    tie = model.predict_proba(PAIRS)[:, 1].reshape(N_ITEMS, N_ITEMS - 1)
    plain = model_of(personal, 0.0).fit(answers(frame, outcome)).predict_proba(PAIRS)[:, 1].reshape(tie.shape)
    assert (tie - plain).mean(axis=1)[psi.argmax()] > 0.03
    np.testing.assert_allclose(model.predict_proba(PAIRS).sum(axis=1), 1.0, rtol=EXACT)
    assert model.posterior_.thresholds.n_grades == 0


@pytest.mark.parametrize("personal", [True, False])
def test_without_a_spread_nothing_changes(personal):
    frame, outcome, _ = crowd(n=1500)
    same = model_of(personal, 0.0).fit(answers(frame, outcome))
    settings = FIXED if personal else {"personal": False, "consensus_variance": 1.0}
    pair = Population(**settings, n_jobs=1, tie_threshold=("auto", 0.0)).fit(answers(frame, outcome))
    np.testing.assert_array_equal(same.predict_proba(PAIRS), pair.predict_proba(PAIRS))
    assert same.posterior_.thresholds is None


@pytest.mark.parametrize("personal", [True, False])
def test_questions_know_that_a_tie_is_likelier_for_some_items(personal):
    frame, outcome, _ = crowd(n=1500)
    model = model_of(personal, 0.6).fit(answers(frame, outcome))
    user = 0 if personal else None
    asked = model.suggest(user, candidates=PAIRS, repeat=True)
    pairs = {name: asked[name].to_numpy() for name in ("left", "right")}
    mean, var = model.predict_margin(pairs | {"user": [0]})
    delta = model.tie_threshold_ * model.posterior_.thresholds.of_pairs(pairs["left"], pairs["right"])
    np.testing.assert_allclose(asked["score"], bald_by_quadrature(mean, var, delta[0]), atol=6e-5)
    if personal:
        each = model.suggest_each(PAIRS, repeat=True)
        np.testing.assert_allclose(each["score"], asked["score"], atol=EXACT)
    # The entropy of an answer is that of the probabilities shown beside it.
    asked = model.suggest(user, candidates=PAIRS, strategy="entropy", repeat=True)
    np.testing.assert_allclose(
        asked["score"], entr(asked.select("^p_.*$").to_numpy()).sum(axis=1) / np.log(2.0), atol=EXACT
    )


@pytest.mark.slow
def test_the_spread_is_found_by_the_evidence_and_none_where_items_tie_alike():
    frame, outcome, _ = crowd(taste=0.0)
    assert 0.3 < spread_of_item_ties(answers(frame, outcome)) < 1.0
    for seed in range(4):
        frame, outcome, _ = crowd(seed, spread=0.0, taste=0.0)
        assert spread_of_item_ties(answers(frame, outcome)) == 0.0


@pytest.mark.parametrize("personal", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_model_chooses_by_itself_and_predicts_better(personal):
    frame, outcome, _ = crowd(1, n=12_000, taste=0.5 * personal)
    half = np.arange(12_000) < 6000

    auto = Population(personal=personal).fit(answers(part(frame, half), outcome[half]))
    one = Population(personal=personal, tie_threshold=("auto", "auto", 0.0)).fit(
        answers(part(frame, half), outcome[half])
    )
    assert auto.hyperparameters_.item_tie_spread > 0.2
    assert len(auto._choices["tie_threshold"]) == 3
    assert one.hyperparameters_.item_tie_spread == 0.0
    y = outcome[~half]
    p, q = (m.predict_proba(part(frame, ~half))[np.arange(6000), 1 - y] for m in (auto, one))
    gain = np.log(p) - np.log(q)
    assert gain.mean() > 3.0 * gain.std() / np.sqrt(len(gain))


@pytest.mark.slow
def test_held_out_answers_are_judged_by_the_chances_that_the_model_predicts():
    frame, outcome, _ = crowd(n=1500)
    model = model_of(True, 0.6).fit(answers(frame, outcome))
    rows = model._log.comparisons
    asked = asked_of(rows, model.posterior_, rows.user, model.tie_threshold_, None)
    p = model.predict_log_proba(rows)[np.arange(rows.n_rows), 1 - rows.outcome]
    np.testing.assert_allclose(asked.log_proba(asked.var, 1.0, Probit)[0], p, rtol=CONVERGED)


@pytest.mark.slow
def test_graded_answers_and_items_that_tie_differently_go_together():
    rng = np.random.default_rng(5)
    frame, outcome, _ = crowd(n=4000)
    graded = outcome * rng.integers(1, 3, size=len(outcome))
    model = model_of(True, 0.5).fit(answers(frame, graded))
    assert model.grades_ == ("1", "2")
    assert len(model.posterior_.thresholds.of_items) == N_ITEMS
    assert np.isfinite(model.predict_proba(PAIRS)).all()


def test_a_bad_spread_is_refused():
    frame, outcome, _ = crowd(n=300)
    for bad in (("auto", 0.0, -1.0), ("auto", 0.0, "much"), ("auto", 0.0, 0.1, 0.2)):
        with pytest.raises((DataError, ValueError), match="tie_threshold"):
            Population(tie_threshold=bad).fit(answers(frame, outcome))


@pytest.mark.slow
@pytest.mark.parametrize("personal", [True, False])
def test_without_ties_items_have_no_factors(personal):
    frame, outcome, _ = crowd(n=600)
    signs = np.where(outcome == 0, 1, outcome)
    model = model_of(personal, 0.5).fit(answers(frame, signs))
    assert model.posterior_.thresholds is None
    graded = model_of(personal, 0.5).fit(answers(frame, signs * np.tile([1, 2], 300)))
    assert not len(graded.posterior_.thresholds.of_items)
    with pytest.raises(DataError, match="without ties"):
        graded.update(user=0, left=0, right=1, outcome=0)


@pytest.mark.slow
@pytest.mark.parametrize("personal", [True, False])
def test_a_threshold_that_is_given_stays_with_factors_of_items(personal):
    frame, outcome, _ = crowd(n=1500)
    settings = FIXED if personal else {"personal": False, "consensus_variance": 1.0}
    model = Population(**settings, n_jobs=1, tie_threshold=(0.4, 0.0, 0.5)).fit(answers(frame, outcome))
    assert model.tie_threshold_ == 0.4
    assert model.posterior_.thresholds.of_items.std() > 0.1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::predilect.errors.ConvergenceWarning")  # where nothing tells two items apart
def test_few_answers_and_a_flat_prior_leave_thresholds_finite(seed):
    """Of pairs that one answer alone is about, beside a covariate."""
    rng = np.random.default_rng(seed)
    n = 8
    left = rng.integers(0, N_ITEMS, n)
    right = (left + rng.integers(1, N_ITEMS, n)) % N_ITEMS
    frame = {"left": [f"i{k}" for k in left], "right": [f"i{k}" for k in right]}
    frame["winner"] = ["tie", "left", *rng.choice(["tie", "left", "right"], n - 2)]
    frame["length"] = rng.integers(-2, 3, n).tolist()
    model = Population(personal=False, consensus_variance=np.inf, tie_threshold=("auto", 0.4, 0.3), n_jobs=1)
    model.fit(frame, columns={"covariates": ["length"]})
    assert 0.0 < model.tie_threshold_ < np.inf
    assert np.isfinite(model.posterior_.thresholds.of_items).all()


def test_margins_without_an_answer_are_those_of_the_other_copies_of_it():
    """Against each person conditioned anew; people differ in consistency, in effects of a covariate, and may click."""
    rows = simulate.comparisons(simulate.crowd(5, 12, 6, 9, delta=0.4))
    rng = np.random.default_rng(0)
    rows = replace(
        rows, weight=rng.integers(1, 4, rows.n_rows).astype(float), covariates=rng.normal(size=(rows.n_rows, 1)),
        covariate_names=("x",),
    )  # fmt: skip
    prior = PopulationPrior.of(
        Hyperparameters(
            20.0, 2.0, 2.0, 0.0, 1.0, consistency_spread=0.5, tie_spread=0.3, click_rate=0.1, covariate_spread=(0.4,)
        ),
        FeatureSpace.empty(rows.n_items),
    )  # fmt: skip
    people = lay_out(rows, thresholds=first_thresholds(rows, None, 0.5))
    state = fit_population(people, prior, max_iter=20)
    found = _without_each(state, people, prior)
    posterior = state.posterior(people, prior)
    people, sites = posterior.people, posterior.sites
    np.testing.assert_array_equal(found.weight, people.weight * np.repeat(people.engaged, np.diff(people.answer_ptr)))
    for user in (0, 7):
        first = people.answer_ptr[user]
        own = slice(first, people.answer_ptr[user + 1])
        _, person = people.dense(user, posterior.law)
        for k in range(own.stop - own.start):
            copies = people.weight[own] - (np.arange(own.stop - own.start) == k)
            now = person.condition(copies * sites.precision[own], copies * sites.linear[own])
            offset = people.consistency[user] * people.offset[first + k]
            np.testing.assert_allclose(found.mean[first + k], now.mean[k] + offset, rtol=EXACT, atol=EXACT)
            np.testing.assert_allclose(found.var[first + k], now.var[k], rtol=EXACT)
