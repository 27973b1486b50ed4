"""Mutation testing: small errors put into the sources, one at a time, and the tests that see them.

    python tests/mutants.py --seed 1 --each 12                 # twelve mutants of each room
    python tests/mutants.py --seed 1 inference/people=20 decisions=20    # of these rooms only; --list only shows them
    python tests/mutants.py --seed 1 --only 3 17               # these again, after a new test
    python tests/mutants.py --seed 1 --near data/read=60       # by the tests of the mirrored folder and the one above

A seed draws the same mutants of the same sources: a kind of error, then a file with room for it, then a place, never
two in one function. Docstrings, annotations, messages, decorators, ``raise``, ``assert`` and ``strict=`` stay as they
are. A mutant lies in a copy of ``src``; the checkout is only read. Compiled loops are taken from the checkout's cache,
which knows those that an error changes.

Tests run from near to far, to the first that fails: files of the mirrored folder that import the module or bear its
name, others of that folder, the folder above, importers elsewhere, tests of modules that import it, contracts and
referees; at last the slow tests of the nearest files. With ``--near`` those of the two folders alone, and none that is
slow: a survivor of these takes a minute, of all a quarter of an hour. A test that takes longer than ``SECONDS`` has
failed. What survives is read by a person; what is judged to change nothing stands in ``mutants.txt`` with the reason,
and does not run.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "predilect", ROOT / "tests"
ROOMS = (
    "inference/people", "inference/likelihoods", "inference/gaussian", "decisions", "models/population", "data/read",
)  # fmt: skip
SECONDS = {"not slow": 120, "slow": 300}  # that a test may take; many loops may have to be compiled within one
MESSAGES = re.compile(r"(warn|warning|info|debug|_say\w*)$")  # functions that only say something

Op = ast.operator | ast.cmpop | ast.boolop
_TYPES: list[tuple[type[Op], type[Op]]] = [
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.And, ast.Or),
]  # fmt: skip
_NAMES = ["min max", "any all", "argmin argmax", "ceil floor", "minimum maximum", "sum mean", "triu tril"]
OTHER = {a: b for pair in _TYPES for a, b in (pair, pair[::-1])}
OTHER_NAME = {a: b for pair in map(str.split, _NAMES) for a, b in (pair, pair[::-1])}

# Mutants that were judged to change nothing: blocks of two lines, the mutant as it is printed and the reason.
EQUIVALENT = dict(block.split("\n") for block in (TESTS / "mutants.txt").read_text("utf-8").strip().split("\n\n"))


@cache
def read(file: Path) -> str:
    return file.read_text("utf-8")


@dataclass(frozen=True)
class Mutant:
    """One error: ``after`` stands in place of ``node`` in ``file``."""

    file: Path
    function: str
    kind: str
    node: ast.expr | ast.stmt
    after: ast.AST

    def source(self) -> str:
        """The file with the error."""
        lines = self.file.read_bytes().splitlines(keepends=True)
        node, text = self.node, ast.unparse(self.after)
        start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
        text = f"({text})" if isinstance(self.after, ast.BinOp | ast.BoolOp | ast.Compare) else text
        return (b"".join(lines)[:start] + text.encode() + b"".join(lines)[end:]).decode()

    def __str__(self) -> str:
        line, name = self.node.lineno - 1, self.file.relative_to(SOURCE).as_posix()
        if self.node.lineno != self.node.end_lineno:
            return f"{name}: {ast.unparse(self.node)} -> {ast.unparse(self.after)}"
        before, after = (s.splitlines()[line].strip() for s in (read(self.file), self.source()))
        return f"{name}: {before} -> {after}"


def errors(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Errors that a programmer may make at a node: a kind, and what stands there instead."""

    def other(**fields: object) -> ast.AST:
        return type(node)(**{**dict(ast.iter_fields(node)), **fields})

    match node:
        case ast.BinOp(ast.JoinedStr() | ast.Constant(str())) | ast.BinOp(right=ast.JoinedStr() | ast.Constant(str())):
            return
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            yield "sign", other(op=OTHER[type(op)]())
            yield "dropped term", left
            if isinstance(op, ast.Add):
                yield "dropped term", right
            else:
                yield "swapped arguments", other(left=right, right=left)
        case ast.BinOp(left, ast.Mult() | ast.Div() as op, right):
            yield "product", other(op=OTHER[type(op)]())
            yield "dropped factor", left
        case ast.AugAssign(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op):
            yield "sign" if isinstance(op, ast.Add | ast.Sub) else "product", other(op=OTHER[type(op)]())
        case ast.UnaryOp(ast.USub(), operand):
            yield "sign", operand
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as op]):
            yield "comparison", other(ops=[OTHER[type(op)]()])
        case ast.BoolOp(op):
            yield "condition", other(op=OTHER[type(op)]())
        case ast.Attribute(value, "T"):
            yield "axis", value
        case ast.keyword("axis", ast.Constant(int() as axis)):
            yield "axis", other(value=ast.Constant(int(axis != 1)))
        case ast.Call(ast.Name(name)) if name in OTHER_NAME:
            yield "other function", other(func=ast.Name(OTHER_NAME[name]))
        case ast.Call(ast.Attribute(value, name)) if name in OTHER_NAME:
            yield "other function", other(func=ast.Attribute(value, OTHER_NAME[name]))
        case ast.Constant(bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield "off by one", ast.Constant(value + 1)
        case ast.Constant(float() as value):
            yield "constant", ast.Constant(2.0 * value or 1.0)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All errors that can be put into a file."""

    def walk(node: ast.AST, function: str) -> Iterator[Mutant]:
        below = list(ast.iter_child_nodes(node))
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.If(test=ast.Name("TYPE_CHECKING")):
                return
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if MESSAGES.match(name):
                return
            case ast.AnnAssign(value=value):
                below = [value] if value else []
            case ast.keyword("axis" | "strict", ast.Constant()):  # strict=True only refuses what never is
                below = []
            case ast.ClassDef(name=name):
                below, function = list(node.body), f"{function}.{name}"
            case ast.FunctionDef(name=name, args=args):
                below, function = [*args.defaults, *filter(None, args.kw_defaults), *node.body], f"{function}.{name}"
        if isinstance(node, ast.expr | ast.stmt | ast.keyword):
            yield from (Mutant(file, function, kind, node, after) for kind, after in errors(node))
        for child in below:
            yield from walk(child, function)

    yield from walk(ast.parse(read(file)), "")


def drawn(room: str, n: int, seed: int) -> list[Mutant]:
    """``n`` mutants of a room."""
    draw = random.Random(f"{seed} {room}")
    found = [mutant for file in sorted((SOURCE / room).rglob("*.py")) for mutant in mutants_of(file)]
    chosen: list[Mutant] = []
    while found and len(chosen) < n:
        kind = draw.choice(sorted({mutant.kind for mutant in found}))
        file = draw.choice(sorted({mutant.file for mutant in found if mutant.kind == kind}))
        mutant = draw.choice([mutant for mutant in found if (mutant.kind, mutant.file) == (kind, file)])
        chosen.append(mutant)
        found = [other for other in found if (other.file, other.function) != (mutant.file, mutant.function)]
    return chosen


def importers(file: Path, where: Path) -> list[Path]:
    """Files under ``where`` that import a module."""
    *package, name = file.relative_to(SOURCE.parent).as_posix().removesuffix(".py").removesuffix("/__init__").split("/")
    within = r"\.".join(package)
    asked = re.compile(rf"from {within}\.{name}\b|from {within} import .*\b{name}\b")
    return [found for found in sorted(where.rglob("*.py")) if asked.search(read(found))]


def tests_of(file: Path, near_only: bool) -> tuple[list[Path], list[Path]]:
    """Test files of a module: the nearest, whose slow tests run too, and all, from near to far."""
    tests = sorted(TESTS.rglob("test_*.py"))

    def mirror(module: Path) -> Path:
        place = TESTS / module.parent.relative_to(SOURCE)
        return place if place.exists() else place.parent

    def nearest(module: Path) -> list[Path]:
        using = importers(module, TESTS)
        own = [test for test in tests if mirror(module) in test.parents and (module.stem in test.stem or test in using)]
        return sorted(own, key=lambda test: module.stem not in test.stem)

    folder = [test for test in tests if mirror(file) in test.parents]
    near = nearest(file) or folder
    every = [*near, *folder, *(test for test in tests if test.parent == mirror(file).parent != TESTS)]
    if near_only:
        return [], list(dict.fromkeys(every))
    every += (test for test in importers(file, TESTS) if test in tests)
    every += (
        test for user in importers(file, SOURCE) for test in [*nearest(user), *importers(user, TESTS)] if test in tests
    )
    every += (test for test in tests if re.search("from (contracts|referees)", read(test)))
    return near, list(dict.fromkeys(every))


def first_failure(tests: list[Path], which: str, place: Path) -> str:
    """The first test that fails on the sources in ``place``, or nothing."""
    environment = os.environ | {
        "PYTHONPATH": str(place / "src"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "examples"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-v", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    command += [f"--timeout={SECONDS[which]}", "--timeout-method=thread", "-m", which, *map(str, tests)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if run.returncode in (0, 5):  # 5: there is no such test
        return ""
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, flags=re.MULTILINE)
    begun = re.findall(r"^(tests/\S+::\S+)", run.stdout, flags=re.MULTILINE)
    return failed[0] if failed else f"{begun[-1] if begun else 'pytest'}, which took too long or crashed"


def killer(mutant: Mutant | None, near: list[Path], tests: list[Path]) -> str:
    """The test that sees a mutant, or nothing; without a mutant, a test that fails on the sources as they are."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src" / "predilect"
        shutil.copytree(SOURCE, copy)
        if mutant:
            (copy / mutant.file.relative_to(SOURCE)).write_text(mutant.source(), "utf-8")
        failed = first_failure(tests, "not slow", Path(folder))
        slow = first_failure(near, "slow", Path(folder)) if near and not failed else ""
        return failed or (slow and f"{slow} (slow)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing: tests/mutants.py says how.")
    parser.add_argument("rooms", nargs="*", default=ROOMS, metavar="ROOM[=N]", help="rooms, by default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=10, help="mutants of a room")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="mutants by their numbers")
    parser.add_argument("--near", action="store_true", help="run the tests of the folder and of the one above alone")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    options = parser.parse_args()
    rooms = [room.partition("=") for room in options.rooms]
    if unknown := [room for room, _, _ in rooms if not (SOURCE / room).is_dir()]:
        parser.error(f"{', '.join(unknown)}: no folder of src/predilect; such are {', '.join(ROOMS)}")
    mutants = [mutant for room, _, n in rooms for mutant in drawn(room, int(n or options.each), options.seed)]
    chosen = {number: mutant for number, mutant in enumerate(mutants, 1) if number in (options.only or [number])}
    tests = {mutant.file: tests_of(mutant.file, options.near) for mutant in chosen.values()}
    every = list(dict.fromkeys(test for _, some in tests.values() for test in some))
    if not options.list and (failed := killer(None, [], every)):
        sys.exit(f"{failed} fails on the sources as they are: mend that first.")
    counted = {"killed": 0, "survived": 0, "equivalent": 0}
    for number, mutant in chosen.items():
        name, _, what = str(mutant).partition(": ")
        print(f"{number:3} {name}:{mutant.node.lineno} [{mutant.kind}]\n      {what}", flush=True)
        if not options.list:
            began, why = time.monotonic(), EQUIVALENT.get(str(mutant), "")
            found = "" if why else killer(mutant, *tests[mutant.file])
            verdict = "killed" if found else "equivalent" if why else "survived"
            counted[verdict] += 1
            print(f"      {verdict}: {found or why} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(chosen)} mutants: {', '.join(f'{n} {verdict}' for verdict, n in counted.items())}")


if __name__ == "__main__":
    main()
