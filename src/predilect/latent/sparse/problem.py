"""Gaussian sites of answers, by exact expectation or by the paper's surrogate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from predilect._types import FloatArray, IntArray
from predilect.data.canonical import canonical_rows
from predilect.errors import DataError
from predilect.gaussian.design import Sites
from predilect.gaussian.projection import Projection
from predilect.latent.pooled import PooledAnswers
from predilect.latent.sparse.margins import Margins, margins_of
from predilect.likelihoods.expectation import expected

SURROGATES = ("corrected", "2020")


def expected_sites(
    outcome: npt.NDArray[np.int8], m: FloatArray, v: FloatArray, delta: float
) -> tuple[Sites, FloatArray]:
    """Sites of the natural gradient of E log P(outcome | z), z ~ N(m, v), and its value; arrays (n,), in noise units.

    τ = λ, ν = g + λ m, with g the slope in m and λ = -2 times the slope in v. modern.md (3.2), (3.5). At a fixed point
    the bound is stationary.
    """
    value, slope, curvature = expected(outcome, m, v, delta)
    return Sites(curvature, slope + curvature * m), value


def linearised_sites(outcome: npt.NDArray[np.int8], m: FloatArray, Q: FloatArray) -> Sites:
    """Sites of the paper: y ≈ Φ(m) + φ(m) (z - m) + noise of variance Q, from :func:`surrogate_variance`; arrays (n,).

    τ = g²/Q, ν = (g/Q) (y - Φ(m) + g m), g = φ(m). crowdgppl.md 2.1, 2.2 (eqs. 11, 17, 18 corrected: g has no factor
    2y - 1). A tie is half a win for each side, which is one answer y = 1/2, for Q does not depend on y.
    """
    g = np.exp(-0.5 * m * m) / math.sqrt(2.0 * math.pi)
    y = 0.5 * (1.0 + outcome)
    return Sites(g * g / Q, g / Q * (y - ndtr(m) + g * m))


def surrogate_variance(prior_variance: FloatArray, form: str = "corrected") -> FloatArray:
    """Surrogate variance Q of the answer y in {0, 1}, from the prior variance V₀ (n,) of the margin in noise units.

    ``form``: "corrected" AB/(n(n+1)), "2020" AB/n² as in the article and the authors' code; else ValueError.

    crowdgppl.md 2.1, eq. 9. With γ = λ = (1/(4v) - 1)/2 and v = Var Φ(z) = arcsin(V₀/(1 + V₀))/(2π) it collapses: A, B
    are γ + 1 and γ whatever y, and AB/(n(n+1)) = 1/4 - v = arctan((1 + 2 V₀)^(-1/2))/π, the *prior* mean of p(1 - p);
    AB/n² = Q (2 - 4 Q) with that Q. So no Beta distribution, no cancellation where V₀ is in the thousands, and no
    division by 0 for items with the same features (V₀ = 0, Q = 1/4).
    """
    if form not in SURROGATES:
        raise ValueError(f"the surrogate variance must be one of {', '.join(SURROGATES)}, not {form!r}")
    Q = np.arctan(1.0 / np.sqrt(1.0 + 2.0 * prior_variance)) / math.pi
    return np.asarray(Q if form == "corrected" else Q * (2.0 - 4.0 * Q))


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
