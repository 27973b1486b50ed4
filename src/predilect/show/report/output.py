"""Output that appears whole or not at all: a folder, or a file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from predilect._base.replace import foreign, put_in_place, resolved, staged
from predilect.errors import DataError, OutputError

# Within a folder of results: the paths of all that was written there, which is all that may be replaced.
MARKER = ".predilect"


class OutputFolder:
    """Output folder that appears complete or not at all; DataError if it must not or cannot be made there.

    Files go to a hidden folder beside it, which takes its place once everything is there. A folder that exists is
    replaced only with ``force``, only if it holds, at any depth, nothing but what was written there, and in one step.
    Nothing goes to, into or around what is read (``reads``; None for what was not given).
    """

    def __init__(self, path: Path, force: bool = False, *, reads: Iterable[Path | None] = ()) -> None:
        _refuse_place(path, path, "-o")
        _refuse_sources(path, reads, "-o")
        self.shown = path
        self.path = resolved(path)
        self.force = force
        self._refuse()

    def probe(self) -> None:
        """OutputError if the folder cannot be written, before hours are spent on what goes into it."""
        with self._staged():
            self._refuse()

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A folder that becomes the output when the block ends well, and is removed otherwise; raises OutputError."""
        with self._staged() as new:
            self._refuse()
            new.mkdir()
            yield new
            names = sorted(entry.relative_to(new).as_posix() for entry in new.rglob("*"))
            (new / MARKER).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
            self._refuse()
            put_in_place(new, self.path)

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        self._refuse()
        try:
            with staged(self.path) as new:
                yield new
        except OSError as error:
            raise OutputError(_told(error, self.shown)) from error

    def _refuse(self) -> None:
        _refuse_place(self.path, self.shown, "-o")
        # Not found: there is nothing yet, or another process is putting its own there, having moved it away.
        try:
            there = self.path.stat()
            if not stat.S_ISDIR(there.st_mode):
                raise DataError(f"{self.shown} is a file, and the results need a folder. Give another name with -o")
            if not self.force:
                raise DataError(f"{self.shown} exists already. Give another name with -o, or replace it with --force")
            is_ours = (self.path / MARKER).is_file()
            told = (self.path / MARKER).read_text(encoding="utf-8", errors="replace") if is_ours else ""
            other = foreign(self.path, {MARKER, *told.splitlines()}.__contains__)
            if not os.path.samestat(there, self.path.stat()):  # another process has put its own there meanwhile
                self._refuse()
                return
        except FileNotFoundError:
            return
        if other:
            old = "" if is_ours else f". It has no file {MARKER}: remove it yourself if it holds old results"
            raise DataError(
                f"{self.shown} holds what Predilect did not write (first: {other}), so --force will not replace "
                f"it. Give another name with -o{old}"
            )
        if Path.cwd().is_relative_to(self.path):
            raise DataError(f"{self.shown} is the folder you are in and cannot be replaced. Give another with -o")


class OutputFile:
    """Output file that appears complete or not at all, or DataError; a device or a pipe is written straight into."""

    def __init__(
        self, path: Path, force: bool = False, *, what: str = "the predictions need", place: str = "-o",
        replace: str = "--force", reads: Iterable[Path | None] = (),
    ) -> None:  # fmt: skip
        """``what`` "needs" a file; ``place`` and ``replace``: what to set for another one, and to replace it.

        ``reads``: see :class:`OutputFolder`.
        """
        _refuse_place(path, path, place)
        self.path, self.place = path, place
        self.is_special = path.exists() and not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
        if not self.is_special:
            _refuse_sources(path, reads, place)
        if path.is_dir():
            raise DataError(f"{path} is a folder, and {what} a file. Give another name with {place}")
        if path.exists() and not self.is_special and not force:
            raise DataError(f"{path} exists already. Give another name with {place}, or replace it with {replace}")

    def probe(self) -> None:
        """OutputError if the file cannot be written, before hours are spent on what goes into it."""
        if not self.is_special:
            self.write(Path.touch, keep=False)

    def write(self, write: Callable[[Path], object], keep: bool = True) -> None:
        """Call ``write`` with a path to write to; OutputError if it could not be written."""
        try:
            if self.is_special:
                write(self.path)
                return
            target = resolved(self.path)
            with staged(target) as new:
                write(new)
                if keep:
                    put_in_place(new, target)
        except OSError as error:
            raise OutputError(_told(error, self.path, self.place)) from error


def _refuse_place(path: Path, shown: Path, option: str) -> None:
    parent = path.parent
    try:
        there = resolved(path)
    except OSError as error:
        raise DataError(f"{shown} is no place for results: {error.strerror}. Change {option}") from error
    try:
        str(there).encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{there} is not UTF-8 text, in which results are written. Change {option}") from None
    if not parent.exists():
        raise DataError(
            f"the folder {parent}, in which {shown.name} should go, does not exist. Make it, or change {option}"
        )
    if not parent.is_dir():
        raise DataError(f"{parent} is a file and not a folder, so {shown} cannot be made in it. Change {option}")


def _refuse_sources(path: Path, reads: Iterable[Path | None], option: str) -> None:
    """DataError for a place that is, holds or lies in what is read, which would be lost or mixed with the results."""
    target = resolved(path)
    for one in reads:
        if one is None:
            continue
        source = Path(os.path.realpath(one))
        if target == source or target in source.parents or (source in target.parents and source.is_dir()):
            how = "is" if target == source else "holds" if target in source.parents else "lies in"
            raise DataError(
                f"{path} {how} what is read, {one}, which nothing may replace. Give another name with {option}"
            )


def _told(error: OSError, path: Path, place: str = "-o") -> str:
    cause = error.__cause__ if isinstance(error, OutputError) else error  # of a file within a folder
    number = re.search(r"\(os error (\d+)\)", str(cause))  # polars gives no strerror, and long words of its own
    why = os.strerror(int(number[1])) if number else (cause.strerror if isinstance(cause, OSError) else "") or error
    return (
        f"{path} could not be written: {why}. Nothing half-written was left behind; make room, or "
        f"choose another place with {place}"
    )
