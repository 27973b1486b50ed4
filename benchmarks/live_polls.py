"""A live poll under load, on one computer and on 127.0.0.1 alone: times of answers over HTTP, of asking, of starting.

    python -m benchmarks.live_polls load --people 300 --seconds 60 [--pause .6] [--url postgresql://...] [--processes 2]
    python -m benchmarks.live_polls calls [--large]
    python -m benchmarks.live_polls start [--large]
    python -m benchmarks.live_polls seen [--url postgresql://...]
    python -m benchmarks.live_polls crowd [--people 300] [--seconds 900]

``load``: participants answer over HTTP, each ``--pause`` seconds after their answer before was sent, or as soon as the
next question is there if that is later: 1.7 for 176 a second of 300 people, .6 for as many as the server takes. Refits
run, and the client, on the same processors; nothing may be lost or doubled. ``calls``: 200 items, 5 000 people, 50 000
answers: processor time of ``ask``, in the thread that calls it and in all threads of the process, which move the board
and weigh the pairs meanwhile; time of asking by the clock, and of a durable ``tell``. ``start``: time to open that poll
from its log and its last refit. ``--large``: 1 000 items, 10 000 people, 100 000 answers. ``seen``: time from an answer
that one process writes until another one has it. ``crowd``: participants on the pages at human pace, and a server that
is killed twice (``live_crowd.py``); writes ``results/live_polls.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.live_crowd import crowd as crowd_of_visitors
from benchmarks.live_crowd import page
from benchmarks.store import write_whole
from predilect.live import Poll
from predilect.live.answers import user_of
from predilect.live.log import THEMSELVES, Log, New
from predilect.live.refits import Refitter
from predilect.live.tables import Database

_COMING = 5.0  # seconds in which participants come
_N_ITEMS = 200
_FULL, _LARGE = (_N_ITEMS, 5000, 50_000), (1000, 10_000, 100_000)  # items, people, answers


class Person:
    """A participant over one connection that is kept open."""

    def __init__(self, port: int, poll: str) -> None:
        self.port, self.path = port, f"/api/polls/{poll}"
        self.secret = ""
        self.taken: list[float] = []
        self.told: list[tuple[int, int]] = []
        self.errors: list[str] = []

    async def call(self, path: str, said: Any) -> Any:
        """Send a request, and read the answer."""
        body = b"" if said is None else json.dumps(said).encode()
        head = f"POST {self.path}{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\n" * bool(body)
        head += f"Authorization: Bearer {self.secret}\r\n" * bool(self.secret)
        self.out.write(head.encode() + b"\r\n" + body)
        await self.out.drain()
        answer = (await self.into.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", answer)
        content = await self.into.readexactly(int(length[1]) if length else 0)
        if not 200 <= int(answer.split()[1]) < 300:
            self.errors.append(f"{answer.split()[1]} {content[:200]!r}")
            return None
        return json.loads(content)

    async def take_part(self, begins: float, ends: float, pause: float, source: random.Random) -> None:
        """Join, and answer at a steady pace until the end."""
        await asyncio.sleep(max(0.0, begins - time.monotonic()))
        self.into, self.out = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            self.secret = (await self.call("/participants", {"consent": True}))["secret"]
            asked = await self.call("/questions", None)
            due = time.monotonic()
            while time.monotonic() < ends and asked:
                question = asked[0]
                scores = [item["number"] / 60.0 + source.gauss(0.0, 0.7) for item in question["items"]]
                better = question["items"][int(np.argmax(scores))]["number"]
                given = {"shown": question["shown"], "answer": better, "key": str(question["shown"]), "ask": 1}
                start = time.monotonic()
                told = await self.call("/answers", given)
                self.taken.append(time.monotonic() - start)
                if told is None:
                    return
                self.told.append((told["answer"], question["shown"]))
                asked = told["questions"]
                due = max(due + pause, time.monotonic())
                await asyncio.sleep(max(0.0, due - time.monotonic()))
        finally:
            self.out.close()


async def crowd(port: int, poll: str, n: int, seconds: float, pause: float) -> list[Person]:
    """Have people take part, who come within the first seconds."""
    people = [Person(port, poll) for _ in range(n)]
    now = time.monotonic()
    starts = [now + _COMING * k / n for k in range(n)]
    each = zip(people, starts, strict=True)
    await asyncio.gather(
        *(one.take_part(start, now + seconds, pause, random.Random(k)) for k, (one, start) in enumerate(each))
    )
    return people


def load(url: str, n: int, seconds: float, processes: int, strategy: str, pause: float) -> dict[str, Any]:
    """Measure a poll that is served and answered."""
    items = [f"item {k}" for k in range(_N_ITEMS)]
    Poll.create(url, question="Which?", items=items, strategy=strategy, name="load", background=False).disconnect()
    port = 8765
    command = serving(url, seconds, {"--port": port, "--processes": processes, "--joins": 100_000})
    server = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    try:
        _wait_for(port)
        people = asyncio.run(crowd(port, "load", n, seconds, pause))
    finally:
        server.terminate()
        code = server.wait(60)
    with Poll.open(url, background=False) as poll:
        kept = {change.sequence: change.answer.shown for change in poll.log.state.changes}
        n_refits = poll.belief().made_at
    told = [one for person in people for one in person.told]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = np.sort(np.concatenate([person.taken for person in people]))
    return {
        "answers": len(told), "answers_a_second": len(told) / seconds,
        "errors": sum(len(person.errors) for person in people),
        "first_errors": [error for person in people for error in person.errors][:3],
        "lost": sum(kept.get(answer) != shown for answer, shown in told),
        "doubled": len(kept) - len(set(kept.values())),
        "ms_p50_p95_p99_max": [round(1e3 * float(np.quantile(taken, q)), 1) for q in (0.5, 0.95, 0.99, 1.0)],
        "cpu_ms_an_answer_refits_included": round(1e3 * (used.ru_utime + used.ru_stime) / max(len(told), 1), 2),
        "newest_refit_at_event": n_refits, "events": poll.log.state.sequence, "exit_code": code,
    }  # fmt: skip


def serving(url: str, seconds: float, options: dict[str, Any]) -> list[str]:
    """The command that serves a poll, for a minute longer than it is measured."""
    told = [str(one) for pair in ({"--stop-after": seconds + 60.0} | options).items() for one in pair]
    return [sys.executable, "-m", "predilect", "poll", "serve", url, *told]


def _wait_for(port: int) -> None:
    import socket

    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")


def filled(url: str, n_items: int, n_people: int, n_answers: int, strategy: str = "board") -> None:
    """A poll with many answers, written at once, and its newest refit."""
    source = np.random.default_rng(0)
    poll = Poll.create(url, question="Which?", items=[f"item {k}" for k in range(n_items)], name="full",
                       strategy=strategy, background=False)  # fmt: skip
    true = source.normal(size=n_items)
    new = [New("joined", {}, THEMSELVES) for _ in range(n_people)]
    people = source.integers(0, n_people, n_answers) + poll.log.state.sequence + 1
    first = poll.log.state.sequence + n_people + 1
    for k, person in enumerate(people.tolist()):
        pair = source.choice(n_items, 2, replace=False).tolist()
        margin = true[pair[0]] - true[pair[1]] + source.normal()
        new.append(New("shown", {"items": [number + 1 for number in pair], "p": 1e-4}, person))
        value = [] if abs(margin) < 0.2 else [0 if margin > 0 else 1]
        new.append(New("answered", {"shown": first + 2 * k, "value": value}, person, str(k)))
    with poll.database.writing(poll.log.poll) as connection:
        Log.extend(connection, poll.log.poll, new, poll.log.state.sequence)
    poll.disconnect()
    Refitter(Database(url), "full").refit()


def _filled_elsewhere(url: str, size: tuple[int, int, int]) -> None:
    """A poll that another process filled, whose memory is not this one's."""
    one = multiprocessing.get_context("spawn").Process(target=filled, args=(url, *size))
    one.start()
    one.join()
    assert one.exitcode == 0


