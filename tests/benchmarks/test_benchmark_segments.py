"""The benchmark of segments: the truth that it judges by, and its page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.segments import CELLS, MODELS, N_ITEMS, N_QUESTIONS, STRANGERS, Cell, Crowd, main, page
from scipy.special import log_ndtr


def test_the_truth_of_a_crowd_is_what_its_people_are_drawn_about():
    crowd = Crowd("5, 20 and 100", 3)
    people = CELLS["5, 20 and 100"].people
    assert len(crowd.people["known"]) == sum(people)
    assert len(crowd.people["strangers"]) == STRANGERS * len(people)
    np.testing.assert_allclose(np.average(crowd.differences, axis=0, weights=people), 0.0, atol=1e-12)
    spread = (crowd.utilities - crowd.boards[crowd.segment]).std()
    assert spread == pytest.approx(0.6, rel=0.05)
    assert set(np.bincount(crowd.questions["known"][0], minlength=sum(people))[: sum(people)]) == {N_QUESTIONS}


def test_who_knows_the_truth_loses_least():
    crowd = Crowd("25 of 20", 0)
    user, left, right = crowd.questions["known"]
    z = crowd.utilities[user, left] - crowd.utilities[user, right]
    best = crowd.loss("known", np.column_stack([log_ndtr(z), z, log_ndtr(-z)])).mean()
    assert best < crowd.loss("known", np.column_stack([log_ndtr(0.8 * z), z, log_ndtr(-0.8 * z)])).mean()


def test_every_second_segment_was_asked_about_half_of_the_items():
    crowd = Crowd("half of the items", 1)
    user, left, right = crowd.answers
    odd = crowd.segment[user] % 2 == 1
    assert max(left[odd].max(), right[odd].max()) < N_ITEMS // 2 <= max(left[~odd].max(), right[~odd].max())


@pytest.mark.slow
def test_runs_are_kept_and_told_on_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.segments.CELLS", {"small": Cell((4, 8), (6,), 0.5)})
    assert main(["--seeds", "1", "--cells", "small", "--out", str(tmp_path)]) == 0
    records = [json.loads(line) for line in (tmp_path / "segments.jsonl").read_text().splitlines()]
    assert [record["model"] for record in records] == list(MODELS)
    assert set(records[0]["coverage"]) == {"4", "8"}
    text = (tmp_path / "segments.md").read_text()
    assert text == page(records)
    assert "| small | 6 | 0.5 | strangers |" in text
    before = (tmp_path / "segments.jsonl").read_bytes()
    assert main(["--seeds", "1", "--cells", "small", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "segments.jsonl").read_bytes() == before
