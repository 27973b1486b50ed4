"""Choosing the prior: as good as knowing it, deterministic, silent where there is nothing to learn from."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from predilect import Calibration, Comparisons, Population
from predilect._base.json import plain
from predilect.data.content import keys_of_answers
from predilect.data.features import FeatureSpace
from predilect.data.splits import some_people, thinned, with_moderate_counts
from predilect.models.population.prior import DEFAULTS, Hyperparameters, PopulationPrior, dimension
from predilect.models.population.search import folds, moves, selection
from predilect.models.population.search.plan import Plan
from predilect.models.population.search.selection import select_model
from simulate import comparisons, crowd, probit_answers, random_pairs
from simulate_features import featured_crowd
from tolerances import EXACT

START = Hyperparameters(100.0, 4.0, 4.0, 0.0, 1.0)
FREE = ["strength", "variance", "consensus_variance"]
CROWD = comparisons(crowd(1, 40, 6, 12, delta=0.4))


def plan_of(answers, **options) -> Plan:
    return Plan(answers, FeatureSpace.empty(answers.n_items), **options)


def select(answers, free=FREE, start=START, **options):
    return select_model(plan_of(answers, **options), [None], start, free)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "weight"),
    [(1.0, 0.9), (1.0, 0.1), (25.0, 0.1), (25.0, 0.9)],
)
def test_the_choice_predicts_as_well_as_the_truth(scale, weight):
    # Measured over three seeds: at most .007 nats an answer worse.
    truth = featured_crowd(0, 300, 20, scale=scale, feature_weight=weight)
    columns, outcome = truth.answers(15)
    test, test_outcome = truth.answers(15)
    chosen = Population(n_jobs=1).fit(columns, outcome, items=truth.items)
    known = Population(n_jobs=1, **truth.true).fit(columns, outcome, items=truth.items)
    assert chosen.score(test, test_outcome) > known.score(test, test_outcome) - 0.01
    # Two bases begin, with some of the people, and the better one again with all; and people may differ in care.
    most = moves.MAX_TRIALS + 2 + len(moves.SPREADS + moves.WIDE_SPREADS)
    assert 1 < len(chosen.report_["prior"]["trials"]) <= most


@pytest.mark.slow
def test_hyper_parameters_that_are_given_are_kept():
    truth = featured_crowd(2, 40, 8, scale=1.0, feature_weight=0.5)
    columns, outcome = truth.answers(10)
    given = {
        "strength": 7.0, "variance": 3.0, "consensus_variance": 5.0, "feature_weight": 0.3,
        "consensus_feature_weight": 0.6, "length_scale": 2.0, "calibration": Calibration(0.7),
    }  # fmt: skip

    def parameters(some: Collection[str]) -> dict[str, Any]:
        weights = [given[name] if name in some else "auto" for name in ("feature_weight", "consensus_feature_weight")]
        return {name: given[name] for name in some if "weight" not in name} | {"feature_weight": tuple(weights)}

    names = list(given)
    for some in (names[::2], names[1::2]):  # each is given once, and searched for once
        model = Population(n_jobs=1, consistency=0.0, **parameters(some)).fit(columns, outcome, items=truth.items)
        trials = model.report_["prior"]["trials"]
        assert len(trials) > 1
        for name in some:
            assert getattr(model.hyperparameters_, name) == given[name]
            assert all(trial[name] == plain(given[name]) for trial in trials)
    model = Population(n_jobs=1, basis="items", consistency=0.0, clickers=0.0, **parameters(names)).fit(
        columns, outcome, items=truth.items
    )
    assert model.hyperparameters_ == Hyperparameters(**given)
    assert model.report_["prior"]["trials"] == []


def test_the_choice_is_the_best_of_its_trials_or_near_it():
    found = select(CROWD)
    # The calibration is that of the best setting, and chosen after it.
    later = ("log_loss", "calibration")
    losses = {tuple(v for k, v in trial.items() if k not in later): trial["log_loss"] for trial in found.trials}
    assert len(losses) == len(found.trials) > 1  # nothing is tried twice
    chosen = losses["items", *(v for k, v in found.hyperparameters.to_dict().items() if k not in later)]
    assert chosen <= found.trials[0]["log_loss"]
    assert chosen < min(losses.values()) + 0.01
    assert found.n_people == 40
    assert found.start is not None
    assert found.start.Sigma.shape == (6, 6)


@pytest.mark.slow
def test_held_out_answers_are_enough_and_no_more():
    enough = selection._ENOUGH_HELD_OUT
    assert enough > CROWD.n_answers == 480  # so that every fold is needed
    assert select(CROWD).n_held_out == CROWD.n_answers
    many = comparisons(crowd(3, 100, 5, 80))
    held_out = select(many, ["strength"]).n_held_out
    assert enough <= held_out <= enough + 0.2 * many.n_answers


@pytest.mark.parametrize("per_person", [1, 2])
def test_few_answers_leave_the_defaults_and_hold_nothing_out(per_person):
    # Fewer than 20 answers in folds: people with one answer are never tested.
    answers = comparisons(crowd(4, 18 if per_person == 1 else 8, 4, per_person))
    found = select(answers)
    assert found.trials == []
    assert found.start is None
    assert found.n_held_out < 20
    prior = PopulationPrior.of(found.hyperparameters, FeatureSpace.empty(4))
    assert found.hyperparameters.strength == max(30.0, 0.5 * dimension(prior))
    assert 0.2 / 20 < found.hyperparameters.variance < 0.2 * 20  # the evidence and its weak prior
    model = Population(n_jobs=1).fit(answers)
    assert replace(model.hyperparameters_, unit_sd=0.0) == found.hyperparameters


def test_the_strength_follows_the_number_of_directions_that_matter():
    # An inverse Wishart needs half a person a direction before it holds anything back; with s₀ = 1 the prior variance
    # of each of the 198 items counts half against the noise of an answer.
    left = np.arange(0, 198, 2)
    frame = {"user": np.arange(99) % 2, "left": left, "right": left + 1, "winner": left}
    model = Population(n_jobs=1, variance=1.0, consensus_variance=1.0).fit(
        Comparisons.from_frame(frame).take(np.arange(15))
    )
    assert model.hyperparameters_.strength == pytest.approx(49.5)


def few_people_on_many_items(n_people, n_items, per_person, sd, seed):
    """Their answers, and the expected log loss under the truth of a model's predictions of new ones."""
    rng = np.random.default_rng(seed)
    utilities = 0.8 * rng.standard_normal(n_items) + sd * rng.standard_normal((n_people, n_items))
    user = np.repeat(np.arange(n_people), per_person)
    left, right, outcome = probit_answers(rng, utilities, user)
    seen = np.unique([left, right])
    user_new = rng.integers(n_people, size=4000)
    left_new, right_new = (seen[codes] for codes in random_pairs(rng, 4000, len(seen)))
    z = utilities[user_new, left_new] - utilities[user_new, right_new]

    def loss(model):
        log_proba = np.asarray(model.predict_log_proba({"user": user_new, "left": left_new, "right": right_new}))
        return -np.mean(ndtr(z) * log_proba[:, 0] + ndtr(-z) * log_proba[:, -1])

    return {"user": user, "left": left, "right": right}, outcome, loss


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("n_people", "n_items", "per_person", "sd"),
    [(4, 60, 30, 0.1), pytest.param(12, 80, 20, 0.0, marks=pytest.mark.slow)],
)
def test_few_people_on_many_items_are_predicted_no_worse_than_as_one_crowd(n_people, n_items, per_person, sd, seed):
    # Trials of 28 passes hid that a weak prior learns answers by heart, and the fit ran on into it: log loss 1.04, and
    # a coin has .69.
    columns, outcome, loss = few_people_on_many_items(n_people, n_items, per_person, sd, seed)
    model = Population(n_jobs=1).fit(columns, outcome)
    assert model.report_["fit"]["converged"]
    assert loss(model) < loss(Population(personal=False).fit(columns, outcome)) + 0.01


