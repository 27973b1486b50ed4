"""Ratings over time: what moves is found, boards of a date, histories, invariances, and what is refused."""

from __future__ import annotations

import datetime
import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from benchmarks.over_time import found_to_move, held, league

import predilect
from predilect import Comparisons, Population
from predilect.errors import DataError, DataWarning
from predilect.inference.latent.drift import TimedAnswers
from predilect.inference.latent.pooled import PooledAnswers
from predilect.models.population.search.drift import _League
from predilect.papers.gppl import GPPL
from predilect.show.charts.pictures import OF_A_MODEL, history_chart
from tolerances import EXACT, ITERATIVE

GIVEN = (0.4, 25.0)  # s_d and ℓ


def fitted(games, outcome, **settings):
    settings = {"personal": False, "drift": GIVEN} | settings
    return Population(**settings).fit(games, outcome, columns={"time": "time"}, reading={"tie": "0"})


@cache
def small():
    return league(1, n_items=6, n_games=300, ties=0.3)


@cache
def model():
    return fitted(*small()[:2])


def board(model, **how):
    return pl.DataFrame(model.rank(**how)).sort("item").select("item", "mean", "sd").to_dict(as_series=False)


def assert_same(one, other, tolerance=ITERATIVE, names=None):
    assert (names or one["item"]) == other["item"]
    for column in ("mean", "sd"):
        np.testing.assert_allclose(one[column], other[column], atol=tolerance)


@pytest.mark.slow
def test_what_moves_is_found_and_forecasts_gain():
    made = league(7)
    found = fitted(*made[:2], drift="auto")
    report = found.report_["drift"]
    assert report["found"]
    assert report["evidence_gain"] > 10.0
    assert report["forecast_gain"] > 0.0
    assert 5.0 < found.drift_.length < 75.0
    assert 0.85 < held(found, made, 1000) <= 1.0
    assert any("Ratings move" in line for line in found.describe())


@pytest.mark.slow
def test_items_that_stay_are_found_to_stay():
    assert found_to_move(4, 0.0) == 0.0
    made = league(1, n_items=6, n_games=300, share=0.0)
    found = fitted(*made[:2], drift="auto")
    assert found.drift_ is None
    still = Population(personal=False).fit({k: made.games[k] for k in ("left", "right")}, made.outcome)
    assert_same(board(found), board(still), EXACT)
    assert any("No drift" in line for line in found.describe())
    with pytest.raises(DataError, match=r"the same at all times: no drift.*for all times\. Ratings over time"):
        found.history()
    found.update(left="item-000", right="item-001", outcome=1)
    assert found.n_answers_ == 301


def test_without_times_in_use_it_is_the_pooled_model_to_the_bit():
    games, outcome, _ = small()
    off = fitted(games, outcome, drift=False)
    still = Population(personal=False).fit({k: games[k] for k in ("left", "right")}, outcome, reading={"tie": "0"})
    assert_same(board(off), board(still), 0.0)
    assert "drift" not in off.report_


@pytest.mark.slow
def test_sides_rows_and_copies_make_no_difference():
    games, outcome, _ = small()
    swapped = games | {"left": games["right"], "right": games["left"]}
    assert_same(board(fitted(swapped, -outcome)), board(model()))
    order = np.random.default_rng(0).permutation(len(outcome))
    again = fitted({k: v[order] for k, v in games.items()}, outcome[order])
    assert_same(board(again), board(model()), 0.0)
    twice = {k: np.concatenate([v, v]) for k, v in games.items()}
    weighed = games | {"n": np.full(len(outcome), 2)}
    one = fitted(twice, np.concatenate([outcome, outcome]))
    two = Population(personal=False, drift=GIVEN).fit(
        weighed, outcome, columns={"time": "time", "weights": "n"}, reading={"tie": "0"}
    )
    assert_same(board(one), board(two), 0.0)


def test_names_make_no_difference():
    games, outcome, _ = small()
    names = {f"item-{k:03d}": f"x{(5 * k + 3) % 6}" for k in range(6)}
    renamed = games | {side: np.array([names[one] for one in games[side]]) for side in ("left", "right")}
    other = board(fitted(renamed, outcome))
    place = [other["item"].index(names[one]) for one in board(model())["item"]]
    other = {name: [column[k] for k in place] for name, column in other.items()} | {"item": board(model())["item"]}
    assert_same(other, board(model()))


@pytest.mark.slow
def test_where_the_clock_begins_and_its_unit_make_no_difference():
    games, outcome, _ = small()
    shifted = fitted(games | {"time": games["time"] * 24.0 + 1e4}, outcome, drift=(GIVEN[0], GIVEN[1] * 24.0))
    assert_same(board(shifted), board(model()))
    assert_same(board(shifted, at=50.0 * 24.0 + 1e4), board(model(), at=50.0))
    searched = [
        fitted(games | {"time": time}, outcome, drift=True) for time in (games["time"], games["time"] * 24.0 + 1e4)
    ]
    assert searched[1].drift_.length == pytest.approx(24.0 * searched[0].drift_.length, rel=1e-3)


