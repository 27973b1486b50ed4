"""Report of an iterative computation."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from predilect.errors import ConvergenceError, ConvergenceWarning


@dataclass(frozen=True, slots=True)
class Report:
    """Convergence report of an iteration."""

    method: str  # name of the algorithm
    iterations: int  # passes over the answers (or Newton steps)
    # residual, tolerance: quantity of the stopping rule, and the value that it was compared with
    residual: float
    tolerance: float
    converged: bool  # whether the rule was met
    jitter: float  # largest amount added to a diagonal, relative to its mean
    seconds: float  # wall time
    unit: str  # unit of residual and tolerance
    advice: str  # what to do if it did not converge
    unusable: str = ""  # why the result is not only inexact but worth nothing; empty where it is usable

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the seconds, which differ from run to run."""
        values = asdict(self)
        del values["seconds"], values["advice"], values["unusable"]
        return values

    def require(self, strict: bool) -> None:
        """Warn if the iteration did not converge, or raise ConvergenceError where ``strict``."""
        if self.converged:
            return
        above = ""
        if not self.residual <= self.tolerance or not self.unusable:
            above = f" with {self.residual:.3g} {self.unit}, above the tolerance of {self.tolerance:.3g}"
        worth = f"not usable: {self.unusable}" if self.unusable else "usable but not exact"
        message = (
            f"{self.method} stopped after {self.iterations} iterations{above}. The result is {worth}; {self.advice}"
        )
        if strict:
            raise ConvergenceError(message)
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


def tell_parts(watch: Watcher | None, done: int, total: int) -> None:
    """Tell how many parts of about the same size are done, if the callback has a method ``parts`` for that."""
    parts = getattr(watch, "parts", None)
    if parts is not None:
        parts(done, total)


class Watcher(Protocol):
    """Progress callback: called with the stage in words and the count so far."""

    def __call__(self, stage: str, done: int) -> None:
        """Tell of ``done`` steps of a stage."""
        ...
