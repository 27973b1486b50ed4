"""A walk through a folder of results and the command finds nothing wrong."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from cases import MORE
from walks.folder import FolderWalk
from walks.texts import advised, wrong_in

QUICK = settings(
    max_examples=2, stateful_step_count=4, derandomize=True, deadline=None, database=None, report_multiple_bugs=False,
    phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.parametrize(("text", "commands"), [
    ("Next: predilect report out -o board.html makes a page; predilect show out ITEM ITEM says which.",
     [["report", "out", "-o", "board.html"], ["show", "out", "ITEM", "ITEM"]]),
    ("Next: predilect rank ./-rf.csv -o DIR, with the same options.", [["rank", "./-rf.csv", "-o", "DIR"]]),
    ("Next: predilect rank 'it'\"'\"'s' -o DIR.", [["rank", "it's", "-o", "DIR"]]),
    ("Serve it: predilect poll serve my poll.db", [["poll", "serve", "my", "poll.db"]]),
    ("Make one: predilect partition FILE -o it's out", ["partition FILE -o it's out"]),
    ("say `predilect decide DIR anybody OPTION...`, or --everyone", [["decide", "DIR", "anybody", "OPTION"]]),
    ("Then predilect check and rank take DIR in place of a file.", []),
])  # fmt: skip
def test_commands_are_found_in_prose(text, commands):
    assert advised(text, ["out", "my poll.db"]) == commands


@pytest.mark.parametrize(("text", "what"), [
    ("a\\nb", "an escape"), ("of {name}", "a placeholder"), ("<X at 0x7f>", "an object"), ("[0.1 0.2]", "a dumped"),
    ("log loss nan", "no number"), ("A share of 50 %, 1 to 2 {people}", "a placeholder"), ("C:\\data, 95 %", ""),
])  # fmt: skip
def test_what_no_text_holds(text, what):
    assert wrong_in(text).startswith(what)
    assert bool(wrong_in(text)) == bool(what)


@pytest.mark.slow
@pytest.mark.timeout(600)  # where it fails, to find the smallest walk that does
def test_a_short_walk_through_the_command(monkeypatch):
    monkeypatch.setattr(
        "predilect.show.report.folder.can_plot", lambda: False
    )  # pictures would take as long as the rest
    run_state_machine_as_test(FolderWalk, settings=QUICK)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_long_walks_through_the_command():
    run_state_machine_as_test(FolderWalk, settings=settings(QUICK, max_examples=50 * MORE, stateful_step_count=12))
