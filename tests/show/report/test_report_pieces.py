"""Scales, texts, documents, everybody's file and the plot."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, ndtr

from predilect import Population
from predilect._base.json import plain
from predilect._base.text import amount, one_line, percent, shortened
from predilect.decisions.scales import SCALES, scale_of
from predilect.show.report.folder import plot_board, write_people
from simulate import comparisons, crowd
from tolerances import EXACT


def board_of(n_items: int) -> pl.DataFrame:
    mean = np.linspace(2.0, -2.0, n_items)
    return pl.DataFrame(
        {
            "item": [f"a model with a name of some length, number {k}: $x_{k}$ [b] 中" for k in range(n_items)],
            "mean": mean, "sd": np.full(n_items, 0.2), "lower": mean - 0.4, "upper": mean + 0.4,
            "tier": 1 + np.arange(n_items) // 4, "rank": 1 + np.arange(n_items), "rank_low": 1, "rank_high": n_items,
            "p_best": 0.1, "n": 7,
        }
    )  # fmt: skip


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, 2.5])
def test_scales_mean_what_they_say(gap):
    # Each scale's own formula gives the probit probability, to the .0095 of the logistic approximation.
    assert abs(expit(gap * SCALES["logit"].per_probit) - ndtr(gap)) < 0.01
    assert abs(1 / (1 + 10 ** (-gap * SCALES["elo"].per_probit / 400)) - ndtr(gap)) < 0.01


@pytest.mark.parametrize("gap", [0.3, 1.0, 2.5])
def test_utilities_of_a_logit_model_are_log_odds_on_every_scale(gap):
    assert scale_of("elo", "probit") == SCALES["elo"]
    for name in ("probit", "logit"):
        assert scale_of(name, "logit").per_probit == 1.0
        assert "1 / (1 + exp(-g))" in scale_of(name, "logit").meaning
    elo = scale_of("elo", "logit")
    assert abs(1 / (1 + 10 ** (-gap * elo.per_probit / 400)) - expit(gap)) < 1e-12
    assert f"= {elo.per_probit:.1f}" in elo.meaning


def test_elo_gap_of_100_is_64_percent_and_ties_are_explained():
    assert round(100 / (1 + 10 ** (-100 / 400))) == 64
    assert SCALES["probit"].ties(0.0) == ""
    told = SCALES["probit"].ties(0.5)
    assert "tie in 38 % of answers" in told  # 2 Φ(.5) - 1 = .383
    assert "preferred in 69 %, the other in 7 %" in told  # Φ(1 - .5) = .691, Φ(-1 - .5) = .067
    assert f"{SCALES['elo'].per_probit:.0f} apart" in SCALES["elo"].ties(0.5)
    # People from half to twice the threshold: 2 Φ(.25) - 1 = .197, 2 Φ(1) - 1 = .683.
    assert "tie in 20 to 68 % of answers on equal items" in SCALES["probit"].ties(0.5, np.log(2.0))
    assert SCALES["probit"].ties(0.5, np.log(2.0)).startswith(told)


def test_texts():
    assert one_line("two\nlines\x1b[31m\t.") == "two lines[31m ."
    assert shortened("abcdefghij", 7) == "abcd…ij"
    assert [percent(p) for p in (0.0, 0.004, 0.5, 1.0)] == ["<1 %", "<1 %", "50 %", ">99 %"]
    assert [amount(n) for n in (3.0, 2.5)] == ["3", "2.5"]


def test_plain_values_survive_json():
    value = {"a": np.arange(2), "b": (np.float64(0.5), math.nan, math.inf), 3: None, "c": np.bool_(True)}
    assert json.loads(json.dumps(plain(value, words=False), allow_nan=False)) == {
        "a": [0, 1], "b": [0.5, None, None], "3": None, "c": True,
    }  # fmt: skip


def test_everybodys_file_does_not_depend_on_the_chunks(tmp_path):
    rows = crowd(3, n_users=30, n_items=6, per_person=8)
    model = Population(strength=5.0, variance=1.0).fit(comparisons(rows))
    files = []
    for chunk in (1, 50, 10**6):
        path = tmp_path / f"{chunk}.parquet"
        write_people(path, model, rows_per_chunk=chunk)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]
    table = pl.read_parquet(path)
    assert len(table) == 180
    assert table["n"].sum() == 2 * 30 * 8
    own = table.filter(pl.col("user") == 17).sort("item")
    mean, covariance = model.utility_distribution(17)
    assert max(abs(own["mean"] - mean)) < EXACT
    assert max(abs(own["sd"] - np.sqrt(np.diagonal(covariance)))) < EXACT
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_plots_have_the_same_bytes_twice(tmp_path):
    written = []
    for name in ("one", "two"):
        paths = [tmp_path / f"{name}.png", tmp_path / f"{name}.svg"]
        plot_board(board_of(12), SCALES["elo"], "a board", paths)
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


@pytest.mark.parametrize("n_items", [2, pytest.param(160, marks=pytest.mark.slow)])
def test_plots_show_the_best_items_as_they_are_named(tmp_path, n_items):
    plot_board(board_of(n_items), SCALES["elo"], "a board", [tmp_path / "board.svg"])
    drawing = (tmp_path / "board.svg").read_text()
    assert "$x_0$" in drawing  # not read as mathematics
    assert ("the best 150 of 160" in drawing) == (n_items == 160)
    assert "$x_155$" not in drawing