@pytest.mark.slow
def test_the_same_answers_give_the_same_bits():
    games, outcome, _ = small()
    one, two = (fitted(games, outcome, drift=True) for _ in range(2))
    assert one.drift_.length == two.drift_.length
    np.testing.assert_array_equal(one.posterior_.covariance, two.posterior_.covariance)


def test_the_board_of_the_last_answers_is_the_board():
    now = float(small().games["time"].max())
    assert_same(board(model(), at=now), board(model()), EXACT)
    assert board(model(), at=10.0)["mean"] != board(model())["mean"]


def test_a_history_is_of_boards_at_its_times():
    at = [90.0, 10.0, 10.0]
    found = model().history(["item-002"], at=at)
    assert found["time"].to_list() == at
    for time, mean, sd in found.select("time", "mean", "sd").iter_rows():
        theirs = pl.DataFrame(model().rank(at=time)).row(by_predicate=pl.col("item") == "item-002", named=True)
        assert (mean, sd) == pytest.approx((theirs["mean"], theirs["sd"]), abs=EXACT)
    whole = model().history()
    assert len(whole) == 6 * 60
    assert (whole["lower"] < whole["mean"]).all()
    centred = whole.group_by("time").agg(pl.col("mean").sum())["mean"]
    np.testing.assert_allclose(centred, 0.0, atol=EXACT)


def test_times_next_to_one_of_the_answers_are_that_time():
    drift = model().drift_
    beside = drift.times[[3, 20]] * (1.0 + 1e-13)
    for place, (mean, _) in zip((20, 3), drift.laws(beside), strict=True):
        np.testing.assert_array_equal(mean, drift.level + drift.moved[place])


def test_the_shortest_memory_is_the_median_gap_between_times_of_one_item_or_half_the_span():
    times, rng = np.array([0.0, 1.0, 1.5, 4.0, 10.0]), np.random.default_rng(0)
    many = rng.integers(2, size=30), rng.integers(2, 4, size=30), rng.integers(5, size=30)
    for left, right, at in (many, *np.array([[[0, 0], [1, 1], [0, 4]], [[0, 2], [1, 3], [0, 4]]])):
        rows = PooledAnswers(left, right, np.ones(len(at)), np.ones(len(at)), 4)
        met = [sorted(set(times[at[(left == item) | (right == item)]])) for item in range(4)]
        gaps = [after - before for one in met for before, after in pairwise(one)]
        expected = min(np.median(gaps), 5.0) if gaps else 5.0
        assert _League(TimedAnswers(rows, at, times), np.eye(4)).memory() == (expected, 10.0)


def test_a_picture_has_a_panel_for_each_leader():
    chart = history_chart(model())
    best = pl.DataFrame(model().rank())["item"].to_list()
    assert [row[0].axes[1] for row in chart.data.rows] == best[:6]
    (series,) = chart.data.rows[0][0].data.series
    theirs = model().history([best[0]])
    assert list(series.y) == theirs["mean"].to_list()
    assert list(series.lower) == theirs["lower"].to_list()
    one = OF_A_MODEL["history"](model(), item="item-003", at=[10.0, 90.0])
    assert list(one.data.series[0].x) == [10.0, 90.0]


def test_times_beyond_the_answers_are_extrapolated_with_a_warning():
    with pytest.warns(DataWarning, match="extrapolated"):
        far = board(model(), at=1e6)
    drift = model().drift_
    level = drift.level - drift.level.mean()
    np.testing.assert_allclose(far["mean"], level, atol=ITERATIVE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = board(model(), at=float(drift.now + 1.0))
        drift.warn_beyond(np.array([drift.now + 0.25 * drift.length]))
    assert np.mean(near["sd"]) > np.mean(board(model())["sd"])


def test_saved_is_loaded(tmp_path):
    model().save(tmp_path / "m")
    again = predilect.load(tmp_path / "m")
    assert_same(board(again), board(model()), 0.0)
    assert_same(board(again, at=33.3), board(model(), at=33.3), 0.0)
    assert again.describe() == model().describe()
    again.save(tmp_path / "n")
    assert (tmp_path / "n" / "arrays.npz").read_bytes() == (tmp_path / "m" / "arrays.npz").read_bytes()


@pytest.mark.slow
def test_dates_are_days_and_come_back_as_dates():
    games, outcome, _ = small()
    first = datetime.date(2024, 1, 1)
    days = [first + datetime.timedelta(days=int(one)) for one in games["time"]]
    texts = fitted(games | {"time": [str(one) for one in days]}, outcome)
    assert_same(board(fitted(games | {"time": days}, outcome)), board(texts), 0.0)
    assert_same(board(fitted(games | {"time": np.floor(games["time"])}, outcome)), board(texts))
    history = texts.history(["item-001"], at=["2024-02-01", "2024-03-01"])
    assert history["time"].to_list() == [datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)]
    assert_same(board(texts, at=datetime.date(2024, 2, 1)), board(texts, at="2024-02-01"), 0.0)
    assert any("days" in line and str(max(days)) in line for line in texts.describe())


