"""Text that a spreadsheet would obey as a formula, in a file for people and out of it again."""

from __future__ import annotations

import polars as pl

_BEGINS = r"'*[=+\-@\t\r＝＋－＠]"  # also what would be taken for a mark of ours
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def no_formula(text: pl.Series) -> pl.Series:
    """Text that no spreadsheet takes for a formula: with an apostrophe before what begins as one, and is no number."""
    obeyed = text.str.contains(f"^{_BEGINS}") & ~text.str.contains(_NUMBER)
    return text.zip_with(~obeyed.fill_null(False), "'" + text)


def as_before(text: pl.Series) -> pl.Series:
    """The text of which :func:`no_formula` made it."""
    bare = text.str.slice(1)
    marked = text.str.contains(f"^'{_BEGINS}") & ~bare.str.contains(_NUMBER)
    return bare.zip_with(marked.fill_null(False), text)
