"""The Gaussian state of a person with very many answers, by dense factorisations instead of rank-one updates.

A few people may hold most of the answers: thousands on hundreds of items. One rank-one update an answer would stream
the whole state through the cache thousands of times; a handful of matrix products of the same size is far quicker.
The results are those of :mod:`predilect.posteriors.compiled.person_state`, which a row of very many copies would cost
its digits: there Q = Λ - Λ C Λ is a small difference of large numbers, and so is the variance of a margin. Here nothing
is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from predilect.covariance.dense import Factor, factorise, semidefinite_root, symmetrise
from predilect.posteriors.pairs import pair_variance

__all__ = ["CountedPerson", "DensePerson", "DenseState"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DenseState:
    """A person's posterior under given sites (population.md sections 2 and 3).

    Attributes
    ----------
    mean, var : arrays of float, shape (n,)
        Marginals of the margin of each answer.
    log_det : float
        log |I + Λ^½ G Λ^½|.
    quadratic : float
        eᵀ C e with e = η - Λ z̄.
    precision, alpha : arrays of float, shape (n,)
        The sites' precisions, and α = η - Λ mean.
    """

    mean: FloatArray
    var: FloatArray
    log_det: float
    quadratic: float
    precision: FloatArray
    alpha: FloatArray
    factor: Factor


class DensePerson:
    """One person's prior, ready to be conditioned on sites again and again.

    Parameters
    ----------
    left, right : arrays of int, shape (n,)
        Answers, as positions in the person's own items.
    prior, mean : arrays of float, shapes (k, k) and (k,)
        Prior of the utilities of those items: their covariance S where n <= k, and otherwise L, (k, d), with S = L Lᵀ.

    Notes
    -----
    Pair space where n <= k: about 1.5 n³ operations each time, and 3 n³ for the sums. Item space otherwise:
    3.5 k³ + n k and 2 k³, less where d < k. Memory n² or k².
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
        prior: FloatArray,
        mean: FloatArray,
    ) -> None:
        self.left, self.right = left, right
        n, k = len(left), len(mean)
        self.in_pair_space = n <= k
        self.z_bar = mean[left] - mean[right]
        place = np.arange(n)
        self.X = csr_array(
            (np.repeat([1.0, -1.0], n), (np.concatenate([place, place]), np.concatenate([left, right]))), shape=(n, k)
        )
        if self.in_pair_space:
            rows = prior[left] - prior[right]
            self.prior = rows[:, left] - rows[:, right]  # G
        else:
            self.prior = prior

    @property
    def prior_var(self) -> FloatArray:
        """Prior variance of the margin of each answer, shape (n,)."""
        if self.in_pair_space:
            return np.asarray(np.diagonal(self.prior))
        spread = self.prior[self.left] - self.prior[self.right]
        return np.asarray(np.einsum("ij,ij->i", spread, spread))

    def condition(self, precision: FloatArray, linear: FloatArray) -> DenseState:
        """Posterior under sites, all copies of a row together; arrays of shape (n,)."""
        e = linear - precision * self.z_bar
        if self.in_pair_space:
            root = np.sqrt(precision)
            factor = factorise(np.eye(len(root)) + root[:, None] * self.prior * root)
            Z = factor.solve_lower(root[:, None] * self.prior)
            # α first and the mean from it: a site of high precision would magnify the mean's rounding in η - Λ mean.
            alpha = e - root * factor.solve(root * (self.prior @ e))
            shift = self.prior @ alpha
            var = np.diagonal(self.prior) - np.einsum("ij,ij->j", Z, Z)
            return DenseState(self.z_bar + shift, var, factor.log_det(), float(e @ shift), precision, alpha, factor)
        L = self.prior
        factor = factorise(symmetrise(np.eye(L.shape[1]) + L.T @ (self._laplacian(precision) @ L)))
        V = factor.solve_lower(L.T)  # S = Vᵀ V
        g = V @ (self.X.T @ e)
        spread = V[:, self.left] - V[:, self.right]
        mean = self.z_bar + spread.T @ g
        var = np.einsum("ij,ij->j", spread, spread)
        return DenseState(mean, var, factor.log_det(), float(g @ g), precision, linear - precision * mean, factor)

    def sums(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """The sums x = Xᵀ α (k) and Xᵀ Q_u X (k, k) on the person's own items."""
        x = np.asarray(self.X.T @ state.alpha)
        if self.in_pair_space:
            root = np.sqrt(state.precision)
            half = state.factor.solve_lower(np.diag(root))
            half = np.asarray((self.X.T @ half.T).T)
            return x, half.T @ half
        P = self._laplacian(state.precision)
        half = state.factor.solve_lower(np.asarray((P @ self.prior).T))
        return x, symmetrise(P.toarray() - half.T @ half)

    def _laplacian(self, precision: FloatArray) -> csr_array:
        return csr_array(self.X.T @ (self.X * precision[:, None]))


class CountedPerson:
    """The same for a person some of whose answers were given very often.

    Parameters
    ----------
    left, right, mean
        As in :class:`DensePerson`.
    prior : array of float, shape (k, k)
        S.

    Notes
    -----
    What the answers say of the items, P = Xᵀ Λ X = F Fᵀ, is what at most k answers of precision 1 with margins Fᵀ f
    would say, and those are worked on in their pair space: Q = F (I + Fᵀ S F)⁻¹ Fᵀ, never P - P S' P. About 8 k³ + n k
    operations each time.
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
        prior: FloatArray,
        mean: FloatArray,
    ) -> None:
        self.left, self.right, self.prior = left, right, prior
        self.z_bar = mean[left] - mean[right]
        self.prior_var = pair_variance(prior, left, right)
        k = len(mean)
        self._pairs = np.concatenate([left * k + right, right * k + left]).astype(np.int64)

    def condition(self, precision: FloatArray, linear: FloatArray) -> DenseState:
        """Posterior under sites; ``factor`` is that of I + Fᵀ S F, and ``alpha`` is Xᵀ α."""
        S, F = self.prior, self._information(precision)
        factor = factorise(symmetrise(np.eye(F.shape[1]) + F.T @ S @ F))
        Z = factor.solve_lower(F.T @ S)
        each = linear - precision * self.z_bar
        e = np.subtract(np.bincount(self.left, each, len(S)), np.bincount(self.right, each, len(S)))
        alpha = e - F @ factor.solve(F.T @ (S @ e))
        shift = S @ alpha
        spread = Z[:, self.left] - Z[:, self.right]
        var = self.prior_var - np.einsum("ij,ij->j", spread, spread)
        mean = self.z_bar + (shift[self.left] - shift[self.right])
        return DenseState(mean, var, factor.log_det(), float(e @ shift), precision, alpha, factor)

    def sums(self, state: DenseState) -> tuple[FloatArray, FloatArray]:
        """The sums x = Xᵀ α (k) and Xᵀ Q_u X (k, k) on the person's own items."""
        half = state.factor.solve_lower(self._information(state.precision).T)
        return state.alpha, half.T @ half

    def _information(self, precision: FloatArray) -> FloatArray:
        k = len(self.prior)
        between = np.bincount(self._pairs, np.concatenate([precision, precision]), k * k).reshape(k, k)
        return semidefinite_root(np.diag(between.sum(axis=1)) - between)
