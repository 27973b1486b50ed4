"""Processes forked off one that has imported everything, which takes longer than most of what they do."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerContext
from pathlib import Path

from predilect.models.registry import ENTRIES

# One process serves all tests, so it has what any of them needs.
IMPORTED = [
    "pandas", "predilect.cli.main", "predilect.cli.session", "predilect.papers.compression.model",
    "predilect.decisions.questions", "predilect.models.saving", "predilect.show.report.output", "typer.testing",
    *(f"predilect.{entry.module}" for entry in ENTRIES),
]  # fmt: skip


def forking() -> ForkServerContext:
    """What starts such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def execute(program: str, folder: Path, variables: dict[str, str], out: Path, error: Path) -> None:
    """Run a program as a new interpreter would in which the folder is on the path, and keep what it prints."""
    from numba.core import config

    for path, stream in ((out, 1), (error, 2)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream)
    os.environ |= variables
    config.reload_config()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # of a module that is edited within the second
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
