"""GaSPK keeps the contract of estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from predilect import GaSPK

FIXED = {
    "variance": 4.0, "length_scale": 1.0, "tie_threshold": 0.4, "spread": 1.2, "tol": 1e-3,
    "max_iter": 300,
}  # fmt: skip


@pytest.mark.slow  # a minute of fits
class TestGaSPK(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED
    rounding = 1e-12
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    features_say_all = True
    beyond_json: ClassVar[dict[str, Any]] = {"levels": None}
    without_random_start: ClassVar[dict[str, Any]] = {"n_components": 1}

    @classmethod
    def make(cls, **changes: Any) -> GaSPK:
        quick = {"n_jobs": 1, "n_components": 2, "concentration": 0.3, "variance": 4.0, "spread": 1.2}
        return GaSPK(**(quick | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, **changes)


class TestHeuristic(TestGaSPK):
    @classmethod
    def make(cls, **changes: Any) -> GaSPK:
        return super().make(**{"gamma": "heuristic", "concentration": 0.0, "n_restarts": 1} | changes)