@pytest.mark.slow
def test_sides_covariates_and_grades_are_learned_beside_it():
    rng = np.random.default_rng(4)
    made = league(2, n_items=5, n_games=600)
    x = rng.standard_normal(600)
    left, right = (np.char.lstrip(made.games[side], "item-").astype(int) for side in ("left", "right"))
    game = np.arange(600)
    z = made.utilities[game, left] - made.utilities[game, right] + 0.8 * x + rng.standard_normal(600)
    grade = np.clip(np.sign(z) * (1 + (np.abs(z) > 1.0)), -2, 2).astype(int)
    games = made.games | {"length": x}
    found = Population(personal=False, drift=GIVEN).fit(
        games, grade, columns={"time": "time", "covariates": ["length"]}
    )
    assert found.grades_ == ("1", "2")
    effect = pl.DataFrame(found.covariates()).row(0, named=True)
    assert effect["lower"] < 0.8 < effect["upper"]
    assert pl.DataFrame(found.history(at=[10.0, 90.0]))["sd"].is_finite().all()


def test_choices_of_several_have_a_time_each():
    rng = np.random.default_rng(0)
    shown = np.concatenate([rng.choice(5, 3, replace=False) for _ in range(80)])
    rows = {"task": np.repeat(np.arange(80), 3), "item": shown}
    rows |= {"chosen": np.tile([1, 0, 0], 80), "time": np.repeat(np.arange(80.0), 3)}
    found = Population(personal=False, drift=(0.4, 20.0)).fit(rows, columns={"time": "time", "who": ""})
    assert len(found.drift_.times) == 80
    assert found.report_["fit"]["method"] == "Newton over time"


@pytest.mark.slow
def test_many_times_are_taken_together_and_said():
    made = league(1, n_items=6, n_games=1500)
    found = fitted(*made[:2])
    assert len(found.drift_.times) < 1001
    assert any("taken together" in line for line in found.describe())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"personal": True, "drift": "auto"}, "the crowd's alone"), ({"drift": "fast"}, "two positive numbers"),
        ({"drift": (1.0, 0.0)}, "two positive numbers"), ({"basis": "inducing"}, "of the items themselves"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(settings, why):
    games, outcome, _ = small()
    users = np.resize(["ann", "bob", "cas"], len(outcome))
    with pytest.raises(DataError, match=why):
        fitted(games | {"user": users}, outcome, **settings)


def test_times_are_needed_and_other_models_take_none():
    games, outcome, _ = small()
    with pytest.raises(DataError, match="drift is of answers with times"):
        Population(personal=False, drift=True).fit({k: games[k] for k in ("left", "right")}, outcome)
    with pytest.raises(DataError, match="takes no times"):
        GPPL().fit(games, outcome, columns={"time": "time"}, reading={"tie": "0"})
    with pytest.raises(DataError, match="the same ratings at all times"):
        GPPL().fit({k: games[k] for k in ("left", "right")}, outcome, reading={"tie": "0"}).rank(at=1.0)


def test_what_is_asked_of_it_wrongly_is_refused_in_words():
    for how, why in (
        ({"at": "2024-01-01"}, "at holds dates"), ({"at": "soon"}, "not understood"), ({"at": [None, 1.0]}, "no time"),
        ({"items": ["nobody"]}, "nobody"), ({"items": "item-001"}, "a list of ids"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=why):
            model().history(**how)
    with pytest.raises(DataError, match="give at, or user"):
        model().rank("ann", at=1.0)
    for change in (model().update, model().forget):
        with pytest.raises(DataError, match="Fit again"):
            change(left="item-000", right="item-001", outcome=1)


def test_all_answers_of_one_time_have_no_drift():
    games, outcome, _ = small()
    found = fitted(games | {"time": np.zeros(300)}, outcome, drift="auto")
    assert found.drift_ is None
    assert any("of one time" in line for line in found.describe())


def test_a_verdict_on_people_leaves_times_out():
    games, outcome, _ = small()
    users = np.resize(["ann", "bob", "cas", "dan"], len(outcome))
    answers = Comparisons.from_frame(
        games | {"user": users}, outcome=outcome, columns={"time": "time"}, reading={"tie": "0"}
    )
    assert Population(personal=False, drift=GIVEN).fit(answers).verdict().personal.outcome


@pytest.mark.slow
def test_intervals_of_differences_hold_the_truth():
    from benchmarks.over_time import coverage

    assert all(0.92 <= one <= 0.98 for one in coverage(20))  # the benchmark has 60 worlds
