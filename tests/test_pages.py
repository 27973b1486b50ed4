"""Tutorials print what they say they print, and pictures on the site are of what they fit."""

from __future__ import annotations

import re
import runpy
from inspect import signature
from itertools import zip_longest
from xml.etree import ElementTree

import pytest
from benchmarks.in_short import IN_SHORT
from typer.main import get_command

import predilect.evaluation
import predilect.inference.gaussian.kernels
import predilect.models
import predilect.plot
from pages import DOCS, PAGES, PICTURES, excerpt, ran
from predilect.cli.main import app
from predilect.show.charts import pictures
from readme import ROOT

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def differing(found: str, shown: str) -> list[tuple[str, str]]:
    """Words that differ by more than the processor: another one rounds otherwise, and a bootstrap carries that on."""
    pairs = zip_longest(found.split(), shown.split(), fillvalue="")
    return [(one, other) for one, other in pairs if one != other and not is_near(one, other)]


def is_near(one: str, other: str) -> bool:
    """Whether words are the same but for numbers with decimals that agree to a thousandth, and a last digit."""
    numbers, others = NUMBER.findall(one), NUMBER.findall(other)
    if len(numbers) != len(others) or NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    return all(
        a == b or ("." in a + b and abs(float(a) - float(b)) <= 1e-3 * float(b) + 10.0 ** -len(b.partition(".")[2]))
        for a, b in zip(numbers, others, strict=True)
    )


@pytest.mark.slow  # each fits a model, and judges it on held-out answers
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_what_comes_out(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    assert re.search(r"^```console$|→ ", text, flags=re.MULTILINE)
    assert differing(ran(name).text, text) == [], f"{name} is out of date: make readme"
    for file, svg in ran(name).pictures.items():
        assert svg == (PICTURES / file).read_text(encoding="utf-8"), f"{file} is out of date: make readme"


def test_pages_may_differ_by_rounding_alone():
    assert differing("milk  52.15   38.6  66.67", "milk 52.15  38.64 66.62") == []
    for found in ("milk 52.15 38.2 66.62", "milk 53 38.64 66.62", "tea 52.15 38.64 66.62", "milk 52.15 38.64"):
        assert len(differing(found, "milk 52.15 38.64 66.62")) == 1
    assert differing("rank 2, 0.97", "rank 1, 0.97") == [("2,", "1,")]


def test_excerpts_are_found_by_how_they_begin():
    told = ["Read 3 rows.", "One", "Score 0.51", "a 1", "b 2", "Verdict: " + "far " * 40 + "enough."]
    assert excerpt(["Score 0.4", "x"], told) == ["Score 0.51", "a 1"]
    assert excerpt(["...", "Verdict: we", "can", "not", "..."], told)[1].startswith("Verdict: far far")
    assert " ".join(excerpt(["Verdict: x"], told)).endswith("far enough.")
    assert excerpt([], told) == []
    with pytest.raises(AssertionError, match="no line of the output begins with 'Scores'"):
        excerpt(["Scores 0.5"], told)


def test_pictures_are_small_and_ask_nothing_of_any_other_place():
    drawn = sorted(PICTURES.glob("*.svg"))
    shown = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "index.md", *DOCS.glob("papers/*.md")))
    assert len(drawn) == 15
    for path in drawn:
        text = path.read_text(encoding="utf-8")
        assert len(text) < 30_000
        root = ElementTree.fromstring(text)
        assert root.find("{http://www.w3.org/2000/svg}desc") is not None
        assert not re.search(r"url\(|@import|href|http(?!://www\.w3\.org/2000/svg)", text)
        assert path.name in shown, f"{path.name} is neither in the gallery nor on the page of a paper"


def test_pictures_of_the_gallery_have_the_line_that_draws_them():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    found = re.findall(r"\(pictures/([\w-]+)\.svg\)\n\n`plot\.(\w+)\((\w+)(?:, (\w+)=\d+)?\)`", text)
    assert [name.replace("-", "_") for name, *_ in found] == [plot for _, plot, *_ in found]
    assert {plot for _, plot, *_ in found} == {*predilect.plot.__all__}
    for _, plot, _, option in found:
        assert not option or option in signature(getattr(pictures, plot)).parameters


def test_the_reference_has_all_that_can_be_imported():
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)$", page, flags=re.MULTILINE)}
    rooms = (predilect, predilect.models, predilect.evaluation, predilect.inference.gaussian.kernels)
    public = {name for room in rooms for name in room.__all__} - {"__version__"}
    assert len(public) > 40
    assert not public - {name.split(".")[-1] for name in named}


@pytest.mark.slow
def test_the_page_of_commands_is_made_of_what_they_say():
    made = runpy.run_path(str(DOCS / "conf.py"))["commands"]()
    commands = get_command(app).commands
    assert re.findall(r"^## ([a-z]+)$", made, flags=re.MULTILINE) == list(commands)
    n_within = sum(len(getattr(one, "commands", ())) for one in commands.values())
    assert made.count("Usage: predilect ") == len(commands) + n_within + 1
    assert "<!-- commands -->" in (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")


def test_the_front_page_leads_to_every_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, flags=re.MULTILINE | re.DOTALL)
    entries = {line.split("<")[-1].strip("> ") for tree in trees for line in tree.splitlines() if line[:1] not in ":"}
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")} - {"index"}
    results = {f"../benchmarks/results/{path.stem}" for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    others = {"../README", "../CHANGELOG", "../CONTRIBUTING", "../benchmarks/README", "../benchmarks/protocols"}
    assert entries - {""} == pages | results | others


@pytest.mark.parametrize("name", IN_SHORT)
def test_a_page_of_results_opens_with_what_is_reproduced(name):
    text = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
    title, first, rest = text.split("\n\n", 2)
    assert title.startswith("# ")
    assert first == IN_SHORT[name]
    numbers = set(re.findall(r"\d+\.\d+", first))
    assert numbers
    assert not numbers - set(re.findall(r"\d+\.\d+", rest)), "numbers that are not on the page"
