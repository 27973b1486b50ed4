"""Messages, progress, warnings and exit codes of a command."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from predilect._base.files import existing, is_stream, suffix_of
from predilect._base.text import HARMFUL, printable, spoken_to
from predilect._base.text import message as readable
from predilect.cli.share import END, Share, Ticker
from predilect.errors import ConvergenceError, DataError, OutputError, PredilectError

if TYPE_CHECKING:
    import polars as pl

    from predilect._base.progress import Watcher

Given = TypeVar("Given", bound=Path | None)  # a file, if there is one
_DIGITS = 4  # of a number on a terminal
_WIDTH_OF_A_PIPE = 110  # columns; rich would take 80 and cut names

NOT_WRITTEN, BAD_INPUT, NOT_CONVERGED, INTERRUPTED, TERMINATED = 1, 2, 3, 130, 143
_SECONDS_TO_END = 1.5  # after a signal
_SECONDS_A_LINE, _SECONDS_FOR_A_PAGE = 10.0, 0.5  # of progress, where there is no terminal
FOR_A_PAGE = "PREDILECT_FOR_A_PAGE"  # set where a page of predilect open waits for the command


class Terminated(KeyboardInterrupt):
    """SIGTERM came, which ends a command as Ctrl-C does."""


@dataclass(frozen=True)
class Common:
    """Options of every command; without a ``format`` each prints what it is mostly used for."""

    format: str | None = None
    quiet: bool = False
    explain: bool = False
    jobs: int | None = None
    seed: int = 0
    strict: bool = False


class Talk:
    """Output of a command: results on standard output, warnings and errors on standard error, each warning once.

    ``kind`` is what standard output holds: a "table" for people and all that is said, or "csv", "md" or "json" alone,
    and everything else goes to standard error. ``quiet`` leaves results, warnings and errors, ``explains`` adds what
    :meth:`detail` says. ``warned`` holds every warning so far, ``written`` what was written, for the message after
    Ctrl-C.
    """

    def __init__(self, common: Common = Common(), usually: str = "table") -> None:
        self.kind = common.format or usually
        self.quiet = common.quiet
        self.explains = common.explain
        self._said_apart = self.kind != "table" or usually != "table"
        self.warned: list[str] = []
        self.written = ""
        self.out = Console(highlight=False, emoji=False)
        if not self.out.is_terminal:
            self.out = Console(highlight=False, emoji=False, width=_WIDTH_OF_A_PIPE)
        self.err = Console(stderr=True, highlight=False, emoji=False)
        self._held: TemporaryDirectory[str] | None = None
        self._took_input = False

    def file(self, path: Given) -> Given:
        """A file that was given; what comes out of a pipe, or of standard input for "-", as a file of the session.

        DataError if there is no such file, before anything is imported that takes long, or standard input is asked for
        twice.
        """
        if path is None:
            return path
        if str(path) != "-" and not is_stream(existing(path)):
            return path
        if str(path) != "-":
            name, data = path.name, path.read_bytes()
        elif self._took_input:
            raise DataError("standard input (-) can be read but once. Give the other file by its name")
        else:
            self._took_input = True
            name, data = "standard-input", b"" if sys.stdin is None else sys.stdin.buffer.read()
        try:
            if self._held is None:
                self._held = TemporaryDirectory(prefix="predilect-")
            held = Path(self._held.name) / f"{name}{suffix_of(data)}"
            held.write_bytes(data)
        except OSError as error:
            raise DataError(
                f"{name} comes out of a pipe and cannot be kept meanwhile: {error.strerror or error}. Give a file in "
                "its place, or name another folder for temporary files with the variable TMPDIR"
            ) from error
        return cast("Given", held)

    def close(self) -> None:
        """Remove what came out of pipes."""
        if self._held is not None:
            self._held.cleanup()

    @property
    def width(self) -> int:
        """Columns of what :meth:`say` prints to."""
        return (self.err if self._said_apart else self.out).width

    def interrupted(self, ended: str) -> None:
        """Say that a signal ended the command, and what is there of it."""
        _print(self.err, f"{ended}; {f'{self.written} is complete' if self.written else 'nothing was written'}.")

    def say(self, said: RenderableType = "", style: str = "") -> None:
        """Print a sentence, or something that rich can print, unless quiet."""
        if not self.quiet:
            self.show(said, style)

    def detail(self, said: RenderableType = "") -> None:
        """Print what is asked for with ``--explain``."""
        if self.explains:
            self.say(said)

    def show(self, said: RenderableType = "", style: str = "") -> None:
        """Print what was asked for, quiet or not."""
        _print(self.err if self._said_apart else self.out, self._named(said) if isinstance(said, str) else said, style)

    def warn(self, text: str) -> None:
        """Print a warning, once."""
        text = self._named(text)
        if text not in self.warned:
            self.warned.append(text)
            _print(self.err, text, head=Text("Warning: ", "bold yellow"))

    def fail(self, text: str) -> None:
        """Print an error."""
        _print(self.err, self._named(text), head=Text("Error: ", "bold red"))

    def _named(self, text: str) -> str:
        """Text in which what came out of a pipe has its name alone, and not the folder that holds it meanwhile."""
        return text if self._held is None else text.replace(f"{self._held.name}/", "")

    def result(
        self, table: pl.DataFrame, schema: str, document: dict[str, Any], drawn: Any = None, markdown: str = ""
    ) -> None:
        """Print a result to standard output: the table, ``drawn`` for people and as ``markdown``, or the document.

        The document gets its schema, a version and the warnings.
        """
        from predilect._base.json import plain
        from predilect.cli.tables import as_rich

        if self.kind == "json":
            head = {"schema": f"predilect/{schema}", "version": 1}
            self._document(plain({**head, "warnings": self.warned, **document}, words=False))
        elif self.kind == "table":
            _print(self.out, as_rich(table) if drawn is None else drawn)
        elif self.kind == "md" and markdown:
            typer.echo(markdown, nl=False)
        else:
            self.table(table, self.kind)

    def _document(self, document: Any) -> None:
        """Print a JSON document to standard output."""
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str)
        # JSON itself escapes control characters below 32 alone; those that are left are within strings.
        escaped = (HARMFUL.sub(lambda match: json.dumps(match[0])[1:-1], line) for line in text.split("\n"))
        sys.stdout.write("\n".join(escaped) + "\n")
        sys.stdout.flush()

    def table(self, table: pl.DataFrame, kind: str = "csv") -> None:
        """Print a table as "csv" or "md", and a terminal is given few digits; DataError if it cannot hold a column."""
        import polars as pl

        from predilect.show.report.tables import refuse_nested, write_csv

        refuse_nested(table)
        terminal = sys.stdout.isatty()
        if kind == "md":
            from predilect.show.report.text import table_as_markdown

            text = table_as_markdown(table)
        else:
            if terminal:  # for people, who need no 17 digits
                table = table.with_columns(pl.selectors.float().round_sig_figs(_DIGITS))
            content = io.BytesIO()
            write_csv(table, content)
            text = content.getvalue().decode()
        if terminal:
            text = "\n".join(printable(line) for line in text.split("\n"))
        typer.echo(text, nl=False)

    @contextmanager
    def progress(self, doing: str, first: float = END) -> Iterator[Watcher]:
        """Show ``doing``, each stage and the share that is done, unless quiet; yields ``watch(stage, done)``.

        On a terminal as a bar; elsewhere as a line on standard error every ten seconds. ``first``: the share at which
        parts begin that are told of, if any come.
        """
        share = Share(doing, first)
        if self.quiet:
            yield share
            return
        if not self.err.is_terminal:
            seconds = _SECONDS_FOR_A_PAGE if FOR_A_PAGE in os.environ else _SECONDS_A_LINE
            with Ticker(lambda: _print(self.err, self._named(share.line)), seconds):
                yield share
            return
        # A stage that is long goes on in the next line, so that the share and the time are always seen.
        stage = TextColumn("{task.description}", table_column=Column(overflow="fold", ratio=1))
        columns = (
            SpinnerColumn(), BarColumn(bar_width=16, table_column=Column(min_width=16)),
            TextColumn("{task.percentage:>3.0f}%", table_column=Column(no_wrap=True, min_width=4)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)), stage,
        )  # fmt: skip
        with Progress(*columns, console=self.err, transient=True, expand=True) as bar:
            task = bar.add_task(doing, total=1.0)
            with Ticker(lambda: bar.update(task, completed=share.now, description=escape(share.stage)), 0.2):
                yield share


@contextmanager
def session(common: Common = Common(), usually: str = "table") -> Iterator[Talk]:
    """Run a command: its errors become one message and an exit code, its warnings become notes.

    ``usually`` is what the command prints without ``--format``.

    Raises typer.Exit: 1 if the output could not be written, 2 for input that cannot be used, 3 for no convergence where
    that is asked for, 130 after Ctrl-C, 143 after SIGTERM.
    """
    talk = Talk(common, usually)

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | ImportWarning | ResourceWarning):
            talk.warn(" ".join(str(message).split()))

    with _terminable(talk), warnings.catch_warnings(), spoken_to("command"), _logged(common):
        warnings.simplefilter("always")  # each is shown, and not the first of a place alone
        warnings.showwarning = show
        try:
            try:
                yield talk
                sys.stdout.flush()
            except OSError as error:
                raise _interrupt_behind(error) or error from None
        except KeyboardInterrupt as error:
            ended, code = ("Terminated", TERMINATED) if isinstance(error, Terminated) else ("Interrupted", INTERRUPTED)
            talk.interrupted(ended)
            raise typer.Exit(code) from None
        except ConvergenceError as error:
            talk.fail(f"{error}. Nothing was written; without --strict this is a warning.")
            raise typer.Exit(NOT_CONVERGED) from None
        except OutputError as error:
            talk.fail(str(error))
            raise typer.Exit(NOT_WRITTEN) from None
        except PredilectError as error:
            talk.fail(str(error))
            raise typer.Exit(BAD_INPUT) from None
        except BrokenPipeError:
            raise  # the reader of a pipe has left, which Typer ends quietly
        except EOFError as error:  # which Typer would take for Ctrl-D
            talk.fail(f"a file ends too early ({error}). It was cut short, or damaged: write or fit it again.")
            raise typer.Exit(BAD_INPUT) from None
        except MemoryError:
            talk.fail("there is not enough memory. Nothing was written; rank fewer items or answers at a time.")
            raise typer.Exit(NOT_WRITTEN) from None
        except OSError as error:
            talk.fail(f"the output could not be written: {error.strerror or error}.")
            raise typer.Exit(NOT_WRITTEN) from None
        finally:
            talk.close()


@contextmanager
def _logged(common: Common) -> Iterator[None]:
    """Have what is logged shown, but for notes where the command is to be quiet; as it was before, afterwards."""
    logger = logging.getLogger("predilect")
    before = logger.level
    logger.setLevel(logging.ERROR if common.quiet else logging.NOTSET)
    try:
        yield
    finally:
        logger.setLevel(before)


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that was being cleaned up after when an error came: that of a file closed twice, say."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


@contextmanager
def _terminable(talk: Talk) -> Iterator[None]:
    """SIGTERM raises Terminated, so that what was begun is cleaned up, unless somebody else handles the signal.

    Python handles a signal between two of its own instructions, and a compiled loop is one of them. So a thread watches
    too: where the command has not ended 1.5 seconds after Ctrl-C or SIGTERM, it ends the process.
    """
    # Only the main thread gets signals.
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    def watch() -> None:
        with heard:
            while (came := heard.recv(1)) and came[0] not in (signal.SIGINT, signal.SIGTERM):
                pass
        if not came or ended.wait(_SECONDS_TO_END):
            return
        is_interrupt = came[0] == signal.SIGINT
        talk.err.show_cursor()
        talk.interrupted("Interrupted" if is_interrupt else "Terminated")
        talk.close()
        os._exit(INTERRUPTED if is_interrupt else TERMINATED)

    heard, signals = socket.socketpair()
    signals.setblocking(False)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, terminate)
    before = signal.set_wakeup_fd(signals.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signals.close()


def _print(console: Console, said: RenderableType, style: str = "", head: Text | None = None) -> None:
    if not isinstance(said, str):
        console.print(said)
        return
    # What is said may hold ids and names of files. A line of a log stays one line; on a terminal words wrap.
    text = Text.assemble(head or "", (readable(said), style))
    console.print(text, soft_wrap=not console.is_terminal)
