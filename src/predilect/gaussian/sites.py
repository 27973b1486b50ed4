"""Sites: Gaussian messages of the answers, which add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(slots=True)
class Sites:
    """Gaussian message of one copy of each answer: precision and precision times mean, two numbers per row."""

    precision: npt.NDArray[np.float64]
    linear: npt.NDArray[np.float64]

    @classmethod
    def flat(cls, n_rows: int) -> Sites:
        """Sites of precision 0."""
        return cls(np.zeros(n_rows), np.zeros(n_rows))

    def copy(self) -> Sites:
        """An independent copy."""
        return Sites(self.precision.copy(), self.linear.copy())

    def times(self, weight: npt.NDArray[np.float64]) -> Sites:
        """Messages of all copies of each row together."""
        return Sites(weight * self.precision, weight * self.linear)

    def towards(self, other: Sites, step: float) -> Sites:
        """Convex combination in natural parameters: ``step`` of the way to other sites."""
        return Sites(
            (1.0 - step) * self.precision + step * other.precision, (1.0 - step) * self.linear + step * other.linear
        )
