"""The numbers and the picture in README.md, and those on the pages it leads to, are what the examples give."""

from __future__ import annotations

import re

import pytest

from readme import ARROW, N_DRAWN, PICTURE, README, ran_demo, rewritten


@pytest.mark.slow  # the demo with its verdict, and the Python examples
@pytest.mark.timeout(900)
def test_the_readme_shows_what_comes_out():
    assert README.read_text(encoding="utf-8").count(ARROW) >= 1
    for page, text in rewritten().items():
        assert text == page.read_text(encoding="utf-8"), f"{page.name} is out of date: make readme"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_picture_is_of_the_best_items():
    drawn = PICTURE.read_text(encoding="utf-8")
    best = [row["item"] for row in ran_demo()[1]["board"][:N_DRAWN]]
    said = [re.sub(r"^\d+ +", "", text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]
    assert [text for text in said if text in best] == best, "docs/board.svg is out of date: make readme"


def test_the_readme_is_short():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 130
    assert "```python" in lines[:40]
    assert PICTURE.stat().st_size < 60_000
