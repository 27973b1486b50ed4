"""What is said of a model in sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predilect.likelihoods.calibration import UNCALIBRATED


@pytest.mark.parametrize(
    ("found", "delta", "says"),
    [
        ({}, 0.0, []), ({"lapse_rate": 0.001}, 0.0, []), ({"lapse_rate": 0.1}, 0.4, ["10 %", "5 times"]),
        ({"omitted_ties": 0.4}, 0.3, []), ({"omitted_ties": 0.4}, 0.0, ["ties were left out", "leads by 0.4 times"]),
    ],
)  # fmt: skip
def test_what_predictions_take_besides_the_margins_is_told(found, delta, says):
    lines = replace(UNCALIBRATED, **found).describe(delta)
    assert len(lines) == bool(says)
    for part in says:
        assert part in lines[0]
