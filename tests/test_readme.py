"""The numbers in README.md are those that its examples give."""

from __future__ import annotations

import pytest

from readme import ARROW, README, rewritten


@pytest.mark.slow  # the demo with its verdict, and the Python example
@pytest.mark.timeout(900)
def test_the_readme_shows_what_comes_out():
    text = README.read_text(encoding="utf-8")
    assert text.count(ARROW) >= 3
    assert rewritten(text) == text, "README.md is out of date: make readme"
