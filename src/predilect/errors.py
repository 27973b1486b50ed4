"""The errors and warnings that Predilect raises on purpose."""

from __future__ import annotations

__all__ = ["ConvergenceError", "ConvergenceWarning", "DataError", "DataWarning", "PredilectError"]


class PredilectError(Exception):
    """Base class of every error that Predilect raises on purpose."""


class DataError(PredilectError, ValueError):
    """The input cannot be used; the message says what was expected, what came, where, and what to do."""


class ConvergenceError(PredilectError, RuntimeError):
    """An iteration did not converge and ``strict=True`` was asked for."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it converged; the report says how far it got."""


class DataWarning(UserWarning):
    """The input can be used, but not in the way one may expect."""
