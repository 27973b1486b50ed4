"""Calls from scripts of other sites: the participants' part of the API, for the sites that a poll names."""

from __future__ import annotations

import re

from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from predilect.errors import DataError, OutputError
from predilect.live.web.api import PARTICIPANTS, routes
from predilect.live.web.hosting import Host

_CALL = re.compile(r"/api/polls/([^/]+)(?:/.*)?")
_OPEN = [one for one in routes.routes if isinstance(one, APIRoute) and PARTICIPANTS in one.tags]
_SECONDS = "600"  # for which a browser need not ask again what it may send


class Elsewhere:
    """Lets browsers hand answers of the API to the sites that a poll names, and tells them what these may send.

    A script there speaks for a participant by the secret in a header alone: cookies do not count for it.
    """

    def __init__(self, app: ASGIApp, host: Host, root: str) -> None:
        self.app, self.host, self.root = app, host, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        given = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = given.get("origin", "")
        methods = self._methods(scope["path"].removeprefix(self.root)) if origin else []
        if not methods or not await self._is_allowed(scope["path"].removeprefix(self.root), origin):
            await self.app(scope, receive, send)
            return

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After"
                headers.add_vary_header("Origin")
            await send(message)

        if scope["method"] == "OPTIONS":
            told = {"Access-Control-Allow-Methods": ", ".join(methods), "Access-Control-Max-Age": _SECONDS,
                    "Access-Control-Allow-Headers": "Authorization, Content-Type"}  # fmt: skip
            await Response(status_code=204, headers=told)(scope, receive, send_with_origin)
        else:
            await self.app(scope, receive, send_with_origin)

    @staticmethod
    def _methods(path: str) -> list[str]:
        """What participants may do at a path."""
        return sorted({method for one in _OPEN if one.path_regex.match(path) for method in one.methods or ()})

    async def _is_allowed(self, path: str, origin: str) -> bool:
        found = _CALL.fullmatch(path)
        if found is None:
            return False
        poll = self.host.opened(found[1])
        if poll is None:
            try:
                poll = await run_in_threadpool(self.host.poll, found[1])
            except (DataError, OutputError):  # the call itself is told why
                return False
        return origin in poll.settings.origins
