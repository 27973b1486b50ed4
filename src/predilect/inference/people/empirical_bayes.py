"""Hierarchical Gaussian process, f_u ~ N(μ, Σ): closed-form M steps, and empirical Bayes by EM."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import Factor, factorise, sandwiched, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.calibration import RANGES
from predilect.inference.likelihoods.probit import moved_threshold, starting_threshold
from predilect.inference.people.expectation import Expectation, converge
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from predilect.inference.people.posterior import PopulationPosterior

_LARGEST_LOG_STEP = 1.0
_MOST_SPREAD_STEPS, _SPREAD_TOLERANCE, _SMALLEST_SPREAD = 500, 1e-4, 1e-3
_MOST_RELIABLE = 1.0 - 1e-12  # of the variance of an effect, by a person's answers
_LARGEST_SPREAD = RANGES["tie_spread"][1]


def consensus_mode(m: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """Consensus mode: the first result of :func:`consensus_step`, without the covariance; M³/3 operations."""
    return consensus_factor(m, precision, current)[0]


def consensus_step(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of J in m, sites fixed: C_m = ((s_t K_t)⁻¹ + H)⁻¹, m' = C_m (r + H m); M³ operations."""
    m_new, factor = consensus_factor(m, precision, current)
    return m_new, factor.inverse()


def consensus_factor(m: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, Factor]:
    """Consensus mode, and the factor of its precision C_m⁻¹."""
    factor = factorise(precision + current.H)
    return factor.solve(current.r + current.H @ m), factor


def covariance_step(
    Sigma: FloatArray,
    current: Expectation,
    n_users: int,
    prior_mean: FloatArray,
    strength: float,
    *,
    power: float = 1.0,
) -> FloatArray:
    """Population covariance Σ' = (U Σ + Σ (N - H) Σ + ν₀ s₀ K₀) / (U + ν₀), over-relaxed along the geodesic.

    ``prior_mean`` is s₀ K₀, ``strength`` ν₀; ``power`` 1 is the EM step. Positive definite for every power. 4 M³
    operations for 1, 6 for 2, and some 15 for others.
    """
    moment = n_users * Sigma + sandwiched(Sigma, current.D)
    new = symmetrise((moment + strength * prior_mean) / (n_users + strength))
    if power == 1.0:
        return new
    factor = factorise(Sigma)
    if power == 2.0:  # Σ' Σ⁻¹ Σ', which takes no eigenvectors
        half = factor.solve_lower(new)
        return symmetrise(half.T @ half)
    whitened = factor.solve_lower(factor.solve_lower(new).T)
    values, vectors = eigh(symmetrise(whitened), check_finite=False)
    root = factor.lower @ vectors
    return symmetrise((root * values**power) @ root.T)


