"""What a saved model is made of: classes that say at each field whether it is stored, and what it must be.

    class Traits:
        mean: Annotated[FloatArray, numbers("G")]
        rotation: Annotated[FloatArray, numbers("G T")]

A field or property that is annotated with a specification is stored: a :class:`ArraySpec` as an array, ``PART`` as the
stored fields of its own class, a :class:`Value` as a plain value. One packer, one table of specifications and one
builder serve all classes. Arrays have the names of the fields on the way to them, with dots between.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from inspect import get_annotations, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from predilect._base.json import plain, typed
from predilect._base.text import quoted
from predilect._base.types import is_number

Array = npt.NDArray[Any]
Sizes = dict[str, int]

# Utilities, variances and counts beyond it are no fit's: an answer tells utilities apart by some noise units, and the
# square of a margin of 1e15, and what comes of products with it, is far from the largest number there is.
LARGEST = 1e15
# What reading a file that is damaged, on purpose or not, may end with.
DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError,
    TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
# Types of an array that may be stored in fewer bytes than the class holds it in.
SMALL = "uint8|uint16|uint32|uint64"
SINGLE = "float64|float32"


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Specification of one array.

    ``shape``: a size for each axis, the name of one, perhaps with "+1", a number, or "*" for any, "|" between
    alternatives; a name stands for one size in a whole model, that of the first array which has it. ``dtypes``: names
    of NumPy's types, "|" between them, first that which the class holds. ``wanted``: what the values must be, for
    messages. ``is_right``: whether they are, given the sizes by name. ``unless``: an array of this number alone, or of
    nothing, is not stored, as it is what the class takes by default.
    """

    shape: str
    dtypes: str
    wanted: str
    is_right: Callable[[Array, Sizes], bool]
    unless: float | None = None
    optional: bool = False


Fields = dict[str, ArraySpec]


@dataclass(frozen=True, slots=True)
class Value:
    """Specification of a plain value: how it is ``written``, and ``read`` from its type, the value and its name."""

    written: Callable[[Any], Any]
    read: Callable[[Any, Any, str], Any]


PART = "part"  # a field with stored fields of its own, of one class or of one out of several
PLAIN = Value(plain, typed)  # words, numbers, and tuples of them
DESCRIBED = Value(lambda value: value.to_dict(), lambda hint, value, _: classes_of(hint)[0].from_dict(value))


def numbers(shape: str, dtypes: str = "float64") -> ArraySpec:
    """Finite numbers."""
    return ArraySpec(shape, dtypes, f"numbers within ±{LARGEST:g}", lambda a, _: is_within(a, -LARGEST))


def finite(shape: str) -> ArraySpec:
    """Finite numbers of any size, as variances of what answers hardly tell."""
    return ArraySpec(shape, "float64", "finite numbers", lambda a, _: bool(np.isfinite(a).all()))


def amounts(shape: str, dtypes: str = "float64") -> ArraySpec:
    """Variances, precisions, counts: numbers that are not negative."""
    return ArraySpec(shape, dtypes, f"numbers from 0 to {LARGEST:g}", lambda a, _: is_within(a, 0.0))


def positive(shape: str, dtypes: str = "float64") -> ArraySpec:
    """Scales and weights: positive numbers."""
    smallest = 1.0 / LARGEST
    return ArraySpec(shape, dtypes, f"numbers from {smallest:g} to {LARGEST:g}", lambda a, _: is_within(a, smallest))


def codes(shape: str, below: str, dtypes: str = "int32", *, least: int = 0) -> ArraySpec:
    """Codes from 0, or the ``least``, to below a size."""
    return ArraySpec(
        shape, dtypes, f"codes from {least} to below {below}",
        lambda a, sizes: not a.size or bool(a.min() >= least and a.max() < sizes.get(below, 0)),
    )  # fmt: skip


def pointer(shape: str, to: str, dtypes: str = "int64") -> ArraySpec:
    """Row pointers: where the entries of each begin, and the last one's end."""
    return ArraySpec(
        shape, dtypes, f"ascending from 0 to {to}",
        lambda a, sizes: bool(a[0] == 0 and a[-1] == sizes[to] and (a[1:] >= a[:-1]).all()),
    )  # fmt: skip


def outcomes(shape: str, grades: str = "") -> ArraySpec:
    """1, 0 or -1, or from -(1 + g) to 1 + g where the size ``grades`` is g, and more than 1."""

    def is_right(a: Array, sizes: Sizes) -> bool:
        n_grades = sizes.get(grades, 0)
        limit = 1 + n_grades if n_grades > 1 else 1
        return not a.size or bool(a.min() >= -limit and a.max() <= limit)

    return ArraySpec(shape, "int8", f"1, 0 or -1{', or a grade of these sides' * bool(grades)}", is_right)


def flags(shape: str) -> ArraySpec:
    """Yes or no."""
    return ArraySpec(shape, "bool", "yes or no", lambda a, _: bool((a.view(np.uint8) <= 1).all()))


def optional(field: ArraySpec) -> ArraySpec:
    """The same field, which is not stored where there is nothing, and which a model may lack."""
    return unless(math.nan, field)


def unless(number: float, field: ArraySpec) -> ArraySpec:
    """The same field, which is not stored where all is this number, or there is nothing."""
    return replace(field, optional=True, unless=number)


def within(low: float, high: float = LARGEST) -> Value:
    """A number in a range."""
    return Value(float, lambda _, value, name: number_within(name, value, low, high))


def number_within(name: str, value: Any, low: float, high: float) -> float:
    """A number in a range, else ValueError."""
    if not is_number(value, low, high):
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {quoted(value)}")
    return float(value)


