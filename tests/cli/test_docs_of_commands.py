"""Options that the docs name of a command are there, and those that a command needs are shown by its help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from cli.running import run
from predilect.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = typer.main.get_command(app).commands


def named(text: str) -> set[tuple[str, str]]:
    """(command, option) of all commands in a page: on a line of code, or between backticks."""
    found = set()
    pieces = [*re.findall(r"`([^`\n]*predilect [^`\n]*)`", text)]
    pieces += re.findall(r"^(?: {4}|\$ )(.*predilect .*)$", text, re.M)
    for piece in pieces:
        for command, rest in re.findall(r"predilect ([a-z-]+)([^|&;]*)", piece):
            if command in COMMANDS:
                found |= {(command, option) for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_a_page_names_are_there(page):
    for command, option in sorted(named(page.read_text())):
        known = {flag for one in COMMANDS[command].params for flag in (*one.opts, *one.secondary_opts)}
        assert option in known, f"{page.name}: predilect {command} has no {option}"


def test_the_pages_do_name_options():
    assert len(set().union(*(named(page.read_text()) for page in PAGES))) > 20


@pytest.mark.parametrize(("command", "option"), [("utilities", "--attributes"), ("rank", "--items")])
def test_help_shows_what_the_command_is_about(command, option):
    assert re.search(rf"^│ {option} ", run(command, "--help").stdout, re.M)
