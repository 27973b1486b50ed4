"""Rankings under way: each is the command ``predilect rank`` in a process of its own, which can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from predilect.cli.session import FOR_A_PAGE

_PROGRESS, _ERROR = "about ", "Error: "


class Job:
    """A command that writes a folder; ``line`` is how far it is, ``error`` why it failed."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.folder, self.line, self.error = folder, "Starting", ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "predilect", *words, "-o", str(folder), "--force"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            errors="replace", env={**os.environ, FOR_A_PAGE: "yes"},
        )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._process as process:
            for said in process.stderr or ():
                line = said.strip()
                if line.startswith(_ERROR):
                    self.error = line.removeprefix(_ERROR)
                elif _PROGRESS in line:
                    self.line = line

    @property
    def state(self) -> str:
        """Whether it is "running", "done", "stopped" or "failed"."""
        self._thread.join(0.0)
        code = None if self._thread.is_alive() else self._process.returncode
        return {None: "running", 0: "done", 130: "stopped", 143: "stopped", -15: "stopped"}.get(code, "failed")

    @property
    def done(self) -> int:
        """How far it is, in per cent."""
        _, _, rest = self.line.rpartition(_PROGRESS)
        number = rest.partition(" %")[0]
        return int(number) if number.isdecimal() else 0

    def stop(self) -> None:
        """Stop it, and wait until it has ended."""
        self._process.terminate()
        self._thread.join()


class Jobs:
    """Jobs by the key of what they make; what was made once is not made again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._jobs, self._lock = folder, dict[str, Job](), threading.Lock()
        self._serving: list[subprocess.Popen[str]] = []

    def begin(self, key: str, words: Sequence[str]) -> Job:
        """The job of a key, which begins unless it is under way or done."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.state in ("stopped", "failed"):
                job = self._jobs[key] = Job(words, self._folder / f"results-{key}")
            return job

    def get(self, key: str) -> Job | None:
        """The job of a key, if there is one."""
        return self._jobs.get(key)

    def serve(self, poll: Path) -> list[str]:
        """Serve a live poll on this machine until all ends; what the command says of its addresses."""
        serving = subprocess.Popen(
            [sys.executable, "-m", "predilect", "poll", "serve", str(poll), "--port", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8",
        )  # fmt: skip
        self._serving.append(serving)
        assert serving.stdout is not None
        lines: list[str] = []
        for said in serving.stdout:
            lines.append(said.strip())
            if said.startswith(("New polls:", _ERROR)):
                break
        return lines

    def close(self) -> None:
        """Stop all that is under way."""
        for job in self._jobs.values():
            if job.state == "running":
                job.stop()
        for serving in self._serving:
            with serving:
                serving.terminate()
