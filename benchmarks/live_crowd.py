"""A crowd that answers a live poll at human pace while its server is killed: what is lost, how long all takes.

Participants use the pages: a form is posted, the next page fetched, and where that fails the same form is posted again,
as the script of the pages has it. The server gets SIGKILL at moments that nobody chose, and is started again at once.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.store import made_with
from predilect.live import Poll

N_ITEMS, NAME = 60, "crowd"
_COMING = 60.0  # seconds in which participants come
_THINKING, _SPREAD = 9.0, 0.5  # median seconds between a page and its answer, and the standard deviation of their log
_AGAIN = (1.0, 3.0)  # seconds until somebody presses again what could not be sent
_SKIPS, _TIED = 0.03, 0.15  # share of "I cannot say"; a margin below this is a tie
_TICKS = os.sysconf("SC_CLK_TCK")
_AT_MOST = 60.0  # seconds of a request, or of a start


@dataclass
class Seen:
    """What the crowd saw: times in seconds, answers by question, failures by kind."""

    ask: list[float] = field(default_factory=list)
    tell: list[float] = field(default_factory=list)
    told: dict[int, str] = field(default_factory=dict)  # acknowledged
    sent: dict[int, str] = field(default_factory=dict)
    cut: Counter[str] = field(default_factory=Counter)  # connections that were refused, or broken off
    errors: list[str] = field(default_factory=list)


class Failed(Exception):
    """A request that had no answer, since the server was gone."""


class Visitor:
    """A participant with a browser."""

    def __init__(self, base: str, number: int, seen: Seen) -> None:
        none_kept = httpx.Limits(max_keepalive_connections=0)  # people think longer than a connection is kept
        self.client = httpx.AsyncClient(base_url=base, limits=none_kept, timeout=_AT_MOST, verify=False,
                                        headers={"accept": "text/html"}, trust_env=False)  # fmt: skip
        self.source, self.seen, self.path = random.Random(number), seen, f"/p/{NAME}"
        self.taste = {f"item {k}": k / 20.0 + self.source.gauss(0.0, 0.7) for k in range(N_ITEMS)}

    async def take_part(self, begins: float, ends: float) -> None:
        """Join, and answer until the end; whoever has sent something stays until it is acknowledged."""
        await asyncio.sleep(max(0.0, begins - time.monotonic()))
        async with self.client:
            page = await self._insist(self._joined)
            while 'id="now"' in page:
                form, said = self._answered(page)
                thought = self.source.lognormvariate(np.log(_THINKING), _SPREAD)
                if time.monotonic() + thought > ends:
                    return
                await asyncio.sleep(thought)
                form |= {"answer": said, "shown_ms": f"{1e3 * thought:.0f}"}
                page = await self._insist(lambda form=form: self._told(form))
            self.seen.errors.append("a page without a question")

    async def _insist(self, act: Callable[[], Any]) -> str:
        """Do something until there is an answer."""
        while True:
            try:
                return str(await act())
            except Failed:
                await asyncio.sleep(self.source.uniform(*_AGAIN))

    async def _joined(self) -> str:
        page = await self._get()
        if 'name="agreed"' not in page:  # it was done before the connection broke
            return page
        await self._post("/join", {"agreed": "yes"})
        return await self._get()

    async def _told(self, form: dict[str, str]) -> str:
        self.seen.sent[int(form["shown"])] = form["answer"]
        begun = time.monotonic()
        await self._post("/answer", form)
        self.seen.tell.append(time.monotonic() - begun)
        self.seen.told[int(form["shown"])] = form["answer"]
        begun = time.monotonic()
        page = await self._get()
        self.seen.ask.append(time.monotonic() - begun)
        return page

    def _answered(self, page: str) -> tuple[dict[str, str], str]:
        """Fields of the question's form, and the button that is pressed."""
        form = page.partition('id="now"')[2].partition("</form>")[0]
        left, right = map(unescape, re.findall(r'class="name"[^>]*><bdi>(.*?)</bdi>', form))
        margin = self.taste[left] - self.taste[right] + self.source.gauss(0.0, 0.7)
        said = "tie" if abs(margin) < _TIED else "left" if margin > 0.0 else "right"
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
        return hidden, "skip" if self.source.random() < _SKIPS else said

    async def _get(self) -> str:
        return (await self._call("GET", "", None, 200)).text

    async def _post(self, way: str, form: dict[str, str]) -> None:
        await self._call("POST", way, form, 303)

    async def _call(self, method: str, way: str, form: dict[str, str] | None, right: int) -> httpx.Response:
        try:
            answer = await self.client.request(method, self.path + way, data=form)
        except httpx.ConnectError as error:
            self.seen.cut["refused"] += 1
            raise Failed from error
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            self.seen.cut["broken off"] += 1
            raise Failed from error
        if answer.status_code != right:
            self.seen.errors.append(f"{method} {way}: {answer.status_code} {answer.text[:200]!r}")
            raise Failed
        return answer


