"""A poll that is served for tests: on 127.0.0.1, in a thread, for as long as a block lasts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from predilect.live.web.app import create_app
from predilect.live.web.hosting import Host
from serving import listening

_BROWSERS: list[httpx.Client] = []  # to be closed before their server


@contextmanager
def served(place: str, **options: Any) -> Iterator[tuple[str, Host]]:
    """Address and host of a server of the polls at a place."""
    host = Host(place, "the-code")
    with listening(create_app(host, **options)) as address:
        try:
            yield address, host
        finally:
            while _BROWSERS:
                _BROWSERS.pop().close()


def browser(address: str, **options: Any) -> httpx.Client:
    """Somebody with cookies, who accepts pages and follows where they are sent."""
    told: dict[str, Any] = {"headers": {"accept": "text/html"}, "follow_redirects": True, "timeout": 30} | options
    told["verify"] = False  # certificates, which no address here has, take 40 ms to load
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
