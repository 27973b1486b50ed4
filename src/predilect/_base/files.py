"""Files that are given: whether they are there, what a stream without a name holds, and their records."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from predilect._base.forks import refuse_without_threads
from predilect._base.text import did_you_mean, either, shown
from predilect.errors import DataError

_MOST_BESIDE = 1000  # files looked at for a near miss of a name


def existing(path: str | Path, expected: str = "one file") -> Path:
    """The path, if a file or what a shell hands over is there, else DataError; ``expected`` is said of a folder."""
    if re.match(r"\w+:/", str(path)):
        address = re.sub(r":/+", "://", str(path), count=1)  # of which a Path leaves one slash
        raise DataError(f"{shown(address)} is an address on the web, and files are read from disk: download it first.")
    refuse_without_threads()
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # a name with a zero byte is no name
        raise DataError(
            f"there is no file {path} (looked in {Path.cwd()}). Check the name.{_near_file(path)}"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}. Check the name.") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; name {expected}.")
    if not stat.S_ISREG(mode) and not is_stream(path):
        raise DataError(
            f"{path} is a pipe or a device, which may have no end, and no file. Copy what it holds to a file, and name "
            f"that{either(', or read it as standard input: - in place of a name', '')}."
        )
    return path


def _near_file(path: Path) -> str:
    """Question after a file of nearly the same name beside it."""
    try:
        return did_you_mean(path.name, sorted(one.name for one in islice(path.parent.iterdir(), _MOST_BESIDE)))
    except (OSError, ValueError):
        return ""


def are_parts(path: Path) -> bool:
    """Whether it is a folder of answers in parts, as ``predilect partition`` makes; False for what cannot be a name."""
    return os.path.isdir(path) and any(path.glob("part-*.parquet"))  # noqa: PTH112  Path.is_dir raises for a long name


def is_stream(path: Path) -> bool:
    """Whether it is the standard input, or what a shell makes of the output of another command."""
    return re.fullmatch(r"/dev/stdin|(/dev|/proc/(self|\d+))/fd/\d+", str(path)) is not None


def suffix_of(data: bytes) -> str:
    """Suffix for content that came without a name: what its first bytes say, or else delimited text."""
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                return f"{_suffix_of_text(stream.read(1 << 12))}.gz"
        except (OSError, EOFError, zlib.error):
            return ".csv.gz"
    if data[:4] == b"PK\x03\x04":
        try:
            return ".xlsx" if "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(data)).namelist() else ".zip"
        except zipfile.BadZipFile:
            return ".zip"
    if data[:4] == b"PAR1":
        return ".parquet"
    return ".sqlite" if data[:16] == b"SQLite format 3\0" else _suffix_of_text(data)


def _suffix_of_text(data: bytes) -> str:
    return ".json" if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{") else ".csv"


def file_record(path: Path) -> dict[str, str | int]:
    """Name, size in bytes and SHA-256 of a file; the name without its folder, which differs between machines."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def input_records(paths: Mapping[str, Path | None]) -> dict[str, dict[str, str | int]]:
    """Records of the files that were given, by the role they play."""
    return {role: file_record(path) for role, path in paths.items() if path is not None}
