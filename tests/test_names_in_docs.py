"""Names of Python that the docs use are there: of the package, of fitted models, of arguments."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import predilect
from predilect import data, evaluation, models, plot
from predilect.models.registry import ENTRIES, estimator

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "math" not in path.parts)]
MODELS = [estimator(entry.name) for entry in ENTRIES] + [models.CompressedModel]
PUBLIC: dict[str, Any] = {
    name: getattr(room, name)
    for room in (data, evaluation, models, plot, predilect)
    for name in getattr(room, "__all__", [])
}
# What pages call a fitted model.
FITTED = ("model", "small")
FILES = ("model.json",)
# Attributes of fitted models end in an underscore, and are set where they are learned.
SOURCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "predilect").rglob("*.py"))


def pieces(text: str) -> Iterator[str]:
    """Code of a page: Python in fences, and what stands between backticks in a line."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S):
        if language == "python":
            yield re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.M)
    words = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    yield from (word for word in words if word not in FILES)


def trees(text: str) -> Iterator[ast.AST]:
    """The pieces of a page that are Python."""
    for piece in pieces(text):
        try:
            yield ast.parse(piece)
        except SyntaxError:
            continue


def wrong(text: str) -> Iterator[str]:
    """Names of a page that are not there."""
    for piece in pieces(text):
        for path in re.findall(r"\bpredilect((?:\.[A-Za-z_]\w*)+)", piece):
            if not is_there(path[1:].split(".")):
                yield f"predilect{path}"
    for tree in trees(text):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "predilect":
                path = (node.module or "").split(".")[1:]
                yield from (f"{node.module}.{one.name}" for one in node.names if not is_there([*path, one.name]))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in FITTED:
                is_known = any(hasattr(model, node.attr) for model in MODELS) or is_fitted(node.attr)
                yield from () if is_known else (f"model.{node.attr}",)
            if isinstance(node, ast.Call):
                yield from wrong_arguments(node)


def is_there(path: list[str]) -> bool:
    """Whether a dotted name of the package leads somewhere."""
    found: Any = predilect
    for place, name in enumerate(path):
        if not hasattr(found, name):
            try:
                found = importlib.import_module(".".join(["predilect", *path[: place + 1]]))
                continue
            except ImportError:
                return False
        found = getattr(found, name)
    return True


def is_fitted(name: str) -> bool:
    """Whether it is an attribute that a fit sets."""
    return name.endswith("_") and re.search(rf"(\.|^ +|\"){name}\b", SOURCE, flags=re.M) is not None


def wrong_arguments(call: ast.Call) -> Iterator[str]:
    """Named arguments of a call that what is called does not take."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in FITTED:
        called = [getattr(model, function.attr) for model in MODELS if hasattr(model, function.attr)]
    elif isinstance(function, ast.Name) or ast.unparse(function).split(".")[0] in ("predilect", "plot"):
        name = function.id if isinstance(function, ast.Name) else function.attr
        called = [PUBLIC[name]] if name in PUBLIC else []
    else:
        called = []
    signatures = [inspect.signature(one) for one in called if callable(one)]
    takes_any = any(one.kind is one.VAR_KEYWORD for signature in signatures for one in signature.parameters.values())
    if signatures and not takes_any:
        known = {name for signature in signatures for name in signature.parameters}
        yield from (f"{ast.unparse(call)}: {one.arg}" for one in call.keywords if one.arg and one.arg not in known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_a_page_are_there(page):
    assert sorted(set(wrong(page.read_text(encoding="utf-8")))) == []


def test_a_name_that_is_not_there_is_found():
    page = (
        "`predilect.Populations()` `model.ranks()` `model.rank(scal='elo')` `model.suggest('ann', size=2)`\n"
        "`model.comparisons_` `model.comparison_` `predilect.evaluation.judge` `Population(basis='items', tols=1)`\n"
        "```python\nfrom predilect.evaluation import judges\nmodel.report('x', names=True)\n```\n"
    )
    assert sorted(wrong(page)) == [
        "Population(basis='items', tols=1): tols", "model.comparison_", "model.rank(scal='elo'): scal", "model.ranks",
        "model.report('x', names=True): names", "model.suggest('ann', size=2): size", "predilect.Populations",
        "predilect.evaluation.judges",
    ]  # fmt: skip
