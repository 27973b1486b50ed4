"""Matrices of wins, votes, ratings and places; judgements in lists; a design and answers in two tables."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from answers import read, refused, tasks_of
from orders import orders_of
from predilect.data import Comparisons
from predilect.data import read as read_file
from predilect.errors import DataError

WINS = {"": ["a", "b", "c"], "a": [0, 3, 5], "b": [7, 0, 2], "c": [1, 8, 0]}
ROW_WON = {("a", "b"): 7, ("a", "c"): 1, ("b", "a"): 3, ("b", "c"): 8, ("c", "a"): 5, ("c", "b"): 2}


def wins_of(found):
    return {
        (row["left"], row["right"]) if row["outcome"] == 1 else (row["right"], row["left"]): row["weight"]
        for row in found.to_frame("polars").to_dicts()
    }


def test_a_matrix_of_wins_is_read_and_who_won_is_asked():
    refused(
        WINS, {}, 'a matrix in which the row won): reading={"positive": "left"}',
        'a matrix in which the column won): reading={"positive": "right"}',
    )  # fmt: skip
    for order in orders_of(list(WINS), 6):
        turned = {name: WINS[name] for name in order}
        assert wins_of(read(turned, reading={"positive": "left"})) == ROW_WON
        assert wins_of(read(turned, reading={"positive": "right"})) == {
            pair[::-1]: times for pair, times in ROW_WON.items()
        }
    bare = {name: WINS[name] for name in "abc"}  # rows go by the order of the columns
    refused(bare, {}, 'reading={"positive": "left"}', 'reading={"positive": "right"}')
    assert wins_of(read(bare, reading={"positive": "left"})) == ROW_WON
    blanks = {name: [f" {count}" for count in bare[name]] for name in bare}  # as a file has them behind its commas
    assert wins_of(read(blanks, reading={"positive": "left"})) == ROW_WON
    rated = read(bare, columns={"alternatives": list("abc")}, reading={"kind": "rating", "best": "high"})
    assert (None, "b > c", "c > a") in tasks_of(rated)
    told = read(WINS, reading={"positive": "left"}).intake
    assert told.notes == ('A matrix of wins of 3 items: the row won over the column, as in "b" won over "a" 3 times.',)
    for label, positive in (("winner", "left"), ("loser", "right")):
        named = {label: WINS[""], **{name: WINS[name] for name in "abc"}}
        assert wins_of(read(named)) == wins_of(read(WINS, reading={"positive": positive}))
    frame = pd.DataFrame({name: WINS[name] for name in "cab"}, index=WINS[""])
    assert wins_of(Comparisons.from_frame(frame, reading={"positive": "left"})) == ROW_WON
    shuffled = frame.loc[["c", "a", "b"]]
    assert wins_of(Comparisons.from_frame(shuffled, reading={"positive": "left"})) == ROW_WON


def test_a_matrix_of_wins_is_read_from_a_file(tmp_path):
    pl.DataFrame(WINS).write_csv(tmp_path / "wins.csv")
    assert wins_of(read_file(tmp_path / "wins.csv", reading={"positive": "left"})) == ROW_WON


def test_damaged_matrices_of_wins():
    refused(WINS, {"a": [4, 3, 5]}, '"a" won over itself 4 times')
    refused(WINS, {"a": [0, None, 5]}, 'the cell of row "b" and column "a" is empty, but not the one across')
    refused(WINS, {"a": [0.0, 0.5, 5.0]}, 'row "b" has 0.5 in column "a"', "whole numbers")
    refused(WINS, {"": ["a", "b", "d"]}, "not the same items", 'only in rows "d"', 'only in columns "c"')
    as_often = {"a": [0, 7, 1], "b": [7, 0, 8], "c": [1, 8, 0]}
    assert read(WINS, as_often).n_answers == 32  # who won makes no difference
    never = read(WINS, {"a": [None, None, 5], "b": [None, None, 2]}, reading={"positive": "left"})
    assert wins_of(never) == {pair: times for pair, times in ROW_WON.items() if set(pair) != {"a", "b"}}


def test_a_matrix_of_votes_of_people_on_statements(tmp_path):
    votes = {"participant": ["p", "q"], "group": [0, 1], "n-votes": [2, 3], "0": [1, -1], "1": [-1, None], "2": [0, 1]}
    refused(votes, {}, "p puts 0 over 2 over 1", 'reading={"best": "high"}', 'reading={"best": "low"}')
    found = read(votes, reading={"best": "high"})
    assert tasks_of(found) == [("p", "0 > 2", "2 > 1"), ("q", "2 > 0")]
    assert set(found.intake.ignored_columns) == {"group", "n-votes"}
    # Such a file is not taken for one without a header.
    many = {"participant": range(4), **{str(k): [k % 2, 0, 1, -1] for k in range(4)}}
    pl.DataFrame(many).write_csv(tmp_path / "votes.csv")
    assert len(read_file(tmp_path / "votes.csv", reading={"best": "high"}).items) == 4


def test_places_in_words_by_item():
    ballots = {"name": ["u", "v"], "Rank them [Tea]": ["First Choice", "2nd choice"],
               "Rank them [Milk]": ["Second Choice", ""], "Rank them [Juice]": ["third choice", "1st"]}  # fmt: skip
    found = read(ballots, columns={"who": "name"})
    assert tasks_of(found) == [("u", "Milk > Juice", "Tea > Milk"), ("v", "Juice > Tea", "Tea > Milk")]
    assert read({**ballots, "when": ["now", "then"]}, columns={"who": "name"}) == found


def test_a_matrix_of_numbers_is_asked_about():
    rated = {"user": ["u", "v"], "tea": [1, 5], "milk": [4, 4], "juice": [5, 3], "comment": ["x", "y"]}
    refused(
        rated, {}, 'the rating of each of "tea", "milk", "juice", high is good',
        'columns={"alternatives": ["tea", "milk", "juice"]}, reading={"kind": "rating", "best": "high"}',
    )  # fmt: skip
    named = {"reading": {"kind": "rating"}, "columns": {"alternatives": ["tea", "milk", "juice"]}}
    assert tasks_of(read(rated, **named))[0] == ("u", "juice > milk", "milk > tea")
    # Without names of the rows as many numbers as columns may be counts of wins, and shares are none.
    refused({"a": [0, 1, 2], "b": [1, 0, 1], "c": [1, 2, 0]}, {}, "a matrix in which the row won")
    assert "matrix" not in refused({"a": [0, 0.5, 2], "b": [1, 0, 1], "c": [1, 2, 0]}, {})
    voted = {"user": ["u", "v"], "group": [0, 1], "tea": [1, -1], "milk": [-1, 1], "juice": [0, -1]}
    refused(voted, {}, 'the rating of each of "tea", "milk", "juice", low is good): reading={"best": "low"}')


def games(*scores):
    return [{"score": score, "judgment": "My verdict is"} for score in scores]


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_judgements_in_lists_in_both_orders(kind):
    rows = [
        {"question_id": "q", "model": "m", "judge": "j", "games": games("A>>B", "A>B")},
        {"question_id": "r", "model": "m", "judge": "j", "games": games("A=B", "[[B>>A]]")},
    ]
    found = Comparisons.from_frame(kind(rows))
    assert found.items.ids == ["baseline", "m"]
    # First the baseline is A, then the model.
    got = sorted((row["winner"], row["grade"] or 0, row["weight"]) for row in found.to_frame("polars").to_dicts())
    assert got == [("left", "much better", 2), ("right", "better", 1), ("tie", 0, 1)]
    assert "A is the baseline" in found.intake.notes[0]
    other = Comparisons.from_frame(
        kind([{**row, "baseline": "gpt"} for row in rows]), columns={"context": "question_id"}
    )
    assert other.items.ids == ["gpt", "m"]
    assert other.contexts.ids == ["q", "r"]
    broken = kind([*rows, {**rows[0], "games": games("A>B", None)}])
    with pytest.raises(DataError, match=r'column "games" holds 1 value that is neither .* \(first: row 6, empty\)'):
        Comparisons.from_frame(broken)
    assert Comparisons.from_frame(broken, reading={"drop": "unknown"}).n_answers == 5


DESIGN = {
    "BLOCK": [1] * 6 + [2] * 6, "QES": [1, 1, 1, 2, 2, 2] * 2, "ALT": [1, 2, 3] * 4,
    "price": [3, 2, None, 5, 1, None, 4, 2, None, 6, 3, None], "size": [1, 5, None, 2, 2, None] * 2,
}  # fmt: skip
ANSWERS = {"ID": ["a", "b"], "BLOCK": [1, 2], "q1": [1, 3], "q2": [2, 1], "age": [30, 40]}
CHOICES = [
    ("a", "price=1, size=2 > None", "price=1, size=2 > price=5, size=2"),
    ("a", "price=3, size=1 > None", "price=3, size=1 > price=2, size=5"),
    ("b", "None > price=2, size=5", "None > price=4, size=1"),
    ("b", "price=6, size=2 > None", "price=6, size=2 > price=3, size=2"),
]


def test_answers_by_question_and_a_design():
    found = read(ANSWERS, design=DESIGN)
    assert tasks_of(found) == CHOICES
    assert found.intake.columns["winner"] == "q1 to q2"
    assert found.intake.columns["task"] == "QES"
    assert "age" in found.intake.ignored_columns
    turned = {name: DESIGN[name][::-1] for name in ("size", "ALT", "price", "QES", "BLOCK")}
    assert read({name: ANSWERS[name] for name in ("q2", "age", "BLOCK", "q1", "ID")}, design=turned) == found
    under = {"sys_RespNum": list("aabb"), "BLOCK": [1, 1, 2, 2], "Task": [1, 2, 1, 2], "Response": [1, 2, 3, 1]}
    assert tasks_of(read(under, design=DESIGN)) == CHOICES
    # The design need not hold what stands for none of these.
    shown = {name: [value for value, alt in zip(column, DESIGN["ALT"], strict=True) if alt < 3]
             for name, column in DESIGN.items()}  # fmt: skip
    refused(ANSWERS, {}, 'name no alternative of their task (first: "3")', 'reading={"none": "3"}', design=shown)
    assert ("b", "3 > price=2, size=5", "3 > price=4, size=1") in tasks_of(
        read(ANSWERS, design=shown, reading={"none": "3"})
    )
    blank = read(ANSWERS, {"q1": [1, None]}, design=DESIGN)
    assert blank.intake.tasks_read == {"choices of the best of 3": 3}
    assert "1 question not answered." in blank.intake.notes


def test_versions_in_columns_of_different_names_are_refused():
    """Joined by the task alone, everybody had seen the tasks of all versions."""
    design = {"list": [1] * 4 + [2] * 4, "task": [1, 1, 2, 2] * 2, "alternative": [1, 2] * 4, "price": range(8)}
    answers = {"person": [1, 2, 3, 4], "group": [1, 2, 1, 2], "q1": [1, 2, 1, 2], "q2": [2, 2, 1, 1]}
    refused(
        answers, {}, "the design has 2 rows for one alternative (task 1, alternative 1)",
        'it may be "list" of the design and "group" of the answers', "one name in both, such as version",
        design=design,
    )  # fmt: skip
    design["version"], answers["version"] = design.pop("list"), answers.pop("group")
    assert read(answers, design=design).n_answers == 8
    without = {name: column for name, column in answers.items() if name != "version"}
    unnamed = {("list" if name == "version" else name): column for name, column in design.items()}
    refused(without, {}, 'those of the answers "person", "q1", "q2"', design=unnamed)


def test_designs_and_answers_that_do_not_fit():
    without = {name: values for name, values in ANSWERS.items() if name != "BLOCK"}
    refused(without, {}, 'the design has 2 versions (column "BLOCK")', "Call it BLOCK", design=DESIGN)
    refused(
        ANSWERS,
        {"BLOCK": [1, 7]},
        "2 answers belong to no task of the design (first: question 1, BLOCK 7",
        design=DESIGN,
    )
    refused(
        {"ID": [1], "BLOCK": [1], "age": [3]},
        {},
        "found no column of the answers that a design belongs to",
        design=DESIGN,
    )
    refused(ANSWERS, {}, "the design is empty", design={"QES": [], "ALT": []})
    refused(ANSWERS, {}, "no column that numbers its tasks", design={"ALT": [1, 2] * 2, "price": [1, 1, 2, 2]})
    # Answers alone, and a design alone.
    refused({"ID": [1, 1], "Task": [1, 2], "Response": [2, 1]}, {}, "a design, give it too", "design=")
    with pytest.raises(DataError):
        read(DESIGN)


def test_columns_that_may_all_answer_a_design_are_asked_about():
    more = {**ANSWERS, "r1": [1, 1], "r2": [1, 1]}
    refused(
        more, {}, 'Row 1: a chooses price=3, size=1 over price=2, size=5; None (answers in "q1 to q2"',
        'columns={"answer": "q1"}', 'answers in "r1 to r2"', 'columns={"answer": "r1"}', design=DESIGN,
    )  # fmt: skip
    assert tasks_of(read(more, design=DESIGN, columns={"answer": "q1"})) == CHOICES
    refused(more, {"r2": [1, 9]}, 'name no alternative of their task (first: "9")',
            'Or say what the answers are: columns={"answer": "q1"}.', design=DESIGN)  # fmt: skip


def test_answers_to_a_design_by_number_or_by_a_name_that_is_one_are_asked_about():
    design = {"task": [1, 1, 1, 2, 2, 2], "alt": [1, 2, 3] * 2, "item": [3, 1, 2, 2, 3, 1]}
    same = read({"user": ["a"], "q1": [1], "q2": [3]}, design=design)
    assert tasks_of(same) == [("a", "1 > 2", "1 > 3"), ("a", "3 > 1", "3 > 2")]
    answers = {"user": ["a"], "q1": [1], "q2": [2]}
    refused(
        answers, {}, 'Row 1: a chooses 1 over 3, 2 (answers in "q1 to q2" by "item"): columns={"alternatives": "item"}',
        'Row 1: a chooses 3 over 1, 2 (answers in "q1 to q2" by "alt"): columns={"alternatives": "alt"}', design=design,
    )  # fmt: skip
    for name, expected in (("item", ["1 > 2", "1 > 3", "2 > 1", "2 > 3"]), ("alt", ["3 > 1", "3 > 2"] * 2)):
        found = read(answers, design=design, columns={"alternatives": name})
        assert [one for task in tasks_of(found) for one in task[1:]] == expected


SETS = {"Q": [1, 2, 3], "V1": ["tea", "tea", "milk"], "V2": ["milk", "juice", "juice"], "V3": ["cola", "milk", "cola"]}


def test_best_and_worst_of_sets_in_another_table():
    by_name = {
        "id": ["1"],
        "B1": ["tea"],
        "W1": ["cola"],
        "B2": ["tea"],
        "W2": ["milk"],
        "B3": ["milk"],
        "W3": ["cola"],
    }
    expected = sorted([("1", "milk > cola", "tea > milk"), ("1", "juice > milk", "tea > juice"),
                       ("1", "juice > cola", "milk > juice")], key=str)  # fmt: skip
    assert tasks_of(read(by_name, design=SETS)) == expected
    by_place = {"id": ["1"], "B1": [1], "W1": [3], "B2": [1], "W2": [3], "B3": [1], "W3": [3]}
    assert tasks_of(read(by_place, design=SETS)) == expected
    mixed = {
        "id": ["1"],
        **{f"q{k}_{end}": by_name[f"{end[0].upper()}{k}"] for k in (1, 2, 3) for end in ("best", "worst")},
    }
    assert tasks_of(read(mixed, design=SETS)) == expected
    flags = {"Q": [1, 2, 3], "tea": [2, 2, 1], "milk": [2, 2, 2], "juice": [1, 2, 2], "cola": [2, 1, 2]}
    places = {"id": ["1"], "B1": [1], "W1": [3], "B2": [1], "W2": [2], "B3": [1], "W3": [3]}
    assert tasks_of(read(places, design=flags)) == expected
    under = {"id": ["1"] * 3, "Q": [1, 2, 3], "best": ["tea", "tea", "milk"], "worst": ["cola", "milk", "cola"]}
    assert tasks_of(read(under, columns={"task": "Q"}, design=SETS)) == expected
    long = {
        "Q": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "item": ["tea", "milk", "cola", "tea", "juice", "milk", "milk", "juice", "cola"],
    }
    assert tasks_of(read(by_name, design=long)) == expected
