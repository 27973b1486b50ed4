"""``predilect rank --model`` of the joint process and the baselines: numbers, words, predictions and questions."""

from __future__ import annotations

import json

import polars as pl
import pytest

from cli.running import ITEMS, files_beside, rank_json, run
from predilect import JointGP, load, read
from predilect.papers.baselines import GPVU, BonillaGP, GPClassifier, HierarchicalGP, SingleUserGP

FEATURES = pl.DataFrame({"item": ITEMS, "size": [1.0, 2.0, 3.0, 4.0, 5.0], "kind": list("aabbc")})
PEOPLE = pl.DataFrame({"user": [f"p{k:02d}" for k in range(12)], "age": [20.0 + k * k for k in range(12)]})
MODELS = {
    "joint": (JointGP, "One process of 12 people"),
    "bonilla-gp": (BonillaGP, "One process of 12 people"),
    "hierarchical-gp": (HierarchicalGP, "draws from one Gaussian"),
    "gpvu": (GPVU, "shared factors"),
    "single-user-gp": (SingleUserGP, "each of 12 people, learned from their own answers alone"),
    "gp-classifier": (GPClassifier, "counts once, whoever gave it"),
}


QUICK = "single-user-gp"  # the others learn more


@pytest.mark.parametrize("name", [n if n == QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
def test_numbers_words_predictions_and_questions(name, votes, tmp_path):
    FEATURES.write_csv(tmp_path / "items.csv")
    PEOPLE.write_csv(tmp_path / "people.csv")
    known = ("--items", tmp_path / "items.csv", "--people", tmp_path / "people.csv")
    kind, words = MODELS[name]
    folder = tmp_path / "results"
    ran = run("rank", "--explain", votes, *known, "--model", name, "--out", folder)
    assert ran.exit_code == 0, ran.output
    assert f"Model: {name}." in " ".join(ran.stdout.split())
    assert words in " ".join(ran.stdout.split())
    model = load(folder / "model")
    assert type(model) is kind
    expected = kind().fit(read(votes), items=FEATURES, people=PEOPLE)
    assert pl.DataFrame(model.rank()).equals(pl.DataFrame(expected.rank()))
    assert ("users.parquet" in files_beside(folder)) == (name != "gp-classifier")

    asked = pl.DataFrame({"user": ["p03"], "left": [ITEMS[0]], "right": [ITEMS[1]]})
    asked.write_csv(tmp_path / "pairs.csv")
    ran = run("predict", folder, tmp_path / "pairs.csv", "--format", "json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)["predictions"][0]
    proba = expected.predict_proba(asked)[0].tolist()
    assert (found["p_left"], found["p_tie"], found["p_right"]) == pytest.approx(tuple(proba))
    ran = run("ask", folder, "p03", "-n", "2", "--format", "json")
    assert ran.exit_code == 0, ran.output
    questions = json.loads(ran.stdout)["questions"]
    assert len(questions) == 2
    assert all(q["left"] in ITEMS and q["right"] in ITEMS and q["left"] != q["right"] for q in questions)


@pytest.mark.slow
def test_what_is_personal_and_what_is_not(votes):
    assert rank_json(votes, "--model", "gp-classifier", "--personal", "no")["model"]["name"] == "gp-classifier"
    ran = run("rank", votes, "--model", "gp-classifier", "--personal", "yes")
    assert ran.exit_code == 2
    assert "single-user-gp" in ran.output
    ran = run("rank", votes, "--model", "gpvu", "--personal", "no")
    assert ran.exit_code == 2
    assert "--model gppl" in ran.output
