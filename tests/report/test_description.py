"""What is said of a model in sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predilect.likelihoods.calibration import UNCALIBRATED
from predilect.models.population.model import _lapse_line


@pytest.mark.parametrize(
    ("found", "says"), [({}, []), ({"lapse_rate": 0.001}, []), ({"lapse_rate": 0.1}, ["10 %", "5 times"])]
)
def test_careless_answers_are_told_where_predictions_reckon_with_them(found, says):
    line = _lapse_line(replace(UNCALIBRATED, **found))
    assert bool(line) == bool(says)
    for part in says:
        assert part in line
