"""Compilation of the numerical loops: Numba, cached on disk, and announced when it takes long."""

from __future__ import annotations

import gc
import glob
import hashlib
import logging
import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import event, serialize
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.types import BaseTuple

_ANNOUNCE_AFTER_SECONDS = 0.7

_uncached: list[str] = []  # functions that no folder was found for
_said: list[str] = []
_dispatchers: dict[Any, dict[str, Any]] = {}  # all functions that are compiled here, with their options

_NumbaCache: Any = FunctionCache  # whose types differ between versions
_NumbaPlace: Any = CompileResultCacheImpl
_numba_events: Any = event


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a scalar function or a loop with ``numba.njit``, without the GIL and cached on disk.

    Where neither the installation nor the user's cache folder can be written (a read-only container, say), each process
    compiles anew instead of failing. The wrapper for C, which nothing calls, is left out: each takes time to compile.
    """
    return _njit(function, no_cfunc_wrapper=True)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that only other kernels call: it does without the wrapper for Python, which is slow to compile."""
    return _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _njit(function: Callable[..., Any], **options: Any) -> Any:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    dispatcher._cache = _cache_of(dispatcher)
    _dispatchers[dispatcher] = options
    return dispatcher


def rebound(loop: Any, other: Callable[[Any], Any], name: str) -> Any:
    """A compiled function that calls ``other(f)`` in place of each compiled f; itself where that changes none.

    It is cached on disk under ``name``, its own and a digest of what it calls instead. A compiled function as an
    argument would keep it from the cache, and one that is called by its address takes twice as long.
    """
    source = loop.py_func
    called = {key: source.__globals__.get(key) for key in source.__code__.co_names}
    changed = {key: new for key, f in called.items() if isinstance(f, type(loop)) and (new := other(f)) is not f}
    if not changed:
        return loop
    copy = FunctionType(source.__code__, source.__globals__ | changed, source.__name__, source.__defaults__)
    digest = hashlib.sha256(repr([(key, _digest(f)) for key, f in changed.items()]).encode()).hexdigest()[:8]
    copy.__qualname__ = f"{name}_{digest}_{source.__qualname__}"
    return _njit(copy, **_dispatchers[loop])


def is_missing(loop: Any) -> bool:
    """Whether the cache on disk can hold a compiled function and holds none of its code as it is now, for any types."""
    return isinstance(loop._cache, _Cache) and not loop._cache._cache_file.has_any()


