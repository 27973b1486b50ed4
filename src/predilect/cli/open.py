"""``predilect open``: the same as pages, for whoever does not type options."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from predilect.cli.poll import the_live_wing
from predilect.cli.session import session
from predilect.errors import OutputError

_HOST = "127.0.0.1"


def open_(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE | DIR]", show_default="a page on which one drops a file",
            help="File of answers, folder that predilect rank wrote, or the log of a live poll.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser, or print its address alone.")
    ] = True,
) -> None:  # fmt: skip
    """Open pages on this machine that read a file, rank, and show the results: no option needs to be typed.

    Nothing leaves this machine, and nothing is written but where you say. It ends with the last page, or with Ctrl-C.

    Example: predilect open votes.csv
    """
    with session(ctx.obj) as talk:
        path = talk.file(path)
        the_live_wing()
        import uvicorn

        from predilect.cli.desk.app import Desk, create_app

        desk = Desk(secrets.token_urlsafe(16), lambda: setattr(server, "should_exit", True))
        place = desk.opened(path)
        config = uvicorn.Config(
            create_app(desk), log_level="warning", timeout_graceful_shutdown=2, server_header=False, date_header=False
        )
        server = uvicorn.Server(config)
        with socket.socket(socket.AF_INET) as listening:
            try:
                listening.bind((_HOST, 0))
            except OSError as error:
                raise OutputError(f"nothing can listen on {_HOST}: {error.strerror or error}") from error
            address = f"http://{_HOST}:{listening.getsockname()[1]}{place}"
            talk.show(address)
            talk.say("It ends with its last page, or with Ctrl-C.")
            if browser:
                webbrowser.open(address)
            server.run(sockets=[listening])
