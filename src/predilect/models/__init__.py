"""Estimators in the manner of scikit-learn: they validate and assemble, and hold no mathematics.

>>> from predilect.models import SingleUserGP
>>> SingleUserGP().get_params()["tie_threshold"]
'auto'
"""

# Names and __all__ are made of a table, which ruff does not read.
# ruff: noqa: F403, PLE0604

from typing import TYPE_CHECKING, Any

from predilect.models.registry import ENTRIES

_HOME = {entry.estimator: entry.module for entry in ENTRIES}

__all__ = [*_HOME]

if TYPE_CHECKING:
    from predilect.models.registry import *


def __getattr__(name: str) -> Any:
    # Numba and scikit-learn take a second to import: they are loaded when a model is first used.
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"predilect.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
