"""Plots on Matplotlib axes: what stands where, and what cannot be drawn."""

from __future__ import annotations

import doctest
from inspect import signature

import numpy as np
import polars as pl
import pytest

from drawings import WILD
from predilect import Comparisons, Population, plot
from predilect.data import PersonFeatures
from predilect.errors import DataError
from predilect.show.charts.facts import pairs_of, part_worths_of, people_map, rank_shares
from predilect.show.charts.pictures import OF_A_MODEL
from simulate import comparisons
from simulate_camps import FIXED, camps
from tolerances import EXACT

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot

    matplotlib.use("agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    party = ["odd" if k % 2 else "even" for k in range(40)]
    people = PersonFeatures.from_frame({"user": list(range(40)), "party": party}, segments="party")
    return Population(**FIXED).fit(comparisons(camps(0, delta=0.4)), people=people)


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.slow
def test_a_board_has_its_scores_in_the_size_and_with_the_title_that_is_asked_for(model):
    ax = plot.board(model, top=4, title="$Drinks", size=(6.0, 3.0))
    board = pl.DataFrame(model.rank()).head(4)
    assert labels(ax.yaxis) == [f"{k}  {item}" for k, item in enumerate(board["item"], 1)]
    points = next(one for one in ax.collections if len(one.get_offsets()) == 4 and one.get_offsets()[:, 1].data[1] == 1)
    assert np.abs(points.get_offsets()[:, 0].data - board["mean"].to_numpy()).max() < EXACT
    assert ax.get_title(loc="left") == "$Drinks"
    assert ax.figure.get_size_inches().tolist() == [6.0, 3.0]
    own = plot.board(model, user=3)
    assert labels(own.yaxis) == [f"{k}  {item}" for k, item in enumerate(pl.DataFrame(model.rank(3))["item"], 1)]


def test_axes_that_are_given_are_drawn_on(model):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    for draw in (plot.board, plot.pairs, plot.people, plot.segments):
        assert draw(model, ax=ax) is ax


def test_pairs_show_the_models_numbers(model):
    found = pairs_of(model, pl.DataFrame(model.rank())["item"])
    for observed, share in ((False, found.expected), (True, found.observed)):
        ax = plot.pairs(model, observed=observed)
        texts = {tuple(one.get_position()[::-1]): one.get_text() for one in ax.texts}
        assert texts[1, 4] == f"{100 * share[1, 4]:.0f}"
        assert (1, 1) not in texts


def test_people_stand_where_the_map_has_them_by_segment(model):
    ax, found = plot.people(model), people_map(model)
    drawn = np.concatenate([one.get_offsets().data for one in ax.collections])
    placed = np.concatenate([found.place[found.group == k] for k in range(len(found.groups))])
    assert np.abs(drawn - placed).max() < EXACT
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"odd", "even"}
    assert sum(len(one.get_offsets()) for one in plot.people(model, most=10).collections) == 10


@pytest.mark.slow
def test_segments_calibration_and_effects_are_drawn(model):
    ax = plot.segments(model, top=3)
    assert len(labels(ax.yaxis)) == 3
    assert sorted(labels(ax.xaxis)) == ["even (20)", "odd (20)"]
    judged = Population(**FIXED).fit(comparisons(camps(0, delta=0.4)))
    judged.verdict(n_folds=2)
    ax = plot.calibration(judged)
    came = ax.containers[0].lines[0].get_ydata()
    assert came.tolist() == [one.observed for one in judged.verdict_.reliability]
    table = {
        "user": [k % 7 for k in range(80)], "left": ["tea", "milk"] * 40, "right": ["milk", "tea"] * 40,
        "winner": ["tea", "milk", "tea", "tea"] * 20, "length": [float(k % 5) for k in range(80)],
    }  # fmt: skip
    ax = plot.effects(Population(**FIXED).fit(Comparisons.from_frame(table, columns={"covariates": ["length"]})))
    assert "length" in labels(ax.yaxis)


@pytest.mark.slow
def test_every_chart_can_be_plotted_with_the_numbers_that_it_has_in_a_page():
    items = {"item": list(range(6)), "size": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "kind": ["a", "b"] * 3}
    model = Population(**FIXED, feature_weight=0.5, length_scale=1.0).fit(comparisons(camps(0)), items=items)
    assert set(plot.__all__) == set(OF_A_MODEL)
    losses = {"own": [(2.0, 0.97), (10.0, 0.91)], "one for all": [(2.0, 0.968)]}
    shares = rank_shares(model, pl.DataFrame(model.rank())["item"])
    assert f"{100 * shares[0, 0]:.0f}" in {one.get_text() for one in plot.ranks(model).texts}
    worths = part_worths_of(model)[1]
    ax = plot.part_worths(model)
    assert labels(ax.yaxis) == worths["label"].to_list()
    points = next(one.get_offsets().data for one in ax.collections if len(one.get_offsets()) == len(worths))
    assert np.abs(points[:, 0] - worths["mean"].to_numpy()).max() < EXACT
    assert set(labels(plot.importances(model).yaxis)) == {"size", "kind"}
    ax = plot.learning(losses)
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0.97, 0.91], [0.968]]
    assert {text.get_text() for text in ax.get_legend().get_texts()} == set(losses)
    for draw in (getattr(plot, name) for name in plot.__all__):
        assert {"title", "ax", "size"} <= set(signature(draw).parameters)
        assert draw.__doc__


def test_what_there_is_not_is_said(model):
    with pytest.raises(DataError, match=r"call model.verdict\(\) first"):
        plot.calibration(model)
    plain = Population(personal=False, **FIXED).fit({"left": ["tea"], "right": ["milk"], "winner": ["tea"]})
    with pytest.raises(DataError, match="no map of people"):
        plot.people(plain)
    with pytest.raises(DataError, match="no covariates"):
        plot.effects(plain)
    with pytest.raises(DataError, match="knows no segments"):
        plot.segments(plain)
    for draw in (plot.importances, plot.part_worths):
        with pytest.raises(DataError, match="knows no attributes"):
            draw(plain)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")
def test_names_are_never_read_as_mathematics(tmp_path):
    answers = {"left": [*WILD, "$x_0$"], "right": ["$x_0$", *WILD], "winner": [*WILD, "$x_0$"]}
    ax = plot.board(Population(personal=False, **FIXED).fit(answers))
    ax.figure.savefig(tmp_path / "board.svg")
    ax.figure.savefig(tmp_path / "board.pdf")
    assert "$x_0$" in (tmp_path / "board.svg").read_text() or "$x_0$" in labels(ax.yaxis)


def test_the_example_of_the_module():
    found = doctest.testmod(plot)
    assert found.attempted > 4
    assert found.failed == 0


def test_plots_of_a_model_are_those_of_the_module(model):
    ours, theirs = model.plot.board(top=3, title="Best"), plot.board(model, top=3, title="Best")
    assert [text.get_text() for text in ours.texts] == [text.get_text() for text in theirs.texts]
    assert ours.get_title(loc="left") == "Best"
    assert dir(model.plot) == sorted(plot.__all__)
    with pytest.raises(AttributeError, match=r"no plot 'bord'; there are .*board"):
        model.plot.bord  # noqa: B018  to ask for it is the test
