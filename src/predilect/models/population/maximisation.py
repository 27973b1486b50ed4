"""Maximisation of J for the population model: closed-form EM steps, then L-BFGS in whitened coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import (
    eigenpairs,
    factorise,
    leading_eigenpairs,
    lower_times,
    over_lower,
    solve_lower,
    symmetrise,
    times_lower,
)
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.covariates import CovariateInformation, covariate_information
from predilect.inference.people.empirical_bayes import (
    consensus_mode,
    consistency_step,
    covariance_step,
    effects_step,
    of_utilities,
    offset_step,
    own_scale_step,
    threshold_step,
    ties_step,
)
from predilect.inference.people.engaged import with_clicks
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, with_own
from predilect.models.population.lbfgs import ascent
from predilect.models.population.prior import PopulationPrior, first_scale

Progress = Callable[[int, float], None]

_MOST_HISTORY = 20  # L-BFGS pairs; fewer where they would take more than _HISTORY_FLOATS
_HISTORY_FLOATS = 4e7
# A second sweep of a person only where the first one still moved a margin by more; and where J is as exact as it gets.
_SITE_TOLERANCE, _EXACT_SITES = 0.01, 1e-5
_RIGID = 100.0  # times as strong as the people: Σ is the prior's in a step
_FUNCTIONS_FOR_FIXED_POINT = 100  # below, a pass costs little, and L-BFGS has the last word
_WIDER, _SETTLED = 4.0, 5  # scales tried where a search has ended, and sweeps of the sites before J is read
_SLOW_STEPS = 2  # the first may come from a start that another prior left far off
_LARGEST_LOG_MOVE = 3.0  # of δ, and of a standard deviation along a factor of Σ, before L-BFGS starts again
_LARGEST_MOVE = 100.0  # of the rest, in posterior standard deviations
_NEARLY = 0.999  # of either, where it does
_FLAT = 1e-10  # slope of J, in nats an answer and coordinate, which is 0 up to rounding
_OWN_SHARE = 0.05  # of the prior variance of utilities, what items keep to themselves where Σ has a few directions
_TINY = 1e-300
_LEAST_PRIOR = 0.05  # of the prior's variance in units of Σ, as its weight on a coordinate


@dataclass(frozen=True, slots=True)
class Point:
    """Parameters of the model; see :class:`~predilect.models.population.fit.PopulationState`."""

    m: FloatArray
    Sigma: FloatArray
    delta: float
    offset: FloatArray
    own_scale: float
    B: FloatArray
    log_tie_factor: FloatArray
    log_consistency: FloatArray
    gamma: FloatArray


@dataclass(frozen=True, slots=True)
class Metric:
    """Posterior covariances of consensus, offsets and trait effects with the sites held."""

    C_m: FloatArray
    offset_variance: FloatArray
    C_B: FloatArray
    # of each person's answers about the logarithms of the own threshold and of the consistency, without the prior
    tie_information: FloatArray
    care_information: FloatArray
    # Of the effects of covariates, or less: what answers know of a person is not taken off.
    C_gamma: FloatArray


class Search:
    """State of the maximisation: prior factors, sites, and the count of passes."""

    def __init__(
        self,
        people: People,
        prior: PopulationPrior,
        executor: ThreadPoolExecutor | None,
        progress: Progress | None,
        window: int,
        learn_delta: bool,
    ) -> None:
        self.people = with_clicks(people, prior.click_rate)
        self.prior = prior
        self.executor = executor
        self.progress = progress
        self.window = window
        self.learn_delta = learn_delta
        # Without ties and grades thresholds are not identified.
        with_cuts = people.thresholds is not None or bool(np.any(people.outcome == 0))
        self.learn_ties = prior.tie_spread > 0.0 and with_cuts
        self.learn_care = prior.consistency_spread > 0.0
        self.gamma_precision = prior.precision_of_effects
        self.directions = prior.directions or 0
        factor_K = factorise(prior.K)
        factor_t = factor_K if prior.K_consensus is None else factorise(prior.K_consensus)
        self.jitter = max(factor_K.jitter, factor_t.jitter)
        inverse = factor_t.inverse()
        self.inverse_K = np.zeros((0, 0))
        if self.directions:
            self.inverse_K = inverse if factor_t is factor_K else factor_K.inverse()
        self.precision = inverse / prior.consensus_variance
        self.trait_precision = inverse / prior.trait_scale
        self.offset_precision = 1.0 / (prior.consensus_variance * prior.own_share)
        self.root_of_K = factor_K.lower
        self.root = math.sqrt(prior.variance) * self.root_of_K  # of s₀ K₀
        self.sites = Sites.flat(0)
        self.passes = 0
        self.site_tolerance = _SITE_TOLERANCE
        few = prior.n_functions < _FUNCTIONS_FOR_FIXED_POINT or prior.Phi is not None
        # Whether Σ is (nearly) its prior's: an M step leaves at most the share U / (U + ν₀) of the way.
        times = prior.strength / max(people.n_active, 1)
        # Of many functions 1 % of the way is not worth the M³ operations of a step.
        self.shape_is_held = prior.directions is not None or (not few and times >= _RIGID)
        self.is_rigid = times >= (_RIGID if few else 1.0) if prior.directions is None else not self.directions
        self.own_variance = prior.variance * (_OWN_SHARE if self.directions else 1.0)
        self.variance_of_direction = (prior.variance - self.own_variance) / max(self.directions, 1)

    def first_point(self, delta: float) -> Point:
        """Starting point without an earlier fit."""
        first = first_scale(self.prior, self.people.n_active)
        M, n_own = self.prior.n_functions, len(self.prior.own_share)
        B = np.zeros((M, self.people.traits.shape[1]))
        # Without item-specific residuals their scale is not learned; a new item that has one gets the prior.
        own_scale = first if n_own else self.prior.variance
        log_tie_factor = np.zeros(self.people.n_users if self.learn_ties else 0)
        log_consistency = np.zeros(self.people.n_users if self.learn_care else 0)
        return Point(
            np.zeros(M), first * self.prior.K, delta, np.zeros(n_own), own_scale, B, log_tie_factor, log_consistency,
            np.zeros(self.people.patterns.shape[1]),
        )  # fmt: skip

    def law(self, point: Point) -> Law:
        """Population distribution at a point of the search."""
        Phi = self.prior.Phi
        if Phi is None:
            return Law(point.Sigma, point.m, shift=point.B)
        mean = Phi @ point.m
        if len(point.offset):
            mean += point.offset
        return Law(point.Sigma, mean, Phi, point.own_scale * self.prior.own_share, Phi @ point.B)

    def people_at(self, point: Point) -> People:
        """People with their own tie thresholds and consistency, and the effects of covariates."""
        spread = self.prior.covariate_spread
        return with_own(self.people, point.log_tie_factor, point.log_consistency, point.gamma, spread=spread)

    def evaluate(self, point: Point, n_sweeps: int = 2) -> Expectation:
        """E step: one pass over the answers; sites are updated in place."""
        self.passes += 1
        return expectation(
            self.people_at(point), self.sites, self.law(point), point.delta, n_sweeps=n_sweeps,
            tolerance=self.site_tolerance, executor=self.executor,
        )  # fmt: skip

    def log_prior(self, point: Point) -> float:
        """Log prior density: J without the evidence."""
        value = self._log_prior_of_covariance(point.Sigma) - 0.5 * float(point.m @ self.precision @ point.m)
        return value + self._log_prior_of_rest(point)

    def _log_prior_of_covariance(self, Sigma: FloatArray) -> float:
        """Log prior density of Σ, up to a constant."""
        if self.directions:
            squares = float(np.vdot(self.inverse_K, Sigma)) - self.own_variance * len(Sigma)
            return -0.5 * squares / self.variance_of_direction
        if self.shape_is_held:
            return 0.0
        factor = factorise(Sigma)
        spread = factor.solve_lower(self.root).T  # whose rows lie together, for the product
        return -0.5 * self.prior.strength * float(factor.log_det() + np.vdot(spread, spread))

    def _log_prior_of_rest(self, point: Point) -> float:
        """Log prior density of offsets, residual scale and trait effects."""
        value = -0.5 * float(point.offset**2 @ self.offset_precision)
        if len(point.offset):  # an inverse Wishart in one dimension
            value -= 0.5 * self.prior.strength * (math.log(point.own_scale) + self.prior.variance / point.own_scale)
        if point.B.size:
            value -= 0.5 * float(np.vdot(point.B, self.trait_precision @ point.B))
        if self.learn_ties:
            value -= 0.5 * float(point.log_tie_factor @ point.log_tie_factor) / self.prior.tie_spread**2
        if self.learn_care:
            value -= 0.5 * float(point.log_consistency @ point.log_consistency) / self.prior.consistency_spread**2
        value -= 0.5 * self.gamma_precision * float(point.gamma @ point.gamma)
        return value

    def metric(self, point: Point, current: Expectation) -> Metric:
        """Posterior covariances with the sites held."""
        C_m = factorise(self.precision + current.H).inverse()
        C_B = factorise(self.trait_precision + current.H).inverse() if point.B.size else np.zeros((0, 0))
        information = np.zeros(0)
        if self.learn_ties:
            information = ties_step(point.log_tie_factor, self.prior.tie_spread, current)[1]
        return Metric(
            C_m, 1.0 / (self.offset_precision + current.own_H), C_B, information, current.care[:, 1],
            self._C_gamma(point),
        )  # fmt: skip

    def information(self, point: Point, current: Expectation, sites: Sites) -> CovariateInformation:
        """What answers say of the effects of covariates, with who clicks at random held."""
        people = replace(self.people_at(point), engaged=current.engaged, clicks=np.zeros(0))
        return covariate_information(people, sites, self.law(point))

    def _C_gamma(self, point: Point) -> FloatArray:
        """Inverse of a bound on the precision of the effects of covariates, (n_covariates, n_covariates)."""
        if not len(point.gamma):
            return np.zeros((0, 0))
        people = self.people_at(point)
        a = np.repeat(people.consistency, np.diff(people.answer_ptr))
        of_rows = a * a * people.weight * self.sites.precision
        of_patterns = np.bincount(people.variant, of_rows, len(people.patterns))[:, None]
        information = symmetrise(people.patterns.T @ (of_patterns * people.patterns))
        return factorise(information + self.gamma_precision * np.eye(len(point.gamma))).inverse()

    def closed_form(self, point: Point, n_steps: int) -> tuple[Point, Expectation]:
        """M steps of population.md section 4, over-relaxed by 2; the point and the E step at it.

        Σ of a few directions is held, and has none before them: then come those in which J rises most steeply.
        """
        directions = self.directions if n_steps else 0
        if directions:
            point = self._without_directions(point)
        current = self.evaluate(point, n_sweeps=3 if n_steps else 5)
        for left in reversed(range(n_steps)):
            point = self._step(point, current, power=2.0)
            current = self.evaluate(point, n_sweeps=2 if left else 4)  # the last is where L-BFGS begins
            if self.progress:
                self.progress(self.passes, math.nan)
        if directions:
            point = replace(point, Sigma=self._with_directions(current))
            current = self.evaluate(point, n_sweeps=_SETTLED)
        return point, current

    def _without_directions(self, point: Point) -> Point:
        return replace(point, Sigma=self.own_variance * self.prior.K)

    def _with_directions(self, current: Expectation) -> FloatArray:
        """Σ with the directions of steepest ascent, each as far as a Newton step with average people goes."""
        slopes, V = leading_eigenpairs(self.root_of_K.T @ current.D @ self.root_of_K, self.directions)
        W = self.root_of_K @ V
        curvature = np.einsum("ik,ik->k", W, current.H @ W)
        rise = np.maximum(slopes - 1.0 / self.variance_of_direction, 0.0)
        variance = rise * self.people.n_active / np.maximum(curvature**2, _TINY) + self.variance_of_direction
        return self.own_variance * self.prior.K + (W * variance) @ W.T

    def fixed_point(self, point: Point, tolerance: float, max_iter: int) -> tuple[Point, float, bool]:
        """Plain M steps to convergence where the prior outweighs the people; point, J's last rise, whether to go on.

        A step leaves at most the share U / (U + ν₀) of the way in Σ, and of J the square of it: with ν₀ >= U this takes
        a handful of passes, without the M³ operations of L-BFGS's coordinates. Where a step gains more than half of
        what the one before did, something else is slow, and L-BFGS takes over, of all but Σ.
        """
        if not self.is_rigid:
            return point, math.inf, True
        if self.shape_is_held:
            point = self._without_directions(point)
        current = self.evaluate(point, n_sweeps=3)
        value, gain, n_slow = current.evidence + self.log_prior(point), math.inf, 0
        while self.passes < max_iter - 1:
            new = self._step(point, current, power=1.0)
            current = self.evaluate(new)
            before, last, value = value, gain, current.evidence + self.log_prior(new)
            gain, point = value - before, new
            if self.progress:
                self.progress(self.passes, value)
            if abs(gain) <= tolerance / self.window:  # L-BFGS has to rise by less than the tolerance over a window
                return point, abs(gain), False
            n_slow += gain > 0.5 * last
            if n_slow == _SLOW_STEPS or gain < 0.0:
                break
        return point, abs(gain), True

    def _step(self, point: Point, current: Expectation, power: float) -> Point:
        prior = self.prior
        delta, log_tie_factor = self._thresholds(point, current)
        log_consistency = point.log_consistency
        if self.learn_care:
            log_consistency = consistency_step(
                log_consistency, prior.consistency_spread, current, self.of_utilities(point)
            )
        return Point(
            m=consensus_mode(point.m, self.precision, current),
            Sigma=self._covariance(point, current, power),
            delta=delta,
            offset=offset_step(point.offset, self.offset_precision, current),
            own_scale=own_scale_step(
                point.own_scale, prior.own_share, current, len(self.people.item_idx), prior.variance, prior.strength
            ),
            B=effects_step(point.B, self.trait_precision, current)[0] if point.B.size else point.B,
            log_tie_factor=log_tie_factor,
            log_consistency=log_consistency,
            gamma=point.gamma + self._C_gamma(point) @ self._pull_of_gamma(point, current),
        )

    def of_utilities(self, point: Point) -> FloatArray:
        """Most that answers tell of consistency, (n_users,)."""
        return of_utilities(self.law(point), self.people)

    def _covariance(self, point: Point, current: Expectation, power: float) -> FloatArray:
        """M step of Σ."""
        prior = self.prior
        if self.shape_is_held:
            return point.Sigma
        return covariance_step(
            point.Sigma, current, self.people.n_active, prior.variance * prior.K, prior.strength, power=power
        )

    def _pull_of_gamma(self, point: Point, current: Expectation) -> FloatArray:
        """Gradient of J in the effects of covariates."""
        return current.r_covariates - self.gamma_precision * point.gamma

    def _thresholds(self, point: Point, current: Expectation) -> tuple[float, FloatArray]:
        """M step of δ and of each person's factor of it."""
        if not self.learn_ties:
            return threshold_step(point.delta, current) if self.learn_delta else point.delta, point.log_tie_factor
        log_factor, _ = ties_step(point.log_tie_factor, self.prior.tie_spread, current)
        if not self.learn_delta:
            return point.delta, log_factor
        # What all people have in common is δ. A step of its own would come on top of theirs, for the same reason.
        common = float(np.average(log_factor, weights=np.diff(self.people.answer_ptr) > 0))
        return point.delta * math.exp(common), log_factor - common

    def wider(self, point: Point) -> tuple[Point, Expectation] | None:
        """A point with more room for what people differ in, where J is larger, and the E step there; None if nowhere.

        L-BFGS moves logarithms of scales, in which J is level where a scale is next to nothing: a fit may rest there.
        """
        if self.shape_is_held:
            return None
        value = self.evaluate(point, n_sweeps=_SETTLED).evidence + self.log_prior(point)
        room = [replace(point, Sigma=_WIDER * point.Sigma)]
        if len(point.offset):
            room.append(replace(point, own_scale=_WIDER * point.own_scale))
        held = self.held()
        for new in room:
            current = self.evaluate(new, n_sweeps=_SETTLED)
            if current.is_sound and current.evidence + self.log_prior(new) > value:
                return new, current
            self.restore(held)
        return None

    def with_covariance(self, point: Point, residual: float, tolerance: float) -> tuple[Point, float, bool]:
        """An M step of Σ after L-BFGS held it; the point, J's last rise, and whether more is to be had."""
        current = self.evaluate(point)
        new = replace(point, Sigma=self._covariance(point, current, power=1.0))
        value = current.evidence + self.log_prior(point)
        rise = self.evaluate(new).evidence + self.log_prior(new) - value
        return new, max(residual, abs(rise)), rise > tolerance

    def held(self) -> Any:
        """The sites as they are, for :meth:`restore`."""
        return self.sites.copy()

    def restore(self, held: Any) -> None:
        """Put the sites back to what they were."""
        self.sites.precision[:], self.sites.linear[:] = held.precision, held.linear

    def lbfgs(self, start: Point, current: Expectation, tolerance: float, max_iter: int) -> tuple[Point, float, bool]:
        """Maximum of J by L-BFGS in coordinates whitened at ``start``, of which ``current`` is the E step.

        The point, J's last rise, whether to go on. Where the prior outweighs the people, Σ is held, and an M step of it
        follows: without its M² / 2 coordinates no M³ operations are left in a pass.
        """
        coordinates = _Coordinates(self, start, current)
        reach = coordinates.reach
        x = np.zeros(len(reach))
        found = coordinates.objective(x, current)
        history = int(np.clip(_HISTORY_FLOATS // (2 * len(reach)), 4, _MOST_HISTORY))
        values: list[float] = []
        gradient = found[1]
        residual, again, flat = math.inf, False, _FLAT * self.people.n_answers
        # A trial point so far off that J overflows is only refused.
        with np.errstate(over="ignore", invalid="ignore"):
            for x, value, gradient in ascent(coordinates.objective, found, reach, history):
                values.append(value)
                if self.progress:
                    self.progress(self.passes, value)
                if len(values) > self.window:
                    residual = value - values[-1 - self.window]
                if np.abs(gradient).max() <= flat:  # a maximum
                    residual = min(residual, tolerance)
                again = bool(np.any(np.abs(x) >= _NEARLY * reach))
                if again or residual <= tolerance or self.passes >= max_iter - 1:
                    break
            else:
                # No step along the gradient raised J: either it is at its maximum, or J was inexact because of sites
                # that lag behind. The caller finds out by starting again with tighter sites.
                residual = values[-1] - found[0] if values else 0.0
                if self.site_tolerance > _EXACT_SITES and np.abs(gradient).max() > flat:
                    residual = math.inf
                self.site_tolerance *= 0.1
                again = residual > tolerance
        point = coordinates.point(x, coordinates.covariance(x)[0])
        if again or coordinates.whitened is not None or self.shape_is_held or self.passes >= max_iter - 1:
            return point, residual, again
        return self.with_covariance(point, residual, tolerance)


class _Whitened:
    """Σ = L F Fᵀ Lᵀ with L a root of Σ at the start, by the lower triangle of F, logarithms on its diagonal.

    The columns of L are the directions that answers tell of, in units of Σ, those they tell most of first: a person's
    answers know the share h_i of direction i on average. There J's Hessian is near U h_i h_j + ν₀ R_jj in F_ij, i > j,
    and twice that in log F_jj, with R = s₀ L⁻¹ K₀ L⁻ᵀ, and coordinates are in units of one over its root.
    """

    def __init__(self, search: Search, start: Point, H: FloatArray) -> None:
        n, nu, n_users = len(start.m), search.prior.strength, search.people.n_active
        factor = factorise(start.Sigma)
        reliability, V = eigenpairs(
            symmetrise(lower_times(factor.lower, times_lower(H, factor.lower), transposed=True))
        )
        self.L, self.nu = lower_times(factor.lower, V), nu
        self.root = solve_lower(factor.lower, search.root).T @ V  # the transpose of that of s₀ K₀, whitened
        self.tril = np.flatnonzero(np.tri(n, dtype=bool))  # flat positions: far quicker than pairs of indices
        self.diagonal = np.arange(n)
        self.fixed = nu * factor.log_det()
        reliability = np.clip(reliability / n_users, 0.0, 1.0)
        information = n_users * np.outer(reliability, reliability)
        information += nu * np.maximum(np.einsum("ij,ij->j", self.root, self.root), _LEAST_PRIOR)
        information[self.diagonal, self.diagonal] *= 2.0
        self.scale = 1.0 / np.sqrt(information.ravel()[self.tril])

    def covariance(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ, F, and the root L F of Σ."""
        n = len(self.diagonal)
        F = np.zeros((n, n))
        F.ravel()[self.tril] = self.scale * x
        F[self.diagonal, self.diagonal] = np.exp(F[self.diagonal, self.diagonal])
        A = times_lower(self.L, F)
        return A @ A.T, F, A

    def log_prior(self, F: FloatArray, A: FloatArray, D: FloatArray) -> tuple[float, FloatArray]:
        """Log prior density of Σ, up to a constant, and the gradient of J for the sum ``D`` over people."""
        Y, nu = over_lower(self.root, F, transposed=True), self.nu
        value = -nu * float(np.log(F[self.diagonal, self.diagonal]).sum()) - 0.5 * self.fixed
        G = self.L.T @ (D @ A)
        G += nu * over_lower(Y.T @ Y, F).T
        G[self.diagonal, self.diagonal] = G[self.diagonal, self.diagonal] * F[self.diagonal, self.diagonal] - nu
        return value - 0.5 * nu * float(np.vdot(Y, Y)), self.scale * G.ravel()[self.tril]


class _Directions:
    """Σ = c s₀ K₀ + W Wᵀ with W = R Z and K₀ = R Rᵀ, by Z (M, r), of which each entry has a normal prior.

    A coordinate is in units of one over the root of J's Hessian at the start, of average people.
    """

    def __init__(self, search: Search, start: Point, H: FloatArray) -> None:
        self.root = search.root_of_K
        self.own = search.own_variance * search.prior.K
        inner = symmetrise(solve_lower(self.root, solve_lower(self.root, start.Sigma - self.own).T))
        values, V = leading_eigenpairs(inner, search.directions)
        self.Z = V * np.sqrt(np.maximum(values, 0.0))
        self.precision = 1.0 / search.variance_of_direction
        of_items = np.einsum("ij,ij->j", self.root, H @ self.root)
        W = self.root @ self.Z
        of_directions = np.einsum("ik,ik->k", W, H @ W) / search.people.n_active
        self.scale = 1.0 / np.sqrt(self.precision + np.outer(of_items, of_directions)).ravel()

    def covariance(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ, Z and W."""
        Z = self.Z + (self.scale * x).reshape(self.Z.shape)
        W = self.root @ Z
        return self.own + W @ W.T, Z, W

    def log_prior(self, Z: FloatArray, W: FloatArray, D: FloatArray) -> tuple[float, FloatArray]:
        """Log prior density of Z, up to a constant, and the gradient of J for the sum ``D`` over people."""
        G = self.root.T @ (D @ W) - self.precision * Z
        return -0.5 * self.precision * float(np.vdot(Z, Z)), self.scale * G.ravel()


class _Coordinates:
    """Whitened parameter vector: the Hessian of J is about 1 where the answers determine the parameters well.

    Order: m, Cholesky factor of the whitened Σ (logarithms on its diagonal; nothing where Σ is held), item offsets, log
    of their scale, trait effects, log δ, people's own factors of δ, their consistency, effects of covariates.
    """

    def __init__(self, search: Search, start: Point, current: Expectation) -> None:
        self.search, self.start = search, start
        people, nu, metric = search.people, search.prior.strength, search.metric(start, current)
        M, n_own, n_traits = len(start.m), len(start.offset), start.B.shape[1]
        kind = _Directions if search.directions else _Whitened
        self.whitened = None if search.is_rigid else kind(search, start, current.H)
        self.T = factorise(metric.C_m).lower
        self.T_B = factorise(metric.C_B).lower
        self.t_offset = np.sqrt(metric.offset_variance)
        self.scale_of_own = 1.0 / math.sqrt(len(people.item_idx) + nu) if n_own else 0.0
        self.scale_of_delta = 1.0 / math.sqrt(people.n_answers) if search.learn_delta else 0.0
        n_ties = len(start.log_tie_factor)
        spread = search.prior.tie_spread
        self.t_ties = 1.0 / np.sqrt(metric.tie_information + spread**-2) if n_ties else np.zeros(0)
        n_care, spread = len(start.log_consistency), search.prior.consistency_spread
        self.t_care = np.zeros(0)
        if n_care:
            self.t_care = (np.minimum(metric.care_information, search.of_utilities(start)) + spread**-2) ** -0.5
        self.T_gamma = factorise(metric.C_gamma).lower
        n_factor = 0 if self.whitened is None else len(self.whitened.scale)
        sizes = [M, n_factor, n_own, min(n_own, 1), M * n_traits, 1, n_ties, n_care, len(start.gamma)]
        ends = np.cumsum(sizes).tolist()
        self.m, self.factor, self.offset, self.own, self.B, self.delta, self.ties, self.care, self.gamma = map(
            slice, [0, *ends[:-1]], ends
        )
        # A line search that leaps farther finds overflow; if the maximum lies beyond, the caller starts again there.
        self.reach = np.full(ends[-1], _LARGEST_MOVE)
        if self.whitened is not None:
            self.reach[self.factor] = _LARGEST_LOG_MOVE / self.whitened.scale
        self.reach[self.own] = _LARGEST_LOG_MOVE / (self.scale_of_own or 1.0)
        self.reach[self.delta] = _LARGEST_LOG_MOVE / (self.scale_of_delta or 1.0)
        self.reach[self.ties] = _LARGEST_LOG_MOVE / self.t_ties
        self.reach[self.care] = _LARGEST_LOG_MOVE / self.t_care

    def point(self, x: FloatArray, Sigma: FloatArray) -> Point:
        """Parameters, with a Σ."""
        start = self.start
        own = start.own_scale
        if self.scale_of_own:
            own *= math.exp(self.scale_of_own * float(x[self.own][0]))
        return Point(
            m=start.m + self.T @ x[self.m],
            Sigma=Sigma,
            delta=start.delta * math.exp(self.scale_of_delta * float(x[self.delta][0])),
            offset=start.offset + self.t_offset * x[self.offset],
            own_scale=own,
            B=start.B + self.T_B @ x[self.B].reshape(start.B.shape) if start.B.size else start.B,
            log_tie_factor=start.log_tie_factor + self.t_ties * x[self.ties],
            log_consistency=start.log_consistency + self.t_care * x[self.care],
            gamma=start.gamma + self.T_gamma @ x[self.gamma],
        )

    def covariance(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ, and the factors of :class:`_Whitened`, empty where Σ is held."""
        if self.whitened is None:
            return self.start.Sigma, np.zeros((0, 0)), np.zeros((0, 0))
        return self.whitened.covariance(x[self.factor])

    def objective(self, x: FloatArray, known: Expectation | None = None) -> tuple[float, FloatArray]:
        """J, up to a constant, and its gradient; ``known``: the E step at x, if that was made."""
        search, nu = self.search, self.search.prior.strength
        Sigma, F, A = self.covariance(x)
        point = self.point(x, Sigma)
        current = search.evaluate(point) if known is None else known
        of_consensus = search.precision @ point.m
        value = current.evidence - 0.5 * float(point.m @ of_consensus) + search._log_prior_of_rest(point)
        gradient = np.zeros_like(x)
        gradient[self.m] = self.T.T @ (current.r - of_consensus)
        if self.whitened is not None:
            of_covariance, gradient[self.factor] = self.whitened.log_prior(F, A, current.D)
            value += of_covariance
        if len(point.offset):
            gradient[self.offset] = self.t_offset * (current.r_items - search.offset_precision * point.offset)
            slope = point.own_scale * float(search.prior.own_share @ current.own_D)
            slope -= nu * (1.0 - search.prior.variance / point.own_scale)
            gradient[self.own] = 0.5 * self.scale_of_own * slope
        if point.B.size:
            gradient[self.B] = (self.T_B.T @ (current.r_traits - search.trait_precision @ point.B)).ravel()
        gradient[self.delta] = self.scale_of_delta * point.delta * current.slope_delta
        if search.learn_ties:
            pull = point.log_tie_factor / search.prior.tie_spread**2
            gradient[self.ties] = self.t_ties * (current.ties[:, 0] - pull)
        if search.learn_care:
            pull = point.log_consistency / search.prior.consistency_spread**2
            gradient[self.care] = self.t_care * (current.care[:, 0] - pull)
        gradient[self.gamma] = self.T_gamma.T @ search._pull_of_gamma(point, current)
        return value, gradient
