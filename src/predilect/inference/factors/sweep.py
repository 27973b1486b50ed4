"""Compiled loops of the factor model, and effects of people's features on their weights (modern.md 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from predilect._base.compile import kernel
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.factors.answers import (
    FactorAnswers,
    FunctionState,
    GammaPrior,
    ItemDesign,
    LinearWeights,
    scale_bound,
    scale_step,
)
from predilect.inference.factors.posterior import FactorPriors, FactorState, moments
from predilect.inference.gaussian.dense import eigenpairs
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.sparse.problem import natural_parameters
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import moved_threshold, tilted


@kernel
def update_people(user_ptr, pair, weight, precision, linear, delta_0, delta, D, prior, mu, Sigma, log_det):
    """Posterior of the weights of people given the sites: modern.md (3.4).

    ``precision``, ``linear`` (n_rows,): site of one of ``weight`` answers, log p(y | z) ~ linear z - precision z²/2;
    ``delta_0`` (n_pairs,): mean margin of the consensus; ``delta``, ``D`` (n_pairs, C); ``prior`` (n_users, C): prior
    mean, covariance I. ``mu`` (n_users, C), ``Sigma`` (n_users, C, C), ``log_det`` (n_users,) are set.
    """
    C = delta.shape[1]
    L = np.empty((C, C))
    h = np.empty(C)
    inv = np.empty((C, C))
    for u in range(mu.shape[0]):
        for c in range(C):
            for k in range(c):
                L[c, k] = 0.0
            L[c, c] = 1.0
            h[c] = prior[u, c]
        for p in range(user_ptr[u], user_ptr[u + 1]):
            q = pair[p]
            tau = weight[p] * precision[p]
            nu = weight[p] * linear[p] - tau * delta_0[q]
            for c in range(C):
                d = delta[q, c]
                h[c] += nu * d
                scaled = tau * d
                for k in range(c + 1):
                    L[c, k] += scaled * delta[q, k]
                L[c, c] += tau * D[q, c]
        total = 0.0
        for j in range(C):  # the Cholesky factor, row by row
            for k in range(j):
                s = L[j, k]
                for i in range(k):
                    s -= L[j, i] * L[k, i]
                L[j, k] = s / L[k, k]
            s = L[j, j]
            for i in range(j):
                s -= L[j, i] * L[j, i]
            L[j, j] = math.sqrt(s)  # at least 1: the prior is in it
            total -= 2.0 * math.log(L[j, j])
        log_det[u] = total
        for j in range(C):  # inv = L⁻¹, lower
            inv[j, j] = 1.0 / L[j, j]
            for k in range(j):
                s = 0.0
                for i in range(k, j):
                    s -= L[j, i] * inv[i, k]
                inv[j, k] = s * inv[j, j]
        for c in range(C):
            for k in range(c + 1):
                s = 0.0
                for i in range(c, C):
                    s += inv[i, c] * inv[i, k]
                Sigma[u, c, k] = s
                Sigma[u, k, c] = s
        for c in range(C):
            s = 0.0
            for k in range(C):
                s += Sigma[u, c, k] * h[k]
            mu[u, c] = s


@kernel
def component_sums(c, user, pair, weight, precision, linear, margin, delta, mu, Sigma, W, H):
    """Precision and linear term of component ``c`` for every pair: modern.md (3.6), before the design of the items.

    ``margin`` (n_rows,): current mean margins. Sets W, H (n_pairs,): Σ ω_p and Σ h_p over the rows of each pair.
    """
    C = mu.shape[1]
    full = Sigma.shape[2] == C and C > 1
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        tau = weight[p] * precision[p]
        cross = 0.0
        if full:
            for k in range(C):
                cross += Sigma[u, c, k] * delta[q, k]
            own = Sigma[u, c, c]
        else:
            own = Sigma[u, c, 0]
            cross = own * delta[q, c]
        omega = tau * (mu[u, c] * mu[u, c] + own)
        W[q] += omega
        H[q] += (weight[p] * linear[p] - tau * margin[p]) * mu[u, c] - tau * cross + omega * delta[q, c]


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


def refreshed(
    state: FactorState, answers: FactorAnswers, old: Sites | None, step: float
) -> tuple[Sites, FloatArray, FloatArray]:
    """Sites at the present moments, a convex mix with share ``step`` of the new; slope and value (n_rows,) of E log p.

    With λ and g of modern.md (3.2): precision λ, linear g + λ E z. To mix sites is to mix natural parameters
    (modern.md 4, "damped form"), for all blocks at once and without their old precisions.
    """
    mean, var = moments(state, answers)
    value, slope, curvature = expected(answers.outcome, mean, var, state.threshold)
    new = Sites(curvature, slope + curvature * mean)
    return new if old is None else old.towards(new, step), slope, value


def blocks(
    state: FactorState, sites: Sites, answers: FactorAnswers, design: ItemDesign, priors: FactorPriors, *, scales: bool
) -> None:
    """Update of every block once at the given sites, in place.

    With the sites held, each block maximises the same bound, of a Gaussian likelihood, given the others; so a sweep
    needs one pass of quadrature, and not the C + 2 of modern.md 4. n_rows C² + n_users C³ + C (items of the design)
    operations.
    """
    people_step(state, sites, answers)
    margin, _ = moments(state, answers)
    item_sweep(state, sites, margin, answers, design)
    if scales:
        scales_step(state, sites, answers, design, priors)


def people_step(state: FactorState, sites: Sites, answers: FactorAnswers) -> None:
    """Update of all people's weights: modern.md (3.4)."""
    if state.n_components:
        update_people(
            answers.user_ptr, answers.pair, answers.weight, sites.precision, sites.linear, state.delta_0, state.delta,
            state.D, state.prior, state.mu, state.Sigma, state.log_det,
        )  # fmt: skip


