"""The benchmark of groups of opinion: the polls that it makes, and its page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.groups import CELLS, N_ANSWERS, N_ITEMS, Cell, Poll, main, page


def test_camps_are_as_far_apart_as_is_said():
    poll = Poll("two camps", 0)
    cell = CELLS["two camps"]
    away = poll.means[0] - poll.means[1]
    assert np.sqrt(np.mean(away**2)) == pytest.approx(cell.distance * cell.sd)
    assert len(poll.user) == cell.n_people * N_ANSWERS
    assert (poll.left != poll.right).all()
    assert max(poll.left.max(), poll.right.max()) < N_ITEMS
    share = np.mean([Poll("two camps, 3 to 1", seed).camp.mean() for seed in range(20)])
    assert share == pytest.approx(0.25, abs=0.05)
    assert [cell.right for cell in CELLS.values() if cell.kind != "camps"] == [0] * 4


def test_the_page_counts_what_is_right():
    records = [
        {"cell": "two camps", "seed": seed, "found": found, "gain": 1.0, "cpu_s": 2.0} | more
        for seed, (found, more) in enumerate([(2, {"shares": 1.0, "differences": 0.5}), (0, {}), (3, {}), (2, {})])
    ]
    assert "| two camps | 100 | 2 | 2 | 4 | 50 % | 25 % | 50 % | 25 % | 1.00 | 0.50 | 2.0 |" in page(records)


@pytest.mark.slow
def test_runs_are_kept_and_told_on_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.groups.CELLS", {"small": Cell("camps", n_people=40, sd=3.0, seeds=1)})
    assert main(["--cells", "small", "--out", str(tmp_path)]) == 0
    records = [json.loads(line) for line in (tmp_path / "groups.jsonl").read_text().splitlines()]
    assert (tmp_path / "groups.md").read_text() == page(records)
