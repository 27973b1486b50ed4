"""The table of estimators is all that is said of a model outside its folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import predilect
from predilect import models
from predilect.models.registry import ENTRIES, Wanted, entry_of, estimator

SOURCE = Path(predilect.__file__).parent


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_names_an_estimator(entry):
    kind = getattr(predilect.models, entry.estimator)
    assert estimator(entry.name) is kind
    assert entry_of(kind) is entry
    assert entry_of(type("Mine", (kind,), {})) is entry
    for number in range(8):
        asked = Wanted(*(bool(number >> bit & 1) for bit in range(3)))
        assert entry.arguments(asked).keys() <= kind().get_params().keys()


def test_types_are_those_of_the_table():
    """What a type checker is told of ``predilect.models`` is what is there."""
    tree = ast.parse(Path(models.__file__).read_text(encoding="utf-8"))
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    found = {alias.name: statement.module for statement in typed.body for alias in statement.names}
    assert found == {entry.estimator: f"predilect.{entry.module}" for entry in ENTRIES}


def test_names_are_there_once():
    names = [name for entry in ENTRIES for name in (entry.name, *entry.also)]
    assert len(set(names)) == len(names)


def test_the_command_imports_no_estimator():
    classes = {entry.estimator for entry in ENTRIES if entry.name != "compressed"}
    for file in sorted((SOURCE / "cli").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert not found & classes, file
