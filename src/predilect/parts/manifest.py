"""A folder of parts: Parquet files, each with all answers of the people whose hash it is for, and their manifest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from predilect._base.arguments import check_path
from predilect._base.files import file_record
from predilect._base.json import plain, typed
from predilect._base.text import amount, as_typed, either, shown
from predilect._base.types import FloatArray
from predilect.data import Comparisons, Vocabulary
from predilect.data.canonical import ALONE, AnswerColumns, canonical_answers, packed
from predilect.data.content import Keys, hashed
from predilect.data.frames import clean_ids
from predilect.data.intake import Intake
from predilect.errors import DataError

MANIFEST, ITEM_TABLE = "manifest.json", "items.parquet"
SCHEMA, VERSION = "predilect/parts", 1
HASH = "blake2b-64 of the id as text, version 1"
_LEFT, _RIGHT, _COVARIATE = "shown_left", "shown_right", "covariate "
_AGAIN = "Partition the files again"


def hashes_of(users: Iterable[Any]) -> Keys:
    """A number of 64 bits for each id, (n,), the same on every machine and in every version: see :data:`HASH`."""
    digests = (hashlib.blake2b(str(user).encode(), digest_size=8).digest() for user in users)
    return np.frombuffer(b"".join(digests), dtype="<u8")


def parts_of(users: pl.Series, n_parts: int, column: str = "user") -> pl.Series:
    """The part of each of some ids, (n,); a missing id is in part 0."""
    ids = clean_ids(users, column).alias("id")
    known = ids.unique().drop_nulls()
    part = pl.Series((hashes_of(known.to_list()) % np.uint64(n_parts)).astype(np.int32))
    return ids.replace_strict(known, part, default=0, return_dtype=pl.Int32)


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What the manifest says of one part."""

    file: str
    sha256: str
    bytes: int
    n_users: int
    n_rows: int
    n_answers: float


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder that :func:`predilect.parts.partition` wrote: answers by person, in Parquet files of about equal size.

    Attributes
    ----------
    path : Path
    records : tuple of PartRecord
        File, checksum and counts of each part.
    items : Vocabulary
    n_by_item : array of float, shape (n_items,)
        Answers on each item.
    intake : Intake
        What was read and left out; its ``reading`` says how.
    """

    path: Path
    records: tuple[PartRecord, ...]
    items: Vocabulary
    n_by_item: FloatArray
    intake: Intake
    user_is_integer: bool
    options: Mapping[str, Any]  # how the files were read, for more of their kind
    has_ties: bool = False
    joint: bool = False
    has_contexts: bool = False
    covariate_names: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    item_table: pl.DataFrame | None = None
    checksum: str = ""

    @classmethod
    def open(cls, path: str | Path) -> Parts:
        """Open a folder of parts; the parts themselves are read when they are asked for.

        Raises
        ------
        DataError
            If there is no manifest, it is of another version, or does not agree with what is in the folder.
        """
        check_path("parts", path)
        path = Path(path)
        file = path / MANIFEST
        if not file.is_file():
            what = f"holds no {MANIFEST}" if path.is_dir() else "is no folder"
            raise DataError(
                f"{path} {what}, so it is no folder of parts. Make one: predilect partition FILE -o {as_typed(path)}"
            )
        try:
            document = json.loads(file.read_bytes())
            said = (document["schema"], document["version"], document["hash"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file} cannot be read ({error}). {_AGAIN}") from None
        if said != (SCHEMA, VERSION, HASH):
            raise DataError(
                f"{file} says schema, version and hash {said}; expected {(SCHEMA, VERSION, HASH)}. It was written by "
                f"another version of Predilect: {_AGAIN.lower()}"
            )
        checksum = document.pop("checksum", "")
        if checksum != _checksum(document):
            raise DataError(f"{file} was changed after it was written: its checksum is another. {_AGAIN}")
        records = tuple(PartRecord(**one) for one in document["parts"])
        wrong = [one.file for one in records if not (path / one.file).is_file()]
        wrong += [
            one.file for one in records if one.file not in wrong and (path / one.file).stat().st_size != one.bytes
        ]
        if wrong:
            raise DataError(
                f"{path} does not agree with its manifest: {len(wrong)} of {len(records)} parts are missing, half "
                f"written or of another size (first: {wrong[0]}). Copy the folder again, or {_AGAIN.lower()}"
            )
        table = path / ITEM_TABLE
        try:
            item_table = pl.read_parquet(table) if document["has_item_table"] else None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{table} cannot be read: {str(error).splitlines()[0]}. {_AGAIN}") from error
        return cls(
            path, records, Vocabulary(pl.Series(document["items"]["ids"])), np.array(document["items"]["n"], float),
            typed(Intake, document["intake"]), document["user_is_integer"], document["options"],
            **{name: document[name] for name in _FLAGS}, covariate_names=tuple(document["covariate_names"]),
            grades=tuple(document["grades"]), checksum=checksum,
            item_table=item_table,
        )  # fmt: skip

    def write_manifest(self, folder: Path) -> None:
        """Write manifest and table of items into a folder that holds the parts."""
        document: dict[str, Any] = {
            "schema": SCHEMA, "version": VERSION, "hash": HASH, "n_users": self.n_users, "n_answers": self.n_answers,
            "user_is_integer": self.user_is_integer, "options": dict(self.options),
            **{name: getattr(self, name) for name in _FLAGS}, "covariate_names": list(self.covariate_names),
            "grades": list(self.grades), "has_item_table": self.item_table is not None,
            "items": {"ids": self.items.ids, "n": self.n_by_item.tolist()},
            "parts": [{name: getattr(one, name) for name in PartRecord.__slots__} for one in self.records],
            "intake": plain(self.intake),
        }  # fmt: skip
        if self.item_table is not None:
            self.item_table.write_parquet(folder / ITEM_TABLE)
        document = json.loads(json.dumps(document, allow_nan=False))  # as whoever reads it will have it
        text = json.dumps({**document, "checksum": _checksum(document)}, indent=1, allow_nan=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")

    @property
    def n_users(self) -> int:
        """People with answers."""
        return sum(one.n_users for one in self.records)

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(one.n_rows for one in self.records)

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return sum(one.n_answers for one in self.records)

    @property
    def n_items(self) -> int:
        """Items with answers."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self.records)

    def part_of(self, user: Any) -> int:
        """Number of the part that holds a person, if any does."""
        return int(hashes_of([user])[0] % np.uint64(len(self)))

    def answers(self, part: int) -> Comparisons:
        """Answers of one part, over the items of all.

        Raises
        ------
        DataError
            If the file is not the one of the manifest, or holds a person of another part.
        """
        record, file = self.records[part], self.path / self.records[part].file
        answers = self.of_frame(self._frame(part), str(file))
        here = (hashes_of(answers.users.ids) % np.uint64(len(self))).astype(np.int64) == part
        if not here.all():
            stray = answers.users.ids[int(np.argmin(here))]
            raise DataError(
                f'{file} holds "{shown(stray)}", who belongs to part {self.part_of(stray)}: a person must be in one '
                f"part. {_AGAIN}"
            )
        if (answers.n_users, answers.n_rows) != (record.n_users, record.n_rows):
            raise DataError(
                f"{file} holds {answers.n_rows} rows of {answers.n_users} people, where the manifest says "
                f"{record.n_rows} of {record.n_users}. {_AGAIN}"
            )
        return answers

    def _frame(self, part: int) -> pl.DataFrame:
        """Table of one part; DataError if the file is not the one of the manifest."""
        record, file = self.records[part], self.path / self.records[part].file
        refuse_large(f"part {part}", _BYTES_A_ROW * record.n_rows, len(self))
        try:
            if file_record(file)["sha256"] != record.sha256:
                raise DataError(
                    f"{file} is not the part that the manifest was written for: its checksum is another. Copy the "
                    f"folder again, or {_AGAIN.lower()}"
                )
            return pl.read_parquet(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{file} cannot be read: {str(error).splitlines()[0]}. {_AGAIN}") from error

    def of_frame(self, frame: pl.DataFrame, source: str) -> Comparisons:
        """Answers of a table as :func:`frame_of` makes it, over the items of all parts."""
        users = frame["user"] if self.user_is_integer else frame["user"].cast(pl.String)
        people = Vocabulary(users)
        try:
            left, right = (self.items.codes(frame[side]) for side in ("left", "right"))
        except DataError as error:
            raise DataError(f"{source} and the manifest have different vocabularies: {error}") from None
        optional: dict[str, Any] = {}
        if "task" in frame:
            optional["task"] = frame["task"].to_numpy()
        if _LEFT in frame:
            optional["sides"] = frame.select(_LEFT, _RIGHT).to_numpy()
        if "copy_left" in frame:
            optional["copies"] = frame.select("copy_left", "copy_right").to_numpy()
        if self.covariate_names:
            optional["covariates"] = frame.select(_COVARIATE + name for name in self.covariate_names).to_numpy()
        contexts = None
        if "context" in frame and frame["context"].null_count() < len(frame):
            contexts = Vocabulary(frame["context"].drop_nulls())
            optional["context"] = contexts.codes(frame["context"], unknown="minus_one")
        if self.grades:
            numbers = pl.Series(range(1, len(self.grades) + 1), dtype=pl.Int8)
            named = frame["grade"] if "grade" in frame else pl.Series([None] * len(frame), dtype=pl.String)
            optional["grade"] = named.replace_strict(
                pl.Series(self.grades), numbers, default=0, return_dtype=pl.Int8
            ).to_numpy()
        rows = AnswerColumns(
            people.codes(users, what="user"), left, right, frame["outcome"].to_numpy(), frame["weight"].to_numpy(),
            **optional,
        )  # fmt: skip
        if optional or not _is_canonical(rows):
            rows = canonical_answers(rows)
        return Comparisons(
            people, self.items, **rows._asdict(), intake=replace(self.intake, unused_users=()),
            covariate_names=self.covariate_names, contexts=contexts, joint=self.joint, grades=self.grades,
        )  # fmt: skip

    def sample(self, most_people: int, most_rows: int) -> Comparisons:
        """Answers of the people of least hash, at most so many, and with about so many rows; all if there are no more.

        Who is in it depends on the ids alone, not on the number of parts. Reads parts one after the other.
        """
        share = min(1.0, most_people / max(self.n_users, 1), most_rows / max(self.n_rows, 1))
        parts = []
        for part, record in enumerate(self.records):
            frame = self._frame(part)
            if share < 1.0:
                users = frame["user"].unique()
                # Not the hash itself, of which the part is the remainder.
                chance = hashed(hashes_of(users.to_list())).astype(np.float64) / 2.0**64
                frame = frame.filter(pl.col("user").is_in(users.filter(chance < share).to_list()))
            if len(frame):
                parts.append(frame_of(self.of_frame(frame, str(self.path / record.file))))
        if not parts:
            raise DataError(f"{self.path} holds no answers. {_AGAIN}")
        # A part has columns of what its own answers hold.
        frame = pl.concat(parts, how="diagonal").with_columns(
            pl.col("^task$").fill_null(-1), pl.col(f"^({_LEFT}|{_RIGHT})$").fill_null(0.0)
        )
        found = self.of_frame(frame, str(self.path))
        return replace(found, item_table=self.item_table)

    def described(self) -> str:
        """Counts in a sentence."""
        return (
            f"{amount(self.n_answers)} answers of {amount(self.n_users)} people on {self.n_items} items in "
            f"{len(self)} parts"
        )

    def __repr__(self) -> str:
        return f"Parts({self.path}: {self.described()})"

    def check(self) -> Iterator[str]:
        """Read every part, and yield the name of each that is as the manifest says; DataError for the first other."""
        counts = np.zeros(self.n_items)
        for part, record in enumerate(self.records):
            answers = self.answers(part)
            counts += answer_counts(answers)
            yield record.file
        if not np.allclose(counts, self.n_by_item):
            raise DataError(f"{self.path}: the counts of items of the manifest are not those of the parts. {_AGAIN}")


_BYTES_A_ROW = 250  # of memory, while a part is read and laid out


def free_memory() -> float:
    """Bytes of memory that can be had, as far as the system says; infinite where it does not."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            said = next(line for line in file if line.startswith("MemAvailable:"))
        return 1024.0 * float(said.split()[1])
    except (OSError, StopIteration):
        return math.inf


def refuse_large(what: str, n_bytes: float, n_parts: int) -> None:
    """DataError if there is not the memory to read a part."""
    if n_bytes > (free := free_memory()):
        raise DataError(
            f"{what} takes about {n_bytes / 1e9:.1f} GB of memory to read, and {free / 1e9:.1f} GB are free. Partition "
            f"into more than {n_parts} parts: {either('--parts N', 'n_parts=...')}"
        )


_FLAGS = ("has_ties", "joint", "has_contexts")


def answer_counts(answers: Comparisons) -> FloatArray:
    """Weights by item, shape (n_items,)."""
    n = answers.n_items
    return np.asarray(sum(np.bincount(side, answers.weight, n) for side in (answers.left, answers.right)))


def frame_of(answers: Comparisons) -> pl.DataFrame:
    """Table of a part, one canonical row each: user, left, right, outcome, weight, and what else there is."""
    columns: dict[str, Any] = {
        "user": answers.users.series().gather(answers.user), "left": answers.items.series().gather(answers.left),
        "right": answers.items.series().gather(answers.right), "outcome": answers.outcome, "weight": answers.weight,
    }  # fmt: skip
    if answers.task is not None:
        columns["task"] = answers.task
    if answers.sides is not None:
        columns |= {_LEFT: answers.sides[:, 0], _RIGHT: answers.sides[:, 1]}
    if answers.copies is not None:
        columns |= {"copy_left": answers.copies[:, 0], "copy_right": answers.copies[:, 1]}
    if answers.covariates is not None:
        names = [_COVARIATE + name for name in answers.covariate_names]
        columns |= dict(zip(names, answers.covariates.T, strict=True))
    if answers.context is not None and answers.contexts is not None:
        place = pl.Series(answers.context, dtype=pl.Int64).set(pl.Series(answers.context == ALONE), None)
        columns["context"] = answers.contexts.series().gather(place)
    if answers.grade is not None:
        columns["grade"] = pl.Series([None, *answers.grades], dtype=pl.String).gather(answers.grade.astype(np.int64))
    return pl.DataFrame({name: pl.Series(name, one) for name, one in columns.items()})


def _is_canonical(rows: AnswerColumns) -> bool:
    """Whether rows are in canonical order as they stand."""
    if not len(rows.user):
        return True
    key = packed(rows.user, rows.left, rows.right, rows.outcome + 1)
    steps = np.diff(key)
    return bool((rows.left < rows.right).all() and (steps >= 0).all())


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else -1


def _checksum(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
