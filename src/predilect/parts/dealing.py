"""From files of answers of any size to parts: rows are dealt out by the hash of the person, then each part is read."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from predilect._base.arguments import check_count, check_list, check_path
from predilect._base.files import file_record
from predilect._base.progress import Watcher
from predilect._base.replace import foreign, put_in_place, resolved, staged
from predilect._base.text import either, shown
from predilect.data import Comparisons, Vocabulary
from predilect.data.comparisons import joined_grades, joined_tables
from predilect.data.intake import Intake
from predilect.data.read.options import ReadOptions, option, read_options
from predilect.data.read.readers import BLOCK, UNPACK_LIMIT, as_the_whole, read_blocks
from predilect.errors import DataError, OutputError
from predilect.parts.manifest import (
    ITEM_TABLE,
    MANIFEST,
    PartRecord,
    Parts,
    answer_counts,
    frame_of,
    parts_of,
    refuse_large,
)

ROWS_A_PART, MOST_PARTS, FEWEST_PARTS = 250_000, 4096, 4
_HELD = 1 << 26  # bytes of rows that wait to be written
_PACKED = 5.0  # times as large is the text of what is packed
_TIMES = 8.0  # as much memory as its packed rows does it take to read a part


def partition(
    files: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    n_parts: int | None = None,
    columns: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    item_map: Mapping[Any, Any] | None = None,
    design: Any = None,
    unpack_limit: float = UNPACK_LIMIT,
    add: bool = False,
    overwrite: bool = False,
    watch: Watcher | None = None,
) -> Parts:
    r"""Deal answers out to parts by person, however many there are: for ``Population().fit_parts(out)``.

    Parameters
    ----------
    files : path or list of paths
        Files of answers as :func:`predilect.read` takes them, of one form, in which a column says who answered. All
        answers of a person go to one part, by a hash of the id.
    out : path
        Folder to make: a Parquet file a part, and ``manifest.json``. It appears whole or not at all.
    n_parts : int, optional
        By default about one for 250 000 rows, at least four.
    columns, reading, item_map, design, unpack_limit
        As of :func:`predilect.read`. The first block of the first file decides how all is read.
    add : bool, default False
        Add the answers to the parts that are in ``out``; more of the people who are there join their part.
        The folder must hold nothing but parts, as it is written anew.
    overwrite : bool, default False
        Replace parts that are in ``out``.
    watch : callable, optional
        Called with progress: ``watch(stage, done)``.

    Returns
    -------
    Parts

    Raises
    ------
    DataError
        If the answers cannot be read in one clear way, or do not say who gave them.
    OutputError
        If the folder cannot be written.

    Notes
    -----
    Text, JSON lines and Parquet are read in blocks of 8 MB, so memory is some 300 MB and about four times a part; on
    the disk, beside ``out``, the rows are there twice for a while. Workbooks, databases and packed archives are read
    whole. The hash is BLAKE2b of the id as text, the same everywhere.

    Examples
    --------
    >>> import tempfile, predilect.parts
    >>> folder = tempfile.mkdtemp()
    >>> file = f"{folder}/votes.csv"
    >>> with open(file, "w") as votes:
    ...     _ = votes.write("user,left,right,winner\nann,tea,milk,tea\nbob,tea,juice,juice\n")
    >>> predilect.parts.partition(file, f"{folder}/parts").n_users
    2
    """
    options = read_options(columns, reading, of_file=True)
    options |= {"item_map": item_map, "design": design}
    several = [files] if isinstance(files, str | Path) else files
    check_list("files", several, of="names of files")
    for name, one in (*(("files", one) for one in several), ("out", out)):
        check_path(name, one)
    paths = [Path(one) for one in several]
    return partition_files(paths, Path(out), options, n_parts, unpack_limit, add=add, overwrite=overwrite, watch=watch)


def partition_files(
    files: Sequence[Path], out: Path, options: ReadOptions, n_parts: int | None = None,
    unpack_limit: float = UNPACK_LIMIT, *, add: bool = False, overwrite: bool = False, watch: Watcher | None = None,
) -> Parts:  # fmt: skip
    """:func:`partition`, by the options of the readers."""
    if not files:
        raise DataError("name at least one file of answers to partition")
    check_count(either("--parts", "n_parts"), n_parts, 1, None, most=MOST_PARTS)
    old = _old_parts(out, add, overwrite)
    if old is not None:
        if n_parts not in (None, len(old)):
            raise DataError(f"{out} has {len(old)} parts, and answers that are added go to these. Leave --parts out")
        n_parts = len(old)
        options = ReadOptions(**{**old.options, **{key: one for key, one in options.items() if one is not None}})  # type: ignore[typeddict-item]
    try:
        target = resolved(out)
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as new:
            new.mkdir()
            (raw := new.parent / "raw").mkdir()
            dealt = _Dealt(raw, options, n_parts, unpack_limit, watch)
            for file in files:
                dealt.take(file)
            if not dealt.user:  # of Parquet; a text has a block, of its header
                raise DataError(f"there are no rows (first file: {files[0]}). Is it the right file?")
            read = _Read(dealt.first, old, new)
            for part in range(dealt.n_parts):
                if watch is not None:
                    watch("writing parts", part + 1)
                read.write(part, dealt.part(part))
            read.parts(dealt).write_manifest(new)
            if _old_parts(out, add, overwrite) is None and out.exists() and not overwrite:
                raise DataError(f"{out} was made by somebody else meanwhile. Choose another folder")
            put_in_place(new, target)
    except OSError as error:
        if isinstance(error, OutputError) or error.strerror is None:
            raise
        raise OutputError(
            f"{out} could not be written: {error.strerror}. Nothing half-written was left behind; make room, or choose "
            f"another place{either(' with -o', '')}"
        ) from error
    return Parts.open(out)


def _old_parts(out: Path, add: bool, overwrite: bool) -> Parts | None:
    """Parts to which answers are added, or None; DataError if the folder may not be written."""
    old = Parts.open(out) if add else None
    if old is None and not out.exists():
        return None
    if old is None and not overwrite:
        raise DataError(
            f"{out} exists already. Choose another folder, add the answers to its parts "
            f"({either('--add', 'add=True')}), or replace it ({either('--force', 'overwrite=True')})"
        )
    other = foreign(out, lambda name: name in (MANIFEST, ITEM_TABLE) or _is_part(name)) if out.is_dir() else out.name
    if not other and not (out / MANIFEST).is_file():
        other = f"no {MANIFEST}"
    if other:
        raise DataError(
            f"{out} holds what is no part (first: {other}), and will not be replaced. "
            + ("Move that elsewhere first" if old is not None else "Choose another folder")
        )
    return old


def _file_of(part: int) -> str:
    return f"part-{part:04d}.parquet"


def _is_part(name: str) -> bool:
    return re.fullmatch(r"part-\d+\.parquet", name) is not None


class _Dealt:
    """Rows of files as they are, dealt out to files of the parts in a folder."""

    def __init__(
        self, folder: Path, options: ReadOptions, n_parts: int | None, unpack_limit: float, watch: Watcher | None
    ) -> None:
        self.folder, self.options, self.unpack_limit, self.watch = folder, options, unpack_limit, watch
        self.n_parts = n_parts or 0
        self.names: list[str] = []
        self.user, self.n_rows = "", 0
        self.used: frozenset[str] = frozenset()  # columns; of the first block all are looked at
        self._waiting: list[pl.DataFrame] = []

    def take(self, file: Path) -> None:
        """Deal out the rows of a file."""

        def wanted(names: list[str]) -> list[str]:
            self.names = self.names or names
            once = [name for name, times in Counter(names).items() if times == 1]
            return [name for name in once if not self.used or name in self.used]

        for block in read_blocks(file, wanted, table=self.options.get("table"), unpack_limit=self.unpack_limit):
            if not self.user:
                self._begin(file, block)
                block = block.select(wanted(block.columns))
            if self.user not in block:
                raise DataError(
                    f'{file} has no column "{shown(self.user)}", which says who answered in the first file; files of '
                    "one folder of parts have one form"
                )
            block = block.with_columns(parts_of(block[self.user], self.n_parts, self.user).alias(_PART))
            self._waiting.append(block)
            self.n_rows += len(block)
            if self.watch is not None:
                self.watch("reading", self.n_rows)
            if sum(one.estimated_size() for one in self._waiting) > _HELD:
                self._flush()

    def _begin(self, file: Path, block: pl.DataFrame) -> None:
        """How all is read, by the first block."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # every part says it again
            self.first = Comparisons.read_with(block, self.options)
        self.user = self.first.intake.columns.get("user", "")
        self.used = frozenset(self.first.intake.columns.values())
        if not self.first.has_users or not self.user or self.user not in block:
            raise DataError(
                f"{file} has no column that says who answered, and parts hold whole people. Name it with "
                f"{option('user', 'NAME')}, or, without people, rank the answers as they are: "
                f"{either('predilect rank FILE --personal no', 'Population(personal=False).fit(...)')}"
            )
        self.options = as_the_whole(self.options, self.first)
        if not self.n_parts:
            n_rows = len(block) * max(1.0, file.stat().st_size * _packing(file) / BLOCK)
            wanted = 2 ** int(np.ceil(np.log2(max(n_rows / ROWS_A_PART, 1.0))))
            self.n_parts = int(np.clip(wanted, FEWEST_PARTS, MOST_PARTS))

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pl.concat(self._waiting, how="diagonal_relaxed")
        for (part,), some in rows.partition_by(_PART, as_dict=True, include_key=False).items():
            some.write_ipc(piece := io.BytesIO(), compression="lz4")
            with (self.folder / str(part)).open("ab") as file:
                file.write(len(piece.getvalue()).to_bytes(8, "little") + piece.getvalue())
        self._waiting = []

    def part(self, part: int) -> Comparisons | None:
        """Answers of a part, whose rows are forgotten; None without any. Raises DataError."""
        self._flush()
        file = self.folder / str(part)
        if not file.exists():
            return None
        refuse_large(f"part {part}", _TIMES * file.stat().st_size, self.n_parts)
        pieces = []
        with file.open("rb") as stream:
            while length := stream.read(8):
                pieces.append(pl.read_ipc(io.BytesIO(stream.read(int.from_bytes(length, "little")))))
        file.unlink()
        frame = pl.concat(pieces, how="diagonal_relaxed")
        try:
            answers = Comparisons.read_with(frame, self.options)
        except DataError as error:
            raise DataError(f"{error} (Rows are counted in part {part} of {self.n_parts}.)") from error
        mine, theirs = (one.intake for one in (answers, self.first))
        changed = [
            role for role in mine.columns if role in theirs.columns and mine.columns[role] != theirs.columns[role]
        ]
        if changed or mine.winner_reading != theirs.winner_reading or answers.joint != self.first.joint:
            raise DataError(
                f"part {part} reads otherwise than the first rows of the first file: {' '.join(mine.reading.lines())} "
                f"These: {' '.join(theirs.reading.lines())} "
                f"Say how answers are read with {either('-c and --read', 'columns= and reading=')}"
            )
        return answers


