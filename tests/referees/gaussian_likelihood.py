"""A likelihood with which every inference is exact: the referee of Laplace, EP, variational inference and filtering."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.errors import DataError
from predilect.inference.likelihoods.views import View

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A real number, z with noise.

    Attributes
    ----------
    variance : float, default 1
        Of the noise.
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.variance) and self.variance > 0.0):
            raise DataError(f"the variance of the noise must be a finite number > 0, not {self.variance!r}.")

    def check(self, outcome: npt.NDArray[np.generic]) -> None:
        """Raise if an outcome is not a finite number."""
        finite = np.isfinite(np.asarray(outcome, dtype=float))
        if not finite.all():
            raise DataError(
                f"{np.count_nonzero(~finite)} outcomes are not finite numbers (first: row {int(finite.argmin())})."
            )

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        """Log p(outcome | z), ∂/∂z and -∂²/∂z²."""
        return self.tilted(outcome, z, np.zeros(np.shape(z)))

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        """Zeros: the curvature is constant."""
        return np.zeros(np.shape(z))

    def tilted(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """Log E p for z ~ N(m, v), ∂/∂m and -∂²/∂m²."""
        total = self.variance + v
        error = np.asarray(outcome, dtype=float) - m
        value = -0.5 * (np.log(2.0 * np.pi * total) + error**2 / total)
        return value, error / total, 1.0 / total

    def expected(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """E log p for z ~ N(m, v), ∂/∂m and -2 ∂/∂v."""
        value, slope, curvature = self.at(outcome, m)
        return value - 0.5 * v / self.variance, slope, curvature
