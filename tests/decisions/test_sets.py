"""The next set to ask for the best of."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from predilect import Comparisons, Population, load
from predilect.decisions.questions import _information, choice_chances, expected_largest, suggest, suggest_set
from predilect.errors import DataError, DataWarning
from simulate import comparisons, crowd
from tolerances import EXACT


@pytest.fixture(scope="module")
def model():
    return Population(strength=10.0, variance=1.0, consensus_variance=2.0, calibration=None, consistency=0.0,
                      n_jobs=1).fit(comparisons(crowd(1, 12, 7, 10)))  # fmt: skip


def test_chances_of_a_choice_are_those_of_noisy_utilities():
    f = np.array([[0.3, -0.5, 1.2, 0.1], [4.0, 0.0, 0.0, -3.0]])
    felt = f[:, None, :] + np.sqrt(0.5) * np.random.default_rng(0).standard_normal((2, 200_000, 4))
    for chances, row in zip(choice_chances(f), felt.argmax(axis=2), strict=True):
        np.testing.assert_allclose(chances, np.bincount(row, minlength=4) / 200_000, atol=0.005)
    pair = choice_chances(np.array([[0.7, 0.0]]))
    assert pair[0, 0] == pytest.approx(0.758036, abs=1e-5)  # Φ(.7)


def test_the_expected_largest_utility_is_that_of_noisy_utilities():
    f = np.array([[0.3, -0.5, 1.2, 0.1], [4.0, 0.0, 0.0, -3.0]])
    felt = f[:, None, :] + np.sqrt(0.5) * np.random.default_rng(0).standard_normal((2, 200_000, 4))
    np.testing.assert_allclose(expected_largest(f), felt.max(axis=2).mean(axis=1), atol=0.006)
    d = np.array([-2.0, 0.0, 0.7])  # of two: Clark (1961)
    np.testing.assert_allclose(
        expected_largest(np.stack([d, np.zeros(3)], axis=1)), d * norm.cdf(d) + norm.pdf(d), atol=1e-5
    )


@pytest.mark.slow
def test_a_set_tells_more_than_its_parts_and_than_other_sets(model):
    found = suggest_set(model, "0" if model.users_.is_integer is False else 0, 4)
    scores = found["score"].to_numpy()
    assert scores[0] == 0.0
    assert (np.diff(scores) > 0.0).all()
    assert found["p_best"].sum() == pytest.approx(1.0, abs=EXACT)
    mean, covariance = model.posterior_.person(0).dense()
    draws = np.random.default_rng(5).multivariate_normal(mean, covariance, size=4000)
    codes = model.items_.codes(found["item"].to_list())
    every = np.array(list(itertools.combinations(range(7), 4)))
    told = _information(draws, every)[0]
    ours = _information(draws, codes[None].astype(int))[0][0]
    assert ours > np.quantile(told, 0.85)


def test_a_set_of_two_is_the_most_telling_pair(model):
    pair = suggest(model, 0, repeat=True)
    found = suggest_set(model, 0, 2)
    assert set(found["item"]) == {pair["left"][0], pair["right"][0]}
    assert found["score"][1] == pytest.approx(pair["score"][0], abs=0.03)


def test_the_seed_the_candidates_and_bad_input(model):
    np.testing.assert_array_equal(suggest_set(model, 0)["score"], suggest_set(model, 0)["score"])
    some = model.items_.ids[2:6]
    assert set(suggest_set(model, 0, 3, candidates=list(some))["item"]) <= set(some)
    with pytest.raises(DataError, match="whole number of alternatives from 2 to 20"):
        suggest_set(model, 0, 1)
    with pytest.raises(DataError, match="there are 7 items to show"):
        suggest_set(model, 0, 8)
    with pytest.warns(DataWarning, match="somebody without answers"):
        suggest_set(model, 99, 3)


def answer_set(model, user, size, task, **options):
    """Ask a set, and give the first of it as the answer; its items."""
    shown = suggest_set(model, user, size, **options)["item"].to_list()
    n = size - 1
    rows = {"user": [user] * n, "left": shown[:1] * n, "right": shown[1:], "winner": ["left"] * n, "task": [task] * n}
    model.update(Comparisons.from_frame(rows, columns={"task": "task"}))
    return frozenset(shown)


@pytest.fixture
def of_five():
    given = {"strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "calibration": None, "consistency": 0.0}
    return Population(n_jobs=1, **given).fit(comparisons(crowd(1, 6, 5, 3)))


def test_no_set_is_asked_twice_and_all_are_asked(of_five, tmp_path):
    asked = [answer_set(of_five, 0, 4, task) for task in range(3)]
    of_five.save(tmp_path / "model")
    of_five = load(tmp_path / "model")  # without the answers of the fit
    asked += [answer_set(of_five, 0, 4, task) for task in range(3, 5)]
    assert len(set(asked)) == 5
    assert suggest_set(of_five, 0, 4).is_empty()
    assert suggest_set(of_five, 0, 4)["item"].dtype == of_five.items_.series().dtype
    assert len(suggest_set(of_five, 0, 4, repeat=True)) == 4
    assert len(suggest_set(of_five, 1, 4)) == 4
    assert suggest_set(of_five, 1, 5, exclude=[of_five.items_.ids]).is_empty()
    assert len(suggest_set(of_five, 0, 3)) == 3


def test_sets_of_others_are_left_out_however_they_are_given(of_five):
    first = suggest_set(of_five, 1, 3)["item"].to_list()
    second = suggest_set(of_five, 1, 3, exclude=[first])["item"].to_list()
    assert set(second) != set(first)
    both = pl.DataFrame({"item": first + second, "task": [0] * 3 + [1] * 3})
    third = suggest_set(of_five, 1, 3, exclude=both)["item"].to_list()
    assert set(third) not in (set(first), set(second))
    # of another person, and of this one, who number their tasks alike
    theirs = both.with_columns(task=pl.lit(0), user=pl.Series([1] * 3 + [2] * 3))
    assert suggest_set(of_five, 1, 3, exclude=theirs)["item"].to_list() == second
    rows = {"user": [1] * 2, "left": first[:1] * 2, "right": first[1:], "winner": ["left"] * 2, "task": [0] * 2}
    answers = Comparisons.from_frame(rows, columns={"task": "task"})
    assert suggest_set(of_five, 1, 3, exclude=answers)["item"].to_list() == second
    with pytest.raises(DataError, match="a column item, a row an item"):
        suggest_set(of_five, 1, 3, exclude=both.rename({"item": "what"}))
    with pytest.raises(DataError, match="99"):
        suggest_set(of_five, 1, 3, exclude=[[99, 1, 2]])


# The predictions are for newcomers, and the model warns that it does not know them.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the model does not know")
def test_newcomers_see_different_sets_and_each_the_same_again():
    items = {"item": [f"i{k:02d}" for k in range(70)]}  # sets are made of 60 of them
    answers = {"user": ["ann", "bob", "cas"], "left": ["i00"] * 3, "right": ["i01"] * 3}
    model = Population(variance=1.0, consensus_variance=2.0, consistency=0.0).fit(answers, [1, 1, -1], items=items)
    for size, n_people in ((2, 20), (3, 4)):
        shown = [tuple(suggest_set(model, f"visitor {k}", size)["item"]) for k in range(n_people)]
        assert len(set(shown)) > 0.8 * n_people
        assert shown[0] == tuple(suggest_set(model, "visitor 0", size)["item"])
        if size == 2:
            assert max(item for one in shown for item in one) > "i62"
