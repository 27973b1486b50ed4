"""Options that several commands share, each defined once, and the answers that they read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import polars as pl
import typer

from predilect.data import Comparisons, ItemFeatures, PersonFeatures, read_comparisons, read_frame, read_item_map
from predilect.data.frames import as_text
from predilect.data.read.assemble import ReadOptions
from predilect.data.read.columns import TASK, guess_columns, guess_one
from predilect.data.read.readers import read_table
from predilect.errors import DataError

COLUMNS = "Which column is which (guessed from common names)"
ROWS = "What the answers mean, and rows that cannot be used"
FEATURES = "More about items and people"
GASPK = "For --model gaspk"

Votes = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        show_default=False,
        help="File of answers, one a row: .csv, .tsv, .jsonl (each also .gz) or .parquet.",
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
        help="Features of items, one row an item, ids in the column item; items that nobody compared are ranked too.",
    ),
]
PeopleFile = Annotated[
    Path | None,
    typer.Option(
        "--people",
        metavar="FILE",
        rich_help_panel=FEATURES,
        help="Features of people, one row a person; used if held-out answers gain by it.",
    ),
]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
UNPACK_LIMIT = 1.0  # as of the readers, which take long to import
UnpackLimit = Annotated[
    float,
    typer.Option(
        "--unpack-limit",
        metavar="GB",
        min=0.001,
        help="What a .gz or .parquet file may unpack to; a small one can be made to fill the memory.",
    ),
]
JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output; messages go to standard error.")
]


class WinnerReading(StrEnum):
    """Meaning of the winner column."""

    item = "item"
    side = "side"
    sign = "sign"


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of answers is read; every field is an option of each command that reads one."""

    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", rich_help_panel=COLUMNS, help="Who answered.")
    ] = None
    no_user: Annotated[
        bool, typer.Option("--no-user", rich_help_panel=COLUMNS, help="Tell nobody apart, even if a column could.")
    ] = False
    left: Annotated[
        str | None, typer.Option("--left", metavar="NAME", rich_help_panel=COLUMNS, help="The one item shown.")
    ] = None
    right: Annotated[
        str | None, typer.Option("--right", metavar="NAME", rich_help_panel=COLUMNS, help="The other item shown.")
    ] = None
    winner: Annotated[
        str | None,
        typer.Option("--winner", metavar="NAME", rich_help_panel=COLUMNS, help="The answer: an item, a side or a tie."),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option("--weight", metavar="NAME", rich_help_panel=COLUMNS, help="How many answers a row stands for."),
    ] = None
    no_weight: Annotated[
        bool,
        typer.Option("--no-weight", rich_help_panel=COLUMNS, help="Each row is one answer."),
    ] = False
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="NAME",
            rich_help_panel=COLUMNS,
            help="Which of a person's answers were given in one go, such as one choice from several items.",
        ),
    ] = None
    no_task: Annotated[
        bool,
        typer.Option("--no-task", rich_help_panel=COLUMNS, help="Each answer was given by itself."),
    ] = False
    winner_is: Annotated[
        WinnerReading | None,
        typer.Option(
            "--winner-is",
            rich_help_panel=ROWS,
            help="What the winner column holds, where it could be read in two ways: item ids, words or numbers for a "
            "side (left, a, model_a, 1 ...), or signs (1 and -1).",
        ),
    ] = None
    tie: Annotated[
        list[str] | None,
        typer.Option(
            "--tie",
            metavar="WORD",
            rich_help_panel=ROWS,
            help="A further word that means a tie, besides tie, draw, equal, both_bad and the like; may be repeated.",
        ),
    ] = None
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", rich_help_panel=ROWS, help="Leave out rows with an empty id.")
    ] = False
    drop_self: Annotated[
        bool, typer.Option("--drop-self", rich_help_panel=ROWS, help="Leave out rows of an item against itself.")
    ] = False
    drop_unknown: Annotated[
        bool,
        typer.Option("--drop-unknown", rich_help_panel=ROWS, help="Leave out rows whose winner is no item nor tie."),
    ] = False
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


class WeightsName(StrEnum):
    """Inference of people's weights on characteristics."""

    heuristic = "heuristic"
    exact = "exact"
    expected = "expected"


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
            show_default="heuristic",
            help="How people's weights on them are found: heuristic is fast and nearly sorts people into groups; exact "
            "and expected mix, and predict better where people answer much.",
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


