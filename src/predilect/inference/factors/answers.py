"""Answers, functions of the items, and priors of people's weights, for factor models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln

from predilect._base.stored import amounts, flags, numbers
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.errors import DataError
from predilect.inference.gaussian.dense import covariances
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.kernels.stored import KERNEL
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.sparse.problem import Margins, _margins_of, best_scale, solved


@dataclass(frozen=True, slots=True)
class FactorAnswers:
    """Rows sorted by person, pair and outcome; the item with the smaller code is on the left."""

    user_ptr: IntArray  # (n_users + 1,): rows of each person
    user: IntArray  # (n_rows,), as the next three
    pair: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    left: IntArray  # (n_pairs,): the distinct pairs
    right: IntArray

    @classmethod
    def of(
        cls, user: npt.ArrayLike, left: npt.ArrayLike, right: npt.ArrayLike, outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None, n_users: int,
    ) -> FactorAnswers:  # fmt: skip
        """Answers from columns in any order and orientation; equal answers of one person are added up.

        DataError if there is no answer, an item is compared with itself, a code is out of range, an outcome is none of
        the three or a weight is not positive and finite.
        """
        u, a, b = (np.asarray(x, dtype=np.int64).ravel() for x in (user, left, right))
        y = np.asarray(outcome).ravel()
        w = np.ones(len(u)) if weight is None else np.asarray(weight, dtype=np.float64).ravel()
        _check(u, a, b, y, w, n_users)
        swap = a > b
        low, high = np.minimum(a, b), np.maximum(a, b)
        y = np.where(swap, -y, y).astype(np.int8)
        width = int(high.max()) + 1
        codes, pair = np.unique(low * width + high, return_inverse=True)
        key = (u * len(codes) + pair) * 3 + (1 - y)
        # Sums of weights must not depend on the order of the rows.
        order = np.lexsort((w, key))
        rows, first = np.unique(key[order], return_index=True)
        total = np.add.reduceat(w[order], first)
        row_user = rows // (3 * len(codes))
        return cls(
            np.searchsorted(row_user, np.arange(n_users + 1)).astype(np.int64), row_user, (rows // 3) % len(codes),
            (1 - rows % 3).astype(np.int8), total, codes // width, codes % width,
        )  # fmt: skip

    @classmethod
    def of_comparisons(cls, answers: Comparisons) -> FactorAnswers:
        """Answers from the rows of comparisons."""
        a = answers
        return cls.of(a.user, a.left, a.right, a.outcome, a.weight, a.n_users)

    @property
    def n_users(self) -> int:
        """Number of people, those without answers too."""
        return len(self.user_ptr) - 1

    @property
    def n_answers(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def has_ties(self) -> bool:
        """Whether an outcome is 0."""
        return bool((self.outcome == 0).any())


def _check(u: IntArray, a: IntArray, b: IntArray, y: npt.NDArray[np.generic], w: FloatArray, n_users: int) -> None:
    if not len(u):
        raise DataError("there are no answers to fit.")
    if not len(u) == len(a) == len(b) == len(y) == len(w):
        raise DataError(f"columns differ in length: {len(u)}, {len(a)}, {len(b)}, {len(y)}, {len(w)}.")
    if u.min() < 0 or u.max() >= n_users or min(int(a.min()), int(b.min())) < 0:
        raise DataError(f"codes of people must be 0 to {n_users - 1}, those of items not negative.")
    if (a == b).any():
        raise DataError(f"{np.count_nonzero(a == b)} answers compare an item with itself; leave them out.")
    if not np.isin(y, (-1, 0, 1)).all():
        raise DataError("outcomes must be +1 (left), 0 (tie) or -1 (right).")
    if not (np.isfinite(w).all() and (w > 0.0).all()):
        raise DataError("weights must be positive finite numbers.")


class GammaPrior(NamedTuple):
    """s ~ Gamma(shape, rate); (0, 0): s maximises the bound (ML-II)."""

    shape: float
    rate: float


@dataclass(frozen=True, slots=True)
class FunctionState:
    """q(x) = N(mean, (L Lᵀ)⁻¹) of a function f = G x + r with prior x ~ N(0, I/s), r ~ N(0, R/s)."""

    mean: FloatArray
    lower: FloatArray  # L, (M, M)
    square: float  # E xᵀx
    log_det: float  # of the covariance
    delta: FloatArray  # mean of f(left) - f(right), (n_pairs,); of people's weights, of each
    D: FloatArray  # its variance without that of r

    def divergence(self, s: float) -> float:
        """KL(q(x) || N(0, I/s))."""
        M = len(self.mean)
        return 0.5 * (s * self.square - M - M * math.log(s) - self.log_det)

    @classmethod
    def of(cls, margins: Margins, precision: FloatArray, linear: FloatArray) -> FunctionState:
        """q(x) with natural parameters ``precision`` (M, M), prior included, and ``linear`` (M,)."""
        factor, mean, square = solved(precision, linear)
        variances = margins.variance(factor.lower)
        return cls(mean, factor.lower, square, -factor.log_det(), margins.mean(mean), variances)


@dataclass(frozen=True, slots=True)
class ItemDesign:
    """Design of item functions: rows G = A L_K, K_mm = L_K L_Kᵀ, so that no kernel matrix is ever inverted."""

    projection: Projection
    G: FloatArray
    left: IntArray
    right: IntArray
    margins: Margins
    residual: FloatArray  # (n_pairs,): variance of r(left) - r(right) at s = 1

    @classmethod
    def of(cls, projection: Projection, left: IntArray, right: IntArray) -> ItemDesign:
        """Design for given pairs."""
        G = projection.roots()
        return cls(projection, G, left, right, _margins_of(G, left, right), projection.residual_pairs(left, right, G))

    @property
    def n_points(self) -> int:
        """Number of points M."""
        return int(self.G.shape[1])

    def prior_variances(self) -> FloatArray:
        """Variance of f(left) - f(right) at s = 1, without that of r; shape (n_pairs,)."""
        return self.margins.variance(np.eye(self.n_points))


def scale_step(prior: GammaPrior, n_points: int, square: float, residual: float) -> float:
    """E s that maximises the bound with all else held; the last two as in ``best_scale``."""
    return best_scale(prior.shape + 0.5 * n_points, prior.rate, square, residual)


def scale_bound(prior: GammaPrior, n_points: int, s: float) -> float:
    """Part of the bound at E s = s of q(s) = Gamma(α, α/s): E ln p(s) - E ln q(s) + M (E ln s - ln s)/2."""
    alpha = prior.shape + 0.5 * n_points
    gap = float(digamma(alpha)) - math.log(alpha)  # E ln s - ln s
    log_s = math.log(s) + gap
    entropy = alpha - math.log(alpha / s) + float(gammaln(alpha)) + (1.0 - alpha) * float(digamma(alpha))
    if prior.shape <= 0.0 or prior.rate <= 0.0:  # p(s) ∝ 1/s, up to a constant
        return entropy - log_s + 0.5 * n_points * gap
    a, b = prior
    prior_term = a * math.log(b) - float(gammaln(a)) + (a - 1.0) * log_s - b * s
    return entropy + prior_term + 0.5 * n_points * gap


@dataclass(frozen=True, slots=True)
class StandardWeights:
    """w_c ~ N(0, variance), whatever the features; a variance (C,) of None is 1."""

    variance: Annotated[FloatArray | None, amounts("C")] = None

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the weights of unseen users, (n, C) for traits (n, n_traits), or (1, C) without any."""
        n = 1 if traits is None else len(traits)
        variance = np.ones(n_components) if self.variance is None else self.variance
        return np.zeros((n, n_components)), np.tile(variance, (n, 1))


