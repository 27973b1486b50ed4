"""GPPL, pooled and a process a person, keeps the contract of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import another_loop
from contracts.votes import questions, votes
from predilect import GPPL

FIXED = {"variance": 1.0 / 0.3, "length_scale": 1.0, "tol": 1e-13, "max_iter": 5000, "tie_threshold": 0.4}
TRUSTING = {"length_scale": 2.0}
MORE = {"scale_prior": (2.0, 3.0)}


class TestPooled(PredictionContract, SavingContract):
    personal = False
    fixed = FIXED
    rounding = 1e-13
    trusting_features = TRUSTING
    features_say_all = True
    beyond_json = MORE

    @classmethod
    def make(cls, **changes: Any) -> GPPL:
        return GPPL(**({"n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, tie_threshold=0.4, **changes)


@another_loop
@pytest.mark.slow
class TestInBatches(TestPooled):
    @classmethod
    def make(cls, **changes: Any) -> GPPL:
        return GPPL(**({"n_jobs": 1, "inference": "stochastic", "batch_size": 40} | changes))

    def test_the_names_of_items_and_people(self):
        """Names decide which answers share a batch, so that only the solution itself can be asked for."""
        columns, y = votes()
        one, other = (self.make(**self.fixed | how).fit(columns, y) for how in ({}, {"inference": "variational"}))
        for a, b in zip(one.predict_margin(questions()), other.predict_margin(questions()), strict=True):
            np.testing.assert_allclose(a, b, rtol=0.02, atol=0.02)


@pytest.mark.slow  # the same facade as TestPooled
class TestSeparate(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED
    trusting_features = TRUSTING
    features_say_all = True
    beyond_json = MORE

    @classmethod
    def make(cls, **changes: Any) -> GPPL:
        return GPPL(**({"users": "separate", "n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, tol=1e-12, **changes)

    def check_shards(self, model):
        assert len(model.posterior_.people.people.shards) > 2
