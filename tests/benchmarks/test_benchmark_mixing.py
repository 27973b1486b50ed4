"""The benchmark of mixing: its studies have the truth that they state, and runs are kept and told on a page."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import polars as pl
import pytest
from benchmarks.mixing import N_SHOWN, N_TASKS, STUDIES, Study, answers_of, main, page, phones

from predilect import MixedLogit
from predilect.decisions import design


def test_the_studies_are_of_100_to_1000_people_with_4_to_12_coefficients():
    assert len(STUDIES) == 10
    assert {study.n_people for study in STUDIES.values()} >= {100, 1000}
    sizes = [len(study.spreads) for study in STUDIES.values() if study.spreads]
    assert (min(sizes), max(sizes)) == (4, 12)
    assert {0.0, 2.0} <= {spread for study in STUDIES.values() for spread in study.spreads}


# Made where the test runs: made at import, the design took most of a minute of every process that collects tests.
@pytest.mark.slow
@pytest.mark.parametrize("make", [partial(answers_of, Study(50, (0.0, 1.0)), 0), partial(phones, 50, 0)])
def test_each_task_has_one_choice_and_a_logit_finds_the_means(make, monkeypatch):
    monkeypatch.setattr("benchmarks.mixing.design", partial(design, n_starts=1))  # any design will do
    answers, items = make()
    assert answers.group_by("task").agg(pl.len(), pl.col("choice").sum())["choice"].to_list() == [1] * 50 * N_TASKS
    assert len(answers) == 50 * N_TASKS * N_SHOWN
    found = pl.DataFrame(MixedLogit(distributions="fixed").fit(answers, items=items).worth.coefficients())
    mean = dict(zip(found["attribute"], found["mean"], strict=True))
    signs = {"x00": 1, "x01": -1} if "x00" in mean else {"price": -1, "range": 1, "warranty": 1}
    assert {name: int(np.sign(mean[name])) for name in signs} == signs


@pytest.mark.slow
def test_runs_are_kept_and_told_on_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.mixing.STUDIES", {"100 x 4": Study(20, (0.0, 0.5))})
    monkeypatch.setattr("benchmarks.mixing.COVERED", Study(20, (0.0, 0.5, 0.5)))
    asked = ["--studies", "100 x 4", "--coverage", "2", "--out", str(tmp_path)]
    assert main(asked) == 0
    records = [json.loads(line) for line in (tmp_path / "mixing.jsonl").read_text().splitlines()]
    assert [(record["study"], record["seed"]) for record in records] == [
        ("100 x 4", 0),
        ("coverage", 0),
        ("coverage", 1),
    ]
    assert np.array(records[1]["2.5 %"]).shape == (3,)
    text = (tmp_path / "mixing.md").read_text()
    assert text == page(records, "python -m benchmarks.mixing")
    assert "2 studies of 20 people" in text
    before = (tmp_path / "mixing.jsonl").read_bytes()
    assert main(asked) == 0
    assert (tmp_path / "mixing.jsonl").read_bytes() == before
