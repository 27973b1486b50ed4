"""Paths that are like options, that a shell would read otherwise, and that are no files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from cli.running import QUICK, run
from predilect import read
from predilect._base.text import as_typed, for_shell
from predilect.errors import DataError

VOTES = "user,left,right,winner\n" + "".join(f"u{k % 3},{a},{b},{a}\n" for k in range(6) for a, b in ("xy", "yz", "xz"))
NAMES = ["-rf", "--help", "-", "a b", "$(touch PWN)", "`touch PWN`", "it's", 'a"b', "a\nb", "a\\b", "!x", "~", "*", "é"]


def by_bash(text):
    return subprocess.run(["bash", "-c", f"printf %s {text}"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_what_is_advised(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = as_typed(name)
    assert os.path.normpath(by_bash(path)) == os.path.normpath(name)
    assert not path.startswith("-") or name == "-"
    assert by_bash(for_shell(name)) == name
    assert "\n" not in path
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["-rf.csv", "a b.csv", "it's $(touch PWN).csv"])
def test_every_command_that_is_advised_is_accepted(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(VOTES)
    advised = re.search(r"Next: predilect (rank .*) -o DIR", run("check", f"./{name}").stdout)[1]
    ran = run(*shlex.split(advised), "-o", "./-out", *QUICK)
    assert ran.exit_code == 0, ran.output
    report, show = re.search(
        r"Next: predilect (report .*) makes .*; predilect (show .*) ITEM ITEM", ran.stdout
    ).groups()
    for words in (shlex.split(report), [*shlex.split(show), "x", "y"]):
        ran = run(*words)
        assert ran.exit_code == 0, (words, ran.output)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", ["check", "rank", "partition"])
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/urandom"])
def test_what_may_have_no_end_is_refused(tmp_path, kind, command):
    path = tmp_path / "v.csv"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    ran = run(command, path, *(["-o", tmp_path / "out"] if command == "partition" else []))
    assert ran.exit_code == 2
    assert "is a pipe or a device, which may have no end" in ran.stderr
    with pytest.raises(DataError, match="Copy what it holds to a file"):
        read(path)
    votes = tmp_path / "votes.csv"
    votes.write_text(VOTES)
    assert "no end" in run("rank", votes, "--items", path).stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("how", ["<(cat v.csv)", "- < v.csv", "/dev/stdin < v.csv", "/dev/stdin < <(cat v.csv)"])
def test_what_a_shell_hands_over_is_read(tmp_path, how):
    (tmp_path / "v.csv").write_text(VOTES)
    command = ["bash", "-c", f"{sys.executable} -m predilect check {how}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "18 answers" in ran.stdout


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """Answers, pairs, and a ranking of them, with a link to it."""
    place = tmp_path_factory.mktemp("ranked")
    (place / "votes.csv").write_text(VOTES)
    (place / "pairs.csv").write_text("left,right\nx,y\n")
    assert run("rank", place / "votes.csv", "-o", place / "out", *QUICK).exit_code == 0
    (place / "link").symlink_to(place / "out")
    return place


@pytest.mark.parametrize(("words", "how"), [
    ("worth out -o out", "is"), ("worth out -o link", "is"), ("worth link -o out", "is"),
    ("worth out/model -o out", "holds"),
    ("worth out -o out/worth", "lies in"), ("worth out -o .", "holds"), ("report out -o out/board.html", "lies in"),
    ("report link -o out/leaderboard.html", "lies in"), ("compare out out -o out/leaderboard.csv", "lies in"),
    ("predict out pairs.csv -o out/leaderboard.csv", "lies in"), ("predict out pairs.csv -o pairs.csv", "is"),
    ("simulate out pairs.csv -o pairs.csv", "is"), ("rank votes.csv -o .", "holds"),
])  # fmt: skip
def test_nothing_is_written_into_what_is_read(words, how, ranked, monkeypatch):
    """The ranking would be lost, or mixed with other results, which --force then could not replace."""
    monkeypatch.chdir(ranked)

    def everything():
        return {path: path.read_bytes() for path in ranked.rglob("*") if path.is_file()}

    before = everything()
    ran = run(*words.split(), "--force")
    assert ran.exit_code == 2, ran.output
    assert f" {how} what is read, " in " ".join(ran.stderr.split())
    assert everything() == before
