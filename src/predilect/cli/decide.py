"""``predilect decide``: act for a person, ask them, or leave the choice to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.cli.options import Folder
from predilect.cli.session import session
from predilect.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def decide(
    ctx: typer.Context,
    folder: Folder,
    user: Annotated[
        str | None,
        typer.Argument(
            metavar="USER", show_default=False,
            help="Whose choice it is; any other name: somebody new. Left out with --everyone.",
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OPTION...", show_default=False,
            help="Items to choose from, two or more; by default those of --items.",
        ),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Decide for all people of the ranking, a row each.")
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE",
            help="Attributes of options that were not in the answers, one row an item, ids in the column item.",
        ),
    ] = None,
    cost_wrong: Annotated[
        str,
        typer.Option(
            "--cost-wrong", metavar="C|FILE",
            help="Cost of taking what the person would not have chosen; or a file with this by the item that is taken "
            "(columns item and cost), or by that and the one that is wanted (a column for each).",
        ),
    ] = "1",
    cost_question: Annotated[
        float,
        typer.Option(
            "--cost-question", metavar="Q", help="Cost of asking which of two options; of m options log2(m) times that."
        ),
    ] = 0.1,
    cost_defer: Annotated[
        float | None,
        typer.Option(
            "--cost-defer",
            metavar="D",
            show_default="as a question about all options",
            help="Cost of leaving the choice to the person.",
        ),
    ] = None,
    default: Annotated[
        str | None,
        typer.Option("--default", metavar="ITEM", help="The option that stands unless the person objects."),
    ] = None,
) -> None:  # fmt: skip
    """Decide what costs least: act for USER, ask a question, or leave the choice to them, by the model in DIR.

    Prints option, probability (that the person would choose it) and decision, likeliest option first, as CSV: "act"
    beside what to take, "ask" beside what to ask about, "defer" beside the default, or beside all options. The reason
    is said on standard error. With --everyone a row for each person: user, action, option, question, probability,
    expected_loss, cost, value.

    Example: predilect decide results ann tea milk juice --cost-wrong 10 --cost-question 1

    Example: predilect decide results --everyone --items tariffs.csv --cost-wrong 40 --cost-question 1
    """
    with session(ctx.obj, "csv") as talk:
        import polars as pl

        from predilect.cli.folder import Results
        from predilect.data.read.readers import read_table

        items = talk.file(items)
        results = Results.of(folder)
        results.refuse_unusable()
        fitted = results.knowing(user if not everyone else None)
        offered = None if items is None else _described(read_table(items)[1], "--items")
        named = [*([user] if user is not None and everyone else []), *(options or [])]
        if not named and offered is not None:
            named = offered["item"].to_list()
        if user is None and not everyone:
            raise DataError("say whose choice it is: predilect decide DIR USER OPTION..., or --everyone")
        given: dict[str, Any] = {
            "cost_wrong": _loss(cost_wrong), "cost_question": cost_question, "cost_defer": cost_defer,
            "default": default, "items": offered,
        }  # fmt: skip
        if everyone:
            table = pl.concat([one.decide_many(named, **given) for one in results.everybody()])
            counts = table["action"].value_counts(sort=True)
            talk.result(table, "decisions", {"model": fitted.report_["model"], "decisions": table.to_dicts()})
            actions = ", ".join(f"{action} for {n}" for action, n in counts.iter_rows())
            talk.say(f"{actions} of {len(table)} people; expected cost {table['cost'].sum():.4g} in all.")
            return
        found = fitted.decide(user, named, **given)
        concerned = found.question or ((found.option,) if found.option is not None else found.options)
        beside = [found.action if option in concerned else None for option in found.options]
        shown = pl.DataFrame({"option": found.options, "probability": found.probabilities, "decision": beside})
        talk.result(shown, "decision", {"model": fitted.report_["model"], "user": user, **found.to_dict()})
        talk.say(found.reason)


def _described(table: pl.DataFrame, flag: str) -> pl.DataFrame:
    """The table of an option, ids in the column item; DataError without such a column."""
    import polars as pl

    from predilect.data.frames import to_series
    from predilect.data.read.names import ITEM, guess_one
    from predilect.data.read.profiles import plain_values

    name = guess_one(table.columns, ITEM)
    if name is None:
        raise DataError(
            f"found no column item in the file of {flag}; the columns are {', '.join(table.columns) or '(none)'}"
        )
    columns = [plain_values(to_series(table[one], one)) for one in table.columns]
    return pl.DataFrame(columns).rename({name: "item"}).with_columns(pl.col("item").cast(pl.String))


def _loss(text: str) -> float | dict[str, Any]:
    """A number, or a loss by option from a file."""
    from predilect.data.read.readers import read_table

    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise DataError(f'--cost-wrong takes a number or a file; "{text}" is neither')
    table = _described(read_table(path)[1], "--cost-wrong")
    names = table["item"].to_list()
    others = [name for name in table.columns if name != "item"]
    if others == ["cost"]:
        return dict(zip(names, table["cost"].to_list(), strict=True))
    if set(others) != set(names):
        raise DataError(
            f"{path.name} needs columns item and cost, or item and one for each of {', '.join(names[:5])}; it has "
            f"{', '.join(table.columns)}"
        )
    return {name: {other: table[other][row] for other in others} for row, name in enumerate(names)}
