"""Sums over the answers of a user with many, between the factorisations of the dense form.

``left``, ``right``: positions of each answer's items; X: their design (+1 at left, -1 at right). Loops run along rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect._base.compile import kernel
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import (
    Factor,
    factorise,
    gram_of_lower,
    inverse_and_log_det,
    inverse_root,
    semidefinite_root,
    symmetrise,
)
from predilect.inference.gaussian.design import pair_variance


@kernel
def pair_covariance(S, items, left, right, row, out):
    """X S Xᵀ into ``out`` (n, n), with S among ``items`` (k) of a larger matrix; ``row`` is scratch (k)."""
    for p in range(left.shape[0]):
        a = items[left[p]]
        b = items[right[p]]
        for j in range(items.shape[0]):
            row[j] = S[a, items[j]] - S[b, items[j]]
        for q in range(left.shape[0]):
            out[p, q] = row[left[q]] - row[right[q]]


@kernel
def pair_variances(A, left, right, out):
    """Squared length of each row of X A into ``out`` (n): no difference of large numbers, however near the items."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        total = 0.0
        for j in range(A.shape[1]):
            difference = A[a, j] - A[b, j]
            total += difference * difference
        out[p] = total


@kernel
def gather(A, left, right, out):
    """Add Xᵀ A to ``out`` (k, m) for A (n, m)."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        for j in range(A.shape[1]):
            out[a, j] += A[p, j]
            out[b, j] -= A[p, j]


@kernel
def weighted_rows(A, left, right, weight, out):
    """Add Xᵀ diag(weight) X A to ``out`` (k, m) for A (k, m)."""
    for p in range(left.shape[0]):
        a = left[p]
        b = right[p]
        for j in range(A.shape[1]):
            flow = weight[p] * (A[a, j] - A[b, j])
            out[a, j] += flow
            out[b, j] -= flow


@kernel
def add_person(items, x, Q, H, D):
    """Add Q to ``H`` and x xᵀ - Q to ``D`` among a person's items, which ascend: their lower triangles."""
    for i in range(items.shape[0]):
        for j in range(i + 1):
            H[items[i], items[j]] += Q[i, j]
            D[items[i], items[j]] += x[i] * x[j] - Q[i, j]


# With λ g above the first, the variance of a margin comes from the diagonal of B⁻¹, and keeps 12 digits; above the
# second from its rows.
_INFORMED, _HEARD = 1e-3, 1e-12
# S⁻¹ + P is accurate where S is well conditioned, and no answer a precision far beyond the prior's:
# what is lost is about eps times the first, and eps times the square of the second.
_LARGEST_CONDITION, _TAME = 1e4, 1e3
_NO_EFFECTS = np.zeros((0, 0))  # of covariates, of a person's own


@dataclass(frozen=True, slots=True)
class DenseState:
    """Posterior of a user under given sites (population.md sections 2 and 3)."""

    mean: FloatArray  # marginals of the margin of each answer, (n,)
    var: FloatArray
    log_det: float  # log |I + Λ^½ G Λ^½|
    quadratic: float  # eᵀ C e with e = η - Λ z̄
    precision: FloatArray  # of the sites, (n,)
    alpha: FloatArray  # α = η - Λ mean, (n,)
    # W (n, n), lower triangular, with B⁻¹ = Wᵀ W for B = I + Λ^½ G Λ^½; in item space (S⁻¹ + P)⁻¹ with P = Xᵀ Λ X
    # (k, k); empty where there is a factor
    inverse: FloatArray
    factor: Factor | None = None  # in item space that of I + Lᵀ P L, where S⁻¹ would lose digits


