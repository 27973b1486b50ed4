"""Every page, section and name that the code and the docs cite is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import predilect  # noqa: F401  (so that what inherits from a class is known)
from citations import ROOT, Text, texts_of_code, unresolved_names, unresolved_pages

FOLDERS = ("src", "tests", "benchmarks")
CODE = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))])
PLANTED = {Path(__file__), Path(__file__).with_name("citations.py")}  # they hold wrong ones on purpose
CODE_OF_A_TEST = re.compile(r"(?<![\w^])T\d+(?:\.\d+)+\b")


@cache
def texts_in(folder: str) -> list[Text]:
    files = [file for file in CODE if file.is_relative_to(ROOT / folder) and file not in PLANTED]
    return [text for file in files for text in texts_of_code(file)]


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_pages_and_sections_that_code_cites_exist(folder):
    assert len(texts_in(folder)) > 100
    wrong = [said for text in texts_in(folder) for said in unresolved_pages(text)]
    assert not wrong, "\n".join(wrong)


def test_pages_and_sections_that_docs_cite_exist():
    assert len(PAGES) > 20
    wrong = [said for file in PAGES for said in unresolved_pages(Text(file, 1, file.read_text(encoding="utf-8")))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_that_docstrings_refer_to_exist(folder):
    wrong = [said for text in texts_in(folder) for said in unresolved_names(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_names_the_code_of_a_test(folder):
    # It points at a list that is not in the repository: a comment says what is meant instead.
    wrong = [f"{text}: {code}" for text in texts_in(folder) for code in CODE_OF_A_TEST.findall(text.text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("population.md section 3, gaspk.md 2.1, algorithm 4", 0),
        ('gaspk.md 2, "Kronecker facts", and 2.2, F13. Levels', 0),
        ("crowdgppl.md 2.2, eqs. 17, 18, and section 3, steps 5 and 6.", 0),
        ("modern.md (3.2), (3.5). At a fixed point", 0),
        ("modern.md 2 to 6, crowdgppl.md 2.3", 0),
        ("nowhere.md 1", 1),
        ("population.md section 9", 1),
        ("modern.md 2 to 8", 1),  # there is no 7
        ("modern.md (3.9)", 1),
        ("modern.md A.5 and A.9", 1),
        ("crowdgppl.md 2.1, eq. 55", 1),  # which is in 2.2
        ("gaspk.md 3, step 9", 1),
        ('collaborative.md 3, "Somewhere else"', 1),
        ("docs/papers/gaspk.md section 4", 1),  # the page on how to use it has no sections
    ],
)
def test_a_wrong_citation_is_found(said, missing):
    text = Text(ROOT / "src" / "predilect" / "errors.py", 1, said)
    assert len(unresolved_pages(text)) == missing


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        (":class:`~predilect.Population`, :meth:`~predilect.Population.fit`, :mod:`predilect.plot`", 0),
        (":class:`DataError`", 0),
        (":meth:`Comparisons.from_frame <predilect.Comparisons.from_frame>`", 0),
        (":class:`~predilect.Nobody`", 1),
        (":meth:`~predilect.Population.nothing`", 1),
        (":func:`no_such_function`", 1),
        (":mod:`predilect.nowhere`", 1),
    ],
)
def test_a_wrong_name_is_found(said, missing):
    assert len(unresolved_names(Text(ROOT / "src" / "predilect" / "errors.py", 1, said))) == missing


def test_comments_of_several_lines_are_read_as_one(tmp_path):
    file = tmp_path / "some.py"
    file.write_text('"""One."""\nx = 1  # see\n# population.md section\n# 99, and so on\n')
    assert [len(unresolved_pages(text)) for text in texts_of_code(file)] == [1]
