"""Preference learning: answers to "which of these two?" become rankings, with honest uncertainty.

>>> import predilect
>>> answers = {
...     "user": ["ann", "ann", "bob", "bob", "cas", "cas"],
...     "left": ["tea", "milk", "tea", "juice", "milk", "tea"],
...     "right": ["milk", "juice", "juice", "milk", "tea", "juice"],
...     "winner": ["tea", "milk", "tea", "milk", "tea", "tea"],
... }
>>> model = predilect.Population().fit(answers)
>>> model.rank()["item"].to_list()
['tea', 'milk', 'juice']
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "GPPL",
    "GPVU",
    "BonillaGP",
    "Calibration",
    "CollaborativeGP",
    "Comparisons",
    "CompressedModel",
    "ConvergenceError",
    "ConvergenceWarning",
    "CrowdGPPL",
    "DataError",
    "DataWarning",
    "GPClassifier",
    "GaSPK",
    "HierarchicalGP",
    "ItemFeatures",
    "JointGP",
    "PersonFeatures",
    "Population",
    "PredilectError",
    "SingleUserGP",
    "__version__",
    "check",
    "compress",
    "load_model",
    "read_comparisons",
    "select_attributes",
]

_MODULES = {
    "errors": ("ConvergenceError", "ConvergenceWarning", "DataError", "DataWarning", "PredilectError"),
    "data": ("Comparisons", "ItemFeatures", "PersonFeatures", "check", "read_comparisons"),
    "evaluation.attributes": ("select_attributes",),
    "models.population": ("Population",),
    "models.population.calibration": ("Calibration",),
    "models.gppl": ("GPPL", "GPClassifier", "SingleUserGP"),
    "models.crowd": ("CrowdGPPL",),
    "models.gaspk": ("GaSPK",),
    "models.collaborative": ("CollaborativeGP",),
    "models.joint": ("BonillaGP", "JointGP"),
    "models.hierarchical": ("HierarchicalGP",),
    "models.gpvu": ("GPVU",),
    "models.registry": ("load_model",),
    "compress.model": ("CompressedModel", "compress"),
}

if TYPE_CHECKING:
    from predilect.compress.model import CompressedModel, compress
    from predilect.data import Comparisons, ItemFeatures, PersonFeatures, check, read_comparisons
    from predilect.errors import ConvergenceError, ConvergenceWarning, DataError, DataWarning, PredilectError
    from predilect.evaluation.attributes import select_attributes
    from predilect.models.collaborative import CollaborativeGP
    from predilect.models.crowd import CrowdGPPL
    from predilect.models.gaspk import GaSPK
    from predilect.models.gppl import GPPL, GPClassifier, SingleUserGP
    from predilect.models.gpvu import GPVU
    from predilect.models.hierarchical import HierarchicalGP
    from predilect.models.joint import BonillaGP, JointGP
    from predilect.models.population import Population
    from predilect.models.population.calibration import Calibration
    from predilect.models.registry import load_model


def __getattr__(name: str) -> Any:
    # Numba, scikit-learn and polars take a second to import: they are loaded when something of theirs is first used.
    import importlib

    for module, names in _MODULES.items():
        if name in names:
            globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
