"""Graded answers in the command."""

from __future__ import annotations

import numpy as np
import polars as pl
from typer.testing import CliRunner

from predilect.cli.main import app


def votes(path, words):
    rng = np.random.default_rng(0)
    f = np.array([1.0, 0.3, -0.4, -0.9])
    left = rng.integers(4, size=400)
    right = (left + rng.integers(1, 4, size=400)) % 4
    seen = f[left] - f[right] + rng.normal(size=400)
    grade = np.sign(seen) * np.searchsorted([0.2, 1.0], np.abs(seen))
    names = np.array(["tea", "milk", "juice", "water"])
    frame = pl.DataFrame({
        "user": rng.integers(12, size=400), "left": names[left], "right": names[right],
        "winner": [words[int(g) + 2] for g in grade],
    })  # fmt: skip
    frame.write_csv(path)


def test_words_of_grades_are_read_said_and_ranked(tmp_path):
    words = ["right much better", "right slightly better", "tie", "left slightly better", "left much better"]
    votes(tmp_path / "votes.csv", words)
    result = CliRunner().invoke(app, ["rank", "--explain", str(tmp_path / "votes.csv"), "--personal", "no"])
    said = " ".join(result.output.split())
    assert result.exit_code == 0, result.output
    assert "answer=winner (grades, from slight to strong: slightly better, much better" in said
    assert 'Grades of answers, in units of the noise: "slightly better" from' in said


def test_grades_may_be_named(tmp_path):
    words = ["b by far", "b a tad", "tie", "a a tad", "a by far"]
    votes(tmp_path / "votes.csv", words)
    args = ["rank", str(tmp_path / "votes.csv"), "--personal", "no"]
    assert CliRunner().invoke(app, args).exit_code != 0
    result = CliRunner().invoke(app, [*args, "--read", "grades=a tad,by far"])
    assert result.exit_code == 0, result.output
    empty = CliRunner().invoke(app, [*args, "--read", "grades=a tad,,by far"])
    assert empty.exit_code != 0
    assert "is empty" in empty.output.replace("\n", " ")