class Server:
    """The process that serves, killed and started again; what it and those below it used."""

    def __init__(self, command: list[str], base: str, log: Path) -> None:
        self.command, self.base, self.log = command, base, log
        self.cpu: dict[int, float] = {}  # seconds, by process
        self.memory: Counter[str] = Counter()  # the most resident, in MB, of the server and of what fits
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, env=os.environ | alone, stdout=log, stderr=log)

    async def until_up(self) -> None:
        """Wait for its first page."""
        begun = time.monotonic()
        async with httpx.AsyncClient(base_url=self.base, verify=False, trust_env=False, timeout=_AT_MOST) as client:
            while time.monotonic() - begun < _AT_MOST:
                try:
                    if (await client.get(f"/p/{NAME}")).status_code == 200:
                        return
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
        raise SystemExit(f"the server does not answer; {self.log} says why")

    async def killed(self) -> float:
        """Kill it, start it again at once, and give the seconds until it answers."""
        self.look()
        begun = time.monotonic()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = self._started()
        await self.until_up()
        return time.monotonic() - begun

    def look(self) -> None:
        """Note what the processes have used so far."""
        for place, pid in enumerate((self.process.pid, *_children(self.process.pid))):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
            self.cpu[pid] = (int(stat[11]) + int(stat[12])) / _TICKS
            what = "fits" if place else "server"
            self.memory[what] = max(self.memory[what], pages * os.sysconf("SC_PAGE_SIZE") >> 20)

    async def watch(self) -> None:
        """Look every second, for ever."""
        while True:
            self.look()
            await asyncio.sleep(1.0)

    def stop(self) -> int:
        """End it, and give its exit code."""
        self.look()
        self.process.terminate()
        return self.process.wait(_AT_MOST)


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for each in Path(f"/proc/{pid}/task").glob("*/children") for one in each.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _play(server: Server, n: int, seconds: float, kills: list[float], seen: Seen) -> list[float]:
    """Have people answer, and kill the server meanwhile; seconds until it was back each time."""
    await server.until_up()
    watching = asyncio.create_task(server.watch())
    now = time.monotonic()
    people = [asyncio.create_task(Visitor(server.base, k, seen).take_part(now + _COMING * k / n, now + seconds))
              for k in range(n)]  # fmt: skip
    back = []
    for moment in kills:
        await asyncio.sleep(max(0.0, now + moment - time.monotonic()))
        back.append(await server.killed())
    await asyncio.gather(*people)
    watching.cancel()
    return back


