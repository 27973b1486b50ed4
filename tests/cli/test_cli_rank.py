"""``predilect rank``: what it prints and writes."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, QUICK, files_beside, rank_json, run
from predilect import Population, load
from predilect import read as read_file
from predilect.decisions.ranking import BOARD_COLUMNS
from predilect.show.report import folder as report_folder
from tolerances import EXACT

OUTPUTS = [
    "answers.parquet", "leaderboard.csv", "leaderboard.json", "leaderboard.png", "leaderboard.svg", "model",
    "people.csv", "users.parquet",
]  # fmt: skip


@pytest.mark.slow
def test_prints_the_board_what_was_read_and_what_to_do_next(votes):
    ran = run("rank", "--explain", votes, *QUICK)
    assert ran.exit_code == 0
    for said in ("Read 240 rows; used 240.", "equal voice", "noise of one answer", "Fit: converged", "-o DIR"):
        assert said in ran.stdout, said
    for item in ITEMS:  # ids are shown as they are, whatever they would mean to a terminal
        assert item in ran.stdout
    assert ran.stderr == ""


@pytest.fixture(scope="module")
def in_json(tmp_path_factory, votes_frame):
    path = tmp_path_factory.mktemp("json") / "votes.csv"
    votes_frame.write_csv(path)
    ran = run("rank", "--explain", path, "--format", "json")
    assert ran.exit_code == 0, ran.output
    return ran


@pytest.mark.slow
def test_the_numbers_are_those_of_the_library(votes, in_json):
    board = pl.DataFrame(json.loads(in_json.stdout)["board"])
    expected = pl.DataFrame(Population().fit(read_file(votes)).rank())
    assert board.columns == list(BOARD_COLUMNS)
    assert board.equals(expected)


def test_writes_every_file_and_says_so(results):
    assert files_beside(results) == OUTPUTS
    document = json.loads((results / "leaderboard.json").read_text())
    assert (document["schema"], document["version"]) == ("predilect/leaderboard", 1)
    assert pl.read_csv(results / "leaderboard.csv").equals(pl.DataFrame(document["board"]))
    assert document["model"]["n_users"] == 12
    assert document["model"]["convergence"]["converged"]
    assert document["intake"]["rows_read"] == 240
    assert document["provenance"]["inputs"]["votes"]["name"] == "votes.csv"
    assert Population.load(results / "model").rank().equals(pl.DataFrame(document["board"]))


def test_users_file_holds_everybodys_own_ranking(results):
    model = Population.load(results / "model")
    people = pl.read_parquet(results / "users.parquet")
    assert people.columns == ["user", "item", "mean", "sd", "rank", "n"]
    assert people.select("user", "rank").equals(people.select("user", "rank").sort("user", "rank"))
    for user in ("p00", "p11"):
        own = people.filter(pl.col("user") == user)
        board = model.rank(user=user)
        assert own["item"].to_list() == board["item"].to_list()
        assert own["n"].to_list() == board["n"].to_list()
        for column in ("mean", "sd"):
            assert max(abs(own[column] - board[column])) < EXACT


@pytest.mark.slow  # two processes and all that they compile
def test_two_runs_differ_in_nothing_but_the_timing(pictures, votes, tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        assert run("rank", votes, "--out", tmp_path / name, "--by", "language", "--jobs", jobs).exit_code == 0
    for name in [*OUTPUTS, "segments.csv"]:
        if name == "model":
            continue
        one, two = ((tmp_path / run_ / name).read_bytes() for run_ in ("one", "two"))
        if name == "leaderboard.json":
            one, two = (json.dumps(json.loads(text) | {"timing": None}) for text in (one, two))
        assert one == two, name


@pytest.mark.slow
def test_json_is_the_only_thing_on_standard_output(votes, in_json):
    assert json.loads(in_json.stdout)["schema"] == "predilect/leaderboard"
    assert "Read 240 rows" in in_json.stderr
    assert run("rank", votes, *QUICK, "--format", "json", "--quiet").stderr == ""


def test_quiet_prints_the_board_and_warnings_only(votes_frame, tmp_path):
    votes_frame.head(20).write_csv(tmp_path / "few.csv")
    ran = run("rank", tmp_path / "few.csv", "--quiet")
    head, rule, *rows = [line.split() for line in ran.stdout.splitlines() if line.strip()]
    assert (head[0], head[-1], set(rule[0])) == ("Rank", "Answers", {"─"})
    assert [row[0] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
    assert "Warning: Only 20 answers" in ran.stderr


@pytest.mark.slow
def test_pooled_or_without_people_there_is_no_users_file(votes, tmp_path):
    ran = run("rank", "--explain", votes, "--personal", "no", "--out", tmp_path / "a")
    assert "Each of 240 answers counts once" in ran.stdout
    assert "users.parquet" not in files_beside(tmp_path / "a")
    ran = run("rank", "--explain", votes, "-c", "who=")
    assert "pooled (no column says who answered)" in ran.stdout


def agreeing_votes(path):
    """800 answers of 40 people who all want the same."""
    rng = np.random.default_rng(3)
    left = rng.integers(5, size=800)
    right = (left + rng.integers(1, 5, size=800)) % 5
    z = (right - left) * 0.5 + rng.standard_normal(800)
    names = np.array(ITEMS, dtype=object)
    pl.DataFrame(
        {
            "user": [f"u{k}" for k in rng.integers(40, size=800)],
            "left": names[left].tolist(),
            "right": names[right].tolist(),
            "winner": np.where(z > 0, "left", "right").tolist(),
            "part": [f"half {k}" for k in rng.integers(2, size=800)],
        }
    ).write_csv(path)
    return path


@pytest.mark.slow
def test_the_verdict_is_said_recorded_and_saved(votes, tmp_path):
    results = tmp_path / "results"
    ran = run("rank", "--explain", votes, "--out", results)
    assert "Verdict: Personal rankings predict people better than one ranking for all: over 2" in ran.stdout
    assert "Verdict: Whether ties mean that items are close could not be judged: 15 of the held-out" in ran.stdout
    assert "Returned: the personal model, since the verdict favours it." in ran.stdout
    verdict = json.loads((results / "leaderboard.json").read_text())["verdict"]
    assert (verdict["asked"], verdict["returned"], verdict["favours"]) == ("auto", "population", "personal")
    assert verdict["personal"]["sentence"] in ran.stdout
    expected = Population().fit(read_file(votes)).verdict()
    assert Population.load(results / "model").verdict_ == expected
    assert verdict["personal"] == asdict(expected.personal)


@pytest.mark.slow  # several rankings with a verdict
def test_auto_returns_the_pooled_model_where_people_agree_for_segments_too(tmp_path):
    votes = agreeing_votes(tmp_path / "v.csv")
    ran = run("rank", "--explain", votes, "--by", "part", "--out", tmp_path / "out")
    assert "predict people no better than one ranking for all" in ran.stdout
    assert "Returned: the pooled model, since personal rankings predict no better. With --personal yes" in ran.stdout
    assert "Each of 800 answers counts once" in ran.stdout
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert (document["verdict"]["returned"], document["model"]["name"]) == ("pooled", "pooled")
    assert [segment["model"]["name"] for segment in document["segments"]] == ["pooled", "pooled"]
    pooled = pl.DataFrame(Population(personal=False).fit(read_file(votes)).rank())
    assert pl.DataFrame(document["board"]).equals(pooled)
    assert Population.load(tmp_path / "out" / "model").verdict_.favours == "pooled"
    assert "users.parquet" not in files_beside(tmp_path / "out")


def test_results_are_opened_as_the_model_in_them(results):
    expected = load(results / "model").rank()
    for opened in (load(results), Population.load(results), Population.load(str(results))):
        assert opened.rank().equals(expected)


@pytest.mark.slow
def test_what_was_asked_for_is_returned_and_not_judged(few_votes):
    for personal, name in (("yes", "population"), ("no", "pooled")):
        ran = run("rank", few_votes, "--personal", personal)
        assert "Verdict: none; --personal auto says whether" in ran.stdout
        assert "Returned" not in ran.stdout
        document = rank_json(few_votes, "--personal", personal)
        assert (document["verdict"], document["model"]["name"]) == (None, name)
    assert "Returned: the pooled model, the only one" in run("rank", few_votes, "-c", "who=", "--explain").stdout


def test_what_cannot_be_judged_is_said(votes_frame, votes, tmp_path):
    votes_frame.filter(pl.col("judge") < "p03").write_csv(tmp_path / "three.csv")
    ran = run("rank", "--explain", tmp_path / "three.csv")
    assert "only 3 people answered two different questions or more" in ran.stdout
    assert "Returned: the personal model, although it could not be judged." in ran.stdout
    ran = run("rank", "--explain", votes, "-c", "who=")
    assert "could not be judged: no column says who answered" in ran.stdout
    assert "Returned: the pooled model, the only one there is for these answers." in ran.stdout


def test_without_matplotlib_one_line_says_how_to_get_the_plot(few_votes, tmp_path, monkeypatch):
    monkeypatch.setattr(report_folder, "can_plot", lambda: False)
    ran = run("rank", few_votes, *QUICK, "--out", tmp_path / "out")
    assert ran.exit_code == 0
    assert 'pip install "predilect[plots]"' in ran.stdout
    assert files_beside(tmp_path / "out") == [name for name in OUTPUTS if not name.endswith(("png", "svg"))]


@pytest.mark.slow  # several rankings with a verdict
def test_by_makes_a_board_for_each_segment(votes, votes_frame, tmp_path):
    ran = run("rank", votes, "--by", "language", "--out", tmp_path / "out")
    assert ran.exit_code == 0
    assert "fitted by itself" in ran.stdout
    assert '1 row has no value in column "language"' in ran.stderr
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert document["by"] == {"column": "language", "fits": "independent", "rows_without_value": 1}
    assert [segment["segment"] for segment in document["segments"]] == ["de", "en"]
    german = votes_frame.filter(pl.col("language") == "de")
    german.write_csv(tmp_path / "german.csv")
    # A segment follows the verdict on the whole, and has none of its own.
    alone = pl.DataFrame(rank_json(tmp_path / "german.csv", *QUICK)["board"])
    assert document["verdict"]["returned"] == "population"
    assert not any("verdict" in segment for segment in document["segments"])
    segments = pl.read_csv(tmp_path / "out" / "segments.csv")
    assert segments.columns == ["segment", *BOARD_COLUMNS]
    assert segments.filter(pl.col("segment") == "de").drop("segment").equals(alone)
    assert pl.read_csv(tmp_path / "out" / "leaderboard.csv")["n"].sum() == 480  # all answers


@pytest.mark.slow
def test_a_segment_that_cannot_be_ranked_is_named_and_the_others_are_not_lost(votes_frame, tmp_path):
    tied = votes_frame.with_columns(
        winner=pl.when(pl.col("language") == "de").then(pl.lit("tie")).otherwise(pl.col("winner"))
    )
    tied.write_csv(tmp_path / "tied.csv")
    ran = run("rank", tmp_path / "tied.csv", *QUICK, "--by", "language", "--format", "json")
    assert ran.exit_code == 0
    assert "Warning: de cannot be ranked: all" in ran.stderr
    german, english = json.loads(ran.stdout)["segments"]
    assert "are ties" in german["not_ranked"]
    assert len(english["board"]) == 5


def test_when_no_segment_can_be_ranked_the_run_fails_and_writes_nothing(tmp_path):
    # The answer that decides has no segment.
    rows = [("a", "b", "tie", "x"), ("a", "b", "tie", "y"), ("a", "b", "a", "")]
    pl.DataFrame(rows, schema=["left", "right", "winner", "part"], orient="row").write_csv(tmp_path / "v.csv")
    ran = run("rank", tmp_path / "v.csv", "--by", "part", "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert "no segment can be ranked" in ran.stderr
    assert files_beside(tmp_path) == ["v.csv"]


def test_item_map_ranks_what_the_items_stand_for(few_votes, tmp_path):
    kinds = ["pome", "berry", "stone", "stone", "shrub"]
    pl.DataFrame({"item": ITEMS, "kind": kinds, "note": ["x"] * 5}).write_csv(tmp_path / "map.csv")
    drop = ["--read", "drop=self"]
    board = rank_json(few_votes, *QUICK, "--map", f"{tmp_path / 'map.csv'}:kind", *drop)["board"]
    assert {row["item"] for row in board} == set(kinds)
    ran = run("rank", few_votes, "--map", tmp_path / "map.csv")
    assert ran.exit_code == 2
    assert "no value column was named" in ran.stderr


@pytest.mark.slow
def test_items_without_answers_are_ranked_by_their_features(votes, tmp_path):
    pl.DataFrame({"item": [*ITEMS, "fig"], "sweet": [5, 4, 3, 2, 1, 5], "same": [1] * 6}).write_csv(tmp_path / "i.csv")
    ran = run("rank", votes, *QUICK, "--items", tmp_path / "i.csv", "--format", "json")
    assert ran.exit_code == 0
    document = json.loads(ran.stdout)
    assert {row["item"]: row["n"] for row in document["board"]}["fig"] == 0
    assert any("same" in line for line in document["model"]["features"])
    assert "1 item without any answer" in ran.stderr
