"""The examples in the docs of kernels run, and print what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

from predilect import kernels

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "charts.md"


def test_examples_of_the_kernels():
    found = doctest.testmod(kernels)
    assert found.attempted > 0
    assert found.failed == 0


def test_examples_of_the_page():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0
