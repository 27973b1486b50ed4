"""Pages of results as they are committed: the models that they name exist, and nothing published is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.datasets import TASKS
from benchmarks.datasets.all_pairs import OTHER_DATA
from benchmarks.models import MODELS, build
from benchmarks.parts import find_loader
from benchmarks.published import HEAD, NOTHING, PUBLISHED, Row, ours
from benchmarks.published_notes import REPETITIONS, WHY_FEWER, WHY_NOT

from benchmarks import active, houlsby

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PAGES = [*sorted(RESULTS.glob("*.md")), RESULTS.parent / "README.md"]
NAME = re.compile(r"(?<![\w./-])[A-Za-z][\w-]*(?:@\w+=[^\s`|,@;)]+)+")
LONG = 60.0  # seconds of a run, of which there may be fewer than the paper has


def page(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def names(text: str) -> set[str]:
    """Models and tasks with options, without a quote of the shell after them."""
    return {name.removesuffix("'") if name.count("'") % 2 else name for name in NAME.findall(text)}


def wrong_names(text: str) -> list[str]:
    """Models and tasks of a page that are not there, or whose options the estimator does not have or does not take."""
    wrong = []
    for name in sorted(names(text)):
        try:
            base = name.partition("@")[0]
            if base in TASKS:
                find_loader(name)
            elif base in MODELS:
                build(name)
            else:
                active.estimator(name)()
        except (KeyError, TypeError, ValueError) as error:
            wrong.append(f"{name}: {error}")
    return wrong


def table(text: str, section: str) -> list[list[str]]:
    """Cells of the rows below a heading of the second level, its own head and line first."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    lines = found.group(1).splitlines() if found else []
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line.startswith("|")]


def left_out(text: str) -> list[str]:
    """Published rows without a number of ours, or with too few runs, where no reason is given."""
    wrong = []
    for task, rows in PUBLISHED.items():
        there = table(text, task)
        for row in rows:
            cells = next((c for c in there if c[:3] == [row.method, row.source, f"{row.accuracy:g}"]), None)
            wrong += [f"{task}, {row.method}, {row.source}: {said}" for said in _complaints(task, row, cells)]
    return wrong


def _complaints(task: str, row: Row, cells: list[str] | None) -> list[str]:
    name = task.partition("/")[0]
    if cells is None:
        return ["no row"]
    model, accuracy, log_loss, *_, seconds, runs = cells[HEAD.index("**ours**") :]
    if NOTHING in (accuracy, log_loss):
        return [] if (name, row.method) in WHY_NOT else ["no number of ours, and no reason"]
    told = [] if model == f"`{ours(task, row.method)}`" else [f"{model} is not our model of this row"]
    quick = float(seconds.partition(" ±")[0]) <= LONG
    if int(runs) < REPETITIONS[name] and quick and (name, row.method) not in WHY_FEWER:
        told.append(f"{runs} of {REPETITIONS[name]} runs of {seconds} s, and no reason")
    return told


def beside(text: str) -> list[str]:
    """Sections of other data than the paper's that hold a published number, or do not say whose data they are."""
    wrong = []
    for data in OTHER_DATA:
        section = re.search(rf"^## {data}\n(.*?)(?=^## )", text, flags=re.MULTILINE | re.DOTALL)
        if section is None or "**Not the paper's data**" not in section.group(1):
            wrong.append(f"{data}: not said to be other data")
        wrong += [f"{data}: {row}" for row in table(text, data) if "(published)" in row[0] or "published" in row]
    return wrong


def test_models_that_pages_name_exist_with_their_options() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
    assert len(set.union(*map(names, texts.values()))) > 30
    for page_name, text in texts.items():
        assert not wrong_names(text), page_name


def test_no_published_row_is_left_out_or_has_too_few_runs() -> None:
    assert not left_out(page("published"))
    keys = {(task.partition("/")[0], row.method) for task, rows in PUBLISHED.items() for row in rows}
    assert set(WHY_NOT) | set(WHY_FEWER) <= keys


@pytest.mark.parametrize("name", ["houlsby", "active"])
def test_errors_on_other_data_stand_apart_from_published_ones(name: str) -> None:
    text = page(name)
    assert not beside(text)
    published = {"houlsby": houlsby.PUBLISHED, "active": active.PUBLISHED}[name]
    apart = table(text, "Published, on data that are not these")[2:]
    assert {row[0] for row in apart} == set(OTHER_DATA)
    assert len({(row[0], row[1]) for row in apart}) == sum(len(published[data]) for data in OTHER_DATA)


def test_a_page_that_is_broken_by_hand_is_found() -> None:
    text = page("published")
    assert wrong_names("| `gppl@nothing=linearised` | and `nobody@preset=paper`, CollaborativeGP@nothing=1 |")
    assert len(wrong_names("`gppl@sites=nothing` `crowd-gppl@preset=paper` `nobody@a=1`")) == 2
    row = next(line for line in text.splitlines() if line.startswith("| GPPL | article"))
    assert left_out(text.replace(row, ""))
    cells = row.split("|")
    assert left_out(text.replace(row, "|".join([*cells[:7], *[" – "] * 7, ""])))
    assert left_out(text.replace(row, "|".join([*cells[:-2], " 3 ", ""])))
    assert left_out(text.replace(row, "|".join([*cells[:7], " `gppl@users=joint` ", *cells[8:]])))
    other = page("houlsby")
    assert beside(other.replace("**Not the paper's data**", "", 1))
    assert beside(
        other.replace("| model | repetitions | error | log loss |", "| model | published | error | log loss |")
    )
    assert beside(page("active").replace("## movielens\n", "## movielens\n\n| CP (published) | bald | 25 |\n"))
