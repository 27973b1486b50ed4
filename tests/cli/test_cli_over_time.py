"""``predilect rank -c time=COLUMN``: what it prints, writes and refuses, and what the other commands make of it."""

from __future__ import annotations

import datetime
import json

import numpy as np
import polars as pl
import pytest
from benchmarks.over_time import league

from cli.running import run


@pytest.fixture
def votes(tmp_path):
    made = league(1, n_items=6, n_games=300)
    first = datetime.date(2024, 1, 1)
    path = tmp_path / "votes.csv"
    pl.DataFrame(made.games).with_columns(
        pl.Series("time", [first + datetime.timedelta(days=int(one)) for one in made.games["time"]]),
        pl.Series("winner", np.where(made.outcome > 0, made.games["left"], made.games["right"])),
        pl.Series("user", np.resize(["ann", "bob", "cas"], len(made.outcome))),
    ).write_csv(path)
    return path


@pytest.mark.slow
def test_the_folder_holds_the_board_now_and_over_time(votes, tmp_path):
    out = tmp_path / "out"
    ran = run("rank", votes, "-c", "time=time", "--model", "population,drift=[0.4,25]", "-o", out)
    assert ran.exit_code == 0, ran.stderr
    said = ran.stdout + ran.stderr
    assert "Verdict: ratings move with time" in said
    assert "--personal auto" not in said
    history = pl.read_csv(out / "history.csv", try_parse_dates=True)
    assert history.columns == ["item", "time", "mean", "sd", "lower", "upper"]
    assert history["time"].dtype == pl.Date
    board = pl.read_csv(out / "leaderboard.csv").sort("item")
    last = history.filter(pl.col("time") == pl.col("time").max()).sort("item")
    np.testing.assert_allclose(last["mean"], board["mean"], atol=1e-9)
    assert json.loads((out / "leaderboard.json").read_text())["model"]["drift"]["found"]
    assert run("show", out).exit_code == 0
    page = tmp_path / "page.html"
    assert run("report", out, "-o", page).exit_code == 0
    assert "Ratings over time" in page.read_text()
    assert run("compare", out, out).exit_code == 0
    explained = run("rank", votes, "-c", "time=time", "--model", "population,drift=[0.4,25]", "--explain")
    assert "memory 25 days" in explained.stdout + explained.stderr


def test_personal_rankings_other_models_and_bad_times_are_refused_in_words(votes, tmp_path):
    for more, why in (
        (["--personal", "yes"], "the crowd's alone"), (["--model", "gppl"], "takes no times"),
        (["--model", "population,drift=fast"], "two positive numbers"),
    ):  # fmt: skip
        ran = run("rank", votes, "-c", "time=time", *more)
        assert ran.exit_code != 0
        assert why in ran.stderr
    ran = run("rank", votes, "-c", "time=user")
    assert "not understood" in ran.stderr
    ran = run("partition", votes, "-c", "time=time", "-o", tmp_path / "parts")
    assert "not fitted in parts" in ran.stderr


@pytest.mark.slow
def test_no_drift_is_an_answer(tmp_path):
    made = league(1, n_items=6, n_games=300, share=0.0)
    path = tmp_path / "votes.csv"
    pl.DataFrame(
        made.games | {"winner": np.where(made.outcome > 0, made.games["left"], made.games["right"])}
    ).write_csv(path)
    ran = run("rank", path, "-c", "time=time", "-o", tmp_path / "out")
    assert "Verdict: no drift" in ran.stdout + ran.stderr
    assert not (tmp_path / "out" / "history.csv").exists()
