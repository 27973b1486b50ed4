"""Principal components of people's features, as uncorrelated traits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Traits"]

FloatArray = npt.NDArray[np.float64]

# Of the largest singular value, and of that of a column of variance 1, which is what columns have over all people whose
# features are given: what is collinear, or constant over all who answered, is rounding and no trait.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class Traits:
    """Principal components of people's features, each of mean 0 and variance 1 over the people who answered."""

    mean: FloatArray  # (n_columns,)
    rotation: FloatArray  # (n_columns, n_traits)

    @classmethod
    def of(cls, matrix: FloatArray, known: npt.NDArray[np.bool_]) -> Traits:
        """Principal components of features (n_users, n_columns), where known."""
        rows = matrix[known]
        mean = rows.mean(axis=0) if len(rows) else np.zeros(matrix.shape[1])
        if len(rows) < 2 or not matrix.shape[1]:
            return cls(mean, np.zeros((matrix.shape[1], 0)))
        _, values, vectors = np.linalg.svd(rows - mean, full_matrices=False)
        keep = values > _NEGLIGIBLE * max(float(values[0]), float(np.sqrt(len(rows))))
        return cls(mean, (vectors[keep] / values[keep, None]).T * np.sqrt(len(rows)))

    def transform(self, matrix: FloatArray, known: npt.NDArray[np.bool_]) -> FloatArray:
        """Traits of people, shape (n, n_traits); zeros, the average person, where nothing is known."""
        return np.where(known[:, None], (matrix - self.mean) @ self.rotation, 0.0)
