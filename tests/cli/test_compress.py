"""``predilect compress``."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from cli.running import ITEMS, files_beside, run
from predilect import load_model
from predilect.compression.model import compress


@pytest.fixture(scope="module")
def personal(tmp_path_factory, votes_frame):
    folder = tmp_path_factory.mktemp("compress")
    votes_frame.write_csv(folder / "votes.csv")
    ran = run("rank", folder / "votes.csv", "--personal", "yes", "--no-verdict", "--out", folder / "out")
    assert ran.exit_code == 0, ran.output
    return folder / "out"


def test_it_writes_the_model_of_the_library(personal, tmp_path):
    small = tmp_path / "small"
    ran = run("compress", personal, "--keep", "60%", "--loss", "regret", "--out", small)
    assert ran.exit_code == 0, ran.output
    expected = compress(load_model(personal / "model"), "60%", "regret")
    for line in (*expected.describe(), f"Written to {small}"):
        assert line in ran.output.replace("\n", " ") or line in ran.output
    found = load_model(small)
    assert found.kept("p03") == expected.kept("p03")
    assert len(found.kept("p03")) == 3
    assert found.rank("p03").equals(expected.rank("p03"))


def test_the_small_model_predicts_and_asks(personal, tmp_path):
    small = tmp_path / "small"
    assert (
        run(
            "compress",
            personal,
            "--keep",
            3,
            "--criterion",
            "ucb",
            "--beta",
            0.5,
            "--precision",
            "single",
            "--out",
            small,
        ).exit_code
        == 0
    )
    kept = load_model(small).kept("p03")
    dropped = next(item for item in ITEMS if item not in kept)
    table = pl.DataFrame({"user": ["p03"] * 2, "left": kept[:2], "right": kept[1:]})
    table.write_csv(tmp_path / "pairs.csv")
    answers = []
    for model in (personal, small):
        ran = run("predict", model, tmp_path / "pairs.csv")
        assert ran.exit_code == 0, ran.output
        assert not ran.stderr
        answers.append(pl.read_csv(io.StringIO(ran.stdout)).select("p_left", "p_tie", "p_right", "margin").to_numpy())
    np.testing.assert_allclose(*answers, atol=1e-5)
    pl.DataFrame({"user": ["p03"], "left": [kept[0]], "right": [dropped]}).write_csv(tmp_path / "other.csv")
    ran = run("predict", small, tmp_path / "other.csv")
    assert ran.exit_code == 0
    assert "was dropped for the person" in ran.stderr
    ran = run("ask", small, "--user", "p03")
    assert ran.exit_code == 0, ran.output
    assert len(pl.read_csv(io.StringIO(ran.stdout))) == 1


def test_options_of_the_criterion_are_those_of_the_library(personal, tmp_path):
    model = load_model(personal / "model")
    for k, (arguments, options) in enumerate((
        (["--beta", 4], {"beta": 4.0}), (["--ucb", "taylor", "--beta", 4], {"ucb": "taylor", "beta": 4.0}),
        (["--ucb", "gp_ucb", "--kappa", 9], {"ucb": "gp_ucb", "kappa": 9.0}),
    )):  # fmt: skip
        # Of the loss alone the criterion follows, and takes its options all the same.
        ran = run("compress", personal, "--keep", 2, "--loss", "recommendation", *arguments, "--out", tmp_path / str(k))
        assert ran.exit_code == 0, ran.output
        found, expected = load_model(tmp_path / str(k)), compress(model, 2, "recommendation", **options)
        assert found.report_["compressed"]["options"] == options
        assert [found.kept(user) for user in model.users_.ids] == [expected.kept(user) for user in model.users_.ids]


def test_the_whole_covariance_of_a_joint_process(tmp_path, votes_frame):
    votes_frame[:80].write_csv(tmp_path / "votes.csv")
    ran = run("rank", tmp_path / "votes.csv", "--model", "joint", "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    ran = run("compress", tmp_path / "out", "--keep", "100%", "--whole", "--out", tmp_path / "small")
    assert ran.exit_code == 0, ran.output
    assert load_model(tmp_path / "small").report_["compressed"]["local"] is False
    assert "times larger than" in ran.stdout  # everything is kept, and K⁻¹ as well


def test_a_model_of_the_crowd_and_of_one_person(few_votes, tmp_path):
    for options, said in ((["--pooled"], "for the crowd."), (["--personal", "yes"], "over 1 person.")):
        few_votes.write_text("judge,left,right,winner\nann,x,y,left\nann,y,z,left\nann,z,x,right\n")
        out = tmp_path / said
        assert run("rank", few_votes, *options, "--no-verdict", "--out", out).exit_code == 0
        ran = run("compress", out, "--keep", 2, "--out", tmp_path / "small", "--force")
        assert said in " ".join(ran.output.split())


def test_as_json(personal, tmp_path):
    ran = run("compress", personal, "--budget", 30, "--loss", "log", "--json", "--out", tmp_path / "small")
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert document["schema"] == "predilect/compression"
    assert document["compressed"]["criterion"] == "ivm"
    assert document["compressed"]["n_kept"] == 30
    assert document["loss"]["compressed"] >= document["loss"]["full"] - 1e-3
    assert document["file_bytes"] == sum(file.stat().st_size for file in (tmp_path / "small").iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--keep", "0"], "keeps nothing"), (["--keep", "9"], "--keep 9 is more than all: there are 5 items"),
        (["--keep", "9" * 400], "is no number"), (["--keep", "0.0000000000001"], "rounds to none"),
        (["--keep", "some"], "neither a number of items nor"),
        (["--keep", "2", "--budget", "30"], "give keep"), (["--budget", "3"], "--budget 3 cannot be shared out"),
        (["--criterion", "ucb", "--beta", "-1"], "beta must be a positive number"),
        (["--keep", "200%"], "a share is at most 100 %"), (["--keep", "inf%"], "is no number"),
        (["--beta", "2"], "items are chosen by voi (--loss regret)"),
        (["--criterion", "mean", "--kappa", "2"], "items are chosen by mean"),
        (["--criterion", "ucb", "--kappa", "2"], "--kappa is not used by --ucb exact"),
        (["--criterion", "ucb", "--ucb", "gp_ucb", "--beta", "2"], "--beta is not used by --ucb gp_ucb"),
        (["--whole"], "Leave --whole out"),
    ],
)  # fmt: skip
def test_bad_input_writes_nothing(personal, tmp_path, arguments, said):
    ran = run("compress", personal, *arguments, "--out", tmp_path / "small")
    assert ran.exit_code == 2
    assert said in ran.stderr.replace("\n", " ")
    assert files_beside(tmp_path) == []


def test_what_is_there_is_replaced_only_if_it_is_a_model(personal, tmp_path):
    small = tmp_path / "small"
    assert run("compress", personal, "--out", small).exit_code == 0
    ran = run("compress", personal, "--out", small)
    assert ran.exit_code == 2
    assert "--force" in ran.stderr
    assert run("compress", personal, "--keep", 2, "--out", small, "--force").exit_code == 0
    assert len(load_model(small).kept("p03")) == 2
    (tmp_path / "other").mkdir()
    ran = run("compress", personal, "--out", tmp_path / "other", "--force")
    assert ran.exit_code == 2
    assert "holds no model" in ran.stderr
    ran = run("compress", small, "--out", tmp_path / "third")
    assert ran.exit_code == 2
    assert "compressed already" in ran.stderr
