"""Whether all that tells of a ranking tells the same: files, pages, commands and Python."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from cli.running import run
from predilect import load
from tolerances import EXACT, ITERATIVE

__all__ = ["disagreement"]

_NUMBERS = (
    "mean", "sd", "lower", "upper", "rank", "rank_low", "rank_high", "p_best", "tier", "n", "wins", "ties", "losses",
)  # fmt: skip


class _Tables(HTMLParser):
    """Rows of all tables of a page, as texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._within = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self._within = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._within:
            self.rows[-1][-1] += data


def disagreement(folder: str) -> str:
    """What differs between the files in a folder of results and all that is made of them; "" if nothing does."""
    document = json.loads((Path(folder) / "leaderboard.json").read_bytes())
    board, given = document["board"], f"./{folder}"
    printed = {
        "leaderboard.csv": (Path(folder) / "leaderboard.csv").read_text(encoding="utf-8"),
        "show --format csv": run("show", given, "--top", "0", "--format", "csv").stdout,
    }
    for name, text in printed.items():
        if found := _other(board, list(csv.DictReader(io.StringIO(text)))):
            return f"{name} is not leaderboard.json: {found}"
    shown = json.loads(run("show", given, "--top", "0", "--format", "json").stdout)["board"]
    if found := _other(board, shown):
        return f"show --format json is not leaderboard.json: {found}"
    model = load(given)
    if found := _other(board, pl.DataFrame(model.rank()).to_dicts()):
        return f"rank() of the loaded model is not leaderboard.json: {found}"
    if found := _other_people(folder, model):
        return found
    with TemporaryDirectory() as place:
        rows = {"show --format md": _marked_down(run("show", given, "--top", "0", "--format", "md").stdout)}
        for page in ("page.md", "page.html"):
            ran = run("report", given, "-o", f"{place}/{page}")
            if ran.exit_code:
                return f"report cannot make {page}: {ran.exception!r} {ran.output}"
            text = Path(place, page).read_text(encoding="utf-8")
            rows[page] = _marked_down(text) if page.endswith("md") else _Tables(text).rows
            if f"{len(board)} items" not in text:
                return f"{page} does not say {len(board)} items"
    for name, cells in rows.items():
        if found := _other_cells(board, cells):
            return f"{name} is not leaderboard.json: {found}"
    return ""


def _other(board: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> str:
    """The first number or name that is another."""
    if len(board) != len(other):
        return f"{len(board)} rows and {len(other)}"
    for one, two in zip(board, other, strict=True):
        if str(one["item"]) not in (str(two["item"]), str(two["item"])[1:]):
            return f"{one['item']!r} and {two['item']!r}"
        for name in _NUMBERS:
            if not _same(one[name], two[name]):
                return f"{name} of {one['item']!r}: {one[name]} and {two[name]}"
    return ""


def _same(one: Any, two: Any, tolerance: float = EXACT) -> bool:
    return math.isclose(float(one), float(two), rel_tol=tolerance, abs_tol=tolerance)


def _other_people(folder: str, model: Any) -> str:
    """The first person whose own ranking in users.parquet is not that of the model, or of ``show``."""
    path = Path(folder) / "users.parquet"
    if not path.is_file():
        return ""
    table = pl.read_parquet(path)
    for user in table["user"].unique(maintain_order=True)[:2]:
        of_user = table.filter(pl.col("user") == user).to_dicts()
        by_model = pl.DataFrame(model.rank(model.users_.labels([model._user_code(user)])[0])).to_dicts()
        shown = run("show", f"./{folder}", f"--user={user}", "--top", "0", "--format", "json").stdout
        for name, rows in (("rank(user)", by_model), ("show --user", json.loads(shown)["board"])):
            for one, two in zip(of_user, rows, strict=True):
                same = all(_same(one[key], two[key], ITERATIVE) for key in ("mean", "sd", "rank", "n"))
                if str(one["item"]) != str(two["item"]) or not same:
                    return f"users.parquet is not {name}: of {user!r}, {one} and {two}"
    return ""


def _marked_down(text: str) -> list[list[str]]:
    """Cells of the tables of a page of Markdown."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows]


def _other_cells(board: Sequence[dict[str, Any]], cells: Iterable[list[str]]) -> str:
    """The first row of a printed board with another number."""
    rows = [row for row in cells if len(row) in (8, 9) and row[0].isdigit() and "–" in row[1]]
    if len(rows) != len(board):
        return f"{len(board)} rows and {len(rows)}"
    for one, row in zip(board, rows, strict=True):
        (lower, upper), (first, last) = row[4].split("…"), row[1].split("–")
        said = {"rank": row[0], "rank_low": first, "rank_high": last, "mean": row[3], "lower": lower, "upper": upper,
                "tier": row[6], "n": row[7].replace(" ", "")}  # fmt: skip
        for name, text in said.items():
            digits = len(text.strip().partition(".")[2])
            if abs(float(text) - one[name]) > 0.5001 * 10.0**-digits:
                return f"{name} of {one['item']!r}: {one[name]} and {text}"
        share, text = 100 * one["p_best"], row[5].removesuffix(" %")
        low, high = {"<1": (0.0, 0.5), ">99": (99.5, 100.0)}.get(text) or (float(text) - 0.5, float(text) + 0.5)
        if not low - 1e-9 <= share <= high + 1e-9:
            return f"p_best of {one['item']!r}: {one['p_best']} and {row[5]}"
        if len(row) == 9 and one["win_share"] is not None:  # of a page
            share, text = 100 * one["win_share"], row[8].removesuffix(" %")
            low, high = {"<1": (0.0, 0.5), ">99": (99.5, 100.0)}.get(text) or (float(text) - 0.5, float(text) + 0.5)
            if not low - 1e-9 <= share <= high + 1e-9:
                return f"win_share of {one['item']!r}: {one['win_share']} and {row[8]}"
    return ""
