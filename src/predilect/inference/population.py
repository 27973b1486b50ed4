"""Fit the population model: consensus m, population covariance Σ and tie threshold δ by maximising J.

    J = Σ_u log Z_u - ½ ν₀ (log|Σ| + s₀ tr(K₀ Σ⁻¹)) - ½ mᵀ (s_t K₀)⁻¹ m          (population.md section 4)

A few closed-form steps (:mod:`predilect.inference.maximisation`) find the right region and, with it, the metric of the
problem; L-BFGS in coordinates whitened by them does the rest (:mod:`predilect.inference.search`). Its line search
accepts a step only if J rises, which is the guard that plain over-relaxation needs, and it takes a small fraction of
EM's passes (docs/population.md).
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.inference.expectation import Expectation, expectation
from predilect.inference.population_prior import PopulationPrior
from predilect.inference.report import Report
from predilect.inference.search import Point, Progress, Search
from predilect.inference.thresholds import thresholds_at_rest
from predilect.likelihoods.probit import threshold_for_tie_share
from predilect.posteriors.basis import Basis, Effects
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior

__all__ = ["MOST_SETTLING_SWEEPS", "PopulationPrior", "PopulationState", "fit_population", "settle", "settle_all"]

FloatArray = npt.NDArray[np.float64]

_WINDOW = 5  # the rise of J is judged over so many iterations, since single ones may stall
MOST_SETTLING_SWEEPS = 100


@dataclass(frozen=True, slots=True)
class PopulationState:
    """A fitted population.

    Attributes
    ----------
    m : array of float, shape (M,)
        Consensus: of the items, or of the functions of the basis.
    Sigma, C_m : arrays of float, shape (M, M)
        Population covariance; posterior covariance of the consensus.
    delta : float
        Tie threshold; 0 if there are no ties.
    sites : Sites
        Message of each answer.
    evidence, objective : float
        Σ log Z_u and J, in nats.
    report : Report
        How the iteration went.
    offset, offset_variance : arrays of float, shape (n_items,)
        Posterior of what the consensus gives each item to itself; empty without it.
    own_scale : float
        Variance over people of what an item has to itself, per unit of its share.
    B, C_B : arrays of float, shapes (M, n_traits) and (M, M)
        Effects of traits of people, and the covariance of each of them.
    log_tie_factor, tie_information : arrays of float, shape (n_users,)
        Logarithm of what the tie threshold is multiplied by for each person, and what the person's answers say about
        it, without the prior; empty where all share one.
    """

    m: FloatArray
    Sigma: FloatArray
    C_m: FloatArray
    delta: float
    sites: Sites
    evidence: float
    objective: float
    report: Report
    offset: FloatArray
    offset_variance: FloatArray
    own_scale: float
    B: FloatArray
    C_B: FloatArray
    log_tie_factor: FloatArray
    tie_information: FloatArray

    def posterior(self, people: People, prior: PopulationPrior) -> PopulationPosterior:
        """What the fit says of everybody."""
        basis = None
        if prior.Phi is not None:
            basis = Basis(
                prior.Phi, self.own_scale * prior.own_share, self.offset, self.offset_variance, self.own_scale
            )
        effects = Effects(self.B, self.C_B) if self.B.shape[1] else None
        people = self.people_with_ties(people)
        return PopulationPosterior(self.m, self.C_m, self.Sigma, people, self.sites, basis, effects)

    def people_with_ties(self, people: People) -> People:
        """The people of the fit with their own tie thresholds."""
        return replace(people, tie_factor=np.exp(self.log_tie_factor)) if len(self.log_tie_factor) else people


def fit_population(
    people: People,
    prior: PopulationPrior,
    *,
    delta: float | None = None,
    start: PopulationState | None = None,
    population: PopulationState | None = None,
    tolerance: float = 1e-5,
    max_passes: int = 300,
    n_closed_form: int = 3,
    site_tolerance: float = 1e-9,
    window: int = _WINDOW,
    executor: ThreadPoolExecutor | None = None,
    progress: Progress | None = None,
) -> PopulationState:
    """Maximise J over m, Σ and, where there are ties, δ; with a basis also over what items have to themselves.

    Where the prior has a spread of thresholds, each person's own factor of δ is maximised over too.

    Parameters
    ----------
    people : People
        The answers.
    prior : PopulationPrior
        Prior of Σ and m.
    delta : float, optional
        Tie threshold to hold fixed. By default it is learned where any answer is a tie, and 0 otherwise.
    start : PopulationState, optional
        Where to start, from a fit to the same answers under another prior.
    population : PopulationState, optional
        Where to start, from a fit to other answers on the same items: its sites are not used.
    tolerance : float, default 1e-5
        Stop when J rose by less than this, in nats an answer, over `window` iterations.
    max_passes : int, default 300
        Most passes over the answers.
    n_closed_form : int, default 3
        Closed-form steps before L-BFGS.
    site_tolerance : float, default 1e-9
        At the end, sites are swept until no margin moves by more, in units of its noise.
    window : int, default 5
        The iterations over which the rise of J is judged.
    executor : ThreadPoolExecutor, optional
        Threads for the shards of people.
    progress : callable, optional
        Called with (passes so far, J) after each pass.

    Returns
    -------
    state : PopulationState
        With sites at their fixed point for the returned m, Σ and δ.

    Notes
    -----
    population.md section 4. **Differs from the paper**: L-BFGS on (L⁻¹ m, the Cholesky factor of the whitened Σ, log δ)
    replaces over-relaxed EM. Each pass costs one E step (:func:`~predilect.inference.expectation.expectation`) and
    about 3 M³ operations; memory about 12 M² + 5 n_items floats and L-BFGS's history.
    """
    began = time.perf_counter()
    learn_delta = delta is None and bool(np.any(people.outcome == 0))
    search = Search(people, prior, executor, progress, window, learn_delta)
    sites = Sites.flat(people.n_rows) if start is None else start.sites.copy()
    start = start or population
    if delta is None and learn_delta:
        share = float(people.weight[people.outcome == 0].sum()) / people.n_answers
        # A tie share read off as if margins were 0; the steps below correct it.
        delta = start.delta if start and start.delta > 0.0 else threshold_for_tie_share(share)
    point = search.first_point(delta or 0.0)
    if start is not None:
        # What the other fit does not know, be it other items or traits, starts from nothing.
        offset = start.offset if len(start.offset) == len(point.offset) else point.offset
        B = start.B if start.B.shape == point.B.shape else point.B
        own_scale = start.own_scale if len(point.offset) else point.own_scale
        same = len(start.log_tie_factor) == len(point.log_tie_factor) and start is not population
        log_tie_factor = start.log_tie_factor if same else point.log_tie_factor
        point = Point(start.m, start.Sigma, delta or 0.0, offset, own_scale, B, log_tie_factor)
    search.sites = sites
    point, residual, again = search.fixed_point(point, tolerance * people.n_answers, max_passes)
    if again:
        point, metric = search.closed_form(point, n_closed_form if math.isinf(residual) else 0)
    while again and search.passes < max_passes:
        point, residual, again = search.lbfgs(point, metric, tolerance * people.n_answers, max_passes)
        if again:
            point, metric = search.closed_form(point, 0)
    law = search.law(point)
    log_tie_factor, final, _ = settle_all(
        people, sites, law, point.delta, prior.tie_spread if search.learn_ties else 0.0, point.log_tie_factor,
        tolerance=site_tolerance, executor=executor,
    )  # fmt: skip
    point = replace(point, log_tie_factor=log_tie_factor)
    search.passes += 1
    metric = search.metric(point, final)
    residual = residual / people.n_answers if final.is_sound else math.inf
    report = Report(
        method="population EP",
        iterations=search.passes,
        residual=residual,
        tolerance=tolerance,
        converged=residual <= tolerance,
        jitter=search.jitter,
        seconds=time.perf_counter() - began,
        unit="nats an answer",
        advice="allow more passes (max_passes=...), or loosen the tolerance",
    )
    objective = final.evidence + search.log_prior(point)
    return PopulationState(
        point.m, point.Sigma, metric.C_m, point.delta, sites, final.evidence, objective, report, point.offset,
        metric.offset_variance, point.own_scale, point.B, metric.C_B, point.log_tie_factor, metric.tie_information,
    )  # fmt: skip


def settle_all(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    spread: float,
    log_tie_factor: FloatArray,
    *,
    tolerance: float = 1e-9,
    executor: ThreadPoolExecutor | None = None,
) -> tuple[FloatArray, Expectation, float]:
    """The same with people's own tie thresholds, which come to rest too; they are left alone if ``spread`` is 0.

    Returns
    -------
    log_tie_factor, found, last
        Thresholds, sums over people, and the step of a threshold that was left.
    """
    found: Expectation | None = None
    last = 0.0

    def evaluate(theta: FloatArray) -> FloatArray:
        nonlocal found
        own = replace(people, tie_factor=np.exp(theta)) if spread else people
        found = settle(own, sites, law, delta, tolerance=tolerance, executor=executor)
        return found.ties

    if spread:
        log_tie_factor, last = thresholds_at_rest(evaluate, log_tie_factor, spread, tolerance)
    else:
        evaluate(log_tie_factor)
    assert found is not None
    return log_tie_factor, found, last


def settle(
    people: People,
    sites: Sites,
    law: Law,
    delta: float,
    *,
    tolerance: float = 1e-9,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """Sweep, with the population held, until every person's sites stand still; sites are updated in place."""
    return expectation(people, sites, law, delta, n_sweeps=MOST_SETTLING_SWEEPS, tolerance=tolerance, executor=executor)
