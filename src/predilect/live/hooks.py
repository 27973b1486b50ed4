"""Notices to an address that the organiser names: signed, sent beside everything else, tried again until an end."""

from __future__ import annotations

import hashlib
import heapq
import hmac
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from contextlib import suppress
from ipaddress import IPv6Network, ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from predilect._base.text import one_line
from predilect.errors import OutputError

_log = logging.getLogger("predilect.live")
WAITS = (10.0, 60.0, 300.0, 1800.0)  # seconds before it is tried again; then it is given up
_LONGEST = 10.0  # seconds of a try, and of each wait in it
_MOST_WAITING = 200
_NAT64 = IPv6Network("64:ff9b::/96")
SIGNATURE = "Predilect-Signature"


class _Notice(NamedTuple):
    """What is to be sent, and when, by the clock that goes on."""

    at: float
    number: int
    tries: int
    url: str
    body: bytes


class Hooks:
    """The notices of one poll, sent by a thread that starts with the first of them and ends with the process.

    ``to_own_network`` is whether addresses of the machine and the networks around it may be told, by HTTP too. Notices
    that wait when the process ends are lost; the log has what they were about.
    """

    def __init__(self, name: str, key: str, *, to_own_network: bool = False) -> None:
        self.name, self.to_own_network = name, to_own_network
        self.failed = 0  # notices that were given up
        self._key = key
        self._waiting: list[_Notice] = []
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends = False
        self._number = 0

    def send(self, url: str, told: dict[str, Any]) -> None:
        """Hand in a notice, and go on; one too many is given up at once."""
        body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        with self._news:
            if len(self._waiting) >= _MOST_WAITING:
                self.failed += 1
                _log.error("%s: %d notices wait for the webhook; one more is given up", self.name, _MOST_WAITING)
                return
            self._number += 1
            heapq.heappush(self._waiting, _Notice(time.monotonic(), self._number, 0, url, body))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"webhook of {self.name}", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def close(self) -> None:
        """Send no more."""
        with self._news:
            self._ends = True
            self._news.notify_all()

    def _work(self) -> None:
        while (notice := self._next()) is not None:
            try:
                post(notice.url, notice.body, self._key, to_own_network=self.to_own_network)
            except Exception as error:  # noqa: BLE001  whatever stands at the other end, the next one is sent
                self._again(notice, error)

    def _next(self) -> _Notice | None:
        with self._news:
            while not self._ends:
                wait = self._waiting[0].at - time.monotonic() if self._waiting else None
                if wait is not None and wait <= 0.0:
                    return heapq.heappop(self._waiting)
                self._news.wait(wait)
        return None

    def _again(self, notice: _Notice, error: Exception) -> None:
        host, why = urlsplit(notice.url).hostname, one_line(str(error)) or type(error).__name__
        if notice.tries == len(WAITS):
            self.failed += 1
            _log.error("%s: the webhook at %s is not told, and given up: %s", self.name, host, why)
            return
        _log.warning("%s: the webhook at %s is not told, and tried again: %s", self.name, host, why)
        with self._news:
            later = notice._replace(at=time.monotonic() + WAITS[notice.tries], tries=notice.tries + 1)
            heapq.heappush(self._waiting, later)


def signature(key: str, moment: int, body: bytes) -> str:
    """What the header :data:`SIGNATURE` holds: HMAC-SHA-256 by the key of the time, a point and the body."""
    told = hmac.new(key.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={told}"


def post(url: str, body: bytes, key: str, *, to_own_network: bool = False) -> None:
    """Send a notice once: no redirect is followed; OutputError if it is not taken (2xx), or may not go there."""
    parts = urlsplit(url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    if not is_secure and not to_own_network:
        raise OutputError("notices go to https:// alone")
    port = parts.port or (443 if is_secure else 80)
    place = _place(host, port, to_own_network)
    connection = (_Secure if is_secure else _Plain)(host, port, place)
    headers = {"Content-Type": "application/json", "User-Agent": "Predilect",
               SIGNATURE: signature(key, int(time.time()), body)}  # fmt: skip
    cut = threading.Timer(_LONGEST, connection.cut)  # whoever answers bit by bit keeps every wait short
    cut.daemon = True
    cut.start()
    try:
        connection.request("POST", f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        if connection.is_cut:
            raise OutputError(f"it has not answered within {_LONGEST:g} seconds") from error
        raise
    finally:
        cut.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise OutputError(f"it answers {status}")


def _place(host: str, port: int, to_own_network: bool) -> str:
    """The address of a host that is connected to: looked up once, so that what was allowed is what is asked."""
    found = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    wrong = [one for one in found if not to_own_network and not is_public(one)]
    if wrong or not found:
        raise OutputError("its address is of this machine's own network. predilect poll serve --own-network allows it")
    return found[0]


def is_public(address: str) -> bool:
    """Whether an address is of the public internet, also where it stands for another one."""
    found = ip_address(address.partition("%")[0])
    if found.version == 6:
        within = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            within = ip_address(int(found) & 0xFFFFFFFF)  # type: ignore[assignment]
        if within is not None:
            return is_public(str(within))
    return found.is_global and not found.is_multicast and not found.is_reserved


class _Plain(http.client.HTTPConnection):
    """A connection to an address that was looked at, whatever the name means by now."""

    def __init__(self, host: str, port: int, place: str) -> None:
        super().__init__(host, port, timeout=_LONGEST)
        self._place, self.is_cut = place, False

    def cut(self) -> None:
        """End it, whoever waits for what."""
        self.is_cut = True
        if self.sock is not None:
            with suppress(OSError):  # it has ended
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # at once, without what TLS would say

    def connect(self) -> None:
        """Connect to that address."""
        self.sock = socket.create_connection((self._place, self.port), self.timeout)


class _Secure(_Plain):
    """The same by TLS, whose certificate has to be of the name."""

    def connect(self) -> None:
        """Connect, and look at the certificate."""
        super().connect()
        secure = ssl.create_default_context()
        self.sock = tls = secure.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        tls.do_handshake()  # where it can be cut
