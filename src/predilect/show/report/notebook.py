"""What a fitted model shows of itself: in a notebook, and as a page in a file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from predilect._base.forks import refuse_without_threads
from predilect._base.text import shown
from predilect.decisions.scales import Scale, scale_of
from predilect.errors import DataError
from predilect.show.charts.pictures import board_chart
from predilect.show.charts.svg import style, svg
from predilect.show.report.changes import changes_between
from predilect.show.report.output import OutputFile
from predilect.show.report.page import page
from predilect.show.report.sections import Contents, contents_of
from predilect.show.report.text import document

_MARKDOWN = ".md"


def notebook(model: Any, rows: int) -> str:
    """The first rows of the board as a picture, and the verdict if there is one."""
    refuse_without_threads()
    board = pl.DataFrame(model.rank())
    drawn = svg(board_chart(board, scale_of("probit", model._likelihood.name).unit, top=rows))
    verdict = getattr(model, "verdict_", None)
    more = f"<p>... and {len(board) - rows} more items: rank() has all.</p>" if len(board) > rows else ""
    inside = "<p>No verdict yet: verdict() says whether rankings of people's own mean anything.</p>"
    if verdict is not None:
        inside = verdict._repr_html_()
    elif not hasattr(model, "verdict"):
        inside = ""
    return (
        f'<div class="predilect" style="padding:.5rem"><style>{style()}</style>'
        f"<p><strong>{escape(repr(model))}</strong></p>{drawn}{more}{inside}</div>"
    )


def write_report(
    model: Any, path: Path, title: str, unit: Scale, compare: Any, name_people: bool, overwrite: bool
) -> None:  # fmt: skip
    """Write the report of a fitted model, a page or Markdown by the suffix; DataError if the file cannot be there."""
    refuse_without_threads()
    refuse_other_form(path)
    file = OutputFile(path, overwrite, what="the report needs", place="path", replace="overwrite=True")
    changes = None if compare is None else changes_between(model, compare, unit, "the older model")
    text = written(contents_of(model, scale=unit, title=title, changes=changes, name_people=name_people), path)
    file.write(lambda place: place.write_text(text, encoding="utf-8"))


def refuse_other_form(path: Path) -> None:
    """DataError for a file whose name promises another form."""
    if path.suffix.lower() not in ("", ".html", ".htm", _MARKDOWN):
        raise DataError(
            f"a report is a page (.html) or Markdown (.md), not {shown(path.suffix)}. Name it so; a browser prints a "
            "page to PDF"
        )


def written(contents: Contents, path: Path) -> str:
    """The report in the form that the name of its file asks for: Markdown, or a page."""
    return (document if path.suffix.lower() == _MARKDOWN else page)(contents)
