"""``predilect rank --segment``: what is asked for, and what is printed of segments that share one fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from predilect._base.text import one_line
from predilect.cli.session import Talk
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.show.report.leaderboard import Ranking, SharedSegment
from predilect.show.report.sections import SURE, overviews
from predilect.show.report.text import terminal

Boards = Mapping[tuple[str, str], SharedSegment]


def refuse_segments(by: str | None, model: str, personal: str) -> None:
    """DataError where people of segments cannot share one fit."""
    if by is not None:
        raise DataError("--by fits each segment by itself, --segment all together; give one of them")
    if model != "population":
        raise DataError(
            f"--segment is for the default model. With --model {model}, --by gives each segment its own fit, by a "
            "column of FILE"
        )
    if personal == "no":
        raise DataError(
            "--segment is about groups of people, whom the pooled model does not tell apart. Leave --personal no out, "
            "or give each segment a fit of its own (--by COLUMN)"
        )


def say_segments(talk: Talk, segments: Boards, overall: Ranking, scale: Scale) -> None:
    """Print how segments differ from the crowd."""
    talk.say()
    shown = overviews([one.board for one in segments.values()], overall.board, scale)
    for table, left_out in shown:
        talk.say(table.caption, style="bold")
        talk.say(terminal(replace(table, caption=""), talk.width))
        if left_out:
            talk.say(f"... and {left_out}; -o DIR writes all boards, to segments.csv.")
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
