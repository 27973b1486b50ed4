"""``predilect rank --segment``: what is printed and written, and what is refused."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import QUICK, files_beside, run
from predilect import load

ITEMS = ["ant", "bee", "cat", "dog", "elk"]
OUTPUTS = ["segments.csv", "segments.png", "segments.svg"]


@pytest.fixture(scope="module")
def frame():
    """300 answers of 30 people in two languages and three panels; one has no language; people of a language agree."""
    rng = np.random.default_rng(1)
    user, left = np.repeat(np.arange(30), 10), rng.integers(5, size=300)
    right = (left + rng.integers(1, 5, size=300)) % 5
    taste = np.array([[1.5, 0.5, 0.0, -0.5, -1.5], [-1.5, 0.5, 0.0, -0.5, 1.5]])
    german = user % 3 == 0
    z = taste[german.astype(int), left] - taste[german.astype(int), right] + rng.standard_normal(300)
    names = np.array(ITEMS)
    language = np.where(user == 29, None, np.where(german, "de", "en"))
    return pl.DataFrame({
        "judge": [f"p{u:02d}" for u in user], "left": names[left], "right": names[right],
        "winner": np.where(z > 0.0, names[left], names[right]), "language": language.tolist(),
        "panel": user % 4 % 3, "topic": np.resize(["x", "y", "z"], 300),
    })  # fmt: skip


@pytest.fixture(scope="module")
def votes(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("segments") / "votes.csv"
    frame.write_csv(path)
    return path


@pytest.fixture(scope="module")
def ran(votes):
    out = votes.parent / "out"
    return run("rank", votes, *QUICK, "--segment", "language", "--segment", "panel", "--out", out), out


@pytest.mark.slow
def test_the_overview_the_board_asked_for_and_the_files(ran):
    result, out = ran
    assert result.exit_code == 0, result.output
    told = result.stdout
    assert 'Segments by "language"' in told
    assert 'Segments by "panel"' in told
    german = run("show", out, "--segment", "language=de")
    assert "de: 10 people, 100 answers" in german.stdout
    assert 'panel=2; got "language=fr"' in run("show", out, "--segment", "language=fr").stderr
    assert '1 people have no value in column "language"' not in told
    assert '1 person has no value in column "language"' in told
    assert all(name in files_beside(out) for name in OUTPUTS)
    for name in OUTPUTS:
        assert name in told.replace("\n", " ")
    table = pl.read_csv(out / "segments.csv")
    assert table.columns[:4] == ["column", "segment", "people", "item"]
    assert table.columns[-3:] == ["difference", "difference_sd", "more_than_chance"]
    assert table.group_by("column", "segment", maintain_order=True).len().rows() == [
        ("language", "en", 5), ("language", "de", 5), ("panel", "0", 5), ("panel", "1", 5), ("panel", "2", 5)
    ]  # fmt: skip
    assert "* (counted under Sure)" not in told  # a column of the tables of many segments
    assert "*: more than chance" in told
    sure = table.filter(pl.col("more_than_chance"))
    assert set(sure["item"]) == {"ant", "elk"}  # on which the languages differ
    assert set(sure["column"]) == {"language"}


@pytest.mark.slow
def test_many_segments_are_counted_where_the_footnote_says(frame, tmp_path):
    many = frame.with_columns((pl.col("judge").str.slice(1).cast(pl.Int64) % 8).alias("panel"))
    many.write_csv(tmp_path / "votes.csv")
    told = run("rank", tmp_path / "votes.csv", *QUICK, "--segment", "panel").stdout
    assert "Furthest above the crowd" in told
    assert "Sure" in told.partition("*")[0]
    assert "* (counted under Sure): more than chance" in told


def test_the_record_holds_the_boards(ran):
    document = json.loads((ran[1] / "leaderboard.json").read_text())
    assert document["by"] == {"columns": ["language", "panel"], "fits": "shared"}
    assert document["provenance"]["options"]["segment"] == ["language", "panel"]
    first = document["segments"][0]
    assert [first[name] for name in ("column", "segment", "people")] == ["language", "en", 19]
    assert len(document["segments"]) == 5
    table = pl.DataFrame(load(ran[1]).segments())
    assert [row["difference"] for row in first["board"]] == pytest.approx(table["difference"][:5].to_list())


def test_scores_and_differences_are_on_the_scale_asked_for(ran):
    shown = {}
    for scale in ("probit", "elo"):
        csv = run("show", ran[1], "--segment", "language=de", "--scale", scale, "--format", "csv").stdout
        shown[scale] = pl.read_csv(io.StringIO(csv))
    factor = shown["elo"]["mean"] / shown["probit"]["mean"]
    assert factor.min() > 100.0
    for name in ("difference", "difference_sd"):
        np.testing.assert_allclose(shown["elo"][name] / shown["probit"][name], factor, rtol=1e-6)


@pytest.mark.slow
def test_segments_of_a_people_file_and_strangers_of_them(frame, votes, tmp_path):
    people = frame.group_by("judge", maintain_order=True).agg(pl.col("language").first())
    people = people.with_columns(age=pl.int_range(pl.len()))
    people.write_csv(tmp_path / "people.csv")
    frame.drop("language").write_csv(tmp_path / "votes.csv")
    given = "--people", tmp_path / "people.csv", "--segment", "language"
    result = run("rank", "--explain", tmp_path / "votes.csv", *QUICK, *given, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert 'Segments by "language"' in result.stdout
    assert "Features of people: age" in result.stdout
    (tmp_path / "pairs.csv").write_text("user,left,right\nx,ant,elk\ny,ant,elk\n")
    (tmp_path / "new.csv").write_text("user,language,age\nx,de,3\ny,en,3\n")
    told = run(
        "predict", tmp_path / "out", tmp_path / "pairs.csv", "--people", tmp_path / "new.csv", "--format", "json"
    )
    german, english = (row["p_left"] for row in json.loads(told.stdout)["predictions"])
    assert german < 0.4 < 0.6 < english


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--segment", "topic"], '30 people stand in two or more segments of column "topic"'),
        (["--segment", "country"], 'no column "country" (given with --segment)'),
        (["--segment", "language", "--by", "panel"], "give one of them"),
        (["--segment", "language", "--personal", "no"], "Leave --personal no out"),
        (["--segment", "language", "--model", "gppl"], "gives each segment its own fit, by a column of FILE"),
        (["--segment", "language", "-c", "who="], "--segment needs a column that says who answered"),
        (["--segment", "language", "--people", "PEOPLE"], "looked for in --people FILE"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(votes, tmp_path, options, says):
    (tmp_path / "people.csv").write_text("user,age\np00,3\np01,4\n")
    options = [tmp_path / "people.csv" if option == "PEOPLE" else option for option in options]
    result = run("rank", votes, *options, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert says in result.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_new_people_of_one_segment_and_a_table_of_people_that_lacks_it(ran, tmp_path):
    (tmp_path / "pairs.csv").write_text("user,left,right\nnew,ant,elk\n")
    (tmp_path / "one.csv").write_text("user,language,panel\nnew,de,1\n")
    (tmp_path / "none.csv").write_text("user,Language,age\nnew,de,40\n")
    told = run("predict", ran[1], tmp_path / "pairs.csv", "--people", tmp_path / "one.csv")
    assert told.exit_code == 0, told.output
    assert float(told.stdout.splitlines()[1].split(",")[3]) < 0.5
    told = run("predict", ran[1], tmp_path / "pairs.csv", "--people", tmp_path / "none.csv")
    assert told.exit_code == 2
    assert (
        'the features of the new persons lack the columns "language", "panel"; their columns are "user", "Language", '
        '"age". Give every column that the model\'s features were made from. Did you mean "Language"?'
    ) in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--by", "--segment"])
def test_answers_may_be_called_as_a_text_is(frame, tmp_path, option):
    """Columns that may hold long texts are read last, and are read where one of them is needed."""
    path = tmp_path / "votes.csv"
    frame.rename({"winner": "answer", "language": "prompt"}).write_csv(path)
    assert run("rank", path, option, "prompt", "-o", tmp_path / "out", *QUICK).exit_code == 0
