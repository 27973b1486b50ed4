"""``predilect show``: the board of a fitted model, another person's, or some items against each other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._base.text import did_you_mean
from predilect.cli.options import Folder, ScaleOption, UserOption, items_in, numbers_in
from predilect.cli.session import Talk, session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_MOST_ITEMS = 10  # of which all pairs are told


def show(
    ctx: typer.Context,
    folder: Folder,
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM...]", show_default=False, help="Items against each other, in place of a board."),
    ] = None,
    user: UserOption = None,
    segment: Annotated[
        str | None,
        typer.Option("--segment", metavar="COLUMN=VALUE", help="The board of a segment that predilect rank knew."),
    ] = None,
    scale: ScaleOption = "probit",
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="Rows to print; 0 for all.")] = 50,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="CHANGES", show_default=False,
            help='Of a GaSPK model, how likely people accept changes: "price=5,fuel=gas" is 5 more to pay, for gas. '
            "Again: a new row.",
        ),
    ] = None,
    indifference: Annotated[
        str | None,
        typer.Option(
            "--indifference", metavar="A,B", show_default=False,
            help="Of a GaSPK model, for changes of attribute A the change of B that makes up for them.",
        ),
    ] = None,
    pay_with: Annotated[
        str | None,
        typer.Option(
            "--pay-with", metavar="PRICE", show_default=False,
            help="Of a GaSPK model, how much of this attribute offsets a change of each other one.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Show the board in DIR, of the crowd, a person or a segment, or how sure it is which of some ITEMs is better.

    With ITEMs: of each two, the probability that the one is better, the difference of their scores, and how one more
    answer will come out.

    Example: predilect show results gpt-4 claude --scale elo:1000
    """
    with session(ctx.obj) as talk:
        given = {"--accept": accept, "--indifference": indifference, "--pay-with": pay_with, "ITEM": items,
                 "--segment": segment}  # fmt: skip
        asked = [name for name, value in given.items() if value]
        if len(asked) > 1:
            raise DataError(f"{' and '.join(asked)} are different questions. Ask one at a time")
        if user is not None and segment is not None:
            raise DataError("--user and --segment are different boards. Ask for one at a time")
        from predilect.cli.folder import Results
        from predilect.decisions.scales import scale_of

        fitted = Results.of(folder).knowing(user)
        unit = scale_of(scale, fitted._likelihood.name)
        if accept or indifference is not None or pay_with is not None:
            _trade_offs(talk, fitted, str(folder), accept, indifference, pay_with, user)
        elif items:
            _versus(talk, fitted, items, user, unit)
        else:
            _board(talk, fitted, user, segment, unit, top, folder)


def _board(
    talk: Talk, fitted: Any, user: str | None, segment: str | None, unit: Any, top: int, folder: Path
) -> None:  # fmt: skip
    import polars as pl

    from predilect.cli.fitting import say_board, say_verdict
    from predilect.show.report.sections import board_in_short
    from predilect.show.report.text import markdown

    verdict = getattr(fitted, "verdict_", None)
    if segment is None:
        board, title = pl.DataFrame(fitted.rank(user, scale=unit)), "" if user is None else f"The board of {user}"
    else:
        board, title = _of_segment(fitted, segment, unit)
    if talk.kind == "table":
        say_board(talk, board, unit, top, title, folder)
        _of_people_alike(talk, fitted, user)
    say_verdict(talk, fitted, unit, verdict)
    talk.detail(unit.meaning)
    for line in fitted.describe():
        talk.detail(line)
    if talk.kind != "table":
        document = {
            "model": fitted.report_["model"], "user": user, "segment": segment, "scale": unit.to_dict(),
            "board": board.to_dicts(),
        }  # fmt: skip
        shown = markdown(board_in_short(board, unit, top or len(board), None if user or segment else verdict))
        talk.result(board, "board", document, markdown=shown)


