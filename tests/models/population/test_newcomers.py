"""People whom the population was learned without: a calibration of their own, and who they are."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
import pytest

import predilect
from predilect import Calibration, Population
from predilect.data.features import FeatureSpace
from predilect.inference.likelihoods.calibration import restored_calibration
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.inference.people.layout import lay_out
from predilect.inference.people.queries import NEWCOMER
from predilect.models.population.fit import fit_population
from predilect.models.population.prior import Hyperparameters, PopulationPrior
from predilect.models.population.search import held_out as module
from predilect.models.population.search.calibration import newcomer_factor
from predilect.models.population.search.held_out import STEPS, HeldOut, predict_newcomers
from simulate import comparisons, crowd
from tolerances import EXACT

GIVEN = {
    "strength": 10.0,
    "variance": 1.0,
    "consensus_variance": 2.0,
    "tie_threshold": ("auto", 0.0),
    "consistency": 0.0,
    "n_jobs": 1,
}
FACTOR = 3.0
ROWS = comparisons(crowd(3, 24, 6, 14))


def raters(rng, n_people: int, common, name: str, n_answers: int = 15) -> dict[str, list]:
    """Answers by ratings on five levels, which contradict each other never: what a person's answers leave open is
    easier to predict than a Gaussian has it, what is not known of a stranger is not.
    """
    rows = []
    for person in range(n_people):
        rating = np.clip(np.rint(3.7 + common + 0.9 * rng.standard_normal(len(common))), 1, 5)
        pairs = [(a, b) for a in range(len(common)) for b in range(a) if rating[a] != rating[b]]
        for a, b in rng.permutation(pairs)[:n_answers]:
            rows.append((f"{name}{person:03d}", f"i{a}", f"i{b}", 1 if rating[a] > rating[b] else -1))
    return dict(zip(("user", "left", "right", "outcome"), map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.slow
def test_a_strangers_probability_is_not_overconfident():
    # By how much log loss exceeds what the probabilities expect of it, over five crowds; one alone may be off by .07.
    over, over_as_known, gains = [], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        common = 0.4 * rng.standard_normal(10)
        model = Population(n_jobs=1).fit(raters(rng, 150, common, "p"), reading={"positive": "left"})
        others = raters(rng, 400, common, "q")
        outcome = np.array(others.pop("outcome"))
        with pytest.warns(predilect.errors.DataWarning, match="without answers"):
            log_p = model.predict_log_proba(others)
        log_p = log_p[np.arange(len(outcome)), 1 - outcome]
        found = model.hyperparameters_.calibration
        assert found.newcomer_factor > 1.2
        with pytest.warns(predilect.errors.DataWarning, match="without answers"):
            margins = model.predict_margin(others)
        loss, expected = stated(found, *margins, outcome)
        assert loss == pytest.approx(-log_p.mean())
        over.append(loss - expected)
        # calibrated for people with answers, and for them alone
        loss_as_known, expected = stated(replace(found, newcomer_factor=1.0), *margins, outcome)
        over_as_known.append(loss_as_known - expected)
        gains.append(loss_as_known - loss)
    assert np.mean(over) < 0.04
    assert np.mean(over_as_known) > 0.1
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.02


def stated(calibration, mean, var, outcome) -> tuple[float, float]:
    """Log loss of strangers, and what the probabilities themselves expect of it."""
    log_p = calibration.outcome_log_proba(mean, var, 0.0, 1.0, None, np.full(len(mean), 2 + NEWCOMER))
    strict = log_p[:, [0, 2]]
    return -log_p[np.arange(len(outcome)), 1 - outcome].mean(), -(np.exp(strict) * strict).sum(axis=1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_the_factor_of_simulated_newcomers_is_found_and_a_handful_leaves_it_at_one(factor):
    rng, n = np.random.default_rng(2), 20_000
    given = Calibration(0.5, 1.2, lapse_rate=0.02)
    truth = replace(given, newcomer_factor=factor)
    mean, var = 1.5 * rng.standard_normal(n), rng.uniform(0.5, 3.0, n)
    kind = rng.integers(4, size=n) + NEWCOMER
    chances = sum(
        share * outcome_probabilities(mean, v + noise - 1.0, 0.5) for share, v, noise in truth.components(var, kind)
    )
    u = rng.random(n)
    outcome = (1 - (u > chances[:, 0]).astype(int) - (u > chances[:, :2].sum(axis=1)).astype(int)).astype(np.int8)
    rows = HeldOut(outcome, mean, var, np.ones(n), np.full(n, 0.5), kind)
    found = newcomer_factor(given, [rows])
    assert abs(math.log(found / factor)) < 0.15
    # Several steps on the same answers know no more than one.
    assert abs(math.log(newcomer_factor(given, [rows] * 4) / found)) < 2e-3
    few = HeldOut(*(column[:3] for column in rows[:6]))
    assert abs(math.log(newcomer_factor(given, [few]))) < 0.05


def test_the_factor_is_for_whom_the_population_was_learned_without_and_moves_probabilities_only(tmp_path):
    model = Population(**GIVEN, calibration=Calibration(0.7, newcomer_factor=FACTOR)).fit(ROWS)
    plain = Population(**GIVEN, calibration=Calibration(0.7)).fit(ROWS)
    for one in (model, plain):
        one.update(user=-3, left=0, right=1, outcome=1)  # before all others in order
        one.update(user=5, left=0, right=5, outcome=1)
    asked = {"user": [-3, 0, 5, 23], "left": [0, 2, 1, 4], "right": [3, 4, 2, 5]}
    mean, var = model.predict_margin(asked)
    for one, other in zip((mean, var), plain.predict_margin(asked), strict=True):
        np.testing.assert_array_equal(one, other)
    expected = outcome_probabilities(mean, 0.7 * np.array([FACTOR, 1.0, 1.0, 1.0]) * var, 0.0)
    model.save(tmp_path / "before")
    for there in (model, model._consolidate(), Population.load(tmp_path / "before")):
        np.testing.assert_allclose(there.predict_proba(asked), expected, atol=EXACT)
    again = Population.load(tmp_path / "before")
    again.update(user=-2, left=0, right=1, outcome=1)._consolidate()
    assert again.posterior_.are_newcomers(np.array([-1, 0, 1, 2])).tolist() == [True, True, True, False]
    small = again.compress(6, precision="double")
    np.testing.assert_allclose(small.predict_proba(asked), expected, atol=EXACT)
    small.save(tmp_path / "small")
    np.testing.assert_array_equal(predilect.load(tmp_path / "small").predict_proba(asked), small.predict_proba(asked))
    refitted = Population(**model.get_params()).fit(model.comparisons_)
    assert not refitted.posterior_.are_newcomers(np.arange(25)).any()


def test_somebody_without_answers_is_a_newcomer():
    model = Population(**GIVEN, calibration=Calibration(newcomer_factor=FACTOR)).fit(ROWS)
    own = ROWS.take(ROWS.user == 4)
    model.forget(own)
    asked = {"user": [4, 5], "left": [0, 0], "right": [3, 3]}
    mean, var, proba = model._predict_margin_and_proba(asked)
    np.testing.assert_allclose(proba, outcome_probabilities(mean, np.array([FACTOR, 1.0]) * var, 0.0), atol=EXACT)
    model.update(own)
    mean, var, proba = model._predict_margin_and_proba(asked)
    np.testing.assert_allclose(proba, outcome_probabilities(mean, var, 0.0), atol=EXACT)


@pytest.mark.parametrize("tasks", [False, True])
def test_newcomers_are_predicted_from_their_known_answers_by_a_population_that_never_saw_them(tasks, monkeypatch):
    monkeypatch.setattr(module, "_SITE_TOLERANCE", 1e-12)
    rows = replace(ROWS, task=(np.arange(ROWS.n_rows) // 2).astype(np.int32)) if tasks else ROWS
    left_out = np.arange(rows.n_users) % 4 == 1
    prior = PopulationPrior.of(Hyperparameters(10.0, 1.0, 2.0, 0.0, 1.0), FeatureSpace.empty(rows.n_items))
    people = lay_out(rows.take(~left_out[rows.user]))
    posterior = fit_population(people, prior).posterior(people, prior)
    found = predict_newcomers(rows, left_out, posterior, 0.0, rng=np.random.default_rng(0))
    assert len(found) == len(STEPS)
    for step in found[1:]:
        np.testing.assert_array_equal(step.outcome, found[0].outcome)
    assert (found[0].kind == 2 + NEWCOMER).all()
    assert 1 + NEWCOMER in found[1].kind
    assert NEWCOMER in found[-1].kind
    assert all((step.kind >= NEWCOMER).all() for step in found)
    # With nothing known: the population's prediction. Then less and less is open.
    asked = [row for row in range(rows.n_rows) if left_out[rows.user[row]]]
    mean, var = posterior.margins(np.full(len(asked), -1), rows.left[asked], rows.right[asked])
    at = {(round(m, 9), round(v, 9)) for m, v in zip(mean, var, strict=True)}
    assert {(round(m, 9), round(v, 9)) for m, v in zip(found[0].mean, found[0].var, strict=True)} <= at
    assert [step.var.mean() for step in found] == sorted((step.var.mean() for step in found), reverse=True)


def test_a_calibration_of_before_has_no_factor_for_newcomers():
    values = asdict(Calibration(0.7))
    assert values.pop("newcomer_factor") == 1.0
    assert restored_calibration(values) == Calibration(0.7)


@pytest.mark.slow
def test_where_few_people_could_be_left_out_newcomers_are_as_others():
    rng = np.random.default_rng(0)
    model = Population(n_jobs=1).fit(
        raters(rng, 7, 0.4 * rng.standard_normal(10), "p", n_answers=40), reading={"positive": "left"}
    )
    found = model.hyperparameters_.calibration
    assert found.variance_factor < 0.5
    assert found.newcomer_factor == 1.0
