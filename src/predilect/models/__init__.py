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
    from predilect.choice.mixed_logit import MixedLogit as MixedLogit
    from predilect.models.population import Population as Population
    from predilect.papers.baselines import GPVU as GPVU
    from predilect.papers.baselines import BonillaGP as BonillaGP
    from predilect.papers.baselines import GPClassifier as GPClassifier
    from predilect.papers.baselines import HierarchicalGP as HierarchicalGP
    from predilect.papers.baselines import SingleUserGP as SingleUserGP
    from predilect.papers.collaborative import CollaborativeGP as CollaborativeGP
    from predilect.papers.compression.model import CompressedModel as CompressedModel
    from predilect.papers.crowd import CrowdGPPL as CrowdGPPL
    from predilect.papers.gaspk import GaSPK as GaSPK
    from predilect.papers.gppl import GPPL as GPPL
    from predilect.papers.joint import JointGP as JointGP


def __getattr__(name: str) -> Any:
    # Numba and polars take a while to import: they are loaded when a model is first used.
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"predilect.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
