"""Segments on the terminal and in a picture."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from predilect.decisions.scales import SCALES
from predilect.show.charts.on_axes import write_chart
from predilect.show.charts.pictures import segments_chart
from predilect.show.report.sections import overviews
from predilect.show.report.text import terminal

N_ITEMS = 40
ITEMS = [f"item {i}" for i in range(N_ITEMS)]


def boards(n_segments: int, column: str = "language", seed: int = 0) -> list[pl.DataFrame]:
    """Boards of so many segments; the first difference of each is more than chance."""
    rng = np.random.default_rng(seed)
    return [
        pl.DataFrame({
            "column": column, "segment": f"{column} {g}", "people": 100 - g, "item": ITEMS, "n": 10,
            "difference": rng.standard_normal(N_ITEMS), "more_than_chance": np.arange(N_ITEMS) == 0,
        })
        for g in range(n_segments)
    ]  # fmt: skip


CROWD = pl.DataFrame({"item": ITEMS, "mean": np.linspace(2.0, -2.0, N_ITEMS)})


def printed(parts, width: int = 80) -> list[str]:
    """Lines on a terminal."""
    console = Console(width=width)
    with console.capture() as told:
        for table, left_out in overviews(parts, CROWD, SCALES["probit"]):
            console.print(table.caption)
            console.print(terminal(table, width))
            console.print(left_out)
    return told.get().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_49_segments_take_at_most_60_lines(width):
    lines = printed(boards(49), width)
    assert len(lines) <= 60
    assert all(any(line.lstrip().startswith(f"language {g} ") for line in lines) for g in range(49))
    assert max(map(len, lines)) <= width


def test_seven_segments_of_long_names_stand_beside_each_other_in_80_columns():
    parts = [board.with_columns(segment=pl.lit(f"people from a far country, {k}")) for k, board in enumerate(boards(7))]
    lines = printed(parts, 80)
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.lstrip().startswith("item 0 "))
    assert row.split() == ["item", "0", "2.00", *(f"{board['difference'][0]:+.2f}*" for board in parts)]


@pytest.mark.parametrize("sizes", [(3, 4), (49, 30), (2, 2, 60, 10), (5,)])
def test_several_columns_share_the_60_lines_and_what_is_left_out_is_said(sizes):
    parts = [board for k, n in enumerate(sizes) for board in boards(n, f"column{k}", k)]
    lines = printed(parts)
    assert len(lines) <= 60
    told = "\n".join(lines)
    assert ("smaller segments" in told) is any(n > 51 // len(sizes) for n in sizes)
    assert ("more items" in told) is any(n <= 7 for n in sizes)


def test_few_segments_stand_beside_each_other_with_stars_on_what_is_more_than_chance():
    parts = boards(2)
    lines = printed(parts)
    row = next(line for line in lines if line.lstrip().startswith("item 0 "))
    first, second = (f"{board['difference'][0]:+.2f}*" for board in parts)
    assert row.split() == ["item", "0", "2.00", first, second]
    assert sum(line.count("*") for line in lines) == 2


def test_many_segments_tell_the_items_that_differ_most():
    parts = boards(10)
    line = next(line for line in printed(parts, 120) if line.lstrip().startswith("language 3 "))
    most = parts[3].sort("difference").row(-1, named=True)
    assert f"{most['difference']:+.2f}" in line
    assert most["item"] in line
    assert line.split()[2:5] == ["97", "200", "1"]  # people, answers (two items each), more than chance


@pytest.mark.slow
def test_the_picture_has_the_same_bytes_each_time(tmp_path):
    parts = [*boards(3), *boards(2, "panel", 1)]
    for name in ("a", "b"):
        chart = segments_chart(parts, CROWD, "Elo points")
        write_chart(chart, [tmp_path / f"{name}.svg", tmp_path / f"{name}.png"], "")
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    for told in ("panel 1 (99)", "item 39", "Elo points"):
        assert told in text
