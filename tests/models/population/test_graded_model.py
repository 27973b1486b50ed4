"""Population with graded answers, personal and pooled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect import Comparisons, Population
from predilect.errors import DataError
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge
from simulate import random_pairs
from tolerances import CONVERGED, EXACT

FIXED = {
    "strength": 30.0,
    "variance": 1.0,
    "consensus_variance": 1.0,
    "calibration": None,
    "consistency": 0.0,
    "clickers": 0.0,
    "n_jobs": 1,
}
MODELS = [FIXED | {"tie_threshold": ("auto", 0.0)}, {"personal": False, "consensus_variance": 1.0, "n_jobs": 1}]
CUTS = (0.3, 1.0, 2.0)


def crowd(seed=0, n_users=30, n=25, n_items=6, cuts=CUTS, tie_spread=0.0):
    """A frame and graded outcomes."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n_items) + 0.8 * rng.normal(size=(n_users, n_items))
    user = np.repeat(np.arange(n_users), n)
    left, right = random_pairs(rng, len(user), n_items)
    seen = f[user, left] - f[user, right] + rng.normal(size=len(user))
    seen /= np.exp(tie_spread * rng.normal(size=n_users))[user]
    outcome = (np.sign(seen) * np.searchsorted(cuts, np.abs(seen))).astype(int)
    return {"user": user.tolist(), "left": left.tolist(), "right": right.tolist()}, outcome


def part(frame, mask):
    """Some rows of a frame."""
    return {name: np.array(column)[mask].tolist() for name, column in frame.items()}


def answers(frame, outcome, columns=None, **reading):
    return Comparisons.from_frame(frame, outcome=outcome, columns=columns, reading={"side": False, **reading})


def queries(n_users=30, n_items=6):
    user, left = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    return {"user": user.tolist(), "left": left.tolist(), "right": ((left + 1) % n_items).tolist()}


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("cuts", [CUTS, (0.0, 0.8, 1.8)])
def test_cuts_are_learned_and_predictions_are_of_sides_and_ties(settings, cuts):
    frame, outcome = crowd(cuts=cuts)
    model = Population(**settings).fit(answers(frame, outcome))
    found = model.posterior_.thresholds.cuts
    assert model.tie_threshold_ == found[0]
    assert (found[0] > 0.0) == (cuts[0] > 0.0)
    if settings is MODELS[0]:
        np.testing.assert_allclose(found, cuts, rtol=0.15)
    p = model.predict_proba(queries())
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=EXACT)
    assert (p[:, 1] > 0.0).all() == (cuts[0] > 0.0)
    assert model.grades_ == ("1", "2", "3")
    assert any("Grades of answers" in line for line in model.describe())


@pytest.mark.parametrize("settings", MODELS)
def test_grades_given_as_signs_change_no_bit(settings):
    frame, outcome = crowd()
    signs = np.sign(outcome)
    plain = Population(**settings).fit(answers(frame, signs))
    one_grade = Population(**settings).fit(answers(frame, 2 * signs, grades=["1", "2"]))
    assert one_grade.grades_ == ()
    np.testing.assert_array_equal(plain.predict_proba(queries()), one_grade.predict_proba(queries()))
    sides = Population(**settings).fit(answers(frame, outcome).without_grades())
    np.testing.assert_array_equal(plain.predict_proba(queries()), sides.predict_proba(queries()))


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_answers_that_come_and_go_leave_the_model_as_it_was(settings):
    frame, outcome = crowd()
    model = Population(**settings, tol=1e-10).fit(answers(frame, outcome))
    before = model.predict_proba(queries())
    model.update(user=3, left=0, right=1, outcome=3)
    strong = model.predict_margin({"user": [3], "left": [0], "right": [1]})[0]
    model.forget(user=3, left=0, right=1, outcome=3)
    model.update(user=3, left=0, right=1, outcome=1)
    slight = model.predict_margin({"user": [3], "left": [0], "right": [1]})[0]
    model.forget(user=3, left=1, right=0, outcome=-1)
    assert strong > slight
    np.testing.assert_allclose(model.predict_proba(queries()), before, atol=CONVERGED)
    with pytest.raises(DataError, match="by grade 3"):
        model.forget(user=29, left=0, right=1, outcome=3, weight=50)
    with pytest.raises(DataError, match="a grade, one of"):
        model.update(user=3, left=0, right=1, outcome=4)


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_a_winner_without_a_grade_is_a_side(settings):
    frame, outcome = crowd()
    model = Population(**settings).fit(answers(frame, outcome))
    one, two = (Population(**settings).fit(answers(frame, outcome)) for _ in range(2))
    one.update(user=3, left=0, right=1, winner=0)
    two.update(user=3, left=0, right=1, outcome=1)
    ask = {"user": [3], "left": [0], "right": [1]}
    low, side, slight = (m.predict_margin(ask)[0] for m in (model, one, two))
    assert side > slight
    assert side > low
    assert (one.comparisons_.grade == 0).sum() > (model.comparisons_.grade == 0).sum()