def is_within(a: Array, low: float) -> bool:
    """Whether all are numbers from ``low`` to the largest; NaN is not."""
    return not a.size or low <= float(a.min()) <= float(a.max()) <= LARGEST


def small(values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Whole numbers in as few bytes as hold the largest; other numbers unchanged."""
    array = np.asarray(values)
    whole = array.astype(np.uint64)
    if not np.array_equal(whole, array):
        return array
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))


# Classes: what they store, and how it is written, specified and read.


@cache
def stored_in(kind: type) -> Mapping[str, tuple[Any, Any]]:
    """Type and specification of what a class stores, by the name of the field or property.

    Those of the classes above too, unless it annotates the name with None; to say the type alone changes nothing.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for base in reversed(kind.__mro__):
        own = {name: hint for name, hint in get_annotations(base).items() if "Annotated" in str(hint)}
        hints = get_type_hints(base, include_extras=True) if own else {}
        found |= {name: _taken_apart(hints[name]) for name in own}
        for name, member in vars(base).items():
            if isinstance(member, property) and "Annotated" in str(member.fget.__annotations__.get("return")):
                found[name] = _taken_apart(get_type_hints(member.fget, include_extras=True)["return"])
    return {name: (hint, how) for name, (hint, how) in found.items() if how is not None}


def pack(whole: Any, path: str = "") -> tuple[dict[str, Any], dict[str, Array]]:
    """Plain values, nested as the parts are, and arrays of all that is stored of an object."""
    values: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for name, (hint, how) in stored_in(whole.__class__).items():
        value, key = getattr(whole, name), name.strip("_")
        if isinstance(how, ArraySpec):
            if value is not None and (how.unless is None or np.any(value != how.unless)):
                arrays[path + key] = value
        elif value is None:
            values[key] = None
        elif how is PART:
            values[key], more = pack(value, f"{path}{key}.")
            arrays |= more
            if len(classes_of(hint)) > 1:
                values[key]["class"] = type(value).__name__
        else:
            values[key] = how.written(value)
    return values, arrays


def fields_of(kind: type, values: Any, path: str = "") -> Fields:
    """Specification of the arrays of a class of which these plain values were packed."""
    found: Fields = {}
    for name, (hint, how) in stored_in(kind).items():
        at = path + name.strip("_")
        if isinstance(how, ArraySpec):
            found[at] = how
        elif how is PART:
            part = values[name.strip("_")]
            if part is not None or not _may_be_none(hint):
                found |= fields_of(_class_of(hint, part, at), part, f"{at}.")
    return found


def read(
    kind: type, name: str, values: Any, arrays: Mapping[str, Array], given: Mapping[str, Any], path: str = ""
) -> Any:
    """One stored field of a class, None where there is none; arguments as of :func:`build`."""
    (hint, how), key = stored_in(kind)[name], name.strip("_")
    if isinstance(how, ArraySpec):
        found = arrays.get(path + key)
        return None if found is None else found.astype(how.dtypes.split("|")[0], copy=False)
    value = values[key]
    if value is None and _may_be_none(hint):
        return None
    if how is PART:
        return build(_class_of(hint, value, path + key), value, arrays, given, f"{path}{key}.")
    return how.read(hint, value, path + key)


def build(kind: type, values: Any, arrays: Mapping[str, Array], given: Mapping[str, Any], path: str = "") -> Any:
    """What was packed; its arrays were checked. ValueError if parts do not fit each other.

    By the class's method ``restored`` if it has one, otherwise by its constructor, from what is stored and from what is
    ``given`` by the names of arguments. A method ``checked`` of what was made is called.
    """
    parts = {name: read(kind, name, values, arrays, given, path) for name in stored_in(kind)}
    for name, (hint, _) in stored_in(kind).items():
        if parts[name] is None and not _may_be_none(hint):
            del parts[name]  # what the class takes by default
    make, asked = _maker(kind)
    whole = make(**parts, **{name: given[name] for name in asked if name in given and name not in parts})
    if hasattr(whole, "checked"):
        whole.checked()
    return whole


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


def _bound(axes: list[str], shape: list[int], sizes: Sizes) -> Sizes | None:
    """Sizes with those that a shape gives to new names; None if it does not fit."""
    if len(axes) != len(shape):
        return None
    found = dict(sizes)
    for axis, length in zip(axes, shape, strict=True):
        if axis == "*":
            continue
        name, _, more = axis.partition("+")
        size = length - int(more or 0)
        if size < 0 or size != (int(name) if name.isdigit() else found.setdefault(name, size)):
            return None
    return found


def _taken_apart(hint: Any) -> tuple[Any, Any]:
    """Type, and specification if there is one, of an annotation."""
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, how = get_args(hint)[:2]
    return kind, replace(how, optional=True) if isinstance(how, ArraySpec) and _may_be_none(kind) else how


@cache
def _maker(kind: type) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """What makes an object of a class from its stored parts, and the names of the arguments."""
    make = getattr(kind, "restored", kind)
    return make, tuple(signature(make).parameters)


def classes_of(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type, None not among them."""
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(one for one in alternatives if one is not NoneType)


def _may_be_none(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _class_of(hint: Any, value: Any, at: str) -> Any:
    """The class of a part of these plain values; ValueError if it is none of the alternatives."""
    classes = {one.__name__: one for one in classes_of(hint)}
    if not isinstance(value, dict):
        raise ValueError(f"{at} is {quoted(value)}, and no part of a model")
    if len(classes) > 1 and value.get("class") not in list(classes):
        raise ValueError(f"{at} is none of {', '.join(classes)}")
    return classes[value["class"]] if len(classes) > 1 else next(iter(classes.values()))
