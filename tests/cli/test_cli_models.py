"""``predilect rank --model``: the other models through the same command, and their predictions."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest

from cli.running import ITEMS, QUICK, files_beside, rank_json, run
from predilect import GPPL, CrowdGPPL, load, read
from predilect.cli.options import model_said

FEATURES = pl.DataFrame({"item": ITEMS, "size": [1.0, 2.0, 3.0, 4.0, 5.0], "kind": list("aabbc")})


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "items.csv"
    FEATURES.write_csv(path)
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    pl.DataFrame({"user": [f"p{k:02d}" for k in range(12)], "age": [20.0 + k * k for k in range(12)]}).write_csv(path)
    return path


@pytest.mark.slow
def test_the_numbers_are_those_of_the_library(votes, features):
    answers = read(votes)
    for name, model in (("gppl", GPPL()), ("crowd-gppl", CrowdGPPL())):
        document = rank_json(votes, "--items", features, "--model", name)
        expected = model.fit(answers, items=FEATURES).rank()
        assert pl.DataFrame(document["board"]).equals(pl.DataFrame(expected))
        assert document["model"]["name"] == name
        assert document["verdict"] is None
        assert document["provenance"]["options"]["model"] == name


def test_a_process_a_person_and_people_with_items(votes, features, people):
    ran = run("rank", "--explain", votes, "--model", "gppl", "--personal", "yes")
    assert ran.exit_code == 0
    assert "A utility function for each of 12 people, each learned alone" in ran.stdout
    ran = run(
        "rank", "--explain", votes, "--model", "gppl", "--personal", "yes", "--items", features, "--people", people
    )
    assert ran.exit_code == 0
    assert "learned together by their features" in ran.stdout


@pytest.mark.slow
def test_the_crowd_in_words_files_and_predictions(votes, features, tmp_path):
    folder = tmp_path / "results"
    ran = run("rank", "--explain", votes, "--items", features, "--model", "crowd-gppl", "--out", folder)
    assert ran.exit_code == 0, ran.output
    for said in ("Model: crowd-gppl.", "each of 12 people differs", "components matter", "Item features: size, kind"):
        assert said in ran.stdout, said
    assert "users.parquet" in files_beside(folder)
    model = load(folder / "model")
    assert isinstance(model, CrowdGPPL)
    own = pl.read_parquet(folder / "users.parquet").filter(pl.col("user") == "p03")
    board = model.rank(user="p03")
    assert own["item"].to_list() == board["item"].to_list()
    assert own["mean"].to_list() == pytest.approx(board["mean"].to_list())
    assert own["sd"].to_list() == pytest.approx(board["sd"].to_list())
    assert own["n"].to_list() == board["n"].to_list()

    pairs = tmp_path / "pairs.csv"
    asked = pl.DataFrame({"user": ["p03"], "left": [ITEMS[0]], "right": [ITEMS[1]]})
    asked.write_csv(pairs)
    ran = run("predict", folder, pairs, "--format", "json")
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert document["model"] == "crowd-gppl"
    left, tie, right = model.predict_proba(asked)[0].tolist()
    found = document["predictions"][0]
    assert (found["p_left"], found["p_tie"], found["p_right"]) == pytest.approx((left, tie, right))


def test_segments_are_fitted_with_the_same_model(votes, tmp_path):
    table = pl.read_csv(votes).with_row_index().with_columns(half=pl.col("index") % 2).drop("index")
    table.write_csv(tmp_path / "votes.csv")
    document = rank_json(tmp_path / "votes.csv", "--model", "gppl", "--by", "half")
    assert [segment["model"]["name"] for segment in document["segments"]] == ["gppl", "gppl"]


def test_contradictions(votes):
    ran = run("rank", votes, "--model", "crowd-gppl", "--personal", "no")
    assert ran.exit_code == 2
    assert "without people it is --model gppl" in ran.stderr.replace("\n", " ")
    ran = run("rank", votes, "--model", "svm")
    assert ran.exit_code == 2
    assert "crowd-gppl" in ran.output


@pytest.mark.parametrize(("text", "settings"), [
    ("feature_weight=[.5,.2]", {"feature_weight": [0.5, 0.2]}),
    ("feature_weight=[0.5,-.2]", {"feature_weight": [0.5, -0.2]}),
    ("variance=.5,ties=true", {"variance": 0.5, "ties": True}), ("calibration=null", {"calibration": None}),
    ("consensus_variance=inf", {"consensus_variance": math.inf}), ("basis=attributes", {"basis": "attributes"}),
    ('tie_threshold=["auto",.4]', {"tie_threshold": ["auto", 0.4]}), ("start=my.5folder", {"start": "my.5folder"}),
])  # fmt: skip
def test_settings_are_read_as_people_write_numbers(text, settings):
    assert model_said(f"population,{text}", ["population"]) == ("population", settings)


def test_a_setting_may_be_a_pair(votes, features):
    """As in Python, where it is a tuple: of people and of what they have in common."""
    given = "population,feature_weight=[.5,.2],tie_threshold=[.3,0,0],strength=10,variance=1,consensus_variance=2"
    document = rank_json(votes, "--items", features, "--personal", "yes", "--model", given)
    found = document["model"]["hyperparameters"]
    assert (found["feature_weight"], found["consensus_feature_weight"]) == (0.5, 0.2)


@pytest.mark.parametrize(("setting", "said"), [
    ("user_features=maybe", "user_features must be one of auto, true, false, not 'maybe'"),
    ("calibration=2", "calibration must be auto or null or a Calibration, not 2"),
    ("strict=perhaps", "strict must be true or false, not 'perhaps'"),
    ("n_jobs=none", "n_jobs must be null or -1 or a whole number from 1 up, not 'none'"),
])  # fmt: skip
def test_an_error_says_values_as_the_command_takes_them(votes, setting, said):
    ran = run("rank", votes, "--model", f"population,{setting}")
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


def test_a_small_model_is_stored_where_it_is_asked_for(few_votes, tmp_path):
    out = tmp_path / "out"
    ran = run(
        "rank", few_votes, *QUICK, "--model", "population,keep=2,criterion=ucb,beta=3,taylor=true,raw=true", "-o", out
    )
    assert ran.exit_code == 0, ran.output
    assert "chosen by UCB(raw=True, beta=3, taylor=True)." in ran.stdout
    small = load(out)
    assert small.report_["model"] == "compressed"
    assert len(small.kept("p01")) == 2
    for command in (
        ("show", out, "--user", "p01"),
        ("ask", out, "p01"),
        ("report", out, "-o", tmp_path / "board.html"),
    ):
        assert run(*command).exit_code == 0, command
    wrong = {
        "2,criterion=voi,beta=3": "beta",
        "200%": "more than all",
        "x": "neither a number",
        "2,losses=log": "losses",
        "2,estimator=gppl": "estimator",
    }
    for keep, said in wrong.items():
        ran = run("rank", few_votes, *QUICK, "--model", f"population,keep={keep}", "-o", tmp_path / "other")
        assert ran.exit_code == 2, ran.output
        assert said in ran.stderr
    ran = run("rank", few_votes, *QUICK, "--model", "population,keep=2")
    assert "nothing is stored without -o DIR" in ran.stderr


@pytest.mark.parametrize("model", ["mixed-logit", "logit", "gaspk"])
def test_answers_of_nobody_in_particular_have_one_ranking_of_any_model(votes, model):
    asked = ["rank", votes, "--model", model, "--personal", "no"]
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "-c who=" in refused.stderr
    assert run(*asked, "-c", "who=").exit_code == 0
