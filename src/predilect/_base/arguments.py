"""What may be given for an argument: a check for each kind of value, and a table of arguments that several verbs take.

An argument is checked before anything is done with it, so that a wrong one is answered in our words and not in those of
the library that happened to meet it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import signature
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np

from predilect._base.text import did_you_mean, quoted, written
from predilect._base.types import LARGEST_NUMBER, FloatArray, is_number
from predilect.errors import DataError


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """DataError unless ``value`` is one of those allowed."""
    allowed = list(allowed)
    if not _among(value, allowed):
        words = [one for one in allowed if isinstance(one, str)] if isinstance(value, str) else []
        meant = did_you_mean(value, words)
        raise DataError(
            f"{name} must be one of {', '.join(map(written, allowed))}, not {_came(value)}{meant and f'.{meant}'}"
        )


def check_count(name: str, value: Any, least: int, *words: Any, most: float = LARGEST_NUMBER) -> None:
    """DataError unless ``value`` is a whole number from ``least`` up, or one of ``words``."""
    if _among(value, words):
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        upto = "up" if most == LARGEST_NUMBER else f"to {most}"
        raise DataError(f"{name} must be {_also(words)}a whole number from {least} {upto}, not {_came(value)}")


def check_number(
    name: str, value: Any, *words: Any, low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER
) -> None:  # fmt: skip
    """DataError unless ``value`` is a finite number from ``low`` to ``high``, or one of ``words``."""
    if not _among(value, words) and not is_number(value, low, high):
        upto = f" from {low:g} {'up' if high == LARGEST_NUMBER else f'to {high:g}'}" if low > -LARGEST_NUMBER else ""
        raise DataError(f"{name} must be {_also(words)}a number{upto}, not {_came(value)}")


def check_positive(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is a positive finite number, or one of ``words``."""
    if not _among(value, words) and not is_number(value):
        raise DataError(f"{name} must be {_also(words)}a positive number, not {_came(value)}")


