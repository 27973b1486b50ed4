"""JointGP keeps the contract of estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from predilect import JointGP


@pytest.mark.slow
class TestJoint(PredictionContract, SavingContract):
    personal = True
    fixed: ClassVar[dict[str, Any]] = {
        "n_tuning": 0, "variance": 2.25, "length_scale": 1.0, "tie_threshold": 0.4, "tol": 1e-9
    }  # fmt: skip
    rounding = 1e-11
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    beyond_json: ClassVar[dict[str, Any]] = {"length_scale": (0.5,)}
    for_threads = (20, 12, 20)

    @classmethod
    def make(cls, **changes: Any) -> JointGP:
        return JointGP(**({"n_tuning": 0} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, **changes)
