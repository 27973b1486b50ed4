"""The pages of ``predilect open``: a file, how it is read, the ranking under way, and what came of it.

Nothing but this machine's browser with the address that was printed gets an answer: the token is the first part of
every path, ``Host`` must be this server's own, and forms and scripts must come from a page of it. Pages hold no state:
what they are about stands in their address.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from fastapi.staticfiles import StaticFiles
from jinja2 import ChoiceLoader, PackageLoader
from starlette.datastructures import UploadFile
from starlette.types import ASGIApp, Receive, Scope, Send

from predilect._base.text import spoken_to
from predilect.cli.desk.asked import PERSONAL, TABLES, Asked
from predilect.cli.desk.library import OFFERS, Library, OpenResults, polls_in
from predilect.cli.desk.looks import Looks
from predilect.cli.desk.shelf import Shelf
from predilect.cli.desk.work import Jobs
from predilect.errors import DataError, PredilectError
from predilect.live.web.access import policy
from predilect.live.web.organiser import policy_of
from predilect.live.web.pages import templates as polls
from predilect.live.web.texts import Speech
from predilect.show.report.page import as_html, page
from predilect.show.report.tables import write_csv

_HOSTS = ("127.0.0.1", "localhost")
_OURS = ("same-origin", "none")  # of Sec-Fetch-Site: a page of ours, or typed by hand
_SECONDS_ALONE = 15.0  # without any page open, after which the server ends
routes = APIRouter(default_response_class=HTMLResponse)
_PLACES = ("predilect.cli.desk", "predilect.live.web")
templates = polls.overlay(loader=ChoiceLoader([PackageLoader(one) for one in _PLACES]))
_HEAD: dict[str, Any] = {"say": Speech("en"), "others": ()}  # what the pages of polls, whose frame these share, want


class Desk:
    """Files, looks, jobs and results of one server; ``end`` is called when the last page has gone."""

    def __init__(self, token: str, end: Callable[[], object] = lambda: None) -> None:
        self.root, self.end = f"/{token}", end
        self.shelf, self.library = Shelf(), Library()
        self.looks, self.jobs = Looks(self.shelf), Jobs(self.shelf.folder)
        self.pages = 0  # that are open
        self.is_ended = False

    def opened(self, path: Path | None) -> str:
        """The address of the page of a file, a folder of results, or the log of a live poll, below the server's."""
        if path is None:
            return f"{self.root}/"
        if path.is_dir() or polls_in(path):
            key = self.shelf.put(path)
            self.library.put(key, path)
            return f"{self.root}/results/{key}"
        return f"{self.root}/read?{Asked(self.shelf.put(path)).query}"

    def close(self) -> None:
        """Stop what is under way, and remove what was kept."""
        self.is_ended = True
        self.jobs.close()
        self.shelf.close()


