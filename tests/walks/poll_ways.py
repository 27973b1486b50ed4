"""Ways to one poll, all with the same verbs: Python, the API, the pages, the command.

What a poll refuses comes as a :class:`Refusal`, with HTTP's number for why and the words that somebody reads.
"""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from cli.running import run
from live.served import fields
from predilect.errors import DataError, OutputError
from predilect.live import Poll
from predilect.live.given import Refused
from predilect.live.web.app import create_app
from predilect.live.web.hosting import Host

_FORM = re.compile(r'<form class="question.*?</form>', flags=re.S)
Send = Callable[..., httpx.Response]


class Refusal(Exception):
    """What was asked for is not to be had; 500 and more: it failed."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status, self.words = status, words


class Question(NamedTuple):
    """What somebody is asked: names of items in the order on the screen; what this way does not say is None."""

    shown: int
    criterion: int
    text: str
    kind: str
    names: tuple[str, ...]
    is_retest: bool | None = None


@dataclass(eq=False)
class Person:
    """Somebody who takes part: how they are reached, and what is true of them."""

    number: int
    name: str | None = None
    secret: str | None = None
    pid: str | None = None
    language: str = ""
    is_gone: bool = False
    questions: dict[int, Question] = field(default_factory=dict)  # that they were ever asked, by number
    void: set[int] = field(default_factory=set)  # questions that an organiser's act may have ended
    withdrawn: set[int] = field(default_factory=set)  # those that mean nothing since settings changed: never asked
    answers: dict[int, Any] = field(default_factory=dict)  # that stand, by number
    keys: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # what was sent with each, and what came back
    proposals: int = 0
    read: list[str] = field(default_factory=list)  # what they were shown since somebody looked
    met: list[Question] = field(default_factory=list)  # questions on these pages

    @property
    def asked(self) -> dict[int, Question]:
        """Questions that count."""
        return {number: one for number, one in self.questions.items() if number not in self.withdrawn}

    def __repr__(self) -> str:
        return f"<p{self.number}{f' called {self.name!r}' if self.name else ''}{', erased' if self.is_gone else ''}>"


def steady(poll: Poll) -> Poll:
    """A poll that draws the same questions in each run of a walk."""
    poll._source = random.Random(0)
    return poll


class Python:
    """A :class:`Poll` of this process."""

    def __init__(self, open_again: Callable[[], Poll]) -> None:
        self._open = open_again
        self.poll = steady(open_again())

    def restart(self) -> None:
        self.poll.disconnect()
        self.poll = steady(self._open())

    def close(self) -> None:
        self.poll.disconnect()

    def hear(self) -> None:
        """What others wrote, as a thread of a poll in the background does."""
        self.poll.log.refresh()

    def _do(self, what: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        try:
            return what(*arguments, **more)
        except Refused as error:
            raise Refusal(error.status, str(error)) from error
        except DataError as error:
            raise Refusal(400, str(error)) from error
        except OutputError as error:
            raise Refusal(503, str(error)) from error
        except Exception as error:
            raise Refusal(500, f"{type(error).__name__}: {error}") from error

    def join(self, name: str | None, pid: str | None, language: str, signature: str) -> tuple[str | None, str]:
        secret = secrets.token_urlsafe(16)
        self._do(self.poll.join, name, secret=secret, pid=pid, language=language)
        return name, secret

    @staticmethod
    def _called(person: Person) -> str | int:
        return person.number if person.name is None or person.is_gone else person.name

    def ask(self, person: Person, n: int) -> list[Question]:
        asked = self._do(self.poll.ask, self._called(person), n)
        return [
            Question(one.shown, one.criterion, one.text, one.kind, tuple(item.name for item in one.items), one.retest)
            for one in asked
        ]

    def tell(self, person: Person, shown: int, answer: Any, criterion: int | None, key: str | None) -> int:
        told = self._do(self.poll.tell, self._called(person), shown, answer, criterion=criterion, key=key)
        return int(told.answer)

    def replace(self, person: Person, old: int, answer: Any, key: str | None) -> int:
        return int(self._do(self.poll.replace, self._called(person), old, answer, key=key).answer)

    def undo(self, person: Person, key: str | None) -> int:
        return int(self._do(self.poll.undo, self._called(person), key=key))

    def propose(self, person: Person, text: str, key: str | None) -> int:
        return int(self._do(self.poll.propose_item, self._called(person), text, key=key))

    def report(self, person: Person, item: int) -> None:
        self._do(self.poll.report, self._called(person), item)

    def mine(self, person: Person, criterion: int) -> list[dict[str, Any]] | None:
        found = self._do(self.poll.mine, self._called(person), criterion)
        return None if found is None else found.to_dicts()

    def kept(self, person: Person) -> dict[str, Any]:
        return dict(self._do(self.poll.own, self._called(person)))

    def leave(self, person: Person) -> None:
        self._do(self.poll.erase, self._called(person))

    def add(self, names: list[str]) -> None:
        self._do(self.poll.add_items, names)

    def moderate(self, item: int, accept: bool) -> None:
        self._do(self.poll.moderate, item, accept)

    def retire(self, item: int) -> None:
        self._do(self.poll.retire, item)

    def edit(self, item: int, said: dict[str, str]) -> None:
        self._do(self.poll.edit_item, item, **said)

    def merge(self, item: int, into: int) -> None:
        self._do(self.poll.merge_items, item, into)

    def part(self, item: int) -> None:
        self._do(self.poll.part_item, item)

    def set_status(self, status: str) -> None:
        self._do({"open": self.poll.resume, "paused": self.poll.pause, "closed": self.poll.close}[status])

    def change(self, settings: dict[str, Any]) -> None:
        self._do(self.poll.change, **settings)

    def invite(self, called: str, role: str) -> str:
        return str(self._do(self.poll.invite, called, role)[1])

    def revoke(self, called: str) -> None:
        self._do(self.poll.revoke, called)

    def erase(self, exported: str) -> None:
        self._do(self.poll.erase, int(exported[1:]))

    def board(self, criterion: int) -> list[dict[str, Any]]:
        return list(self._do(self.poll.board, criterion).to_dicts())

    def outlook(self, claim: str, criterion: int) -> str:
        return str(self._do(self.poll.outlook, claim, criterion=criterion))

    def people(self) -> dict[str, Any]:
        return dict(self._do(self.poll.people))

    def export(self, kind: str) -> list[dict[str, Any]]:
        return list(self._do(self.poll.export, kind).to_dicts())


class Api:
    """The API of a server."""

    def __init__(self, send: Send, name: str, token: str) -> None:
        self.send, self._name = send, name
        self.ruler = {"authorization": f"Bearer {token}"}

    def of(self, token: str) -> Api:
        """The same for another organiser."""
        return Api(self.send, self._name, token)

    def _do(self, method: str, path: str, person: Person | None = None, body: Any = None, **query: Any) -> Any:
        headers = self.ruler if person is None else {"authorization": f"Bearer {person.secret}"}
        told = {} if body is None else {"json": body}
        answer = self.send(method, f"/api/polls/{self._name}{path}", headers=headers, params=query, **told)
        if person is not None:
            person.read.append(answer.text)
        if answer.status_code >= 400:
            raise Refusal(answer.status_code, answer.text)
        return json.loads(answer.text) if answer.text else None

    def join(self, name: str | None, pid: str | None, language: str, signature: str) -> tuple[str | None, str]:
        said = {"consent": True, "language": language, "pid": pid, "signature": signature}
        return None, self._do("POST", "/participants", body=said)["secret"]

    def ask(self, person: Person, n: int) -> list[Question]:
        return [
            Question(one["shown"], one["criterion"], one["text"], one["kind"],
                     tuple(item["name"] for item in one["items"]))
            for one in self._do("POST", "/questions", person, n=n)
        ]  # fmt: skip

    def tell(self, person: Person, shown: int, answer: Any, criterion: int | None, key: str | None) -> int:
        said = {"shown": shown, "answer": answer, "criterion": criterion, "key": key}
        return int(self._do("POST", "/answers", person, said)["answer"])

    def replace(self, person: Person, old: int, answer: Any, key: str | None) -> int:
        return int(self._do("PUT", f"/answers/{old}", person, {"answer": answer, "key": key})["answer"])

    def undo(self, person: Person, key: str | None) -> int:
        return int(self._do("POST", "/undo", person, {"key": key})["answer"])

    def propose(self, person: Person, text: str, key: str | None) -> int:
        return int(self._do("POST", "/proposals", person, {"text": text, "key": key})["item"])

    def report(self, person: Person, item: int) -> None:
        self._do("POST", f"/items/{item}/report", person)

    def mine(self, person: Person, criterion: int) -> list[dict[str, Any]] | None:
        try:
            return list(self._do("GET", "/me/ranking", person, criterion=criterion))
        except Refusal as refusal:
            if refusal.status == 409:
                return None
            raise

    def kept(self, person: Person) -> dict[str, Any]:
        return dict(self._do("GET", "/me", person)["kept"])

    def leave(self, person: Person) -> None:
        self._do("DELETE", "/me", person)

    def add(self, names: list[str]) -> None:
        self._do("POST", "/items", body={"items": [{"name": name} for name in names]})

    def moderate(self, item: int, accept: bool) -> None:
        self._do("POST", f"/items/{item}/moderate", body={"accept": accept})

    def retire(self, item: int) -> None:
        self._do("POST", f"/items/{item}/retire")

    def edit(self, item: int, said: dict[str, str]) -> None:
        self._do("PUT", f"/items/{item}", body=said)

    def merge(self, item: int, into: int) -> None:
        self._do("POST", f"/items/{item}/merge", body={"into": into})

    def part(self, item: int) -> None:
        self._do("POST", f"/items/{item}/part")

    def set_status(self, status: str) -> None:
        self._do("PUT", "/status", body={"status": status})

    def change(self, settings: dict[str, Any]) -> None:
        self._do("PUT", "/settings", body=settings)

    def invite(self, called: str, role: str) -> str:
        return str(self._do("POST", "/organisers", body={"name": called, "role": role})["token"])

    def revoke(self, called: str) -> None:
        there = {one["name"]: one["number"] for one in self._do("GET", "/organisers")}
        self._do("DELETE", f"/organisers/{there.get(called, 10**6)}")

    def erase(self, exported: str) -> None:
        self._do("DELETE", f"/participants/{exported[1:]}")

    def board(self, criterion: int) -> list[dict[str, Any]]:
        return list(self._do("GET", "/board", criterion=criterion))

    def outlook(self, claim: str, criterion: int) -> str:
        return str(self._do("GET", "/outlook", claim=claim, criterion=criterion)["text"])

    def people(self) -> dict[str, Any]:
        return dict(self._do("GET", "/people"))

    def export(self, kind: str) -> list[dict[str, Any]]:
        return list(self._do("GET", f"/export/{kind}"))


class Pages:
    """The pages of a server, as a browser without script sends their forms."""

    def __init__(self, send: Send, name: str, token: str) -> None:
        self._send, self._name, self._token = send, name, token

    def of(self, token: str) -> Pages:
        """The same for another organiser."""
        return Pages(self._send, self._name, token)

    def _get(self, path: str, person: Person | None = None, **query: Any) -> str:
        return self._do("GET", path, person, params=query)

    def _do(self, method: str, path: str, person: Person | None = None, **options: Any) -> str:
        answer = self._answer(method, path, person, **options)
        if person is not None:
            person.read.append(html.unescape(answer.text))
            person.met += _questions(answer.text)
        if answer.status_code >= 400:
            raise Refusal(answer.status_code, answer.text)
        return answer.text

    def _answer(self, method: str, path: str, person: Person | None, **options: Any) -> httpx.Response:
        headers = {"accept": "text/html"}
        if person is None and path.startswith("/o"):
            headers["cookie"] = f"organiser-{self._name}={self._token}"
        elif person is not None:
            headers |= {"cookie": f"participant-{self._name}={person.secret}", "accept-language": person.language}
        return self._send(method, path, headers=headers, **options)

    def _form(self, page: str, action: str, person: Person | None = None, **said: Any) -> str:
        """Fill in the first form of a page that goes there, and send it."""
        where = action if action.startswith("/o") else f"/p/{self._name}{action}"
        return self._do("POST", where, person, data=fields(page, action) | said)

    def _csrf(self, person: Person) -> dict[str, str]:
        return {"csrf": fields(self._get(f"/p/{self._name}/me", person), "/erase")["csrf"]}

    def _send_anyhow(self, action: str, person: Person, **said: Any) -> str:
        """Send a form that a page held once, though it may hold it no more."""
        return self._do("POST", f"/p/{self._name}{action}", person, data=self._csrf(person) | said)

    def join(self, name: str | None, pid: str | None, language: str, signature: str) -> tuple[str | None, str]:
        query = {"pid": pid, "sig": signature} if pid is not None else {}
        if language:
            query["lang"] = language
        page = self._get(f"/p/{self._name}", **query)
        is_at_once = "/first" in page  # takes part by an answer; who agrees beforehand may, too
        if not is_at_once and "/join" not in page:
            raise Refusal(409, page)
        said = {key: value for key, value in fields(page, "/first" if is_at_once else "/join").items()
                if key in ("language", "pid", "signature")} | {"agreed": "yes"}  # fmt: skip
        answer = self._answer("POST", f"/p/{self._name}/join", None, data=said)
        if answer.status_code >= 400:
            raise Refusal(answer.status_code, answer.text)
        found = re.search(rf"participant-{self._name}=([^;]+)", answer.headers["set-cookie"])
        assert found is not None
        return None, found[1]

    def ask(self, person: Person, n: int) -> list[Question]:
        return _questions(self._get(f"/p/{self._name}", person))

    def tell(self, person: Person, shown: int, answer: Any, criterion: int | None, key: str | None) -> int:
        """The number of the answer comes back on no page."""
        page = self._get(f"/p/{self._name}", person)
        there = [fields(form, "/answer") for form in _FORM.findall(page)]
        old = {"shown": str(shown), "criterion": str(criterion or 0)}
        said = next((one for one in there if old.items() <= one.items()), self._csrf(person) | old)
        self._do("POST", f"/p/{self._name}/answer", person, data=said | answer)
        return 0

    def undo(self, person: Person, key: str | None) -> int:
        self._send_anyhow("/undo", person)
        return 0

    def propose(self, person: Person, text: str, key: str | None) -> int:
        self._send_anyhow("/propose", person, text=text, anyway="yes")
        return 0

    def report(self, person: Person, item: int) -> None:
        self._send_anyhow("/report", person, item=str(item))

    def mine(self, person: Person, criterion: int) -> list[dict[str, Any]] | None:
        page = self._get(f"/p/{self._name}/mine", person, criterion=criterion)
        return [{"item": name} for name in _names(page, 'scope="row" class="t"')] or None

    def kept(self, person: Person) -> dict[str, Any]:
        return dict(json.loads(self._get(f"/p/{self._name}/me.json", person)))

    def results(self, person: Person, criterion: int) -> list[str]:
        return _names(self._get(f"/p/{self._name}/results", person, criterion=criterion), 'scope="row" class="t"')

    def leave(self, person: Person) -> None:
        page = self._get(f"/p/{self._name}/me", person)
        self._form(page, "/erase", person, sure="yes")

    def _ruling(self, path: str, **said: Any) -> str:
        page = self._get(f"/o/{self._name}/organisers")
        csrf = {"csrf": fields(page, "/sign-out")["csrf"]}
        return self._do("POST", f"/o/{self._name}{path}", data=csrf | said)

    def invite(self, called: str, role: str) -> str:
        page = self._ruling("/organisers", name=called, role=role)
        found = re.search(r'id="made-link">[^<]*/in/([^<]+)<', page)
        assert found is not None
        return html.unescape(found[1])

    def revoke(self, called: str) -> None:
        page = self._get(f"/o/{self._name}/organisers")
        there = {html.unescape(name): number for number, name in re.findall(
            r'name="revoke" value="(\d+)">.*?: (.*?)</span>', page)}  # fmt: skip
        self._ruling("/organisers", revoke=there.get(called, str(10**6)))

    def add(self, names: list[str]) -> None:
        self._ruling("/items", names="\n".join(names))

    def moderate(self, item: int, accept: bool) -> None:
        self._ruling(f"/items/{item}", what="accept" if accept else "refuse")

    def retire(self, item: int) -> None:
        self._ruling(f"/items/{item}", what="retire")

    def edit(self, item: int, said: dict[str, str]) -> None:
        self._ruling(f"/items/{item}", what="change", **said)

    def merge(self, item: int, into: int) -> None:
        self._ruling(f"/items/{item}", what="merge", number=str(into))

    def part(self, item: int) -> None:
        self._ruling(f"/items/{item}", what="part")

    def first(self, pick: Callable[[Question], dict[str, str]], n: int) -> tuple[str, Question] | None:
        """Answer what a page asks of somebody unknown, and send that ``n`` times."""
        page = self._get(f"/p/{self._name}")
        if "/first" not in page:
            return None
        (question,) = _questions(page)
        said = fields(page, "/first") | pick(question)
        for _ in range(n):
            answer = self._answer("POST", f"/p/{self._name}/first", None, data=said)
            if answer.status_code >= 400:
                raise Refusal(answer.status_code, answer.text)
        found = re.search(rf"participant-{self._name}=([^;]+)", answer.headers["set-cookie"])
        assert found is not None
        return found[1], question

    def set_status(self, status: str) -> None:
        self._ruling("/status", status=status)

    def change(self, settings: dict[str, Any]) -> None:
        """Fill in the form as it stands, but for these fields; settings that it has not cannot be sent."""
        page = self._get(f"/o/{self._name}/settings")
        said = _filled(page)
        for name, value in settings.items():
            parts = "\n".join(value) if isinstance(value, tuple) else str(value)
            said[name] = {True: "yes", False: "no"}[value] if isinstance(value, bool) else parts
        self._do("POST", f"/o/{self._name}/settings", data=said)

    def of_organiser(self, path: str) -> str:
        return self._get(f"/o/{self._name}{path}")

    def report_on(self, criterion: int) -> str:
        return self._get(f"/o/{self._name}/report", criterion=criterion)


def _filled(page: str) -> dict[str, str]:
    """What the form of the settings would send if nobody touched it."""
    form = page[page.index("<form", page.index("<main")) :]
    said = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
    said |= dict(re.findall(r'<input type="checkbox" name="(\w+)" value="(\w+)" checked', form))
    said |= dict(re.findall(r'<input id="\w+" name="(\w+)"[^>]* value="([^"]*)"', form))
    said |= dict(re.findall(r'<textarea id="\w+" name="(\w+)"[^>]*>(.*?)</textarea>', form, flags=re.S))
    for name, inside in re.findall(r'<select id="\w+" name="(\w+)">(.*?)</select>', form, flags=re.S):
        said[name] = re.findall(r'value="([^"]*)" selected', inside)[0]
    return {name: html.unescape(value) for name, value in said.items()}


def _names(page: str, around: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(rf"{around}[^>]*><bdi>(.*?)</bdi>", page, flags=re.S)]


def _questions(page: str) -> list[Question]:
    return [_question(form) for form in _FORM.findall(page)]


def _question(form: str) -> Question:
    hidden = fields(form, "/first" if 'action="' in form and "/first" in form else "/answer")
    kind = re.match(r'<form class="question ([a-z-]+)"', form)
    text = re.search(r"<legend[^>]*>(.*?)</legend>", form, flags=re.S)
    assert kind is not None
    assert text is not None
    names = tuple(_names(form, 'class="name"'))
    words = html.unescape(re.sub(r"<[^>]+>", "", text[1]))
    return Question(int(hidden["shown"]), int(hidden["criterion"]), words.strip(), kind[1], names)


class Command:
    """``predilect poll`` in a terminal."""

    def __init__(self, file: Path, name: str) -> None:
        self._file, self._name = file, name

    def _do(self, verb: str, *words: str) -> str:
        ran = run("poll", verb, "--name", self._name, self._file, *words)
        if ran.exit_code:
            unexpected = ran.exception is not None and not isinstance(ran.exception, SystemExit)
            raise Refusal(500 if unexpected or ran.exit_code > 3 else 400, f"{ran.output} {ran.exception or ''}")
        return str(ran.stdout)

    def erase(self, called: str) -> None:
        self._do("erase", called)

    def add(self, names: list[str]) -> None:
        file = self._file.with_suffix(".items.txt")
        file.write_text("\n".join(names), encoding="utf-8")
        self._do("add", str(file))

    def retire(self, item: int) -> None:
        names = {row["number"]: row["item"] for row in self.export("items")}
        self._do("retire", "--", str(names.get(item) or f"no item {item}"))

    def set_status(self, status: str) -> None:
        self._do({"open": "open", "paused": "pause", "closed": "close"}[status])

    def change(self, settings: dict[str, Any]) -> None:
        def word(value: Any) -> str:
            if isinstance(value, bool):
                return "yes" if value else "no"
            return ",".join(value) if isinstance(value, tuple) else str(value)

        told = [f"{name}={word(value)}" for name, value in settings.items()]
        self._do("set", "--", *told)

    def invite(self, called: str, role: str) -> str:
        return str(json.loads(self._do("invite", called, "--role", role, "--format", "json"))["token"])

    def revoke(self, called: str) -> None:
        self._do("revoke", called)

    def move(self) -> None:
        """Into another file, and back."""
        other = self._file.with_name(f"{self._name}-elsewhere.db")
        self._do("move", str(other))
        ran = run("poll", "move", "--name", self._name, other, self._file)
        assert ran.exit_code == 0, ran.output

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self._do("status", "--format", "json")))

    def board(self, criterion: int) -> list[dict[str, Any]]:
        return list(self.status()["boards"][criterion]["board"])

    def outlook(self, claim: str, criterion: int) -> str:
        return str(self.status()["boards"][criterion]["outlook"])

    def people(self) -> dict[str, Any]:
        return self.status()

    def export(self, kind: str) -> list[dict[str, Any]]:
        return list(json.loads(self._do("export", kind, "--format", "json"))[kind])

    def write(self, kind: str, out: Path) -> None:
        self._do("export", kind, "-o", str(out), "--force")


class StillHost(Host):
    """Polls of a server that makes no refits by itself, and hears of other processes when it is told to."""

    def poll(self, name: str) -> Poll:
        if name not in self._polls:
            if name not in self._files:
                self._look()
            self._polls[name] = steady(Poll.open(self._files[name], name, background=False))
        return self._polls[name]

    def hear(self) -> None:
        self.each(lambda poll: poll.log.refresh())


class Server:
    """The application in this process, asked without a network; nobody is told to ask less often."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._start()

    def _start(self) -> None:
        self.host = StillHost(str(self._place), "the-code")
        app = create_app(self.host, joins=10**9)
        for rate in (app.state.access.answers, app.state.access.attempts):
            rate.per_second = rate.burst = 1e9
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://polls", verify=False)
        self._loop = asyncio.new_event_loop()

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        self.hear()
        try:
            answer = self._loop.run_until_complete(self._client.request(method, path, **options))
        except Exception as error:  # noqa: BLE001  whoever asks gets 500, and whoever reads the walk wants to know why
            answer = httpx.Response(500, text=f"{type(error).__name__}: {error}")
        self._client.cookies.clear()
        return answer

    def hear(self) -> None:
        self.host.hear()

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()
        self.host.close()