@dataclass(frozen=True, slots=True)
class LinearWeights:
    """w = B x + ε with ε ~ N(0, I): modern.md 5."""

    effects: Annotated[FloatArray, numbers("C T")]  # E B
    covariance: Annotated[FloatArray, covariances("C T T")]  # of each row of B

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :meth:`StandardWeights.law`."""
        if traits is None:
            return np.zeros((1, n_components)), np.ones((1, n_components))
        spread = np.einsum("nk,ckl,nl->nc", traits, self.covariance, traits)
        return traits @ self.effects.T, 1.0 + spread


@dataclass(frozen=True, slots=True)
class CrowdWeights:
    """Weights w = b + B x + ε with independent ε_c; x = 0 where no features are known. modern.md 5, with an intercept.

    **Differs from the paper**, with weights of mean zero: nothing is known of an unseen user, even if the crowd agrees.
    """

    effects: Annotated[FloatArray, numbers("C T+1")]  # E [b, B]
    covariance: Annotated[FloatArray, covariances("C T+1 T+1")]  # of each row of [b, B]
    spread: Annotated[FloatArray, amounts("C")]  # variance of ε

    @classmethod
    def average(cls, mean: FloatArray, variance: FloatArray) -> CrowdWeights:
        """Distribution of a user drawn from those with weights of these means and variances, (n_users, C)."""
        centre = mean.mean(axis=0)
        spread = (variance + (mean - centre) ** 2).mean(axis=0)
        return cls(centre[:, None], np.zeros((len(centre), 1, 1)), spread)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :meth:`StandardWeights.law`."""
        n, k = 1 if traits is None else len(traits), self.effects.shape[1]
        rows = np.zeros((n, k))
        rows[:, 0] = 1.0
        if traits is not None and k > 1:
            rows[:, 1:] = traits
        return rows @ self.effects.T, self.spread + np.einsum("nk,ckl,nl->nc", rows, self.covariance, rows)


