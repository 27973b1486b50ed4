"""The entry point of the command ``predilect``, with all that it does."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from predilect.cli.ask import ask
from predilect.cli.check import check
from predilect.cli.compress import compress
from predilect.cli.decide import decide
from predilect.cli.options import Brief
from predilect.cli.predict import predict
from predilect.cli.rank import rank
from predilect.cli.session import BAD_INPUT, Talk
from predilect.cli.simulate import simulate
from predilect.cli.tradeoffs import trade_offs
from predilect.cli.utilities import utilities
from predilect.models.registry import COMMANDS


class _Commands(TyperGroup):
    """The commands, which take text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse bytes that are no text, which neither a result in JSON nor polars can hold, and --x beside --no-x."""
        for argument in args:
            try:
                argument.encode("utf-8")
            except UnicodeEncodeError:
                _refuse(f'"{argument}" is not UTF-8 text. Rename the file, or write the option in UTF-8.')
        # --local of --whole
        params = [one for command in self.commands.values() for one in command.params]
        opposite = {a: b for one in params for a, b in zip(one.opts, one.secondary_opts, strict=False)}
        flags = [_with_hyphens(argument.partition("=")[0]) for argument in args if argument.startswith("--")]
        for flag in flags:
            other = opposite.get(flag, f"--no-{flag[2:]}")
            if other in flags:
                _refuse(f"{flag} and {other} contradict each other. Give one of them.")
        return super().parse_args(ctx, args)


def _with_hyphens(word: str) -> str:
    """best-worst of best_worst, --no-side of --no_side."""
    return word.replace("_", "-")


def _refuse(text: str) -> NoReturn:
    Talk().fail(text)
    raise typer.Exit(BAD_INPUT)


app = typer.Typer(
    name="predilect",
    cls=_Commands,
    help=(
        "Answers to “which of these two?” become rankings, for the crowd and for every person, with honest uncertainty."
    ),
    epilog=(
        "Start with: predilect rank answers.csv --out results. "
        "Exit codes: 0 done; 1 the output could not be written; 2 the input or an option cannot be used; "
        "3 did not converge, with --strict; 130 interrupted; 143 terminated."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": _with_hyphens},
)
MODELS = "; ".join(f"{name}: {entry.about}" for name, entry in COMMANDS.items())


def _add(name: str, command: Callable[..., None], cls: type[TyperCommand] = TyperCommand, epilog: str = "") -> None:
    """Register a command; the paragraphs of its help wrap as wide as the terminal is."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    told = "\n\n".join(" ".join(one.split()) for one in paragraphs)
    app.command(name, cls=cls, help=told, epilog=epilog or None)(command)


_add("rank", rank, Brief, f"Models: {MODELS}.")
_add("utilities", utilities, Brief)
_add("simulate", simulate)
_add("predict", predict)
_add("ask", ask)
_add("decide", decide)
_add("trade-offs", trade_offs)
_add("compress", compress)
_add("check", check, Brief)


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
    """Run the command line."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell (>&-): nobody listens
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Files and pipes get UTF-8 everywhere; a terminal shows what it cannot write as an escape.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    app()
