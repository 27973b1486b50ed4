"""A Gaussian prior of people's utilities, f_u ~ N(μ, Σ), learned by expectation maximisation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import factorise, symmetrise
from predilect.inference.expectation import Expectation
from predilect.inference.maximisation import threshold_step
from predilect.inference.population import settle
from predilect.inference.report import Report
from predilect.inference.threshold import starting_threshold
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior

__all__ = [
    "GaussianPrior", "HierarchicalFit", "Moments", "consensus_covariance", "fit_hierarchical", "moments",
    "sites_tolerance",
]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

_LOOSEST, _SITES, _TIGHTEST = 1e-4, 0.1, 1e-11  # of sites while μ and Σ move: a share of the tolerance, within bounds


@dataclass(frozen=True, slots=True)
class Moments:
    """What the E step says of everybody's utilities together, about the μ that it was computed at.

    Attributes
    ----------
    n_users : int
        U: people with answers.
    first : array of float, shape (n_items,)
        Σ_u E (f_u - μ).
    second : array of float, shape (n_items, n_items)
        Σ_u E (f_u - μ)(f_u - μ)ᵀ = Σ_u [S_u + (m_u - μ)(m_u - μ)ᵀ].
    """

    n_users: int
    first: FloatArray
    second: FloatArray

    def about(self, shift: FloatArray) -> FloatArray:
        """The second moment about μ + shift."""
        cross = np.outer(self.first, shift)
        return symmetrise(self.second - cross - cross.T + self.n_users * np.outer(shift, shift))


def moments(current: Expectation, Sigma: FloatArray, n_users: int) -> Moments:
    """Moments from the sums over people at the covariance ``Sigma``.

    Notes
    -----
    m_u = μ + Σ Xᵀα and S_u = Σ - Σ XᵀQX Σ, so the sums are Σ r and U Σ + Σ D Σ: no person's posterior is formed.
    """
    return Moments(n_users, Sigma @ current.r, symmetrise(n_users * Sigma + Sigma @ current.D @ Sigma))


@dataclass(frozen=True, slots=True)
class GaussianPrior:
    """What is believed of μ and Σ: -½ (ν₀ + 1) (log|Σ| - log|sK|) - ½ ν₀ tr sKΣ⁻¹ - ½ κ₀ μᵀΣ⁻¹μ.

    A normal-inverse-Wishart distribution, as a density of Σ relative to its own mode sK and of μ in units of sK, so
    that s and K may be compared. (In units of an answer's noise the density of μ would grow without bound where s
    vanishes, and with few people that is where s would go.) Without a prior of μ, κ₀ = 0, the 1 is not there.

    Attributes
    ----------
    K : array of float, shape (n_items, n_items)
        Positive definite.
    strength : float
        ν₀, in people; 0 for plain maximum likelihood.
    consensus_strength : float
        κ₀, in people; 0 for a flat prior of μ.
    """

    K: FloatArray
    strength: float
    consensus_strength: float

    @property
    def n_seen(self) -> float:
        """What the prior counts for as a divisor: ν₀, and one for the density of μ."""
        return self.strength + (self.consensus_strength > 0.0)

    def log_density(self, mu: FloatArray, Sigma: FloatArray, scale: float) -> float:
        """In nats, up to a constant in μ, Σ and s."""
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
        """The M step: (μ', Σ') of highest expected log-density of people's utilities, given s.

        Parameters
        ----------
        mu : array of float, shape (n_items,)
            Where ``found`` was computed.
        found : Moments
        scale : float
            s.

        Notes
        -----
        baselines.md B3: μ' = U m̄ / (κ₀ + U), Σ' = [ν₀ sK + κ₀ μ'μ'ᵀ + Σ_u E(f_u - μ')(f_u - μ')ᵀ] / (ν₀ + U + 1). The 1
        is the density of μ' given Σ: without a prior of μ it is not there, which the spec does not say.
        """
        kappa = self.consensus_strength
        new = (found.n_users * mu + found.first) / (kappa + found.n_users)
        scatter = self.strength * scale * self.K + kappa * np.outer(new, new) + found.about(new - mu)
        return new, symmetrise(scatter / (self.n_seen + found.n_users))

    def best_scale(self, Sigma: FloatArray) -> float:
        """The s of highest density given Σ: n_items (1 + [κ₀ > 0] / ν₀) / tr KΣ⁻¹; for ν₀ > 0."""
        half = factorise(Sigma).solve_lower(factorise(self.K).lower)
        return len(Sigma) * self.n_seen / (self.strength * float(np.sum(half**2)))


@dataclass(frozen=True, slots=True)
class HierarchicalFit:
    """A fitted population.

    Attributes
    ----------
    posterior : PopulationPosterior
    scale : float
        s.
    delta : float
        Tie threshold.
    evidence : float
        Σ_u log Z_u, in nats.
    objective : float
        With the prior's log-density: what EM raises.
    report : Report
    """

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
    max_iterations: int = 200,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> HierarchicalFit:
    """Learn μ, Σ and, where there are ties, δ by expectation maximisation.

    Parameters
    ----------
    people : People
        The answers.
    prior : GaussianPrior
    scale : float
        s; Σ starts at sK.
    learn_scale : bool, default False
        Whether s moves to its best value in every iteration.
    delta : float, optional
        Tie threshold, if it is given; learned where there are ties, and 0 otherwise.
    tolerance : float, default 1e-5
        Stop when the objective rises by less, in nats an answer.
    max_iterations : int, default 200
    executor : ThreadPoolExecutor, optional
        Threads for the shards of people.
    progress : callable, optional
        Called with the number of iterations so far.

    Notes
    -----
    baselines.md B3 (Birlutiu, Groot and Heskes), in the space of utilities, which says the same of the answers as
    margins of pairs do and needs no inverse. **Differs from the paper**: expectation propagation, brought to rest in
    every E step; the prior.
    An iteration takes Σ_u n_u min(n_u, k_u)² + k_u³ operations for n_u answers on k_u items, and some n_items³.
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
        if abs(rise) <= tolerance or iterations == max_iterations:
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
        unit="nats an answer", advice="allow more iterations (max_iterations=...), or loosen the tolerance",
    )  # fmt: skip
    C = consensus_covariance(Sigma, final, prior.consensus_strength or 1.0)
    posterior = PopulationPosterior(mu, C, Sigma, people, sites)
    objective = final.evidence + prior.log_density(mu, Sigma, scale)
    return HierarchicalFit(posterior, scale, threshold, final.evidence, objective, report)


def sites_tolerance(tolerance: float) -> float:
    """How still sites must stand while the prior moves, in noise units of a margin."""
    return float(np.clip(_SITES * tolerance, _TIGHTEST, _LOOSEST))


def consensus_covariance(Sigma: FloatArray, found: Expectation, strength: float) -> FloatArray:
    """Posterior covariance (κ Σ⁻¹ + H)⁻¹ of μ with Σ held, of which no inverse is taken.

    Where the prior of μ is flat, an item without answers would have no finite variance: callers say κ = 1 then.
    """
    L = factorise(Sigma).lower
    half = factorise(strength * np.eye(len(L)) + symmetrise(L.T @ found.H @ L)).solve_lower(L.T)
    return symmetrise(half.T @ half)
