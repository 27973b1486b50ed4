"""Walks through polls: in one process, and with servers that are killed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

pytest.importorskip("fastapi", reason="needs predilect[live]")

from cases import MORE
from walks.poll import PollWalk


def walk(machine: type[PollWalk], n: int, n_steps: int) -> None:
    """Walk so often, at most so many steps each, the same way at each call."""
    told = settings(
        max_examples=n, stateful_step_count=n_steps, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=told)


def test_a_poll_keeps_its_word_whatever_is_done():
    walk(PollWalk, 12, 20)


@pytest.mark.slow
def test_a_poll_keeps_its_word_on_long_walks():
    walk(PollWalk, 100 * MORE, 40)
