"""What is said of a model in sentences."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from predilect.data import Vocabulary
from predilect.inference.likelihoods.calibration import UNCALIBRATED
from predilect.models.population.tables import describe_consistency


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


@pytest.mark.parametrize(
    ("consistency", "says"),
    [
        ([1.0] * 8, ["hardly anything"]), ([1.0] * 7 + [0.2], ["1.00 to 1.00", "1 person has"]),
        ([0.8, 1.2] * 4, ["0.83 to 1.25"]),
    ],
)  # fmt: skip
def test_what_is_told_of_consistency_does_not_contradict_itself(consistency, says):
    people = SimpleNamespace(n_users=8, answer_ptr=np.arange(9), consistency=np.array(consistency))
    model = SimpleNamespace(
        hyperparameters_=SimpleNamespace(consistency_spread=0.5), posterior_=SimpleNamespace(people=people),
        users_=Vocabulary(np.arange(8)),
    )  # fmt: skip
    lines = describe_consistency(model)
    assert len(lines) == len(says)
    for line, part in zip(lines, says, strict=True):
        assert part in line
