"""``python -m benchmarks.polls``."""

from __future__ import annotations

import json

import pytest

polls = pytest.importorskip("benchmarks.polls")


@pytest.mark.slow  # fits
@pytest.mark.parametrize("kind", ["boards", "best", "stop"])
def test_every_way_to_ask_is_measured(kind, monkeypatch, capsys, tmp_path):
    for name in ("CROWDS", "SOUGHT", "STOPPED"):
        monkeypatch.setattr(polls, name, {"few": (6, 5, 40)})
    monkeypatch.setattr(polls, "CHECKED", (20, 40))
    monkeypatch.setattr(polls, "FIRST_FIT", 15)
    ways = ["random", "board", "best"]
    polls.main([kind, "--ways", *ways, "--seeds", "3", "5", "--out", str(tmp_path / "polls.jsonl")])
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "polls.jsonl").read_text()
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [(row["seed"], row["way"]) for row in rows] == [(seed, way) for seed in (3, 4) for way in ways]
    if kind == "boards":
        assert all(-1.0 <= row["40"] <= 1.0 and row["unseen"] == 0 for row in rows)
    if kind == "best":
        assert all(1 <= row["stays"] <= 41 for row in rows)
    if kind == "stop":
        assert all(0.0 <= row["told"] <= 1.0 for row in rows)
