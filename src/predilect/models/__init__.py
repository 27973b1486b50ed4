"""Estimators in the manner of scikit-learn: they validate and assemble, and hold no mathematics.

>>> from predilect.models import SingleUserGP
>>> SingleUserGP().get_params()["tie_threshold"]
'auto'
"""

# Names and __all__ are made of a table, which ruff does not read.
# ruff: noqa: PLE0604

from typing import TYPE_CHECKING, Any

from predilect.models.registry import ENTRIES

_HOME = {entry.estimator: entry.module for entry in ENTRIES}

__all__ = [*_HOME]

if TYPE_CHECKING:
    from predilect.compression.model import CompressedModel as CompressedModel
    from predilect.models.baselines import GPVU as GPVU
    from predilect.models.baselines import BonillaGP as BonillaGP
    from predilect.models.baselines import GPClassifier as GPClassifier
    from predilect.models.baselines import HierarchicalGP as HierarchicalGP
    from predilect.models.baselines import SingleUserGP as SingleUserGP
    from predilect.models.collaborative import CollaborativeGP as CollaborativeGP
    from predilect.models.crowd import CrowdGPPL as CrowdGPPL
    from predilect.models.gaspk import GaSPK as GaSPK
    from predilect.models.gppl import GPPL as GPPL
    from predilect.models.joint import JointGP as JointGP
    from predilect.models.mixed_logit import MixedLogit as MixedLogit
    from predilect.models.population import Population as Population


def __getattr__(name: str) -> Any:
    # Numba and scikit-learn take a second to import: they are loaded when a model is first used.
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"predilect.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
