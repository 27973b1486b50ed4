"""Running the application: one process or several, until it is told to stop, when it finishes what it began."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import uvicorn
from fastapi import FastAPI

from predilect.errors import OutputError
from predilect.live import warming
from predilect.live.web.app import create_app
from predilect.live.web.hosting import Host

_SETTINGS = "PREDILECT_SERVING"
_SECONDS_TO_STOP = 20


@dataclass(frozen=True)
class Serving:
    """What is served, and how."""

    place: str
    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""
    https: bool = False
    proxies: tuple[str, ...] = ()
    processes: int = 1
    joins: int = 600
    access_log: bool = False
    stop_after: float | None = None
    code: str = ""
    own_network: bool = False


def application() -> FastAPI:
    """The application of one of several processes, which find their settings in the environment."""
    told = Serving(**json.loads(os.environ[_SETTINGS]))
    root = told.root_path.rstrip("/")
    host = Host(told.place, told.code or None, own_network=told.own_network)
    return create_app(host, joins=told.joins, is_secure=told.https, root=root)


def run(told: Serving, say: Callable[[str], object]) -> None:
    """Serve until SIGTERM, Ctrl-C, or ``stop_after`` seconds; requests under way are finished.

    Raises DataError if there are no polls at the place, OutputError if nothing can listen at the address.
    """
    first = Host(told.place, told.code or None)
    told = replace(told, port=_free_port(told.host, told.port))
    base = f"http://{told.host}:{told.port}{told.root_path.rstrip('/')}"
    for name in first.names():
        say(f"{name}: participants {base}/p/{name}, organiser {base}/o/{name}")
    say(f"New polls: {base}/new, with the code {'that was set' if told.code else first.code}")  # logs keep no secret
    first.close()
    compiling = warming.begin()
    os.environ[_SETTINGS] = json.dumps(asdict(told) | {"code": first.code})
    if told.stop_after is not None:
        timer = threading.Timer(told.stop_after, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timer.start()
    try:
        uvicorn.run(
            "predilect.live.web.serving:application", factory=True, host=told.host, port=told.port,
            workers=told.processes if told.processes > 1 else None, access_log=told.access_log, log_level="warning",
            proxy_headers=bool(told.proxies), forwarded_allow_ips=",".join(told.proxies) or None,
            timeout_graceful_shutdown=_SECONDS_TO_STOP, server_header=False, date_header=False,
        )  # fmt: skip
    except KeyboardInterrupt:
        pass
    finally:
        os.environ.pop(_SETTINGS, None)
        if compiling is not None:
            compiling.terminate()
            compiling.wait()
    say("Stopped; every answer that was acknowledged is kept.")


def _free_port(host: str, port: int) -> int:
    """The port, or for 0 any that is free; OutputError if nothing can listen there."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        said = error.strerror or str(error)
        raise OutputError(
            f"nothing can listen on {host}, port {port}: {said}. Give another --port, or --host"
        ) from error
