"""What docstrings, comments and docs cite: pages with their sections, and names of code."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
# Where a page may lie that is cited by its name alone; the first that has it is meant.
PLACES = ("docs/math", "docs", ".", "benchmarks", "benchmarks/results")
ELSEWHERE = {"SOURCE.md", "board.md", "leaderboard.md"}  # pages that come with the data, and that commands write

NAME = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.md)\b(?:#[\w-]+)?")
LABEL = r"[A-Z]\.\d|[A-Z]?\d{1,2}[a-z]?(?:\.\d+)?"
NUMBERS = r"\d+(?:\.\d+)?(?:(?:,? and |, ?| to |-)\d+(?:\.\d+)?)*"
# What may stand after the name of a page, one after the other.
SEPARATOR = re.compile(r"\s*(?:,?\s*and\b|[,;(])?\s*")
PARTS = {
    "eq": re.compile(rf"eqs?\. ({NUMBERS})"),
    "step": re.compile(rf"steps? ({NUMBERS})"),
    "algorithm": re.compile(r"algorithm (\d+)"),
    "equation": re.compile(r"\((\d\.\d)\)"),
    "label": re.compile(r"(?:kernels )?\(([a-z]{1,4})\)"),
    "quoted": re.compile(r'"([^"]+)"'),
    "section": re.compile(rf"(?:sections? )?((?:{LABEL})(?:(?: to |-)\d+)?)(?![\w%]|\.\d)"),
}
COMMENT = re.compile(r"#.*(?:\.md|:`|\bT\d)")  # one that may cite something
ROLE = re.compile(r":(meth|class|func|mod|attr|data|exc|obj):`([^`]+)`")


@dataclass(frozen=True)
class Text:
    """A string, comment or page.

    Attributes
    ----------
    file : Path
    line : int
        Where it begins.
    text : str
    scope : tuple of str
        Classes around it, the innermost last.
    """

    file: Path
    line: int
    text: str
    scope: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file}:{self.line}"


def texts_of_code(file: Path) -> Iterator[Text]:
    """Docstrings and other strings of more than one word, and comments; neighbouring lines of a comment are one.

    Comments are looked for, which takes long, only where a file has one that may cite something.
    """
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)

    nodes: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while nodes:
        node, scope = nodes.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\s", node.value):
            yield Text(file, node.lineno, node.value, scope)
        scope = (*scope, node.name) if isinstance(node, ast.ClassDef) else scope
        nodes += [(child, scope) for child in ast.iter_child_nodes(node)]
    if not COMMENT.search(source):
        return
    block: list[tuple[int, str]] = []
    with tokenize.open(file) as lines:
        comments = [t for t in tokenize.generate_tokens(lines.readline) if t.type == tokenize.COMMENT]
    for token in comments:
        if block and token.start[0] != block[-1][0] + 1:
            yield Text(file, block[0][0], " ".join(said for _, said in block))
            block = []
        block.append((token.start[0], token.string.lstrip("# ")))
    if block:
        yield Text(file, block[0][0], " ".join(said for _, said in block))


def unresolved_pages(text: Text) -> list[str]:
    """Every page, section, equation or step that is cited and not there."""
    plain = " ".join(text.text.split())
    is_page = text.file.suffix == ".md"
    found = []
    for match in NAME.finditer(plain):
        name = match.group(1)
        if name.split("/")[-1] in ELSEWHERE or plain[: match.start()].endswith("``"):  # a file that something writes
            continue
        linked = is_page and plain[: match.start()].endswith("](")
        page = _page(name, text.file, linked)
        if page is None:
            found.append(f"{text}: there is no {name}")
            continue
        rest = plain[match.end() :]
        found += [f"{text}: {name} has no {what}" for what in _missing(page, rest[1:] if linked else rest)]
    return found


def _page(name: str, file: Path, linked: bool) -> Path | None:
    if linked:
        places = [file.parent]
    elif "/" in name:
        places = [ROOT, file.parent, ROOT / "benchmarks"]
    else:
        places = [ROOT / place for place in PLACES]
    return next((place / name for place in places if (place / name).is_file()), None)


def _missing(page: Path, rest: str) -> Iterator[str]:
    scope = ""  # the sections named so far
    first = re.match(r"[ ,]", rest)
    at = 0
    while first:
        separator = SEPARATOR.match(rest, at)
        assert separator is not None
        at = separator.end()
        parts = ((kind, pattern.match(rest, at)) for kind, pattern in PARTS.items())
        kind, part = next(((kind, part) for kind, part in parts if part), ("", None))
        if part is None:
            return
        at = part.end()
        here = scope or _text(page)
        if kind == "section":
            for label in _spread(part.group(1)):
                section = _sections(page).get(label)
                if section is None:
                    yield f"section {label}"
                scope += section or ""
        elif kind == "quoted":
            if _bare(part.group(1)) not in _bare(here):
                yield f"{part.group()} where it is cited"
        elif kind == "label":
            if f"({part.group(1)})" not in here:
                yield f"({part.group(1)}) where it is cited"
        elif kind == "equation":
            if not re.search(rf"\({re.escape(part.group(1))}\)$", _text(page), flags=re.MULTILINE):
                yield f"equation {part.group()}"
        elif kind == "algorithm":
            if part.group().casefold() not in here.casefold():
                yield f"{part.group()} where it is cited"
        else:
            known = _equations(here) if kind == "eq" else _steps(here)
            yield from (f"{kind} {label} where it is cited" for label in _spread(part.group(1)) if label not in known)


def _bare(text: str) -> str:
    return " ".join(re.sub(r"[*`\\]", "", text).casefold().split())


def _spread(numbers: str) -> list[str]:
    """Labels of "2 to 4", "8-10" or "17, 18 and 20"."""
    labels: list[str] = []
    for part in re.split(r",? and |, ?", numbers):
        ends = re.split(r" to |-", part)
        whole = len(ends) == 2 and all(end.isdigit() for end in ends)
        labels += [str(n) for n in range(int(ends[0]), int(ends[1]) + 1)] if whole else ends
    return labels


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def _sections(page: Path) -> dict[str, str]:
    """Text of each numbered section, and of each paragraph that begins with a number or a letter with one in bold."""
    text = _text(page)
    heads = list(re.finditer(rf"^(#+) +({LABEL}|[A-Z](?= ))?.*$", text, flags=re.MULTILINE))
    sections = {}
    for k, head in enumerate(heads):
        later = (next_.start() for next_ in heads[k + 1 :] if len(next_.group(1)) <= len(head.group(1)))
        if head.group(2):
            sections[head.group(2)] = text[head.start() : next(later, len(text))]
    for label in re.finditer(rf"\*\*({LABEL})(?:\.[^*]*)?\*\*", text):
        sections.setdefault(label.group(1), text[label.start() :].split("\n\n")[0])
    return sections


def _equations(text: str) -> set[str]:
    return {label for said in re.finditer(rf"\beqs?\. ({NUMBERS})", text, re.I) for label in _spread(said.group(1))}


def _steps(text: str) -> set[str]:
    return set(re.findall(r"(?:^|\*\*Step )(\d+)\.", text, flags=re.M)) | set(re.findall(r"\*\*(\d\.\d)\*\*", text))


def unresolved_names(text: Text) -> list[str]:
    """Every ``:meth:``, ``:class:``, ``:func:`` and the like of something that does not exist."""
    found = []
    for match in ROLE.finditer(text.text):
        target = match.group(2)
        target = target[target.index("<") + 1 : -1] if target.endswith(">") else target
        if not _exists(target.lstrip("~"), text):
            found.append(f"{text}: there is no {match.group()}")
    return found


def _exists(target: str, text: Text) -> bool:
    if target.split(".")[0] in ("predilect", "benchmarks", "referees", "contracts"):
        return _imported(target)
    module = _module_of(text.file)
    if module is None:  # a test, which is not to be imported twice
        names = {getattr(node, "name", None) for node in ast.walk(ast.parse(text.file.read_text(encoding="utf-8")))}
        return target.split(".")[-1] in names
    if _has(module, target):
        return True
    holder: Any = module
    for name in text.scope:
        holder = getattr(holder, name, None)
    return isinstance(holder, type) and any(_has(kind, target) for kind in _family(holder))


def _imported(target: str) -> bool:
    parts = target.split(".")
    for n in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        return _has(module, ".".join(parts[n:])) if n < len(parts) else True
    return False


def _has(holder: Any, target: str) -> bool:
    for name in target.split("."):
        if not hasattr(holder, name):
            documented = rf"^\s*(?:\w+, )*{name}\b[\w, ]* :"  # among the attributes of a class
            said = isinstance(holder, type) and re.search(documented, holder.__doc__ or "", re.MULTILINE)
            return bool(said) or name in getattr(holder, "__annotations__", {})
        holder = getattr(holder, name)
    return True


def _family(kind: type) -> list[type]:
    """A class and all that inherit from it: a mixin may speak of what these have."""
    return [kind, *(inner for child in kind.__subclasses__() for inner in _family(child))]


@cache
def _module_of(file: Path) -> ModuleType | None:
    for root in (ROOT / "src", ROOT):
        if file.is_relative_to(root / ("predilect" if root.name == "src" else "benchmarks")):
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            return sys.modules.get(name) or importlib.import_module(name)
    return None
