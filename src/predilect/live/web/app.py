"""The application: the API, the pages, what is said to machines, and the headers of every answer."""

from __future__ import annotations

import logging
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from predilect._base.text import one_line
from predilect._version import __version__
from predilect.errors import OutputError
from predilect.live.given import Refused
from predilect.live.poll import Poll
from predilect.live.web import api, organiser, pages, results
from predilect.live.web.access import Access, policy
from predilect.live.web.describing import describe
from predilect.live.web.elsewhere import Elsewhere
from predilect.live.web.hosting import Host

_LONGEST_BODY = 1_000_000  # bytes
_HEADERS = {
    "Content-Security-Policy": policy(), "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}  # fmt: skip
_log = logging.getLogger("predilect.live")


def create_app(host: Host, *, joins: int = 600, is_secure: bool = False, root: str = "") -> FastAPI:
    """The application that serves the polls of a host; ``joins`` is how many may join from an address in a minute."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        host.close()

    app = FastAPI(
        title="Predilect polls", version=__version__, lifespan=life, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json",
    )  # fmt: skip
    app.state.access = Access(host, joins=joins, is_secure=is_secure, root=root)
    app.state.counts, app.state.seconds = Counter(), [0.0]
    # As they are, for nothing is added to them: to include a router makes its routes anew, a tenth of a second in all.
    for routes in (api.routes, pages.routes, results.routes, organiser.routes):
        app.router.routes.extend(routes.routes)
    describe(app)
    app.mount("/static", StaticFiles(directory=str(files("predilect.live.web") / "static")), name="static")
    app.add_middleware(Elsewhere, host=host, root=root)
    app.add_middleware(Around, counts=app.state.counts, seconds=app.state.seconds, root=root)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.add_api_route("/health", _health, include_in_schema=False)
    app.add_api_route("/metrics", _metrics, include_in_schema=False)
    app.exception_handler(Refused)(_refused)
    app.exception_handler(OutputError)(_unwritten)
    app.exception_handler(HTTPException)(_not_there)
    app.exception_handler(RequestValidationError)(_unreadable)
    return app


class Around:
    """Counts and times requests, refuses what is too long, and sets the headers that keep pages to themselves."""

    def __init__(self, app: ASGIApp, counts: Counter[str], seconds: list[float], root: str) -> None:
        self.app, self.counts, self.seconds, self.root = app, counts, seconds, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        below = scope["path"].removeprefix(self.root)  # a proxy took it off, or left it
        scope = {**scope, "root_path": self.root, "path": self.root + below}

        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                self.counts[f'predilect_requests_total{{status="{message["status"]}"}}'] += 1
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if not below.startswith("/static"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        given = Headers(scope=scope)
        length = given.get("content-length", "0")
        is_stream = "chunked" in given.get("transfer-encoding", "")
        if is_stream or not length.isdecimal() or int(length) > _LONGEST_BODY:
            await _answer(Request(scope), 413, "this is too long")(scope, receive, send_with_headers)
        else:
            try:
                await self.app(scope, receive, send_with_headers)
            except Exception as error:
                if has_begun:
                    raise
                answer = await run_in_threadpool(_failed, Request(scope), error)
                await answer(scope, receive, send_with_headers)
        self.seconds[0] += time.perf_counter() - started


def _wants_page(request: Request) -> bool:
    return "/api/" not in request.url.path and "text/html" in request.headers.get("accept", "")


def _answer(request: Request, status: int, said: str, *, is_refusal: bool = False) -> Response:
    """What went wrong; on a page in its language, and in words that are not made for participants only of what kind."""
    headers = {"Retry-After": "2"} if status == 429 else {}
    if _wants_page(request):
        answer = pages.refusal(request, status, said if is_refusal else "")
        answer.headers.update(headers)
        return answer
    return JSONResponse({"error": said}, status, headers=headers)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(request, error.status, str(error), is_refusal=True)


def _failed(request: Request, error: Exception) -> Response:
    """Whatever is no refusal is our mistake, of which the log is told and nobody else."""
    route = getattr(request.scope.get("route"), "path", "?")  # a path as it came may hold a secret
    (place,) = traceback.extract_tb(error.__traceback__)[-1:]
    told = f"{type(error).__name__}: {one_line(str(error))}"
    _log.error("%s %s failed: %s (%s:%s)", request.method, route, told, place.filename, place.lineno)
    return _answer(request, 500, "the server made a mistake, which its log tells of. What was acknowledged is kept")


def _unwritten(request: Request, error: Exception) -> Response:
    _log.error("%s", error)
    return _answer(request, 503, "nothing could be written, and nothing is lost. Try again in a moment")


def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _answer(request, error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return _answer(request, 422, f"{where}: {first['msg']}")


def _icon(request: Request) -> Response:
    """What browsers ask for beside a page that names no icon."""
    content = (files("predilect.live.web") / "static" / "poll.svg").read_bytes()
    return Response(content, media_type="image/svg+xml")


def _health(request: Request) -> Response:
    """Whether every poll can be read, for whoever restarts what does not answer; no poll is named."""
    host: Host = request.app.state.access.host
    lost = host.lost()
    if lost:
        _log.error("cannot be read: %s", ", ".join(lost))
        return PlainTextResponse(f"{len(lost)} of {len(host.names())} polls cannot be read\n", 503)
    rows = [str(one.row) for left_out in host.each(Poll.left_out) for one in left_out]
    told = f"left out, as the log of this server says: row {', '.join(rows[:3])}{' and more' * (len(rows) > 3)}\n"
    return PlainTextResponse(f"ok\n{told if rows else ''}")


def _metrics(request: Request) -> Response:
    """Numbers for Prometheus, of this process; no poll is named."""
    access: Access = request.app.state.access
    polls = [poll.numbers() for poll in access.watched(request)]
    counts: Counter[str] = request.app.state.counts
    lines = [f"{name} {value}" for name, value in sorted(counts.items())]
    lines.append(f"predilect_request_seconds_sum {request.app.state.seconds[0]}")
    lines.append(f"predilect_request_seconds_count {sum(counts.values())}")
    lines.append(f"predilect_polls_open {len(polls)}")
    totals = ("answers", "participants", "refits_failed", "refits_due", "rows_left_out", "notices_failed")
    lines += [f"predilect_{name} {sum(one[name] for one in polls)}" for name in totals]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")
