"""Notices to an organiser's address: what they say, who signed them, when they are given up, where they never go."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cli.running import run
from live.polls import answered, made
from predilect.errors import DataError, OutputError
from predilect.live import Poll, hooks
from predilect.live.hooks import Hooks, is_public, post, signature


@contextmanager
def listening(*statuses, location=""):
    """A place that is told: its address and what came, which it answers by these statuses, the last one again."""
    came = []

    class Told(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.path, dict(self.headers), body))
            self.send_response(statuses[min(len(came), len(statuses)) - 1])
            if location:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Told)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(holds):
    """Wait until something holds, ten seconds at most."""
    ends = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.fixture
def quick(monkeypatch):
    """What failed is tried again at once."""
    monkeypatch.setattr(hooks, "WAITS", (0.0, 0.0))


def test_a_proposal_is_told_once_signed_and_names_nobody(tmp_path):
    with listening(204) as (url, came), made(tmp_path, name="ideas", proposals=True, background=True) as poll:
        poll.hooks.to_own_network = True
        poll.change(webhook=f"{url}/told?by=poll")
        number = poll.propose_item("ann", "mate of Ünï", key="k")
        assert poll.propose_item("ann", "mate of Ünï", key="k") == number
        wait_for(lambda: came)
        poll.propose_item("bob", "cocoa")
        wait_for(lambda: len(came) == 2)
        (path, headers, body), (_, _, second) = came
        assert path == "/told?by=poll"
        told = json.loads(body)
        assert told == {"poll": "ideas", "event": "proposed", "sequence": told["sequence"],
                        "item": {"number": number, "name": "mate of Ünï"}}  # fmt: skip
        assert json.loads(second)["item"]["name"] == "cocoa"
        assert b"ann" not in body
        moment, sent = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", headers["Predilect-Signature"]).groups()
        key = run("poll", "token", tmp_path / "poll.db", "--webhook").stdout.strip()
        assert sent == hmac.new(key.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert abs(int(moment) - time.time()) < 60
        assert key != poll.log.signing


def test_a_first_place_that_is_clear_is_told_once_by_whoever_finds_it(tmp_path, monkeypatch):
    class Outlook:
        enough, items, probability = True, ["cola"], 0.97

    monkeypatch.setattr(Poll, "outlook", lambda *_, **__: Outlook)
    with listening(200) as (url, came), made(tmp_path, name="ideas", webhook=url) as poll:
        poll._background = poll.hooks.to_own_network = True
        with Poll.open(tmp_path / "poll.db", background=False) as other:
            answered(poll, ["ann"], 2)
            poll._settle()
            other.log.refresh()
            other._settle()
            poll._settle()
            assert [row["kind"] for row in poll.export("events").to_dicts()].count("settled") == 1
            assert other.log.state.settled == poll.log.state.settled == {0: [5]}
        wait_for(lambda: came)
        told = json.loads(came[0][2])
        assert told == {"poll": "ideas", "event": "settled", "sequence": told["sequence"], "claim": "best",
                        "criterion": "Which drink?", "items": ["cola"], "probability": 0.97}  # fmt: skip
        assert len(came) == 1


@pytest.mark.usefixtures("quick")
def test_what_is_not_taken_is_tried_again_and_given_up_in_the_end(caplog):
    with listening(500, 429, 200) as (url, came):
        sender = Hooks("ideas", "key", to_own_network=True)
        sender.send(url, {"n": 1})
        wait_for(lambda: len(came) == 3)
        assert len({body for *_, body in came}) == 1
        sender.close()
    with listening(500) as (url, came):
        sender = Hooks("ideas", "key", to_own_network=True)
        sender.send(url, {"n": 1})
        wait_for(lambda: sender.failed)
        assert len(came) == 3
        sender.close()
    assert "given up: it answers 500" in caplog.text


@pytest.mark.parametrize("drip", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X"])
def test_what_answers_bit_by_bit_without_an_end_is_left(monkeypatch, drip):
    monkeypatch.setattr(hooks, "_LONGEST", 0.5)
    ends = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as place:

        def answer():
            with contextlib.suppress(OSError), place.accept()[0] as one:
                while not ends.wait(0.1):
                    one.sendall(drip)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(OutputError, match=r"within 0\.5 seconds"):
                post(f"http://127.0.0.1:{place.getsockname()[1]}/", b"{}", "key", to_own_network=True)
        finally:
            ends.set()
            thread.join()
        assert time.monotonic() - began < 30.0


@pytest.mark.usefixtures("quick")
def test_nobody_follows_a_redirect():
    with listening(200) as (inner, came), listening(307, location=inner) as (url, first):
        sender = Hooks("ideas", "key", to_own_network=True)
        sender.send(url, {"n": 1})
        wait_for(lambda: sender.failed)
        assert (len(first), came) == (3, [])
        sender.close()


def test_an_answer_waits_for_nothing_that_is_told(tmp_path, monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(hooks, "post", lambda *_, **__: goes_on.wait(30.0))
    with made(tmp_path, proposals=True, background=True, webhook="https://hook.example") as poll:
        poll.propose_item("ann", "mate")
        poll.tell("ann", poll.ask("ann")[0].shown, "skip")  # though the notice is still on its way
        assert not goes_on.is_set()
        for _ in range(hooks._MOST_WAITING + 2):
            poll.hooks.send("https://hook.example", {})
        assert poll.hooks.failed > 0
        assert poll.numbers()["notices_failed"] == poll.hooks.failed
        goes_on.set()


OWN = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "::1",
    "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1",
    "::", "255.255.255.255",
]  # fmt: skip


@pytest.mark.parametrize("address", OWN)
def test_an_address_of_ones_own_network_is_told_nothing(address, monkeypatch):
    assert not is_public(address)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [
        (0, 0, 0, "", ("93.184.216.34", 443)), (0, 0, 0, "", (address, 443)),
    ])  # fmt: skip
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it connects"))
    with pytest.raises(OutputError, match="own network"):
        post("https://innocent.example", b"{}", "key")


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_an_address_of_the_internet_is_told(address):
    assert is_public(address)


def test_what_was_looked_at_is_what_is_connected_to(monkeypatch):
    asked, tried = [], []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: asked.append(host) or [
        (0, 0, 0, "", ("93.184.216.34", 8443))
    ])  # fmt: skip

    def connects(place, _):
        tried.append(place)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "create_connection", connects)
    with pytest.raises(ConnectionRefusedError):
        post("https://rebinding.example:8443/x", b"{}", "key")
    assert (asked, tried) == (["rebinding.example"], [("93.184.216.34", 8443)])
    with pytest.raises(OutputError, match="https:// alone"):
        post("http://plain.example", b"{}", "key")


def test_what_is_no_webhook(tmp_path):
    for wrong in ("ftp://x.example", "javascript:1", "https://", "https://user:pw@x.example", "https://x.example:99999",
                  "https://x.example/a b", "https://x.example/\r\nHost: y"):  # fmt: skip
        with pytest.raises(DataError, match="webhook is an address"):
            made(tmp_path, webhook=wrong)
    assert signature("k", 1, b"x").startswith("t=1,v1=")
