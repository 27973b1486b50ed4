"""Walks of models: short ones with every run of the tests, longer ones with the slow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from cases import MORE
from walks.model import ModelWalk

# The same walks every time, but where more are asked for.
FIXED: dict[str, Any] = {"derandomize": MORE == 1, "deadline": None, "print_blob": False}
if MORE == 1:
    FIXED["database"] = None


class Quick(ModelWalk):
    """Few people and little to compare."""

    most_people = 6


class TestShortWalks(Quick.TestCase):
    settings = settings(max_examples=10, stateful_step_count=6, **FIXED)


@pytest.mark.slow
class TestLongWalks(ModelWalk.TestCase):
    settings = settings(max_examples=80 * MORE, stateful_step_count=12, **FIXED)
