"""The population model and its pooled special case keep the contract of estimators."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import another_loop
from predilect import Calibration, Population
from predilect.inference.latent import pooled

FIXED = {
    "consistency": 0.5,
    "strength": 10.0, "variance": 2.0, "consensus_variance": 4.0, "feature_weight": 0.5,
    "length_scale": 1.0, "calibration": Calibration(0.8), "tol": 1e-13,
    "max_iter": 3000, "tie_threshold": ("auto", 0.3),
}  # fmt: skip

TRUSTING = {"feature_weight": (0.9, 0.5), "consensus_variance": 4.0}
INFINITE = {"consensus_variance": float("inf")}


class TestPersonal(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED
    trusting_features = TRUSTING
    beyond_json = INFINITE

    @classmethod
    def make(cls, **changes: Any) -> Population:
        # Of the search the consensus, features and calibration are left.
        given = {"strength": 10.0, "variance": 2.0, "consistency": 0.5, "tie_threshold": ("auto", 0.3, 0.0)}
        return Population(**({"n_jobs": 1} | given | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(variance=2.0, consensus_variance=4.0, max_iter=2, **changes)

    def check_shards(self, model):
        assert len(model.posterior_.people.shards) > 2


@another_loop
@pytest.mark.slow  # a search at each fit
class TestSearched(TestPersonal):
    @classmethod
    def make(cls, **changes: Any) -> Population:
        # One number is given, which halves the walk; test_population_basis.py goes through a search that is whole.
        return Population(**({"n_jobs": 1, "strength": 10.0, "variance": 2.0} | changes))


class TestPooled(PredictionContract, SavingContract):
    personal = False
    fixed = FIXED
    trusting_features = TRUSTING
    beyond_json = INFINITE

    @classmethod
    def make(cls, **changes: Any) -> Population:
        return Population(**({"personal": False, "n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        monkeypatch.setattr(pooled, "_MAX_NEWTON", 1)
        return self.make(tie_threshold=(0.4, 0.3), consensus_variance=4.0, **changes)