@pytest.mark.slow
def test_all_answers_of_few_people_are_held_as_firmly_as_those_of_a_fold():
    # With the strength of the folds all answers were learned by heart (28 people, 140 items: log loss .649, not .586).
    columns, outcome, _ = few_people_on_many_items(8, 70, 40, 0.75, 1)
    model = Population(n_jobs=1).fit(columns, outcome)
    tried = [trial["strength"] for trial in model.report_["prior"]["trials"]]
    # A fold holds out a fifth of the answers.
    chosen = [
        strength for strength in tried if model.hyperparameters_.strength == pytest.approx(1.25 * strength, rel=0.01)
    ]
    assert len(set(chosen)) == 1


@pytest.mark.slow
def test_a_prior_too_weak_for_its_people_is_not_among_the_trials():
    columns, outcome, _ = few_people_on_many_items(4, 60, 40, 0.3, 0)
    trials = Population(n_jobs=1).fit(columns, outcome).report_["prior"]["trials"]
    # A direction of Σ separates two answers an item, here 120 of the 128 of a fold, and four people pay for little.
    assert min(trial["strength"] for trial in trials) >= 120 / 8 - 4
    # Held-out answers of few people mislead the choice of s₀: that of the evidence stays.
    assert len({trial["variance"] for trial in trials}) == 1


