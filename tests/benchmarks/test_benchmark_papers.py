"""The experiments of the papers, as one command makes them."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks import papers

PARTS = [part for parts in papers.PAPERS.values() for part in parts]


def test_what_needs_data_is_left_out_of_a_quick_run_and_told(monkeypatch, capsys):
    monkeypatch.delenv("PREDILECT_DATA", raising=False)
    assert papers.main(["vvm", "--quick"]) == 0
    assert "vvm, Figs. 2 and 3: left out, the data sets are not part of the project" in capsys.readouterr().err


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.module}, {part.figure}")
def test_each_experiment_has_a_module_with_a_command(part):
    assert callable(import_module(f"benchmarks.{part.module}").main)
