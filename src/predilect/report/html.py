"""Pieces of a page: lists, figures and tables, of text that is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from predilect._text import one_line, shortened
from predilect.charts.svg import name_of

_LONGEST_NAME = 80


def bullets(lines: Iterable[str], kind: str = "ul") -> str:
    """A list of sentences, in which a number and its per cent sign stay on one line."""
    said = (escape(one_line(line)).replace(" %", "\u00a0%") for line in lines)
    return f"<{kind}>{''.join(f'<li>{line}</li>' for line in said)}</{kind}>"


def named(value: Any) -> str:
    """An item's name; a long one is cut, and whole in its title."""
    whole = name_of(value)
    short = shortened(whole, _LONGEST_NAME)
    return f"<bdi{attribute('title', whole if short != whole else '')}>{escape(short)}</bdi>"


def figure(drawn: str, caption: str, small: bool = False) -> str:
    """A chart that is scrolled where there is no room for it."""
    if small:
        drawn = drawn.replace('class="chart', 'class="chart small', 1)
    return f"<figure>{_scrolled(drawn, caption)}<figcaption>{escape(caption)}</figcaption></figure>"


def table(caption: str, heads: Sequence[str], rows: Iterable[str], kind: str = "", by: Sequence[str] = ()) -> str:
    """A table; columns of a head with a colon before it hold text, ``by`` is what columns are sorted by."""
    by = by or [""] * len(heads)
    top = "".join(
        f'<th scope="col"{attribute("class", "t" * head.startswith(":"))}{attribute("data-by", how)}>'
        f"{escape(head.removeprefix(':'))}</th>"
        for head, how in zip(heads, by, strict=True)
    )
    inside = (
        f"<table{attribute('class', kind)}><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    return _scrolled(inside, caption)


def row(head: str, *cells: str) -> str:
    """A row of a table: its head, as :func:`named` gives it, and cells; text stands left if it is a name."""
    return f'<tr><th scope="row" class="t">{head}</th>{"".join(map(cell, cells))}</tr>'


def cell(inside: str) -> str:
    """A cell, of what is escaped already."""
    return f'<td class="t">{inside}</td>' if inside.startswith("<bdi") else f"<td>{inside}</td>"


def attribute(name: str, value: str) -> str:
    """An attribute of an element; nothing without a value."""
    return f' {name}="{escape(value)}"' if value else ""


def _scrolled(inside: str, label: str) -> str:
    return f'<div class="scroll" tabindex="0" role="region"{attribute("aria-label", label)}>{inside}</div>'
