"""Hierarchical Gaussian process, f_u ~ N(μ, Σ): empirical Bayes by expectation maximisation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from predilect._types import FloatArray
from predilect.gaussian.dense import factorise, symmetrise
from predilect.gaussian.design import Sites
from predilect.latent.scaled import starting_threshold
from predilect.people.expectation import Expectation
from predilect.people.layout import Law, People
from predilect.people.maximisation import threshold_step
from predilect.people.posterior import PopulationPosterior
from predilect.people.update import settle
from predilect.progress import Report

_LOOSEST, _SITES, _TIGHTEST = 1e-4, 0.1, 1e-11  # of sites while μ and Σ move: a share of the tolerance, within bounds


@dataclass(frozen=True, slots=True)
class Moments:
    """First and second moments of the utilities over people, about the μ at which they were computed."""

    n_users: int  # U: people with answers
    first: FloatArray  # Σ_u E (f_u - μ)
    second: FloatArray  # Σ_u E (f_u - μ)(f_u - μ)ᵀ = Σ_u [S_u + (m_u - μ)(m_u - μ)ᵀ]

    def about(self, shift: FloatArray) -> FloatArray:
        """Second moment about μ + shift."""
        cross = np.outer(self.first, shift)
        return symmetrise(self.second - cross - cross.T + self.n_users * np.outer(shift, shift))


def moments(current: Expectation, Sigma: FloatArray, n_users: int) -> Moments:
    """Moments Σ r and U Σ + Σ D Σ, since m_u = μ + Σ Xᵀα and S_u = Σ - Σ XᵀQX Σ; no person's posterior is formed."""
    return Moments(n_users, Sigma @ current.r, symmetrise(n_users * Sigma + Sigma @ current.D @ Sigma))


@dataclass(frozen=True, slots=True)
class GaussianPrior:
    """Normal-inverse-Wishart prior of μ and Σ: -½ (ν₀ + 1) (log|Σ| - log|sK|) - ½ ν₀ tr sKΣ⁻¹ - ½ κ₀ μᵀΣ⁻¹μ.

    A density of Σ relative to its own mode sK and of μ in units of sK, so that s and K may be compared. (In units of an
    answer's noise the density of μ would grow without bound as s goes to 0, and with few people s would go there.)
    """

    K: FloatArray
    strength: float  # ν₀, in people; 0: maximum likelihood
    consensus_strength: float  # κ₀, in people; 0: flat prior of μ, without the 1

    @property
    def n_seen(self) -> float:
        """Prior count of the M step: ν₀, and one for the density of μ."""
        return self.strength + (self.consensus_strength > 0.0)

    def log_density(self, mu: FloatArray, Sigma: FloatArray, scale: float) -> float:
        """Log density in nats, up to a constant in μ, Σ and s."""
        if not self.n_seen:
            return 0.0
        factor, n_items = factorise(Sigma), len(mu)
        of_prior = factorise(self.K)
        away = factor.log_det() - of_prior.log_det() - n_items * math.log(scale)
        trace = scale * float(np.sum(factor.solve_lower(of_prior.lower) ** 2))
        value = -0.5 * self.strength * (away + trace - n_items)
        if self.consensus_strength:
            value -= 0.5 * (away + self.consensus_strength * float(mu @ factor.solve(mu)))
        return value

    def maximum(self, mu: FloatArray, found: Moments, scale: float) -> tuple[FloatArray, FloatArray]:
        """M step: (μ', Σ') given s, from the moments found at ``mu``.

        baselines.md B3: μ' = U m̄ / (κ₀ + U), Σ' = [ν₀ sK + κ₀ μ'μ'ᵀ + Σ_u E(f_u - μ')(f_u - μ')ᵀ] / (ν₀ + U + 1). The
        1 is the density of μ' given Σ: without a prior of μ it is absent.
        """
        kappa = self.consensus_strength
        new = (found.n_users * mu + found.first) / (kappa + found.n_users)
        scatter = self.strength * scale * self.K + kappa * np.outer(new, new) + found.about(new - mu)
        return new, symmetrise(scatter / (self.n_seen + found.n_users))

    def best_scale(self, Sigma: FloatArray) -> float:
        """Mode of s given Σ: n_items (1 + [κ₀ > 0] / ν₀) / tr KΣ⁻¹; for ν₀ > 0."""
        half = factorise(Sigma).solve_lower(factorise(self.K).lower)
        return len(Sigma) * self.n_seen / (self.strength * float(np.sum(half**2)))


