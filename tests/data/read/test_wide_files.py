"""Files of very many columns, which are looked at once each."""

from __future__ import annotations

import cProfile
import pstats
from contextlib import suppress

import pytest

from predilect import read
from predilect.errors import DataError

KINDS = {
    "one row of numbers": lambda n: ([f"c{i}" for i in range(n)], [["1"] * n]),
    "names of their own": lambda n: ([f"{'abcdefghij'[i % 10] * (i // 10 + 1)}{i}" for i in range(n)], [["1"] * n]),
    "attributes by alternative": lambda n: (
        ["choice", *(f"alt{a}_f{i}" for i in range(n // 2) for a in (1, 2))],
        [["1", *["2"] * n], ["2", *["1"] * n]],
    ),
}


def calls(path):
    """Calls of functions that reading takes."""
    profile = cProfile.Profile()
    with suppress(DataError):
        profile.runcall(read, path)
    return pstats.Stats(profile).total_calls


SLOW = {"attributes by alternative"}  # whose reading takes more than all others


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in KINDS]
)
def test_twice_the_columns_are_twice_the_work(tmp_path, kind):
    def file(n):
        names, rows = KINDS[kind](n)
        path = tmp_path / f"{n}.csv"
        path.write_text("\n".join(",".join(line) for line in [names, *rows]) + "\n")
        return path

    calls(file(20))  # imports and caches
    few, some, many = (calls(file(n)) for n in (250, 500, 1000))
    assert many - some < 2.5 * (some - few)
    assert many < 4000 * 1000  # with the making of what is read
