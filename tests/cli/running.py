"""Run the command inside the test, and look at what it leaves behind."""

from __future__ import annotations

import json
from functools import cache
from inspect import signature
from pathlib import Path

from typer import testing
from typer.testing import CliRunner

from predilect.cli.main import app
from predilect.show.report.output import MARKER

__all__ = ["ITEMS", "QUICK", "files_beside", "rank_json", "run"]

ITEMS = ["apple", "banana", "cherry", "[bold]date[/]", "elderberry"]
# Where a test is not about the verdict, which takes as long as everything else: what it would favour, without it.
QUICK = ("--personal", "yes")


# Click before 8.2 mixes the two streams unless it is told not to; later ones take no such argument.
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


# Typer makes the command anew at each call, which takes as long as many a test.
testing._get_command = cache(testing._get_command)


def run(*arguments: object):
    return CliRunner(**_APART).invoke(app, [str(argument) for argument in arguments])


def rank_json(*arguments: object) -> dict:
    ran = run("rank", *arguments, "--format", "json")
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def files_beside(path: Path) -> list[str]:
    """Names in a folder, hidden ones too but for the mark of results: what a failed run left behind."""
    return sorted(entry.name for entry in path.iterdir() if entry.name != MARKER)
