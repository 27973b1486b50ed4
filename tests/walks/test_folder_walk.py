"""A walk through a folder of results and the command finds nothing wrong."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from cases import MORE
from walks.folder import FolderWalk

QUICK = settings(
    max_examples=5, stateful_step_count=4, derandomize=True, deadline=None, database=None, report_multiple_bugs=False,
    phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.timeout(600)  # where it fails, to find the smallest walk that does
def test_a_short_walk_through_the_command(monkeypatch):
    monkeypatch.setattr("predilect.report.folder.can_plot", lambda: False)  # pictures would take as long as the rest
    run_state_machine_as_test(FolderWalk, settings=QUICK)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_long_walks_through_the_command():
    run_state_machine_as_test(FolderWalk, settings=settings(QUICK, max_examples=50 * MORE, stateful_step_count=12))
