"""Walks of models: short ones with every run of the tests, longer ones with the slow."""

from __future__ import annotations

from hypothesis import settings

from cases import MORE
from walks.model import ModelWalk

QUICK = settings(max_examples=8, stateful_step_count=6, derandomize=True, deadline=None)


class TestModelWalk(ModelWalk.TestCase):
    settings = QUICK
