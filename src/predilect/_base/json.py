"""Values as strict JSON can hold them, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


def plain(value: Any, *, words: bool = True) -> Any:
    """Plain values: lists and Python's numbers; those not finite become words, or null without ``words``."""
    if isinstance(value, Mapping):
        return {str(key): plain(part, words=words) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value), words=words)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), words=words)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(part, words=words) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value) if words else None
    return value


def typed(kind: Any, value: Any, name: str = "") -> Any:
    """A plain value as an annotation has it, the inverse of :func:`plain`; ValueError if it is something else."""
    origin, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints = get_type_hints(kind)
        if unknown := value.keys() - hints.keys():
            raise ValueError(f"{name} has no {', '.join(sorted(unknown))}")
        return kind(**{key: typed(hints[key], part, f"{name} {key}".strip()) for key, part in value.items()})
    if origin is Literal and any(value is one or (isinstance(value, str) and value == one) for one in args):
        return value
    if origin in (Union, UnionType):
        for one in args:
            with suppress(ValueError):
                return typed(one, value, name)
    if kind is Any:
        return value
    if origin is list and isinstance(value, list):
        return [typed(args[0], one, name) for one in value]
    if origin is tuple and isinstance(value, list):
        parts = args[:1] * len(value) if args[1:] == (...,) else args
        return tuple(typed(part, one, name) for part, one in zip(parts, value, strict=True))
    if origin is Mapping or origin is dict:
        if isinstance(value, dict):
            return {typed(args[0], key, name): typed(args[1], part, name) for key, part in value.items()}
    elif origin is np.ndarray and isinstance(value, list):
        array = np.array(value)
        if array.dtype.kind in "fi" or not array.size:
            return array.astype(np.float64)
    elif kind is float and (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
        return float(value)
    elif kind in (str, bool, int, type(None)) and type(value) is kind:
        return value
    raise ValueError(f"{name or 'a value'} is {value!r:.100}, not {getattr(kind, '__name__', kind)}")
