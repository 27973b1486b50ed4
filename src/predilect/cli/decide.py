"""``predilect decide``: act for a person, ask them, or leave the choice to them."""

from __future__ import annotations

from typing import Annotated

import typer

from predilect.cli.options import JsonFlag, ModelFolder, QuietFlag, TableFormat, TableFormatOption, items_in
from predilect.cli.session import session


def decide(
    model: ModelFolder,
    options: Annotated[
        str,
        typer.Option(
            "--options",
            metavar="ITEMS",
            show_default=False,
            help='Items to choose from, with commas between them; in double quotes where a name has one: a,"b, c".',
        ),
    ],
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="ID", show_default="somebody without answers", help="Whose choice it is."),
    ] = None,
    cost_wrong: Annotated[
        float,
        typer.Option("--cost-wrong", metavar="C", help="Cost of taking what the person would not have chosen."),
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
    format: TableFormatOption = TableFormat.csv,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Decide what costs least: act for a person, ask a question, or leave the choice to them, by the MODEL that
    predilect rank wrote.

    Prints option, probability (that the person would choose it) and decision, likeliest option first, as CSV: "act"
    beside what to take, "ask" beside what to ask about, "defer" beside the default, or beside all options. The reason
    is said on standard error.

    Example: predilect decide results --user ann --options tea,milk,juice --cost-wrong 10 --cost-question 1
    """
    with session(quiet, as_json=True) as talk:  # standard output is for the decision
        import polars as pl

        from predilect.models.registry import load_model

        fitted = load_model(model)
        found = fitted.decide(
            user, items_in(options, "--options"), cost_wrong=cost_wrong, cost_question=cost_question,
            cost_defer=cost_defer, default=default,
        )  # fmt: skip
        if json or format is TableFormat.json:
            talk.document({
                "schema": "predilect/decision", "version": 1, "model": fitted.report_["model"], "user": user,
                "warnings": talk.warned, **found.to_dict(),
            })  # fmt: skip
            return
        concerned = found.question or ((found.option,) if found.option is not None else found.options)
        beside = [found.action if option in concerned else None for option in found.options]
        table = pl.DataFrame({"option": found.options, "probability": found.probabilities, "decision": beside})
        talk.table(table, format)
        talk.say(found.reason)
