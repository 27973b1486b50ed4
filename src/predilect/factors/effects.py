"""Features of people as the prior mean of their weights: modern.md 5."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from predilect._types import BoolArray, FloatArray
from predilect.factors.items import GammaPrior, scale_bound
from predilect.factors.state import FactorState
from predilect.factors.weights import LinearWeights
from predilect.gaussian.dense import eigenpairs

TAU_PRIOR = GammaPrior(1.0, 0.01)
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Effects:
    """Regression of the weights, w_u ~ N(B x_u, I) with rows b_c ~ N(0, I/τ_c), τ_c ~ Gamma; q(B) and q(τ)."""

    traits: FloatArray
    # People with answers: the others' weights follow from B at the end, and would only echo it.
    active: BoolArray
    gram: FloatArray  # XᵀX of the active people
    values: FloatArray  # eigenpairs of it: they invert τ I + XᵀX for all c at once
    vectors: FloatArray
    mean: FloatArray  # (C, n_traits)
    covariance: FloatArray  # (C, n_traits, n_traits)
    log_det: FloatArray
    tau: FloatArray
    prior: GammaPrior = TAU_PRIOR  # of τ, large where features do not explain the weights

    @classmethod
    def start(cls, traits: FloatArray, n_components: int, active: BoolArray) -> Effects:
        """No effects, τ at 100 for each."""
        k, C = traits.shape[1], n_components
        gram = traits[active].T @ traits[active]
        values, vectors = eigenpairs(gram)
        values = np.maximum(values, 0.0)
        tau = np.full(C, 100.0)
        covariance, log_det = _covariances(values, vectors, tau)
        return cls(traits, active, gram, values, vectors, np.zeros((C, k)), covariance, log_det, tau)

    def prior_mean(self) -> FloatArray:
        """E B x_u, shape (n_users, C)."""
        return self.traits @ self.mean.T

    def updated(self, mu: FloatArray) -> Effects:
        """Update of q(b_c), then τ_c, for mean weights ``mu`` (n_users, C): Λ = τ I + XᵀX, Λ⁻¹ Xᵀ μ."""
        k = self.mean.shape[1]
        right = self.traits[self.active].T @ mu[self.active]
        covariance, log_det = _covariances(self.values, self.vectors, self.tau)
        mean = np.einsum("ckl,lc->ck", covariance, right)
        square = (mean**2).sum(axis=1) + np.einsum("ckk->c", covariance)
        tau = (self.prior.shape + 0.5 * k) / (self.prior.rate + 0.5 * square)
        return replace(self, mean=mean, covariance=covariance, log_det=log_det, tau=tau)

    def divergence(self) -> float:
        """KL of B and τ, and ½ Σ_u x_uᵀ Cov(b_c) x_u."""
        k = self.mean.shape[1]
        square = (self.mean**2).sum(axis=1) + np.einsum("ckk->c", self.covariance)
        total = 0.5 * float(np.sum(self.tau * square - k - k * np.log(self.tau) - self.log_det))
        total -= sum(scale_bound(self.prior, k, float(tau)) for tau in self.tau)
        return total + 0.5 * float(np.einsum("ckl,kl->", self.covariance, self.gram))

    def settled(self, state: FactorState) -> Effects:
        """A few joint rounds of q(B), q(τ) and the weights, with μ_u moved by Σ_u times its prior mean's change.

        Effects and weights follow each other slowly otherwise. ``state`` is changed in place. n_users C² a round.
        """
        effects = self
        for _ in range(_ROUNDS):
            effects = effects.updated(state.mu)
            prior = effects.prior_mean()
            state.mu = state.mu + np.einsum("uck,uk->uc", state.Sigma, prior - state.prior)
            state.prior = prior
        return effects

    def law(self) -> LinearWeights:
        """Distribution of the weights of an unseen user."""
        return LinearWeights(self.mean, self.covariance)


def _covariances(values: FloatArray, vectors: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(τ_c I + XᵀX)⁻¹, shape (C, n_traits, n_traits), and its log-determinant, from the eigenpairs of XᵀX."""
    spectrum = tau[:, None] + values
    half = vectors / np.sqrt(spectrum)[:, None, :]
    return half @ half.transpose(0, 2, 1), -np.log(spectrum).sum(axis=1)
