"""Variational problem of one function through inducing points: margins, sites and KL divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, ndtr

from predilect._base.types import FloatArray, IntArray
from predilect.data.canonical import canonical_rows
from predilect.errors import DataError
from predilect.inference.gaussian.dense import Factor, factorise, solve_lower
from predilect.inference.gaussian.design import Sites, pair_variance, squared_differences
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers, laplacian
from predilect.inference.likelihoods.views import Likelihood, PairLikelihood


@dataclass(frozen=True, slots=True)
class SparseGaussian:
    """q(u) = N(mean, precision⁻¹) of the whitened values u at M points; f = B u + r."""

    precision: FloatArray  # Λ
    linear: FloatArray  # h = Λ mean
    factor: Factor  # of Λ
    mean: FloatArray
    square: float  # E uᵀ u = E f_mᵀ K_mm⁻¹ f_m

    @classmethod
    def of(cls, precision: FloatArray, linear: FloatArray) -> Self:
        """Approximation of given natural parameters; M³ operations."""
        return cls(precision, linear, *solved(precision, linear))

    @classmethod
    def prior(cls, n_points: int, scale: float) -> Self:
        """Prior N(0, I / scale)."""
        return cls.of(scale * np.eye(n_points), np.zeros(n_points))

    def towards(self, precision: FloatArray, linear: FloatArray, step: float) -> SparseGaussian:
        """Natural-gradient step: a convex mix of natural parameters."""
        if step == 1.0:
            return SparseGaussian.of(precision, linear)
        return SparseGaussian.of(
            (1.0 - step) * self.precision + step * precision, (1.0 - step) * self.linear + step * linear
        )


def solved(precision: FloatArray, linear: FloatArray) -> tuple[Factor, FloatArray, float]:
    """Factor of Λ, mean u and E uᵀu of N(Λ⁻¹h, Λ⁻¹); M³ operations."""
    factor = factorise(precision)
    mean = factor.solve(linear)
    root = factor.solve_lower(np.eye(len(linear)))
    return factor, mean, float(mean @ mean) + float(np.sum(root * root))


@dataclass(frozen=True, slots=True)
class InverseScale:
    """q(s) = Gamma(shape, rate) of the inverse scale s: f_m ~ N(0, K_mm / s), r ~ N(0, R / s)."""

    shape: float
    rate: float
    prior_shape: float  # α₀
    prior_rate: float  # β₀, "scale" in the paper
    learned: bool = True  # if not, s is α₀/β₀ for certain, and the Gamma has no part in the bound

    @classmethod
    def prior(cls, shape: float, rate: float, n_points: int, learned: bool = True) -> Self:
        """Prior mean with the shape of the posterior, α₀ + M/2; ValueError if shape or rate is not positive."""
        if not (shape > 0.0 and rate > 0.0 and math.isfinite(shape) and math.isfinite(rate)):
            raise ValueError(f"the prior of the inverse scale needs a positive shape and rate, not {shape} and {rate}")
        alpha = shape + 0.5 * n_points
        return cls(alpha, alpha * rate / shape, shape, rate, learned)

    @property
    def value(self) -> float:
        """Mean E s."""
        return self.shape / self.rate

    @property
    def log(self) -> float:
        """E log s = ψ(α) - log β (crowdgppl.md 2.2, eq. 55 corrected)."""
        return float(digamma(self.shape)) - math.log(self.rate) if self.learned else math.log(self.value)

    def at(self, value: float) -> InverseScale:
        """Scale with another mean, the shape kept."""
        return replace(self, rate=self.shape / value)

    def best(self, square: float, residual: float = 0.0) -> float:
        """Optimal mean of s given q(u); arguments as :func:`best_scale`."""
        return best_scale(self.shape, self.prior_rate, square, residual)


def best_scale(alpha: float, rate: float, square: float, residual: float = 0.0) -> float:
    """Mean of q(s) = Gamma(α, α/ŝ) at the optimum of the bound given q(u).

    ``alpha`` is α = α₀ + M/2, ``rate`` β₀, ``square`` E uᵀ u, ``residual`` Σ_p weight_p λ_p r_p with r_p the residual
    variance of answer p at s = 1 (times E w² of its weight in the margin). The bound depends on q(s) by

        (α₀ + M/2 - α) (ψ(α) - log α) terms + (α₀ + M/2) log ŝ - (β₀ + E uᵀu / 2) ŝ + Σ_p weight_p ℓ_p(v_p + r_p/ŝ),

    so α = α₀ + M/2 whatever the data, and with dℓ/dv = -λ/2 held, ŝ solves a ŝ - b ŝ² + residual/2 = 0 with a = α, b =
    β₀ + E uᵀu / 2. In log ŝ the held problem is concave, so the step to its solution is an ascent direction of the
    bound itself; a caller who needs ascent halves the step where that is too long. Without residuals it is the
    conjugate update of crowdgppl.md 2.2; modern.md 6 takes a gradient step where there are residuals.
    """
    b = rate + 0.5 * square
    return (alpha + math.sqrt(alpha * alpha + 2.0 * b * residual)) / (2.0 * b)


def divergence(q: SparseGaussian, scale: InverseScale) -> float:
    """KL(q(u, s) || p(u, s)): crowdgppl.md 2.6 (eqs. 35, 53 corrected), whitened: log |K_mm| - log |S| = log |Λ|."""
    M = len(q.mean)
    gaussian = 0.5 * (q.factor.log_det() - M * scale.log - M + scale.value * q.square)
    if not scale.learned:
        return gaussian
    a, b, a_0, b_0 = scale.shape, scale.rate, scale.prior_shape, scale.prior_rate
    gamma = (
        float(gammaln(a_0) - gammaln(a)) - a_0 * math.log(b_0) + a * math.log(b)
        + (a - a_0) * scale.log - (b - b_0) * scale.value
    )  # fmt: skip
    return gaussian + gamma


# Nanoseconds an element, measured on one core: they only choose between two ways to the same result.
_SYRK, _GEMM, _GATHER, _SPARSE, _LOOKUP = 0.04, 0.08, 2.5, 2.0, 20.0
_MOST_ELEMENTS = 2**25  # of differences of rows kept in memory: 256 MB
_ITEMS_AT_ONCE = 10_000
_MOST_ITEMS_SQUARED = 2000  # of which items x items arrays are made for variances


class Margins(Protocol):
    """Margins z_p = x_pᵀ u + residual of some answers, with u the whitened values at M points."""

    def mean(self, u: FloatArray) -> FloatArray:
        """x_pᵀ u, shape (n,)."""
        ...

    def variance(self, lower: FloatArray) -> FloatArray:
        """x_pᵀ Λ⁻¹ x_p with Λ = lower lowerᵀ, shape (n,)."""
        ...

    def information(self, weight: FloatArray) -> FloatArray:
        """Σ_p weight_p x_p x_pᵀ for weights of at least 0, shape (M, M)."""
        ...

    def gather(self, values: FloatArray) -> FloatArray:
        """Σ_p values_p x_p, shape (M,)."""
        ...


@dataclass(frozen=True, slots=True)
class RowMargins:
    """Margins by rows: X holds x_p. n M² operations each for variances and information."""

    X: FloatArray

    def mean(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.X @ u)

    def variance(self, lower: FloatArray) -> FloatArray:
        half = _whitened(self.X, lower)
        return np.asarray(np.einsum("pm,pm->p", half, half))

    def information(self, weight: FloatArray) -> FloatArray:
        X = np.sqrt(weight)[:, None] * self.X
        return np.asarray(X.T @ X)

    def gather(self, values: FloatArray) -> FloatArray:
        return np.asarray(values @ self.X)


@dataclass(frozen=True, slots=True)
class ItemMargins:
    """Margins by items: x_p = B[left_p] - B[right_p]. n_items M² operations, and n M that move memory.

    Information is Bᵀ (L B) with L the graph Laplacian of the weights (modern.md A.7), dense where most pairs occur.
    """

    B: FloatArray
    left: IntArray
    right: IntArray

    def mean(self, u: FloatArray) -> FloatArray:
        f = self.B @ u
        return np.asarray(f[self.left] - f[self.right])

    def variance(self, lower: FloatArray) -> FloatArray:
        T = _whitened(self.B, lower)
        if _all_pairs(len(T), len(lower), len(self.left)):
            return pair_variance(T @ T.T, self.left, self.right)
        return squared_differences(T, self.left, self.right)

    def information(self, weight: FloatArray) -> FloatArray:
        n_items, M = self.B.shape
        L = graph_laplacian(n_items, self.left, self.right, weight)
        total = np.zeros((M, M))
        for start in range(0, n_items, _ITEMS_AT_ONCE):  # L B is never formed as a whole
            some = slice(start, start + _ITEMS_AT_ONCE)
            total += self.B[some].T @ (L[some] @ self.B)
        return total

    def gather(self, values: FloatArray) -> FloatArray:
        return np.asarray(gathered(len(self.B), self.left, self.right, values) @ self.B)


def natural_parameters(
    margins: Margins, weight: FloatArray, values: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Natural parameters s I + Σ weight_p x_p x_pᵀ, Σ values_p x_p of prior and answers; weights at least 0."""
    precision = margins.information(weight)
    precision[np.diag_indices(len(precision))] += scale
    return precision, margins.gather(values)