def create_app(desk: Desk) -> FastAPI:
    """The application that serves a desk."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(title="Predilect", lifespan=life, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk = desk
    app.include_router(routes, prefix=desk.root)
    for name, package in (("static", "predilect.live.web"), ("desk", "predilect.cli.desk")):
        app.mount(f"{desk.root}/{name}", StaticFiles(directory=str(files(package) / "static")), name=name)
    app.add_middleware(Guard, root=desk.root)
    app.exception_handler(PredilectError)(_refused)
    return app


class Guard:
    """Refuses whoever has not the address: another host name, another token, a page of another place."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        host = request.headers.get("host", "")
        token = f"/{request.url.path.split('/')[1]}"
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
        is_ours = origin in (None, f"http://{host}") and (site in _OURS or request.method == "GET")
        if host.rpartition(":")[0] not in _HOSTS or not hmac.compare_digest(token.encode(), self.root.encode()):
            await PlainTextResponse("not found\n", 404)(scope, receive, send)
        elif not is_ours:
            await PlainTextResponse("this came from a page of another place\n", 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    text = templates.get_template(template).render(_HEAD, root=_desk(request).root, **values)
    return HTMLResponse(text, status, headers=_headers(policy()))


def _headers(policy: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": policy, "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }  # fmt: skip


def _refused(request: Request, error: Exception) -> Response:
    return _page(request, "refused.html", 400, said=str(error))


def _to(request: Request, path: str) -> Response:
    return RedirectResponse(_desk(request).root + path, 303)


async def _fields(request: Request) -> list[tuple[str, str]]:
    async with request.form() as form:
        return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


Fields = Annotated[list[tuple[str, str]], Depends(_fields)]


@routes.get("/")
def start(request: Request) -> Response:
    """Where a file is dropped."""
    return _page(request, "start.html")


@routes.post("/")
async def upload(request: Request) -> Response:
    """Keep a file that came over, of answers or one that lies beside them, and go to the page of reading."""
    async with request.form(max_files=4) as form:
        asked = Asked.of([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
        for name in ("file", *TABLES):
            given = form.get(f"new-{name}")
            if isinstance(given, UploadFile) and given.filename:
                key = await run_in_threadpool(_desk(request).shelf.keep, given.filename, given.file)
                asked = Asked(key) if name == "file" else Asked.of([*asked.pairs, (name, key)])
    return _to(request, f"/read?{asked.query}" if asked.file else "/")


@routes.get("/read")
def read(request: Request) -> Response:
    """How a file is read."""
    desk, asked = _desk(request), Asked.of(request.query_params.multi_items())
    look = desk.looks.at(asked)
    columns, values = look.controls(asked)
    return _page(
        request, "read.html", look=look, asked=asked, name=desk.shelf[asked.file].name, columns=columns, values=values,
        command=asked.command(desk.shelf), personal=PERSONAL,
        beside={name: desk.shelf[key].name if (key := getattr(asked, name)) else "" for name in TABLES},
    )  # fmt: skip


@routes.post("/read")
def say(request: Request, fields: Fields) -> Response:
    """Take what the controls say into the address."""
    asked, said = Asked.of(fields), dict[str, dict[str, list[str]]](role={}, key={})
    for name, value in fields:
        kind, _, rest = name.partition(".")
        if kind in said and value:
            said[kind].setdefault(rest, []).append(value)
    asked = asked.with_roles(said["role"], _desk(request).looks.at(asked).taken).with_values(said["key"])
    return _to(request, f"/read?{asked.query}")


@routes.post("/rank")
def rank(request: Request, fields: Fields) -> Response:
    """Begin a ranking."""
    desk, asked = _desk(request), Asked.of(fields)
    key = asked.key(desk.shelf)
    desk.jobs.begin(key, asked.arguments(desk.shelf))
    return _to(request, f"/work/{key}?{asked.query}")


@routes.get("/work/{key}")
def work(request: Request, key: str) -> Response:
    """How far a ranking is; what came of it, once it is done."""
    desk, asked = _desk(request), Asked.of(request.query_params.multi_items())
    job = desk.jobs.get(key)
    if job is not None and job.state == "done":
        desk.library.put(key, job.folder)
        return _to(request, f"/results/{key}")
    return _page(request, "work.html", job=job, key=key, asked=asked)


@routes.get("/work/{key}/state")
def state(request: Request, key: str) -> Response:
    """How far a ranking is, for the script of its page."""
    job = _desk(request).jobs.get(key)
    if job is None:
        return JSONResponse({"state": "failed", "line": "", "done": 0})
    return JSONResponse({"state": job.state, "line": job.line, "done": job.done}, headers={"Cache-Control": "no-store"})


@routes.post("/work/{key}/stop")
def stop(request: Request, key: str, fields: Fields) -> Response:
    """Stop a ranking."""
    job = _desk(request).jobs.get(key)
    if job is not None:
        job.stop()
    return _to(request, f"/read?{Asked.of(fields).query}")


@routes.get("/results/{key}")
def results(request: Request, key: str) -> Response:
    """The report, with what is asked of it above."""
    desk, given = _desk(request), dict(request.query_params)
    shown = desk.library.at(key)
    answer, wrong = _answered(shown, given)
    values = {"root": desk.root, "key": key, "shown": shown, "offers": OFFERS, "wrong": wrong, "answer": answer}
    said = dict.fromkeys(("ask", "left", "right", "user", "curve"), "") | shown.defaults() | given
    made = (templates.get_template(f"{one}.html").render(said=said, **values) for one in ("head", "top", "ask_model"))
    text = page(shown.contents, *made)
    policy = policy_of(text).replace("script-src", "script-src 'self'").replace("style-src", "style-src 'self'")
    return HTMLResponse(text, headers=_headers(f"{policy}; connect-src 'self'; form-action 'self'; img-src 'self'"))


@routes.get("/results/{key}/answer")
def answered(request: Request, key: str) -> Response:
    """The answer alone, for the script of the page."""
    answer, wrong = _answered(_desk(request).library.at(key), dict(request.query_params))
    return HTMLResponse(answer or as_html(wrong), headers=_headers("default-src 'none'"))


def _answered(shown: OpenResults, given: dict[str, str]) -> tuple[str, str]:
    """What one person, two items or a scenario come to, as HTML; or what is wrong."""
    try:
        with spoken_to("command"):
            match given.get("ask"):
                case "person" if given.get("user"):
                    parts = shown.of_person(given["user"])
                case "pair" if given.get("left") and given.get("right"):
                    parts = shown.of_pair(given["left"], given["right"], given.get("user", ""))
                case "groups":
                    parts = shown.groups
                case "shares" if shown.attributes:
                    parts = shown.shares(shown.defaults() | given)
                case _:
                    parts = []
    except PredilectError as error:
        return "", str(error)
    return "".join(map(as_html, parts)), ""


@routes.get("/results/{key}/page.html")
def sent(request: Request, key: str) -> Response:
    """The page to send on, without ids of people."""
    text = page(replace(_desk(request).library.at(key).contents, name_people=False))
    return Response(text, media_type="text/html", headers={"Content-Disposition": 'attachment; filename="board.html"'})


@routes.get("/results/{key}/board.csv")
def board(request: Request, key: str) -> Response:
    """The board as a table."""
    content = io.BytesIO()
    write_csv(_desk(request).library.at(key).contents.board, content)
    head = {"Content-Disposition": 'attachment; filename="board.csv"'}
    return Response(content.getvalue(), media_type="text/csv; charset=utf-8", headers=head)


@routes.get("/results/{key}/folder.zip")
def folder(request: Request, key: str) -> Response:
    """The folder that ``predilect rank`` wrote."""
    place = _desk(request).library.at(key).folder
    if place is None:
        return PlainTextResponse("a live poll has no folder of results\n", 404)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(place.rglob("*")):
            packed.write(path, Path("results") / path.relative_to(place))
    head = {"Content-Disposition": 'attachment; filename="results.zip"'}
    return Response(content.getvalue(), media_type="application/zip", headers=head)


@routes.get("/results/{key}/ask")
def next_poll(request: Request, key: str) -> Response:
    """The form of a live poll about the items."""
    shown = _desk(request).library.at(key)
    return _page(
        request, "ask.html", key=key, n=len(shown.contents.board), where=str(Path.home() / "poll.db"), wrong=""
    )


@routes.post("/results/{key}/ask")
def begin_poll(request: Request, key: str, fields: Fields) -> Response:
    """Make a live poll about the items in a file that was named, and serve it on this machine."""
    from predilect.live import Poll

    desk, given = _desk(request), dict(fields)
    items = [str(one) for one in desk.library.at(key).contents.board["item"]]
    where = Path(given.get("where", ""))
    try:
        if where.exists():
            raise DataError(f"{where} is there already. Name another file")
        made = Poll.create(where, question=given.get("question", ""), items=items, background=False)
    except PredilectError as error:
        return _page(request, "ask.html", 400, key=key, n=len(items), where=str(where), wrong=str(error))
    token = made.token
    made.disconnect()
    return _page(request, "asking.html", key=key, token=token, where=where, lines=desk.jobs.serve(where))


@routes.get("/alive")
async def alive(request: Request) -> Response:
    """A line now and then as long as a page is open; when the last has gone, the server ends."""
    desk = _desk(request)

    async def lines() -> AsyncIterator[bytes]:
        desk.pages += 1
        try:
            while not desk.is_ended:
                yield b": here\n\n"
                await asyncio.sleep(1.0)
        finally:
            desk.pages -= 1
            task = asyncio.get_running_loop().create_task(_end_alone(desk))
            _waiting.add(task)
            task.add_done_callback(_waiting.discard)

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


_waiting: set[Awaitable[None]] = set()


async def _end_alone(desk: Desk) -> None:
    await asyncio.sleep(_SECONDS_ALONE)
    if desk.pages == 0:
        desk.end()
