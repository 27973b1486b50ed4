"""``predilect decide``: act for a person, ask them, or leave the choice to them."""

from __future__ import annotations

from typing import Annotated

import typer

from predilect.cli.options import Folder
from predilect.cli.session import session


def decide(
    ctx: typer.Context,
    folder: Folder,
    user: Annotated[
        str,
        typer.Argument(metavar="USER", show_default=False, help="Whose choice it is; any other name: somebody new."),
    ],
    options: Annotated[
        list[str], typer.Argument(metavar="OPTION...", show_default=False, help="Items to choose from, two or more.")
    ],
    cost_wrong: Annotated[
        float, typer.Option("--cost-wrong", metavar="C", help="Cost of taking what the person would not have chosen.")
    ] = 1.0,
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
) -> None:
    """Decide what costs least: act for USER, ask a question, or leave the choice to them, by the model in DIR.

    Prints option, probability (that the person would choose it) and decision, likeliest option first, as CSV: "act"
    beside what to take, "ask" beside what to ask about, "defer" beside the default, or beside all options. The reason
    is said on standard error.

    Example: predilect decide results ann tea milk juice --cost-wrong 10 --cost-question 1
    """
    with session(ctx.obj, "csv") as talk:
        import polars as pl

        from predilect.cli.folder import Results

        fitted = Results.of(folder).model
        found = fitted.decide(
            user, options, cost_wrong=cost_wrong, cost_question=cost_question, cost_defer=cost_defer, default=default
        )
        concerned = found.question or ((found.option,) if found.option is not None else found.options)
        beside = [found.action if option in concerned else None for option in found.options]
        table = pl.DataFrame({"option": found.options, "probability": found.probabilities, "decision": beside})
        talk.result(table, "decision", {"model": fitted.report_["model"], "user": user, **found.to_dict()})
        talk.say(found.reason)