@dataclass(frozen=True, slots=True)
class HierarchicalFit:
    """Fitted hierarchical model; ``evidence`` is Σ_u log Z_u, ``objective`` adds the log prior, in nats."""

    posterior: PopulationPosterior
    scale: float
    delta: float
    evidence: float
    objective: float
    report: Report


def fit_hierarchical(
    people: People,
    prior: GaussianPrior,
    *,
    scale: float,
    learn_scale: bool = False,
    delta: float | None = None,
    tolerance: float = 1e-5,
    max_iter: int = 200,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> HierarchicalFit:
    """EM for μ, Σ and, where there are ties, δ, until the objective rises by less than ``tolerance`` nats an answer.

    baselines.md B3 (Birlutiu, Groot and Heskes), in the space of utilities, which gives the same likelihood as margins
    of pairs and needs no inverse. **Differs from the paper**: expectation propagation, run to convergence in every E
    step; the prior. An iteration takes Σ_u n_u min(n_u, k_u)² + k_u³ for n_u answers on k_u items, and some n_items³.
    """
    began = time.perf_counter()
    learn_delta = delta is None and bool(np.any(people.outcome == 0))
    threshold = starting_threshold(people.outcome, people.weight) if delta is None else delta
    mu, Sigma, sites = np.zeros(people.n_items), scale * prior.K, Sites.flat(people.n_rows)
    loose = sites_tolerance(tolerance)
    last, rise, iterations = -math.inf, math.inf, 0
    while True:
        found = settle(people, sites, Law(Sigma, mu), threshold, tolerance=loose, executor=executor)
        objective = found.evidence + prior.log_density(mu, Sigma, scale)
        rise, last = (objective - last) / people.n_answers, objective
        if abs(rise) <= tolerance or iterations == max_iter:
            break
        iterations += 1
        if progress:
            progress(iterations)
        mu, Sigma = prior.maximum(mu, moments(found, Sigma, people.n_active), scale)
        if learn_scale:
            scale = prior.best_scale(Sigma)
        if learn_delta:
            threshold = threshold_step(threshold, found)
    final = settle(people, sites, Law(Sigma, mu), threshold, executor=executor)
    report = Report(
        method="EM over people", iterations=iterations, residual=abs(rise), tolerance=tolerance,
        converged=abs(rise) <= tolerance and final.is_sound, jitter=0.0, seconds=time.perf_counter() - began,
        unit="nats an answer", advice="allow more iterations (max_iter=...), or loosen the tolerance",
    )  # fmt: skip
    C = consensus_covariance(Sigma, final, prior.consensus_strength or 1.0)
    posterior = PopulationPosterior(mu, C, Sigma, people, sites)
    objective = final.evidence + prior.log_density(mu, Sigma, scale)
    return HierarchicalFit(posterior, scale, threshold, final.evidence, objective, report)


def sites_tolerance(tolerance: float) -> float:
    """Convergence tolerance of the sites while the prior moves, in noise units of a margin."""
    return float(np.clip(_SITES * tolerance, _TIGHTEST, _LOOSEST))


def consensus_covariance(Sigma: FloatArray, found: Expectation, strength: float) -> FloatArray:
    """Posterior covariance (κ Σ⁻¹ + H)⁻¹ of μ with Σ held, without an inverse of Σ.

    Where the prior of μ is flat, an item without answers would have no finite variance: callers pass κ = 1 then.
    """
    L = factorise(Sigma).lower
    half = factorise(strength * np.eye(len(L)) + symmetrise(L.T @ found.H @ L)).solve_lower(L.T)
    return symmetrise(half.T @ half)
