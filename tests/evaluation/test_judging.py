"""Comparison of models by held-out answers: what is compared, in which folds, and when nothing can be judged."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from predilect import Calibration, Comparisons, Population
from predilect.data import ItemFeatures, k_folds_answers
from predilect.data.content import keys_of_answers
from predilect.errors import ConvergenceWarning, DataError
from predilect.evaluation import Verdict, answer_losses, judge
from predilect.evaluation import judging as held_out
from simulate import answers, comparisons, crowd, random_pairs
from simulate_camps import FIXED, agreeing, camps
from tolerances import EXACT


@pytest.fixture(scope="module")
def divided() -> Verdict:
    return judge(Population(**FIXED), comparisons(camps(0, delta=0.4)))


# What is compared


def test_camps_are_better_ranked_one_by_one_and_all_numbers_fit(divided):
    personal = divided.personal
    assert (personal.question, personal.outcome, divided.favours) == ("personal", "better", "personal")
    assert 0.0 < personal.lower < personal.gain < personal.upper
    assert abs(personal.gain - (personal.baseline_log_loss - personal.log_loss)) < EXACT
    assert personal.accuracy > personal.baseline_accuracy
    assert (personal.n_people, personal.n_answers, personal.n_folds) == (40, 480.0, 5)
    # Half of the people want the opposite of the others: one ranking for all knows nothing.
    assert personal.baseline_log_loss > 0.95 * np.log(2)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", [Calibration(0.6), "auto"])
def test_the_losses_are_those_of_fits_to_the_rest_of_the_answers(calibration):
    data = comparisons(camps(3))
    fixed = FIXED | {"tol": 1e-4, "calibration": calibration}
    fold = k_folds_answers(data, 5, random_state=np.random.SeedSequence(7).spawn(3)[0], keys=keys_of_answers(data))
    verdict = judge(Population(**fixed), data, random_state=7)
    for own, said in ((True, verdict.personal.log_loss), (False, verdict.personal.baseline_log_loss)):
        losses = np.empty(data.n_rows)
        setting = dict(fixed)
        for k in range(5):
            # There is nothing to choose but the calibration: that of the first fold holds for all.
            model = Population(personal=own, **setting).fit(data.take(fold != k))
            setting["calibration"] = model.hyperparameters_.calibration
            asked = data.take(fold == k)
            with np.errstate(divide="ignore"):
                losses[fold == k] = answer_losses(asked.outcome, np.log(model.predict_proba(asked)))
        assert abs(np.average(losses, weights=data.weight) - said) < EXACT
        # Nothing chooses one for the pooled model.
        expected = calibration if calibration != "auto" else None if own else Calibration()
        assert expected is None or setting["calibration"] == expected
        learned = setting["calibration"].variance_factor, setting["calibration"].omitted_ties
        assert learned != (1.0, 0.0) or not own


@pytest.mark.slow
def test_a_prior_that_takes_people_for_all_different_is_worse_where_they_agree():
    stubborn = Population(strength=1e4, variance=30.0, consistency=0.0, n_jobs=1)
    verdict = judge(stubborn, comparisons(agreeing(1)))
    assert (verdict.personal.outcome, verdict.favours) == ("worse", "pooled")
    assert verdict.personal.lower < verdict.personal.gain < verdict.personal.upper < 0.0
    assert "higher by" in verdict.personal.sentence


@pytest.mark.slow
def test_where_people_agree_there_is_nothing_in_it():
    verdict = judge(Population(n_jobs=1), comparisons(agreeing(1)))
    assert (verdict.personal.outcome, verdict.favours) == ("nothing", "pooled")
    assert abs(verdict.personal.gain) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_settings_of_the_fit_are_kept_unless_a_stronger_prior_does_better(kept, monkeypatch):
    answers = comparisons(camps(0))
    trial = held_out.JudgingFolds(answers, k_folds_answers(answers, 5, random_state=1), 0.0, None)
    free = Population(**FIXED | {"strength": "auto"})
    model = Population(**FIXED).fit(answers)
    tried = []
    monkeypatch.setattr(held_out, "_is_better", lambda *of: tried.append(of[0].strength / of[1].strength) or not kept)
    found = trial.run("known", free, None, known=model.hyperparameters_.to_dict() | model._choices)
    assert tried == [pytest.approx(math.sqrt(10.0))]  # once, on the first fold
    np.testing.assert_array_equal(found, trial.run("other", Population(**FIXED) if kept else free, None))


def test_many_new_items_are_told_from_few_and_from_items_that_recur():
    for n_items, n_answers, new in ((400, 700, True), (400, 1600, False), (290, 300, False)):
        row = np.arange(n_answers)
        left, right = row % n_items, (row + 1 + row // n_items) % n_items
        columns = {"user": row % 40, "left": left, "right": right}
        rows = Comparisons.from_frame(columns, outcome=np.ones(n_answers), reading={"task": "none"})
        assert held_out.JudgingFolds(rows, k_folds_answers(rows, 5), 0.0, None).items_are_new == new


@pytest.mark.slow
def test_ties_by_closeness_and_ties_by_chance():
    assert judge(Population(**FIXED), comparisons(crowd(2, 60, 6, 20, delta=0.5))).ties.outcome == "better"
    rows = crowd(2, 60, 6, 20, consensus_sd=2.0)
    rows.outcome = np.where(np.random.default_rng(0).random(rows.n_rows) < 0.3, 0, rows.outcome)
    by_chance = judge(Population(**FIXED), comparisons(rows)).ties
    assert by_chance.outcome == "worse"
    assert by_chance.gain < 0.0
    assert judge(Population(**FIXED), comparisons(camps(1))).ties is None


def test_the_share_of_ties_is_that_of_the_training_answers_and_preferences_stay():
    data = comparisons(camps(0, delta=0.4))
    trial = held_out.JudgingFolds(data, k_folds_answers(data, 5), 0.4, None)
    model = trial.run("personal rankings", Population(**FIXED), None)
    same_share = trial.tied_at_random(model)
    np.testing.assert_allclose(np.exp(same_share[:, :3]).sum(axis=1), 1.0, atol=EXACT)
    np.testing.assert_allclose(same_share[:, 0] - same_share[:, 2], model[:, 0] - model[:, 2], atol=EXACT)
    shares = np.unique(np.round(np.exp(same_share[:, 1]), 12))
    assert len(shares) <= 5
    assert np.abs(shares - np.average(data.outcome == 0, weights=data.weight)).max() < 0.03


def one_feature_that_says_everything() -> tuple[Comparisons, np.ndarray, np.random.Generator]:
    n_items = 30
    rng = np.random.default_rng(4)
    x = rng.standard_normal(n_items)
    user = np.repeat(np.arange(30), 8)
    left, right = random_pairs(rng, len(user), n_items)
    z = 2.0 * np.where(user % 2, 1, -1) * (x[left] - x[right]) + rng.standard_normal(len(user))
    return comparisons(answers(user, left, right, np.sign(z).astype(int), n_items=n_items)), x, rng


@pytest.mark.slow
def test_features_that_say_everything():
    data, x, _ = one_feature_that_says_everything()
    told = ItemFeatures.from_frame({"item": np.arange(30), "x": x})
    verdict = judge(Population(**FIXED | {"variance": 4.0}), data, told)  # with the weight of features searched for
    assert (verdict.personal.outcome, verdict.features.outcome) == ("better", "better")
    assert [contest.question for contest in verdict.contests] == ["personal", "features"]
    assert judge(Population(**FIXED), data).features is None


@pytest.mark.slow
@pytest.mark.parametrize("everything", [True, False])
def test_features_that_say_everything_or_nothing_after_a_whole_search(everything):
    data, x, rng = one_feature_that_says_everything()
    told = ItemFeatures.from_frame({"item": np.arange(30), "x": x if everything else rng.standard_normal(30)})
    verdict = judge(Population(n_jobs=1), data, told)
    assert verdict.personal.outcome == "better"
    assert (verdict.features.outcome == "better") is everything


# Folds


@pytest.mark.parametrize("n_folds", [2, 5])
def test_nobody_is_emptied_in_any_fold(n_folds):
    # From one answer a person to more than there are folds; contradictions on one pair stay together.
    rows = crowd(6, 60, 8, np.r_[np.ones(10, int), np.full(30, 2), np.full(20, 9)])
    frame = {"user": rows.user.tolist(), "left": rows.left.tolist(), "right": rows.right.tolist()}
    frame = {name: column + [[99, 99], [0, 0], [1, 1]][k] for k, (name, column) in enumerate(frame.items())}
    data = Comparisons.from_frame(frame, outcome=np.r_[rows.outcome, 1, -1])
    fold = k_folds_answers(data, n_folds, random_state=1)
    pairs = np.array([len({*zip(data.left[own], data.right[own], strict=True)})
                      for own in (data.user == u for u in range(data.n_users))])  # fmt: skip
    assert set(data.user[fold == -1]) == set(np.flatnonzero(pairs == 1))
    for k in range(n_folds):
        assert set(data.user[fold != k]) == set(range(data.n_users))
    verdict = judge(Population(**FIXED), data, n_folds=n_folds)
    assert verdict.personal.n_people == (pairs > 1).sum()
    assert verdict.personal.n_answers == data.weight[fold >= 0].sum()


def test_people_with_one_answer_train_but_are_not_asked():
    rows = crowd(7, 80, 6, np.r_[np.ones(40, int), np.full(40, 6)])
    verdict = judge(Population(**FIXED), comparisons(rows))
    assert (verdict.n_users_drawn, verdict.personal.n_people) == (80, 40)


def test_at_most_so_many_people_take_part_and_it_is_said():
    rows = crowd(8, 100, 6, np.r_[np.ones(40, int), np.full(60, 6)])
    verdict = judge(Population(**FIXED), comparisons(rows), max_people=30)
    assert verdict.personal.n_people == 30
    assert verdict.n_users_drawn == 30 + 20  # half of those with one answer, too
    assert "of 30 people, drawn from 100," in verdict.personal.sentence


def test_a_fold_that_trains_on_no_tie_is_told_the_threshold():
    rows = crowd(9, 30, 5, 8)
    rows.outcome[0] = 0
    data = comparisons(rows)
    # Without a threshold the tie would have probability 0, and the losses no difference.
    blind, told = (judge(Population(**FIXED), data, tie_threshold=delta) for delta in (0.0, 0.1))
    assert blind.personal.outcome == "unknown"
    assert np.isfinite(told.personal.log_loss)
    assert told.ties.outcome == "unknown"
    assert "1 of the held-out answers" in told.ties.sentence


def test_five_people_with_twenty_answers_each_are_judged():
    verdict = judge(Population(**FIXED), comparisons(crowd(2, 5, 5, 22, person_sd=2.0)))
    assert verdict.personal.outcome != "unknown"
    assert verdict.personal.n_people == 5
    four = judge(Population(**FIXED), comparisons(crowd(2, 7, 5, [22, 22, 22, 22, 12, 5, 2])))
    assert four.personal.outcome == "unknown"
    assert "only 7 people answered two different questions" in four.personal.sentence
    assert "or 5 who answered 20 each" in four.personal.sentence


def test_one_person_who_repeats_an_answer_does_not_decide_the_verdict():
    rows = crowd(4, 30, 5, 12, person_sd=1.5)
    once = judge(Population(**FIXED), comparisons(rows)).personal
    rows.weight[3] = 1e4
    often = judge(Population(**FIXED), comparisons(rows)).personal
    # The one ranking for all is the repeated answer's, and so worse; but the loss with personal ones stays everybody's.
    assert often.gain > once.gain
    assert abs(often.log_loss - once.log_loss) < 0.03
    assert often.n_answers > 1e4


def choices_of_own_items(n_users: int, n_tasks: int, traits: int = 2) -> tuple[Comparisons, ItemFeatures]:
    """Everybody chooses among three items, again and again, that nobody else is ever shown."""
    rng = np.random.default_rng(12)
    n = n_users * n_tasks
    x = rng.standard_normal((n, 3, traits))
    user = np.repeat(np.arange(n_users), n_tasks)
    z = np.einsum("ijk,ik->ij", x, (1.5 + rng.standard_normal((n_users, traits)))[user])
    best = (z + rng.standard_normal(z.shape)).argmax(axis=1)
    others = np.array([[1, 2], [0, 2], [0, 1]])[best]
    ids = 3 * np.arange(n)[:, None]
    frame = {
        "user": np.repeat(user, 2), "task": np.repeat(np.arange(n), 2), "left": np.repeat(ids[:, 0] + best, 2),
        "right": (ids + others).ravel(),
    }  # fmt: skip
    columns = {f"x{k}": x.reshape(-1, traits)[:, k] for k in range(traits)}
    features = ItemFeatures.from_frame({"item": np.arange(3 * n), **columns})
    return Comparisons.from_frame(frame, outcome=np.ones(2 * n, dtype=int)), features


@pytest.mark.slow
def test_items_that_hardly_recur_are_fitted_apart():
    answers, features = choices_of_own_items(25, 8)
    assert answers.n_items == 600
    told: list[tuple[str, int]] = []
    estimator = Population(basis="attributes", **FIXED)
    verdict = judge(estimator, answers, features, watch=lambda stage, done: told.append((stage, done)))
    contest = verdict.features
    assert contest.outcome == "better"
    # Nothing is known without features of items that were never seen.
    assert contest.baseline_log_loss == pytest.approx(math.log(3.0), abs=0.01)  # a choice of one of three
    # Each part is named before it begins.
    seed = np.random.SeedSequence(0).spawn(3)[0]
    fold = k_folds_answers(answers, 5, random_state=seed, keys=keys_of_answers(answers))
    trial = held_out.JudgingFolds(answers, fold, 0.0, None)
    islands = trial.islands()
    assert len(islands) == 2
    np.testing.assert_array_equal(sum(island.astype(int) for island in islands), 1)
    sides = [set(answers.left[island]) | set(answers.right[island]) for island in islands]
    assert not sides[0] & sides[1]
    stages = [stage for stage, _ in told]
    assert stages.index("held-out answers: no item features, part 1 of 2") > stages.index(
        "held-out answers: one ranking for all, part 2 of 2"
    )
    shared = comparisons(crowd(5, 20, 5, 10))
    assert held_out.JudgingFolds(shared, k_folds_answers(shared, 5), 0.0, None).islands() is None


def test_islands_fitted_apart_are_as_good_as_one_fit():
    answers, _ = choices_of_own_items(15, 8)
    by_pair = replace(answers, task=None)  # the winner of a pair that is held out may be known from the other
    fold = k_folds_answers(by_pair, 5, random_state=1)
    trial = held_out.JudgingFolds(by_pair, fold, 0.0, None)
    model = Population(personal=False, consensus_variance=2.0, n_jobs=1)
    apart = trial.run("apart", model, None, trial.islands())
    np.testing.assert_allclose(apart, trial.run("together", model, None), atol=1e-6)


def test_the_stage_is_told_before_a_fit_begins():
    told = []
    rows = comparisons(crowd(2, 12, 5, 12))
    judge(Population(**FIXED), rows, watch=lambda stage, done: told.append((stage, done)))
    first = [stage for stage, done in told if done == 0]
    for name in ("personal rankings", "one ranking for all"):
        assert f"held-out answers: {name}, part 1 of 5" in first


def test_many_items_take_two_folds_and_many_rows_fewer_people(monkeypatch):
    monkeypatch.setattr(held_out, "_MANY_ITEMS", 5)
    data = comparisons(camps(0))
    verdict = judge(Population(**FIXED), data)
    assert verdict.personal.n_folds == 2
    assert abs(verdict.personal.n_answers / 480 - 0.4) < 0.05
    monkeypatch.setattr(held_out, "_MOST_ROWS", 200)
    assert judge(Population(**FIXED), data).n_users_drawn < 25


# Too little


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (crowd(0, 3, 5, 20), "only 3 people answered two different questions or more, and it takes 10"),
        (crowd(0, 1, 5, 40), "all answers are one person's"),
        (crowd(0, 60, 5, 1), "nobody answered two different questions or more"),
        (crowd(0, 9, 5, 12), "only 9 people"),
    ],
)
def test_too_little_is_said_and_is_no_error(rows, said):
    verdict = judge(Population(**FIXED), comparisons(rows))
    assert (verdict.personal.outcome, verdict.favours) == ("unknown", "personal")
    assert said in verdict.personal.sentence
    assert verdict.personal.gain is None
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict(), allow_nan=False))) == verdict


def test_nobody_told_apart_with_ties_and_features():
    frame = {"left": ["a", "b", "a"], "right": ["b", "c", "c"], "winner": ["left", "tie", "right"]}
    model = Population().fit(frame, items={"item": ["a", "b", "c"], "x": [1, 2, 3]})
    verdict = model.verdict()
    assert {contest.outcome for contest in verdict.contests} == {"unknown"}
    assert "no column says who answered" in verdict.sentences[0]
    assert len(verdict.sentences) == 3


def test_what_cannot_be_fitted_is_not_judged():
    columns = {"user": np.repeat(np.arange(20), 4), "left": [0, 1, 2, 3] * 20, "right": [1, 2, 3, 0] * 20}
    columns |= {"weight": [0.5] * 80}
    halves = Comparisons.from_frame(columns, outcome=[1, -1] * 40, reading={"task": "none"})
    verdict = Population(personal=False).fit(halves).verdict()
    assert verdict.personal.outcome == "unknown"
    assert "weight" in verdict.personal.sentence


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"n_folds": 1}, "n_folds"), ({"max_people": 2}, "max_people"), ({"n_bootstrap": 2.5}, "n_bootstrap"),
     ({"random_state": -1}, "random_state"), ({"n_folds": True}, "n_folds")],
)  # fmt: skip
def test_settings_out_of_range(setting, said):
    with pytest.raises(DataError, match=f"{said} of the verdict must be a whole number"):
        judge(Population(**FIXED), comparisons(camps(0)), **setting)


def test_fits_that_did_not_converge_are_mentioned():
    with pytest.warns(ConvergenceWarning):
        model = Population(**FIXED, max_iter=1).fit(comparisons(camps(0)))
    assert "fits behind the verdict (personal rankings) did not converge" in model.verdict().sentences[-1]


# Determinism


@pytest.mark.slow
def test_the_same_seed_gives_the_same_verdict_and_the_order_of_rows_does_not_matter(divided):
    rows = camps(0, delta=0.4)
    order = np.random.default_rng(1).permutation(rows.n_rows)
    for name in ("user", "left", "right", "outcome", "weight"):
        setattr(rows, name, getattr(rows, name)[order])
    again = judge(Population(**FIXED), comparisons(rows))
    assert again == divided
    assert judge(Population(**FIXED | {"n_jobs": 2}), comparisons(rows)) == divided
    assert judge(Population(**FIXED), comparisons(rows), random_state=1) != divided


def test_renamed_ids_change_nothing(divided):
    rows = camps(0, delta=0.4)
    rows.user = (rows.user * 7) % 40
    rows.left, rows.right = 5 - rows.left, 5 - rows.right
    renamed = judge(Population(**FIXED), comparisons(rows))
    for one, other in zip(renamed.contests, divided.contests, strict=True):
        assert (one.outcome, one.n_people, one.n_answers) == (other.outcome, other.n_people, other.n_answers)
        assert one.gain == pytest.approx(other.gain, abs=1e-4)  # fits to their tolerance, from sums in another order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "favours", "outcome", "fewest"), [(agreeing, "pooled", "nothing", 45), (camps, "personal", "better", 49)]
)
def test_crowds_that_agree_and_crowds_that_are_divided_are_told_apart(make, favours, outcome, fewest):
    # One error may be chance: a verdict that errs once in ten would pass with probability .03. Where people agree, what
    # their own rankings lose (some are said to be "worse") is known as well: nobody is taken to be of one mind.
    verdicts = [judge(Population(n_jobs=1), comparisons(make(seed))) for seed in range(50)]
    assert sum(one.favours == favours for one in verdicts) >= 49
    said = [one.personal.outcome for one in verdicts]
    assert said.count(outcome) >= fewest, said
