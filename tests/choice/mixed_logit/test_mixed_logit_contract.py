"""The mixed logit keeps the contract of estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import another_loop
from predilect import MixedLogit


class TestBayes(PredictionContract, SavingContract):
    personal = True
    rounding = 1e-12
    skewness = 0.1  # draws are not normal
    fixed: ClassVar[dict[str, Any]] = {"tie_threshold": 0.6}
    trusting_features: ClassVar[dict[str, Any]] = {}
    features_say_all = True
    beyond_json: ClassVar[dict[str, Any]] = {"n_draws": 600}
    for_threads = (40, 6, 12)

    @classmethod
    def make(cls, **changes: Any) -> MixedLogit:
        return MixedLogit(**({"n_draws": 400, "tol": 5.0, "n_jobs": 1, "tie_threshold": 0.6} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(n_draws=20, tol=1.0, **changes)


@another_loop
@pytest.mark.slow  # the same predictions and files as of the other method
class TestSimulated(TestBayes):
    beyond_json: ClassVar[dict[str, Any]] = {"covariance": "full"}

    @classmethod
    def make(cls, **changes: Any) -> MixedLogit:
        given = {"method": "simulated", "covariance": "diagonal", "n_draws": 50, "n_jobs": 1, "tie_threshold": 0.6}
        return MixedLogit(**(given | {"tol": 1e-3} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(**({"max_iter": 1, "tol": 1e-9} | changes))