def check_positives(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is a positive finite number, a list of such, or one of ``words``."""
    some = list(value) if _is_list(value) else [value]
    if not _among(value, words) and not (some and all(map(is_number, some))):
        raise DataError(f"{name} must be {_also(words)}a positive number, or a list of such, not {_came(value)}")


def numbers_in(name: str, value: Any, n_dimensions: int = 1) -> FloatArray:
    """Numbers as an array of so many dimensions; DataError for anything else."""
    try:
        found = np.asarray(value)
    except ValueError:  # lists that are not equally long
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "biuf" or found.ndim != n_dimensions:
        kind = "a list" if n_dimensions == 1 else f"an array of {n_dimensions} dimensions"
        raise DataError(f"{name} must be {kind} of numbers, not {_came(value)}")
    return found.astype(np.float64)


def check_function(name: str, value: Any, n_arguments: int, words: Iterable[Any]) -> None:
    """DataError unless ``value`` is a function of so many arguments, or one of ``words``."""
    if not _among(value, words) and not _takes(value, n_arguments):
        known = ", ".join(map(written, words))
        raise DataError(f"{name} must be one of {known}, or a function of {n_arguments} arguments, not {_came(value)}")


def check_flag(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is True or False, or one of ``words``: any text, "no" too, would count as true."""
    if not _among(value, words) and not isinstance(value, bool | np.bool_):
        raise DataError(f"{name} must be {_also(words)}{written(True)} or {written(False)}, not {_came(value)}")


def check_text(name: str, value: Any, *words: Any, of: str = "text") -> None:
    """DataError unless ``value`` is text, or one of ``words``."""
    if not _among(value, words) and not isinstance(value, str):
        raise DataError(f"{name} must be {_also(words)}{of}, not {_came(value)}")


def check_list(name: str, value: Any, *words: Any, of: str = "ids") -> None:
    """DataError unless ``value`` is a list of something, of any kind, or one of ``words``; text and tables are none."""
    if not _among(value, words) and not _is_list(value):
        raise DataError(f"{name} must be {_also(words)}a list of {of}, not {_came(value)}")


def check_names(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is a list of texts, or one of ``words``."""
    check_list(name, value, *words, of="names")
    for one in () if _among(value, words) else value:
        check_text(f"a name in {name}", one)


def check_mapping(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is a mapping, or one of ``words``."""
    if not _among(value, words) and not isinstance(value, Mapping):
        raise DataError(f"{name} must be {_also(words)}a mapping, not {_came(value)}")


def check_amounts(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is a mapping of ids to numbers from 0 up, or one of ``words``."""
    if _among(value, words):
        return
    if not isinstance(value, Mapping):
        raise DataError(f"{name} must be {_also(words)}a mapping of ids to numbers, not {_came(value)}")
    for one, amount in value.items():
        check_number(f"{name} of {quoted(one)}", amount, low=0.0)


def check_draws(name: str, value: Any) -> None:
    """DataError unless ``value`` is a seed, a generator or seeds of NumPy, or None to draw anew."""
    if not isinstance(value, np.random.Generator | np.random.SeedSequence):
        check_count(name, value, 0, None)


def _is_list(value: Any) -> bool:
    is_table = hasattr(value, "columns") or getattr(value, "ndim", 1) != 1
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | type) and not is_table


def _takes(value: Any, n_arguments: int) -> bool:
    if not callable(value) or isinstance(value, type):
        return False
    try:
        signature(value).bind(*range(n_arguments))
    except TypeError:
        return False
    except ValueError:  # compiled functions have no signature
        return True
    return True


def _came(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else written(value)


def check_id(name: str, value: Any) -> None:
    """DataError unless ``value`` is an id, text or a whole number, or None for nobody."""
    if isinstance(value, bool | np.bool_) or not (
        value is None or isinstance(value, str | Integral) or (is_number(value, -LARGEST_NUMBER) and value % 1 == 0)
    ):
        raise DataError(f"{name} must be an id, text or a whole number, not {_came(value)}")


def check_table(name: str, value: Any) -> None:
    """DataError unless ``value`` may be a table, by its columns, or features that were made of one, or None."""
    marks = ("columns", "column_names", "__arrow_c_stream__", "ids")
    if value is not None and not isinstance(value, Mapping) and not any(hasattr(value, one) for one in marks):
        raise DataError(f"{name} must be a data frame or a dict of columns, not {_came(value)}")


def check_path(name: str, value: Any, *words: Any) -> None:
    """DataError unless ``value`` is the name of a file or folder, or one of ``words``."""
    if not _among(value, words) and not isinstance(value, str | PathLike):
        raise DataError(f"{name} must be {_also(words)}the name of a file or folder, not {_came(value)}")


def _among(value: Any, words: Iterable[Any]) -> bool:
    return any(value is word or (isinstance(value, str) and value == word) for word in words)


def _also(words: Iterable[Any]) -> str:
    return "".join(f"{written(word)} or " for word in words)


_COUNT = partial(check_count, least=1)
_KINDS: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("n", "k", "size"), _COUNT),
    "n_people": lambda name, value: check_count(name, value, 1, None),
    **dict.fromkeys(("repeat", "ranks", "name_people", "overwrite", "outside", "balanced"), check_flag),
    "quota": lambda name, value: check_flag(name, value, None),
    "eps": lambda name, value: check_number(name, value, low=1e-12, high=1.0),
    "difficulty": lambda name, value: check_number(name, value, None, low=0.0, high=1.0),
    "retired": partial(check_list, of="items"),
    "users": lambda name, value: check_list(name, value, None),
    **dict.fromkeys(("ours", "against", "scenario"), partial(check_list, of="items")),
    "values": partial(check_list, of="numbers"),
    "shown": lambda name, value: check_amounts(name, value, None),
    **dict.fromkeys(("price", "attribute"), partial(check_text, of="the name of an attribute")),
    "title": check_text,
    "attributes": check_mapping,
    "priors": lambda name, value: check_mapping(name, value, None),
    "random_state": check_draws,
    "user": check_id,
    **dict.fromkeys(("items", "people"), check_table),
    "path": check_path,
}


def check_arguments(**given: Any) -> None:
    """DataError unless all are what arguments of these names may be, whichever verb takes them."""
    for name, value in given.items():
        _KINDS[name](name, value)
