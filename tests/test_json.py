"""Plain values come back as what annotations say, or are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from predilect._base.json import plain, typed


@dataclass
class Part:
    name: str
    kind: Literal["a", "b"]
    size: float | None = None


@dataclass
class Whole:
    parts: tuple[Part, ...]
    pairs: tuple[tuple[int, bool], ...]
    by_name: Mapping[str, float]
    row: npt.NDArray[np.float64]


WHOLE = {
    "parts": [{"name": "x", "kind": "a"}, {"name": "y", "kind": "b", "size": 2}], "pairs": [[1, True]],
    "by_name": {"u": 1.5, "v": "inf"}, "row": [1, 2.5],
}  # fmt: skip


def test_a_dataclass_comes_back_with_all_that_is_in_it():
    found = typed(Whole, WHOLE)
    assert found.parts == (Part("x", "a"), Part("y", "b", 2.0))
    assert found.pairs == ((1, True),)
    assert found.by_name == {"u": 1.5, "v": math.inf}
    np.testing.assert_array_equal(found.row, [1.0, 2.5])
    assert plain({"x": math.nan})["x"] == "nan"
    assert math.isnan(typed(float, "nan"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True), (int, 1.0), (bool, 1), (str, None), (float, "1.0"), (float, True), (float, [1.0]),
        (float | None, "x"), (Literal["a"], "b"), (tuple[int, ...], 3), (tuple[int, bool], [1]),
        (npt.NDArray[np.float64], [[1], [2, 3]]), (npt.NDArray[np.float64], ["a"]), (Mapping[str, float], [1]),
        (Part, {"name": "x", "kind": "c"}), (Part, {"name": "x", "kind": "a", "more": 1}), (Part, [1]),
        (list[int], [1, "a"]),
    ],
)  # fmt: skip
def test_anything_else_is_refused(kind: Any, value: Any):
    with pytest.raises(ValueError, match=r".+"):
        typed(kind, value)
