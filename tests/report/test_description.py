"""What is said of a model in sentences."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from predilect.likelihoods.calibration import UNCALIBRATED
from predilect.models.population.model import _noise_line


@pytest.mark.parametrize(("found", "says"), [
    ({}, []),
    ({"noise_factor": 0.98, "lapse_rate": 0.001, "lapse_noise": 25.0}, []),
    ({"noise_factor": 0.25}, ["0.50 times this noise for an answer's"]),
    ({"noise_factor": 0.25, "lapse_rate": 0.1, "lapse_noise": 36.0},
     ["0.50 times this noise for 90 %", "6.0 times it"]),
    ({"lapse_rate": 0.1, "lapse_noise": math.inf}, ["1.00 times this noise for 90 %", "toss of a coin"]),
])  # fmt: skip
def test_the_noise_is_told_where_predictions_take_another(found, says):
    line = _noise_line(replace(UNCALIBRATED, **found))
    assert bool(line) == bool(says)
    for part in says:
        assert part in line
