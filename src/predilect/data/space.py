"""Item features as the space of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.gaussian.kernels import squared_exponential

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """Standardised item features, (n_items, n_columns), for the kernel part of K₀."""

    matrix: FloatArray
    known: npt.NDArray[np.bool_]  # an item without features is uncorrelated with all others

    @classmethod
    def empty(cls, n_items: int) -> FeatureSpace:
        """Feature space of items without features."""
        return cls(np.zeros((n_items, 0)), np.zeros(n_items, dtype=bool))

    @property
    def informative(self) -> bool:
        """Whether features can explain anything: at least one column, and two items that have it."""
        return self.matrix.shape[1] > 0 and int(self.known.sum()) > 1

    def covariance(self, weight: float, length_scale: float) -> FloatArray:
        """Prior covariance K₀ = w K_θ + (1 - w) I, shape (n_items, n_items); unit diagonal."""
        n_items = len(self.known)
        if weight == 0.0 or not self.informative:
            return np.eye(n_items)
        K = weight * self._kernel(self, length_scale)
        np.fill_diagonal(K, 1.0)
        return K

    def cross(self, new: FeatureSpace, weight: float, length_scale: float) -> FloatArray:
        """Kernel part K_*o of the covariance between new items and these, shape (n_new, n_items)."""
        if weight == 0.0 or not self.informative:
            return np.zeros((len(new.known), len(self.known)))
        return np.asarray(weight * self._kernel(new, length_scale).T)

    def _kernel(self, other: FeatureSpace, length_scale: float) -> FloatArray:
        kernel = squared_exponential(self.matrix, other.matrix, length_scale)
        kernel[~self.known] = 0.0
        kernel[:, ~other.known] = 0.0
        return kernel
