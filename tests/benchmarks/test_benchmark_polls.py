"""``python -m benchmarks.polls``."""

from __future__ import annotations

import json

import pytest

polls = pytest.importorskip("benchmarks.polls")


@pytest.mark.slow  # fits
def test_every_way_to_ask_is_measured_and_the_page_tells(monkeypatch, capsys, tmp_path):
    few = {"few": (6, 5, 40)}
    for kind in ("boards", "places", "chances"):
        monkeypatch.setitem(polls.KINDS, kind, (polls.KINDS[kind][0], few))
    for name, value in (("CHECKED", (20, 40)), ("FIRST_FIT", 15), ("FORECASTS", (20,)), ("N_CHANCES", 300)):
        monkeypatch.setattr(polls, name, value)
    monkeypatch.setattr("benchmarks.polls_page._CHECKED", ("20", "40"))
    monkeypatch.setattr("benchmarks.polls_page._sizes", lambda rows: ["few"])
    monkeypatch.setattr(polls, "RESULTS", tmp_path)
    ways, records = ["random", "board", "best"], tmp_path / "polls.jsonl"
    for kind in ("boards", "places", "chances"):
        polls.main([kind, "--ways", *ways, "--seeds", "3", "5", "--records", str(records)])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(row["seed"], row["way"]) for row in rows] == [(seed, way) for seed in (3, 4) for way in ways]
        if kind == "boards":
            assert all(-1.0 <= row["40"] <= 1.0 and row["unseen"] == 0 for row in rows)
        elif kind == "places":
            assert all(1 <= row["right_since"] <= 41 and 0.0 <= row["told"] <= 1.0 for row in rows)
        else:
            assert all(row["known"] > 1e-4 and row["newcomer"] > 1e-4 for row in rows)
    monkeypatch.setitem(polls.KINDS, "learned", (polls.learned, few))
    polls.main(["learned", "--ways", "board", "--seeds", "3", "5", "--records", str(records)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(len(row["held"]) == len(row["chances"]) == 10 for row in rows)
    assert all(abs(sum(chances) - 1.0) < 0.01 for row in rows for chances in row["chances"])
    polls.main(["page", "--records", str(records)])
    page = (tmp_path / "polls.md").read_text()
    assert page.count("| few |") >= 5
    assert sum(int(line.split("|")[2]) for line in page.split("was first |")[1].splitlines()[2:] if "to" in line) == 120
    assert "nan" not in page.split("## First place")[0]
