"""Options that several commands share, each defined once, and which of them help shows at first."""

from __future__ import annotations

import csv
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from predilect._text import is_whole
from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.cli.session import Talk

READING = "How the file is read"
FEATURES = "More about items and people"
MODEL, OUTPUT = "Model", "Output"
GASPK = "For --model gaspk"
# What --help leaves to --help-all, with all that is for one model alone.
RARE = frozenset({
    "item_map", "item_map_column", "unpack_limit", "pooled", "seed", "jobs", "strict", "users_as", "name_people",
})  # fmt: skip

Votes = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        show_default=False,
        help="File of answers, one a row: .csv, .tsv, .json, .jsonl (each also .gz or in a .zip), .parquet, .xlsx or "
        ".sqlite; - for standard input.",
    ),
]
ModelFolder = Annotated[
    Path,
    typer.Argument(metavar="MODEL", show_default=False, help="Folder that predilect rank wrote, or its model/."),
]
ItemsFile = Annotated[
    Path | None,
    typer.Option(
        "--items",
        metavar="FILE",
        rich_help_panel=FEATURES,
        help="Features of items, one row an item, ids in the column item.",
    ),
]
PeopleFile = Annotated[
    Path | None,
    typer.Option(
        "--people",
        metavar="FILE",
        rich_help_panel=FEATURES,
        help="Features of people, one row a person.",
    ),
]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, rich_help_panel=MODEL, help="The same seed gives the same result.")
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        rich_help_panel=MODEL,
        show_default="all cores",
        help="Threads; the result is the same for any number.",
    ),
]
StrictFlag = Annotated[
    bool, typer.Option("--strict", rich_help_panel=MODEL, help="Fail (exit code 3) if the fit does not converge.")
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        "-c",
        metavar="ROLE=COLUMN",
        rich_help_panel=READING,
        show_default="by their names",
        help="Which column is which, as often as needed: who, left, right, answer, won, lost, task, alternatives, "
        "profile, weights, context, covariates; who= for none. docs/input.md explains every one.",
    ),
]
UNPACK_LIMIT = 2.5  # as of the readers, which take long to import
UnpackLimit = Annotated[
    float,
    typer.Option(
        "--unpack-limit",
        metavar="GB",
        min=0.001,
        help="Memory that a packed file may unpack to; a small one can be made to fill it.",
    ),
]
TableFormat = StrEnum("TableFormat", ["csv", "md", "json"])  # of a table on standard output
TableFormatOption = Annotated[
    TableFormat, typer.Option("--format", help="Of what is printed; json is a document with more about it.")
]
JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output; messages go to standard error.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """Options of reading a file of answers; every field is an option of each command that reads one.

    What can be said with ``column`` and ``read`` is in :mod:`predilect.data.read.options`.
    """

    column: ColumnOption = None
    read: Annotated[
        list[str] | None,
        typer.Option(
            "--read",
            metavar="KEY=VALUE",
            rich_help_panel=READING,
            show_default="as the file tells",
            help="What values mean, as often as needed: kind, answer-is, tie, left-word, right-word, positive, best, "
            "grades, both-bad, side, task, constants, none, drop, table.",
        ),
    ] = None
    design: Annotated[
        Path | None,
        typer.Option(
            "--design",
            metavar="FILE",
            rich_help_panel=READING,
            help="Table of what was shown, where answers name its questions.",
        ),
    ] = None
    item_map: Annotated[
        Path | None,
        typer.Option(
            "--item-map",
            metavar="FILE",
            rich_help_panel=FEATURES,
            help="Table that says what to rank in place of each item, such as the model that wrote a text; "
            "ids in the column item.",
        ),
    ] = None
    item_map_column: Annotated[
        str | None,
        typer.Option(
            "--item-map-column", metavar="NAME", rich_help_panel=FEATURES, help="Column of the map to rank by."
        ),
    ] = None
    unpack_limit: UnpackLimit = UNPACK_LIMIT

    def to_dict(self) -> dict[str, Any]:
        """As plain values, file names without their folders, for the record of a run."""
        return {
            field.name: value.name if isinstance(value := getattr(self, field.name), Path) else value
            for field in fields(self)
        }


WeightsName = StrEnum("WeightsName", ["heuristic", "exact", "expected"])  # how people's weights are found


