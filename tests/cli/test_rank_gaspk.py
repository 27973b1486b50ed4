"""``predilect rank --model gaspk``: files, options and predictions."""

from __future__ import annotations

import json

import polars as pl
import pytest

from cli.running import ITEMS, files_beside, rank_json, run
from predilect import GaSPK, load, read
from predilect.show.charts.on_axes import can_plot

FEATURES = pl.DataFrame({"item": ITEMS, "size": [1.0, 2.0, 3.0, 4.0, 5.0], "kind": list("aabbc")})
FEW = ("--model", "gaspk,n_components=2")


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "items.csv"
    FEATURES.write_csv(path)
    return path


@pytest.mark.slow
def test_the_numbers_are_those_of_the_library(votes, features):
    document = rank_json(
        votes, "--items", features, "--model", 'gaspk,n_components=2,gamma=exact,attributes=["size","kind"],levels=5'
    )
    model = GaSPK(n_components=2, gamma="exact", attributes=["size", "kind"], levels=5)
    expected = model.fit(read(votes), items=FEATURES).rank()
    assert pl.DataFrame(document["board"]).equals(pl.DataFrame(expected))
    assert document["model"]["name"] == "gaspk"
    assert document["model"]["hyperparameters"]["n_components"] == 2
    assert document["verdict"] is None
    options = document["provenance"]["options"]
    assert options["model"].startswith("gaspk,n_components=2,gamma=exact")


@pytest.mark.slow
def test_words_files_and_predictions(pictures, votes, features, tmp_path):
    folder = tmp_path / "results"
    ran = run("rank", "--explain", votes, "--items", features, *FEW, "--out", folder)
    assert ran.exit_code == 0, ran.output
    told = " ".join(ran.stdout.split())
    for said in ("Model: gaspk.", "each of 12 people has a mixture of 2 evaluations", "size", "weights.csv"):
        assert said in told, said
    model = load(folder / "model")
    assert isinstance(model, GaSPK)
    files = files_beside(folder)
    assert {"weights.csv", "characteristics.csv", "users.parquet"} <= set(files)
    assert ("characteristics.png" in files) == can_plot()
    weights = pl.read_csv(folder / "weights.csv")
    assert weights["characteristic 1"].to_list() == pytest.approx(model.weights_[:, 0].tolist())
    table = pl.read_csv(folder / "characteristics.csv")
    assert table["n_largest"].sum() == 12
    assert "size +2" in table.columns
    own = pl.read_parquet(folder / "users.parquet").filter(pl.col("user") == "p03")
    board = model.rank(user="p03")
    assert own["item"].to_list() == board["item"].to_list()
    assert own["mean"].to_list() == pytest.approx(board["mean"].to_list())
    assert own["sd"].to_list() == pytest.approx(board["sd"].to_list())

    asked = pl.DataFrame({"user": ["p03"], "left": [ITEMS[0]], "right": [ITEMS[2]]})
    asked.write_csv(tmp_path / "pairs.csv")
    ran = run("predict", folder, tmp_path / "pairs.csv", "--format", "json")
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert document["model"] == "gaspk"
    found = document["predictions"][0]
    chances = model.predict_proba(asked)[0].tolist()
    assert [found["p_left"], found["p_tie"], found["p_right"]] == pytest.approx(chances)
    # Earlier results may be replaced.
    assert run("rank", votes, "--items", features, *FEW, "--out", folder, "--force").exit_code == 0


@pytest.mark.slow
def test_without_items_and_without_people(votes, tmp_path):
    folder = tmp_path / "results"
    ran = run("rank", "--explain", votes, "--model", "gaspk", "-c", "who=", "--by", "language", "--out", folder)
    assert ran.exit_code == 0, ran.output
    assert "one evaluation for all" in ran.stdout
    files = files_beside(folder)
    assert "segments.csv" in files
    assert "weights.csv" not in files
    assert "characteristics.png" not in files  # items in no order are no axes
    table = pl.read_csv(folder / "characteristics.csv")
    assert "apple against the others" in table.columns


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "gaspk", "--personal", "no"), "-c who="),
        (("--model", "gaspk,n_components=many"), "n_components must be"),
        (("--model", "gppl,gamma=exact"), 'GPPL has no parameter "gamma"'),
        (("--model", 'gaspk,attributes=["size"]'), "need features"),
        (("--model", "gaspk,gamma=guess"), "heuristic"),
    ],
)
def test_contradictions(votes, options, said):
    ran = run("rank", votes, *options)
    assert ran.exit_code == 2
    assert said in " ".join(ran.output.replace("│", " ").split())
