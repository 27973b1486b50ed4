"""Output whole or not at all, exit codes, Ctrl-C, and warnings without file paths."""

from __future__ import annotations

import errno
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

from cli.running import QUICK, files_beside, run
from predilect import Population
from predilect.cli.session import Common, Terminated, session
from predilect.errors import ConvergenceError, ConvergenceWarning, OutputError
from predilect.show.report import folder as report_folder

COMMAND = [sys.executable, "-m", "predilect"]


def test_a_quiet_command_leaves_the_next_one_of_its_process_as_it_was():
    logger = logging.getLogger("predilect")
    before = logger.level
    with session(Common(quiet=True)):
        assert logger.level == logging.ERROR
    assert logger.level == before


def test_an_existing_folder_is_kept_unless_forced(few_votes, tmp_path):
    out = tmp_path / "out"
    assert run("rank", few_votes, *QUICK, "--out", out).exit_code == 0
    before = (out / "leaderboard.csv").read_bytes()
    ran = run("rank", few_votes, "--out", out, "--personal", "no")
    assert ran.exit_code == 2
    assert "--force" in ran.stderr
    assert (out / "leaderboard.csv").read_bytes() == before
    assert run("rank", few_votes, "--out", out, "--personal", "no", "--force").exit_code == 0
    assert (out / "leaderboard.csv").read_bytes() != before
    assert files_beside(tmp_path) == ["out", "votes.csv"]


