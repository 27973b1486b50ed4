"""From the options of a command to answers, and to answers by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from predilect.cli.options import ReadingOptions
from predilect.cli.session import Talk
from predilect.data import (
    Comparisons,
    Finding,
    ItemFeatures,
    PersonFeatures,
    read_frame,
    read_item_map,
)
from predilect.data.frames import as_text
from predilect.data.intake import counted
from predilect.data.read.columns import no_column
from predilect.data.read.names import TASK, guess_one
from predilect.data.read.options import ReadOptions, WinnerIs, from_command, option
from predilect.data.read.profiles import LABEL
from predilect.data.read.readers import read_file, read_table
from predilect.data.read.recognise import used_columns
from predilect.errors import DataError
from predilect.models.reading import warn_of_items_without_features

MOST_SEGMENTS = 200
_READINGS: dict[str, WinnerIs] = {"item ids": "item", "side words": "side", "signs": "sign"}


@dataclass(frozen=True)
class Reading:
    """All answers, those of each segment by its value (or why it has none), and the number of rows without segment.

    ``people``: segments of people that stand in the columns of answers.
    """

    comparisons: Comparisons
    segments: dict[str, Comparisons | str] = field(default_factory=dict)
    rows_without_segment: int = 0
    people: PersonFeatures | None = None


def read_votes(
    path: Path, options: ReadingOptions, by: str | None = None, segments: Sequence[str] = ()
) -> Reading:  # fmt: skip
    """Answers of a file, cut by the column ``by``, or with the columns ``segments`` of people; raises DataError."""
    settings = _settings(options)
    more = list(segments) if by is None else [by]
    if not more:
        return Reading(read_file(path, settings, options.unpack_limit))
    if settings.get("task") is None and guess_one(more, TASK) is not None:
        settings["task"] = False  # what the rankings are told apart by is a kind of question, not one choice

    def wanted(names: list[str]) -> list[str]:
        for name in more:
            if name not in names:
                raise no_column(name, f"with {'--by' if by else '--segment'}", names)
        return [*used_columns(names, settings), *more]

    names, frame = read_table(path, wanted, table=settings.get("table"), unpack_limit=options.unpack_limit)
    whole = Comparisons.read_with(frame, settings)
    used = {*whole.intake.columns.values(), *more}
    unused = tuple(name for name in names if name not in used)
    whole = replace(whole, intake=replace(whole.intake, ignored_columns=unused))
    if by is None:
        user = whole.intake.columns.get("user")
        if user is None:
            raise DataError(
                f"--segment needs a column that says who answered. Name it ({option('user', 'NAME')}), or give each "
                "value a fit of its own (--by COLUMN)"
            )
        return Reading(whole, people=PersonFeatures.from_frame(frame, user, segments=more))
    # A segment alone might fit two readings of the winner where the whole fits one.
    if settings.get("winner_is") is None:
        settings["winner_is"] = _READINGS.get(whole.intake.winner_reading)
    described = whole.intake.attributes and not any(role.startswith("feature ") for role in whole.intake.columns)
    if described and settings.get("profile") is None:
        # What is the same in all of a segment still is a part of its items' ids.
        settings["profile"] = [name for name in whole.intake.attributes if name != LABEL]
    if not whole.intake.tasks_read:
        settings["task"] = whole.intake.columns.get("task", None if whole.intake.choices_found else False)
    if whole.grades:
        settings["grades"] = whole.grades
    # Few answers may look as if they had no sides, or had some, where all together tell.
    if settings.get("side") is None and whole.intake.no_sides and not whole.intake.tasks_read:
        settings["side"] = False
    value = _segment_values(frame, by)
    parts: dict[str, Comparisons | str] = {}
    for segment in value.drop_nulls().unique().sort().to_list():
        try:
            parts[segment] = Comparisons.read_with(frame.filter((value == segment).fill_null(False)), settings)
        except DataError as error:
            parts[segment] = str(error)
    return Reading(whole, parts, value.null_count())


def read_features(
    path: Path | None, answers: Comparisons, unpack_limit: float, *, categorical: Sequence[str] = (),
    piecewise: Mapping[str, Sequence[float]] | None = None,
) -> ItemFeatures | None:  # fmt: skip
    """Features of items from a file with one row an item, or else from answers that describe their alternatives."""
    frame = answers.item_table if path is None else read_frame(path, unpack_limit=unpack_limit)
    if frame is None:
        return None
    features = ItemFeatures.from_frame(
        frame, "item" if path is None else None, categorical=categorical, piecewise=piecewise
    )
    if path is not None:
        warn_of_items_without_features(answers, features)
    return features


def read_people(path: Path | None, unpack_limit: float, segments: Sequence[str] = ()) -> PersonFeatures | None:
    """Features of people from a file with one row a person, and the columns of it that are segments."""
    if path is None:
        return None
    frame = read_frame(path, unpack_limit=unpack_limit)
    for name in segments:
        if name not in frame.columns:
            raise no_column(name, "with --segment, and looked for in --people FILE", frame.columns)
    user = guess_one(frame.columns, PersonFeatures.id_names)
    others = [name for name in frame.columns if name != user] if segments else None
    return PersonFeatures.from_frame(frame, columns=others, segments=segments)


def say_intake(talk: Talk, comparisons: Comparisons) -> None:
    """Print what was read, and how; in detail, the whole account."""
    intake = comparisons.intake
    for line in intake.describe(name_people=True) if talk.explains else intake.reading.lines():
        talk.say(line)
    n = comparisons.n_users
    who = ("1 person" if n == 1 else f"{n} people") if comparisons.has_users else "people not named"
    answers = counted(comparisons.n_answers, "answer")
    if intake.tasks_read:
        answers = f"{counted(comparisons.n_answers, 'time')} one alternative over another"
    talk.say(f"{answers}, {counted(comparisons.n_items, 'item')}, {who}.")


def say_findings(talk: Talk, findings: Sequence[Finding]) -> None:
    """Print what ``check`` found: warnings as warnings, the rest as notes, in detail."""
    for finding in findings:
        if finding.severity == "warning":
            talk.warn(finding.with_names)
        else:
            talk.detail(f"Note: {finding.with_names}")


def _settings(options: ReadingOptions) -> ReadOptions:
    if options.item_map_column is not None and options.item_map is None:
        raise DataError("--item-map-column names a column of --item-map FILE, which was not given")
    settings = from_command(options.column or (), options.read or ())
    if options.item_map is not None:
        settings["item_map"] = read_item_map(
            options.item_map, value=options.item_map_column, unpack_limit=options.unpack_limit
        )
    if options.design is not None:
        settings["design"] = read_table(options.design, unpack_limit=options.unpack_limit)[1]
    return settings


def names_in(text: str | None, flag: str) -> list[str]:
    """Names with commas between them; none where the option was not given."""
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if not all(names):
        raise DataError(f"{flag} takes names with commas between them, and one of the names is empty")
    return names


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
