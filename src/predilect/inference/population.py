"""Fit the population model: consensus m, population covariance Σ and tie threshold δ by maximising J.

    J = Σ_u log Z_u - ½ ν₀ (log|Σ| + s₀ tr(K₀ Σ⁻¹)) - ½ mᵀ (s_t K₀)⁻¹ m          (population.md section 4)

A few closed-form steps (:mod:`predilect.inference.maximisation`) find the right region and, with it, the metric of the
problem; L-BFGS in coordinates whitened by them does the rest. Its line search accepts a step only if J rises, which is
the guard that plain over-relaxation needs, and it takes a small fraction of EM's passes (docs/population.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import Bounds, minimize

from predilect.covariance.dense import Factor, factorise, symmetrise
from predilect.inference.expectation import Expectation, expectation
from predilect.inference.maximisation import consensus_step, covariance_step, threshold_step
from predilect.inference.prior import FeatureSpace, Hyperparameters
from predilect.inference.report import Report
from predilect.likelihoods.probit import threshold_for_tie_share
from predilect.posteriors.people import People, Sites

__all__ = ["PopulationPrior", "PopulationState", "fit_population", "settle"]

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[int, float], None]

_MOST_HISTORY = 20  # L-BFGS pairs; fewer where they would take more than _HISTORY_FLOATS
_HISTORY_FLOATS = 4e7
_WINDOW = 5  # the rise of J is judged over so many iterations, since single ones may stall
_SITE_TOLERANCE = 0.01  # a second sweep of a person only where the first one still moved a margin by more
_LARGEST_LOG_MOVE = 3.0  # of δ, and of a standard deviation along a factor of Σ, before L-BFGS starts again
_LARGEST_MOVE_OF_M = 100.0  # in posterior standard deviations
_MOST_SETTLING_SWEEPS = 100
_SMALLEST_FIRST_SCALE = 0.5


@dataclass(frozen=True, slots=True)
class PopulationPrior:
    """What is believed before any answer.

    Attributes
    ----------
    K : array of float, shape (n_items, n_items)
        K₀, how alike items are; unit diagonal.
    strength : float
        ν₀, the weight of the prior of Σ, in people.
    scale : float
        s₀, prior variance of a person's utility about the consensus.
    consensus_scale : float
        s_t, prior variance of a consensus utility.
    K_consensus : array of float, shape (n_items, n_items), optional
        K_t; K₀ unless given.
    """

    K: FloatArray
    strength: float
    scale: float
    consensus_scale: float
    K_consensus: FloatArray | None = None

    @classmethod
    def of(cls, h: Hyperparameters, space: FeatureSpace) -> PopulationPrior:
        """The prior that hyper-parameters and features make."""
        K = space.covariance(h.feature_weight, h.length_scale)
        shared = h.consensus_weight == h.feature_weight
        K_t = None if shared else space.covariance(h.consensus_weight, h.length_scale)
        return cls(K, h.strength, h.scale, h.consensus_scale, K_t)


@dataclass(frozen=True, slots=True)
class PopulationState:
    """A fitted population.

    Attributes
    ----------
    m : array of float, shape (n_items,)
        Consensus.
    Sigma : array of float, shape (n_items, n_items)
        Population covariance.
    C_m : array of float, shape (n_items, n_items)
        Posterior covariance of the consensus.
    delta : float
        Tie threshold; 0 if there are no ties.
    sites : Sites
        Message of each answer.
    evidence, objective : float
        Σ log Z_u and J, in nats.
    report : Report
        How the iteration went.
    """

    m: FloatArray
    Sigma: FloatArray
    C_m: FloatArray
    delta: float
    sites: Sites
    evidence: float
    objective: float
    report: Report


@dataclass(slots=True)
class _Point:
    """Parameters of the model."""

    m: FloatArray
    Sigma: FloatArray
    delta: float


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
    """Maximise J over m, Σ and, where there are ties, δ.

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
    about 3 n_items³ operations; memory about 12 n_items² floats and L-BFGS's history.
    """
    began = time.perf_counter()
    learn_delta = delta is None and bool(np.any(people.outcome == 0))
    search = _Search(people, prior, executor, progress, window)
    sites = Sites.flat(people.n_rows) if start is None else start.sites.copy()
    start = start or population
    if delta is None and learn_delta:
        share = float(people.weight[people.outcome == 0].sum()) / people.n_answers
        # A tie share read off as if margins were 0; the steps below correct it.
        delta = start.delta if start and start.delta > 0.0 else threshold_for_tie_share(share)
    if start is None:
        # Σ shrinks in a few passes where it must, but grows slowly: do not start from a tiny prior.
        first = max(prior.scale, _SMALLEST_FIRST_SCALE)
        point = _Point(np.zeros(people.n_items), first * prior.K, delta or 0.0)
    else:
        point = _Point(start.m, start.Sigma, delta or 0.0)
    search.sites = sites
    point, C_m = search.closed_form(point, n_closed_form, learn_delta)
    residual, again = math.inf, True
    while again and search.passes < max_passes:
        point, residual, again = search.lbfgs(point, C_m, learn_delta, tolerance * people.n_answers, max_passes)
        if again:
            point, C_m = search.closed_form(point, 0, learn_delta)
    final = settle(people, sites, point.Sigma, point.m, point.delta, tolerance=site_tolerance, executor=executor)
    search.passes += 1
    _, C_m = consensus_step(point.m, search.precision, final)
    residual /= people.n_answers
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
    objective = final.evidence + search.log_prior(point.m, factorise(point.Sigma))
    return PopulationState(point.m, point.Sigma, C_m, point.delta, sites, final.evidence, objective, report)


def settle(
    people: People,
    sites: Sites,
    Sigma: FloatArray,
    m: FloatArray,
    delta: float,
    *,
    tolerance: float = 1e-9,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """Sweep, with the population held, until every person's sites stand still; sites are updated in place."""
    return expectation(
        people, sites, Sigma, m, delta, n_sweeps=_MOST_SETTLING_SWEEPS, tolerance=tolerance, executor=executor
    )