def test_force_never_replaces_a_folder_with_other_things_in_it(few_votes, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    ran = run("rank", few_votes, "--out", tmp_path / "thesis", "--force")
    assert ran.exit_code == 2
    assert "chapter1.tex" in ran.stderr
    assert files_beside(tmp_path / "thesis") == ["chapter1.tex"]


@pytest.mark.slow  # whole rankings
def test_a_link_to_a_folder_stays_a_link(votes, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert run("rank", votes, *QUICK, "--out", tmp_path / "link", "--force").exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert "leaderboard.csv" in files_beside(tmp_path / "real")


@pytest.mark.parametrize("place", ["votes.csv", "missing/out", "votes.csv/out"])
def test_a_place_where_no_folder_can_be_is_refused_before_anything_is_read(votes, tmp_path, place):
    ran = run("rank", votes, "--out", tmp_path / place)
    assert ran.exit_code == 2
    assert "-o" in ran.stderr
    assert ran.stdout == ""
    assert files_beside(tmp_path) == ["votes.csv"]


def test_a_read_only_place_is_found_out_before_the_fit(votes, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(Population, "fit", lambda *_, **__: pytest.fail("fitted in vain"))
    ran = run("rank", votes, "--out", tmp_path / "out")
    assert ran.exit_code == 1
    assert "Permission denied" in ran.stderr
    assert files_beside(tmp_path) == ["votes.csv"]


@pytest.mark.slow  # whole rankings
@pytest.mark.parametrize("writer", ["write_people", "plot_board", "segment_table"])
def test_a_full_disk_leaves_nothing_behind_but_the_board_on_the_screen(pictures, votes, tmp_path, monkeypatch, writer):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(report_folder, writer, full)
    ran = run("rank", votes, *QUICK, "--out", tmp_path / "out", "--by", "language")
    assert ran.exit_code == 1
    assert "No space left on device" in ran.stderr
    assert "apple" in ran.stdout
    assert files_beside(tmp_path) == ["votes.csv"]


@pytest.mark.slow  # whole rankings
def test_a_disk_that_fills_up_while_replacing_keeps_the_old_results(votes, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run("rank", votes, *QUICK, "--out", out).exit_code == 0
    before = (out / "leaderboard.csv").read_bytes()
    replace = Path.replace

    def fail_once(self, target):
        if Path(target) == out and files_beside(self):  # the new results, on their way in
            monkeypatch.setattr(Path, "replace", replace)
            raise OSError(errno.EIO, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_once)
    ran = run("rank", votes, *QUICK, "--out", out, "--force")
    assert ran.exit_code == 1
    assert (out / "leaderboard.csv").read_bytes() == before
    assert files_beside(tmp_path) == ["out", "votes.csv"]


@pytest.mark.slow
def test_a_real_limit_on_file_size_is_reported(votes, tmp_path, results):  # results: so that loops are compiled
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    ran = subprocess.run(
        [*COMMAND, "rank", votes, *QUICK, "--out", tmp_path / "out"],
        check=False, capture_output=True, text=True, preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # a module that is cut off there would be read by all later
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert "could not be written: File too large" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert files_beside(tmp_path) == ["votes.csv"]


@pytest.mark.slow  # a process of its own
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_is_full_is_reported(votes):
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*COMMAND, "rank", votes, *QUICK, "--format", "json"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_interrupting_a_fit_ends_it_without_a_trace(tmp_path, number, code, word):
    rng = np.random.default_rng(0)
    n = 60_000
    left = rng.integers(80, size=n)
    frame = {
        "user": [f"u{k}" for k in rng.integers(6000, size=n)],
        "left": [f"i{k}" for k in left],
        "right": [f"i{k}" for k in (left + rng.integers(1, 80, size=n)) % 80],
        "winner": rng.choice(["left", "right", "tie"], size=n).tolist(),
    }
    pl.DataFrame(frame).write_csv(tmp_path / "votes.csv")
    process = subprocess.Popen(
        [*COMMAND, "rank", tmp_path / "votes.csv", "--out", tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (a job may ignore it)
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("60000 answers"):
            break
    time.sleep(0.5)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert f"{word}; nothing was written." in said
    assert "Traceback" not in said
    assert files_beside(tmp_path) == ["votes.csv"]


ENDLESS = """
import sys
import numpy as np
import typer
from predilect._base.compile import kernel
from predilect.cli.session import session

@kernel
def loop(a):
    while a[0] > 0:
        a[1] += 1

loop(np.array([0, 0]))
try:
    with session():
        print("begins", flush=True)
        loop(np.array([1, 0]))
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_a_signal_ends_a_compiled_loop_that_does_not_end(number, code, word):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (a job may ignore it)
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert said.endswith(f"{word}; nothing was written.\n")
    assert "Traceback" not in said


def run_module(folder: Path, name: str, text: str, module: str) -> subprocess.CompletedProcess[str]:
    """``python -m module`` where a file of the folder comes before all others of its name."""
    (folder / name).write_text(text)
    paths = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", module], check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip


def test_an_interrupt_while_python_runs_a_piece_of_text_ends_in_its_exit_code(tmp_path):
    # As ``dataclasses`` does when a module is imported.
    text = """
import typer
from predilect import __main__
from predilect.cli import main, session
main.app = typer.Typer()
@main.app.command()
def command():
    with session.session():
        exec("raise KeyboardInterrupt")
__main__.main()
"""
    ran = run_module(tmp_path, "interrupted.py", text, "interrupted")
    assert (ran.returncode, ran.stderr) == (130, "Interrupted; nothing was written.\n")


def test_an_interrupt_before_the_command_is_imported_ends_in_its_exit_code(tmp_path):
    ran = run_module(tmp_path, "typer.py", "raise KeyboardInterrupt", "predilect")
    assert (ran.returncode, ran.stderr) == (130, "")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, Terminated])
def test_what_breaks_while_an_interrupt_is_cleaned_up_after_is_no_error_of_its_own(interrupt, capsys):
    def interrupted():
        with session():
            try:
                raise interrupt
            finally:
                try:
                    raise OSError(errno.EBADF, "Bad file descriptor")
                except OSError as error:
                    raise OutputError("the output could not be written") from error

    with pytest.raises(typer.Exit) as ended:
        interrupted()
    assert ended.value.exit_code == (143 if interrupt is Terminated else 130)
    assert "nothing was written" in capsys.readouterr().err


@pytest.mark.slow
def test_strict_ends_with_3_and_otherwise_it_is_a_one_line_warning(votes, tmp_path, monkeypatch):
    fit = Population.fit

    def not_quite(self, *arguments, **keywords):
        fit(self, *arguments, **keywords)
        if self.strict:
            raise ConvergenceError("population EP stopped after 300 passes")
        warnings.warn("population EP stopped after 300 passes", ConvergenceWarning, stacklevel=2)
        return self

    monkeypatch.setattr(Population, "fit", not_quite)
    ran = run("rank", votes, *QUICK, "--strict", "--out", tmp_path / "out")
    assert ran.exit_code == 3
    assert ran.stderr.startswith("Error: population EP stopped after 300 passes")
    assert files_beside(tmp_path) == ["votes.csv"]
    ran = run("rank", votes, *QUICK, "--format", "json")
    assert ran.exit_code == 0
    assert "Warning: population EP stopped after 300 passes\n" in ran.stderr
    assert ".py" not in ran.stderr
    assert json.loads(ran.stdout)["warnings"] == ["population EP stopped after 300 passes"]


@pytest.mark.slow
def test_the_module_runs_as_a_program_and_starts_without_heavy_imports():
    code = "import sys, predilect.cli.main; print([m for m in ('numba', 'sklearn', 'polars') if m in sys.modules])"
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert ran.stdout == "[]\n", ran.stderr
    ran = subprocess.run([*COMMAND, "--version"], check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("predilect ")
    assert ran.returncode == 0


def test_a_file_that_ends_too_early_is_no_interrupt(tmp_path, monkeypatch):
    def cut_short(*_):
        raise EOFError("No data left in file")

    monkeypatch.setattr("predilect.models.registry.load", cut_short)
    ran = run("show", tmp_path)
    assert ran.exit_code == 2
    assert "a file ends too early (No data left in file)" in ran.stderr
    assert "Aborted" not in ran.output