def effects_step(B: FloatArray, precision: FloatArray, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of the trait effects B (M, n_traits), and the covariance of each; ``precision`` is (s_b K_t)⁻¹.

    Traits have mean 0, variance 1 and no correlation over people, and a person's information is taken not to depend on
    them: then Σ_u x_uj x_uk H_u is H for j = k and 0 otherwise.
    """
    factor = factorise(precision + current.H)
    return factor.solve(current.r_traits + current.H @ B), factor.inverse()


def offset_step(offset: FloatArray, precision: FloatArray, current: Expectation) -> FloatArray:
    """Item-specific residuals of the consensus, one step; shape (n_items,), empty as given.

    Twice the diagonal bounds the information of one answer from above, so that the step, unlike a Newton step on the
    diagonal only, does not overshoot where two items are compared. It is no bound on that of several answers of one
    person, but no crowd was found in which repeated steps fail to converge.
    """
    if not len(offset):
        return offset
    return np.asarray(offset + (current.r_items - precision * offset) / (precision + 2.0 * current.own_H))


def own_scale_step(
    own_scale: float, share: FloatArray, current: Expectation, n_own: int, scale: float, strength: float
) -> float:
    """EM step of the variance over people of item-specific residuals, per unit of their share (n_items,).

    ``n_own`` counts the (person, item) pairs that have one; ``scale``, ``strength``: s₀ and ν₀, the prior of Σ in 1-D.
    """
    if not len(share):
        return own_scale
    scatter = n_own * own_scale + own_scale**2 * float(share @ current.own_D)
    return (scatter + strength * scale) / (n_own + strength)


def threshold_step(delta: float, current: Expectation) -> float:
    """Newton step of the evidence in log δ, cavities held, at most a factor e."""
    return moved_threshold(delta, current.slope_delta, current.curvature_delta, _LARGEST_LOG_STEP)


def ties_step(log_factor: FloatArray, spread: float, current: Expectation) -> tuple[FloatArray, FloatArray]:
    """Newton step of people's own thresholds, log δ_u = log δ + θ_u, θ_u ~ N(0, spread²), with the cavities held.

    Returns the new θ (n_users,), at most a factor e away, and its information from the answers, prior excluded.
    """
    slope, curvature = current.ties.T
    information = np.maximum(-curvature, 0.0)
    step = (slope - log_factor / spread**2) / (information + spread**-2)
    return log_factor + np.clip(step, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP), information


def of_utilities(law: Law, people: People) -> FloatArray:
    """Information about the logarithm θ of consistency in utilities N(e^θ m, e^2θ Σ) of n items: mᵀΣ⁻¹m + 2 n.

    (n_users,), by everybody's own items. Answers about them tell no more, however many copies of each there are.
    """
    m = np.asarray(np.linalg.lstsq(law.Phi, law.mean)[0] if law.has_basis else law.mean, dtype=float)
    return np.asarray(float(m @ factorise(law.Sigma).solve(m)) + 2.0 * np.diff(people.item_ptr))


def consistency_step(
    log_consistency: FloatArray, spread: float, current: Expectation, most: FloatArray
) -> FloatArray:  # fmt: skip
    """Scoring step of people's consistency, log a_u = θ_u ~ N(0, spread²), at most a factor √e; θ, (n_users,).

    ``most``: information of :func:`of_utilities`.
    """
    slope, information = current.care.T
    step = (slope - log_consistency / spread**2) / (np.minimum(information, most) + spread**-2)
    return np.asarray(log_consistency + np.clip(step, -0.5 * _LARGEST_LOG_STEP, 0.5 * _LARGEST_LOG_STEP))


def tie_spread_of(log_factor: FloatArray, information: FloatArray, spread: float) -> float:
    """Empirical-Bayes σ of people's thresholds by EM, with a Gaussian likelihood of each θ_u about its mode.

    The modes ``log_factor`` (n,) were found under N(0, ``spread``²); ``information`` excludes the prior.
    """
    linear = log_factor * (information + spread**-2)  # of the likelihood without the prior
    for _ in range(_MOST_SPREAD_STEPS):
        variance = 1.0 / (information + spread**-2)
        new = math.sqrt(float(((linear * variance) ** 2 + variance).sum()) / len(linear))
        done = abs(new - spread) < _SPREAD_TOLERANCE * spread
        spread = min(max(new, _SMALLEST_SPREAD), _LARGEST_SPREAD)
        if done:
            break
    return spread


def effect_spreads_of(own_effects: FloatArray, spread: tuple[float, ...]) -> tuple[float, ...]:
    """Empirical-Bayes spreads of people's own effects of covariates by EM, what answers say of each taken for Gaussian.

    ``own_effects`` (n, 2 n_covariates) were found under ``spread``: by turns mean and 1 less the variance, in units of
    it. Somebody who says nothing about a covariate has no part in its spread.
    """
    found = []
    for mean, reliability, old in zip(own_effects[:, ::2].T, own_effects[:, 1::2].T, spread, strict=True):
        reliability = np.clip(reliability, 0.0, _MOST_RELIABLE)
        seen = reliability > 0.0
        information = reliability[seen] / ((1.0 - reliability[seen]) * old**2)
        found.append(tie_spread_of(old * mean[seen], information, old) if seen.any() else _SMALLEST_SPREAD)
    return tuple(found)


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
    return Moments(n_users, Sigma @ current.r, symmetrise(n_users * Sigma + sandwiched(Sigma, current.D)))


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


class Population(NamedTuple):
    """Population distribution N(``mu``, ``Sigma``) that EM found, with sites and expectations there."""

    mu: FloatArray
    Sigma: FloatArray
    sites: Sites
    delta: float
    expectation: Expectation
    report: Report


def em_over_people(
    people: People,
    Sigma: FloatArray,
    maximum: Callable[[FloatArray, Moments], tuple[FloatArray, FloatArray]],
    log_prior: Callable[[FloatArray, FloatArray], float],
    *,
    delta: float | None = None,
    tolerance: float = 1e-5,
    max_iter: int = 200,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> Population:
    """EM for μ, from 0, Σ and, where there are ties, δ, until the objective rises by less than ``tolerance``.

    ``maximum(mu, moments)`` is the M step, ``log_prior(mu, Sigma)`` the prior's part of the objective in nats;
    ``tolerance`` is in nats an answer. Sites are run to convergence in every E step.
    """
    began = time.perf_counter()
    learn_delta = delta is None and bool(np.any(people.outcome == 0))
    threshold = starting_threshold(people.outcome, people.weight, delta)
    mu, sites = np.zeros(people.n_items), Sites.flat(people.n_rows)
    loose = sites_tolerance(tolerance)
    last, rise, iterations = -math.inf, math.inf, 0
    while True:
        found = converge(people, sites, Law(Sigma, mu), threshold, tolerance=loose, executor=executor)
        objective = found.evidence + log_prior(mu, Sigma)
        rise, last = (objective - last) / people.n_answers, objective
        if abs(rise) <= tolerance or iterations == max_iter:
            break
        iterations += 1
        if progress:
            progress(iterations)
        mu, Sigma = maximum(mu, moments(found, Sigma, people.n_active))
        if learn_delta:
            threshold = threshold_step(threshold, found)
    final = converge(people, sites, Law(Sigma, mu), threshold, executor=executor)
    report = Report(
        method="EM over people", iterations=iterations, residual=abs(rise), tolerance=tolerance,
        converged=abs(rise) <= tolerance and final.is_sound, jitter=0.0, seconds=time.perf_counter() - began,
        unit="nats an answer",
        advice=either("look for extreme weights", "allow more iterations (max_iter=...), or loosen the tolerance"),
    )  # fmt: skip
    return Population(mu, Sigma, sites, threshold, final, report)


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
    people: People, prior: GaussianPrior, *, scale: float, learn_scale: bool = False, **options: Any
) -> HierarchicalFit:
    """EM for μ and Σ under a prior at its ``scale``, learned or not; ``options`` as of :func:`em_over_people`.

    baselines.md B3 (Birlutiu, Groot and Heskes), in the space of utilities, which gives the same likelihood as margins
    of pairs and needs no inverse. **Differs from the paper**: expectation propagation, run to convergence in every E
    step; the prior. An iteration takes Σ_u n_u min(n_u, k_u)² + k_u³ for n_u answers on k_u items, and some n_items³.
    """

    def maximum(mu: FloatArray, found: Moments) -> tuple[FloatArray, FloatArray]:
        nonlocal scale
        mu, Sigma = prior.maximum(mu, found, scale)
        if learn_scale:
            scale = prior.best_scale(Sigma)
        return mu, Sigma

    def log_prior(mu: FloatArray, Sigma: FloatArray) -> float:
        return prior.log_density(mu, Sigma, scale)

    found = em_over_people(people, scale * prior.K, maximum, log_prior, **options)
    mu, Sigma, final = found.mu, found.Sigma, found.expectation
    C = consensus_covariance(Sigma, final, prior.consensus_strength or 1.0)
    posterior = PopulationPosterior(mu, C, Sigma, people, found.sites)
    objective = final.evidence + log_prior(mu, Sigma)
    return HierarchicalFit(posterior, scale, found.delta, final.evidence, objective, found.report)


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


_CHORD = 0.1  # of the logarithm of a consistency


def information_of_consistency(
    people: People, sites: Sites, law: Law, delta: float, slope: FloatArray, *, tolerance: float,
    executor: ThreadPoolExecutor | None,
) -> FloatArray:  # fmt: skip
    """Information of people's answers about the logarithm of their consistency, (n_users,), by a chord.

    ``slope`` (n_users,) of their evidence where the sites are.
    """
    moved = replace(people, consistency=people.consistency * math.exp(_CHORD))
    further = converge(moved, sites.copy(), law, delta, tolerance=tolerance, executor=executor).care[:, 0]
    return np.maximum((slope - further) / _CHORD, 0.0)
