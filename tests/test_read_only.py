"""An installation that nobody may write to: no folder for the compiled loops, and everything works all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from numba.core import caching

places = [kind for kind in vars(caching).values() if isinstance(kind, type) and hasattr(kind, "_locator_classes")]
assert places
for kind in places:
    kind._locator_classes = []

from predilect import Population
votes = {
    "user": ["u", "u", "v", "v", "w", "w"],
    "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
    "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
    "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
}
print(Population().fit(votes).rank()["item"].to_list())
"""


@pytest.mark.slow
def test_without_a_folder_for_compiled_loops_each_process_compiles_its_own():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=250, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "['tea', 'milk', 'juice']"
    assert (
        ran.stderr.strip()
        == "predilect: compiling its numerical loops, as no folder for them can be written (NUMBA_CACHE_DIR) ..."
    )