class _Search:
    """The two phases of the search, with what they share: prior factors, sites, and the count of passes."""

    def __init__(
        self,
        people: People,
        prior: PopulationPrior,
        executor: ThreadPoolExecutor | None,
        progress: Progress | None,
        window: int,
    ) -> None:
        self.people = people
        self.prior = prior
        self.executor = executor
        self.progress = progress
        factor_K = factorise(prior.K)
        factor_t = factor_K if prior.K_consensus is None else factorise(prior.K_consensus)
        self.jitter = max(factor_K.jitter, factor_t.jitter)
        self.precision = factor_t.inverse() / prior.consensus_scale
        self.root = math.sqrt(prior.scale) * factor_K.lower  # of s₀ K₀
        self.sites = Sites.flat(0)
        self.passes = 0
        self.site_tolerance = _SITE_TOLERANCE
        self.window = window

    def evaluate(self, point: _Point, n_sweeps: int = 2) -> Expectation:
        self.passes += 1
        return expectation(
            self.people, self.sites, point.Sigma, point.m, point.delta, n_sweeps=n_sweeps,
            tolerance=self.site_tolerance, executor=self.executor,
        )  # fmt: skip

    def log_prior(self, m: FloatArray, factor: Factor) -> float:
        spread = factor.solve_lower(self.root)
        return float(
            -0.5 * self.prior.strength * (factor.log_det() + np.vdot(spread, spread)) - 0.5 * m @ self.precision @ m
        )

    def closed_form(self, point: _Point, n_steps: int, learn_delta: bool) -> tuple[_Point, FloatArray]:
        """The M step of population.md section 4, over-relaxed by 2; returns the point and the covariance of m."""
        current = self.evaluate(point, n_sweeps=3)
        for _ in range(n_steps):
            m, _ = consensus_step(point.m, self.precision, current)
            Sigma = covariance_step(
                point.Sigma,
                current,
                self.people.n_active,
                self.prior.scale * self.prior.K,
                self.prior.strength,
                power=2.0,
            )
            delta = threshold_step(point.delta, current) if learn_delta else point.delta
            point = _Point(m, Sigma, delta)
            current = self.evaluate(point)
            if self.progress:
                self.progress(self.passes, math.nan)
        _, C_m = consensus_step(point.m, self.precision, current)
        return point, C_m

    def lbfgs(
        self, start: _Point, C_m: FloatArray, learn_delta: bool, tolerance: float, max_passes: int
    ) -> tuple[_Point, float, bool]:
        """Maximise J from ``start`` in coordinates whitened there; the point, J's last rise, and whether to go on."""
        n = self.people.n_items
        L = factorise(start.Sigma).lower
        T = factorise(C_m).lower
        root = solve_triangular(L, self.root, lower=True, check_finite=False)  # of s₀ K₀, whitened
        nu = self.prior.strength
        tril = np.flatnonzero(np.tri(n, dtype=bool))  # flat positions: far quicker than pairs of indices
        eye = np.arange(n)
        # With these scales the Hessian of J is about 1 in every coordinate that the answers determine well.
        M_scale = 1.0 / math.sqrt(self.people.n_active + nu)
        theta_scale = 1.0 / math.sqrt(self.people.n_answers) if learn_delta else 0.0
        fixed = 2.0 * nu * float(np.log(np.diagonal(L)).sum())

        def unpack(x: FloatArray) -> tuple[_Point, FloatArray, FloatArray]:
            M = np.zeros((n, n))
            M.ravel()[tril] = M_scale * x[n:-1]
            M[eye, eye] = np.exp(M[eye, eye])
            A = L @ M
            delta = start.delta * math.exp(theta_scale * x[-1])
            return _Point(start.m + T @ x[:n], symmetrise(A @ A.T), delta), M, A

        def negative_objective(x: FloatArray) -> tuple[float, FloatArray]:
            point, M, A = unpack(x)
            current = self.evaluate(point)
            Y = solve_triangular(M, root, lower=True, check_finite=False)
            value = (
                current.evidence
                - nu * float(np.log(M[eye, eye]).sum())
                - 0.5 * (fixed + nu * float(np.vdot(Y, Y)) + float(point.m @ self.precision @ point.m))
            )
            G = L.T @ (current.D @ A)
            G += nu * solve_triangular(M, Y @ Y.T, lower=True, trans="T", check_finite=False)
            G[eye, eye] = G[eye, eye] * M[eye, eye] - nu
            gradient = np.empty_like(x)
            gradient[:n] = T.T @ (current.r - self.precision @ point.m)
            np.multiply(M_scale, G.ravel()[tril], out=gradient[n:-1])
            gradient[-1] = theta_scale * point.delta * current.slope_delta
            if self.progress:
                self.progress(self.passes, value)
            return -value, -gradient

        values: list[float] = []
        residual = math.inf

        def stop(intermediate_result: object) -> None:
            nonlocal residual
            values.append(-float(intermediate_result.fun))  # type: ignore[attr-defined]
            if len(values) > self.window:
                residual = values[-1] - values[-1 - self.window]
                if residual <= tolerance:
                    raise StopIteration

        x0 = np.zeros(n + len(tril) + 1)
        # A line search that leaps farther finds overflow; if the maximum lies beyond, the caller starts again there.
        reach = np.full(len(x0), _LARGEST_LOG_MOVE / M_scale)
        reach[:n] = _LARGEST_MOVE_OF_M
        reach[-1] = _LARGEST_LOG_MOVE / theta_scale if learn_delta else 1.0
        history = int(np.clip(_HISTORY_FLOATS // (2 * len(x0)), 4, _MOST_HISTORY))
        result = minimize(
            negative_objective, x0, jac=True, method="L-BFGS-B", callback=stop, bounds=Bounds(-reach, reach),
            options={"maxfun": max(1, max_passes - self.passes - 1), "maxiter": max_passes, "maxcor": history,
                     "ftol": 0.0, "gtol": 1e-10 * self.people.n_answers},
        )  # fmt: skip
        if result.success:  # the gradient vanished: nothing is left to gain
            residual = min(residual, tolerance)
        elif "ABNORMAL" in str(result.message):
            # No step along the gradient raised J: either there is nothing left to gain, or J was blurred by sites that
            # lag behind. The caller finds out by starting again with tighter sites.
            residual = -float(result.fun) - values[0] if values else 0.0
            self.site_tolerance *= 0.1
            return unpack(result.x)[0], residual, residual > tolerance
        return unpack(result.x)[0], residual, bool(np.any(np.abs(result.x) >= 0.999 * reach))