def _number_or_auto(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise DataError(f'--components takes a number from 1, or auto, not "{text}"')
    return int(text)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Command for Typer, with each dataclass parameter replaced by one option a field."""
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    bundles = {name: hints[name] for name in given if is_dataclass(hints[name])}
    plain = [p.replace(annotation=hints[p.name]) for p in given.values() if p.name not in bundles]
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


MOST_SEGMENTS = 200
_READINGS: dict[str, Literal["item", "side", "sign"]] = {"item ids": "item", "side words": "side", "signs": "sign"}


@dataclass(frozen=True)
class Reading:
    """All answers, those of each segment by its value (or why it has none), and the number of rows without segment."""

    comparisons: Comparisons
    segments: dict[str, Comparisons | str] = field(default_factory=dict)
    rows_without_segment: int = 0


def read_votes(path: Path, options: ReadingOptions, by: str | None = None) -> Reading:
    """Answers of a file, cut into segments by the column ``by``; DataError if it cannot be read, or has too many."""
    settings = _settings(options)
    if by is None:
        return Reading(read_comparisons(path, unpack_limit=options.unpack_limit, **settings))
    if settings.get("task") is None and guess_one([by], TASK) is not None:
        settings["task"] = False  # what the rankings are told apart by is a kind of question, not one choice

    def wanted(names: list[str]) -> list[str]:
        if by not in names:
            listed = ", ".join(f'"{name}"' for name in names)
            raise DataError(f'there is no column "{by}" (given with --by); the columns are {listed}')
        roles = ("user", "left", "right", "winner", "weight", "task")
        given: dict[str, Any] = {role: value for role, value in settings.items() if role in roles}
        return [*guess_columns(names, **given).values(), by]

    names, frame = read_table(path, wanted, unpack_limit=options.unpack_limit)
    whole = Comparisons.from_frame(frame, **settings)
    used = {*whole.intake.columns.values(), by}
    unused = tuple(name for name in names if name not in used)
    whole = replace(whole, intake=replace(whole.intake, ignored_columns=unused))
    # A segment alone might fit two readings of the winner where the whole fits one.
    if settings.get("winner_is") is None:
        settings["winner_is"] = _READINGS.get(whole.intake.winner_reading)
    settings["task"] = whole.intake.columns.get("task", None if whole.intake.choices_found else False)
    value = _segment_values(frame, by)
    segments: dict[str, Comparisons | str] = {}
    for segment in value.drop_nulls().unique().sort().to_list():
        try:
            segments[segment] = Comparisons.from_frame(frame.filter((value == segment).fill_null(False)), **settings)
        except DataError as error:
            segments[segment] = str(error)
    return Reading(whole, segments, value.null_count())


def read_features(path: Path | None, unpack_limit: float) -> ItemFeatures | None:
    """Features of items from a file with one row an item."""
    return None if path is None else ItemFeatures.from_frame(read_frame(path, unpack_limit=unpack_limit))


def read_people(path: Path | None, unpack_limit: float) -> PersonFeatures | None:
    """Features of people from a file with one row a person."""
    return None if path is None else PersonFeatures.from_frame(read_frame(path, unpack_limit=unpack_limit))


def _settings(options: ReadingOptions) -> ReadOptions:
    if options.no_user and options.user is not None:
        raise DataError("--user and --no-user contradict each other; give one of them")
    if options.no_weight and options.weight is not None:
        raise DataError("--weight and --no-weight contradict each other; give one of them")
    if options.no_task and options.task is not None:
        raise DataError("--task and --no-task contradict each other; give one of them")
    if options.item_map_column is not None and options.item_map is None:
        raise DataError("--item-map-column names a column of --item-map FILE, which was not given")
    settings: ReadOptions = {
        "user": False if options.no_user else options.user,
        "left": options.left,
        "right": options.right,
        "winner": options.winner,
        "weight": False if options.no_weight else options.weight,
        "task": False if options.no_task else options.task,
        "ties": options.tie or (),
        "winner_is": None if options.winner_is is None else options.winner_is.value,
        "drop_missing": options.drop_missing,
        "drop_self": options.drop_self,
        "drop_unknown": options.drop_unknown,
    }
    if options.item_map is not None:
        settings["item_map"] = read_item_map(
            options.item_map, value=options.item_map_column, unpack_limit=options.unpack_limit
        )
    return settings


def _segment_values(frame: pl.DataFrame, by: str) -> pl.Series:
    value = as_text(frame[by])
    n_segments = value.drop_nulls().n_unique()
    if n_segments == 0:
        raise DataError(f'column "{by}" (given with --by) holds no value at all')
    if n_segments > MOST_SEGMENTS:
        raise DataError(
            f'column "{by}" holds {n_segments} different values, and --by fits a model to each, for at most '
            f"{MOST_SEGMENTS}. Name a column with fewer; rankings of single people are in users.parquet without --by"
        )
    return value
