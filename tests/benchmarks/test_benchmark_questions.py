"""``python -m benchmarks.questions``."""

from __future__ import annotations

import pytest

questions = pytest.importorskip("benchmarks.questions")


@pytest.mark.slow
def test_every_strategy_is_measured(monkeypatch, capsys):
    for name, value in {"N_USERS": 4, "N_ITEMS": 6, "PER_PERSON": 5}.items():
        monkeypatch.setattr(questions, name, value)
    questions.one_person(2, 2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(questions.STRATEGIES)
    assert lines[0].startswith("6 items with features, 2 questions by bald: ")
    assert all("the slowest of 2 " in line for line in lines)


@pytest.mark.slow  # rounds of a whole crowd
def test_everybody_is_asked_in_every_round(capsys):
    questions.everybody(8, 2)
    assert capsys.readouterr().out.startswith("8 people, 2 rounds by bald, pools of 40 pairs, with updates: ")
