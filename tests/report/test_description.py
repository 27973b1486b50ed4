"""What is said of a model in sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predilect.likelihoods.calibration import UNCALIBRATED
from predilect.models.population.model import _noise_line


@pytest.mark.parametrize(("found", "says"), [
    ({}, []),
    ({"noise_factor": 0.98, "lapse_rate": 0.001}, []),
    ({"noise_factor": 0.25}, ["0.50 times this noise for an answer's"]),
    ({"noise_factor": 0.25, "lapse_rate": 0.1},
     ["0.50 times this noise for 90 %", "5 times it"]),
])  # fmt: skip
def test_the_noise_is_told_where_predictions_take_another(found, says):
    line = _noise_line(replace(UNCALIBRATED, **found))
    assert bool(line) == bool(says)
    for part in says:
        assert part in line
