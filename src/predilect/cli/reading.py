"""From the options of a command to answers, and to answers by segment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from predilect.cli.options import ReadingOptions
from predilect.data import Comparisons, ItemFeatures, PersonFeatures, read_comparisons, read_frame, read_item_map
from predilect.data.frames import as_text
from predilect.data.read.assemble import ReadOptions
from predilect.data.read.columns import TASK, guess_columns, guess_one
from predilect.data.read.readers import read_table
from predilect.errors import DataError

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