@pytest.mark.slow
def test_people_have_thresholds_of_their_own_without_ties_too():
    frame, outcome = crowd(cuts=(0.0, 0.8, 1.8), tie_spread=0.8, n=60)
    model = Population(**FIXED, tie_threshold=("auto", 0.8)).fit(answers(frame, outcome))
    factors = model.posterior_.tie_factors(np.arange(30))
    slight = [np.mean(np.abs(outcome[np.array(frame["user"]) == u]) == 1) for u in range(30)]
    assert np.corrcoef(np.log(factors), slight)[0, 1] > 0.6
    assert model.tie_threshold_ == 0.0
    assert (model.predict_proba(queries())[:, 1] == 0.0).all()


def test_the_cuts_are_where_the_evidence_is_largest():
    """Of the same answers with sites run to convergence, other cuts have less."""
    frame, outcome = crowd()
    model = Population(**MODELS[0], tol=1e-9).fit(answers(frame, outcome))
    posterior = model.posterior_
    best = posterior.thresholds

    def evidence(cuts):
        here = replace(best, cuts=np.array(cuts))
        people = posterior.people.with_thresholds(here)
        return converge(people, Sites.flat(people.n_rows), posterior.law, here.scale, tolerance=1e-12).evidence

    at_best = evidence(best.cuts)
    for k in range(3):
        for step in (-0.05, 0.05):
            cuts = best.cuts.copy()
            cuts[k] *= 1.0 + step
            assert evidence(cuts) < at_best
    for k in range(3):  # the slope, too
        up, down = best.cuts.copy(), best.cuts.copy()
        up[k] *= 1.001
        down[k] /= 1.001
        assert abs(evidence(up) - evidence(down)) / 0.002 < 1.5


@pytest.mark.parametrize("settings", MODELS)
def test_half_of_the_answers_without_a_grade(settings):
    frame, outcome = crowd()
    names = np.array(
        ["right much", "right clearly", "right slightly", "tie", "left slightly", "left clearly", "left much"]
    )
    words = names[outcome + 3].tolist()
    words = [word.split()[0] if k % 2 else word for k, word in enumerate(words)]
    model = Population(**settings).fit(
        Comparisons.from_frame(frame | {"winner": words}, reading={"side": False, "answer_is": "side"})
    )
    assert model.grades_ == ("slightly better", "better", "much better")
    assert (model.comparisons_.grade == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"n_jobs": 1}, {"personal": False}])
def test_everything_is_chosen_on_graded_answers_too(settings):
    frame, outcome = crowd(n_users=25, n=14)
    model = Population(**settings).fit(answers(frame, outcome))
    assert model.report_["fit"]["converged"]
    assert np.isfinite(model.predict_proba(queries(25))).all()


@pytest.mark.slow
def test_grades_sharpen_predictions_of_sides():
    frame, outcome = crowd(3, n_users=60, n=60)
    known = np.arange(60 * 60) % 60 < 20

    asked, y = part(frame, ~known), np.sign(outcome[~known])
    loss = {}
    for name, values in (("grades", outcome[known]), ("signs", np.sign(outcome[known]))):
        p = Population(**MODELS[0]).fit(answers(part(frame, known), values)).predict_proba(asked)
        loss[name] = -np.log(p[np.arange(len(y)), 1 - y])
    gain = loss["signs"] - loss["grades"]
    assert gain.mean() > 2.0 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("cuts", [CUTS, (0.0, 0.8, 1.8)])
def test_probabilities_of_grades_add_up_to_sides_and_come_true(settings, cuts):
    frame, outcome = crowd(n_users=60, n=60, cuts=cuts)
    known = np.arange(60 * 60) % 60 < 40

    model = Population(**settings).fit(answers(part(frame, known), outcome[known]))
    grades, sides = model.predict_grades(part(frame, ~known)), model.predict_proba(part(frame, ~known))
    assert grades.shape == (1200, 7)
    np.testing.assert_allclose(grades[:, :3].sum(axis=1), sides[:, 0], rtol=1e-9)
    np.testing.assert_allclose(grades[:, 4:].sum(axis=1), sides[:, 2], rtol=1e-9)
    seen = np.bincount(3 - outcome[~known], minlength=7)
    expected = grades.sum(axis=0)
    assert (np.abs(seen - expected) < 4.5 * np.sqrt(expected + 1.0)).all()


@pytest.mark.slow
def test_agreement_with_the_crowd_is_of_sides():
    frame, outcome = crowd()
    graded, signs = (Population(**MODELS[0]).fit(answers(frame, y)).people() for y in (outcome, np.sign(outcome)))
    assert graded["ties"].to_list() == signs["ties"].to_list()
    assert 0.5 < graded["agreement"].mean() < 1.0
    assert abs(graded["agreement"].mean() - signs["agreement"].mean()) < 0.1