@pytest.mark.parametrize(
    ("as_fitted", "stiffer", "chosen"),
    [
        (0.38, (0.34, 0.345), "items"),  # learned by heart where they begin, and best of all a step on
        (0.38, (0.36, 0.37), "attributes"),
        (0.34, (0.40, 0.41), "items"),  # no step on: it would lose what made them best
    ],
)
def test_bases_that_have_not_converged_are_compared_at_the_strength_that_suits_them(
    monkeypatch, as_fitted, stiffer, chosen
):
    class Compared(Exception):
        """The search is over: a basis was chosen."""

    found, began = [], []

    def told(self, candidate, setting, warm, population=None, **how):
        loss, converged = 0.35, True
        if candidate.functions is None:
            began.append(setting.strength)
            step = round(2.0 * np.log10(setting.strength / began[0]))  # of factors of √10
            loss = 0.37 if not how else (as_fitted, *stiffer)[step]
            converged = step > 0
        state = SimpleNamespace(report=SimpleNamespace(converged=converged))
        return folds.Trial(np.full(50, loss), np.ones(50), [state], Calibration())

    def stop(search):
        found.append(search.best)
        raise Compared

    monkeypatch.setattr(moves.HeldOutSearch, "run", told)
    monkeypatch.setattr(selection, "MOVES", (moves.Move("stop", stop),))
    truth = featured_crowd(0, 30, 6, scale=1.0, feature_weight=0.5)
    columns, outcome = truth.answers(8)
    with pytest.raises(Compared):
        Population(n_jobs=1, consistency=0.0, clickers=0.0).fit(columns, outcome, items=truth.items)
    assert found[0].candidate.kind == chosen
    if chosen == "items":
        assert found[0].trial.loss == pytest.approx(min(as_fitted, *stiffer), abs=EXACT)


@pytest.mark.parametrize("gain", [0.01, -0.01])
def test_the_scales_of_the_best_basis_are_those_of_all_where_held_out_answers_gain(monkeypatch, gain):
    class Walked(Exception):
        """The search is over: the walk began."""

    begun, n_people = [], []

    def told(self, candidate, setting, warm, population=None, **how):
        loss = 0.4 - gain * (setting.variance == 7.0) - 0.01 * (candidate.functions is not None)
        state = SimpleNamespace(report=SimpleNamespace(converged=True))
        return folds.Trial(np.full(50, loss), np.ones(50), [state], Calibration())

    def by_evidence(people, some_answers, space, candidate, start, *others):
        n_people.append(people.n_users)
        return replace(start, variance=7.0 if people.n_users == 430 else 3.0)

    def stop(search):
        begun.append(search.best)
        raise Walked

    monkeypatch.setattr(moves.HeldOutSearch, "run", told)
    monkeypatch.setattr(selection, "MOVES", (moves.Move("stop", stop),))
    monkeypatch.setattr(selection, "by_evidence", by_evidence)
    truth = featured_crowd(0, 430, 6, scale=1.0, feature_weight=0.5)
    columns, outcome = truth.answers(3)
    with pytest.raises(Walked):
        Population(n_jobs=1, consistency=0.0, clickers=0.0).fit(columns, outcome, items=truth.items)
    assert n_people[-1] == 430
    assert max(n_people[:-1]) < 200
    assert begun[0].setting.variance == (7.0 if gain > 0.0 else 3.0)
    assert begun[0].trial.loss == pytest.approx(0.39 - max(gain, 0.0), abs=EXACT)


