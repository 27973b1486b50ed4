"""Newcomers are new, and are asked nothing that they have answered."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.newcomers import KNOWN, MODELS, N_QUESTIONS, STAYED, main, split
from benchmarks.splits import split_answers
from benchmarks.task import split_comparisons

from simulate import comparisons, crowd


def task(seed: int = 0, n_answers: int = 60):
    """A simulated crowd of 24 people as a task."""
    rows = comparisons(crowd(5, 24, 9, n_answers))
    return split_comparisons("crowd", seed, rows, split_answers(rows, random_state=seed)[1])


def pairs_of(rows) -> set:
    return {(rows.users.ids[u], a, b) for u, a, b in zip(rows.user, rows.left, rows.right, strict=True)}


def test_newcomers_are_new_and_no_known_answer_is_asked():
    parts = split(task())
    stay, new = ({rows.users.ids[u] for u in np.unique(rows.user)} for rows in (parts.train, parts.questions))
    assert len(stay) == 20
    assert len(new) == 4
    assert not stay & new
    assert {parts.test.users.ids[u] for u in parts.test.user} <= stay
    assert not pairs_of(parts.known) & pairs_of(parts.questions)
    asked = np.bincount(parts.questions.user)
    assert 0 < asked.max() <= N_QUESTIONS
    for user in np.unique(parts.known.user):
        assert sorted(parts.place[parts.known.user == user]) == list(range(max(KNOWN)))
    assert split(task()).questions == parts.questions
    assert split(task(1)).questions != parts.questions


@pytest.mark.slow
def test_the_page_tells_the_steps_of_every_task(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.newcomers.TASKS", {"jura": task})
    assert main(["--tasks", "jura", "--seeds", "1", "--out", str(tmp_path)]) == 0
    records = [json.loads(line) for line in (tmp_path / "newcomers.jsonl").read_text().splitlines()]
    assert [r["known"] for r in records] == [STAYED, *KNOWN]
    for r in records:
        for name in MODELS[1:]:
            assert r[f"to {name}"][0] == pytest.approx(r["calibrated"][0] - r[name][0])
    assert len({r["pooled"][0] for r in records[1:]}) == 1  # the same questions at every step
    page = (tmp_path / "newcomers.md").read_text()
    assert page.count("| jura | 0-0 |") == len(records)
    (tmp_path / "newcomers.md").unlink()
    assert main(["--tasks", "jura", "--seeds", "1", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "newcomers.md").read_text() == page
