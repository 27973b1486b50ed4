"""Walks through polls: in one process, and through two servers that are killed."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

pytest.importorskip("fastapi", reason="needs predilect[live]")

from cases import MORE
from live.polls import made
from walks.poll import PollWalk
from walks.poll_ways import Servers


def walk(machine: type[PollWalk], n: int, n_steps: int) -> None:
    """Walk so often, at most so many steps each, the same way at each call."""
    told = settings(
        max_examples=n, stateful_step_count=n_steps, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=told)


@pytest.mark.slow
def test_a_poll_keeps_its_word_whatever_is_done():
    walk(PollWalk, 4, 20)


@pytest.mark.slow
def test_a_poll_keeps_its_word_on_many_walks():
    walk(PollWalk, 80 * MORE, 40)


class ServedWalk(PollWalk):
    """A walk by the API of one process and the pages of another, with two more polls and commands beside them."""

    servers: Servers
    can_wait = False  # their clocks are their own
    goes_back = False  # within two seconds it is a second click, which changes nothing

    def place(self):
        name = f"walk-{secrets.token_hex(4)}"
        return self.servers.folder / f"{name}.db", name

    def serve(self):
        self.restarts["server"] = self.servers
        return self.servers.of(0), self.servers.of(1)

    def look_at(self, what, way):
        if what != "boards of processes":  # a worker may be about to make a refit that the others take up later
            super().look_at(what, way)


@pytest.mark.slow
def test_a_poll_keeps_its_word_through_servers_that_are_killed(tmp_path):
    made(tmp_path, name="first").disconnect()
    ServedWalk.servers = Servers(tmp_path)
    try:
        walk(ServedWalk, 6 * MORE, 25)
    finally:
        ServedWalk.servers.end()
