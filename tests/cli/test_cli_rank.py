"""``predilect rank``: what it prints and writes."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, QUICK, files_beside, rank_json, run
from predilect import Population, load_model
from predilect import read as read_file
from predilect.cli.choice import ScaleName
from predilect.decisions import versus
from predilect.decisions.ranking import BOARD_COLUMNS
from predilect.decisions.scales import SCALES
from predilect.report import folder as report_folder
from tolerances import EXACT

OUTPUTS = [
    "leaderboard.csv", "leaderboard.json", "leaderboard.png", "leaderboard.svg", "model", "people.csv",
    "users.parquet",
]  # fmt: skip


def test_prints_the_board_what_was_read_and_what_to_do_next(votes):
    ran = run("rank", "--explain", votes, *QUICK)
    assert ran.exit_code == 0
    for said in ("Read 240 rows; used 240.", "equal voice", "noise of one answer", "Fit: converged", "--out DIR"):
        assert said in ran.stdout, said
    for item in ITEMS:  # ids are shown as they are, whatever they would mean to a terminal
        assert item in ran.stdout
    assert ran.stderr == ""


@pytest.fixture(scope="module")
def in_json(tmp_path_factory, votes_frame):
    path = tmp_path_factory.mktemp("json") / "votes.csv"
    votes_frame.write_csv(path)
    ran = run("rank", "--explain", path, "--json")
    assert ran.exit_code == 0, ran.output
    return ran


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
def test_two_runs_differ_in_nothing_but_the_timing(votes, tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        assert run("rank", votes, "--out", tmp_path / name, "--by", "language", "--jobs", jobs).exit_code == 0
    for name in [*OUTPUTS, "segments.csv"]:
        if name == "model":
            continue
        one, two = ((tmp_path / run_ / name).read_bytes() for run_ in ("one", "two"))
        if name == "leaderboard.json":
            one, two = (json.dumps(json.loads(text) | {"timing": None}) for text in (one, two))
        assert one == two, name


def test_a_base_an_anchor_and_named_pairs(few_votes, tmp_path):
    region = pl.when(pl.col("judge") < "p06").then(pl.lit("north")).otherwise(pl.lit("south"))
    pl.read_csv(few_votes).with_columns(region.alias("region")).write_csv(few_votes)
    options = ("--scale", "elo", "--base", 1000, "--anchor", "banana", "--versus", "apple,cherry")
    ran = run("rank", "--explain", few_votes, *QUICK, *options, "--out", tmp_path / "out", "--segment", "region")
    assert ran.exit_code == 0, ran.output
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    model = Population.load(tmp_path / "out")
    expected = model.rank(scale="elo", base=1000, anchor="banana")
    assert pl.DataFrame(document["board"]).equals(expected)
    assert pl.read_csv(tmp_path / "out" / "leaderboard.csv").filter(item="banana")["mean"].to_list() == [1000.0]
    assert (document["scale"]["base"], document["scale"]["anchor"]) == (1000.0, "banana")
    assert document["versus"] == versus(model, [("apple", "cherry")], scale="elo").to_dicts()
    assert "banana is at 1000 by definition" in " ".join(ran.stdout.split())
    assert "apple is better than cherry with probability " in " ".join(ran.stdout.split())
    people = pl.read_parquet(tmp_path / "out" / "users.parquet")
    own = model.rank("p03", scale="elo", base=1000, anchor="banana")
    of_one = people.filter(user="p03")
    assert of_one["item"].to_list() == own["item"].to_list()
    np.testing.assert_allclose(of_one.select("mean", "sd"), own.select("mean", "sd"), atol=1e-6)
    segments = pl.read_csv(tmp_path / "out" / "segments.csv").filter(item="banana")
    assert segments["mean"].unique().to_list() == [1000.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--anchor", "fig"), '--anchor names "fig", which nobody compared. Items are '),
        (("--versus", "apple,fig"), '--versus names "fig", which nobody compared'),
        (("--versus", "apple"), "--versus takes two items with a comma between them"),
        (("--versus", "apple,apple"), "--versus takes two items"),
        (("--scale", "share", "--base", 1000), "base means nothing there. Leave it out, or ask for --scale elo"),
    ],
)  # fmt: skip
def test_scales_and_pairs_that_cannot_be_are_refused_before_the_fit(few_votes, options, said):
    ran = run("rank", few_votes, *options)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())
    assert "Model: " not in ran.stdout


def test_the_scales_of_the_command_are_those_of_the_library():
    assert [name.value for name in ScaleName] == list(SCALES)


@pytest.mark.parametrize(("scale", "unit"), [("logit", 1.702), ("elo", 1.702 * 400 / math.log(10))])
def test_a_scale_converts_every_output(votes, results, tmp_path, scale, unit):
    ran = run("rank", "--explain", votes, *QUICK, "--scale", scale, "--out", tmp_path / "out")
    assert ran.exit_code == 0
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert document["scale"]["name"] == scale
    assert document["scale"]["meaning"] in ran.stdout
    for name in ("leaderboard.csv", "users.parquet"):
        read = pl.read_csv if name.endswith("csv") else pl.read_parquet
        probit, converted = read(results / name), read(tmp_path / "out" / name)
        for column in probit.columns:
            if column in ("mean", "sd", "lower", "upper"):
                assert max(abs(converted[column] - unit * probit[column])) < EXACT * unit
            else:
                assert converted[column].equals(probit[column])


def test_json_is_the_only_thing_on_standard_output(votes, in_json):
    assert json.loads(in_json.stdout)["schema"] == "predilect/leaderboard"
    assert "Read 240 rows" in in_json.stderr
    assert run("rank", votes, *QUICK, "--json", "--quiet").stderr == ""


def test_quiet_prints_the_board_and_warnings_only(votes_frame, tmp_path):
    votes_frame.head(20).write_csv(tmp_path / "few.csv")
    ran = run("rank", tmp_path / "few.csv", "--quiet")
    head, rule, *rows = [line.split() for line in ran.stdout.splitlines() if line.strip()]
    assert (head[0], head[-1], set(rule[0])) == ("Rank", "Answers", {"─"})
    assert [row[0] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
    assert "Warning: Only 20 answers" in ran.stderr


def test_top_limits_what_is_printed(few_votes):
    shown = run("rank", few_votes, *QUICK, "--top", "2").stdout
    assert "apple" in shown
    assert "elderberry" not in shown
    assert "3 more items" in shown


@pytest.mark.slow
def test_pooled_or_without_people_there_is_no_users_file(votes, tmp_path):
    ran = run("rank", "--explain", votes, "--pooled", "--out", tmp_path / "a")
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
    expected = load_model(results / "model").rank()
    for opened in (load_model(results), Population.load(results), Population.load(str(results))):
        assert opened.rank().equals(expected)


@pytest.mark.slow  # three rankings with a verdict
def test_what_was_asked_for_is_returned_whatever_the_verdict(votes, tmp_path):
    agreeing = rank_json(agreeing_votes(tmp_path / "v.csv"), "--personal", "yes")
    assert (agreeing["verdict"]["favours"], agreeing["verdict"]["returned"]) == ("pooled", "population")
    divided = rank_json(votes, "--personal", "no")
    assert (divided["verdict"]["favours"], divided["verdict"]["returned"]) == ("personal", "pooled")
    assert divided["model"]["name"] == "pooled"
    assert divided["board"] == rank_json(votes, "--pooled", "--no-verdict")["board"]
    ran = run("rank", votes, "--personal", "yes", "--no-verdict")
    assert "Verdict" not in ran.stdout
    assert "Returned" not in ran.stdout
    assert rank_json(votes, "--personal", "yes", "--no-verdict")["verdict"] is None


@pytest.mark.parametrize("options", [[], ["--personal", "auto"]])
def test_without_a_verdict_the_personal_model_is_returned_and_that_is_said(few_votes, options):
    ran = run("rank", few_votes, "--no-verdict", *options)
    assert ran.exit_code == 0, ran.output
    assert "Returned: the personal model; with --no-verdict nothing says whether it predicts better" in ran.stdout
    assert "Verdict" not in ran.stdout
    assert "Returned: the pooled model, the only one" in run("rank", few_votes, "--no-verdict", "-c", "who=").stdout


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
    ran = run("rank", tmp_path / "tied.csv", *QUICK, "--by", "language", "--json")
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
    drop = ["--read", "drop=self", "--item-map-column", "kind"]
    board = rank_json(few_votes, *QUICK, "--item-map", tmp_path / "map.csv", *drop)["board"]
    assert {row["item"] for row in board} == set(kinds)
    ran = run("rank", few_votes, "--item-map", tmp_path / "map.csv")
    assert ran.exit_code == 2
    assert "no value column was named" in ran.stderr


@pytest.mark.slow
def test_items_without_answers_are_ranked_by_their_features(votes, tmp_path):
    pl.DataFrame({"item": [*ITEMS, "fig"], "sweet": [5, 4, 3, 2, 1, 5], "same": [1] * 6}).write_csv(tmp_path / "i.csv")
    ran = run("rank", votes, *QUICK, "--items", tmp_path / "i.csv", "--json")
    assert ran.exit_code == 0
    document = json.loads(ran.stdout)
    assert {row["item"]: row["n"] for row in document["board"]}["fig"] == 0
    assert any("same" in line for line in document["model"]["features"])
    assert "1 item without any answer" in ran.stderr


def test_version_and_help_are_quick_and_plain():
    assert run("--version").stdout.startswith("predilect ")
    text, everything = (run("rank", flag).stdout for flag in ("--help", "--help-all"))
    for word in ("--item-map", "--unpack-limit", "Threads", "--levels", "gaspk: what people"):
        assert word not in text
        assert word in everything
    for word in ("--report", "--scale", "ROLE=COLUMN", "KEY=VALUE", "--help-all", "more options"):
        assert word in text


def test_the_help_of_rank_fits_two_screens(monkeypatch):
    for width in (80, 100):
        monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
        lines = run("rank", "--help").stdout.splitlines()
        assert len(lines) <= 100
        assert max(map(len, lines)) <= width