@dataclass(frozen=True, slots=True)
class ProcessWeights:
    """Weights w_c of some components as Gaussian processes of user features; the others N(0, variance)."""

    projection: Projection  # from the points to the users
    process: Annotated[BoolArray, flags("C")]  # components that are processes
    mean: Annotated[FloatArray, numbers("Q C")]  # at the Q points; read where ``process``
    covariance: Annotated[FloatArray, covariances("C Q Q")]
    variance: Annotated[FloatArray, amounts("C")]  # 1/s of the prior of each

    @property
    def kernel(self) -> Annotated[Kernel, KERNEL]:
        """Kernel of the users' features."""
        return self.projection.kernel

    @property
    def features(self) -> Annotated[FloatArray, numbers("U T")]:
        """Features of the users."""
        return self.projection.features

    @property
    def inducing(self) -> Annotated[FloatArray | None, numbers("Q T")]:
        """Inducing points; None: the users."""
        return self.projection.inducing

    @classmethod
    def restored(
        cls, process: BoolArray, mean: FloatArray, covariance: FloatArray, variance: FloatArray, kernel: Kernel,
        features: FloatArray, inducing: FloatArray | None,
    ) -> ProcessWeights:  # fmt: skip
        """Weights of a saved model, with the projection made again."""
        people = Projection.of(kernel, features, np.ones(len(features), dtype=bool), inducing)
        return cls(people, process, mean, covariance, variance)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :meth:`StandardWeights.law`: the Gaussian process at the user's features, crowdgppl.md 2.2, eq. 20."""
        if traits is None:
            return np.zeros((1, n_components)), self.variance[None, :].copy()
        n, old = len(traits), self.projection.n_items
        rows = self.projection.with_items(traits, np.ones(n, dtype=bool))
        assert rows.A is not None
        A, own = rows.A[old:], rows.own[old:]
        mean, var = np.zeros((n, n_components)), np.tile(self.variance, (n, 1))
        for c in np.flatnonzero(self.process):
            mean[:, c] = A @ self.mean[:, c]
            var[:, c] = own * self.variance[c] + np.einsum("nm,nm->n", A @ self.covariance[c], A)
        return mean, var


# Mean and variance of the weights of unseen users, by their method ``law``.
WeightPrior = StandardWeights | LinearWeights | CrowdWeights | ProcessWeights
