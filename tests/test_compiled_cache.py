"""The cache of compiled loops: damaged, or not to be written, it is as if not there; and what is said of compiling."""

from __future__ import annotations

import gc
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pytest

import predilect
from forked import execute, forking
from predilect._base import compile as _compile
from predilect.models.registry import ENTRIES

# Two kernels and a universal function, compiled by the package's own decorators, of which the second calls the first.
MODULE = """
import math
from predilect._base.compile import elementwise, inner_kernel, kernel

@inner_kernel
def twice(x):
    return 2.0 * x

@inner_kernel
def thrice(x):
    return 3.0 * x

@kernel
def total(values):
    sum = 0.0
    for value in values:
        sum += twice(value)
    return sum

@elementwise
def half(x):
    for i in range(len(x)):
        x[i] *= 0.5
"""
PROGRAM = """
import os
import numpy as np
from predilect._base import compile as _compile
_compile._ANNOUNCE_AFTER_SECONDS = float(os.environ.get("ANNOUNCE_AFTER", 1000))
import loops
print(loops.total(np.arange(4.0)), loops.half(np.array([3.0]))[0], sum(loops.total.stats.cache_hits.values()))
"""
REBOUND = """
import numpy as np
import loops
from predilect._base.compile import rebound
assert rebound(loops.total, lambda f: f, "same") is loops.total
other = rebound(loops.total, lambda f: loops.thrice if f is loops.twice else f, "another")
assert other(np.arange(4.0)) == 18.0
print(loops.total(np.arange(4.0)), loops.half(np.array([3.0]))[0], sum(other.stats.cache_hits.values()))
"""
NAMESAKE = """
import numpy as np
import loops
from predilect._base.compile import kernel, rebound
@kernel
def thrice(x):
    return FACTOR * x
other = rebound(loops.total, lambda f: thrice if f is loops.twice else f, "another")
assert other(np.arange(4.0)) == 6.0 * FACTOR
print(loops.total(np.arange(4.0)), loops.half(np.array([3.0]))[0], sum(other.stats.cache_hits.values()))
"""
# A kernel that calls one of another file, by way of one more, and reads a named tuple that is defined there.
CALLER = """
from called import Pair, thrice
from predilect._base.compile import kernel

@kernel
def total(pair):
    return thrice(pair.left)
"""
CALLED = """
from typing import NamedTuple
from predilect._base.compile import inner_kernel

FACTOR = 2.0

class Pair(NamedTuple):
    left: float
    right: float

@inner_kernel
def times(x, y):
    return FACTOR * x + y

@inner_kernel
def thrice(x):
    return times(x, x)
"""
ACROSS_FILES = """
import os
import caller
found = caller.total(caller.Pair(left=1.0, right=10.0))
assert found == float(os.environ["EXPECTED"]), found
print(12.0, 1.5, sum(caller.total.stats.cache_hits.values()))
"""
# Programs begin so in a container whose user has no name, no folder, and an installation that cannot be written to.
HOMELESS = """
import os, pwd
from pathlib import Path
import loops_are_beside
os.chdir(Path(loops_are_beside.__file__).parent)
os.environ.pop("HOME", None)
os.environ.pop("XDG_CACHE_HOME", None)
def nobody(number):
    raise KeyError(number)
pwd.getpwuid = nobody
"""
DAMAGED = "cannot be read (damaged); they are compiled again."
ANNOUNCED = "predilect: compiling its numerical loops, once per installation ..."
DEFAULT_MODEL = """
from numba.core.event import install_recorder

with install_recorder("numba:compile") as recorder:
    from predilect import Population
    votes = {
        "user": ["u", "u", "v", "v", "w", "w"],
        "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
        "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
        "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
    }
    model = Population().fit(votes)
    model.predict_proba(votes)
    model.update(user="u", left="tea", right="milk", winner="tea").rank("u")
print(len(recorder.buffer) > 0)
"""


@pytest.fixture
def run(tmp_path):
    """Runs the program; its cache lies where the environment says, by default in ``cache``."""
    (tmp_path / "loops.py").write_text(MODULE)
    (tmp_path / "cache").mkdir()

    def start(program=PROGRAM, **environment):
        out, error = tmp_path / "out", tmp_path / "error"
        variables = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), **environment}
        process = forking().Process(target=execute, args=(program, tmp_path, variables, out, error), daemon=True)
        process.start()
        process.join(100)
        said = error.read_text()
        assert process.exitcode == 0, said
        printed = out.read_text()
        assert printed.startswith("12.0 1.5 ")
        return int(printed.split()[-1]), said

    return start