def _of_segment(fitted: Any, segment: str, unit: Any) -> tuple[pl.DataFrame, str]:
    """Board of a segment, and its title; DataError if the model knows no such segment."""
    from predilect._base.text import amount, one_line
    from predilect.show.report.leaderboard import SEGMENT_COLUMNS, shared_segments

    if not fitted._has_segments:
        raise DataError("the model knows no segments. Rank again with --segment COLUMN")
    known = shared_segments(fitted, unit)
    column, equals, value = segment.partition("=")
    if not equals or (column, value) not in known:
        there = [f"{name}={one}" for name, one in known]
        raise DataError(
            f'--segment is one of {", ".join(map(one_line, there))}; got "{segment}".{did_you_mean(segment, there)}'
        )
    board = known[column, value].board
    answers = amount(float(board["n"].sum()) / 2.0)
    title = f"{one_line(value)}: {board['people'][0]} people, {answers} answers"
    return board.drop(SEGMENT_COLUMNS), title


def _versus(talk: Talk, fitted: Any, items: list[str], user: str | None, unit: Any) -> None:
    import polars as pl
    from rich.text import Text

    from predilect._base.text import one_line
    from predilect.show.report.tables import sentence_of_pair

    if len(items) < 2 or len(set(items)) < len(items):
        raise DataError("give two or more different items, such as: predilect show DIR tea milk")
    if len(items) > _MOST_ITEMS:
        raise DataError(f"give at most {_MOST_ITEMS} items; predilect show DIR --format csv has all scores")
    table = pl.DataFrame(fitted.versus(list(combinations(items, 2)), user=user, scale=unit))
    lines = [Text(one_line(sentence_of_pair(row, unit.of_differences))) for row in table.iter_rows(named=True)]
    if talk.kind == "table":
        for line in lines:
            talk.show(line)
        _of_people_alike(talk, fitted, user)
        return
    talk.result(table, "versus", {
        "model": fitted.report_["model"], "user": user, "scale": unit.to_dict(), "versus": table.to_dicts(),
    })  # fmt: skip


def _of_people_alike(talk: Talk, fitted: Any, user: str | None) -> None:
    """Say beside what is of one person where people hardly differ."""
    for line in getattr(fitted, "_alike", []) if user is not None else []:
        talk.say(line)


def _trade_offs(
    talk: Talk, fitted: Any, folder: str, accept: list[str] | None, indifference: str | None, pay_with: str | None,
    user: str | None,
) -> None:  # fmt: skip
    """What people accept, where they are indifferent, what they would pay: of a GaSPK model."""
    if not hasattr(fitted, "indifference"):
        raise DataError(
            f"{folder} holds a model that knows no trade-offs. Fit one with predilect rank FILE --items FILE --model "
            "gaspk -o DIR"
        )
    if accept:
        question, table = "accept", fitted.accept(_rows(accept, fitted), user)
    elif indifference is not None:
        names = items_in(indifference, "--indifference")
        if len(names) != 2:
            raise DataError(f"--indifference takes two attributes, as time,price; got {len(names)}")
        question, table = "indifference", fitted.indifference(*names, None, user)
    else:
        question, table = "pay-with", fitted.willingness(pay_with, None, None, user)
    talk.result(table, "trade-offs", {
        "model": fitted.report_["model"], "user": user, "question": question, "rows": table.to_dicts(),
    })  # fmt: skip


def _rows(texts: list[str], fitted: Any) -> pl.DataFrame:
    """Trade-offs, a row each; what one does not name stays the same."""
    import polars as pl

    rows = [_changes(text, fitted) for text in texts]
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: [row.get(name, 0.0) for row in rows] for name in names})


def _changes(text: str, fitted: Any) -> dict[str, float]:
    """Attributes and amounts of "price=5,fuel=gas=1"; a category by itself is one of it."""
    found: dict[str, float] = {}
    categories = [*fitted.trade_offs_.mirrors, *(d.name for d in fitted.trade_offs_.dimensions if d.kind == "category")]
    for part in items_in(text, "--accept"):
        whole = f"{part}=1" if part in categories else part
        name, equals, amount = (piece.strip() for piece in whole.rpartition("="))
        if not name or not equals:
            raise DataError(f'--accept takes attributes and how much they change, as price=5; got "{part}"')
        if name in found:
            raise DataError(f'--accept names "{name}" twice')
        try:
            (found[name],) = numbers_in(amount, "--accept")
        except DataError as error:
            raise DataError(f"{error}.{did_you_mean(part, categories)}") from None
    return found
