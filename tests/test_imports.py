"""What importing costs, and that rooms import one way: a room may use those above it, never those below."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import predilect

SOURCE = Path(predilect.__file__).parent
ROOMS = (
    "likelihoods", "gaussian", "data", "latent", "people", "factors", "decisions", "evaluation", "models", "compress",
    "report", "cli",
)  # fmt: skip
# Not rooms: what stands below all of them, and data files.
GROUND = {"errors", "_advice", "_compile", "_json", "_plots", "_replace", "_text", "progress", "shards"}
DATA = {"examples"}


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file: Path) -> set[str]:
    """Modules of the package that a file imports when it runs, wherever in the file that stands."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "predilect"}


FILES = sorted(file for file in SOURCE.rglob("*.py") if room_of(file) not in DATA)


def test_every_folder_is_a_room_that_the_rule_knows():
    modules = {room_of(file) for file in FILES}
    assert modules - GROUND - {"__init__", "__main__"} <= set(ROOMS)
    assert len(FILES) > 40


@pytest.mark.parametrize("file", [pytest.param(file, id=str(file.relative_to(SOURCE))) for file in FILES])
def test_rooms_import_one_way(file):
    room = room_of(file)
    if room in ("__init__", "__main__"):  # the front door, which opens every room
        return
    allowed = GROUND | {"__version__"} | (set(ROOMS[: ROOMS.index(room) + 1]) if room in ROOMS else set())
    for name in imported(file):
        assert name.split(".")[1] in allowed, f"{room} must not import {name}"


def test_the_walk_sees_imports_of_every_kind(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "import predilect.cli\nfrom predilect import report\nfrom predilect.models.x import y\nimport numpy\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from predilect.service import z\n"
        "def f():\n    from predilect.evaluation import metrics\n"
    )
    expected = {"predilect.cli", "predilect.report", "predilect.models.x.y", "predilect.evaluation.metrics"}
    assert imported(file) == expected


def modules_after(code: str) -> set[str]:
    """Names of the top-level packages that a fresh interpreter holds after running ``code``."""
    program = f"{code}\nimport sys\nprint(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_takes_nothing_heavy():
    loaded = modules_after("import predilect")
    assert "predilect" in loaded
    assert not loaded & {"numba", "sklearn", "pandas", "scipy", "polars", "pyarrow", "matplotlib", "typer", "rich"}


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
