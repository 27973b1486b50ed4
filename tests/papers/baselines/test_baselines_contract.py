"""The baselines keep the contract of estimators; settings of another model, their part."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract
from contracts.setting import SettingContract, another_loop
from predilect.papers.baselines import GPVU, BonillaGP, GPClassifier, HierarchicalGP, SingleUserGP

FIXED: dict[str, Any] = {"variance": 4.0, "length_scale": 1.0, "tie_threshold": 0.4}
TRUSTING: dict[str, Any] = {"length_scale": 2.0, "own_share": 0.1}


@pytest.mark.slow
class TestHierarchical(PredictionContract, SavingContract):
    personal = True
    fixed = FIXED | {"own_share": 0.2, "tol": 1e-8}
    trusting_features = TRUSTING
    beyond_json: ClassVar[dict[str, Any]] = {"strength": 7.0}

    @classmethod
    def make(cls, **changes: Any) -> HierarchicalGP:
        return HierarchicalGP(**({"n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, **changes)

    def check_shards(self, model):
        assert len(model.posterior_.people.shards) > 2


@another_loop
@pytest.mark.slow  # the same predictions, posterior and files as TestHierarchical
class TestFactors(TestHierarchical):
    fixed = FIXED | {"own_share": 0.2, "tol": 1e-8, "max_iter": 3000}
    beyond_json: ClassVar[dict[str, Any]] = {"n_components": 2}

    @classmethod
    def make(cls, **changes: Any) -> GPVU:
        return GPVU(**({"n_jobs": 1, "n_components": 2, "own_share": 0.5} | changes))


@pytest.mark.slow  # a setting of GPPL, of which test_gppl_contract has every part
class TestSingleUser(SettingContract):
    personal = True
    fixed = FIXED | {"variance": 0.25, "tol": 1e-13, "max_iter": 5000}
    trusting_features = TRUSTING
    beyond_json: ClassVar[dict[str, Any]] = {"scale_prior": (2.0, 3.0)}

    @classmethod
    def make(cls, **changes: Any) -> SingleUserGP:
        return SingleUserGP(**({"n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, tol=1e-12, **changes)


@pytest.mark.slow  # the same
class TestClassifier(SettingContract):
    personal = False
    fixed = FIXED | {"variance": 0.25}
    rounding = 1e-13
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    features_say_all = True
    beyond_json: ClassVar[dict[str, Any]] = {"scale_prior": (2.0, 3.0)}

    @classmethod
    def make(cls, **changes: Any) -> GPClassifier:
        return GPClassifier(**({"n_jobs": 1} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(inference="variational", max_iter=1, tie_threshold=0.4, **changes)


@pytest.mark.slow  # a setting of JointGP
class TestBonilla(SettingContract):
    personal = True
    fixed = FIXED | {"variance": 0.25, "tol": 1e-9}
    rounding = 1e-11
    trusting_features: ClassVar[dict[str, Any]] = {"length_scale": 2.0}
    beyond_json: ClassVar[dict[str, Any]] = {"user_nugget": 0.3}

    @classmethod
    def make(cls, **changes: Any) -> BonillaGP:
        return BonillaGP(**({"n_tuning": 0, "item_nugget": 0.05, "user_nugget": 1.0} | changes))

    def cut_short(self, monkeypatch, **changes):
        return self.make(max_iter=1, **changes)
