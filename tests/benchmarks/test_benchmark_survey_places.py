"""``python -m benchmarks.survey_places``."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.survey_places import best_ranking, main, places


def test_places_count_a_persons_choices():
    frame = pl.DataFrame({"user": [1, 1, 2, 1, 2, 2], "task": [7, 7, 3, 9, 5, 1]})
    np.testing.assert_array_equal(places(frame), [0, 0, 1, 1, 2, 0])


def test_the_best_ranking_is_that_of_the_counts():
    frame = pl.DataFrame({"left": [0] * 8, "right": [1] * 8, "winner": [0] * 6 + [1] * 2})
    log_p = best_ranking(frame, 2)
    assert np.exp(log_p) == pytest.approx([0.75] * 6 + [0.25] * 2, abs=1e-3)  # but for a prior of variance 100


@pytest.mark.data
@pytest.mark.slow
def test_the_middle_of_the_survey_is_as_easy_as_the_prototypes_split(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["survey_places", "--sets", "2"])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "best ranking of all answers: 0.718 / 0.540"
    accuracy, loss = (float(x) for x in lines[-1].split("population ")[1].split(" / "))
    assert accuracy > 0.855
    assert loss < 0.335
