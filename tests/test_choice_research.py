"""The page for choice researchers runs as it stands: its Python, and its commands on the files that this makes."""

from __future__ import annotations

import doctest
import re
import shlex
import warnings

import pytest

from cli.running import run
from predilect.errors import ConvergenceWarning
from readme import ROOT, in_a_folder_of_its_own

PAGE = ROOT / "docs" / "choice-research.md"


@pytest.mark.slow  # two models, and their tests on held-out tasks
@pytest.mark.timeout(900)
def test_the_page_for_choice_researchers_runs():
    commands = re.findall(r"^    predilect (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"check", "utilities", "simulate"}
    with in_a_folder_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the sampler, by a hair
        found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
        assert found.attempted > 20
        assert found.failed == 0
        for command in commands:
            ran = run(*shlex.split(command))
            assert ran.exit_code == 0, f"{command}: {ran.output}"
