"""Fixed data of a sparse fit: answers, design and residual variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.data.canonical import canonical_rows
from predilect.errors import DataError
from predilect.inference.pooled import PooledAnswers
from predilect.inference.sparse.margins import Margins, margins_of
from predilect.posteriors.projection import Projection

__all__ = ["Batch", "Problem"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of answers; ``residual`` (n,): variance of margins at s = 1 that the inducing points do not explain."""

    margins: Margins
    residual: FloatArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray


@dataclass(frozen=True, slots=True)
class Problem:
    """Answers in canonical order, equal ones added up, and the projection of their margins."""

    B: FloatArray  # Projection.roots, (n_items, M)
    left: IntArray
    right: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    residual: FloatArray  # (n_rows,), as in Batch
    delta: float

    @classmethod
    def of(cls, projection: Projection, answers: PooledAnswers, delta: float) -> Problem:
        """Problem of some answers; DataError without any, for ties without a threshold, or for other items."""
        if answers.n_items != projection.n_items:
            raise DataError(
                f"the answers are about {answers.n_items} items, but the features are of {projection.n_items}"
            )
        if not len(answers.left):
            raise DataError("a fit needs at least one answer")
        if delta <= 0.0 and bool(np.any(answers.outcome == 0)):
            raise DataError("there are ties, but the tie threshold is 0, at which they cannot happen; give delta > 0")
        _, left, right, outcome, weight = canonical_rows(
            np.zeros(len(answers.left), dtype=np.int32),
            np.asarray(answers.left, dtype=np.int32),
            np.asarray(answers.right, dtype=np.int32),
            np.asarray(answers.outcome, dtype=np.int8),
            np.asarray(answers.weight, dtype=np.float64),
        )
        B = projection.roots()
        residual = projection.residual_pairs(left, right, B)
        return cls(B, left, right, outcome, weight, residual, delta)

    @property
    def n_rows(self) -> int:
        """Number of distinct answers."""
        return len(self.left)

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def n_points(self) -> int:
        """Number of inducing points M."""
        return int(self.B.shape[1])

    def prior_variance(self, scale: float) -> FloatArray:
        """Prior variance of the margins at an inverse scale, shape (n_rows,)."""
        explained = margins_of(self.B, self.left, self.right).variance(np.eye(self.n_points))
        return np.asarray((self.residual + explained) / scale)

    def all(self) -> Batch:
        """Batch of all answers."""
        return Batch(margins_of(self.B, self.left, self.right), self.residual, self.outcome, self.weight)

    def batch(self, rows: IntArray) -> Batch:
        """Batch of some answers, in the order of ``rows``."""
        return Batch(
            margins_of(self.B, self.left[rows], self.right[rows]),
            self.residual[rows],
            self.outcome[rows],
            self.weight[rows],
        )
