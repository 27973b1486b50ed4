"""Number of items to keep: a person's, as number or share, or all people's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from predilect.errors import DataError

__all__ = ["items_a_person", "items_in_all"]


_ROUNDING = 1e-9  # of a share times the number of items: 7 % of 100 items are 7, whatever 0.07 * 100 is


def items_a_person(keep: Any, n_items: int) -> int:
    """Number of items a person keeps, from a number, a share (rounded up) or text; DataError if impossible."""
    number, is_share = _read(keep)
    if not math.isfinite(number):
        raise DataError(f"keep={keep!r} is no number: give a number of items from 1 to {n_items}, or a share like 20%")
    if number <= 0:
        raise DataError(f"keep={keep!r} keeps nothing: give a number of items from 1 to {n_items}, or a share like 20%")
    if is_share:
        if number > 1.0:
            raise DataError(
                f"keep={keep!r} is more than all: a share is at most 100 %. A number of items is a whole number, 1 to "
                f"{n_items}"
            )
        r = math.ceil(number * n_items - _ROUNDING)
        if r < 1:
            raise DataError(f"keep={keep!r} of {n_items} items rounds to none: keep at least {1.0 / n_items:.2%}")
        return r
    if number > n_items:
        raise DataError(f"keep={keep!r} is more than all: there are {n_items} items. A share is written as 20% or 0.2")
    return int(number)


def items_in_all(budget: Any, n_users: int, n_items: int) -> int:
    """Number of items of all people together; DataError unless whole, at least one a person and not above all."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise DataError(f"budget must be a whole number of items of all people together; got {budget!r}")
    if not n_users <= budget <= n_users * n_items:
        raise DataError(
            f"budget={budget} cannot be shared out: {n_users} people keep at least one item each and at most "
            f"{n_items}, {n_users} to {n_users * n_items} together"
        )
    return int(budget)


def _read(keep: Any) -> tuple[float, bool]:
    """A number, and whether it is a share."""
    if isinstance(keep, str):
        text = keep.strip()
        try:
            if text.endswith("%"):
                return float(text[:-1]) / 100.0, True
            return (float(int(text)), False) if text.lstrip("+-").isdigit() else (float(text), True)
        except ValueError:
            raise DataError(f"keep={keep!r} is neither a number of items nor a share: write 10, 0.2 or 20%") from None
    if isinstance(keep, bool) or not isinstance(keep, int | float | np.integer | np.floating):
        raise DataError(f"keep must be a number of items, or a share such as 0.2 or '20%'; got {keep!r}")
    return float(keep), isinstance(keep, float | np.floating)