class Servers:
    """Two processes of ``predilect poll serve`` on one folder, of which one after the other is killed."""

    _seconds = 60.0  # until one is up, on a machine that is busy

    def __init__(self, folder: Path) -> None:
        self.folder, self._killed = folder, 0
        self._client = httpx.Client(timeout=self._seconds, verify=False)
        self._addresses = ["", ""]
        self._processes: list[subprocess.Popen[str]] = []
        for place in (0, 1):
            self._processes.append(self._started(place))

    def _started(self, place: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "predilect", "poll", "serve", str(self.folder), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        told = next(line for line in process.stdout if "/new," in line)
        self._addresses[place] = told[told.index("http") : told.index("/new,")]
        began = time.monotonic()
        while not self._is_up(place):
            assert time.monotonic() - began < self._seconds
            time.sleep(0.1)
        return process

    def _is_up(self, place: int) -> bool:
        try:
            return self._client.get(f"{self._addresses[place]}/health").status_code == 200
        except httpx.ConnectError:
            return False

    def of(self, place: int) -> Send:
        """What sends a request to one of them, and again where it was told that it asks too often."""

        def send(method: str, path: str, **options: Any) -> httpx.Response:
            while True:
                answer = self._client.request(method, self._addresses[place] + path, **options)
                self._client.cookies.clear()
                if answer.status_code != 429:
                    return answer
                time.sleep(float(answer.headers["retry-after"]))

        return send

    def hear(self) -> None:
        for place in (0, 1):
            assert self._is_up(place)

    def restart(self) -> None:
        self._killed = 1 - self._killed
        self._end(self._killed)
        self._processes[self._killed] = self._started(self._killed)

    def _end(self, place: int) -> None:
        process = self._processes[place]
        process.kill()
        process.communicate()

    def close(self) -> None:
        """Leave them to the next walk."""

    def end(self) -> None:
        self._client.close()
        for place in (0, 1):
            self._end(place)