def item_sweep(
    state: FactorState, sites: Sites, margin: FloatArray, answers: FactorAnswers, design: ItemDesign
) -> None:
    """Update of the consensus, then of each component: modern.md (3.5), (3.6). ``margin``: current mean margins."""
    if state.consensus is not None:
        margin = margin + consensus_step(state, sites, margin, answers, design)[answers.pair]
    W, H = np.empty((2, len(answers.left)))
    for c in range(state.n_components):
        W[:], H[:] = 0.0, 0.0
        component_sums(
            c, answers.user, answers.pair, answers.weight, sites.precision, sites.linear, margin, state.delta,
            state.mu, state.Sigma, W, H,
        )  # fmt: skip
        natural = natural_parameters(design.margins, W, H, state.s[c])
        old = state.delta[:, c].copy()
        state.set_component(c, FunctionState.of(design.margins, *natural), design)
        margin = margin + state.mu[answers.user, c] * (state.delta[:, c] - old)[answers.pair]


def consensus_step(
    state: FactorState, sites: Sites, margin: FloatArray, answers: FactorAnswers, design: ItemDesign
) -> FloatArray:
    """Update of q(t); the change of its mean margin of each pair, shape (n_pairs,)."""
    W, H = consensus_sums(answers.pair, sites.times(answers.weight), margin, state.delta_0)
    natural = natural_parameters(design.margins, W, H, state.s_0)
    old = state.delta_0
    state.set_consensus(FunctionState.of(design.margins, *natural), design)
    return np.asarray(state.delta_0 - old)


def consensus_sums(
    pair: IntArray, sites: Sites, margin: FloatArray, delta_0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums W and H (n_pairs,) for q(t): modern.md (3.5); sites of all copies, margins with the consensus."""
    n = len(delta_0)
    W = np.asarray(np.bincount(pair, sites.precision, n), dtype=np.float64)
    return W, np.bincount(pair, sites.linear - sites.precision * margin, n) + W * delta_0


def scales_step(
    state: FactorState, sites: Sites, answers: FactorAnswers, design: ItemDesign, priors: FactorPriors
) -> None:
    """Update of E s_t and E s_c: modern.md 6."""
    M = design.n_points
    uncertain = answers.weight * sites.precision * design.residual[answers.pair]
    if state.consensus is not None:
        s = scale_step(priors.consensus, M, state.consensus.square, float(uncertain.sum()))
        state.set_scale(-1, s, design)
    by_user = np.bincount(answers.user, uncertain, answers.n_users)
    second = state.mu**2 + np.einsum("ucc->uc", state.Sigma)
    for c, left_over in enumerate(by_user @ second):
        state.set_scale(c, scale_step(priors.components, M, state.components[c].square, float(left_over)), design)


def threshold_step(state: FactorState, answers: FactorAnswers, slope: FloatArray) -> None:
    """Newton step of the tie threshold in log δ, on the expected log-likelihood at the present q.

    A strict answer depends on y z - δ only, so its derivative in δ is minus y times its slope, and the second one its
    second one in the mean; a tie is integrated by quadrature.
    """
    tie = answers.outcome == 0
    if not tie.any():
        return
    mean, var = moments(state, answers)
    delta, w = state.threshold, answers.weight
    curvature = expected(answers.outcome[~tie], mean[~tie], var[~tie], delta)[2]
    gradient = -float(w[~tie] @ (answers.outcome[~tie] * slope[~tie]))
    second = -float(w[~tie] @ curvature)
    omega = _WEIGHTS / _WEIGHTS.sum()
    for x, share in zip(_NODES, omega, strict=True):
        z = mean[tie] + np.sqrt(var[tie]) * x
        parts = tilted(np.zeros(len(z), dtype=np.int8), z, 0.0, delta)
        gradient += share * float(w[tie] @ parts[3])
        second += share * float(w[tie] @ parts[4])
    state.threshold = moved_threshold(delta, gradient, second)


TAU_PRIOR = GammaPrior(1.0, 0.01)
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class WeightRegression:
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
    def start(cls, traits: FloatArray, n_components: int, active: BoolArray) -> WeightRegression:
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

    def updated(self, mu: FloatArray) -> WeightRegression:
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

    def converged(self, state: FactorState) -> WeightRegression:
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
        """Distribution of the weights of unseen users."""
        return LinearWeights(self.mean, self.covariance)


def _covariances(values: FloatArray, vectors: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(τ_c I + XᵀX)⁻¹, shape (C, n_traits, n_traits), and its log-determinant, from the eigenpairs of XᵀX."""
    spectrum = tau[:, None] + values
    half = vectors / np.sqrt(spectrum)[:, None, :]
    return half @ half.transpose(0, 2, 1), -np.log(spectrum).sum(axis=1)
