"""``python -m benchmarks.polls``."""

from __future__ import annotations

import pytest

polls = pytest.importorskip("benchmarks.polls")


@pytest.mark.slow  # a refit every few answers
def test_every_way_to_ask_is_measured(monkeypatch, capsys):
    for name, value in {"N_ITEMS": 8, "N_USERS": 6, "PER_PERSON": 3, "IDS": [f"item {k}" for k in range(8)]}.items():
        monkeypatch.setattr(polls, name, value)
    ways = [way for way in polls.WAYS if way != "suggest twelve"]  # of more items than there are
    polls.main(["--crowds", "1", "--ways", *ways])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 2 * len(ways)
    assert all(-1.0 <= float(line.split()[-1]) <= 1.0 for line in lines)
