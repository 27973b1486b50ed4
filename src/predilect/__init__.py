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
    "CollaborativeGP",
    "Comparisons",
    "CompressedModel",
    "ConvergenceError",
    "ConvergenceWarning",
    "CrowdGPPL",
    "DataError",
    "DataWarning",
    "GaSPK",
    "ItemFeatures",
    "JointGP",
    "PersonFeatures",
    "Population",
    "PredilectError",
    "__version__",
    "check",
    "compress",
    "load_model",
    "read_comparisons",
    "select_attributes",
]

if TYPE_CHECKING:
    from predilect.data import Comparisons, ItemFeatures, PersonFeatures, check, read_comparisons
    from predilect.errors import ConvergenceError, ConvergenceWarning, DataError, DataWarning, PredilectError
    from predilect.evaluation.attributes import select_attributes
    from predilect.models.collaborative import CollaborativeGP
    from predilect.models.compressed import CompressedModel, compress
    from predilect.models.crowd_gppl import CrowdGPPL
    from predilect.models.gaspk import GaSPK
    from predilect.models.gppl import GPPL
    from predilect.models.joint import JointGP
    from predilect.models.loading import load_model
    from predilect.models.population import Population


def __getattr__(name: str) -> Any:
    # Numba, scikit-learn and polars take a second to import: they are loaded when something of theirs is first used.
    import importlib

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = ("population", "loading", "gppl", "crowd_gppl", "gaspk", "collaborative", "joint", "compressed")
    for module in ("errors", "data", *(f"models.{name}" for name in modules), "evaluation.attributes"):
        found = importlib.import_module(f"{__name__}.{module}")
        if hasattr(found, name):
            globals()[name] = getattr(found, name)
            return globals()[name]
    raise AssertionError(f"{name} is listed in __all__ but defined nowhere")  # pragma: no cover


def __dir__() -> list[str]:
    return sorted(__all__)
