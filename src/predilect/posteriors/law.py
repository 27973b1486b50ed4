"""The law of a population: what is known of a person's utilities before the person's own answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import factorise

__all__ = ["Law"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Law:
    """f_u ~ N(mean + shift x_u, S) with S = Σ, or S = Φ Σ Φᵀ + diag(ρ) where utilities hang on a basis.

    Attributes
    ----------
    Sigma : array of float, shape (M, M)
        Σ: how people differ, on the basis.
    mean : array of float, shape (n_items,)
        The consensus of the items.
    Phi : array of float, shape (n_items, M)
        Φ; no columns where the items themselves are the basis (M = n_items).
    rho : array of float, shape (n_items,)
        Variance that a person's utility of an item has to itself; empty where there is none.
    shift : array of float, shape (n_items, n_traits)
        How traits of people move their utilities; no columns if there are none.
    cov : array of float, shape (n_items, M)
        Σ or Φ Σ, as the compiled loops take it.
    """

    Sigma: FloatArray
    mean: FloatArray
    Phi: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    rho: FloatArray = field(default_factory=lambda: np.zeros(0))
    shift: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    cov: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        if not self.shift.shape[1]:
            object.__setattr__(self, "shift", np.zeros((len(self.mean), 0)))
        # A solver returns columns, a product rows: the compiled loops would be compiled again for each layout.
        object.__setattr__(self, "shift", np.ascontiguousarray(self.shift))
        object.__setattr__(self, "cov", self.Phi @ self.Sigma if self.has_basis else self.Sigma)

    @property
    def has_basis(self) -> bool:
        """Whether utilities hang on a basis other than the items."""
        return bool(self.Phi.shape[1])

    def covariance(self, items: npt.NDArray[np.integer]) -> FloatArray:
        """S of some items, shape (k, k)."""
        if not self.has_basis:
            return np.asarray(self.Sigma[np.ix_(items, items)])
        block = self.cov[items] @ self.Phi[items].T
        if len(self.rho):
            block[np.diag_indices(len(items))] += self.rho[items]
        return np.asarray(block)

    def root(self, items: npt.NDArray[np.integer]) -> FloatArray:
        """L with S = L Lᵀ of some items, shape (k, k), or (k, M) where Φ says everything."""
        if self.has_basis and not len(self.rho):
            # S has rank M at most: a factor of S itself would need jitter, which many answers tell from nothing.
            return np.asarray(self.Phi[items] @ factorise(self.Sigma).lower)
        return factorise(self.covariance(items)).lower

    def person_mean(self, items: npt.NDArray[np.integer], traits: FloatArray) -> FloatArray:
        """Prior mean of some items for a person with the given traits, shape (k,)."""
        return np.asarray(self.mean[items] + self.shift[items] @ traits)
