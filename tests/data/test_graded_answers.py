"""Answers with grades: numbers, words and the scale from 1 to 2, and how they stay with their rows."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import Comparisons
from predilect.errors import DataError


def read(values, reading=None, **options):
    n = len(values)
    frame = {
        "user": [f"u{k % 2}" for k in range(n)], "left": ["tea"] * n, "right": [f"drink{k}" for k in range(n)],
        "winner": values,
    }  # fmt: skip
    return Comparisons.from_frame(frame, reading={"side": False, "positive": "left"} | (reading or {}), **options)


def graded(answers: Comparisons) -> dict[str, int]:
    """Signed grade of each drink against tea, positive where tea is better; 0 a tie."""
    ids = answers.items.ids
    turned = np.array([1 if ids[left] == "tea" else -1 for left in answers.left])
    other = [
        ids[right] if ids[left] == "tea" else ids[left] for left, right in zip(answers.left, answers.right, strict=True)
    ]
    grade = np.zeros(answers.n_rows, int) if answers.grade is None else answers.grade
    return dict(zip(other, (turned * answers.outcome * grade).tolist(), strict=True))


def in_order(answers: Comparisons) -> list[int]:
    found = graded(answers)
    return [found[f"drink{k}"] for k in range(len(found))]


@pytest.mark.parametrize("kind", [int, str, float])
def test_whole_numbers_beyond_1_are_grades(kind):
    answers = read([kind(v) for v in (-3, -1, 0, 2, 3, 1)])
    assert in_order(answers) == [-3, -1, 0, 2, 3, 1]
    assert answers.grades == ("1", "2", "3")
    given = read(["tea"] * 6, outcome=[-3, -1, 0, 2, 3, 1])
    assert given == answers


def test_numbers_that_do_not_come_have_no_grade_of_their_own():
    assert in_order(read([-3, -1, 0, 3])) == [-2, -1, 0, 2]
    assert read([-3, -1, 0, 3]).grades == ("1", "3")


def test_signs_have_no_grades():
    assert read([1, -1, 0, 1]).grade is None
    assert read(["a", "b", "tie", "a"]).grade is None
    assert read(["a is better", "b is better", "tie"]).grade is None


def test_words_from_slight_to_strong():
    words = ["A is much better", "B is slightly better", "tie", "left", "B is much better", "A slightly better"]
    answers = read(words)
    assert in_order(answers) == [2, -1, 0, 0, -2, 1]
    assert answers.grades == ("slightly better", "much better")
    assert np.abs(answers.outcome).sum() == 5  # "left" alone is a side without a grade
    middle = read(["left better", "right much better", "slightly better: left", "right better"])
    assert in_order(middle) == [2, -3, 1, -2]


def test_words_of_ones_own():
    answers = read(["left a tad", "right by far", "right a tad"], reading={"grades": ["a tad", "by far"]})
    assert in_order(answers) == [1, -2, -1]
    with pytest.raises(DataError, match="neither the left nor the right"):
        read(["left a tad", "right by miles", "right a tad"], reading={"grades": ["a tad", "by far"]})


def test_the_scale_from_1_to_2():
    answers = read(["1.0", "1.25", "1.5", "1.75", "2.0"])
    assert in_order(answers) == [2, 1, 0, -1, -2]
    assert read([1, 2, 2, 1]).grade is None
    assert read([1.0, 1.5, 2.0], reading={"tie": "1.5"}).grade is None


def test_what_cannot_be_a_grade_is_refused():
    with pytest.raises(DataError, match="-6 to 6"):
        read(["tea"] * 3, outcome=[7, -1, 0])
    for odd in ([1, 2, 2], [1, 2, -1]):  # 1 and 2 may be sides
        with pytest.raises(DataError, match="name them"):
            read(["tea"] * 3, outcome=odd)
    with pytest.raises(DataError, match="whole numbers"):
        read(["tea"] * 3, outcome=[1, -1, 1], reading={"grades": ["slightly", "much"]})
    with pytest.raises(DataError):
        read(["tea"] * 3, outcome=[3, -1, 1], reading={"grades": ["1", "2"]})
    with pytest.raises(DataError, match="at most 6"):
        read(["a", "b", "a"], reading={"grades": list("abcdefg")})


def test_with_names_of_numbers_1_is_the_slightest_grade():
    assert in_order(read(["tea"] * 3, outcome=[1, -1, 0], reading={"grades": ["1", "2"]})) == [1, -1, 0]
    assert in_order(read(["1", "-1", "0"], reading={"grades": ["1", "2"]})) == [1, -1, 0]


@pytest.mark.parametrize(
    "words",
    [
        [-3, -1, 0, 2, 3, 1],
        ["-3", "-1", "0", "2", "3", "1"],
        [-3.0, -1.0, 0.0, 2.0, 3.0, 1.0],
        ["A is much better", "B is slightly better", "tie", "left", "B is better"],
        ["A is far better", "B is somewhat better", "tie", "left", "B is moderately better"],
        [1.02, 1.3, 1.5, 1.47, 1.9, 1.72, 1.11, 1.61, 1.99],
        [1.0, 1.25, 1.5, 1.75, 2.0],
    ],
)
def test_a_part_with_the_grades_of_the_whole_is_read_as_in_the_whole(words):
    whole = read(words)
    assert len(whole.grades) > 1
    assert read(words, reading={"grades": whole.grades}) == whole
    for word, grade in zip(words, in_order(whole), strict=True):
        part = read([word], reading={"grades": whole.grades})
        assert in_order(part) == [grade], word
        assert abs(part.outcome.item()) == float(word not in {"tie", 0, "0", 1.5}), word


def test_numbers_that_are_grades_are_no_sides_unless_said():
    assert in_order(read([1, 2], reading={"grades": ["1", "2"]})) == [1, 2]
    said = read([1, 2], reading={"grades": ["1", "2"], "answer_is": "side"})
    assert said.grade is None
    assert said.outcome.tolist() == read(["left", "right"]).outcome.tolist()
    with pytest.raises(DataError, match='row 2, "3"'):
        read([1, 3], reading={"grades": ["1", "2"]})
    with pytest.raises(DataError, match=r'row 1, "0\.5"'):
        read([0.5, 1.0], reading={"grades": ["1", "2"]})
    assert in_order(read([1, 0], reading={"grades": ["1", "2"]})) == [1, 0]
    assert read([1, 0], reading={"grades": ["a tad", "by far"]}).grade is None  # words for another column


def test_one_grade_alone_says_nothing():
    assert read([-3, 0, 3, 3]).with_used_grades().grade is None
    kept = read([-3, 1, 3, 3]).with_used_grades()
    assert kept.grades == ("1", "3")


def test_sets_of_answers_with_other_grades_are_joined_by_their_names():
    both = read([-3, 1, 3]).append(read([-2, 1, 2]))
    assert both.grades == ("1", "2", "3")
    with pytest.raises(DataError, match="different grades"):
        read(["a slightly better", "b much better"]).append(read([-2, 1, 2]))