@pytest.mark.slow  # three searches
def test_the_same_seed_and_any_number_of_threads_make_the_same_choice():
    free = ["strength", "variance"]
    found = select(CROWD, free)
    for n_threads in (1, 2):
        with ThreadPoolExecutor(n_threads) as executor:
            again = select(CROWD, free, executor=executor)
        assert again.hyperparameters == found.hyperparameters
        assert again.trials == found.trials
    other = select(CROWD, free, random_state=1)
    assert other.trials != found.trials  # other folds
    assert other.trials[0] | {"log_loss": 0} == found.trials[0] | {"log_loss": 0}  # after the same evidence


def drawn(answers: Comparisons, seed: int = 0) -> Comparisons:
    return some_people(answers, np.random.default_rng(seed), keys=keys_of_answers(answers))[0]


def test_at_most_a_thousand_people_with_two_answers_take_part():
    rows = crowd(5, 3000, 4, [2] * 2000 + [1] * 1000)
    answers = comparisons(rows)
    some = drawn(answers)
    counts = np.bincount(some.user)
    assert np.count_nonzero(counts > 1) <= 1000
    assert np.all(counts > 0)
    # those with one answer keep their share
    n_able, n_single = (np.count_nonzero(np.bincount(answers.user, minlength=3000) == n) for n in (2, 1))
    assert np.count_nonzero(counts == 1) == pytest.approx(n_single * min(1.0, 1000 / n_able), abs=1)
    # and everybody keeps all of their answers
    by_id = dict(zip(answers.users.ids, np.bincount(answers.user), strict=True))
    assert all(by_id[user] == n for user, n in zip(some.users.ids, counts, strict=True))
    other = drawn(answers, 1)
    assert other.users != some.users
    assert drawn(answers) == some


def test_the_few_who_hold_most_answers_are_left_out_where_the_others_are_enough():
    answers = comparisons(crowd(6, 403, 30, [400] * 3 + [15] * 400))
    some = drawn(answers)
    assert some.users.ids == list(range(3, 403))
    few = comparisons(crowd(6, 23, 30, [400] * 3 + [15] * 20))
    assert drawn(few) == few


def test_progress_is_told():
    told: list[int] = []
    found = select(CROWD, ["strength"], watch=lambda _, done: told.append(done))
    assert told == list(range(1, len(found.trials) + 1))


def test_a_tie_that_is_the_only_one_can_be_held_out():
    # The rest of the answers holds none, but that does not make it impossible.
    rows = crowd(7, 3, 5, 14, delta=0.0)
    rows.outcome[8] = 0
    answers = comparisons(rows)
    tied = answers.outcome == 0
    assert tied.sum() == 1
    fold = folds.Fold(plan_of(answers), tied)
    assert 0.0 < fold.delta < 0.1
    found = select(answers)
    assert found.trials
    assert all(np.isfinite(trial["log_loss"]) for trial in found.trials)
    given = folds.Fold(plan_of(answers, delta=0.3), tied)
    assert given.delta == 0.3


def test_no_row_counts_more_than_five_typical_ones():
    rows = crowd(3, 20, 5, 10)
    weight = np.random.default_rng(0).choice([1.0, 2.0, 3.0], size=len(rows.user))
    rows.weight = weight
    ordinary = comparisons(rows)
    typical = float(np.median(ordinary.weight))
    assert with_moderate_counts(ordinary) is ordinary
    weight[7] = 1e4
    often = comparisons(rows)
    counted = with_moderate_counts(often)
    np.testing.assert_array_equal(counted.weight, np.where(often.weight > 1e3, 5.0 * typical, often.weight))
    many = replace(often, weight=1e3 * ordinary.weight)  # everybody's answers are counts
    assert with_moderate_counts(many) is many
    assert with_moderate_counts(often.take(often.outcome > 9)).n_rows == 0


