"""Values of columns as codes: what is missing is a value of its own, also within groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect.data.frames import codes_in_order
from predilect.data.read.profiles import distinct, nothing_of, once_in, varies_within


@pytest.mark.parametrize(
    "values", [["b", None, "a", "b"], [2.0, None, -1.0, 2.0], [2, None, -1, 2], [True, None, False, True]]
)
def test_codes_are_in_order_and_what_is_missing_comes_first(values):
    column = pl.Series(values)
    assert codes_in_order(column).tolist() == [2, 0, 1, 2]
    first, number = distinct([column])
    assert [values[row] for row in first] == [None, values[2], values[0]]
    assert number.tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize(("values", "varies", "once"), [
    (["a", "a", "b", "b"], False, False), (["a", None, "b", "b"], True, False), (["a", None, "b", "c"], True, True),
    ([None, None, "b", "c"], True, False), ([None, None, "a", "a"], False, False), (["a", "b", "a", "b"], True, True),
])  # fmt: skip
def test_a_value_and_a_gap_differ_within_a_group(values, varies, once):
    group = np.array([0, 0, 1, 1])
    assert varies_within(pl.Series(values, dtype=pl.String), group) is varies
    assert once_in(pl.Series(values, dtype=pl.String), group) is once


def test_nothing_is_what_is_blank_in_all_or_marked_by_1():
    task = np.array([0, 0, 1, 1])
    blank = {"price": pl.Series([1.0, None, 2.0, None]), "size": pl.Series(["s", "", "m", " "])}
    marks, column = nothing_of(blank, task)
    assert (marks.tolist(), column) == ([False, True, False, True], None)
    marked = {"price": pl.Series([1.0, None, 2.0, None]), "opt": pl.Series(["0", "1.0", "0", "1"])}
    marks, column = nothing_of(marked, task)
    assert (marks.tolist(), column) == ([False, True, False, True], "opt")
