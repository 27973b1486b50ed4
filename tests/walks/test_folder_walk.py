"""A walk through a folder of results and the command finds nothing wrong."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from cases import MORE
from walks.folder import FolderWalk

QUICK = settings(
    max_examples=8, stateful_step_count=6, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def test_a_short_walk_through_the_command():
    run_state_machine_as_test(FolderWalk, settings=QUICK)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_long_walks_through_the_command():
    run_state_machine_as_test(FolderWalk, settings=settings(QUICK, max_examples=60 * MORE, stateful_step_count=15))
