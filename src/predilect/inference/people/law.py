"""Population distribution of utilities: the prior of a person's, its basis, and the effects of traits on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from predilect._base.stored import amounts, numbers, within
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import covariances, factorise
from predilect.inference.people.ep import Prior


@dataclass(frozen=True, slots=True)
class Law:
    """Population distribution f_u ~ N(mean + shift x_u, S) with S = Σ, or S = Φ Σ Φᵀ + diag(ρ) with a basis."""

    Sigma: FloatArray  # Σ, (M, M): the population covariance, on the basis
    mean: FloatArray  # consensus of the items, (n_items,)
    # Φ, (n_items, M); no columns where the items are the basis (M = n_items)
    Phi: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    # variance of the item-specific residual, (n_items,); empty without
    rho: FloatArray = field(default_factory=lambda: np.zeros(0))
    shift: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # effects of traits, (n_items, n_traits)
    cov: FloatArray = field(init=False)  # Σ or Φ Σ, (n_items, M), as the compiled loops take it

    def __post_init__(self) -> None:
        if not self.shift.shape[1]:
            object.__setattr__(self, "shift", np.zeros((len(self.mean), 0)))
        # A solver returns columns, a product rows: the compiled loops would be compiled again for each layout.
        object.__setattr__(self, "shift", np.ascontiguousarray(self.shift))
        object.__setattr__(self, "cov", self.Phi @ self.Sigma if self.has_basis else self.Sigma)

    def moved(self, step: FloatArray) -> Law:
        """With a mean that is further by ``step``, (n_items,)."""
        other: Law = object.__new__(Law)  # dataclasses.replace would compute the covariance again
        for name in Law.__slots__:
            object.__setattr__(other, name, getattr(self, name))
        object.__setattr__(other, "mean", self.mean + step)
        return other

    @property
    def functions(self) -> FloatArray | None:
        """Φ as the compiled loops take it: None without a basis, and what only a basis needs is not compiled."""
        return self.Phi if self.has_basis else None

    @property
    def prior(self) -> Prior:
        """All but Φ, as the compiled loops take it."""
        return Prior(self.cov, self.rho, self.mean, self.shift)

    @property
    def has_basis(self) -> bool:
        """Whether there is a basis other than the items."""
        return bool(self.Phi.shape[1])

    def covariance(self, items: IntArray) -> FloatArray:
        """S of some items, (k, k)."""
        if not self.has_basis:
            return np.asarray(self.Sigma[np.ix_(items, items)])
        block = self.cov[items] @ self.Phi[items].T
        if len(self.rho):
            block += np.where(items[:, None] == items, self.rho[items], 0.0)
        return np.asarray(block)

    def root(self, items: IntArray) -> FloatArray:
        """L with S = L Lᵀ of some items, (k, k), or (k, M) without item-specific residuals."""
        if self.has_basis and not len(self.rho):
            # S has rank M at most: a factor of S itself would need jitter, which shows once answers are many.
            return np.asarray(self.Phi[items] @ factorise(self.Sigma).lower)
        return factorise(self.covariance(items)).lower

    def person_mean(self, items: IntArray, traits: FloatArray) -> FloatArray:
        """Prior mean of some items for a user with the given traits, (k,)."""
        return np.asarray(self.mean[items] + self.shift[items] @ traits)


@dataclass(frozen=True, slots=True)
class Basis:
    """f_u = Φ β_u + e_u: basis functions of the items, and item-specific residuals (population.md section 6)."""

    Phi: Annotated[FloatArray, numbers("I M")]  # Φ
    rho: Annotated[FloatArray, amounts("I|0")]  # variance over people of e_ui, (n_items,); empty without residuals
    # posterior of the mean over people of e_ui, item by item; empty like ``rho``
    offset: Annotated[FloatArray, numbers("I|0")]
    offset_variance: Annotated[FloatArray, amounts("I|0")]
    # ``rho`` per unit of an item's share of the prior variance, for new items
    own_scale: Annotated[float, within(0.0)]

    def checked(self) -> None:
        """ValueError if items have half of what they would have to themselves."""
        if not len(self.rho) == len(self.offset) == len(self.offset_variance):
            raise ValueError("half of what items have to themselves")

    @property
    def has_own(self) -> bool:
        """Whether items have residuals of their own."""
        return len(self.rho) > 0

    def mean(self, m: FloatArray) -> FloatArray:
        """Consensus of the items, (n_items,), from that of the functions."""
        return self.Phi @ m + self.offset if self.has_own else np.asarray(self.Phi @ m)

    def extended(self, Phi: FloatArray, share: FloatArray, consensus_variance: float) -> Basis:
        """With new items without answers: rows ``Phi``, residual ``share`` (n_new,); ``consensus_variance`` is s_t."""
        rows = np.vstack([self.Phi, Phi])
        if not self.has_own and not len(share):
            return Basis(rows, self.rho, self.offset, self.offset_variance, self.own_scale)
        nothing, zero = np.zeros(len(self.Phi)), np.zeros(len(Phi))
        share = share if len(share) else zero

        def join(old: FloatArray, new: FloatArray) -> FloatArray:
            return np.concatenate([old if self.has_own else nothing, new])

        return Basis(
            rows, join(self.rho, self.own_scale * share), join(self.offset, zero),
            join(self.offset_variance, consensus_variance * share), self.own_scale,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects B x_u of user traits on the prior mean of user u's utilities."""

    B: Annotated[FloatArray, numbers("M T")]  # on the basis of the population covariance
    # Posterior of one trait's effect, (M, M), where traits are uncorrelated and alike; or (n, M, M): the last n - 1
    # traits have one each, and those before them share the first.
    covariance: Annotated[FloatArray, covariances("M M|E M M")]

    @property
    def stack(self) -> FloatArray:
        """Distinct covariances, (n, M, M)."""
        return self.covariance if self.covariance.ndim == 3 else self.covariance[None]

    def sizes(self, traits: FloatArray) -> FloatArray:
        """By how much each of the stacked covariances counts for people with ``traits`` (n_people, n_traits)."""
        squares = traits**2
        n_shared = traits.shape[1] - len(self.stack) + 1
        return np.hstack([squares[:, :n_shared].sum(axis=1, keepdims=True), squares[:, n_shared:]])

    def spread(self, traits: FloatArray) -> FloatArray:
        """Covariance of the effects on somebody with ``traits`` (n_traits,), (M, M)."""
        size = self.sizes(traits[None])[0]
        used = np.flatnonzero(size)
        return np.asarray(np.tensordot(size[used], self.stack[used], 1))
