"""What is said of a reading: the role of each column, the first answer as a sentence, what does not count."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from cli.running import run
from predilect import Comparisons, Population
from predilect.data.intake import pair_sentence, task_sentence
from predilect.data.read.options import OPTIONS, from_command
from predilect.errors import DataError

VOTES = {
    "judge": ["17", "17", "18"], "model_a": ["tea"] * 3, "model_b": ["milk", "juice", "milk"],
    "vote": ["b", "tie", "a"], "n": [1, 2, 1], "day": ["mon"] * 3,
}  # fmt: skip


def test_pairs_are_said_in_three_lines():
    answers = Comparisons.from_frame(VOTES, columns={"weights": "n"})
    assert str(answers.reading).split("\n") == [
        "Read: pairs; who=judge, left=model_a, right=model_b, answer=vote (sides; tie is a tie), weights=n.",
        "Row 1: 17 prefers milk to tea.",
        "Not used: day.",
    ]
    assert repr(answers.reading) == str(answers.reading)
    said = json.loads(json.dumps(answers.reading.to_dict()))
    assert said["columns"]["answer"] == ["vote"]
    assert said["example"] == "Row 1: 17 prefers milk to tea."


def test_the_first_answer_is_the_first_that_was_used():
    frame = VOTES | {"vote": ["?", "tie", "a"]}
    reading = Comparisons.from_frame(frame, reading={"drop": "unknown"}).reading
    assert reading.example == "Row 2: tea and juice are a tie for 17."
    assert reading.notes == ("Left out 1 row: unknown winner.",)


@pytest.mark.parametrize(
    ("table", "first", "example"),
    [
        (
            {"user": ["u"] * 3, "task": [1] * 3, "item": ["a", "b", "c"], "chosen": [0, 1, 0]},
            "Read: 1 choice of the best of 3; who=user, task=task, alternatives=item, answer=chosen.",
            "Row 1: u chooses b over a, c.",
        ),
        ({"user": ["u"], "ranking": ["b>a=c"]}, "Read: 1 order of 3; who=user, ", "Row 1: u puts b over a, c."),
        (
            {"user": ["u"], "item1": ["a"], "item2": ["b"], "item3": ["c"], "best": ["c"], "worst": ["a"]},
            "Read: 1 choice of the best and the worst of 3; who=user, ",
            "Row 1: u has c best and a worst, with b between.",
        ),
    ],
)  # fmt: skip
def test_sets_are_said_with_their_kind(table, first, example):
    lines = Comparisons.from_frame(table).reading.lines()
    assert lines[0].startswith(first)
    assert lines[1] == example


def test_sentences():
    assert pair_sentence(0, None, "tea", "milk", -1) == "Row 1: milk is preferred to tea."
    assert pair_sentence(4, "ann", "tea", "milk", 1, "much better") == "Row 5: ann prefers tea to milk (much better)."
    assert pair_sentence(0, None, "tea", "milk", 0) == "Row 1: tea and milk are a tie."
    assert task_sentence(0, None, "order", [["a"], ["b"]]) == "Row 1: the answer puts a over b."
    assert task_sentence(2, "u", "approval", [["a", "b"], ["c"]]) == "Row 3: u takes a, b and leaves c."
    assert (
        task_sentence(0, "u", "rating", [[k] for k in range(9)]) == "Row 1: u puts 0 over 1 over 2 over 3 over 4, ..."
    )


def test_commands_say_it_and_the_model_knows_no_person_by_it(tmp_path):
    rows = ["judge,model_a,model_b,vote", *(f"j{k},tea,milk,{'ab'[k % 2]}" for k in range(24))]
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    for command in ("check", "rank"):
        said = run(command, tmp_path / "votes.csv").stdout
        assert "Read: pairs; who=judge, left=model_a, right=model_b, answer=vote (sides).\n" in said
        assert "Row 1: j0 prefers tea to milk.\n" in said
    told = json.loads(run("check", tmp_path / "votes.csv", "--format", "json").stdout)
    assert told["reading"]["columns"]["who"] == ["judge"]
    model = Population().fit(Comparisons.from_frame(VOTES))
    assert model.report_["intake"][1] == "Row 1: somebody prefers milk to tea."


def test_the_page_on_reading_and_the_help_of_the_command_have_all_that_can_be_said():
    docs = Path(__file__).parents[3] / "docs"
    assert "<!-- options -->" in (docs / "reference" / "reading.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(docs / "conf.py"))["options"]()
    said = re.findall(r"^\| `(-c|--read) ([a-z-]+)=\S+` \| (.+) \|$", made, re.M)
    assert len(said) == len(OPTIONS)
    for (flag, name, which), one in zip(said, OPTIONS, strict=True):
        assert (flag == "-c", name) == (one.is_column, one.name)
        assert one.help in which
    told = " ".join(run("check", "--help").stdout.replace("│", " ").split())
    for columns in (True, False):
        names = dict.fromkeys(one.name for one in OPTIONS if one.is_column == columns)
        assert ", ".join(names) in told


@pytest.mark.parametrize("role", ["left", "answer", "won", "context"])
def test_only_people_weights_and_tasks_can_be_said_not_to_be_there(role):
    with pytest.raises(DataError, match=f"\"{role}\" is the name of a column; got ''"):
        Comparisons.from_frame(VOTES, columns={role: ""})
    ran = run("check", "-", "-c", f"{role}=")
    assert ran.exit_code == 2


def test_columns_that_are_said_twice_are_added_once():
    """The first of several by itself is a name, and not its letters."""
    whole = from_command(["alternatives=tea,milk,juice", "who=who"], ["kind=rating"])
    for said in (["alternatives=tea", "alternatives=milk,juice"], ["alternatives=tea", "alternatives=tea,milk,juice"]):
        assert from_command([*said, "who=who"], ["kind=rating"]) == whole
    assert from_command(["alternatives=tea", "alternatives=tea"], []) == {"alternatives": "tea"}
    with pytest.raises(DataError, match=r'one of "tea,,milk" is empty'):
        from_command(["alternatives=tea,,milk"], [])


def test_a_frame_has_no_sheet():
    with pytest.raises(DataError, match='"table" is no key of reading'):
        Comparisons.from_frame(VOTES, reading={"table": "x"})
