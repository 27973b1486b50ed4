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

# Names and __all__ are made of a table, which ruff does not read.
# ruff: noqa: PLE0604

from typing import TYPE_CHECKING, Any

from predilect._version import __version__ as __version__
from predilect.models.registry import ENTRIES

_MODULES = {
    "data": ("Comparisons", "check", "read"),
    "inference.likelihoods.calibration": ("Calibration",),
    "models": tuple(entry.estimator for entry in ENTRIES if entry.in_front),
    "models.registry": ("load",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from predilect.data import Comparisons as Comparisons
    from predilect.data import check as check
    from predilect.data import read as read
    from predilect.inference.likelihoods.calibration import Calibration as Calibration
    from predilect.models import GPPL as GPPL
    from predilect.models import CollaborativeGP as CollaborativeGP
    from predilect.models import CrowdGPPL as CrowdGPPL
    from predilect.models import GaSPK as GaSPK
    from predilect.models import JointGP as JointGP
    from predilect.models import MixedLogit as MixedLogit
    from predilect.models import Population as Population
    from predilect.models.registry import load as load


def __getattr__(name: str) -> Any:
    # Numba and polars take a second to import: they are loaded when something of theirs is first used.
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
