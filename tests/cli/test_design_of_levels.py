"""``predilect design``: a table of levels to a design, what it will tell, and back through ``rank --design``."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from cli.running import run
from predilect.decisions import design
from tolerances import EXACT

LEVELS = """attribute,level,prior,sd,spread
price,1,-0.6,,0.4
price,2,,,
price,3,,,
brand,A,0.5,,0.6
brand,B,,,
brand,C,,,
None,,-0.5,,1
"""


@pytest.fixture
def levels(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text(LEVELS, encoding="utf-8")
    return path


@pytest.mark.slow
def test_it_is_the_design_of_python(levels, tmp_path):
    out = tmp_path / "design.csv"
    ran = run("design", levels, "--none", "--tasks", 6, "--without", "brand=A,price=1", "-o", out)
    assert ran.exit_code == 0, ran.stderr
    same = design(
        {"price": [1, 2, 3], "brand": ["A", "B", "C"]}, 6, 3, outside=True, prohibited=[{"brand": "A", "price": 1}],
        priors={"price": -0.6, "brand": {"A": 0.5}, "None": -0.5},
    )  # fmt: skip
    assert pl.read_csv(out).equals(same.table)
    assert "Expected standard errors" in ran.stdout
    assert not pl.read_csv(out).filter(brand="A", price=1).height
    document = json.loads(
        run("design", levels, "--none", "--tasks", 6, "--without", "brand=A,price=1", "--format", "json").stdout
    )
    assert document["d_error"] == pytest.approx(same.d_error, rel=EXACT)
    expected = same.expected(200, spreads={"price": 0.4, "brand": 0.6, "None": 1.0})
    np.testing.assert_allclose([row["se"] for row in document["expected"]], expected["se"], rtol=EXACT)
    assert [row["overlap"] for row in document["overlap"]] == same.overlap["overlap"].to_list()
    assert run("design", levels, "--none", "--tasks", 6, "-o", out).exit_code == 2  # it is there


@pytest.mark.slow
def test_answers_to_a_design_are_ranked_with_it(levels, tmp_path):
    out = tmp_path / "design.csv"
    assert run("design", levels, "--versions", 2, "--tasks", 6, "-o", out).exit_code == 2  # None, and no --none
    levels.write_text(LEVELS.replace("None,,-0.5,,1\n", ""), encoding="utf-8")
    assert run("design", levels, "--versions", 2, "--tasks", 6, "-o", out).exit_code == 0
    shown, rng = pl.read_csv(out), np.random.default_rng(0)
    utility = -0.6 * shown["price"].to_numpy() + 0.5 * (shown["brand"].to_numpy() == "A")
    rows = []
    for person in range(60):
        for (block, task), mine in shown.with_columns(u=pl.Series(utility)).group_by(
            "block", "task", maintain_order=True
        ):
            if block == 1 + person % 2:
                best = int((mine["u"].to_numpy() + rng.gumbel(size=len(mine))).argmax())
                rows.append((f"p{person}", block, task, mine["alternative"][best]))
    answers = pl.DataFrame(rows, ["person", "block", "task", "choice"], orient="row")
    answers.write_csv(tmp_path / "answers.csv")
    ran = run("rank", tmp_path / "answers.csv", "--design", out, "--model", "logit", "-o", tmp_path / "r")
    assert ran.exit_code == 0, ran.stderr
    table = pl.read_csv(run("worth", tmp_path / "r", "--format", "csv").stdout.encode())
    assert table.filter(attribute="price")["mean"][0] == pytest.approx(-0.6, abs=0.3)


@pytest.mark.parametrize(("text", "options", "said"), [
    ("a,b\n1,2\n", (), "has the columns a, b, and a table of levels has a row a level"),
    ("attribute,level,colour\nprice,1,red\nprice,2,\n", (), '"colour" means nothing'),
    ("attribute,level\nprice,1\n", (), "fewer than two"),
    ("attribute,level\nprice,1\n,2\n", (), "names no attribute"),
    ("attribute,level,prior\nprice,1,1\nprice,2,2\n", (), "several priors"),
    ("attribute,level,prior\nprice,1,high\nprice,2,\n", (), "prior is a number"),
    ("attribute,level,spread\nprice,1,-1\nprice,2,\n", ("--alternatives", 2), "from 0 up"),
    ("attribute,level\nprice,1\nprice,2\n", ("--without", "price"), "ATTRIBUTE=LEVEL"),
    ("attribute,level\nprice,1\nprice,2\n", ("--without", "brand=A"), "no attribute"),
    ("attribute,level\nprice,1\nprice,2\n", ("-o", "design.txt"), "should end in .csv"),
    ("attribute,level\nprice,1\nprice,2\n", (), "show fewer"),
])  # fmt: skip
def test_what_cannot_be_made_is_said(text, options, said, tmp_path):
    (tmp_path / "levels.csv").write_text(text, encoding="utf-8")
    options = [tmp_path / one if one == "design.txt" else one for one in options]
    ran = run("design", tmp_path / "levels.csv", *options)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


def test_without_priors_no_power_is_claimed(tmp_path):
    (tmp_path / "levels.csv").write_text("attribute,level\nprice,1\nprice,2\nbrand,A\nbrand,B\n", encoding="utf-8")
    ran = run("design", tmp_path / "levels.csv", "--alternatives", 2, "--format", "json")
    document = json.loads(ran.stdout)
    assert {row["power"] for row in document["expected"]} == {None}
    assert {row["respondents_for_80"] for row in document["expected"]} == {None}
    assert "power is not known" in " ".join(ran.stderr.split())
