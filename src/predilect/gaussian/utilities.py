"""Utilities of one user or of the consensus, in a form without items x items matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.design import pair_variance
from predilect.gaussian.projection import Projection

_DENSE_ITEMS = 2000  # items up to which the residual's covariance is formed


@dataclass(frozen=True, slots=True)
class Utilities:
    """f = mean + [Φ, E_o] s + e with s ~ N(0, covariance) and independent e_i of variance ``own``."""

    mean: FloatArray
    covariance: FloatArray  # (M + k, M + k), of the basis functions and of k items' residuals
    Phi: FloatArray | None  # (n_items, M); None where the items are the basis
    items: IntArray  # the k items
    own: FloatArray  # residual variance of the other items, (n_items,); empty without residuals

    @classmethod
    def of(cls, mean: FloatArray, covariance: FloatArray) -> Self:
        """From mean (n_items,) and covariance (n_items, n_items) of the items themselves."""
        return cls(mean, covariance, None, np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def through(cls, projection: Projection, mean: FloatArray, covariance: FloatArray, residual: float) -> Self:
        """Utilities f = A f_m + r with f_m ~ N(mean, covariance) and r ~ N(0, ``residual`` R).

        Exact up to 2 000 items; beyond, with the diagonal of R: variances of single utilities are right, those of
        differences between close neighbours too large.
        """
        A, f = projection.A, projection.expand(mean)
        if A is None:
            return cls.of(f, covariance)
        if projection.n_items > _DENSE_ITEMS:
            return cls(f, covariance, A, np.zeros(0, dtype=np.int64), residual * projection.own)
        return cls.of(f, symmetrise(A @ covariance @ A.T + residual * projection.residual()))

    def rows(self) -> FloatArray:
        """[Φ, E_o], (n_items, M + k)."""
        assert self.Phi is not None
        rows = np.zeros((len(self.mean), len(self.covariance)))
        rows[:, : self.Phi.shape[1]] = self.Phi
        rows[self.items, self.Phi.shape[1] + np.arange(len(self.items))] = 1.0
        return rows

    def dense(self) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items)."""
        if self.Phi is None:
            return self.mean, self.covariance
        rows = self.rows()
        covariance = rows @ self.covariance @ rows.T
        if len(self.own):
            covariance[np.diag_indices(len(covariance))] += self.own
        return self.mean, symmetrise(covariance)

    def margins(self, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f(left) - f(right), (n,)."""
        mean = self.mean[left] - self.mean[right]
        var = pair_variance(self.covariance, left, right, None if self.Phi is None else self.rows())
        return mean, var + self.own[left] + self.own[right] if len(self.own) else var

    def centred_marginals(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each utility, centred over the items; (n_items,)."""
        n = len(self.mean)
        if self.Phi is None:
            row = self.covariance.mean(axis=0)
            return self.mean - self.mean.mean(), np.diagonal(self.covariance) - 2.0 * row + row.mean()
        rows = self.rows()
        rows -= rows.mean(axis=0)
        var = np.einsum("ij,ij->i", rows @ self.covariance, rows)
        if len(self.own):
            var = var + self.own * (1.0 - 2.0 / n) + self.own.mean() / n
        return self.mean - self.mean.mean(), var

    def draws(self, n_draws: int, rng: np.random.Generator, root: FloatArray) -> FloatArray:
        """Joint draws, (n_draws, n_items), with ``root`` a factor of the covariance."""
        normal = rng.standard_normal((n_draws, root.shape[1])) @ root.T
        if self.Phi is None:
            return self.mean + normal
        M = self.Phi.shape[1]
        out = normal[:, :M] @ self.Phi.T
        out[:, self.items] += normal[:, M:]
        if len(self.own):
            out += np.sqrt(self.own) * rng.standard_normal(out.shape)
        return np.asarray(out + self.mean)
