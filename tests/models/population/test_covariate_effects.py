"""Population with covariates of answers: the side of the screen, and columns that the user names."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

from predilect import Comparisons, GaSPK, Population
from predilect.errors import DataError
from simulate import random_pairs

FIXED = {
    "strength": 60.0, "variance": 0.36, "consensus_variance": 1.0, "calibration": None, "consistency": 0.0,
}  # fmt: skip
MODELS = [FIXED, {"personal": False, "consensus_variance": 1.0}]


def crowd(seed, n_users=40, n_items=6, n=20, side=0.0, length=0.0, taste=0.6):
    """A frame of answers, and the true utilities."""
    rng = np.random.default_rng(seed)
    utility = rng.normal(size=n_items)
    f = utility + taste * rng.normal(size=(n_users, n_items))
    user = np.repeat(np.arange(n_users), n)
    left, right = random_pairs(rng, len(user), n_items)
    of_left, of_right = np.round(300 * rng.lognormal(size=(2, len(user))))
    margin = f[user, left] - f[user, right] + side + length * (of_left - of_right) / 500
    winner = np.where(margin + rng.normal(size=len(user)) > 0, left, right)
    columns = {"user": user, "left": left, "right": right, "winner": winner, "length_a": of_left, "length_b": of_right}
    return {name: column.tolist() for name, column in columns.items()}, utility


def effect(model, name="side"):
    table = {row["covariate"]: row for row in model.covariates().to_dicts()}
    return table[name]


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_a_side_that_moves_answers_is_found_and_boards_are_for_no_side(settings):
    frame, utility = crowd(1, side=0.4)
    model = Population(**settings).fit(frame)
    found = effect(model)
    assert found["lower"] < 0.4 < found["upper"]
    assert found["lower"] > 0.0
    assert model.report_["side"]["found"]
    assert any("Between equals the item on the left is chosen" in line for line in model.describe())
    blind = Population(**settings).fit(Comparisons.from_frame(frame, reading={"side": False}))
    assert not len(blind.covariates())
    assert np.corrcoef(model.utilities()["mean"], utility)[0, 1] > 0.9
    # The same pair, seen both ways: what each side gains is the effect of the side.
    left, _ = model.predict_margin({"user": [0, 0], "left": [1, 2], "right": [2, 1]})
    assert left.sum() == pytest.approx(2 * found["effect"])


@pytest.mark.parametrize("settings", MODELS)
def test_sides_that_move_nothing_are_free(settings):
    frame, _ = crowd(3)
    model = Population(**settings).fit(frame)
    plain = Population(**settings).fit(Comparisons.from_frame(frame, reading={"side": False}))
    assert model.comparisons_ == plain.comparisons_
    assert model.utilities()["mean"].to_list() == plain.utilities()["mean"].to_list()
    assert not len(model.covariates())
    assert not model.report_["side"]["found"]
    assert not any("side" in line for line in model.describe())


def test_files_that_list_the_winner_first_have_no_sides():
    frame, _ = crowd(4)
    loser = [b if w == a else a for a, b, w in zip(frame["left"], frame["right"], frame["winner"], strict=True)]
    first = {"user": frame["user"], "left": frame["winner"], "right": loser, "winner": frame["winner"]}
    model = Population(**FIXED).fit(first)
    assert not len(model.covariates())
    assert any("lists the winner first" in line for line in model.report_["intake"])


def test_the_pooled_model_under_a_flat_prior_is_a_probit_regression():
    frame, _ = crowd(5, side=0.3, length=0.5, taste=0.0)
    answers = Comparisons.from_frame(frame, columns={"covariates": ["length"]}, reading={"side": True})
    model = Population(personal=False, consensus_variance=np.inf).fit(answers)
    n = len(frame["user"])
    left, right, winner = (np.array(frame[name]) for name in ("left", "right", "winner"))
    X = np.zeros((n, 6))
    X[np.arange(n), left] += 1.0
    X[np.arange(n), right] -= 1.0
    difference = np.array(frame["length_a"]) - np.array(frame["length_b"])
    columns = np.column_stack([X[:, 1:], difference / 512, np.ones(n)])
    found = sm.Probit((winner == left).astype(float), columns).fit(disp=0, tol=1e-12)
    assert effect(model, "length")["effect"] == pytest.approx(found.params[5] / 512, rel=1e-6)
    assert effect(model)["effect"] == pytest.approx(found.params[6], rel=1e-6)


@pytest.mark.parametrize("settings", MODELS)
def test_a_set_has_no_left_side(settings):
    frame, _ = crowd(2, side=0.8)
    model = Population(**settings).fit(Comparisons.from_frame(frame, reading={"side": True}))
    assert effect(model)["effect"] > 0.5
    for items in ([0, 1], [0, 3, 5]):
        sets = {"user": [1] * len(items), "task": [1] * len(items), "item": items}
        found = model.predict_choice(sets)
        turned = model.predict_choice(sets | {"item": items[::-1]})
        np.testing.assert_allclose(turned[::-1], found, atol=1e-12)
        best = [math.exp(model.score(sets | {"chosen": [int(one == item) for one in items]})) for item in items]
        np.testing.assert_allclose(best, found, atol=0.02)  # of three by expectation propagation
    answer = {"user": [1] * 3, "task": ["new"] * 3, "item": [0, 3, 5], "chosen": [0, 1, 0]}
    before, told = model.predict_choice(sets), model.update(answer).predict_choice(sets)
    assert told[1] > 1.1 * before[1]
    turned = {name: column[::-1] for name, column in answer.items()}
    np.testing.assert_allclose(model.forget(answer).update(turned).predict_choice(sets), told, atol=1e-12)
    with pytest.raises(DataError, match="is about pairs"):
        model.update(answer, reading={"side": True})


@pytest.mark.slow
def test_what_says_no_side_is_an_answer_to_a_model_that_has_one():
    frame, _ = crowd(2, side=0.8)
    model = Population(**FIXED).fit(Comparisons.from_frame(frame, reading={"side": True}))
    n, length = model.n_answers_, effect(model)["effect"]
    model.update({"user": [1], "winner": [0], "loser": [3]})
    assert model.n_answers_ == n + 1
    assert effect(model)["effect"] == pytest.approx(length, abs=1e-3)
    with pytest.raises(DataError, match="Leave it out"):
        model.update({"user": [1], "winner": [0], "loser": [3]}, reading={"side": True})


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_a_length_that_is_liked_is_taken_off_the_board(settings):
    frame, _ = crowd(6, n_items=4, n=40)
    utility = np.array([0.0, 0.4, 0.8, 1.2])
    # The worst item writes much more than the others.
    for side, name in (("left", "length_a"), ("right", "length_b")):
        frame[name] = [x + 1000 * (item == 0) for x, item in zip(frame[name], frame[side], strict=True)]
    rng = np.random.default_rng(0)
    f = utility + 0.6 * rng.normal(size=(40, 4))
    gain = f[frame["user"], frame["left"]] - f[frame["user"], frame["right"]]
    gain += 0.8 * (np.array(frame["length_a"]) - np.array(frame["length_b"])) / 500
    gain += rng.normal(size=len(gain))
    frame["winner"] = np.where(gain > 0, frame["left"], frame["right"]).tolist()
    plain = Population(**settings).fit(Comparisons.from_frame(frame, reading={"side": False}))
    model = Population(**settings).fit(
        Comparisons.from_frame(frame, columns={"covariates": ["length"]}, reading={"side": False})
    )
    assert plain.rank()["item"][0] == 0
    assert model.rank()["item"].to_list() == [3, 2, 1, 0]
    found = effect(model, "length")
    # Pooled, effects are in units of the noise of an answer of anybody, in which tastes are noise.
    truth = 0.8 / 500 / (1.0 if model.personal_ else np.sqrt(1.0 + 2 * 0.6**2))
    assert found["lower"] < truth < found["upper"]
    pair = {"user": [1], "left": [0], "right": [1]}
    longer, _ = model.predict_margin(pair | {"length": [500]})
    equal, _ = model.predict_margin(pair)
    assert (longer - equal)[0] == pytest.approx(500 * found["effect"])


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_an_answer_counts_with_its_covariates_and_can_be_taken_back(settings):
    frame, _ = crowd(8, side=0.5, length=0.4)
    model = Population(**settings).fit(Comparisons.from_frame(frame, columns={"covariates": ["length"]}))
    asked = {"user": [5], "left": [1], "right": [2]}
    before = model.predict_margin(asked)
    answer = {"user": [5], "left": [1], "right": [2], "winner": [1]}
    moved = []
    for length in (-900.0, 900.0):  # that the shorter one won says more
        model.update(answer | {"length": [length]})
        moved.append(model.predict_margin(asked)[0][0])
        with pytest.raises(DataError, match="holds no such answer"):
            model.forget(answer | {"length": [123.0]})
        model.forget(answer | {"length": [length]})
    assert moved[0] > moved[1] > before[0][0]
    np.testing.assert_allclose(model.predict_margin(asked), before, rtol=1e-8)
    other = Comparisons.from_frame(answer | {"width": [1.0]}, columns={"covariates": ["width"]})
    with pytest.raises(DataError, match="covariates of answers length, and these answers have width"):
        model.update(other)
    assert model.comparisons_ == Comparisons.from_frame(frame, columns={"covariates": ["length"]}).with_side()


@pytest.mark.slow
@pytest.mark.parametrize("settings", MODELS)
def test_a_covariate_that_is_not_there_is_equal_everywhere(settings):
    """An answer by name, frames and comparisons: the same as with a difference of 0."""
    frame, _ = crowd(8, side=0.5, length=0.4)
    model = Population(**settings).fit(Comparisons.from_frame(frame, columns={"covariates": ["length"]}))
    answer = {"user": [5, 6], "left": [1, 3], "right": [2, 0], "winner": [1, 0]}
    equal = answer | {"length": [0.0, 0.0]}
    as_read = Comparisons.from_frame(answer, reading={"side": True})
    np.testing.assert_array_equal(model.predict_proba(answer), model.predict_proba(equal))
    assert model.score(answer) == model.score(equal) == model.score(as_read)
    before, moved = model.predict_margin(answer), []
    for more in (equal, answer, as_read):
        model.update(more)
        moved.append(model.predict_margin(answer)[0])
        model.forget(equal)
    for user, left, right, winner in zip(*answer.values(), strict=True):
        model.update(user=user, left=left, right=right, winner=winner)
    moved.append(model.predict_margin(answer)[0])
    model.forget(answer)
    np.testing.assert_allclose(moved, np.tile(moved[0], (4, 1)), rtol=1e-8)
    assert (np.abs(moved[0] - before[0]) > 1e-4).all()
    np.testing.assert_allclose(model.predict_margin(answer), before, rtol=1e-8)


@pytest.mark.slow
def test_a_part_of_a_covariate_is_refused():
    frame, _ = crowd(8, length=0.4)
    model = Population(**FIXED).fit(Comparisons.from_frame(frame, columns={"covariates": ["length"]}))
    answer = {"user": [5, 6], "left": [1, 3], "right": [2, 0], "winner": [1, 0]}
    half = answer | {"length_b": [1.0, 2.0]}
    said = 'the covariate "length" has a column "length_b" and no column "length_a" for the other side'
    for ask in (model.predict_proba, model.predict_margin, model.score, model.update, model.forget):
        with pytest.raises(DataError, match=f"{said}.*Add it, or leave out both"):
            ask(half)
        gap = half | {"length_a": [1.0, None]}
        with pytest.raises(
            DataError, match=r'missing in 1 row \(missing values by covariate: "length" 1; first: row 2'
        ):
            ask(gap)
    with pytest.raises(
        DataError, match="leave such rows out, or all of its columns: without a covariate left and right"
    ):
        model.predict_proba(gap)
    with pytest.raises(DataError, match=r'holds text in 1 row .*"long"\). Leave it out \(without a covariate'):
        model.predict_proba(answer | {"length": ["long", "1"]})
    with pytest.raises(DataError, match=f"{said}.*Add it\\."):
        Population().fit(half, columns={"covariates": ["length"]})


@pytest.mark.slow
def test_the_table_of_people_says_how_often_each_chose_the_left():
    frame, _ = crowd(12, side=0.5)
    model = Population(**FIXED).fit(frame)
    found = dict(zip(*model.people().select("user", "chose_left").to_dict(as_series=False).values(), strict=True))
    for user in (0, 17):
        own = [left == winner for who, left, winner in zip(*(frame[n] for n in ("user", "left", "winner")), strict=True)
               if who == user]  # fmt: skip
        assert found[user] == pytest.approx(np.mean(own))
    assert (
        "chose_left"
        not in Population(**FIXED).fit(Comparisons.from_frame(frame, reading={"side": False})).people().columns
    )


def test_a_covariate_without_differences_is_refused():
    frame, _ = crowd(13)
    answers = Comparisons.from_frame(frame | {"flat": [0.0] * len(frame["user"])}, columns={"covariates": ["flat"]})
    with pytest.raises(DataError, match='"flat" says nothing: left and right are equal'):
        Population(**FIXED).fit(answers)


@pytest.mark.slow
def test_covariates_that_say_the_same_or_everything_stay_finite():
    frame, _ = crowd(10)
    side = np.where(np.array(frame["winner"]) == np.array(frame["left"]), 1.0, -1.0)
    difference = np.array(frame["length_a"]) - np.array(frame["length_b"])
    frame |= {"told": (side * 3).tolist(), "one": difference.tolist(), "other": (2 * difference).tolist()}
    for settings in MODELS:
        for names in (["told"], ["one", "other"]):
            model = Population(**settings).fit(
                Comparisons.from_frame(frame, columns={"covariates": names}, reading={"side": False})
            )
            table = model.covariates()
            assert np.isfinite(table.drop("covariate", "spread").to_numpy()).all()
            spread = table["spread"].to_numpy()  # missing where effects of people's own were not tried
            assert np.all(np.isnan(spread) | (spread >= 0.0))
    assert any("cannot be told apart" in line for line in model.describe())


def test_other_models_say_that_they_take_no_covariates():
    frame, _ = crowd(11)
    with pytest.raises(DataError, match="GaSPK takes no covariates of answers"):
        GaSPK().fit(Comparisons.from_frame(frame, columns={"covariates": ["length"]}))


@pytest.mark.slow
@pytest.mark.parametrize("always_right", [False, True])
def test_intervals_of_the_side_cover_its_effect(always_right):
    """1 000 simulated crowds, with seeds fixed beforehand; also where a baseline is on the right in 40 % of rows."""
    hits, n = 0, 1000
    for seed in range(n):
        rng = np.random.default_rng(20_000 + seed)
        utility = rng.normal(size=6)
        left, right = random_pairs(rng, 400, 6)
        if always_right:
            fixed = rng.random(400) < 0.4
            left, right = np.where(fixed, rng.integers(1, 6, size=400), left), np.where(fixed, 0, right)
        chance = norm.cdf(utility[left] - utility[right] + 0.35)
        outcome = np.where(rng.random(400) < chance, 1, -1)
        columns = {"user": np.arange(400) % 40, "left": left, "right": right}
        answers = Comparisons.from_frame(columns, outcome=outcome)
        assert answers.sides is not None
        model = Population(personal=False, consensus_variance=4.0).fit(answers.with_side())
        found = effect(model)
        hits += found["lower"] < 0.35 < found["upper"]
    assert 0.93 <= hits / n <= 0.97
