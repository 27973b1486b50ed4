"""Processes forked off one that has imported everything, which takes longer than most of what they do."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

from predilect.models.registry import ENTRIES

# One process serves all tests, so it has what any of them needs.
IMPORTED = [
    "pandas", "predilect.cli.main", "predilect.cli.session", "predilect.compression.model",
    "predilect.decisions.queries", "predilect.models.saving", "predilect.report.output", "typer.testing",
    *(f"predilect.{entry.module}" for entry in ENTRIES),
]  # fmt: skip


def forking() -> ForkServerContext:
    """What starts such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context