_PART = "part of predilect"


def _packing(file: Path) -> float:
    return _PACKED if file.suffix.lower() in (".gz", ".zip", ".parquet", ".xlsx") else 1.0


@dataclass
class _Read:
    """Parts as they are written, and what the manifest says of all."""

    first: Comparisons
    old: Parts | None
    folder: Path
    records: list[PartRecord] = field(default_factory=list)
    items: list[pl.DataFrame] = field(default_factory=list)
    kinds: set[bool] = field(default_factory=set)
    has_ties: bool = False
    joint: bool = False
    has_contexts: bool = False
    grades: tuple[str, ...] = ()
    table: pl.DataFrame | None = None
    intake: Intake | None = None

    def write(self, part: int, answers: Comparisons | None) -> None:
        """Write one part, with the answers that were there before."""
        old = None if self.old is None else self.old.answers(part)
        self._say(answers, old)
        if answers is None:
            answers = self.first.take(np.zeros(0, np.int64)) if old is None else old
        elif old is not None:
            answers = old.append(answers)
        file = self.folder / _file_of(part)
        frame_of(answers).write_parquet(file)
        seen = np.unique(answers.user)
        self.records.append(
            PartRecord(file.name, str(file_record(file)["sha256"]), file.stat().st_size, len(seen), answers.n_rows,
                       answers.n_answers)
        )  # fmt: skip
        self.kinds |= {answers.users.is_integer} if len(seen) else set()
        count = answer_counts(answers).astype(np.float64)  # whole numbers where there are none
        self.items.append(pl.DataFrame({"id": answers.items.series(), "n": count}).filter(pl.Series(count > 0)))

    def _say(self, answers: Comparisons | None, old: Comparisons | None) -> None:
        for one in (old, answers):
            if one is None:
                continue
            if one.time is not None:
                raise DataError("ratings over time are not fitted in parts: read the answers without a column of times")
            self.has_ties |= one.has_ties
            self.joint |= one.joint
            self.has_contexts |= one.context is not None
            self.grades = joined_grades(self.grades, one.grades)
        if answers is not None:
            self.table = joined_tables(self.table, answers.item_table)
            merged = answers.intake if self.intake is None else self.intake.merge(answers.intake)
            self.intake = replace(merged, unused_users=())

    def parts(self, dealt: _Dealt) -> Parts:
        """What the manifest says."""
        as_text = any(one.schema["id"] == pl.String for one in self.items)
        frames = [one.cast({"id": pl.String}) if as_text else one for one in self.items]
        counts = pl.concat(frames).group_by("id").agg(pl.col("n").sum())
        items = Vocabulary(counts["id"])
        n_by_item = np.zeros(len(items))
        n_by_item[items.codes(counts["id"])] = counts["n"].to_numpy()
        assert self.intake is not None  # there was a first block
        used = {*self.intake.columns.values()}
        ignored = tuple(name for name in dealt.names if name not in used)
        if self.old is not None:
            self.intake = self.old.intake.merge(self.intake)
            self.table = joined_tables(self.old.item_table, self.table)
            ignored = self.old.intake.ignored_columns
        intake = replace(
            self.intake, example=self.first.intake.example, ignored_columns=ignored,
            unused_items=tuple(one for one in self.intake.unused_items if one not in items),
        )  # fmt: skip
        said = {name: _plain(one) for name, one in dealt.options.items() if name not in ("item_map", "design")}
        names = self.first.covariate_names if self.old is None else self.old.covariate_names
        return Parts(
            self.folder, tuple(self.records), items, n_by_item, intake, self.kinds == {True}, said,
            has_ties=self.has_ties, joint=self.joint, has_contexts=self.has_contexts,
            covariate_names=names, grades=self.grades, item_table=self.table,
        )  # fmt: skip


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else value
