"""Two servers of one poll: each sees what the other keeps, and one goes on when the other is killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from live.polls import made
from live.test_kept import url  # noqa: F401  the databases
from predilect.live import Poll
from tolerances import ITERATIVE

_AT_MOST = 60.0  # seconds until a server is up, or has read something, on a machine that is busy


@contextmanager
def server(url: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:  # noqa: F811
    """A process that serves, and a client of its API."""
    command = [sys.executable, "-m", "predilect", "poll", "serve", url, "--port", "0", "--stop-after", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            address, _, name = line.split()[2].rstrip(",").rpartition("/p/")
            with httpx.Client(base_url=f"{address}/api/polls/{name}", timeout=_AT_MOST, verify=False) as client:
                until(lambda: is_up(client), 0.1)
                yield process, client
        finally:
            process.kill()
            process.stdout.read()


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/board").status_code == 200
    except httpx.ConnectError:
        return False


def until(is_so: Any, pause: float) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < _AT_MOST
        time.sleep(pause)
    return time.monotonic() - began


class Person:
    """A participant, who may go from one server to the other."""

    def __init__(self, client: httpx.Client, number: int) -> None:
        self.headers = {
            "authorization": "Bearer " + client.post("/participants", json={"consent": True}).json()["secret"]
        }
        self.source, self.told = random.Random(number), dict[int, int]()

    def answer(self, client: httpx.Client, n: int) -> None:
        """Answer some questions; the later in the list the better an item is."""
        for _ in range(n):
            (question,) = client.post("/questions", headers=self.headers).raise_for_status().json()
            best = max(item["number"] + self.source.gauss(0.0, 1.0) for item in question["items"])
            chosen = min(question["items"], key=lambda item: abs(item["number"] - best))["number"]
            said = {"shown": question["shown"], "answer": chosen, "key": str(question["shown"])}
            kept = client.post("/answers", headers=self.headers, json=said).raise_for_status().json()
            self.told[kept["answer"]] = question["shown"]


def scores(client: httpx.Client) -> dict[str, tuple[float, int]]:
    return {row["item"]: (row["mean"], row["n"]) for row in client.get("/board").raise_for_status().json()}


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_one_server_sees_what_the_other_keeps_and_goes_on_without_it(url):  # noqa: F811
    made(url, strategy="board", public=True).disconnect()
    with server(url) as (one, first), server(url) as (_, second):
        people = [Person((first, second)[k % 2], k) for k in range(6)]
        for k, person in enumerate(people):
            person.answer((second, first)[k % 2], 3)  # not where they joined
        n_rows = 2 * sum(len(person.told) for person in people)
        until(lambda: sum(n for _, n in scores(second).values()) == n_rows, 0.05)
        until(lambda: sum(n for _, n in scores(first).values()) == n_rows, 0.05)
        # The boards are alike once both have taken up the same refit, which one of them has had made.
        until(lambda: alike(scores(first), scores(second)), 0.2)
        one.send_signal(signal.SIGKILL)
        one.wait()
        for person in people:
            person.answer(second, 2)
        until(lambda: sum(n for _, n in scores(second).values()) == n_rows + 4 * len(people), 0.05)
    with Poll.open(url, background=False) as poll:
        kept = {change.sequence: change.answer.shown for change in poll.log.state.changes}
        assert kept == {answer: shown for person in people for answer, shown in person.told.items()}
        assert len(set(kept.values())) == len(kept)


def alike(one: dict[str, tuple[float, int]], other: dict[str, tuple[float, int]]) -> bool:
    return all(abs(one[item][0] - other[item][0]) < ITERATIVE and one[item][1] == other[item][1] for item in one)
