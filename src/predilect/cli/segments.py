"""``predilect rank --segment``: what is asked for, and what is printed of segments that share one fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from predilect._text import amount, one_line
from predilect.cli.choice import DEFAULT, Personal
from predilect.cli.fitting import rows_shown
from predilect.cli.session import Talk
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.report.leaderboard import Ranking, SharedSegment
from predilect.report.sections import SURE, board_table, overviews
from predilect.report.text import terminal

Boards = Mapping[tuple[str, str], SharedSegment]


def asked_segments(
    given: Sequence[str], by: str | None, model: str, personal: Personal
) -> tuple[list[str], list[tuple[str, str]]]:
    """Columns of segments, and the segments (column, value) whose boards are printed; DataError where there are none.

    ``given`` holds COLUMN or COLUMN=VALUE.
    """
    if not given:
        return [], []
    if by is not None:
        raise DataError("--by fits each segment by itself, --segment all together; give one of them")
    if model != DEFAULT:
        raise DataError(
            f"--segment is for the default model. With --model {model}, --by gives each segment its own fit"
        )
    if personal is Personal.no:
        raise DataError(
            "--segment is about groups of people, whom the pooled model does not tell apart. Leave --pooled "
            "(--personal no) out, or give each segment a fit of its own (--by COLUMN)"
        )
    parts = [text.partition("=") for text in given]
    return list(dict.fromkeys(column for column, _, _ in parts)), [(c, value) for c, equals, value in parts if equals]


def refuse_unknown(asked: Sequence[tuple[str, str]], segments: Collection[tuple[str, str]]) -> None:
    """DataError for a board that is asked for and not there."""
    for column, value in asked:
        if (column, value) not in segments:
            there = ", ".join(one_line(segment) for name, segment in segments if name == column)
            raise DataError(f'nobody who answered is in "{value}" of column "{column}"; its segments are {there}')


def say_segments(
    talk: Talk, segments: Boards, overall: Ranking, scale: Scale, asked: Sequence[tuple[str, str]], top: int,
    out: Path | None,
) -> None:  # fmt: skip
    """Print the boards asked for, and how segments differ from the crowd."""
    for name in asked:
        board = segments[name].board
        rows = rows_shown(board, top)
        talk.say()
        answers = amount(float(board["n"].sum()) / 2.0)
        talk.say(f"{one_line(name[1])}: {board['people'][0]} people, {answers} answers", style="bold")
        talk.say(terminal(board_table(board, scale, rows), talk.width))
        if rows < len(board):
            talk.say(f"... and {len(board) - rows} more items; --top 0 shows all.")
    where = "--out DIR writes all boards" if out is None else f"all boards are in {out}/segments.csv"
    talk.say()
    shown = overviews([one.board for one in segments.values()], overall.board, scale)
    for table, left_out in shown:
        talk.say(table.caption, style="bold")
        talk.say(terminal(table, talk.width))
        if left_out:
            talk.say(f"... and {left_out}; {where}.")
    counted = any(column.head == SURE for table, _ in shown for column in table.columns)
    talk.say(
        f"*{f' (counted under {SURE})' if counted else ''}: more than chance, at a false discovery rate of 5 % over "
        "all items and segments of the column. Segments of few people stay near the crowd."
    )
    for column in dict.fromkeys(column for column, _ in segments):
        n_without = overall.comparisons.n_users - sum(
            one.board["people"][0] for (name, _), one in segments.items() if name == column
        )
        if n_without:
            who = "1 person has" if n_without == 1 else f"{n_without} people have"
            talk.say(f'{who} no value in column "{one_line(column)}": they stand with the crowd.')
