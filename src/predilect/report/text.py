"""Ids and numbers as a person reads them."""

from __future__ import annotations

from typing import Any

__all__ = ["amount", "one_line", "percent", "shortened"]


def one_line(value: Any) -> str:
    """Text without line ends and control characters, so that an id cannot break a table."""
    return "".join(c for c in " ".join(str(value).split()) if c.isprintable())


def shortened(text: str, longest: int) -> str:
    """Text of at most ``longest`` characters; the middle gives way, since ids often differ at their ends."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def percent(share: float) -> str:
    """A probability estimated from draws, never shown as 0 or 1."""
    if share < 0.005:
        return "<1 %"
    return ">99 %" if share >= 0.995 else f"{100 * share:.0f} %"


def amount(number: float) -> str:
    """An amount, whole where it is."""
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.6g}"
