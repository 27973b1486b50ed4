"""What a user writes is checked by mypy against the types of the package."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
USER_CODE = Path(__file__).with_name("user_code.py")
SLIPS = (
    "model.rankk()",
    "model.fit(answers, item=None)",
    "predilect.Population(personel=True)",
    "1 + model.seed_ + ''",
)


def test_the_code_of_a_user_has_types_and_each_slip_is_found(tmp_path):
    wrong = [tmp_path / f"slip_{number}.py" for number in range(len(SLIPS))]
    for path, slip in zip(wrong, SLIPS, strict=True):
        path.write_text(USER_CODE.read_text() + slip + "\n")
    # All in one run, as it reads the package first, which takes the time.
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", str(USER_CODE)]
    ran = subprocess.run([*command, *map(str, wrong)], check=False, capture_output=True, text=True)
    errors = Counter(line.partition(":")[0] for line in ran.stdout.splitlines() if " error: " in line)
    assert ran.returncode == 1, ran.stderr
    assert errors == {str(path): 1 for path in wrong}, ran.stdout