@pytest.fixture
def files(tmp_path, run):
    """The files of the cache, after a first run."""
    assert run() == (0, "")
    assert run() == (1, "")
    found = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert len(found) == 3
    return found


DAMAGES = {
    "empty": lambda data: b"",
    "of twenty bytes": lambda data: data[:20],
    "without its end": lambda data: data[:-100],
    "with a flipped bit in its middle": lambda data: _flipped(data, len(data) // 2),
    "with a flipped bit at its beginning": lambda data: _flipped(data, 3),
    "with a flipped bit at its end": lambda data: _flipped(data, len(data) - 1),
    "of something else": lambda data: b"something else" * 1000,
}


def _flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_a_file_gives_back_what_was_saved_in_it_or_nothing(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(_compile, "_said", [])
    files = _compile._CacheFiles(tmp_path, "loop", lambda: "stamp")
    assert files.load("key") is None
    files.save("key", ("code", b"x" * 1000))
    (file,) = tmp_path.iterdir()
    assert files.load("key") == ("code", b"x" * 1000)
    assert files.load("another key") is None
    assert _compile._CacheFiles(tmp_path, "loop", lambda: "a later stamp").load("key") is None
    assert not caplog.messages
    whole = file.read_bytes()
    for damage in DAMAGES.values():
        file.write_bytes(damage(whole))
        assert files.load("key") is None
    for place in range(len(whole)):
        file.write_bytes(_flipped(whole, place))
        assert files.load("key") is None
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith(DAMAGED)
    files.save("key", 7)
    assert files.load("key") == 7
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.slow
def test_a_loop_with_another_function_in_it_is_cached_beside_the_first(run):
    assert run(REBOUND)[0] == 0
    assert run(REBOUND)[0] == 1


@pytest.mark.slow
def test_another_function_of_the_same_name_is_not_taken_for_the_first(run, tmp_path):
    run(REBOUND)
    found = []
    for factor in ("4.0", "4.0", "5.0"):
        (tmp_path / "edited.py").write_text(NAMESAKE.replace("FACTOR", factor))  # Numba caches what is in a file
        found.append(run("import edited")[0])
    assert found == [0, 1, 0]


@pytest.mark.slow
def test_compiling_is_announced_once_and_loading_is_not(run):
    assert run(ANNOUNCE_AFTER="0") == (0, f"{ANNOUNCED}\n")  # both kernels, one of them within the other
    assert run(ANNOUNCE_AFTER="0") == (1, "")


def test_it_is_announced_once_compiling_took_long_in_all(caplog, monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(_compile, "time", SimpleNamespace(monotonic=lambda: next(now)))
    asked = []

    class Timer:
        def __init__(self, seconds, say):
            self.say = say
            asked.append([seconds, "waits"])

        def start(self):
            if asked[-1][0] == 0.0:
                self.say()

        def cancel(self):
            asked[-1][1] = "cancelled"

    monkeypatch.setattr(_compile.threading, "Timer", Timer)
    monkeypatch.setattr(_compile, "_ANNOUNCE_AFTER_SECONDS", 1.5)
    monkeypatch.setattr(_compile, "_dispatchers", {"outer", "inner"})
    announcer = _compile._Announcer()

    def compiled(name, *within):
        event = SimpleNamespace(data={"dispatcher": name})
        announcer.on_start(event)
        for other in within:
            compiled(other)
        announcer.on_end(event)

    compiled("of somebody else")
    assert not asked
    compiled("outer", "inner", "of Numba", "inner")
    assert asked == [[1.5, "cancelled"]]
    compiled("inner")
    assert asked[1:] == [[0.5, "cancelled"]]
    assert not caplog.messages
    compiled("outer", "inner")
    assert asked[2:] == [[0.0, "cancelled"]]
    assert caplog.messages == [ANNOUNCED]
    compiled("outer", "inner")
    assert len(asked) == 3
    assert caplog.messages == [ANNOUNCED]


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_left_until_a_function_is_compiled_and_then_collected_as_before(monkeypatch, was_on):
    monkeypatch.setattr(_compile, "_dispatchers", {"outer", "inner"})
    ours, inner, other = (SimpleNamespace(data={"dispatcher": name}) for name in ("outer", "inner", "of Numba"))
    collector = _compile._Collector()
    found = []
    (gc.enable if was_on else gc.disable)()
    try:
        for step, compiling in (
            ("start", other), ("end", other), ("start", ours), ("start", inner), ("end", inner), ("end", ours)
        ):  # fmt: skip
            getattr(collector, f"on_{step}")(compiling)
            found.append(gc.isenabled())
    finally:
        gc.enable()
    assert found == [was_on, was_on, False, False, False, was_on]


@pytest.mark.slow
def test_the_default_model_announces_its_loops_with_an_empty_cache_and_compiles_nothing_with_a_full_one(tmp_path):
    for compiles, said in ((True, ANNOUNCED), (False, "")):
        ran = subprocess.run(
            [sys.executable, "-c", DEFAULT_MODEL], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=False, timeout=250,
        )  # fmt: skip
        assert ran.stdout.strip() == str(compiles), ran.stderr
        assert ran.stderr.strip() == said


A_LOOP = """
from predilect.inference.likelihoods.probit import moments_scalar

moments_scalar(1, 0.5, 1.0, 0.0)
print(sum(moments_scalar.stats.cache_hits.values()), moments_scalar.py_func.__code__.co_filename)
"""


@pytest.mark.slow
def test_a_folder_that_is_named_serves_an_installation_in_another_place(tmp_path):
    hits = []
    for place in ("one", "other"):
        shutil.copytree(
            Path(predilect.__file__).parent,
            tmp_path / place / "predilect",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        ran = subprocess.run(
            [sys.executable, "-c", A_LOOP], capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path / place)},
        )  # fmt: skip
        found, file = ran.stdout.split()
        assert file.startswith(str(tmp_path / place))
        hits.append(int(found))
    assert hits == [0, 1]


@pytest.mark.slow
def test_a_damaged_file_is_compiled_again_and_replaced(run, files):
    hits = []
    for damage in DAMAGES.values():
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        found, said = run()
        hits.append(found)
        assert said.count("\n") == 1
        assert said.startswith("predilect: compiled loops in ")
        assert said.endswith(f"{DAMAGED}\n")
    assert hits == [0] * len(DAMAGES)
    assert run() == (1, "")


@pytest.mark.slow
def test_a_file_that_is_gone_or_of_other_code_is_compiled_again_without_a_word(run, files, tmp_path):
    files[0].unlink()
    assert run()[1] == ""
    (tmp_path / "loops.py").write_text(MODULE + "# edited")  # as a fresh checkout is later than the cache
    assert run() == (1, "")
    (tmp_path / "loops.py").write_text(MODULE.replace("2.0 * x", "x + x"))
    assert run() == (0, "")
    assert run() == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("why", ["a folder in its place", "a full disk"])
def test_files_that_cannot_be_read_or_written_are_said_once(run, files, why):
    full = ""
    if why == "a full disk":
        if not Path("/dev/full").exists():
            pytest.skip("needs /dev/full")
        for file in files:
            file.unlink()
        # Every write to a new file of the cache goes to a device that is always full.
        full = "import pathlib; write = pathlib.Path.write_bytes; "
        full += "pathlib.Path.write_bytes = lambda path, data: write(pathlib.Path('/dev/full'), data)"
        said = "cannot be kept in .*No space left on device"
    else:
        for file in files:
            file.unlink()
            file.mkdir()
        said = "cannot be read .Is a directory."
    hits, told = run(full + PROGRAM)
    assert hits == 0
    assert told.count("\n") == 1
    assert re.search(said, told), told


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_is_passed_over(run, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(NUMBA_CACHE_DIR=str(tmp_path / "file")) == (0, "")  # beside the source then
    assert run(NUMBA_CACHE_DIR=str(tmp_path / "file")) == (1, "")


EDITS = {
    "a constant": ("FACTOR = 2.0", "FACTOR = 5.0", 6.0),
    "code": ("FACTOR * x + y", "FACTOR * x - y", 1.0),
    "fields of a named tuple": ("left: float\n    right: float", "right: float\n    left: float", 3.0),
}


BY_NAME = CALLER
BY_MODULE = "import called\n" + CALLER.replace("Pair, thrice", "Pair").replace("return thrice", "return called.thrice")


@pytest.mark.slow
@pytest.mark.parametrize(("what", "caller"), [(what, BY_NAME) for what in EDITS] + [("code", BY_MODULE)])
def test_an_edit_of_another_file_that_is_called_is_noticed(run, tmp_path, what, caller):
    """Files of the cache stay where they are when the package is updated."""
    old, new, expected = EDITS[what]
    (tmp_path / "caller.py").write_text(caller)
    (tmp_path / "called.py").write_text(CALLED)
    assert run(ACROSS_FILES, EXPECTED="3.0")[0] == 0
    assert run(ACROSS_FILES, EXPECTED="3.0")[0] == 1
    assert old in CALLED
    (tmp_path / "called.py").write_text(CALLED.replace(old, new))
    assert run(ACROSS_FILES, EXPECTED=str(expected))[0] == 0
    assert run(ACROSS_FILES, EXPECTED=str(expected))[0] == 1


@pytest.mark.parametrize("caller", [BY_NAME, BY_MODULE])
def test_the_digest_is_of_all_that_is_compiled_and_of_nothing_else(tmp_path, monkeypatch, caller):
    monkeypatch.syspath_prepend(tmp_path)

    def digest(called=CALLED):
        (tmp_path / "called.py").write_text(called)
        (tmp_path / "caller.py").write_text(caller)
        importlib.invalidate_caches()
        for name in ("called", "caller"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)
            return _compile._digest(importlib.import_module("caller").total)

    usual = digest()
    assert digest(CALLED + "# a comment") == usual
    assert digest("# a comment\n" + CALLED) == usual
    changed = [digest(CALLED.replace(*EDITS[what][:2])) for what in ("a constant", "code")]
    changed.append(digest(CALLED.replace("@inner_kernel", "@kernel").replace("import inner_kernel", "import kernel")))
    assert len({usual, *changed}) == 4


def test_the_digest_tells_the_fields_of_what_a_kernel_makes():
    """A named tuple that is made inside is no argument, whose type Numba would look at."""

    class Pair(NamedTuple):
        left: float
        right: float

    def digest(kind):
        scope = {"__name__": "made", "Pair": kind, "inner_kernel": _compile.inner_kernel}
        exec("@inner_kernel\ndef made(x):\n    return Pair(x, 2.0 * x)", scope)
        return _compile._own(scope["made"])[0]

    class Other(NamedTuple):
        right: float
        left: float

    Other.__qualname__ = Pair.__qualname__
    assert digest(Pair) != digest(Other)


def test_every_constant_of_a_kernel_is_told_in_the_same_words_by_every_process():
    for entry in ENTRIES:
        importlib.import_module(f"predilect.{entry.module}")
    kernels = [one for one in _compile._dispatchers if one.py_func.__module__.startswith("predilect.")]
    assert len(kernels) > 50
    for one in kernels:
        code, names = one.py_func.__code__, one.py_func.__globals__
        used = [names[name] for name in code.co_names if name in names and not isinstance(names[name], type(one))]
        assert {type(value).__name__ for value in used} <= {"bool", "int", "float", "ndarray", "module", "type"}, one
        assert all(issubclass(value, tuple) for value in used if isinstance(value, type)), one  # told by its fields
        modules = {value.__name__ for value in used if isinstance(value, ModuleType)}
        assert all(name in ("math", "numpy") or name.startswith("predilect.") for name in modules), one
        assert {type(value).__name__ for value in code.co_consts} <= {
            "NoneType",
            "bool",
            "int",
            "float",
            "str",
            "tuple",
        }


@pytest.mark.slow
def test_nobody_gets_a_folder_that_is_called_like_the_sign_for_home(run, tmp_path):
    (tmp_path / "__pycache__").write_text("")  # so that there is no place beside the source
    (tmp_path / "loops_are_beside.py").write_text("")
    hits, said = run(HOMELESS + PROGRAM, NUMBA_CACHE_DIR="", ANNOUNCE_AFTER="0")
    assert hits == 0
    assert (
        said == "predilect: compiling its numerical loops, as no folder for them can be written (NUMBA_CACHE_DIR) ...\n"
    )
    assert not (tmp_path / "~").exists()