@dataclass(frozen=True)
class GaSPKOptions:
    """Options of ``--model gaspk``."""

    components: Annotated[
        str | None,
        typer.Option(
            "--components",
            metavar="N",
            rich_help_panel=GASPK,
            show_default="10",
            help="How many functions people are mixtures of; auto: as many as held-out answers gain by.",
        ),
    ] = None
    weights: Annotated[
        WeightsName | None,
        typer.Option(
            "--weights",
            rich_help_panel=GASPK,
            show_default="exact",
            help="How people's weights on them are found: exact, each person's most probable ones; expected, which "
            "knows how uncertain the functions are; heuristic, which nearly sorts people into groups.",
        ),
    ] = None
    attributes: Annotated[
        str | None,
        typer.Option(
            "--attributes",
            metavar="A,B",
            rich_help_panel=GASPK,
            show_default="all",
            help="Columns of the items file to use, with commas between them.",
        ),
    ] = None
    levels: Annotated[
        int | None,
        typer.Option(
            "--levels",
            metavar="N",
            min=3,
            rich_help_panel=GASPK,
            show_default="as they are",
            help="Bring each attribute's differences to N levels, an odd number, where there are very many of them.",
        ),
    ] = None

    def to_dict(self) -> dict[str, Any]:
        """Options that were given, as plain values."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}

    def settings(self, is_asked_for: bool) -> dict[str, Any]:
        """Arguments of ``GaSPK``; DataError if one is no number, or given although the model is another."""
        given = self.to_dict()
        if given and not is_asked_for:
            raise DataError(f"--{next(iter(given))} is for --model gaspk. Say that too, or leave it out")
        settings: dict[str, Any] = {}
        if self.components is not None:
            settings["n_components"] = _number_or_auto(self.components)
        if self.weights is not None:
            settings["gamma"] = self.weights.value
        if self.attributes is not None:
            settings["attributes"] = [name.strip() for name in self.attributes.split(",") if name.strip()]
        if self.levels is not None:
            settings["levels"] = self.levels
        return settings


def items_in(text: str, flag: str) -> list[str]:
    """Names of items with commas between them, as a line of a CSV; DataError if one is empty."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(f"{flag} takes names with commas between them: {error}") from None
    names = [name.strip() for row in rows for name in row]
    if not names or not all(names):
        raise DataError(f"{flag} takes names with commas between them, and one of the names is empty")
    return names


def _number_or_auto(text: str) -> int | str:
    if text == "auto":
        return text
    if not is_whole(text) or int(text) < 1:
        raise DataError(f'--components takes a number from 1, or auto, not "{text}"')
    return int(text)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Command for Typer, with each dataclass parameter replaced by one option a field."""
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    bundles = {name: hints[name] for name in given if is_dataclass(hints[name])}
    plain = [p.replace(annotation=hints[p.name]) for p in given.values() if p.name not in bundles]
    if "help_all" not in given:
        plain.append(inspect.Parameter("help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll))
    for bundle in bundles.values():
        field_hints = get_type_hints(bundle, include_extras=True)
        plain += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=field_hints[field.name],
            )
            for field in fields(bundle)
        ]

    @functools.wraps(command)
    def call(**values: Any) -> None:
        del values["help_all"]
        for name, bundle in bundles.items():
            values[name] = bundle(**{field.name: values.pop(field.name) for field in fields(bundle)})
        command(**values)

    # Keyword-only parameters come last in a signature; Typer calls by keyword anyway.
    plain = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in plain]
    signed: Any = call
    signed.__signature__ = inspect.Signature(plain)
    signed.__annotations__ = {p.name: p.annotation for p in plain}
    del signed.__wrapped__
    return call


class Brief(TyperCommand):
    """A command whose ``--help`` shows what is often asked for, and ``--help-all`` everything."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without rare options unless all were asked for."""
        rare = [one for one in self.params if one.name in RARE or getattr(one, "rich_help_panel", None) == GASPK]
        rare = [] if ctx.params.get("help_all") else rare
        shown: list[Any] = [(one, getattr(one, "hidden", False)) for one in rare]
        epilog = self.epilog
        if rare:
            self.epilog = f"{len(rare)} more options, on how answers are read and on models: --help-all"
        for one in rare:
            one.hidden = True  # type: ignore[attr-defined]
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog = epilog
            for one, before in shown:
                one.hidden = before


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.params["help_all"] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show all options, and exit.")
]


def with_files(reading: ReadingOptions, talk: Talk) -> ReadingOptions:
    """The same options once it is known that the map of items is there; raises DataError."""
    return replace(reading, item_map=talk.file(reading.item_map), design=talk.file(reading.design))
