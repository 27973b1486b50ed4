"""What importing costs, and that rooms import one way: a room may use those above it, never those below."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import predilect
from predilect.models.registry import ENTRIES
from syntax import statements

SOURCE = Path(predilect.__file__).parent
ROOMS = (
    "data", "inference", "decisions", "evaluation", "show", "parts", "models", "papers", "choice", "live", "cli",
)  # fmt: skip
WINGS = ("papers", "choice", "live")  # which the rest does without
# What stands below all rooms, names that users know of what lies in one, and data files.
GROUND = {"errors", "_base", "_version"}
FRONTS = {"__init__", "__main__", "compression", "gaussian", "kernels", "plot"}
DATA = {"examples"}
# Doors upwards, which are opened when something behind them is first used: from where, to where.
DOORS = {
    ("decisions/__init__", "predilect.choice.designs"),
    ("evaluation/__init__", "predilect.choice.attributes"),
    ("models/shown", "predilect.plot"),
    ("data/features", "predilect.inference.gaussian.kernels"),  # the prior covariance of features
}
# Models, each a folder of its own, and who may open them besides; who is a setting of another.
MODELS = {
    f"{path.parent.parent.name}.{path.parent.name}"
    for room in ("models", "papers", "choice") for path in SOURCE.glob(f"{room}/*/__init__.py")
} - {"papers.compression"}  # fmt: skip
MODEL_DOORS = {*FRONTS, "cli", "models/registry"}
SETTINGS = {"papers.gppl": {"papers.joint"}, "papers.baselines": {"papers.gppl", "papers.joint"}}


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports(file: Path) -> dict[bool, frozenset[str]]:
    """What of the package a file imports, wherever in it that stands: when it runs, and for types alone (True)."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    only_for_types = {
        id(inner)
        for node in statements(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in statements(statement)
    }
    names: dict[bool, set[str]] = {False: set(), True: set()}
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names[id(node) in only_for_types] |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names[id(node) in only_for_types] |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {when: frozenset(n for n in found if n.split(".")[0] == "predilect") for when, found in names.items()}


def imported(file: Path) -> frozenset[str]:
    """What a file imports when it runs."""
    return imports(file)[False]


FILES = sorted(file for file in SOURCE.rglob("*.py") if room_of(file) not in DATA)


def test_every_folder_is_a_room_that_the_rule_knows():
    modules = {room_of(file) for file in FILES}
    assert modules - GROUND - FRONTS <= set(ROOMS)
    assert len(FILES) > 40


@pytest.mark.slow
def test_rooms_import_one_way():
    wrong: list[tuple[str, str]] = []
    used: set[tuple[str, str]] = set()
    for file in FILES:
        room = room_of(file)
        if room in FRONTS:
            continue
        place = file.relative_to(SOURCE).with_suffix("").as_posix()
        allowed = GROUND | {"__version__"} | (set(ROOMS[: ROOMS.index(room) + 1]) if room in ROOMS else set())
        wrong += [
            (place, name) for name in imported(file)
            if name.split(".")[1] not in allowed and not any(
                place == of and name.startswith(to) and used.add((of, to)) is None for of, to in DOORS
            )
        ]  # fmt: skip
    assert not wrong
    assert used == DOORS


def modules_of(file: Path) -> set[str]:
    """Modules of the package that a file names in any import, those for types alone among them."""
    names = imports(file)[False] | imports(file)[True]
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & MODULES.keys()


