"""Options that several commands share, each defined once; how a file of answers is read."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predilect.errors import DataError

if TYPE_CHECKING:
    from predilect.cli.session import Talk

READING, MODEL, OUTPUT = "How the file is read", "Model", "Output"
FEATURES = "More about items and people"

Votes = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="File of answers, one a row: .csv, .tsv, .json, .jsonl (each also .gz or in a .zip), .parquet, .xlsx or "
        ".sqlite; - for standard input.",
    ),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", show_default=False, help="Folder that predilect rank wrote, or a saved model.")
]


def _column(help: str) -> Any:
    return typer.Option(
        "--column",
        "-c",
        metavar="ROLE=COLUMN",
        rich_help_panel=READING,
        show_default="by their names",
        help=help,
    )


ColumnOption = Annotated[
    list[str] | None,
    _column(
        "Which column is which, as often as needed: who, left, right, answer, won, lost, task, alternatives, "
        "profile, weights, context, time, covariates; who= for none. docs/reference/reading.md explains every one."
    ),
]
PairColumnOption = Annotated[list[str] | None, _column("Which column is which: who, left, right.")]
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        rich_help_panel=READING,
        show_default="as the file tells",
        help="What values mean, as often as needed: kind, answer-is, tie, left-word, right-word, positive, best, "
        "grades, both-bad, side, task, constants, none, drop, criterion, keep, table, unpack-limit, categorical, "
        "piecewise.",
    ),
]
DesignOption = Annotated[
    Path | None,
    typer.Option(
        "--design",
        metavar="FILE",
        rich_help_panel=READING,
        help="Table of what was shown, where answers name its questions.",
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FILE[:COLUMN]",
        rich_help_panel=READING,
        help="Table that says what to rank in place of each item, such as the model that wrote a text: ids in the "
        "column item, and the column to rank by.",
    ),
]
ItemsOption = Annotated[
    Path | None,
    typer.Option(
        "--items",
        metavar="FILE",
        rich_help_panel=FEATURES,
        help="Attributes of items, one row an item, ids in the column item.",
    ),
]
PeopleOption = Annotated[
    Path | None,
    typer.Option(
        "--people", metavar="FILE", rich_help_panel=FEATURES, help="Attributes and segments of people, one row each."
    ),
]
OutFile = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", show_default="standard output", help="File to write.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
ForceAll = Annotated[
    bool, typer.Option("--force", help="Replace what is there already, and print numbers that are not usable.")
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="ID", show_default="the crowd", help="Of one person instead.")
]
ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="NAME[:BASE[:ITEM]]",
        help="Of scores: probit (the noise of one answer is 1), logit, elo, 0-100 or share (per cent). BASE is the "
        "score of the mean of the items, or of ITEM: elo:1000 or elo:1000:gpt-4.",
    ),
]
OfName = StrEnum("OfName", ["population", "respondents"])  # whom an average is taken over
OfOption = Annotated[
    OfName,
    typer.Option(
        "--of",
        help="Whom averages and their intervals are about: the population, of which the people who answered are a "
        "sample, or these respondents alone.",
    ),
]


def of_whom(of: OfName, what: str) -> str:
    """A sentence that says whom averages and their intervals are about."""
    if of is OfName.population:
        return (
            f"{what} are of the population of which those who answered are a sample (--of respondents: of them alone)."
        )
    return f"{what} are of those who answered alone (--of population: of the population of which they are a sample)."


@dataclass(frozen=True)
class Said:
    """What was said of how a file is read: options as they were given, and files that are there."""

    column: list[str]
    read: list[str]
    design: Path | None
    item_map: Path | None
    map_column: str | None
    record: dict[str, Any]  # as plain values, file names without their folders

    @classmethod
    def of(
        cls, talk: Talk, column: list[str] | None, read: list[str] | None, design: Path | None, item_map: str | None
    ) -> Said:
        """The options of a command; DataError for a file that is not there."""
        path, by = (None, None) if item_map is None else _map_of(item_map)
        name = None if path is None else path.name if by is None else f"{path.name}:{by}"
        record = {"column": column, "read": read, "design": None if design is None else design.name, "map": name}
        return cls(column or [], read or [], talk.file(design), talk.file(path), by, record)


def _map_of(text: str) -> tuple[Path, str | None]:
    """File and column of "FILE:COLUMN"; a name that is a file is that."""
    name, colon, column = text.rpartition(":")
    return (Path(text), None) if not colon or not column or Path(text).exists() else (Path(name), column)


_BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")  # of a number that begins with it, which JSON has not


def model_said(text: str, known: list[str]) -> tuple[str, dict[str, Any]]:
    """Name and settings of "NAME,SETTING=VALUE,..."; DataError for a name that is none.

    Values are numbers, true, false, null, lists of these in brackets, or words.
    """
    from predilect._base.text import did_you_mean

    name, *parts = re.split(r",(?=\s*\w+=)", text)
    name = name.strip().replace("_", "-")
    if name not in known:
        raise DataError(f'--model is one of {", ".join(known)}; got "{name}".{did_you_mean(name, known)}')
    settings: dict[str, Any] = {}
    for part in parts:
        setting, _, value = part.strip().partition("=")
        try:
            settings[setting] = json.loads(_BARE_POINT.sub("0.", value))
        except ValueError:
            settings[setting] = float(value) if value.lstrip("+-") == "inf" else value
    return name, settings


def kept_of(settings: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments of ``compress``, taken out of the settings of a model; None without "keep".

    Settings of a criterion stand beside its name. What is neither's, or the model's too, stays with the model.
    """
    if "keep" not in settings:
        return None
    from dataclasses import fields

    from predilect.papers.compression.criteria import NAMED
    from predilect.papers.compression.model import CompressedModel

    own = CompressedModel().get_params().keys() - {"estimator", "random_state"}
    kept = {name: settings.pop(name) for name in own & settings.keys()}
    criterion = kept.get("criterion")
    if isinstance(criterion, str) and criterion in NAMED:
        beside = {field.name for field in fields(NAMED[criterion])} & settings.keys()
        kept["criterion"] = NAMED[criterion](**{name: settings.pop(name) for name in beside}) if beside else criterion
    return kept


def items_in(text: str, flag: str) -> list[str]:
    """Names with commas between them, as a line of a CSV; DataError if one is empty."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(f"{flag} takes names with commas between them: {error}") from None
    names = [name.strip() for row in rows for name in row]
    if not names or not all(names):
        raise DataError(f"{flag} takes names with commas between them, and one of the names is empty")
    return names


def numbers_in(text: str, flag: str) -> list[float]:
    """Finite numbers with commas between them; DataError for anything else."""
    import math

    try:
        numbers = [float(value) for value in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise DataError(f'{flag} takes numbers with commas between them; got "{text}"')
    return numbers
