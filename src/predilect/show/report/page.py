"""A report as one HTML page: it asks nothing of any other place, and everything can be read without script."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from predilect._base.text import one_line, shortened
from predilect.show.charts.chart import ISOLATED, name_of
from predilect.show.charts.svg import PHONE, style, svg
from predilect.show.report.parts import Figure, Heading, List, Part, Table
from predilect.show.report.sections import Contents

_LONGEST_NAME = 80
# Browsers keep to it: nothing can be asked of any other place, whatever the page holds.
_POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'\">"
)


def page(contents: Contents, head: str = "", top: str = "", more: str = "") -> str:
    """The whole page; the rest is HTML of a server that serves it by a policy of its own.

    ``head`` ends the head of the page, ``top`` stands above its sections, ``more`` below the board.
    """
    sections = contents.sections
    links = "".join(f'<li><a href="#{key}">{escape(name)}</a></li>' for key, name, _ in sections)
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{escape(name)}</h2>'
        f"{''.join(map(as_html, parts))}</section>\n{more if key == 'board' else ''}"
        for key, name, parts in sections
    )
    title = escape(name_of(contents.title))
    sheet, script = (
        (files("predilect.show.report") / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head or _POLICY}"
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{style()}{sheet}</style></head>\n"
        '<body class="predilect"><a class="skip" href="#board">Skip to the board</a>\n'
        f"<header><h1>{title}</h1><p>{escape(contents.in_short)}</p>"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>\n<main>{top}{body}</main>\n'
        '<footer><p class="soft">Made by Predilect, which ranks from answers to “which of these two?”. This file holds '
        f"all that it shows.</p></footer>\n<script>{script}</script></body></html>\n"
    )


def as_html(part: Part) -> str:
    """A part of a section."""
    match part:
        case str():
            return f"<p>{_sentence(part)}</p>"
        case Heading(said):
            return f"<h3>{escape(said)}</h3>"
        case List(lines, ordered):
            kind = "ol" if ordered else "ul"
            return f"<{kind}>{''.join(f'<li>{_sentence(line)}</li>' for line in lines)}</{kind}>"
        case Figure(chart, caption):
            wide, phone = svg(chart), svg(chart, PHONE)  # each hidden where the other is for
            both = wide if wide == phone else f'<div class="wide">{wide}</div><div class="phone">{phone}</div>'
            return f"<figure>{_scrolled(both, caption)}<figcaption>{_sentence(caption)}</figcaption></figure>"
        case Table(summary=""):
            return _table(part)
        case Table():
            return f"<details><summary>{escape(part.summary)}</summary>{_table(part)}</details>"


def _sentence(said: str) -> str:
    """A sentence, in which a number and its per cent sign stay on one line."""
    line = "".join(c for c in " ".join(said.split()) if c.isprintable() or c in ISOLATED)
    return escape(line).replace(" %", "\u00a0%")


def _table(table: Table) -> str:
    columns = table.columns
    kinds = [column.kind for column in columns]
    head = kinds.index("name") if "name" in kinds else 0
    kind = "board sortable" if any(column.by for column in columns) else ""
    top = "".join(
        f'<th scope="col"{_attribute("class", "t" * (column.kind != "number"))}{_attribute("data-by", column.by)}>'
        f"{escape(column.head)}</th>"
        for column in columns
    )
    groups = [table.group(record) if table.group else None for record in table.records]
    rows = []
    for k, cells in enumerate(table.rows):
        opens = k > 0 and groups[k] != groups[k - 1]
        # On a phone these columns are a second line below the name: see page.css.
        folded = ", ".join(c.folded.format(cell) for c, cell in zip(columns, cells, strict=True) if c.folded)
        line = []
        for place, (column, cell) in enumerate(zip(columns, cells, strict=True)):
            left = _attribute("class", {"name": "t n", "text": "t"}.get(column.kind, ""))
            inside = _named(cell) if column.kind == "name" else escape(cell)
            if place == head:
                line.append(f'<th scope="row"{left}{_attribute("data-more", folded)}>{inside}</th>')
            else:
                line.append(f"<td{left}>{inside}</td>")
        rows.append(f"<tr{_attribute('class', 'new' * opens)}>{''.join(line)}</tr>")
    inside = (
        f"<table{_attribute('class', kind)}><caption>{escape(table.caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    return _scrolled(inside, table.caption)


def _named(whole: str) -> str:
    """A name; a long one is cut, and whole in its title."""
    whole = name_of(whole)
    short = shortened(whole, _LONGEST_NAME)
    return f"<bdi{_attribute('title', whole if short != whole else '')}>{escape(short)}</bdi>"


def _attribute(name: str, value: str) -> str:
    """An attribute of an element; nothing without a value."""
    return f' {name}="{escape(value)}"' if value else ""


def _scrolled(inside: str, label: str) -> str:
    return f'<div class="scroll" tabindex="0" role="region"{_attribute("aria-label", one_line(label))}>{inside}</div>'
