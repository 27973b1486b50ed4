"""The errors and warnings that Predilect raises on purpose."""

from __future__ import annotations

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


class ConvergenceWarning(_Told, UserWarning):
    """An iteration stopped before it converged; the report says how far it got."""


class DataWarning(_Told, UserWarning):
    """The input can be used, but not in the way one may expect."""
