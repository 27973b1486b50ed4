"""The documentation site, made by ``make docs``. Its sources are found from the root, so that links hold everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import predilect
from predilect._base.stored import PART, ArraySpec, classes_of, stored_in
from predilect.cli.main import app
from predilect.data.read.options import OPTIONS

project = "Predilect"
author = "The Predilect developers"
version = release = predilect.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/**", "benchmarks/*.md", "benchmarks/results/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
]  # fmt: skip
exclude_patterns = [".*", "build", "dist", "src", "tests"]
highlight_language = "text"
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False  # names that share a description stay together
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Predilect"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_show_sourcelink = html_show_copyright = False


def commands() -> str:
    """What the program says of itself and of each command, in Markdown."""
    program = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    parts = []
    for name, command in get_command(app).commands.items():
        for words in [[name], *([name, one] for one in getattr(command, "commands", ()))]:
            told = program.invoke(app, [*words, "--help"], prog_name="predilect").output
            parts.append(f"## {' '.join(words)}\n\n```text\n{told.strip()}\n```\n")
    told = program.invoke(app, ["--help"], prog_name="predilect").output
    return "\n".join([*parts, f"## Options of every command\n\n```text\n{told.strip()}\n```\n"])


def options() -> str:
    """All that can be said of how a file is read, as a table in Markdown."""
    lines = ["| say | which |", "|---|---|"]
    for one in OPTIONS:
        value = {"column": "COLUMN", "columns": "A,B", "word": "WORD", "words": "WORD", "yes": "yes"}.get(one.form, "")
        values = ", ".join(f"`{word}`" for word in (*one.values, "no" * (one.form == "yes")) if word)
        said = one.help + (f" One of {values}." if one.values else " Or `no`." if values else "")
        lines.append(f"| `{'-c' if one.is_column else '--read'} {one.name}={value or 'VALUE'}` | {said} |")
    return "\n".join(lines)


def arrays() -> str:
    """Every array that a saved population may have, as a table in Markdown."""

    def rows(kind: type, path: str) -> Iterator[str]:
        for name, (hint, how) in stored_in(kind).items():
            at = path + name.strip("_")
            if isinstance(how, ArraySpec):
                shape = " or ".join(" × ".join(one.split()) for one in how.shape.split("|"))
                left_out = "; may be absent" if how.optional else ""
                yield f"| `{at}` | {shape} | {how.dtypes.split('|')[0]} | {how.wanted}{left_out} |"
            elif how is PART:
                for part in classes_of(hint):
                    yield from rows(part, f"{at}.")

    found = dict.fromkeys(rows(predilect.Population, ""))  # parts that personal and pooled models share come once
    return "\n".join(["| array | shape | type | what is checked |", "|---|---|---|---|", *found])


MADE = {
    "docs/model-format": ("<!-- arrays -->", arrays),
    "docs/reference/commands": ("<!-- commands -->", commands),
    "docs/reference/reading": ("<!-- options -->", options),
}


def _put_what_is_made(_: Any, page: str, source: list[str]) -> None:
    if page in MADE:
        place, make = MADE[page]
        source[0] = source[0].replace(place, make())


def setup(sphinx: Any) -> None:
    """Fill the pages of commands and of options before they are read."""
    sphinx.connect("source-read", _put_what_is_made)
