"""Rows that are used by what a column says of them, and columns that may mark some."""

from __future__ import annotations

import pytest

from answers import tasks_of
from predilect import check
from predilect.data import Comparisons
from predilect.errors import DataError

VOTES = {"left": ["x", "y", "z", "x"], "right": ["y", "z", "x", "z"], "winner": ["x", "y", "z", "z"],
         "valid": [True, False, True, True], "country": ["US", "DE", "UK, GB", "DE"]}  # fmt: skip


@pytest.mark.parametrize(
    ("keep", "said", "left_out"),
    [
        ("valid:1", ["x > y", "z > x", "z > x"], 1), ("country:DE", ["y > z", "z > x"], 2),
        ('country:US,"UK, GB"', ["x > y", "z > x"], 2), ("winner:x,y", ["x > y", "y > z"], 2),
    ],
)  # fmt: skip
def test_rows_with_a_value_are_kept_and_the_others_counted(keep, said, left_out):
    found = Comparisons.from_frame(VOTES, reading={"keep": keep})
    assert sorted(tasks_of(found)) == sorted((None, one) for one in said)
    assert found.intake.left_out == {"not among those kept": left_out}
    assert found.intake.rows_read == 4


def test_rows_of_other_criteria_are_counted():
    found = Comparisons.from_frame(
        {**VOTES, "criterion": ["taste", "look", "taste", "look"]}, reading={"criterion": "taste"}
    )
    assert tasks_of(found) == [(None, "x > y"), (None, "z > x")]
    assert (found.intake.rows_read, found.intake.left_out) == (4, {"of another criterion": 2})


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("valid", r'reading={"keep": "COLUMN:VALUE"} names a column'), ("vald:1", 'Did you mean "valid"'),
        ("country:France", 'column "country" holds no "France"; it holds DE; UK, GB; US'),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(keep, message):
    with pytest.raises(DataError, match=message):
        Comparisons.from_frame(VOTES, reading={"keep": keep})


def test_a_column_that_may_mark_rows_is_told_where_it_was_not_used():
    told = {one.code: one for one in check(VOTES)}["marked-rows"]
    assert told.severity == "warning"
    assert '"valid"' in told.message
    assert 'reading={"keep": "valid:VALUE"}' in told.message
    assert "marked-rows" not in {one.code for one in check(VOTES, reading={"keep": "valid:1"})}
