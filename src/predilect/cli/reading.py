"""From the options of a command to answers, and to answers by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from predilect._base.text import as_typed
from predilect.cli.options import Said, items_in, numbers_in
from predilect.cli.session import Talk
from predilect.data import (
    Comparisons,
    Finding,
    ItemFeatures,
    PersonFeatures,
    read_frame,
    read_item_map,
)
from predilect.data.frames import Deferred, as_text
from predilect.data.intake import counted
from predilect.data.read.columns import no_column
from predilect.data.read.names import CRITERION, TASK, guess_one, is_called
from predilect.data.read.options import ReadOptions, from_command, option
from predilect.data.read.readers import UNPACK_LIMIT, as_the_whole, open_table, read_opened, read_table
from predilect.errors import DataError
from predilect.models.reading import warn_of_items_without_features
from predilect.parts.manifest import free_memory

MOST_SEGMENTS = 200


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read: options of answers, the size that a packed file may have, and how attributes are coded."""

    options: ReadOptions = field(default_factory=lambda: ReadOptions())  # noqa: PLW0108 (a TypedDict is no factory to mypy)
    unpack_limit: float = UNPACK_LIMIT
    categorical: tuple[str, ...] = ()
    piecewise: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Sequence[str], read: Sequence[str]) -> ReadingOptions:
        """Settings of what was said with -c and --read; DataError for what cannot be."""
        rest, limit, categorical, piecewise = [], UNPACK_LIMIT, [], {}
        for said in read:
            key, _, value = said.partition("=")
            match key.strip().replace("_", "-"):
                case "unpack-limit":
                    (limit,) = numbers_in(value, "--read unpack-limit")[:1]
                    if not limit > 0.0:
                        raise DataError(f"--read unpack-limit is a number of GB above 0; got {value}")
                case "categorical":
                    categorical += items_in(value, "--read categorical")
                case "piecewise":
                    name, cuts = _cuts(value)
                    piecewise[name] = cuts
                case _:
                    rest.append(said)
        return cls(from_command(column, rest), limit, tuple(categorical), piecewise)


def _cuts(text: str) -> tuple[str, list[float]]:
    """Name and numbers of "price:3,5"."""
    name, colon, values = text.rpartition(":")
    if not colon or not name.strip():
        raise DataError(
            f'--read piecewise takes an attribute and where its slope changes, as piecewise=price:3,5; got "{text}"'
        )
    return name.strip(), numbers_in(values, "--read piecewise")


@dataclass(frozen=True)
class ReadAnswers:
    """All answers, those of each segment by its value (or why it has none), and the number of rows without segment.

    ``people``: segments of people that stand in the columns of answers.
    """

    comparisons: Comparisons
    segments: dict[str, Comparisons | str] = field(default_factory=dict)
    rows_without_segment: int = 0
    people: PersonFeatures | None = None


@dataclass(frozen=True)
class Source:
    """Files of answers that are there, and how they are read."""

    path: Path
    settings: ReadingOptions
    files: dict[str, Path | None]  # all files by what they are, for the record

    @classmethod
    def of(cls, path: Path, said: Said) -> Source:
        """A file of answers; DataError if an option cannot be used."""
        settings = ReadingOptions.of(said.column, said.read)
        limit = settings.unpack_limit
        if said.item_map is not None:
            settings.options["item_map"] = read_item_map(said.item_map, value=said.map_column, unpack_limit=limit)
        if said.design is not None:
            settings.options["design"] = read_table(said.design, unpack_limit=limit)[1]
        return cls(path, settings, {"votes": path, "item_map": said.item_map, "design": said.design})

    def table(self) -> Deferred:
        """The table of answers, opened."""
        return open_table(self.path, self.settings.options.get("table"), self.settings.unpack_limit)

    def read(self, by: str | None = None, segments: Sequence[str] = ()) -> ReadAnswers:
        """Answers, cut by the column ``by``, or with the columns ``segments`` of people; raises DataError."""
        options = ReadOptions(**self.settings.options)
        more = list(segments) if by is None else [by]
        if not more:
            return ReadAnswers(read_opened(self.table(), self.path, options))
        if options.get("task") is None and guess_one(more, TASK) is not None:
            options["task"] = False  # the column of --by or --segment is a kind of question, not the number of a choice
        if by is not None and is_called(by, CRITERION):
            options["criterion"] = False  # each has a board

        table = self.table()
        for name in more:
            if name not in table.columns:
                raise no_column(name, "with --by, a column of FILE" if by else "with --segment", table.columns)
        whole = Comparisons.read_with(table, options)
        unused = tuple(name for name in whole.intake.ignored_columns if name not in more)
        whole = replace(whole, intake=replace(whole.intake, ignored_columns=unused))
        if by is None:
            user = whole.intake.columns.get("user")
            if user is None:
                raise DataError(
                    f"--segment needs a column that says who answered. Name it ({option('user', 'NAME')}), or give "
                    "each value a fit of its own (--by COLUMN)"
                )
            people = {name: table[name] for name in (user, *more)}
            return ReadAnswers(whole, people=PersonFeatures.from_frame(people, user, segments=more))
        value = _segment_values(table[by], by)
        options = as_the_whole(options, whole)
        parts: dict[str, Comparisons | str] = {}
        for segment in value.drop_nulls().unique().sort().to_list():
            try:
                parts[segment] = Comparisons.read_with(table.filter((value == segment).fill_null(False)), options)
            except DataError as error:
                parts[segment] = str(error)
        return ReadAnswers(whole, parts, value.null_count())


