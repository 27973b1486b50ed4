"""Factor analysis with a process a person, f_u ~ N(μ, V Vᵀ + g K), by maximum likelihood."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import Factor, eigenpairs, symmetrise
from predilect.inference.hierarchical import Moments, consensus_covariance, moments, sites_tolerance
from predilect.inference.maximisation import threshold_step
from predilect.inference.population import settle
from predilect.inference.report import Report
from predilect.inference.threshold import starting_threshold
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior

__all__ = ["KhanFit", "best_factors", "fit_khan"]

FloatArray = npt.NDArray[np.float64]

_LEAST_SCALE = 1e-6  # of g: with as many factors as directions in which people differ it would be 0


@dataclass(frozen=True, slots=True)
class KhanFit:
    """Fitted factor analysis."""

    posterior: PopulationPosterior
    factors: FloatArray  # V, (n_items, n_factors), up to a rotation; columns by the variance they explain
    scale: float  # g
    delta: float
    evidence: float  # Σ_u log Z_u, in nats: what EM raises
    report: Report


def best_factors(
    found: Moments, root: Factor, n_factors: int, scale: float | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """M step of probabilistic principal component analysis: shift of μ (n_items,), V (n_items, n_factors), and g.

    ``root`` is L with K = L Lᵀ. With T = L⁻¹ (Σ_u E (f_u - μ')(f_u - μ')ᵀ / U) L⁻ᵀ = Q Λ Qᵀ (Tipping and Bishop 1999) g
    is the mean of the eigenvalues that are left out, V = L Q_C (Λ_C - g)^½. n_items³ operations.
    """
    shift = found.first / found.n_users
    half = root.solve_lower(found.about(shift) / found.n_users)
    values, vectors = eigenpairs(symmetrise(root.solve_lower(half.T)))
    if scale is None:
        scale = max(float(values[n_factors:].mean()), _LEAST_SCALE)
    size = np.sqrt(np.maximum(values[:n_factors] - scale, 0.0))
    return shift, root.lower @ (vectors[:, :n_factors] * size), scale


def fit_khan(
    people: People,
    root: Factor,
    n_factors: int,
    *,
    scale: float | None = None,
    delta: float | None = None,
    tolerance: float = 1e-5,
    max_iterations: int = 200,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> KhanFit:
    """EM for μ, V, g and, where there are ties, δ, starting at V = 0; at most n_items - 1 factors; K = root rootᵀ.

    baselines.md B7 (Khan, Ko and Seeger 2014). **Differs from the paper**: expectation propagation, and an M step that
    has integrated the weights w_u out. The paper's, which holds them at their posterior, climbs less in a step, and
    stays at V = 0. An iteration takes the time of the E step and some 15 n_items³ operations.
    """
    began = time.perf_counter()
    learn_delta = delta is None and bool(np.any(people.outcome == 0))
    threshold = starting_threshold(people.outcome, people.weight) if delta is None else delta
    K, n_items = root.lower @ root.lower.T, people.n_items
    n_factors = min(n_factors, n_items - 1)
    mu, V, g = np.zeros(n_items), np.zeros((n_items, n_factors)), 1.0 if scale is None else scale
    Sigma, sites = g * K, Sites.flat(people.n_rows)
    loose = sites_tolerance(tolerance)
    last, rise, iterations = -math.inf, math.inf, 0
    while True:
        found = settle(people, sites, Law(Sigma, mu), threshold, tolerance=loose, executor=executor)
        rise, last = (found.evidence - last) / people.n_answers, found.evidence
        if abs(rise) <= tolerance or iterations == max_iterations:
            break
        iterations += 1
        if progress:
            progress(iterations)
        shift, V, g = best_factors(moments(found, Sigma, people.n_active), root, n_factors, scale)
        mu, Sigma = mu + shift, symmetrise(V @ V.T + g * K)
        if learn_delta:
            threshold = threshold_step(threshold, found)
    final = settle(people, sites, Law(Sigma, mu), threshold, executor=executor)
    report = Report(
        method="EM over people", iterations=iterations, residual=abs(rise), tolerance=tolerance,
        converged=abs(rise) <= tolerance and final.is_sound, jitter=root.jitter, seconds=time.perf_counter() - began,
        unit="nats an answer", advice="allow more iterations (max_iterations=...), or loosen the tolerance",
    )  # fmt: skip
    posterior = PopulationPosterior(mu, consensus_covariance(Sigma, final, 1.0), Sigma, people, sites)
    return KhanFit(posterior, V, g, threshold, final.evidence, report)
