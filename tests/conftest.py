"""Puts ``tests/`` on the path, for ``tolerances``, ``simulate``, ``referees`` and ``contracts``.

Hypothesis draws few examples with the unit tests; ``make test-slow`` and ``test-all`` draw many
(``--hypothesis-profile thorough``).
"""

import gc
import os
import random
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from cases import MORE

# The same examples each time, so that a run that fails fails again; others with PREDILECT_CASES.
settings.register_profile("quick", max_examples=15, deadline=None, derandomize=MORE == 1)
settings.register_profile("thorough", max_examples=60 * MORE, deadline=None, derandomize=MORE == 1)
settings.load_profile("quick")

# Threads of BLAS wait for work by spinning, which took four times the processor time of the tests themselves. So there
# is one, said before anything imports NumPy, to other processes too; tests of threads set their own number. Those of
# Polars are woken for tables of a few rows.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")

# What is saved is waited for until it is on the disk, longer than most tests take: where memory has room, it is there.
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 2**31:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# Most of what a test makes goes when it ends; to look for garbage after every 700 objects doubled the time of what
# parses the sources.
gc.set_threshold(50_000)

pytest.register_assert_rewrite("contracts", "referees")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: looking for garbage in it took half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_runtest_setup() -> None:
    """Polls draw their questions by a seed, so that a test of one passes each time or fails each time."""
    poll = sys.modules.get("predilect.live.poll")
    if poll is not None and MORE == 1:
        poll.random = SimpleNamespace(SystemRandom=lambda: random.Random(0))  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real data need to be told where it is.

    Those of choice/ come first: its loops are others than those that a second process begins with, so that each is
    compiled by one of the two. Files with slow tests follow, and those with quick ones alone are left to the end, where
    one process would else wait for the other.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: ("choice" not in item.path.parts, item.path not in slow))
    if os.environ.get("PREDILECT_DATA"):
        return
    absent = pytest.mark.skip(reason="PREDILECT_DATA, the folder of the real data sets, is not set")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(absent)