def calls(url: str, size: tuple[int, int, int]) -> dict[str, Any]:
    """Processor time of asking, and time until an answer is durable."""
    _filled_elsewhere(url, size)
    with Poll.open(url) as poll:
        poll.board()
        numbers = random.Random(1).sample(sorted(poll.log.state.people), 1000)
        poll.ask(numbers[0])  # makes the first weights
        asked, of_process, by_clock, told = [], [], [], []
        for number in numbers[1:]:
            begun, start, in_all = time.perf_counter(), time.thread_time(), time.process_time()
            (question,) = poll.ask(number)
            by_clock.append(1e3 * (time.perf_counter() - begun))
            asked.append(1e3 * (time.thread_time() - start))
            of_process.append(1e3 * (time.process_time() - in_all))
            begun = time.perf_counter()
            poll.tell(number, question.shown, "left")
            told.append(1e3 * (time.perf_counter() - begun))
        assert poll.belief().knows(user_of(numbers[0]))
    return {
        "ask_cpu_ms_of_thread_mean_p50_p99_max": _in_short(asked),
        "ask_cpu_ms_of_process_mean_p50_p99_max": _in_short(of_process), "ask_ms_mean_p50_p99_max": _in_short(by_clock),
        "tell_ms_mean_p50_p99_max": _in_short(told), "peak_mb": _peak_mb(),
    }  # fmt: skip


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def start(url: str, size: tuple[int, int, int]) -> dict[str, Any]:
    """Time to open a poll, and to have its board."""
    _filled_elsewhere(url, size)
    begun, cpu = time.perf_counter(), time.process_time()
    with Poll.open(url, background=False) as poll:
        opened = time.perf_counter() - begun
        poll.board()
        return {"opened_s": round(opened, 2), "board_s": round(time.perf_counter() - begun, 2),
                "cpu_s": round(time.process_time() - cpu, 2), "peak_mb": _peak_mb()}  # fmt: skip


