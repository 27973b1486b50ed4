"""The verdict: its words, and how a model keeps and saves it."""

from __future__ import annotations

import json

import pytest

from predilect import Population
from predilect.errors import DataError
from predilect.evaluation import Contest, Verdict, judge
from predilect.evaluation.verdict import SMALLEST_GAIN, judged, outcome_of
from simulate import comparisons
from simulate_camps import FIXED, camps


@pytest.fixture(scope="module")
def divided() -> Verdict:
    return judge(Population(**FIXED), comparisons(camps(0, delta=0.4)))


# Words


@pytest.mark.parametrize(
    ("gain", "lower", "upper", "outcome"),
    [
        (0.02, 0.01, 0.03, "better"),
        (-0.02, -0.03, -0.01, "worse"),
        (0.02, -0.01, 0.05, "nothing"),
        (0.002, 0.001, 0.003, "nothing"),
        (-0.002, -0.003, -0.001, "nothing"),
        (SMALLEST_GAIN, 0.001, 0.009, "better"),
    ],
)
def test_the_word(gain, lower, upper, outcome):
    assert outcome_of(gain, lower, upper) == outcome


@pytest.mark.parametrize(
    ("gain", "lower", "upper", "said"),
    [
        (0.05, 0.02, 0.09, "0.400 with personal rankings and 0.450 with one ranking for all: lower by 0.050 nats an "
         "answer (95 % interval 0.020 to 0.090). What people answered was given a 5.1 % higher probability"),
        (-0.05, -0.09, -0.02, "higher by 0.050 nats an answer (95 % interval 0.020 to 0.090). What people answered was "
         "given a 4.9 % lower probability"),
        (-0.001, -0.004, 0.002, "higher by 0.001 nats an answer (95 % interval -0.002 to 0.004). That is within "
         "chance."),
        (0.02, -0.02, 0.06, "lower by 0.020 nats an answer (95 % interval -0.020 to 0.060). That is within chance, "
         "though there may be a gain worth having"),
        (0.002, 0.001, 0.003, "more than chance, but too little to matter"),
    ],
)  # fmt: skip
def test_the_sentence(gain, lower, upper, said):
    contest = Contest(
        "personal", outcome_of(gain, lower, upper), "", log_loss=0.4, baseline_log_loss=0.4 + gain, accuracy=0.7,
        baseline_accuracy=0.6, gain=gain, lower=lower, upper=upper, n_people=50, n_answers=600.0, n_folds=5,
    )  # fmt: skip
    sentence = judged(contest, 50, 50).sentence
    assert said in sentence
    assert "over 600 held-out answers of 50 people the log loss" in sentence


# Keeping and saving


@pytest.mark.slow
def test_a_model_keeps_its_verdict_until_other_settings_or_another_fit(monkeypatch):
    data = comparisons(camps(0))
    model = Population(**FIXED).fit(data)
    assert model.verdict_ is None
    verdict = model.verdict(n_folds=3)
    assert model.verdict_ is verdict
    assert verdict.settings == {"n_folds": 3, "max_people": 2000, "n_bootstrap": 2000, "random_state": 0}
    assert model.verdict(n_folds=3) is verdict
    assert model.verdict(n_folds=2) is not verdict
    assert model.fit(data).verdict_ is None
    assert "verdict" not in model.report_


@pytest.mark.slow
def test_it_does_not_depend_on_which_of_the_two_was_fitted():
    data = comparisons(camps(0))
    one, other = (Population(personal=own, **FIXED).fit(data).verdict() for own in (True, False))
    assert one == other


@pytest.fixture(scope="module")
def fitted() -> Population:
    """Not to be changed but by its verdict."""
    return Population(**FIXED).fit(comparisons(camps(0, delta=0.4)))


@pytest.fixture(scope="module")
def without_verdict(tmp_path_factory, fitted):
    folder = tmp_path_factory.mktemp("verdict") / "without"
    fitted.save(folder)
    return folder


def test_it_is_saved_with_the_model_and_loaded(tmp_path, without_verdict, fitted):
    verdict = fitted.verdict()
    fitted.save(tmp_path / "with")
    loaded = Population.load(tmp_path / "with")
    assert loaded.verdict_ == verdict
    assert loaded.verdict() == verdict
    with pytest.raises(DataError, match="no answers to hold out, and it holds one for other settings"):
        loaded.verdict(n_folds=2)
    bare = Population.load(without_verdict)
    assert bare.verdict_ is None
    with pytest.raises(DataError, match="Fit again"):
        bare.verdict()
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again/model.json").read_bytes() == (tmp_path / "with/model.json").read_bytes()


@pytest.mark.parametrize("change", [{"personal": None}, {"ties": 3}, {"notes": None}])
def test_a_damaged_verdict_makes_a_damaged_model(tmp_path, change, without_verdict, fitted):
    fitted.verdict()
    fitted.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    document = json.loads(file.read_text())
    document["report"]["verdict"].update(change)
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match="damaged model"):
        Population.load(tmp_path / "model")


def test_progress_is_told():
    told: list[str] = []
    Population(**FIXED).fit(comparisons(camps(0))).verdict(watch=lambda stage, _: told.append(stage))
    assert "held-out answers: personal rankings, part 1 of 5" in told
    assert "held-out answers: one ranking for all, part 1 of 5" in told


# Reliability


def test_every_held_out_answer_is_in_the_reliability_and_it_is_saved(divided):
    found = divided.reliability
    # Each of left, tie and right of every held-out answer is in a bin; bins of one person are left out.
    n = 3 * divided.personal.n_answers
    assert 0.98 * n <= sum(one.n for one in found) <= n
    assert [one.predicted for one in found] == sorted(one.predicted for one in found)
    assert abs(sum(one.n * one.observed for one in found) - divided.personal.n_answers) <= 0.02 * n
    assert Verdict.from_dict(json.loads(json.dumps(divided.to_dict()))).reliability == found


def test_a_verdict_that_was_saved_without_reliability_is_read(divided):
    values = json.loads(json.dumps(divided.to_dict()))
    del values["reliability"]
    assert Verdict.from_dict(values).reliability == ()
