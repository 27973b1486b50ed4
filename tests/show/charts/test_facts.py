"""What charts show, against the model's own predictions, the answers counted by hand, and draws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from drawings import picture, words
from predilect import Comparisons, Population
from predilect.data import PersonFeatures
from predilect.evaluation.metrics import Reliability
from predilect.show.charts.facts import has_attributes, pairs_of, part_worths_of, people_map, rank_shares
from predilect.show.charts.pictures import (
    board_chart,
    calibration_chart,
    effects,
    importances_chart,
    learning,
    pairs_chart,
    part_worths_chart,
    people_chart,
    segments_chart,
)
from predilect.show.charts.svg import svg
from simulate import comparisons
from simulate_camps import FIXED, camps
from tolerances import EXACT


def best(model: Population, top: int = 30) -> pl.Series:
    return pl.DataFrame(model.rank())["item"].head(top)


@pytest.fixture(scope="module")
def model():
    return Population(**FIXED).fit(comparisons(camps(0, delta=0.4)))


def test_pairs_are_the_models_predictions_and_the_answers_counted(model):
    found = pairs_of(model, best(model))
    row, column = 1, 4
    one, other = found.items[row], found.items[column]
    p = model.predict_proba({"left": [one], "right": [other]})[0]
    assert abs(found.expected[row, column] - p[0]) < EXACT
    assert abs(found.expected[column, row] - p[2]) < EXACT
    rows = model.comparisons_.to_frame("polars").to_dicts()
    asked = [r for r in rows if {r["left"], r["right"]} == {one, other}]
    won = sum(r["weight"] for r in asked if (r["left"] if r["outcome"] > 0 else r["right"]) == one and r["outcome"])
    n = sum(r["weight"] for r in asked)
    assert n > 5
    assert found.n[row, column] == found.n[column, row] == n
    assert abs(found.observed[row, column] - won / n) < EXACT
    assert np.isnan(np.diagonal(found.expected)).all()
    assert np.isnan(np.diagonal(found.observed)).all()


def test_a_side_that_is_favoured_counts_for_neither_item_of_a_pair():
    rng = np.random.default_rng(2)
    left = rng.integers(0, 4, 1500)
    right = (left + rng.integers(1, 4, 1500)) % 4
    z = 0.3 * (left - right) + 0.5 + rng.standard_normal(1500)
    winner = np.where(z > 0, "left", "right")
    answers = Comparisons.from_frame({"left": left, "right": right, "winner": winner}, reading={"side": True})
    biased = Population(personal=False, n_jobs=1).fit(answers)
    found = pairs_of(biased, best(biased))
    there = biased.predict_proba({"left": found.items[:1], "right": found.items[1:2]})[0]
    back = biased.predict_proba({"left": found.items[1:2], "right": found.items[:1]})[0]
    assert there[0] - back[2] > 0.2  # the better one on the left, and on the right
    assert abs(found.expected[0, 1] - 0.5 * (there[0] + back[2])) < EXACT
    assert abs(found.expected[0, 1] + found.expected[1, 0] + there[1] - 1.0) < EXACT
    chosen = biased.versus([(found.items[1], found.items[0])])
    assert abs(chosen["p_left"][0] - found.expected[1, 0]) < EXACT


def test_pairs_without_answers_are_empty_and_the_best_come_first(model):
    small = pairs_of(model, best(model, 3))
    assert small.items == pl.DataFrame(model.rank())["item"].head(3).to_list()
    answers = {"left": ["tea", "milk"], "right": ["milk", "soup"], "winner": ["tea", "milk"]}
    pooled = Population(personal=False, **FIXED).fit(answers)
    found = pairs_of(pooled, best(pooled))
    assert found.items == ["tea", "milk", "soup"]
    assert found.n[0, 2] == 0.0
    assert np.isnan(found.observed[0, 2])
    assert found.observed[0, 1] == 1.0
    said = words(picture(svg(pairs_chart(found, observed=True))))
    assert "100" in said
    assert "nan" not in " ".join(said)


def test_ranks_have_probabilities_that_agree_with_the_board(model):
    board = pl.DataFrame(model.rank())
    shares = rank_shares(model, best(model))
    assert shares.shape == (6, 6)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.allclose(shares.sum(axis=0), 1.0)
    p = board["p_best"].to_numpy()
    error = np.sqrt(p * (1.0 - p) * (1 / 2000 + 1 / 4000))
    assert (np.abs(shares[:, 0] - p) <= 4.0 * error + 1e-3).all()
    some = rank_shares(model, best(model, 2))
    assert some.shape == (2, 3)
    assert np.allclose(some[:, 2], shares[:2, 2:].sum(axis=1))


def test_two_camps_lie_on_two_sides_of_the_map(model):
    found = people_map(model)
    side = found.place[:, 0] > 0.0
    camp = np.array(model.users_.ids) % 2 == 1
    assert min((side == camp).mean(), (side != camp).mean()) == 0.0
    assert found.share[0] > 0.8
    low, high = found.ends[0]
    # They differ along the items' order: one end likes the first, the other the last.
    assert {tuple(sorted(low)), tuple(sorted(high))} == {("0", "1", "2"), ("3", "4", "5")}
    assert "40 people" in picture(svg(people_chart(found)))[1].text


def test_the_map_draws_some_of_many_people_and_says_so(model):
    found = people_map(model, 10)
    assert len(found.place) == 10
    assert found.n_people == 40
    assert "10 of 40 people, drawn at random" in picture(svg(people_chart(found)))[1].text


def test_no_map_where_nobody_is_told_apart_or_all_are_the_same():
    rows = camps(0)
    assert people_map(Population(personal=False, **FIXED).fit(comparisons(rows))) is None
    answers = {"user": ["a", "b"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "y"]}
    assert people_map(Population(**FIXED).fit(answers)) is None


def test_segments_are_the_groups_of_the_map_and_stand_against_the_crowd():
    rows = comparisons(camps(0))
    people = PersonFeatures.from_frame(
        {"user": list(range(40)), "party": ["<b>odd" if k % 2 else "even" for k in range(40)]}, segments="party"
    )
    model = Population(**FIXED).fit(rows, people=people)
    found = people_map(model)
    assert sorted(found.groups) == ["<b>odd", "even"]
    odd = found.group == found.groups.index("<b>odd")
    assert (odd == (np.array(model.users_.ids) % 2 == 1)).all()
    boards = pl.DataFrame(model.segments()).partition_by("column", "segment", maintain_order=True)
    root = picture(svg(segments_chart(boards, pl.DataFrame(model.rank()), "units")))
    said = words(root)
    assert "<b>odd (20)" in said
    row = boards[0].row(0, named=True)
    star = "*" if row["more_than_chance"] else ""
    assert f"{row['difference']:+.2f}{star}" in said
    picture(svg(segments_chart([], pl.DataFrame(model.rank()), "units")))


@pytest.mark.slow
def test_part_worths_are_those_of_the_population():
    rows = comparisons(camps(0))
    items = {"item": list(range(6)), "size": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "kind": ["a", "b"] * 3}
    model = Population(**FIXED, feature_weight=0.5, length_scale=1.0).fit(rows, items=items)
    importances, worths = part_worths_of(model)
    # One number for one thing: `predilect worth`, the report and the charts say the same of a mean and its interval.
    assert worths.drop("label").equals(pl.DataFrame(model.worth.coefficients()))
    assert picture(svg(importances_chart(importances))) is not None
    said = words(picture(svg(part_worths_chart(worths))))
    assert {"one unit more", "a", "b", "size", "kind"} <= set(said)
    assert has_attributes(model)
    items["size"][5] = None
    model = Population(**FIXED, feature_weight=0.5, length_scale=1.0).fit(rows, items=items)
    label = dict(part_worths_of(model)[1].select("attribute", "label").iter_rows())
    assert label["size missing"] == "against the average"
    assert not has_attributes(Population(**FIXED).fit(rows))


def test_learning_curves_say_in_words_what_they_show():
    losses = {"own <b>": [(2.0, 0.97), (10.06, 0.912)], "one for all": [(2.0, 0.968)]}
    root = picture(svg(learning(losses)))
    told = next(one.text for one in root.iter() if one.tag.endswith("desc"))
    assert "own <b>: 0.970 with 2, 0.912 with 10.1; one for all: 0.968 with 2." in told
    assert set(losses) <= set(words(root))


def test_boards_say_in_words_what_they_show(model):
    board = pl.DataFrame(model.rank())
    root = picture(svg(board_chart(board, "noise")))
    first = board.row(0, named=True)
    assert f"score {first['mean']:.2f} ({first['lower']:.2f} to {first['upper']:.2f})" in root[1].text
    assert {"tier 1", *(f"{k}  {item}" for k, item in enumerate(board["item"].to_list(), 1))} <= set(words(root))
    assert picture(svg(board_chart(board, "noise", top=2)))[0].text == "The best 2 of 6 items by score"
    assert picture(svg(board_chart(board.head(0), "noise")))[0].text == "0 items by score"


def test_shares_and_effects_are_drawn_with_their_numbers():
    bins = [Reliability(0.15, 0.2, 0.1, 0.3, 50.0), Reliability(0.85, 0.9, 0.8, 0.95, 40.0)]
    assert "given 15 %, came out in 20 % (10 to 30 %) of 50 cases" in picture(svg(calibration_chart(bins)))[1].text
    answers = {
        "user": [k % 7 for k in range(80)], "left": ["tea", "milk"] * 40, "right": ["milk", "tea"] * 40,
        "winner": ["tea", "milk", "tea", "tea"] * 20, "length": [float(k % 5) for k in range(80)],
    }  # fmt: skip
    model = Population(**FIXED).fit(Comparisons.from_frame(answers, columns={"covariates": ["length"]}))
    assert "length" in words(picture(svg(effects(model))))
