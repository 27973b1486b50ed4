"""What a user writes is checked by mypy against the types of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
USER_CODE = Path(__file__).with_name("user_code.py")


def checked(path):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_the_code_of_a_user_has_types():
    ran = checked(USER_CODE)
    assert ran.returncode == 0, ran.stdout


def test_a_slip_of_a_user_is_found(tmp_path):
    slips = [
        "model.rankk()",
        "model.fit(answers, item=None)",
        "predilect.Population(personel=True)",
        "1 + model.seed_ + ''",
    ]
    for slip in slips:
        (tmp_path / "slip.py").write_text(USER_CODE.read_text() + slip + "\n")
        ran = checked(tmp_path / "slip.py")
        assert ran.returncode == 1, slip
        assert ran.stdout.count("error:") == 1, ran.stdout