def gathered(n_items: int, left: IntArray, right: IntArray, values: FloatArray) -> FloatArray:
    """Σ_p values_p (e_left - e_right), shape (n_items,)."""
    total = np.bincount(left, values, n_items) - np.bincount(right, values, n_items)
    return np.asarray(total, dtype=np.float64)


def graph_laplacian(n_items: int, left: IntArray, right: IntArray, weight: FloatArray) -> FloatArray | csr_array:
    """Graph Laplacian Σ_p weight_p (e_left - e_right)(e_left - e_right)ᵀ, dense where products cost less so."""
    if _GEMM * n_items**2 < _SPARSE * 2 * len(weight):
        return laplacian(n_items, left, right, weight)
    return sparse_laplacian(n_items, left, right, weight)


def sparse_laplacian(n_items: int, left: IntArray, right: IntArray, weight: FloatArray) -> csr_array:
    """Graph Laplacian Σ_p weight_p (e_left - e_right)(e_left - e_right)ᵀ, sparse."""
    diagonal = np.bincount(left, weight, n_items) + np.bincount(right, weight, n_items)
    places = np.arange(n_items)
    values = np.concatenate([diagonal, -weight, -weight])
    index = (np.concatenate([places, left, right]), np.concatenate([places, right, left]))
    return csr_array((values, index), shape=(n_items, n_items))


