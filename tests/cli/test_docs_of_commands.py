"""Options that the docs name of a command are there, and those that a command needs are shown by its help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.core
import typer.main

from cli.running import run
from predilect.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = typer.main.get_command(app)
COMMANDS = PROGRAM.commands
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
COMMON = {flag for one in PROGRAM.params for flag in one.opts} | {"--help"}  # options of every command


def named(text: str) -> set[tuple[str, str]]:
    """(command, option) of all commands in a page: on a line of code, or between backticks."""
    found = set()
    pieces = [*re.findall(r"`([^`\n]*predilect [^`\n]*)`", text)]
    pieces += re.findall(r"^(?: {4}|\$ )(.*predilect .*)$", text, re.M)
    for block in re.findall(r"^```(?:bash|console)\n(.*?)^```$", text, re.M | re.S):
        pieces += [line for line in block.splitlines() if line.removeprefix("$ ").startswith("predilect ")]
    for piece in pieces:
        for command, rest in re.findall(r"predilect ([a-z-]+)([^|&;]*)", piece):
            if command in COMMANDS:
                found |= {(command, option) for option in OPTION.findall(rest)}
    for command, row in re.findall(r"^\| `predilect ([a-z-]+)[^`]*` \|(.*)$", text, re.M):  # what a table has beside it
        found |= {(command, option) for option in OPTION.findall(row)}
    return found


def alone(text: str) -> set[str]:
    """Options that a page names between backticks, of whatever command."""
    words = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return {option for word in words if word.startswith("-") for option in OPTION.findall(word)}


def flags_of(command: str) -> set[str]:
    """Options of a command, and of those within it."""
    every = [COMMANDS[command], *within(command).values()]
    return {flag for each in every for one in each.params for flag in (*one.opts, *one.secondary_opts)} | COMMON


def within(command: str) -> dict[str, typer.core.TyperCommand]:
    """Commands that a command consists of, by their names."""
    return getattr(COMMANDS[command], "commands", {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_a_page_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    lost = [f"predilect {command} {option}" for command, option in named(text) if option not in flags_of(command)]
    lost += alone(text) - set().union(*map(flags_of, COMMANDS))
    assert sorted(lost) == []


def test_an_option_that_is_not_there_is_found_wherever_it_stands():
    page = (
        "`predilect ask DIR --users ann` and `--nothing`, `--of A`\n\n```bash\npredilect rank votes.csv --tops 3\n```\n"
        "\n    predilect check votes.csv --jsons\n\n| `predilect decide DIR` | acts | `--default` `--costs` |\n"
    )
    lost = {(command, option) for command, option in named(page) if option not in flags_of(command)}
    assert lost == {("ask", "--users"), ("rank", "--tops"), ("check", "--jsons"), ("decide", "--costs")}
    assert alone(page) == {"--nothing", "--of", "--default", "--costs"}


def test_the_pages_do_name_options():
    assert len(set().union(*(named(page.read_text()) for page in PAGES))) > 20


def test_few_commands_with_few_options_of_one_meaning_each():
    """At most fourteen commands and twelve options each, all of them shown; those of every command stand apart."""
    assert len(COMMANDS) <= 14
    metavars: dict[str, set[str]] = {}
    inner = {(name, part): one for name in COMMANDS for part, one in within(name).items()}
    for words, command in ({(name,): one for name, one in COMMANDS.items()} | inner).items():
        options = [one for one in command.params if one.param_type_name == "option"]
        assert len(options) <= 12, words
        text = run(*words, "--help").stdout
        for one in options:
            assert not one.hidden
            assert re.search(rf"^│ \*?\s*{one.opts[0]} ", text, re.M), (words, one.opts)
            metavars.setdefault(one.opts[0], set()).add(str(one.metavar))
    # Where a word takes two forms, they are of one thing: a folder or a page is where results go.
    twice = {flag: forms for flag, forms in metavars.items() if len(forms) > 1}
    assert twice == {"--out": {"DIR", "FILE", "PAGE"}, "--segment": {"COLUMN", "COLUMN=VALUE"}}


def test_options_of_every_command_may_stand_anywhere(few_votes):
    before, after = run("-q", "--format", "json", "check", few_votes), run("check", few_votes, "--format=json", "-q")
    assert before.stdout == after.stdout
    assert before.stdout.startswith("{")
