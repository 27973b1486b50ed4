"""Numbers in readable form."""

from __future__ import annotations


def percent(share: float) -> str:
    """A probability estimated from draws, never shown as 0 or 1."""
    if share < 0.005:
        return "<1 %"
    return ">99 %" if share >= 0.995 else f"{100 * share:.0f} %"


def amount(number: float) -> str:
    """An amount, whole where it is."""
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.6g}"
