"""Gaussian prior of one latent function conditioned on sites, in the space of items or of answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import Factor, factorise, semidefinite_root, symmetrise
from predilect.inference.gaussian.design import MarginMatrix, Sites

Space = Literal["items", "answers"]


@dataclass(frozen=True, slots=True)
class Conditioned:
    """Posterior of f ~ N(mean_0, K) after messages N(A f; linear / precision, 1 / precision).

    With P = Aᵀ T A, e = linear - precision A mean_0 and B = I + T^½ A K Aᵀ T^½ (of the same determinant as I + K P).
    """

    margin_mean: FloatArray  # posterior of the margins A f, (n_answers,)
    margin_var: FloatArray
    alpha: FloatArray  # Aᵀ (T^-1 + A K Aᵀ)^-1 T^-1 e, (n_items,): the mean is mean_0 + K alpha, at new points too
    log_det: float  # log |B|
    quadratic: float  # alphaᵀ K alpha
    prior: LatentPrior = field(repr=False)
    precision: FloatArray = field(repr=False)
    shift: FloatArray = field(repr=False)
    factor: Factor = field(repr=False)

    @property
    def jitter(self) -> float:
        """Jitter in the factorisation of B."""
        return self.factor.jitter

    def mean(self) -> FloatArray:
        """Posterior mean of f, (n_items,)."""
        return self.prior.mean + self.shift

    def covariance(self) -> FloatArray:
        """Posterior covariance of f, (n_items, n_items)."""
        prior = self.prior
        if prior.space == "items":
            V = self.factor.solve_lower(prior.root.T)
            return symmetrise(V.T @ V)
        Y = self.factor.solve_lower(np.sqrt(self.precision)[:, None] * prior.design.rows(prior.K))
        return symmetrise(prior.K - Y.T @ Y)

    def reduction(self) -> FloatArray:
        """R = Aᵀ T^½ B^-1 T^½ A, (n_items, n_items): the covariance is K - K R K, at new points too."""
        prior = self.prior
        if prior.space == "items":
            P = prior.information(self.precision)
            half = self.factor.solve_lower(np.asarray((P @ prior.root).T))
            return symmetrise(P.toarray() - half.T @ half)
        half = self.factor.solve_lower(np.diag(np.sqrt(self.precision)))
        half = np.asarray((prior.A.T @ half.T).T)
        return symmetrise(half.T @ half)

    def extend(
        self, cross: FloatArray, own: FloatArray, mean: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and covariance (m, m) of f at new points, from their prior covariances ``cross`` and ``own``."""
        shift = cross @ self.alpha
        covariance = symmetrise(own - cross @ self.reduction() @ cross.T)
        return shift if mean is None else mean + shift, covariance


class LatentPrior:
    """Prior f ~ N(mean, K) with the design of the answers, to be conditioned repeatedly. modern.md A.4.

    No inverse of K, which may be singular, and sites may have precision 0. ``space`` is the smaller one by default:

    - answers: G = A K Aᵀ once; B = I + T^½ G T^½ is factorised each time. 1.7 n³ operations, n = n_answers.
    - items: K = L Lᵀ once (pivoted, without jitter, rank r); I + Lᵀ P L, of the same determinant as B, is factorised
      each time. 4 n_items r² operations and O(n_answers): nothing of the size answers x items.
    """

    def __init__(
        self, K: FloatArray, design: MarginMatrix, mean: FloatArray | None = None, space: Space | None = None
    ) -> None:
        self.K = K
        self.design = design
        self.mean = np.zeros(len(K)) if mean is None else mean
        self.margin_mean = design.margins(self.mean)
        self.space: Space = space or ("answers" if design.n_answers <= design.n_items else "items")
        self.A = design.sparse()
        self.gram = design.gram(K) if self.space == "answers" else np.zeros((0, 0))
        self.root = semidefinite_root(K) if self.space == "items" else np.zeros((0, 0))

    def information(self, precision: FloatArray) -> csr_array:
        """Aᵀ diag(precision) A."""
        return self.design.information(self.A, precision)

    def condition(self, sites: Sites) -> Conditioned:
        """Posterior given the messages of all copies of each answer together; precisions must not be negative."""
        precision, linear = sites.precision, sites.linear
        e = linear - precision * self.margin_mean
        if self.space == "answers":
            root = np.sqrt(precision)
            factor = factorise(np.eye(len(root)) + root[:, None] * self.gram * root)
            Z = factor.solve_lower(root[:, None] * self.gram)
            moved = self.gram @ e - Z.T @ (Z @ e)
            margin_var = np.maximum(np.diagonal(self.gram) - np.einsum("ij,ij->j", Z, Z), 0.0)
            alpha = self.design.gather(e - precision * moved)
            shift = self.K @ alpha
        else:
            L = self.root
            information = self.information(precision)
            factor = factorise(symmetrise(np.eye(L.shape[1]) + L.T @ (information @ L)))
            V = factor.solve_lower(L.T)
            pull = self.design.gather(e)
            shift = V.T @ (V @ pull)
            moved = self.design.margins(shift)
            margin_var = self.design.variances_of_root(V.T)
            alpha = pull - information @ shift
        return Conditioned(
            margin_mean=self.margin_mean + moved,
            margin_var=margin_var,
            alpha=alpha,
            log_det=factor.log_det(),
            quadratic=float(alpha @ shift),
            prior=self,
            precision=precision,
            shift=shift,
            factor=factor,
        )  # fmt: skip