def crowd(url: str, command: list[str], n: int, seconds: float) -> dict[str, Any]:
    """Measure it; ``command`` serves the poll at ``url`` once a port is added."""
    Poll.create(url, question="Which?", items=[f"item {k}" for k in range(N_ITEMS)], name=NAME,
                background=False).disconnect()  # fmt: skip
    port, seen, unplanned = _free_port(), Seen(), random.SystemRandom()
    kills = [seconds * unplanned.uniform(*span) for span in ((0.2, 0.5), (0.5, 0.8))]
    log = Path(url).with_suffix(".log")
    begun, loads = time.monotonic(), os.getloadavg()[0]
    server = Server([*command, "--port", str(port)], f"http://127.0.0.1:{port}", log)
    try:
        back = asyncio.run(_play(server, n, seconds, kills, seen))
    finally:
        code = server.stop()
    took = time.monotonic() - begun
    with Poll.open(url, background=False) as poll:
        kept = poll.export("answers")
    by_question = Counter(kept["question"].to_list())
    said = dict(zip(kept["question"].to_list(), kept["winner"].to_list(), strict=True))
    pairs = Counter((row["user"], *sorted((row["left"], row["right"]))) for row in kept.to_dicts())
    times = {
        f"{what}_ms_p50_p99_max": [round(1e3 * float(np.quantile(taken, q)), 1) for q in (0.5, 0.99, 1.0)]
        for what, taken in (("ask", seen.ask), ("tell", seen.tell))
    }
    return {
        "people": n, "seconds": round(took), "answers": len(seen.told), "kept": len(kept),
        "lost": sum(said.get(question) != word for question, word in seen.told.items()),
        "doubled": sum(one - 1 for one in (*by_question.values(), *pairs.values())),
        "of_nobody": len(by_question.keys() - seen.sent.keys()),
        "answers_a_second": round(len(seen.told) / took, 1), "errors": len(seen.errors),
        "first_errors": seen.errors[:3], "refused": seen.cut["refused"], "broken_off": seen.cut["broken off"], **times,
        "killed_at_s": [round(one) for one in kills], "back_after_s": [round(one, 2) for one in back],
        "server_mb": server.memory["server"], "fits_mb": server.memory["fits"],
        "cpu_s": round(sum(server.cpu.values())), "exit_code": code,
        "failures_in_its_log": log.read_text(encoding="utf-8").count("failed"),
        "load_average": [round(one, 1) for one in (loads, *os.getloadavg()[1:])],
    }  # fmt: skip


def page(found: dict[str, Any], command: str) -> str:
    """What is written to ``results/live_polls.md``."""
    times = {what: [f"{one:.0f}" for one in found[f"{what}_ms_p50_p99_max"]] for what in ("ask", "tell")}
    back, killed = (" and ".join(f"{one:g}" for one in found[name]) for name in ("back_after_s", "killed_at_s"))
    rows = {
        "people, minutes": f"{found['people']}, {found['seconds'] / 60.0:.0f}",
        "answers that were acknowledged": f"{found['answers']}, {found['answers_a_second']:g} a second",
        "of these lost, or kept otherwise": f"{found['lost']}",
        "in the export twice, or of a pair twice; of nobody": f"{found['doubled']}; {found['of_nobody']}",
        "connections refused while it was down; broken off by a kill": f"{found['refused']}; {found['broken_off']}",
        "other errors; failures in the server's log": f"{found['errors']}; {found['failures_in_its_log']}",
        "killed after, s": killed,
        "back after a kill, s": back,
        "next page (`ask`), ms: median, 99 %, most": ", ".join(times["ask"]),
        "answer on the disk (`tell`), ms: median, 99 %, most": ", ".join(times["tell"]),
        "memory of the server; of the process that fits, MB": f"{found['server_mb']}; {found['fits_mb']}",
        "processor time of both, s; an answer, ms":
            f"{found['cpu_s']}; {1e3 * found['cpu_s'] / max(found['answers'], 1):.1f}",
        "load average of the machine: before, over 5 and 15 minutes at the end":
            ", ".join(f"{one:g}" for one in found["load_average"]),
    }  # fmt: skip
    lines = [
        "# A live poll whose server is killed", "",
        f"Simulated participants answer pairs of {N_ITEMS} items on the pages of `predilect poll serve`, a file of "
        f"SQLite, after {_THINKING:g} seconds of thought each (median). Twice the server gets SIGKILL at a random "
        "moment, and is started again at once; whoever could not send an answer presses the same button again, as on "
        "the page. The clients run on the same processors, as other work may: the load average tells. The bar: all "
        "answers that were acknowledged are in the export, once.", "",
        "| what | measured |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows.items()), "",
        made_with(command), "",
    ]  # fmt: skip
    return "\n".join(lines)
