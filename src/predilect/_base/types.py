"""Types of arrays and tables of the package, and what is a number."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]
Table: TypeAlias = "IntoFrame | Mapping[str, Any]"  # a frame of any library that narwhals knows, or columns by name

LEAST_NUMBER, LARGEST_NUMBER = math.ulp(0.0), sys.float_info.max


def is_number(value: Any, low: float = LEAST_NUMBER, high: float = LARGEST_NUMBER) -> bool:
    """Whether it is a number in a range, by default a positive one; a whole one that no float can hold is none."""
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return False
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return bool(low <= value <= high)  # type: ignore[operator]
