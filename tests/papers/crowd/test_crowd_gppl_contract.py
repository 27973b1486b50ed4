"""CrowdGPPL, both presets, keeps the contract of estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import another_loop
from predilect import CrowdGPPL

FIXED = {"length_scale": 1.0, "tol": 1e-8, "max_iter": 500, "tie_threshold": 0.4, "n_components": 1}


@pytest.mark.slow  # half a minute of fits; test_crowd_gppl.py has quicker ones
class TestModern(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED
    without_random_start: ClassVar[dict[str, Any]] = {"n_components": 0}
    rounding = 1e-12
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    beyond_json: ClassVar[dict[str, Any]] = {"consensus_prior": (2.0, 3.0)}

    @classmethod
    def make(cls, **changes: Any) -> CrowdGPPL:
        return CrowdGPPL(**({"n_components": 3, "component_prior": (10.0, 10.0), "n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, tie_threshold=0.4, **changes)


@another_loop
@pytest.mark.slow
class TestPaper(TestModern):
    features_say_all = True
    # The linearisation does not survive its own vague priors where answers are few.
    fixed = FIXED | {"tol": 1e-5, "consensus_prior": (2.0, 2.0), "component_prior": (2.0, 2.0)}

    @classmethod
    def make(cls, **changes: Any) -> CrowdGPPL:
        return CrowdGPPL(**({"preset": "paper", "n_components": 3, "n_jobs": 1, "max_iter": 1000} | changes))
