"""Specification of each array of a saved model, checked when a folder is read.

Compiled loops read and write at the indices in these arrays without bounds checks: types and shapes of what comes from
a file are checked first, then the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.gaussian.dense import is_semidefinite

Array = npt.NDArray[Any]
Sizes = dict[str, int]

# Utilities, variances and counts beyond it are no fit's: an answer tells utilities apart by some noise units, and the
# square of a margin of 1e15, and what comes of products with it, is far from the largest number there is.
LARGEST = 1e15
SMALL = "uint8|uint16|uint32|uint64"  # whole numbers in as few bytes as hold them


@dataclass(frozen=True, slots=True)
class Field:
    """Specification of one array.

    ``shape``: a size for each axis, the name of one, perhaps with "+1", or a number, "|" between alternatives; a name
    without a size takes that of the first array which has it. ``dtypes``: names of NumPy's types, "|" between them.
    ``wanted``: what the values must be, for messages. ``is_right``: whether they are, given the sizes by name.
    """

    shape: str
    dtypes: str
    wanted: str
    is_right: Callable[[Array, Sizes], bool]
    optional: bool = False


Fields = dict[str, Field]


def numbers(shape: str, dtypes: str = "float64") -> Field:
    """Finite numbers."""
    return Field(shape, dtypes, f"numbers within ±{LARGEST:g}", lambda a, _: is_within(a, -LARGEST))


def amounts(shape: str, dtypes: str = "float64") -> Field:
    """Variances, precisions, counts: numbers that are not negative."""
    return Field(shape, dtypes, f"numbers from 0 to {LARGEST:g}", lambda a, _: is_within(a, 0.0))


def positive(shape: str, dtypes: str = "float64") -> Field:
    """Scales and weights: positive numbers."""
    smallest = 1.0 / LARGEST
    return Field(shape, dtypes, f"numbers from {smallest:g} to {LARGEST:g}", lambda a, _: is_within(a, smallest))


def covariance(shape: str) -> Field:
    """Symmetric and positive semi-definite, up to rounding; of several matrices each."""
    return Field(
        shape, "float64", f"symmetric and positive semi-definite within ±{LARGEST:g}",
        lambda a, _: is_within(a, -LARGEST) and is_semidefinite(a),
    )  # fmt: skip


def codes(shape: str, below: str, dtypes: str = "int32") -> Field:
    """Codes from 0 to below a size."""
    return Field(
        shape, dtypes, f"codes from 0 to below {below}",
        lambda a, sizes: not a.size or bool(a.min() >= 0 and a.max() < sizes[below]),
    )  # fmt: skip


def pointer(shape: str, to: str, dtypes: str = "int64") -> Field:
    """Row pointers: where the entries of each begin, and the last one's end."""
    return Field(
        shape, dtypes, f"ascending from 0 to {to}",
        lambda a, sizes: bool(a[0] == 0 and a[-1] == sizes[to] and (a[1:] >= a[:-1]).all()),
    )  # fmt: skip


def outcomes(shape: str) -> Field:
    """1, 0 or -1."""
    return Field(shape, "int8", "1, 0 or -1", lambda a, _: not a.size or bool(a.min() >= -1 and a.max() <= 1))


def flags(shape: str) -> Field:
    """Yes or no."""
    return Field(shape, "bool", "yes or no", lambda a, _: bool((a.view(np.uint8) <= 1).all()))


def optional(field: Field) -> Field:
    """The same field, which a model may lack."""
    return replace(field, optional=True)


def check_sizes(table: Fields, sizes: Mapping[str, int], described: Mapping[str, Any]) -> Sizes:
    """All sizes by name, from the types and shapes ``described``; ValueError if an array is missing or does not fit."""
    known = dict(sizes)
    for name, field in table.items():
        if name not in described:
            if field.optional:
                continue
            raise ValueError(f"there is no array {name}")
        dtype, shape = described[name]
        fits = (_bound(one.split(), shape, known) for one in field.shape.split("|"))
        found = next((sizes for sizes in fits if sizes is not None), None)
        if dtype not in field.dtypes.split("|") or found is None:
            here = ", ".join(f"{key} = {value}" for key, value in known.items())
            raise ValueError(f"{name} is {dtype} of shape {shape}, not {field.dtypes} of shape {field.shape} ({here})")
        known = found
    return known


def check_values(table: Fields, sizes: Sizes, arrays: Mapping[str, Array]) -> None:
    """ValueError if an array holds values outside its specification."""
    for name, field in table.items():
        if name in arrays and not field.is_right(arrays[name], sizes):
            raise ValueError(f"{name} must be {field.wanted}, and is not")


def is_within(a: Array, low: float) -> bool:
    """Whether all are numbers from ``low`` to the largest; NaN is not."""
    return not a.size or low <= float(a.min()) <= float(a.max()) <= LARGEST


def _bound(axes: list[str], shape: list[int], sizes: Sizes) -> Sizes | None:
    """Sizes with those that a shape gives to new names; None if it does not fit."""
    if len(axes) != len(shape):
        return None
    found = dict(sizes)
    for axis, length in zip(axes, shape, strict=True):
        name, _, more = axis.partition("+")
        size = length - int(more or 0)
        if size < 0 or size != (int(name) if name.isdigit() else found.setdefault(name, size)):
            return None
    return found


def small(values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Whole numbers in as few bytes as hold the largest; other numbers unchanged."""
    array = np.asarray(values)
    whole = array.astype(np.uint64)
    if not np.array_equal(whole, array):
        return array
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))