MODULES = {
    ".".join(("predilect", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): file
    for file in SOURCE.rglob("*.py")
}


@pytest.mark.slow
def test_no_circle_of_imports_not_even_for_types():
    """A file is taken away once all that it imports are; what is left at the end goes round in circles."""
    left = {name: modules_of(file) - {name} for name, file in MODULES.items()}
    assert sum(map(len, left.values())) > 500
    while free := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert not left


def model_of(name: str) -> str | None:
    """The model that a module of the package belongs to."""
    found = ".".join(name.split(".")[1:3])
    return found if found in MODELS else None


def test_only_doors_open_models():
    """No model imports another, but for those that only set its arguments, and nothing else imports one."""
    wrong = []
    for file in FILES:
        place = file.relative_to(SOURCE).with_suffix("")
        if {room_of(file), place.as_posix()} & MODEL_DOORS:
            continue
        own = model_of(".".join(("predilect", *place.parts)))
        may = {None, own} | SETTINGS.get(own or "", set())
        wrong += [(str(place), name) for name in imported(file) if model_of(name) not in may]
    assert not wrong


def test_the_models_are_there():
    papers = {f"papers.{name}" for name in ("gppl", "crowd", "collaborative", "joint", "gaspk", "baselines")}
    assert {"models.population", "choice.mixed_logit"} | papers == MODELS
    assert model_of("predilect.papers.gaspk.em.fit.fit") == "papers.gaspk"
    assert model_of("predilect.papers.baselines.hierarchical") == "papers.baselines"
    assert model_of("predilect.models.registry.load") is None
    assert model_of("predilect.models") is None


def without_model(name: str, place: Path) -> set[str]:
    """Copy the package to ``place`` without a folder and its entries of the table; the estimators it had."""
    package = place / "predilect"
    shutil.copytree(SOURCE, package)
    shutil.rmtree(package.joinpath(*name.split(".")))
    modules = [entry.module for entry in ENTRIES if f"{entry.module}.".startswith(f"{name}.")]
    had = {entry.estimator for entry in ENTRIES if entry.module in modules}
    assert had or name == "live"
    table = package / "models" / "registry.py"
    text = table.read_text(encoding="utf-8")
    gone = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and {f"'{module}'" for module in modules} & {ast.unparse(argument) for argument in node.args}
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    kept = [line for number, line in enumerate(text.splitlines(), 1) if number not in gone]
    table.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return had


EVERYTHING = """
import importlib, pkgutil, predilect
if {whole}:
    for module in pkgutil.walk_packages(predilect.__path__, "predilect."):
        if not module.name.endswith(("__main__", "predilect.gaussian")):
            importlib.import_module(module.name)
for name in predilect.__all__:
    getattr(predilect, name)
assert not set(predilect.__all__) & {had}, "the model is still there"
answers = {{
    "user": ["ann", "ann", "bob", "bob", "cas", "cas"], "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
    "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
    "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
}}
model = predilect.Population().fit(answers)
assert model.rank()["item"].to_list() == ["tea", "milk", "juice"]
if {whole}:
    assert model.compress(2).kept("bob") == ["milk", "tea"]
print(predilect.__file__)
import sys
from predilect.__main__ import main
sys.argv = ["predilect", "rank", "votes.csv", "--format", "json"]
main()
"""


@pytest.mark.slow  # a copy of the package, and an interpreter, for each
@pytest.mark.parametrize(
    "name", ["papers.gaspk", "papers.crowd", "papers.collaborative", "papers.baselines", *WINGS]
)  # fmt: skip
def test_the_rest_stands_without_a_model_or_a_wing(name, tmp_path):
    had = without_model(name, tmp_path / "src")
    (tmp_path / "votes.csv").write_text(
        "user,left,right,winner\nann,tea,milk,tea\nbob,milk,juice,milk\ncas,tea,juice,tea\n", encoding="utf-8"
    )
    found = subprocess.run(
        [sys.executable, "-c", EVERYTHING.format(had=had, whole=name not in WINGS)], capture_output=True, text=True,
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "src")}, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    place, _, ranked = found.stdout.partition("\n")
    assert place.startswith(str(tmp_path))
    board = json.loads(ranked)["board"]
    assert [row["item"] for row in board] == ["tea", "milk", "juice"]


def test_the_walk_sees_imports_of_every_kind(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "import predilect.cli\nfrom predilect import show\nfrom predilect.models.x import y\nimport numpy\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from predilect.service import z\n"
        "def f():\n    from predilect.evaluation import metrics\n"
    )
    expected = {"predilect.cli", "predilect.show", "predilect.models.x.y", "predilect.evaluation.metrics"}
    assert imported(file) == expected


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after running ``code``."""
    program = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_takes_nothing_heavy():
    loaded = modules_after("import predilect")
    assert "predilect" in loaded
    assert not loaded & {"numba", "sklearn", "pandas", "scipy", "polars", "pyarrow", "matplotlib", "typer", "rich"}


@pytest.mark.slow
def test_the_default_model_is_imported_without_what_a_fit_to_a_frame_may_do_without():
    loaded = modules_after("from predilect import Population")
    assert "predilect.inference.people.posterior" in loaded
    others = ("sklearn", "pandas", "pyarrow", "matplotlib", "typer", "rich", "asyncio")
    unused = ("scipy.optimize", "scipy.stats", "scipy.spatial", "scipy.sparse.csgraph", "scipy.sparse.linalg")
    rooms = ("evaluation", "show.report", "plot", "parts", *WINGS, "cli", "inference.factors", "data.read.readers")
    work = (
        "data.read.recognise",
        "inference.likelihoods.tabulated",
        "models.population.train",
        "models.population.maximisation",
        "models.population.search.selection",
    )
    assert not loaded & {*others, *unused, *(f"predilect.{name}" for name in rooms + work)}
    assert len([name for name in loaded if name.startswith("predilect.")]) < 120


@pytest.mark.slow
def test_names_of_lazy_rooms_are_there_whatever_was_imported_before():
    forget = "for name in [name for name in sys.modules if name.startswith('predilect')]: del sys.modules[name]"
    names = "from predilect.data import read, read_frame, read_item_map\nfrom predilect.decisions import design"
    there = "assert all(map(callable, (read, read_frame, read_item_map, design)))"
    firsts = ("predilect.data.read.readers", "predilect.choice.designs", "predilect.data.read")
    modules_after("import sys\n" + "\n".join(f"import {first}\n{names}\n{there}\n{forget}" for first in firsts))


@pytest.mark.slow
def test_a_fit_needs_nothing_that_draws_or_reads_commands():
    answers = "{'user': ['u', 'v'], 'left': ['p', 'q'], 'right': ['q', 'r'], 'winner': ['p', 'q']}"
    fit = f"predilect.Population().fit({answers}).rank()"
    assert not modules_after(f"import predilect\n{fit}") & {"matplotlib", "typer"}


def test_the_front_door_names_what_there_is():
    assert set(dir(predilect)) == set(predilect.__all__)
    for name in predilect.__all__:
        assert getattr(predilect, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        predilect.Nothing  # noqa: B018  to ask for it is the test


def test_no_room_hides_a_name_of_the_front_door():
    rooms = {room_of(file) for file in FILES}
    assert not rooms & set(predilect.__all__) - {"__version__"}
