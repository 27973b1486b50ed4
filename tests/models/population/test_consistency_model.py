"""People who differ in consistency: what a fitted model says of them, keeps of them, and predicts."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from predilect import Comparisons, Population
from predilect.errors import DataError
from predilect.evaluation import judge
from simulate import random_pairs
from tolerances import EXACT

GIVEN = {
    "strength": 1e4,
    "variance": 1e-4,
    "consensus_variance": 2.0,
    "calibration": None,
    "n_jobs": 1,
    "clickers": 0.0,
}


def crowd_of(seed: int, half_guess: bool, n: int = 40, per_person: int = 30, n_items: int = 8):
    """One order for all; half of the people nearly guess."""
    rng = np.random.default_rng(seed)
    a = np.where(half_guess & (np.arange(n) % 2 == 0), 0.15, 1.5)
    f, user = rng.standard_normal(n_items), np.repeat(np.arange(n), per_person)
    left, right = random_pairs(rng, len(user), n_items)
    z = a[user] * (f[left] - f[right]) + rng.standard_normal(len(user))
    return {"user": user, "left": left, "right": right}, np.where(z > 0, 1, -1), np.log(a), f


FRAME, OUTCOME, THETA, TRUE = crowd_of(0, True)


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    return Population(consistency=1.0, **GIVEN).fit(FRAME, OUTCOME)


def test_people_say_who_guesses(model):
    table = model.people()
    assert table["user"].to_list() == sorted(set(FRAME["user"].tolist()))
    log_a = np.log(table["consistency"].to_numpy())
    assert np.corrcoef(log_a, THETA)[0, 1] > 0.85
    assert (table["lower"] < table["consistency"]).all()
    assert (table["consistency"] < table["upper"]).all()
    assert table["n"].to_list() == [30.0] * 40
    assert table["agreement"].to_numpy()[1::2].mean() > table["agreement"].to_numpy()[::2].mean() + 0.15
    assert table["ties"].to_list() == [0.0] * 40
    said = "\n".join(model.describe())
    assert "People differ in how consistently they answer" in said
    assert "more than twice the usual noise" in said


def test_where_people_do_not_differ_nothing_is_said_of_it():
    model = Population(consistency=0.0, **GIVEN).fit(FRAME, OUTCOME)
    table = model.people()
    assert table["consistency"].to_list() == [1.0] * 40
    assert table["lower"].null_count() == 40
    assert "consistently" not in "\n".join(model.describe())


def test_a_pooled_model_knows_people_as_long_as_it_holds_who_answered(tmp_path):
    pooled = Population(personal=False).fit(FRAME, OUTCOME)
    assert pooled.people()["n"].to_list() == [30.0] * 40
    pooled.save(tmp_path / "model")
    for one in (
        Population.load(tmp_path / "model"),
        Population(personal=False).fit({k: FRAME[k] for k in ("left", "right")}, OUTCOME),
    ):
        with pytest.raises(DataError, match="pooled"):
            one.people()
        with pytest.raises(DataError, match="pooled"):
            pooled.top()


def test_answers_of_careful_people_are_easier_to_predict(model):
    asked = {"user": [0, 1, 99], "left": [int(np.argmax(TRUE))] * 3, "right": [int(np.argmin(TRUE))] * 3}
    with pytest.warns(UserWarning, match="without answers"):
        guess, careful, stranger = model.predict_proba(asked)[:, 0]
    assert 0.5 < guess < 0.75 < careful
    assert guess < stranger < careful


def test_an_update_leaves_the_consistency_of_the_fit(model):
    asked = {"user": [0, 1, 3], "left": [0, 1, 2], "right": [3, 4, 5]}
    expected, again = model.predict_proba(asked), copy.deepcopy(model)
    again.update(user=1, left=0, right=3, outcome=1).update(user=77, left=0, right=3, outcome=1)
    posterior = again.posterior_
    code = again.users_.code(1)
    assert posterior.consistencies(np.array([code]))[0] == model.posterior_.consistencies(np.array([code]))[0]
    a, sd = posterior.consistencies(np.array([40, -1]))  # who came, and who is not known
    assert (a.tolist(), sd.tolist()) == ([1.0 / model.hyperparameters_.unit] * 2, [1.0, 1.0])
    again.forget(user=1, left=0, right=3, outcome=1)
    np.testing.assert_array_equal(again.predict_proba(asked), expected)


def test_questions_to_who_guesses_tell_less(model):
    scores = [model.suggest(user)["score"][0] for user in (0, 1)]
    pool = {"user": [0, 1], "left": [0, 0], "right": [3, 3]}
    both = model.suggest_each(pool, repeat=True)["score"].to_list()
    each = [model.suggest(u, candidates={"left": [0], "right": [3]}, repeat=True)["score"][0] for u in (0, 1)]
    assert both == pytest.approx(each, abs=EXACT)
    assert scores[0] < scores[1]


def rankings_of_own(seed: int, n: int, n_items: int):
    """Complete rankings of people who share nothing and make no mistake, as pairs."""
    f = np.random.default_rng(seed).standard_normal((n, n_items))
    i, j = np.triu_indices(n_items, 1)
    frame = {"user": np.repeat(np.arange(n), len(i)), "left": np.tile(i, n), "right": np.tile(j, n)}
    return frame, np.where(f[:, i] > f[:, j], 1, -1).ravel()


@pytest.mark.slow
def test_one_ranking_that_knows_who_is_careful_stays_one_ranking():
    frame, outcome = rankings_of_own(0, 40, 12)
    settings = Population._of_one_mind | {"consistency": 2.0, "clickers": 0.0, "n_jobs": 1}
    model = Population(**settings).fit(frame, outcome)
    ahead = (model.predict_proba(frame)[:, 0] > 0.5).reshape(40, -1)
    assert (ahead == ahead[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("clickers", ["auto", 0.0])
def test_taste_is_not_called_care(clickers):
    frame, outcome = rankings_of_own(0, 40, 12)
    answers = Comparisons.from_frame(frame, outcome=outcome)
    verdict = judge(Population(n_jobs=1, clickers=clickers), answers)
    assert (verdict.personal.outcome, verdict.consistency) == ("better", None)
    pooled = judge(Population(n_jobs=1, consistency=0.0, clickers=0.0), answers)
    assert verdict.personal.baseline_log_loss == pooled.personal.baseline_log_loss


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_care_is_not_called_taste(seed):
    frame, outcome, _, _ = crowd_of(seed, True, 60, 40, 12)
    verdict = judge(Population(n_jobs=1), Comparisons.from_frame(frame, outcome=outcome))
    assert verdict.personal.outcome == "nothing"
    assert verdict.consistency.outcome == "better"
    assert verdict.favours == "personal"
    assert verdict.sentences[0] == "People differ in consistency, not in taste."
    frame, outcome, _, _ = crowd_of(seed, False, 60, 40, 12)
    alike = judge(Population(n_jobs=1), Comparisons.from_frame(frame, outcome=outcome))
    assert (alike.personal.outcome, alike.only_consistency, alike.favours) == ("nothing", False, "pooled")
