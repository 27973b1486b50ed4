"""The entry point: ``predilect rank``, ``predict``, ``ask``, ``compress`` and ``check``."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from predilect.cli.ask import ask
from predilect.cli.check import check
from predilect.cli.compress import compress
from predilect.cli.predict import predict
from predilect.cli.rank import rank
from predilect.cli.session import INTERRUPTED

__all__ = ["app", "run"]

app = typer.Typer(
    name="predilect",
    help=(
        "Answers to “which of these two?” become rankings, for the crowd and for every person, with honest uncertainty."
    ),
    epilog=(
        "Start with: predilect rank answers.csv --out results. "
        "Exit codes: 0 done; 1 the output could not be written; 2 the input or an option cannot be used; "
        "3 did not converge, with --strict; 130 interrupted; 143 terminated."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("rank")(rank)
app.command("predict")(predict)
app.command("ask")(ask)
app.command("compress")(compress)
app.command("check")(check)


def _show_version(wanted: bool) -> None:
    if wanted:
        from predilect import __version__

        typer.echo(f"predilect {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself; a command is required."""


def run() -> None:
    """Run the command line; the console script ``predilect`` and ``python -m predilect`` call it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Files and pipes get UTF-8 everywhere; a terminal shows what it cannot write as an escape.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:  # before a command took over
        sys.exit(INTERRUPTED)
