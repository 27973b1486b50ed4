"""A poll that is served for tests: on 127.0.0.1, in a thread, for as long as a block lasts."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from predilect.live.web.app import create_app
from predilect.live.web.hosting import Host

_BROWSERS: list[httpx.Client] = []  # to be closed before their server


@contextmanager
def served(place: str, **options: Any) -> Iterator[tuple[str, Host]]:
    """Address and host of a server of the polls at a place."""
    host = Host(place, "the-code")
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(host, **options)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", host
    finally:
        while _BROWSERS:
            _BROWSERS.pop().close()
        server.should_exit = True
        thread.join(30)
        listening.close()


def browser(address: str, **options: Any) -> httpx.Client:
    """Somebody with cookies, who accepts pages and follows where they are sent."""
    told: dict[str, Any] = {"headers": {"accept": "text/html"}, "follow_redirects": True, "timeout": 30} | options
    _BROWSERS.append(httpx.Client(base_url=address, **told))
    return _BROWSERS[-1]


def fields(page: str, action: str) -> dict[str, str]:
    """Hidden fields of the first form of a page with this end of its address."""
    form = re.search(rf'<form[^>]*action="[^"]*{re.escape(action)}"[^>]*>(.*?)</form>', page, flags=re.S)
    assert form is not None, page
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form[1]))


def joined(address: str, poll: str) -> httpx.Client:
    """A participant in a browser of their own."""
    client = browser(address)
    page = client.get(f"/p/{poll}").text
    answer = client.post(f"/p/{poll}/join", data=fields(page, "/join") | {"agreed": "yes"})
    assert answer.status_code == 200, answer.text
    return client
