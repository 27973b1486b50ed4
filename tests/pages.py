"""Tutorials that run, and pictures of what they fit: ``make readme`` writes them, ``test_pages.py`` compares."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from cli.running import run
from predilect.decisions.scales import SCALES
from predilect.evaluation.metrics import Reliability
from predilect.examples import copy_into
from predilect.examples.__main__ import main as examples
from predilect.show.charts import pictures
from predilect.show.charts.chart import Chart
from predilect.show.charts.facts import pairs_of, part_worths_of, people_map
from predilect.show.charts.svg import standing_alone
from predilect.show.report.leaderboard import shared_segments
from readme import PICTURE, ROOT, draw, in_a_folder_of_its_own, ran_demo, rewritten, valued, wrapped

DOCS, PICTURES = ROOT / "docs", ROOT / "docs" / "pictures"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
# Pages without pictures of what they fit, unless they are named below with some.
HOWTO = [
    f"{room}/{path.name}" for room in ("howto", "papers") for path in sorted(DOCS.glob(f"{room}/*.md"))
    if BLOCK.search(path.read_text("utf-8"))
]  # fmt: skip
COPY = "$ python -m predilect.examples"
ANCHOR = 6  # letters by which a line of an output is found again
N_DRAWN = 12  # items
UNIT = "noise of one answer = 1"


@dataclass(frozen=True)
class Page:
    """A page that was run: its text with every output and value as it came, and its pictures by name."""

    text: str
    pictures: dict[str, str]


@cache
def ran(name: str) -> Page:
    """Run a page, its blocks one after the other in a folder of its own, as its reader does."""
    text = (DOCS / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {}

    def again(block: re.Match[str]) -> str:
        kind, code = block.groups()
        if code.startswith(">>> "):  # of test_acting.py
            return block.group()
        return f"```{kind}\n{valued(code, names) if kind == 'python' else answered(code)}```"

    with in_a_folder_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the command warns of is in its output
        if COPY not in text:  # a page for those who know where the examples come from
            copy_into(".")
        text = BLOCK.sub(again, text)
        drawn = PAGES[name](names)
    return Page(text, {file: standing_alone(chart) for file, chart in drawn.items()})


def answered(session: str) -> str:
    """A session on the console with the outputs of its commands, as far as they are shown."""
    lines: list[str] = []
    for part in re.split(r"^(?=\$ )", session, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        lines += [command, *excerpt(shown, [line.rstrip() for line in output_of(command).splitlines()])]
    return "".join(f"{line}\n" for line in lines)


def output_of(command: str) -> str:
    """What a command of a page prints."""
    if command == COPY:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            examples()
        return printed.getvalue()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "predilect", f"{program} is not run by the tests"
    with patch.dict("os.environ", COLUMNS="200"):  # a sentence is one line, and wrapped for the page afterwards
        told = run(*arguments)
    assert told.exit_code == 0, f"{command}: {told.output}"
    return told.output


def excerpt(shown: list[str], told: list[str]) -> list[str]:
    """What is shown of an output: as many lines from each that begins like the first, or the first after "...".

    Each is looked for below the one before. A line that is too long for the page is wrapped, and shown as a whole.
    """
    found: list[str] = []
    above = 0
    for gap, part in groupby(shown, key="...".__eq__):
        first, *rest = part
        if gap:
            found.append("...")
            continue
        place = next((k for k, line in enumerate(told[above:], above) if line.startswith(first[:ANCHOR])), None)
        assert place is not None, f"no line of the output begins with {first[:ANCHOR]!r}"
        whole = wrapped(told[place])
        above = place + 1 + len(rest) * (len(whole) == 1)
        found += whole if len(whole) > 1 else told[place:above]
    return found


def of_arena(names: dict[str, Any]) -> dict[str, Chart]:
    model = names["model"]
    board = pl.DataFrame(model.rank())
    best = board["item"].head(N_DRAWN)
    verdict = json.loads(Path("results/leaderboard.json").read_text(encoding="utf-8"))["verdict"]
    bins = [Reliability(**one) for one in verdict["reliability"]]
    return {
        "board.svg": pictures.board_chart(board, UNIT, top=N_DRAWN),
        "pairs.svg": pictures.pairs_chart(pairs_of(model, best)),
        "ranks.svg": pictures.ranks(model, top=N_DRAWN),
        "calibration.svg": pictures.calibration_chart(bins),
        "effects.svg": pictures.effects(names["swayed"]),
    }


def of_survey(names: dict[str, Any]) -> dict[str, Chart]:
    model = names["model"]
    boards = [one.board for one in shared_segments(model, SCALES["probit"]).values()]
    return {
        "segments.svg": pictures.segments_chart(boards, pl.DataFrame(model.rank()), UNIT),
        "people.svg": pictures.people_chart(people_map(model)),
        "learning.svg": pictures.learning(names["losses"]),
    }


def of_choice(names: dict[str, Any]) -> dict[str, Chart]:
    importances, worths = part_worths_of(names["model"])
    return {
        "importances.svg": pictures.importances_chart(importances),
        "part-worths.svg": pictures.part_worths_chart(worths),
    }


def of_gppl(names: dict[str, Any]) -> dict[str, Chart]:
    return {"gppl.svg": pictures.board(names["model"], top=N_DRAWN)}


def of_crowd_gppl(names: dict[str, Any]) -> dict[str, Chart]:
    return {"crowd-gppl.svg": pictures.people(names["model"])}


def of_collaborative(names: dict[str, Any]) -> dict[str, Chart]:
    return {"collaborative-gp.svg": pictures.ranks(names["model"])}


def of_vvm(names: dict[str, Any]) -> dict[str, Chart]:
    return {"vvm.svg": pictures.board(names["small"], user="p003")}


PAGES: dict[str, Callable[[dict[str, Any]], dict[str, Chart]]] = {
    "tutorials/arena.md": of_arena,
    "tutorials/survey.md": of_survey,
    "tutorials/choice.md": of_choice,
    **dict.fromkeys(HOWTO, lambda _: {}),
    "parity.md": lambda _: {},
    "papers/gppl.md": of_gppl,
    "papers/crowd-gppl.md": of_crowd_gppl,
    "papers/collaborative-gp.md": of_collaborative,
    "papers/vvm.md": of_vvm,
}

if __name__ == "__main__":
    for path, text in rewritten().items():
        path.write_text(text, encoding="utf-8")
    draw(ran_demo()[1], PICTURE)
    for name in PAGES:
        (DOCS / name).write_text(ran(name).text, encoding="utf-8")
        for file, drawn in ran(name).pictures.items():
            (PICTURES / file).write_text(drawn, encoding="utf-8")
