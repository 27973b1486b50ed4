"""Values as strict JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any, *, words: bool = True) -> Any:
    """Plain values: arrays and other iterables become lists, NumPy's numbers Python's.

    Parameters
    ----------
    value : object
    words : bool, default True
        Whether numbers that are not finite become the words "inf", "-inf" and "nan", or null.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(part, words=words) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), words=words)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(part, words=words) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value) if words else None
    return value
