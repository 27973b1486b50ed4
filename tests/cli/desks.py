"""A desk that is served for tests, and its pages as somebody without script walks through them."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from predilect.cli.desk.app import Desk, create_app
from serving import listening


@contextmanager
def desk_served() -> Iterator[tuple[str, Desk]]:
    """Address and desk of a server of its own."""
    desk = Desk("the-token")
    with listening(create_app(desk)) as address:
        yield address + desk.root, desk


class Visitor:
    """Somebody with a browser that runs no script, on one page after the other."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._origin = address.rpartition("/")[0]
        self._client = httpx.Client(
            follow_redirects=True, timeout=120, headers={"origin": self._origin}, verify=False
        )  # fmt: skip
        self.page, self.at = "", ""

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _took(self, answer: httpx.Response) -> Visitor:
        self.page, self.at, self.status = answer.text, str(answer.url), answer.status_code
        return self

    def go(self, place: str) -> Visitor:
        return self._took(self._client.get(place if place.startswith("http") else self._origin + place))

    def upload(self, path: Path, name: str = "new-file") -> Visitor:
        fields = self.hidden("/the-token/") if name != "new-file" else {}
        return self._took(
            self._client.post(f"{self.address}/", data=fields, files={name: (path.name, path.read_bytes())})
        )

    def hidden(self, action: str) -> dict[str, list[str]]:
        """Hidden fields of the form with an address that ends so."""
        form = re.search(rf'<form[^>]*action="[^"]*{re.escape(action)}"[^>]*>(.*?)</form>', self.page, flags=re.S)
        assert form is not None, self.page
        found: dict[str, list[str]] = {}
        for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form[1]):
            found.setdefault(name, []).append(html.unescape(value))
        return found

    def submit(self, action: str, **more: Any) -> Visitor:
        return self._took(self._client.post(f"{self.address}{action}", data={**self.hidden(action), **more}))

    @property
    def ways(self) -> list[str]:
        """Addresses of the ways that a question offers."""
        return [html.unescape(one) for one in re.findall(r'<a class="way" href="([^"]+)"', self.page)]

    @property
    def command(self) -> str:
        """The command that does the same."""
        found = re.search(r"<code>(predilect rank .*?)</code>", self.page, flags=re.S)
        assert found is not None, self.page
        return html.unescape(found[1])

    def ranked(self) -> Visitor:
        """Wait until the ranking is done."""
        while "/work/" in self.at and "<progress" in self.page:
            time.sleep(0.2)
            self.go(self.at)
        return self
