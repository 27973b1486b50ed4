"""The entry point of the command ``predilect``, with all that it does."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from predilect.cli.ask import ask
from predilect.cli.check import check
from predilect.cli.compare import compare
from predilect.cli.decide import decide
from predilect.cli.open import open_
from predilect.cli.partition import partition
from predilect.cli.poll import app as poll
from predilect.cli.predict import predict
from predilect.cli.rank import rank
from predilect.cli.report import report
from predilect.cli.session import BAD_INPUT, Common, Talk
from predilect.cli.show import show
from predilect.cli.simulate import simulate
from predilect.cli.worth import worth
from predilect.models.registry import COMMANDS


class _Commands(TyperGroup):
    """The commands, which take text, and options of all of them wherever they stand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse bytes that are no text, which neither a result in JSON nor polars can hold; common options first."""
        for argument in args:
            try:
                argument.encode("utf-8")
            except UnicodeEncodeError:
                _refuse(f'"{argument}" is not UTF-8 text. Rename the file, or write the option in UTF-8.')
        common: list[Any] = [one for one in self.params if one.name in COMMON]
        takes_value = {flag: not one.is_flag for one in common for flag in one.opts}
        first: list[str] = []
        rest: list[str] = []
        words = iter(args)
        for word in words:
            if word == "--":
                rest += [word, *words]
                break
            name, equals, _ = word.partition("=")
            if _with_hyphens(name) not in takes_value:
                rest.append(word)
                continue
            first.append(word)
            if takes_value[_with_hyphens(name)] and not equals:
                first += [value for value in [next(words, None)] if value is not None]
        return super().parse_args(ctx, first + rest)


COMMON = frozenset(inspect.signature(Common).parameters)


def _with_hyphens(word: str) -> str:
    """best-worst of best_worst, --name-people of --name_people."""
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
        "Start with: predilect rank answers.csv -o results, then predilect show results. Exit codes: 0 done; 1 the "
        "output could not be written; 2 the input or an option cannot be used; 3 did not converge, with --strict; "
        "130 interrupted; 143 terminated."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": _with_hyphens},
)
MODELS = "".join(f"{name}: {entry.about}.\n\n" for name, entry in COMMANDS.items())  # a line each
_ALSO = "Every command also takes --format, --quiet, --explain, --jobs, --seed and --strict: see predilect --help."


def _add(command: Callable[..., None], epilog: str = "") -> None:
    """Register a command; the paragraphs of its help wrap as wide as the terminal is."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(one.split()) for one in paragraphs)
    app.command(command.__name__.rstrip("_"), help=text, epilog=f"{epilog}{_ALSO}")(command)


_add(check)
_add(rank, f"Models, by what they are for (docs/papers has a page on each that is of a paper):\n\n{MODELS}")
for _command in (open_, show, report, compare, predict, ask, decide, worth, simulate, partition):
    _add(_command)
app.add_typer(poll)

FormatName = StrEnum("FormatName", ["table", "csv", "md", "json"])  # of what is printed


def _show_version(wanted: bool) -> None:
    if wanted:
        from predilect._version import __version__

        typer.echo(f"predilect {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    ctx: typer.Context,
    format: Annotated[
        FormatName | None,
        typer.Option(
            "--format",
            show_default="table; csv for predict, ask and decide",
            help="Print a table for people, a table as csv or md, or a document as json; messages go to standard "
            "error then.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also say how answers were read, what was learned, and the verdict in full."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, show_default="all cores", help="Threads; the result is the same for any."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same result.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Fail (exit code 3) if a fit does not converge.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command, before or after its name; a command is required."""
    ctx.obj = Common(None if format is None else format.value, quiet, explain, jobs, seed, strict)


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