def elementwise(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Function of an array, or of a number, by one that puts its values in place of those of a flat array.

    So arrays and loops share one formula. Numba's own universal functions compile a part of themselves, a tenth of a
    second each, in every process.
    """
    loop = kernel(function)

    @wraps(function)
    def apply(values: Any) -> Any:
        values = np.array(values, dtype=np.float64, order="C")
        loop(values.reshape(-1))
        return values[()]

    return apply


def _digest(dispatcher: Any) -> str:
    """Digest of what is compiled: the code of a function and of all that it calls, with constants and options."""
    found: dict[Any, str] = {}
    waiting = [dispatcher]
    while waiting:
        compiled = waiting.pop()
        if compiled not in found:
            found[compiled], called = _own(compiled)
            waiting += called
    return hashlib.sha256("".join(sorted(found.values())).encode()).hexdigest()


def _own(dispatcher: Any) -> tuple[str, list[Any]]:
    """Digest of the code of a function, its constants and its options, without what it calls; and that."""
    function = dispatcher.py_func
    code = function.__code__
    used = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for module in [value for value in used.values() if isinstance(value, ModuleType)]:
        theirs = {name: vars(module)[name] for name in code.co_names if name in vars(module)}
        used |= {
            f"{module.__name__}.{name}": value
            for name, value in theirs.items()
            if isinstance(value, type(dispatcher) | np.ndarray | int | float)
        }
    called = {name: value for name, value in used.items() if isinstance(value, type(dispatcher))}
    says = (
        function.__qualname__, code.co_code, code.co_consts, code.co_names, code.co_varnames,
        sorted(dispatcher.targetoptions.items()),
        [(name, value.py_func.__qualname__) for name, value in called.items()],
        [(name, _constant(value)) for name, value in used.items() if name not in called],
    )  # fmt: skip
    return hashlib.sha256(repr(says).encode()).hexdigest(), list(called.values())


def _constant(value: Any) -> Any:
    """What tells a value apart in text; of a module its name, of a named tuple its fields."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, type):
        return value.__qualname__, getattr(value, "_fields", None)
    return value.__name__ if isinstance(value, ModuleType) else repr(value)


def _cache_of(dispatcher: Any) -> Any:
    try:
        return _Cache(dispatcher)
    except RuntimeError:  # Numba found no folder that it may write its cache to
        _uncached.append(dispatcher.__name__)
        return NullCache()


class _Place(_NumbaPlace):  # type: ignore[misc]
    """Where Numba finds a place for its cache, but for the folder of a user who has none, as in many a container.

    Numba would make a folder called ~ where the process happens to run.
    """

    _locator_classes: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        if not _has_home():
            self._locator_classes = [kind for kind in self._locator_classes if "UserWide" not in kind.__name__]
        self._locator_classes = [
            _by_module(kind) if "UserProvided" in kind.__name__ else kind for kind in self._locator_classes
        ]
        super().__init__(function)


def _by_module(locator: Any) -> Any:
    """How Numba finds its place in NUMBA_CACHE_DIR, but by the names of our modules and not by where they lie.

    Where they lie differs between two checkouts, and a digest tells whether they are of the same code.
    """

    class ByModule(locator):  # type: ignore[misc]
        _cache_path: str

        def __init__(self, function: Callable[..., Any], file: str) -> None:
            super().__init__(function, file)
            if function.__module__.startswith("predilect."):
                self._cache_path = str(Path(self._cache_path).with_name(function.__module__))

    return ByModule


def _has_home() -> bool:
    """Whether there is a folder in which the user's caches lie."""
    try:
        return bool(os.environ.get("XDG_CACHE_HOME") or Path.home())
    except RuntimeError:
        return False


def _fields(kinds: Any) -> list[Any]:
    """Names of the fields of named tuples among types: their order is compiled, and types alone do not tell it."""
    tuples: list[Any] = [kind for kind in kinds if isinstance(kind, BaseTuple)]
    return [(getattr(kind, "fields", None), _fields(kind.types)) for kind in tuples]


class _Cache(_NumbaCache):  # type: ignore[misc]
    """Numba's cache, in which a file that is damaged, or cannot be written, counts as missing.

    So does one of other code, be it of a function that is called from another file: an update of the package leaves the
    files of the cache behind. Numba asks when the source was written, so that a fresh checkout would compile all anew.
    """

    _impl_class = _Place

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        # The digest is made when all that is called has been defined.
        self._cache_file = _CacheFiles(Path(self.cache_path), self._impl.filename_base, lambda: _digest(dispatcher))

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return *super()._index_key(sig, codegen), _fields(sig)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if there is room for it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_once(
                f"predilect: compiled loops cannot be kept in {self.cache_path} ({error.strerror}), so every process "
                "compiles them. NUMBA_CACHE_DIR names another folder."
            )


class _CacheFiles:
    """A file for each compiled function, which begins with a digest of the rest.

    Numba's own files have none: it ends with whatever error a damaged one leads to, or runs what it holds.
    """

    def __init__(self, folder: Path, name: str, stamp: Callable[[], Any]) -> None:
        self.folder, self.name, self.stamp = folder, name, stamp

    def save(self, key: Any, data: Any) -> None:
        dumps: Any = serialize.dumps
        content = dumps((self.stamp(), dumps(data)))
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def load(self, key: Any) -> Any:
        """What was saved with the key, or None; what was made of other code counts as none."""
        data = self._content(self._path(key))
        return None if data is None else pickle.loads(data)

    def has_any(self) -> bool:
        """Whether something was saved of this code, with any key."""
        return any(self._content(path) is not None for path in self.folder.glob(f"{glob.escape(self.name)}.*.nbc"))

    def _content(self, path: Path) -> Any:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._miss(error.strerror)
        digest, content = content[:32], content[32:]
        if hashlib.sha256(content).digest() != digest:
            return self._miss("damaged")
        stamp, data = pickle.loads(content)
        return data if stamp == self.stamp() else None

    def _path(self, key: Any) -> Path:
        versions = numba.__version__, llvmlite.__version__
        return self.folder / f"{self.name}.{hashlib.sha256(repr((versions, key)).encode()).hexdigest()[:16]}.nbc"

    def _miss(self, why: str | None) -> None:
        _say_once(f"predilect: compiled loops in {self.folder} cannot be read ({why}); they are compiled again.")


def _say_once(what: str) -> None:
    """Say something about the cache, unless something was said already."""
    if not _said:
        _said.append(what)
        logging.getLogger("predilect").warning(what)


class _Announcer(_numba_events.Listener):  # type: ignore[misc]
    """Says once, on the terminal, that loops are being compiled: when that has taken long enough to be noticed.

    Numba tells of every function that it compiles, and of none that it loads from the cache; it compiles one at a time,
    and those that a function calls within its own event.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._began = 0.0
        self._spent = 0.0  # seconds, all functions so far
        self._timer: threading.Timer | None = None
        self._said = False

    def on_start(self, compiling: Any) -> None:
        """A function is about to be compiled."""
        if not _is_ours(compiling):
            return
        self._depth += 1
        if self._depth == 1 and not self._said:
            self._began = time.monotonic()
            self._timer = threading.Timer(max(_ANNOUNCE_AFTER_SECONDS - self._spent, 0.0), self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, compiling: Any) -> None:
        """A function has been compiled, or could not be."""
        if not _is_ours(compiling):
            return
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._spent += time.monotonic() - self._began

    def _say(self) -> None:
        self._said = True
        how_often = (
            "once per installation" if not _uncached else "as no folder for them can be written (NUMBA_CACHE_DIR)"
        )
        # Without any logging set up, Python prints a warning to the terminal, which is what is wanted here.
        logging.getLogger("predilect").warning(f"predilect: compiling its numerical loops, {how_often} ...")


class _Collector(_numba_events.Listener):  # type: ignore[misc]
    """Puts off the collection of garbage while a function is compiled: a tenth of the time, for next to nothing."""

    def __init__(self) -> None:
        self._depth = 0
        self._was_on = False

    def on_start(self, compiling: Any) -> None:
        """A function is about to be compiled."""
        if not _is_ours(compiling):
            return
        if not self._depth:
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, compiling: Any) -> None:
        """A function has been compiled, or could not be."""
        if not _is_ours(compiling):
            return
        self._depth -= 1
        if not self._depth and self._was_on:
            gc.enable()


def _is_ours(compiling: Any) -> bool:
    """Whether a function is one of this package's, and not the user's own or one of Numba's."""
    return compiling.data["dispatcher"] in _dispatchers


_numba_events.register("numba:compile", _Announcer())
_numba_events.register("numba:compile", _Collector())
