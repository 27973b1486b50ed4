"""CollaborativeGP, both presets, keeps the contract of estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import another_loop
from predilect import CollaborativeGP

FIXED = {"length_scale": 1.0, "tol": 1e-9, "max_iter": 2000, "tie_threshold": 0.4, "n_components": 1}


@pytest.mark.slow
class TestModern(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED
    rounding = 1e-12
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    beyond_json: ClassVar[dict[str, Any]] = {"length_scale": (0.5,)}

    @classmethod
    def make(cls, **changes: Any) -> CollaborativeGP:
        return CollaborativeGP(**({"n_components": 3, "n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, tie_threshold=0.4, **changes)


@another_loop
@pytest.mark.slow
class TestPaper(TestModern):
    features_say_all = True
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0, "own_share": 0.0}

    @classmethod
    def make(cls, **changes: Any) -> CollaborativeGP:
        return CollaborativeGP(**({"preset": "paper", "n_components": 3, "n_jobs": 1, "max_iter": 500} | changes))