def read_features(path: Path | None, answers: Comparisons, settings: ReadingOptions) -> ItemFeatures | None:
    """Features of items from a file with one row an item, or else from answers that describe their alternatives."""
    frame = answers.item_table if path is None else read_frame(path, unpack_limit=settings.unpack_limit)
    if frame is None:
        if settings.categorical or settings.piecewise:
            raise DataError("--read categorical and piecewise are about attributes of items: give --items FILE")
        return None
    features = ItemFeatures.from_frame(
        frame, "item" if path is None else None, categorical=settings.categorical, piecewise=settings.piecewise
    )
    if path is not None:
        warn_of_items_without_features(answers, features)
    return features


def read_people(path: Path | None, settings: ReadingOptions, segments: Sequence[str] = ()) -> PersonFeatures | None:
    """Features of people from a file with one row a person, and the columns of it that are segments."""
    if path is None:
        return None
    frame = read_frame(path, unpack_limit=settings.unpack_limit)
    for name in segments:
        if name not in frame.columns:
            raise no_column(name, "with --segment, and looked for in --people FILE", frame.columns)
    user = guess_one(frame.columns, PersonFeatures.id_names)
    others = [name for name in frame.columns if name != user] if segments else None
    return PersonFeatures.from_frame(frame, columns=others, segments=segments)


_BYTES_A_ROW = 320  # of memory, in a fit of 10⁷ answers


def advise_parts(talk: Talk, given: Path, answers: Comparisons) -> None:
    """Warn of answers that a fit may have no memory for, where parts of them can be fitted."""
    wanted, free = _BYTES_A_ROW * answers.n_rows, free_memory()
    if wanted > free and answers.has_users and answers.contexts is None:
        talk.warn(
            f"A fit of these answers takes about {wanted / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free. In "
            f"parts it takes less: predilect partition {as_typed(given)} -o PARTS, with the same options of reading; "
            "then predilect rank PARTS -o DIR."
        )


def say_intake(talk: Talk, comparisons: Comparisons) -> None:
    """Print what was read, and how; in detail, the whole account."""
    intake = comparisons.intake
    for line in intake.describe(name_people=True) if talk.explains else intake.reading.lines():
        talk.say(line)
    talk.say(amounts(comparisons))


def amounts(comparisons: Comparisons) -> str:
    """How many answers, items and people, in a sentence."""
    n = comparisons.n_users
    who = ("1 person" if n == 1 else f"{n} people") if comparisons.has_users else "people not named"
    answers = counted(comparisons.n_answers, "answer")
    if comparisons.intake.tasks_read:
        answers = f"{counted(comparisons.n_answers, 'time')} one alternative over another"
    return f"{answers}, {counted(comparisons.n_items, 'item')}, {who}."


def say_findings(talk: Talk, findings: Sequence[Finding]) -> None:
    """Print what ``check`` found: warnings as warnings, the rest as notes, in detail."""
    for finding in findings:
        if finding.severity == "warning":
            talk.warn(finding.with_names)
        else:
            talk.detail(f"Note: {finding.with_names}")


def _segment_values(column: pl.Series, by: str) -> pl.Series:
    value = as_text(column)
    n_segments = value.drop_nulls().n_unique()
    if n_segments == 0:
        raise DataError(f'column "{by}" (given with --by) holds no value at all')
    if n_segments > MOST_SEGMENTS:
        raise DataError(
            f'column "{by}" holds {n_segments} different values, and --by fits a model to each, for at most '
            f"{MOST_SEGMENTS}. Name a column with fewer; rankings of single people are in users.parquet without --by"
        )
    return value
