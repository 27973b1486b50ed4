"""Walks of models: short ones with every run of the tests, longer ones with the slow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from cases import MORE
from walks.model import ModelWalk

# The same walks up to PREDILECT_CASES=2, others with more. A walk that fails is made smaller, for minutes if need be.
pytestmark = pytest.mark.timeout(1800)
FIXED: dict[str, Any] = {
    "derandomize": MORE <= 2, "database": None, "deadline": None, "phases": (Phase.generate, Phase.shrink),
    "suppress_health_check": [HealthCheck.too_slow],
}  # fmt: skip


class Quick(ModelWalk):
    """Few people and little to compare."""

    most_people = 6


class TestShortWalks(Quick.TestCase):
    settings = settings(max_examples=5, stateful_step_count=6, **FIXED)


@pytest.mark.slow
class TestLongWalks(ModelWalk.TestCase):
    settings = settings(max_examples=50 * MORE, stateful_step_count=12, **FIXED)