class DensePerson:
    """Prior of one user, to be conditioned on sites repeatedly; sides are positions in the user's own items.

    ``prior`` is S (k, k) where n <= k, or that of more items, of which ``items`` (k,) are the user's; otherwise L (k,
    d) with S = L Lᵀ. Pair space where n <= k: ⅔ n³ operations each time, ⅓ n³ + O(n (n + k)) for the sums. Item space
    otherwise: k³ and n k, or, where S⁻¹ would lose digits, 3.5 k³ + n k and 2 k³, less where d < k. Memory n² or k².
    ``noise`` (n, n), of tasks, joins the prior, in pair space. So do the ``slope_columns`` (n, n_effects): covariates
    whose effects on the user are independent, of variance ``effect_variance``.
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
        prior: FloatArray,
        mean: FloatArray,
        items: npt.NDArray[np.int32] | None = None,
        consistency: float = 1.0,
        noise: FloatArray | None = None,
        slope_columns: FloatArray = _NO_EFFECTS,
        effect_variance: float = 1.0,
    ) -> None:
        self.left, self.right, self.noise, self.slope_columns = left, right, noise, slope_columns
        n, self.n_items = len(left), len(mean)
        self.in_pair_space = noise is not None or n <= self.n_items
        self.z_bar = mean[left] - mean[right]
        if self.in_pair_space:
            items = np.arange(self.n_items, dtype=np.int32) if items is None else items
            self.prior = np.empty((n, n))  # G
            pair_covariance(prior, items, left, right, np.empty(self.n_items), self.prior)
            self.prior *= consistency * consistency
            if slope_columns.shape[1]:
                self.prior += effect_variance * (slope_columns @ slope_columns.T)
            if noise is not None:
                self.prior += noise
        else:
            self.prior = np.ascontiguousarray(prior)
            self.prior_precision, self.prior_log_det, self._tame = np.zeros((0, 0)), 0.0, -1.0
            if _is_tame(self.prior):
                factor = Factor(self.prior, 0.0)
                self.prior_precision, self.prior_log_det = factor.inverse(), factor.log_det()
                self._tame = _TAME / float(np.einsum("ij,ij->i", self.prior, self.prior).max())

    @property
    def prior_var(self) -> FloatArray:
        """Prior variance of the margin of each answer, (n,)."""
        if self.in_pair_space:
            return np.asarray(np.diagonal(self.prior))
        spread = self.prior[self.left] - self.prior[self.right]
        return np.asarray(np.einsum("ij,ij->i", spread, spread))

    def condition(self, precision: FloatArray, linear: FloatArray) -> DenseState:
        """Posterior under the sites (n,) of all copies of each row together."""
        e = linear - precision * self.z_bar
        if self.in_pair_space:
            G, root = self.prior, np.sqrt(precision)
            B = root[:, None] * G * root
            B.ravel()[:: len(B) + 1] += 1.0
            W, log_det = inverse_root(B)
            # α first and the mean from it: a site of high precision would magnify the mean's rounding in η - Λ mean.
            alpha = e - root * (W.T @ (W @ (root * (G @ e))))
            shift = G @ alpha
            var = self._variances(precision, root, W)
            return DenseState(self.z_bar + shift, var, log_det, float(e @ shift), precision, alpha, W)
        if precision.max() <= self._tame:
            return self._by_precision(precision, linear, e)
        L = self.prior
        PL = np.zeros_like(L)
        weighted_rows(L, self.left, self.right, precision, PL)
        B = symmetrise(L.T @ PL)
        B.ravel()[:: len(B) + 1] += 1.0
        factor = factorise(B)
        V = np.ascontiguousarray(factor.solve_lower(L.T).T)  # S = V Vᵀ
        shift = V @ (V.T @ self._of_items(e))
        mean = self.z_bar + shift[self.left] - shift[self.right]
        var = np.empty(len(mean))
        pair_variances(V, self.left, self.right, var)
        quadratic = float(e @ (mean - self.z_bar))
        alpha = linear - precision * mean
        return DenseState(mean, var, factor.log_det(), quadratic, precision, alpha, np.zeros((0, 0)), factor)

    def _variances(self, precision: FloatArray, root: FloatArray, W: FloatArray) -> FloatArray:
        """Diagonal of C = Λ^-½ (I - B⁻¹) Λ^-½ = Λ^-½ B⁻¹ Λ^½ G in pair space, to rounding of itself, (n,)."""
        G, g = self.prior, np.diagonal(self.prior)
        # The first form loses digits where an answer says next to nothing, the second where it says nothing at all.
        informed = precision * g > _INFORMED
        var = np.empty(len(g))
        var[informed] = (1.0 - np.einsum("ij,ij->j", W, W)[informed]) / precision[informed]
        some = ~informed & (precision * g > _HEARD)
        if some.any():
            var[some] = np.einsum("ij,ij,j->i", gram_of_lower(W)[some], G[some], root) / root[some]
        none = ~(informed | some)
        if none.any():
            var[none] = g[none] - np.einsum("ij,ij->j", *[W @ (root[:, None] * G[:, none])] * 2)
        return var

    def _by_precision(self, precision: FloatArray, linear: FloatArray, e: FloatArray) -> DenseState:
        """Posterior from S⁻¹ + P: a third of the operations."""
        S, log_det = inverse_and_log_det(self.prior_precision + self._laplacian(precision))
        shift = S @ self._of_items(e)
        left, right = self.left, self.right
        mean = self.z_bar + shift[left] - shift[right]
        diagonal = np.diagonal(S)
        var = diagonal[left] + diagonal[right] - 2.0 * S[left, right]
        quadratic, alpha = float(e @ (mean - self.z_bar)), linear - precision * mean
        return DenseState(mean, var, log_det + self.prior_log_det, quadratic, precision, alpha, S)

    def of_noise(self, state: DenseState) -> FloatArray:
        """Each row's part of tr (ααᵀ - Q) N, (n,), for the noise N of tasks."""
        if self.noise is None:
            return np.zeros(len(self.left))
        return np.asarray(((np.outer(state.alpha, state.alpha) - _of_rows(state)) * self.noise).sum(axis=1))

    def sums(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """The sums x = Xᵀ α (s) and Xᵀ Q_u X (s, s) on the user's own items and effects of covariates."""
        x = self._of_items(state.alpha)
        left, right = self.left, self.right
        if self.in_pair_space:
            one_side, Q = np.zeros((self.n_items, len(left))), np.zeros((self.n_items, self.n_items))
            of_rows = _of_rows(state)
            gather(of_rows, left, right, one_side)
            gather(np.ascontiguousarray(one_side.T), left, right, Q)
            if not self.slope_columns.shape[1]:
                return x, Q
            cross = one_side @ self.slope_columns
            Q = np.block([[Q, cross], [cross.T, symmetrise(self.slope_columns.T @ of_rows @ self.slope_columns)]])
            return np.append(x, self.slope_columns.T @ state.alpha), Q
        P = self._laplacian(state.precision)
        if state.factor is None:
            PS, PSP = np.zeros_like(P), np.zeros_like(P)
            weighted_rows(state.inverse, left, right, state.precision, PS)
            weighted_rows(np.ascontiguousarray(PS.T), left, right, state.precision, PSP)
            return x, P - PSP
        PL = np.zeros_like(self.prior)
        weighted_rows(self.prior, left, right, state.precision, PL)
        half = state.factor.solve_lower(PL.T)
        return x, P - half.T @ half

    def _laplacian(self, precision: FloatArray) -> FloatArray:
        """P = Xᵀ Λ X."""
        k = self.n_items
        off = np.bincount(self.left.astype(np.int64) * k + self.right, precision, k * k).reshape(k, k)
        P = -(off + off.T)
        P.ravel()[:: k + 1] = -P.sum(axis=1)
        return np.asarray(P)

    def _of_items(self, of_answers: FloatArray) -> FloatArray:
        """Xᵀ times a vector."""
        k = self.n_items
        sums = np.bincount(self.left, of_answers, k) - np.bincount(self.right, of_answers, k)
        return np.asarray(sums, dtype=float)


class CountedPerson:
    """:class:`DensePerson` for a user some of whose answers were given very often; ``prior`` is S (k, k).

    P = Xᵀ Λ X = F Fᵀ equals at most k answers of precision 1 with margins Fᵀ f, which are worked on in their pair
    space: Q = F (I + Fᵀ S F)⁻¹ Fᵀ, never P - P S' P. About 8 k³ + n k operations each time. Own effects of covariates,
    of variance ``effect_variance``, are further utilities, with the columns of ``slope_columns`` (n, n_effects) in X.
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
        prior: FloatArray,
        mean: FloatArray,
        slope_columns: FloatArray = _NO_EFFECTS,
        effect_variance: float = 1.0,
    ) -> None:
        self.left, self.right, self.prior, self.slope_columns = left, right, prior, slope_columns
        self.z_bar = mean[left] - mean[right]
        self.prior_var = pair_variance(prior, left, right)
        k, n_effects = len(mean), slope_columns.shape[1]
        if n_effects:
            self.prior = np.zeros((k + n_effects, k + n_effects))
            self.prior[:k, :k], self.prior[k:, k:] = prior, effect_variance * np.eye(n_effects)
            self.prior_var = self.prior_var + effect_variance * np.einsum("ij,ij->i", slope_columns, slope_columns)
        self.n_items = k
        self._pairs = np.concatenate([left * k + right, right * k + left]).astype(np.int64)

    def condition(self, precision: FloatArray, linear: FloatArray) -> DenseState:
        """Posterior under sites; ``factor`` is that of I + Fᵀ S F, and ``alpha`` is Xᵀ α."""
        S, F = self.prior, self._information(precision)
        factor = factorise(symmetrise(np.eye(F.shape[1]) + F.T @ S @ F))
        Z = factor.solve_lower(F.T @ S)
        each = linear - precision * self.z_bar
        k = self.n_items
        e = np.subtract(np.bincount(self.left, each, k), np.bincount(self.right, each, k))
        e = np.append(e, self.slope_columns.T @ each) if k < len(S) else e
        alpha = e - F @ factor.solve(F.T @ (S @ e))
        shift = S @ alpha
        spread = Z[:, self.left] - Z[:, self.right]
        mean = self.z_bar + (shift[self.left] - shift[self.right])
        if k < len(S):
            spread += Z[:, k:] @ self.slope_columns.T
            mean += self.slope_columns @ shift[k:]
        var = self.prior_var - np.einsum("ij,ij->j", spread, spread)
        return DenseState(mean, var, factor.log_det(), float(e @ shift), precision, alpha, np.zeros((0, 0)), factor)

    def of_noise(self, state: DenseState) -> FloatArray:
        """As of :class:`DensePerson`, without tasks."""
        return np.zeros(len(state.mean))

    def sums(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """The sums x = Xᵀ α (s) and Xᵀ Q_u X (s, s) on the user's own items and effects of covariates."""
        assert state.factor is not None
        half = state.factor.solve_lower(self._information(state.precision).T)
        return state.alpha, half.T @ half

    def _information(self, precision: FloatArray) -> FloatArray:
        k = self.n_items
        between = np.bincount(self._pairs, np.concatenate([precision, precision]), k * k).reshape(k, k)
        P: FloatArray = np.diag(between.sum(axis=1)) - between
        if k < len(self.prior):
            weighted = precision[:, None] * self.slope_columns
            cross = np.zeros((k, weighted.shape[1]))
            gather(weighted, self.left, self.right, cross)
            P = np.block([[P, cross], [cross.T, symmetrise(self.slope_columns.T @ weighted)]])
        return semidefinite_root(P)


def _of_rows(state: DenseState) -> FloatArray:
    """Q = Λ^½ B⁻¹ Λ^½ in pair space, (n, n)."""
    root = np.sqrt(state.precision)
    return root[:, None] * gram_of_lower(state.inverse) * root


def _is_tame(L: FloatArray) -> bool:
    """Whether L is a Cholesky factor without tiny elements on its diagonal."""
    if len(L) != L.shape[1]:
        return False
    diagonal = np.diagonal(L)
    low, high = float(diagonal.min()), float(diagonal.max())
    return low > 0.0 and high * high <= _LARGEST_CONDITION * low * low and not np.triu(L, 1).any()