def _margins_of(B: FloatArray, left: IntArray, right: IntArray) -> Margins:
    """Margins of some pairs, from ``B = Projection.roots`` (n_items, M).

    For variances and information together, rows cost n M (3 M + gather) and items n_items M (4 M) + n M (gather +
    sparse product), or n_items M (n_items) for the latter where most pairs occur, with n_items those that occur; the
    cheaper is taken, rows only while they fit into 256 MB.
    """
    n, M = len(left), B.shape[1]
    occurs = np.zeros(len(B), dtype=bool)
    occurs[left] = occurs[right] = True
    n_items = int(occurs.sum())
    laplacian_cost = min(_GEMM * n_items**2, 2.0 * _SPARSE * n)
    variance_cost = _SYRK * n_items**2 + n * _LOOKUP / M if _all_pairs(n_items, M, n) else n * _GATHER
    by_items = n_items * M * 2.0 * _GEMM + variance_cost + laplacian_cost
    by_rows = n * ((_SYRK + _GEMM) * M + _GATHER)
    if by_rows <= by_items and n * M <= _MOST_ELEMENTS:
        X = B[left]
        X -= B[right]
        return RowMargins(X)
    if 2 * n_items > len(B):
        return ItemMargins(B, left, right)
    place = np.cumsum(occurs) - 1
    return ItemMargins(B[occurs], place[left], place[right])


def _whitened(rows: FloatArray, lower: FloatArray) -> FloatArray:
    """Rows times lower⁻ᵀ: a product with the inverse is three times as quick as solving for all rows."""
    inverse = solve_lower(lower, np.eye(len(lower)))
    return np.asarray(rows @ inverse.T)


def _all_pairs(n_items: int, M: int, n: int) -> bool:
    """Whether the covariance of all items is the cheaper way to the variances of n pairs."""
    if n_items > _MOST_ITEMS_SQUARED:
        return False
    return _SYRK * n_items**2 * M + n * _LOOKUP < n * M * _GATHER


SURROGATES = ("corrected", "2020")


def expected_sites(
    outcome: npt.NDArray[np.int8], m: FloatArray, v: FloatArray, likelihood: Likelihood
) -> tuple[Sites, FloatArray]:
    """Sites of the natural gradient of E log P(outcome | z), z ~ N(m, v), and its value; arrays (n,), in noise units.

    τ = λ, ν = g + λ m, with g the slope in m and λ = -2 times the slope in v. modern.md (3.2), (3.5). At a fixed point
    the bound is stationary.
    """
    value, slope, curvature = likelihood.expected(outcome, m, v)
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
class MiniBatch:
    """Batch of answers; ``residual`` (n,): variance of margins at s = 1 that the inducing points do not explain."""

    margins: Margins
    residual: FloatArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray


@dataclass(frozen=True, slots=True)
class SparseProblem:
    """Answers in canonical order, equal ones added up, and the projection of their margins."""

    B: FloatArray  # Projection.roots, (n_items, M)
    left: IntArray
    right: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    residual: FloatArray  # (n_rows,), as in Batch
    likelihood: PairLikelihood

    @classmethod
    def of(cls, projection: Projection, answers: PooledAnswers, delta: float) -> SparseProblem:
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
        return cls(B, left, right, outcome, weight, residual, answers.likelihood(delta))

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
        explained = _margins_of(self.B, self.left, self.right).variance(np.eye(self.n_points))
        return np.asarray((self.residual + explained) / scale)

    def all(self) -> MiniBatch:
        """Batch of all answers."""
        return MiniBatch(_margins_of(self.B, self.left, self.right), self.residual, self.outcome, self.weight)

    def batch(self, rows: IntArray) -> MiniBatch:
        """Batch of some answers, in the order of ``rows``."""
        return MiniBatch(
            _margins_of(self.B, self.left[rows], self.right[rows]),
            self.residual[rows],
            self.outcome[rows],
            self.weight[rows],
        )