def seen(url: str, n: int = 200) -> dict[str, Any]:
    """Time from an answer's event in one process until it counts in another."""
    context = multiprocessing.get_context("spawn")
    with Poll.create(url, question="Which?", items=[f"item {k}" for k in range(_N_ITEMS)], name="seen") as poll:
        told: Any = context.Queue()
        other = context.Process(target=_watch, args=(url, n, told))
        other.start()
        told.get()
        for k in range(n):
            (question,) = poll.ask(f"p{k}")
            poll.tell(f"p{k}", question.shown, "left")
            time.sleep(0.05)
        late = told.get()
        other.join()
    return {"seen_after_ms_mean_p50_p99_max": _in_short([1e3 * one for one in late])}


def _watch(url: str, n: int, told: Any) -> None:
    """Say when answers that another process writes are there."""
    with Poll.open(url, "seen") as poll:
        poll.board()  # from now on it looks for them
        told.put("ready")
        late: list[float] = []
        while len(late) < n:
            with poll.log.news:
                while len(poll.log.state.changes) == len(late):
                    poll.log.news.wait()
                late += [time.time() - one.answer.time for one in poll.log.state.changes[len(late) :]]
        told.put(late)


def _in_short(taken: list[float]) -> list[float]:
    return [round(float(value), 2) for value in (np.mean(taken), *np.quantile(taken, (0.5, 0.99, 1.0)))]


def main() -> None:
    """Measure what is asked for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["load", "calls", "start", "seen", "crowd"])
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--seconds", type=float, help="of load 60 unless told, and at most 120; of crowd 900")
    parser.add_argument("--pause", type=float, default=1.7)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--strategy", default="board")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        url = given.url or str(Path(place) / "poll.db")
        if given.what == "load":
            seconds = min(given.seconds or 60.0, 120.0)
            found = load(url, given.people, seconds, given.processes, given.strategy, given.pause)
        elif given.what == "crowd":
            seconds = given.seconds or 900.0
            found = crowd_of_visitors(url, serving(url, seconds + 300.0, {}), given.people, seconds)
            asked = f"python -m benchmarks.live_polls crowd --people {given.people} --seconds {seconds:g}"
            write_whole({given.out / "live_polls.md": page(found, asked)})
        else:
            size = _LARGE if given.large else _FULL
            found = seen(url) if given.what == "seen" else {"calls": calls, "start": start}[given.what](url, size)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