@pytest.mark.slow  # two fits
def test_one_person_who_repeats_an_answer_costs_the_others_nothing():
    rows = crowd(11, 40, 6, 20, person_sd=0.8)
    one_of_them = np.flatnonzero(rows.user == 0)[:1]
    left, right = np.triu_indices(6, 1)
    users = np.repeat(np.arange(1, 40), len(left))
    left, right = np.tile(left, 39), np.tile(right, 39)
    p = ndtr(rows.truth[users, left] - rows.truth[users, right])

    def loss_of_others(copies: float) -> float:
        rows.weight = np.ones(len(rows.user))
        rows.weight[one_of_them] += copies
        model = Population(n_jobs=1).fit(comparisons(rows))
        queries = {"user": users, "left": left, "right": right}
        q = model.predict_proba(queries)[:, [0, 2]]
        chance = np.column_stack([p, 1.0 - p])
        return -float(np.mean(np.sum(chance * np.log(q), axis=1)))

    assert loss_of_others(1e4) < loss_of_others(0.0) + 0.002


def test_the_evidence_of_few_people_takes_a_share_of_everybodys_answers():
    answers = comparisons(crowd(5, 6, 40, 1600))
    most = selection._ENOUGH_FOR_SCALES

    def share(rows):
        return thinned(rows, most, random_state=0, keys=keys_of_answers(rows))

    some = share(answers)
    n_parts = -(-answers.n_rows // most)
    assert n_parts > 1
    counts, all_counts = (np.bincount(rows.user, minlength=6) for rows in (some, answers))
    assert np.abs(counts / all_counts - 1 / n_parts).max() < 0.02  # answers of a person to one pair stay together
    few = answers.take(np.arange(answers.n_rows) % n_parts == 0)
    assert share(few) is few


@pytest.mark.slow
def test_a_price_whose_range_comes_from_people_whom_it_does_not_move_is_found():
    # Seven people in 50 have season tickets: prices 40 times as large, and no matter. Log loss on three such crowds:
    # .451, .444, .439 at the scale of the rigid population's evidence; .406, .413, .413 as chosen; at best .390, .410,
    # .405.
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(300), 10)
    season = (np.arange(300) % 50 < 7)[user]
    tastes = -np.array([0.02, 0.03]) * np.exp(0.5 * rng.normal(size=(300, 2)))
    shown = rng.integers([40, 30], [160, 150], (3000, 2, 2))
    margin = np.einsum("ra,ra->r", tastes[user] * np.c_[~season, np.ones(3000)], shown[:, 0] - shown[:, 1])
    outcome = np.where(margin + rng.normal(size=3000) > 0, 1, -1)
    shown[:, :, 0] *= np.where(season, 40, 1)[:, None]
    profiles, codes = np.unique(shown.reshape(-1, 2), axis=0, return_inverse=True)
    items = pl.DataFrame({"item": np.arange(len(profiles)), "price": profiles[:, 0], "time": profiles[:, 1]})
    left, right = codes.reshape(-1, 2).T
    keep, known = left != right, np.arange(3000) % 10 < 7
    columns = {"user": user, "left": left, "right": right}

    def score(**settings):
        fit, test = ({name: column[rows & keep] for name, column in columns.items()} for rows in (known, ~known))
        model = Population(n_jobs=1, consistency=0, max_iter=1000, **settings).fit(
            fit, outcome[known & keep], items=items
        )
        return model.score(test, outcome[~known & keep])

    assert score() > score(consensus_variance=1000.0) - 0.02


def test_few_people_are_tried_nearly_rigid_first():
    columns, outcome, _ = few_people_on_many_items(4, 60, 40, 0.3, 1)
    trials = Population(n_jobs=1, consistency=0.0, calibration=None).fit(columns, outcome).report_["prior"]["trials"]
    # Three steps above the strength that fits the dimension, so that the first trials take few passes.
    assert trials[0]["strength"] == pytest.approx(10**1.5 * DEFAULTS["strength"])
