"""Cases in processes of their own: one that dies or hangs is named, and those after it run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from cases import run_cases


def some(numbers: list[int]) -> Iterator[str]:
    for number in numbers:
        if number == 2:
            os.abort()
        if number == 3:
            os._exit(7)
        if number == 4:
            time.sleep(60)
        while number == 6:
            pass
        yield "ok"


@pytest.mark.slow
def test_a_child_that_dies_or_hangs_is_noticed_and_the_cases_after_it_run():
    found = run_cases(some, (), range(9), seconds=2.0, processor=0.5, most=2)
    ends = {2: "died of SIGABRT", 3: "died of exit 7", 4: "hang", 6: "hang"}
    assert found == dict.fromkeys(range(9), "ok") | ends
