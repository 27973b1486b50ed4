"""PrefLib's files of orders: strict or with ties, complete or not."""

from __future__ import annotations

import re

import polars as pl

from predilect._text import shown
from predilect.errors import DataError

ORDERS = (".soc", ".soi", ".toc", ".toi")
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.I)
_LEVEL = re.compile(r"\{([^{}]*)\}|([^,{}]+)")


def read_preflib(data: bytes, source: str) -> pl.DataFrame:
    """Table of orders: "order", lists of levels from the best of the names of alternatives, and "count", of ballots.

    Raises DataError for a line that is no order, and for a number of an alternative that the header does not name.
    """
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{source} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    names: dict[str, str] = {}
    orders: list[list[list[str]]] = []
    counts: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#"):
            if match := _NAME.match(text):
                names[match[1]] = match[2].strip() or match[1]
            continue
        count, colon, order = text.partition(":")
        if not colon or not count.strip().isdecimal():
            raise DataError(
                f'{source}: line {number} is no order, "{shown(text)}"; expected how many gave it, a colon, and the '
                'numbers of alternatives from the best, such as "12: 3,{1,4},2". Files of before 2022 are others: '
                "download the file again from preflib.org."
            )
        levels = [[one.strip() for one in (tied or single).split(",") if one.strip()]
                  for tied, single in _LEVEL.findall(order)]  # fmt: skip
        levels = [level for level in levels if level]
        unknown = next((one for level in levels for one in level if names and one not in names), None)
        if unknown is not None:
            raise DataError(
                f'{source}: line {number} names the alternative "{shown(unknown)}", but the header names {len(names)} '
                'others ("# ALTERNATIVE NAME n: ..."). Is the file whole?'
            )
        orders.append([[names.get(one, one) for one in level] for level in levels])
        counts.append(int(count))
    if not orders:
        raise DataError(f'{source} holds no order; expected lines such as "12: 3,1,2" after those that begin with #.')
    doubled = len(set(names.values())) < len(names)
    if doubled:
        raise DataError(f"{source} gives two alternatives the same name. Rename one of them.")
    return pl.DataFrame({"order": pl.Series(orders, dtype=pl.List(pl.List(pl.String))), "count": counts})
