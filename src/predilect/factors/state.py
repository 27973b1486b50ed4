"""Variational posterior of the factor model during the fit, its moments and its bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from predilect._types import FloatArray
from predilect.factors.answers import FactorAnswers, FunctionState, GammaPrior, ItemDesign, WeightPrior, scale_bound
from predilect.factors.posterior import FactorPosterior, add_products
from predilect.gaussian.projection import Projection
from predilect.latent.scaled import starting_threshold

VAGUE = GammaPrior(1.0, 10.0)


@dataclass(frozen=True, slots=True)
class FactorPriors:
    """Priors of the inverse scales s_t and of every s_c."""

    consensus: GammaPrior = VAGUE
    components: GammaPrior = VAGUE


@dataclass(slots=True)
class FactorState:
    """q(t) Π q(v_c) Π q(w_u), and derived moments of the margins of pairs."""

    consensus: FunctionState | None
    components: list[FunctionState]
    s_0: float  # E s_t
    s: FloatArray  # E s_c, (C,)
    delta_0: FloatArray  # mean of t(left) - t(right), (n_pairs,)
    D_0: FloatArray  # its variance
    delta: FloatArray  # the same of the components, (n_pairs, C)
    D: FloatArray
    prior: FloatArray  # prior mean of the weights, (n_users, C)
    mu: FloatArray
    Sigma: FloatArray  # (n_users, C, C)
    log_det: FloatArray
    threshold: float

    @property
    def n_components(self) -> int:
        """Number of components C."""
        return int(self.mu.shape[1])

    def copy(self) -> FactorState:
        """Independent copy."""
        return replace(
            self, components=list(self.components), s=self.s.copy(), delta=self.delta.copy(), D=self.D.copy(),
            mu=self.mu.copy(), Sigma=self.Sigma.copy(), log_det=self.log_det.copy(),
        )  # fmt: skip

    def set_component(self, c: int, function: FunctionState, design: ItemDesign) -> None:
        """Replaces q(v_c) and its moments of pairs."""
        self.components[c] = function
        self.delta[:, c] = function.delta
        self.D[:, c] = function.D + design.residual / self.s[c]

    def set_consensus(self, function: FunctionState, design: ItemDesign) -> None:
        """Replaces q(t) and its moments of pairs."""
        self.consensus = function
        self.delta_0 = function.delta
        self.D_0 = function.D + design.residual / self.s_0

    def set_scale(self, c: int, s: float, design: ItemDesign) -> None:
        """Replaces E s_c and what depends on it; -1 is the consensus."""
        if c < 0:
            self.s_0 = s
            if self.consensus is not None:
                self.D_0 = self.consensus.D + design.residual / s
            return
        self.s[c] = s
        self.D[:, c] = self.components[c].D + design.residual / s

    def divergence(self, priors: FactorPriors, design: ItemDesign) -> float:
        """KL of everything from its prior, scales included: expected log-likelihood less the bound."""
        n_users, C = self.mu.shape
        total = 0.5 * float(
            np.einsum("ucc->", self.Sigma) + np.sum((self.mu - self.prior) ** 2) - n_users * C - self.log_det.sum()
        )
        M = design.n_points
        if self.consensus is not None:
            total += self.consensus.divergence(self.s_0) - scale_bound(priors.consensus, M, self.s_0)
        for c, function in enumerate(self.components):
            total += function.divergence(self.s[c]) - scale_bound(priors.components, M, self.s[c])
        return total


def assemble(
    state: FactorState, projection: Projection, mu: FloatArray, Sigma: FloatArray, weights: WeightPrior
) -> FactorPosterior:
    """Posterior from a state, with ``weights`` for unseen users; Sigma (n_users, C, C), or (n_users, C) if diagonal."""
    M, C = projection.n_points, state.n_components
    t_mean, t_covariance = None, None
    if state.consensus is not None:
        t_mean, t_covariance = projection.at_points(state.consensus.mean, state.consensus.lower)
    v_mean, v_covariance = np.zeros((M, C)), np.zeros((C, M, M))
    for c, function in enumerate(state.components):
        v_mean[:, c], v_covariance[c] = projection.at_points(function.mean, function.lower)
    return FactorPosterior(
        projection, t_mean, t_covariance, state.s_0, v_mean, v_covariance, state.s, mu, Sigma, weights
    )


def moments(state: FactorState, answers: FactorAnswers) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the margin of every row: modern.md (3.1)."""
    mean, var = state.delta_0[answers.pair], state.D_0[answers.pair]
    if state.n_components:
        add_products(answers.user, answers.pair, state.delta, state.D, state.mu, state.Sigma, mean, var)
    return mean, var


def random_start(
    answers: FactorAnswers, design: ItemDesign, n_components: int, consensus: bool, prior: FloatArray,
    threshold: float | None, rng: np.random.Generator, *, s_0: float = 0.1, s: float = 0.5,
) -> FactorState:  # fmt: skip
    """Random functions and weights: modern.md 4.2. Zero means are a saddle (crowdgppl.md 2.3).

    ``prior`` (n_users, C): prior mean of the weights; s_0, s: initial inverse scales of consensus and components.
    """
    n_users, M, C = answers.n_users, design.n_points, n_components
    if threshold is None:
        threshold = starting_threshold(answers.outcome, answers.weight)
    n_pairs = len(answers.left)
    spread = design.prior_variances()
    state = FactorState(
        None, [], s_0, np.full(C, s), np.zeros(n_pairs), np.zeros(n_pairs), np.zeros((n_pairs, C)),
        np.zeros((n_pairs, C)), prior.copy(), np.zeros((n_users, C)), np.zeros((n_users, C, C)),
        np.full(n_users, C * math.log(0.5)), threshold,
    )  # fmt: skip
    if consensus:
        state.set_consensus(_about(design, np.zeros(M), s_0, spread), design)
    for c in range(C):
        x = 0.5 * rng.standard_normal(M) / math.sqrt(s)
        state.components.append(_about(design, x, s, spread))
        state.set_component(c, state.components[c], design)
    state.mu[:] = rng.standard_normal((n_users, C))
    state.Sigma[:] = 0.5 * np.eye(C)
    return state


def _about(design: ItemDesign, mean: FloatArray, s: float, spread: FloatArray) -> FunctionState:
    """Prior covariance about a mean."""
    M = len(mean)
    return FunctionState(
        mean, math.sqrt(s) * np.eye(M), float(mean @ mean) + M / s, -M * math.log(s), design.margins.mean(mean),
        spread / s,
    )  # fmt: skip
