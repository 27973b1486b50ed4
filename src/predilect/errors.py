"""The errors and warnings that Predilect raises on purpose."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Self

from predilect._base.text import message


class _Told(Exception):
    """Base of errors and warnings raised on purpose; ids and names in a message are made safe for a terminal."""

    def __str__(self) -> str:
        return message(super().__str__())


class PredilectError(_Told):
    """Base class of every error that Predilect raises on purpose."""


class DataError(PredilectError, ValueError):
    """The input cannot be used; the message says what was expected, what came, where, and what to do."""


class OutputError(PredilectError, OSError):
    """The output could not be written; nothing half-written is left behind."""


class ConvergenceError(PredilectError, RuntimeError):
    """An iteration did not converge and ``strict=True`` was asked for."""


class NotFittedError(PredilectError, ValueError, AttributeError):
    """The model is not fitted; where scikit-learn is loaded, ``sklearn.exceptions.NotFittedError`` too."""

    def __new__(cls, *args: Any) -> Self:
        theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
        kind: Any = cls
        if theirs is not None and not issubclass(cls, theirs):
            kind = _both(kind, theirs)
        made: Self = super().__new__(kind, *args)
        return made

    def __reduce__(self) -> tuple[type[NotFittedError], tuple[Any, ...]]:
        return NotFittedError, self.args  # whoever unpickles it may have no scikit-learn


@cache
def _both(ours: Any, theirs: Any) -> Any:
    return type(ours.__name__, (ours, theirs), {"__module__": ours.__module__})


class ConvergenceWarning(_Told, UserWarning):
    """An iteration stopped before it converged; the report says how far it got."""


class DataWarning(_Told, UserWarning):
    """The input can be used, but not in the way one may expect."""
