"""Protocol of likelihoods: three views of log p(outcome | z).

- ``at(y, z)``: log p itself, for Laplace's approximation;
- ``tilted(y, m, v)``: log E p for z ~ N(m, v), for expectation propagation and prediction;
- ``expected(y, m, v)``: E log p for z ~ N(m, v), for variational inference.

Each is a value, its slope (∂/∂z or ∂/∂m) and its curvature (-∂²/∂z² or -∂²/∂m²), arrays (n,). A likelihood has to be
log-concave: no curvature is negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from predilect._types import FloatArray
from predilect.errors import DataError
from predilect.likelihoods import expectation, probit, tabulated
from predilect.likelihoods import tabulated as third

View = tuple[FloatArray, FloatArray, FloatArray]


@runtime_checkable
class Likelihood(Protocol):
    """p(outcome | z), log-concave in the margin z."""

    def check(self, outcome: npt.NDArray[np.generic]) -> None:
        """Raise :class:`~predilect.errors.DataError` for an outcome outside the likelihood's support."""
        ...

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        """Log p(outcome | z), ∂/∂z and -∂²/∂z²."""
        ...

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        """∂/∂z of the curvature of :meth:`at`; the gradient of Laplace's evidence needs it."""
        ...

    def tilted(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """Log E p for z ~ N(m, v), ∂/∂m and -∂²/∂m²."""
        ...

    def expected(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """E log p for z ~ N(m, v), ∂/∂m and -2 ∂/∂v."""
        ...


@dataclass(frozen=True, slots=True)
class Probit:
    """Answer +1 (left), 0 (tie) or -1 (right), with noise of variance 1; see :mod:`predilect.likelihoods.probit`."""

    delta: float = 0.0  # tie threshold in units of the answer noise; ties need delta > 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delta) and self.delta >= 0.0):
            raise DataError(f"the tie threshold must be a finite number >= 0, not {self.delta!r}.")

    def check(self, outcome: npt.NDArray[np.generic]) -> None:
        """Raise DataError for an outcome other than +1, 0, -1, or a tie without a threshold."""
        outcome = np.asarray(outcome)
        known = (outcome == 1) | (outcome == 0) | (outcome == -1)
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            raise DataError(
                f"{np.count_nonzero(~known)} outcomes are none of +1 (left), 0 (tie) and -1 (right) "
                f"(first: row {row}, {outcome[row]!r})."
            )
        if self.delta == 0.0 and bool(np.any(outcome == 0)):
            raise DataError(
                f"{np.count_nonzero(outcome == 0)} outcomes are ties, to which a tie threshold of 0 gives probability "
                "0. Give the likelihood a threshold, Probit(delta=...), or leave the ties out."
            )

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        return tabulated.at(outcome, z, self.delta)

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        return third.curvature_slope(outcome, z, self.delta)

    def tilted(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """Log E p for z ~ N(m, v), ∂/∂m and -∂²/∂m²; closed forms."""
        value, slope, curvature, *_ = probit.tilted(outcome, m, v, self.delta)
        return value, slope, curvature

    def expected(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """E log p for z ~ N(m, v), ∂/∂m and -2 ∂/∂v; Gauss-Hermite quadrature."""
        return expectation.expected(outcome, m, v, self.delta)
