"""Replacement of a file or folder in one step, whatever ends the process.

The new one is made in a hidden folder beside its place. The process that works in such a folder holds a lock on it,
which ends with the process: a hidden folder without a lock is a leftover, and is removed at the next write.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# A hidden folder is .NAME.predilect-RANDOM, and holds nothing but these; anything else is not ours to remove.
_MARK = ".predilect-"
_NEW, _OLD, _GONE = "new", "old", "gone-"

# What a rename says when something is in the way that it cannot replace in one step.
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
if sys.platform == "win32":
    _IN_THE_WAY.add(errno.EACCES)
# What systems and disks say that cannot do something: exchange two names, lock a folder, flush a folder.
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM, errno.EXDEV, errno.EBADF, errno.ENOLCK}

_RENAME_EXCHANGE = 2  # RENAME_SWAP of macOS has the same number
_HERE = -100  # AT_FDCWD of Linux


def resolved(path: Path) -> Path:
    """Where a path leads, so that a link keeps pointing there; OSError if links lead in a circle."""
    try:
        found = path.resolve()
        if not found.is_symlink():
            return found
    except RuntimeError:  # Python before 3.13
        pass
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def foreign(folder: Path, ours: Callable[[str], object]) -> str:
    """Path, from a folder, of something in it, at any depth, that is not ``ours``; empty where there is nothing."""
    try:
        there = sorted(entry.relative_to(folder).as_posix() for entry in folder.rglob("*"))
    except FileNotFoundError:  # another process has just moved it away
        return ""
    return next((name for name in there if not ours(name)), "")


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A path at which to make what :func:`put_in_place` then puts at ``path``; removed when the block ends.

    On the same disk and of the same name; nothing is there yet. ``path`` is no link, and its parent exists. Leftovers
    of processes that were killed are removed first. Raises OSError if nothing can be made beside ``path``.
    """
    _clean(path)
    hidden, lock = _hidden(path)
    try:
        (hidden / _NEW).mkdir()
        yield hidden / _NEW / path.name
    finally:
        _discard(hidden, path)
        if lock is not None:
            os.close(lock)


def put_in_place(new: Path, path: Path) -> None:
    """Replace ``path`` by ``new``, which is at the place that :func:`staged` gave.

    Raises OSError if it cannot be done; the old one is there again when the block of :func:`staged` has ended.

    Everything is on the disk before it takes its place. Linux and macOS exchange two folders in one step. Elsewhere,
    and on disks that cannot, the old one is moved away first: for a moment nothing is there, and if the process is
    killed in it, the next write puts the old one back.
    """
    for made in [*new.rglob("*"), new, new.parent]:
        _sync(made)
    while True:
        try:
            new.replace(path)  # one step where nothing is there, or a file takes the place of a file
            break
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
        # Not found: another process took away what was in the way.
        with suppress(FileNotFoundError):
            if _exchange(new, path) or _swap(new, path):
                break
    _sync(path.parent)


def write_whole(file: Path, write: Callable[[Path], Any]) -> None:
    """Write a file of a cache whole or not at all, and to the disk before it has its name; its folder is made; OSError.

    Several processes may write the same one: each its own, and the last stays.
    """
    new = file.with_name(f".{os.getpid()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        _sync(new)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _exchange(new: Path, path: Path) -> bool:
    """Exchange two names in one step; False where that is impossible."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(new), os.fsencode(path)
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        failed = libc.renameat2(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, _RENAME_EXCHANGE)
    else:
        return False
    number = ctypes.get_errno() if failed else 0
    if number and number not in _CANNOT:
        raise OSError(number, os.strerror(number), str(path))
    return not failed


def _swap(new: Path, path: Path) -> bool:
    """Move the old one away and the new one in; False if another process put something there in between."""
    hidden = new.parent.parent
    old = hidden / _OLD / path.name
    old.parent.mkdir(exist_ok=True)
    path.rename(old)
    done = True
    try:
        new.replace(path)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise  # _discard puts the old one back
        done = False
    old.parent.replace(tempfile.mkdtemp(prefix=_GONE, dir=hidden))  # never to be put back
    return done


def _discard(hidden: Path, path: Path) -> None:
    """Remove a hidden folder; what was moved away from ``path`` goes back if nothing took its place."""
    old = hidden / _OLD / path.name
    if os.path.lexists(old) and not os.path.lexists(path):
        old.rename(path)
    shutil.rmtree(hidden, ignore_errors=True)


def _hidden(path: Path) -> tuple[Path, int | None]:
    """A new hidden folder and its lock; None where there are no locks, and nothing is ever taken for a leftover."""
    while True:
        hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}{_MARK}", dir=path.parent))
        try:
            return hidden, _lock(hidden)
        except (BlockingIOError, FileNotFoundError):
            continue  # another process took it for a leftover before it was locked
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            return hidden, None


def _clean(path: Path) -> None:
    """Remove hidden folders of this name without a lock."""
    pattern = re.compile(re.escape(f".{path.name}{_MARK}") + "[a-z0-9_]{8}")
    for hidden in path.parent.iterdir():
        if not pattern.fullmatch(hidden.name):
            continue
        try:
            lock = _lock(hidden)
        except OSError:
            continue  # held, gone, no folder, or somebody else's
        try:
            if all(entry.name in (_NEW, _OLD) or entry.name.startswith(_GONE) for entry in hidden.iterdir()):
                _discard(hidden, path)
        finally:
            os.close(lock)


def _lock(folder: Path) -> int:
    """Descriptor that locks a folder; BlockingIOError if another process holds it, FileNotFoundError if it is gone."""
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), folder.lstat()):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if sys.platform == "win32" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    finally:
        os.close(descriptor)
