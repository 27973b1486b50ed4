"""What a fitted model shows of itself: in a notebook, and as a page in a file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from predilect.charts.pictures import board_chart
from predilect.charts.svg import style
from predilect.errors import DataError
from predilect.report.changes import changes_between
from predilect.report.contents import contents_of
from predilect.report.output import OutputFile
from predilect.report.page import page
from predilect.report.tables import SCALES, scale_of


def notebook(model: Any, rows: int) -> str:
    """The first rows of the board as a picture, and the verdict if there is one."""
    board = pl.DataFrame(model.rank())
    drawn = board_chart(board, scale_of("probit", model._likelihood.name).unit, top=rows)
    verdict = getattr(model, "verdict_", None)
    more = f"<p>... and {len(board) - rows} more items: rank() has all.</p>" if len(board) > rows else ""
    told = "<p>No verdict yet: verdict() says whether rankings of people's own mean anything.</p>"
    if verdict is not None:
        told = verdict._repr_html_()
    elif not hasattr(model, "verdict"):
        told = ""
    return (
        f'<div class="predilect" style="padding:.5rem"><style>{style()}</style>'
        f"<p><strong>{escape(repr(model))}</strong></p>{drawn}{more}{told}</div>"
    )


def write_report(model: Any, path: Path, title: str, scale: str, compare: Any, overwrite: bool) -> None:
    """Write the page about a fitted model; DataError if the scale is none or the file cannot be there."""
    if scale not in SCALES:
        raise DataError(f"scale is one of {', '.join(SCALES)}, not {scale!r:.60}")
    file = OutputFile(path, overwrite, what="the report needs", place="path", replace="overwrite=True")
    unit = scale_of(scale, model._likelihood.name)
    changes = None if compare is None else changes_between(model, compare, unit, "the older model")
    text = page(contents_of(model, scale=unit, title=title, changes=changes))
    file.write(lambda place: place.write_text(text, encoding="utf-8"))
