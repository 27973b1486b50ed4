"""Kernels as plain values, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from predilect._base.stored import LARGEST, Value
from predilect._base.text import quoted
from predilect.inference.gaussian import kernels
from predilect.inference.gaussian.kernels import Kernel


def kernel_to_dict(kernel: Any) -> dict[str, Any]:
    """Class of a kernel, a dataclass, and its attributes, kernels within it likewise."""
    return {"type": type(kernel).__name__, **{f.name: _plain(getattr(kernel, f.name)) for f in fields(kernel)}}


def kernel_from_dict(values: Mapping[str, Any]) -> Kernel:
    """The kernel that :func:`kernel_to_dict` wrote; ValueError if there is no such kernel."""
    name = values["type"]
    if name not in kernels.__all__ or not isinstance(getattr(kernels, name), type):
        raise ValueError(f"there is no kernel called {quoted(name)}")
    made: Kernel = getattr(kernels, name)(**{key: _value(v) for key, v in values.items() if key != "type"})
    if not (np.abs(made.theta) <= math.log(LARGEST)).all():
        raise ValueError(
            f"hyper-parameters of a kernel from {1.0 / LARGEST:g} to {LARGEST:g}, not {np.exp(made.theta)}"
        )
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.kind}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return kernel_to_dict(value) if is_dataclass(value) and isinstance(value, Kernel) else value


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(part) for part in value)
    if isinstance(value, Mapping):
        if "type" in value:
            return kernel_from_dict(value)
        return np.array(value["array"], dtype={"f": float, "i": np.int64, "b": bool}[value["dtype"]])
    return value


KERNEL = Value(kernel_to_dict, lambda _, value, __: kernel_from_dict(value))  # of a class that stores one
