"""The examples in the docs of kernels and operators run, and print what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from predilect.covariance import kernels, operators

PRIMITIVES = Path(__file__).parents[2] / "docs" / "primitives.md"


@pytest.mark.parametrize("module", [kernels, operators], ids=["kernels", "operators"])
def test_examples_of_the_rooms(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_examples_of_the_primitives():
    found = doctest.testfile(str(PRIMITIVES), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0
