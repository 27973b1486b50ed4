"""Files of answers of every kind, through the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.running import QUICK, run
from predilect.cli.reading import ReadingOptions, Source


@pytest.fixture
def conjoint(tmp_path):
    """Choices from three profiles of price and size by 12 people, of two regions."""
    rng = np.random.default_rng(0)
    rows = []
    for person in range(12):
        for task in range(5):
            profiles = rng.permutation([(price, size) for price in (1, 2, 3) for size in (0, 1)])[:3]
            # All of the north chose from the small.
            sizes = [0, 0, 0] if person % 2 else [size for _, size in profiles]
            profiles = [(int(price), int(size)) for price, size in zip([1, 2, 3], sizes, strict=True)]
            best = min(range(3), key=lambda k: profiles[k][0] - 0.8 * profiles[k][1] + rng.normal())
            rows += [
                (f"p{person:02}", "north" if person % 2 else "south", task, k + 1, *profiles[k], int(k == best))
                for k in range(3)
            ]
    names = ["resp_id", "region", "task", "alt", "price", "size", "choice"]
    path = tmp_path / "conjoint.csv"
    pl.DataFrame(rows, schema=names, orient="row").write_csv(path)
    return path


def test_check_says_what_was_understood(conjoint):
    ran = run("check", conjoint)
    assert ran.exit_code == 0, ran.output
    assert (
        "Read: 60 choices of the best of 3; who=resp_id, task=task, alternatives=alt, answer=choice, profile=price"
        in ran.stdout
    )
    assert "120 times one alternative over another, " in ran.stdout
    assert "12 people." in ran.stdout
    intake = json.loads(run("check", conjoint, "--format", "json").stdout)["intake"]
    assert intake["tasks_read"] == {"choices of the best of 3": 60}
    assert intake["attributes"] == ["price", "size"]


@pytest.mark.slow
def test_attributes_of_the_alternatives_are_features_of_the_items(conjoint):
    ran = run("rank", "--explain", conjoint, *QUICK, "--format", "json")
    assert "Item features: price, size;" in ran.stderr
    board = {row["item"]: row["mean"] for row in json.loads(ran.stdout)["board"]}
    assert set(board) <= {f"price={price}, size={size}" for price in (1, 2, 3) for size in (0, 1)}
    assert board["price=1, size=0"] > board["price=3, size=0"]


def test_items_of_a_segment_have_the_ids_that_all_have(conjoint):
    read = Source(conjoint, ReadingOptions(), {}).read("region")
    assert read.segments["north"].items.ids == ["price=1, size=0", "price=2, size=0", "price=3, size=0"]
    assert set(read.segments["south"].items.ids) <= set(read.comparisons.items.ids)


def test_options_name_the_kind_the_alternatives_and_the_profile(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("user,rank1,rank2,rank3\na,1,2,3\nb,2,3,1\n")
    ran = run("check", path)
    assert ran.exit_code == 2
    assert "--read kind=order" in ran.stderr
    assert "--read kind=rank" in ran.stderr
    assert "Read: 2 orders of 3;" in run("check", path, "--read", "kind=order").stdout
    path.write_text("id,car_price,bus_price,choice\n1,3,2,2\n1,2,3,1\n2,4,2,2\n")
    assert "1 car, 2 bus." in run("check", path).stdout
    path.write_text("id,bus_price,car_price,choice\n1,2,3,2\n1,3,2,1\n2,2,4,2\n")
    ran = run("check", path)
    assert "-c alternatives=bus,car" in ran.stderr.replace('"', "")
    told = run("check", path, "-c", "alternatives=car,bus", "-c", "profile=price")
    assert "Read: 3 choices of the best of 2;" in told.stdout
    assert "-c takes names" in run("check", path, "-c", "alternatives=car,").stderr


def test_a_task_that_cannot_be_used_is_named_with_the_option_that_leaves_it_out(conjoint):
    lines = conjoint.read_text().splitlines()
    conjoint.write_text("\n".join([lines[0], *(line[:-1] + "0" for line in lines[1:4]), *lines[4:]]))
    ran = run("check", conjoint)
    assert "Leave such tasks out with --read drop=unknown." in ran.stderr
    assert "Left out 3 rows: no clear winner." in run("check", conjoint, "--read", "drop=unknown").stdout


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "your-data.md"
EXAMPLES = re.findall(r"^\| (.+?) \| (`(?:[^|]|\\\|)+`) \|(?: `(-.+)` \|)?$", PAGE.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(
    ("rows", "said"), [(rows, said) for _, rows, said in EXAMPLES], ids=[one[0] for one in EXAMPLES]
)
def test_examples_of_the_page_on_answers_are_read_as_it_says(tmp_path, rows, said):
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(re.findall(r"`([^`]+)`", rows)).replace("\\|", "|") + "\n")
    ran = run("check", path, *said.split())
    assert ran.exit_code == 0, ran.output
    assert ("Read: pairs;" in ran.stdout) == ("left=" in ran.stdout)  # of sets, or pairs
    if said:  # which is why it must be said
        bare = run("check", path)
        assert bare.exit_code == 2, bare.output


def test_the_page_on_answers_has_all_its_examples():
    assert len(EXAMPLES) == 44
