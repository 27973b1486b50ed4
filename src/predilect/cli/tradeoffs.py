"""``predilect trade-offs``: what people accept, where they are indifferent, what they would pay, who is alike."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect._text import did_you_mean
from predilect.cli.options import JsonFlag, ModelFolder, QuietFlag, TableFormat, TableFormatOption, items_in
from predilect.cli.session import session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl

QUESTIONS = ("--accept", "--indifference", "--pay-with", "--segments")


def trade_offs(
    model: ModelFolder,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="CHANGES", show_default=False,
            help='How likely people accept changes: "price=5,fuel=gas" is 5 more to pay, for gas: short for '
            "fuel=gas=1. Again: a new row.",
        ),
    ] = None,
    indifference: Annotated[
        str | None,
        typer.Option(
            "--indifference", metavar="A,B", show_default=False,
            help="For changes of attribute A the change of B that makes up for them.",
        ),
    ] = None,
    pay_with: Annotated[
        str | None,
        typer.Option(
            "--pay-with", metavar="PRICE", show_default=False,
            help="How much of this attribute offsets a change of each other one.",
        ),
    ] = None,
    segments: Annotated[
        bool, typer.Option("--segments", help="People's weights on the characteristics that they share.")
    ] = False,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user", metavar="ID", show_default="people together",
            help='Whose; again for more people, or "all": a row each.',
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="NUMBERS", show_default="nine over their range",
            help="For --indifference, changes of A with commas between them: --at=-5,0,5.",
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option("--other", metavar="CHANGES", show_default=False, help="For --indifference, what else changes."),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option("--for", metavar="A", show_default="each other one", help="For --pay-with, what is paid for."),
    ] = None,
    change: Annotated[
        float | None,
        typer.Option(
            "--change", metavar="N", show_default="1, or a round number in its range",
            help="For --pay-with, how much of that.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default="standard output", help="A .csv file."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    format: TableFormatOption = TableFormat.csv,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:  # fmt: skip
    """Say what people accept, where they are indifferent or what they would pay, by the MODEL that predilect rank
    --model gaspk wrote.

    Give one of --accept, --indifference, --pay-with and --segments. Attributes are in their own units; a category is
    "fuel=gas", and for --indifference and --for also "fuel=gas instead of fuel=oil". Prints a table as CSV with 95 %
    intervals: inf where the answers do not show that any amount would do.

    Example: predilect trade-offs results --pay-with price --user ann
    """
    with session(quiet, as_json=True) as talk:  # standard output is for the table
        asked = [
            name for name, given in zip(QUESTIONS, (accept, indifference, pay_with, segments), strict=True) if given
        ]
        if len(asked) != 1:
            raise DataError(f"give one of {', '.join(QUESTIONS)}; got {' and '.join(asked) or 'none'}")
        _refuse_idle(asked[0], {
            "--user": (user, QUESTIONS[:3]), "--at": (at, QUESTIONS[1:2]), "--other": (other, QUESTIONS[1:2]),
            "--for": (attribute, QUESTIONS[2:3]), "--change": (change, QUESTIONS[2:3]),
        })  # fmt: skip
        from predilect._json import plain
        from predilect.models.registry import load_model
        from predilect.report.output import OutputFile
        from predilect.report.tables import write_csv

        target = None if out is None else OutputFile(out, force)
        fitted = load_model(model)
        if not hasattr(fitted, "indifference"):
            raise DataError(
                f"{model} holds a model that knows no trade-offs. Fit one with predilect rank VOTES --items FILE "
                "--model gaspk --out DIR"
            )
        fitted.backend_ = "polars"
        who: Any = user[0] if user and len(user) == 1 else user or None
        if accept:
            table = fitted.accept(_rows(accept, fitted), who)
        elif indifference is not None:
            table = _curve(fitted, indifference, at, other, who)
        elif pay_with is not None:
            table = fitted.willingness(pay_with, attribute, change, who)
        else:
            table = fitted.segments()
        if target is not None:
            target.write(lambda path: write_csv(table, path))
            talk.written = str(out)
            talk.say(f"Written to {out}: {len(table)} rows.")
        if json or format is TableFormat.json:
            talk.document({
                "schema": "predilect/trade-offs", "version": 1, "model": fitted.report_["model"],
                "question": asked[0].lstrip("-"), "warnings": talk.warned, "rows": plain(table.to_dicts()),
            })  # fmt: skip
        elif target is None:
            talk.table(table, format)


def _refuse_idle(asked: str, given: dict[str, tuple[Any, tuple[str, ...]]]) -> None:
    """DataError for an option that the question has no use for."""
    for name, (value, questions) in given.items():
        if value is not None and asked not in questions:
            raise DataError(f"{name} is for {' and '.join(questions)}, not for {asked}. Leave it out")


def _number(text: str, flag: str, near: str = "") -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f'{flag} takes numbers; got "{text}".{near}')
    return number


def _changes(text: str, flag: str, fitted: Any) -> dict[str, float]:
    """Attributes and amounts of "price=5,fuel=gas=1"; a category by itself is one of it."""
    found: dict[str, float] = {}
    categories = [*fitted.trade_offs_.mirrors, *(d.name for d in fitted.trade_offs_.dimensions if d.kind == "category")]
    for part in items_in(text, flag):
        whole = f"{part}=1" if part in categories else part
        name, equals, amount = (piece.strip() for piece in whole.rpartition("="))
        if not name or not equals:
            raise DataError(f'{flag} takes attributes and how much they change, as price=5; got "{part}"')
        if name in found:
            raise DataError(f'{flag} names "{name}" twice')
        found[name] = _number(amount, flag, did_you_mean(part, categories))
    return found


def _rows(texts: list[str], fitted: Any) -> pl.DataFrame:
    """Trade-offs, a row each; what one does not name stays the same."""
    import polars as pl

    rows = [_changes(text, "--accept", fitted) for text in texts]
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: [row.get(name, 0.0) for row in rows] for name in names})


def _curve(fitted: Any, pair: str, at: str | None, other: str | None, who: Any) -> pl.DataFrame:
    names = items_in(pair, "--indifference")
    if len(names) != 2:
        raise DataError(f"--indifference takes two attributes, as time,price; got {len(names)}")
    values = None if at is None else [_number(part, "--at") for part in items_in(at, "--at")]
    held = None if other is None else _changes(other, "--other", fitted)
    found: pl.DataFrame = fitted.indifference(*names, values, who, other=held)
    return found
