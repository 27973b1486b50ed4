"""Scale and shape of the prior by evidence, with the population covariance held at its prior mean.

With Σ = s₀ K₀ people's utilities are integrated out and only a few numbers are left, so, unlike J, the evidence may
choose them: s₀, w and ℓ by its gradient ½ tr((N - H) dΣ/dθ), and s_t by the EM step that integrates the consensus out.
What the evidence cannot choose, how far Σ may leave its prior (ν₀), is left to held-out answers
(:mod:`predilect.models.population.search.moves`), which start from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from predilect._base.types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.dense import Factor, factorise
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.empirical_bayes import (
    consensus_factor,
    consensus_step,
    offset_step,
    threshold_step,
)
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from predilect.models.population.prior import (
    DEFAULTS,
    SD_OF_LOG_SHARE,
    SHARE_OF_PEOPLE,
    Candidate,
    Hyperparameters,
    PopulationPrior,
    are_few,
    is_consensus_costly,
    least_strength,
    log_prior_of_variances,
    second_moment,
)
from predilect.models.population.search.climb import climb, one_way

# Name: how far a coordinate may move from the start, down and up, and the standard deviation of a weak normal prior
# about it, which decides only where answers say little. Scales and lengths are logarithmic, the weight is a log-odds.
_COORDINATES = {
    "variance": (8.0, 5.0, SD_OF_LOG_SHARE),
    "feature_weight": (4.0, 4.0, 1.0),
    "length_scale": (2.0, 2.0, 1.0),
}
_ROUNDS, _MOST_ROUNDS = 2, 5  # at least and at most; the prior of the consensus is held within a round
_MAX_EVALUATIONS = 30  # a round
_FIRST_MOVE = 0.5  # of the coordinate with the largest gradient
_TOLERANCE = 1e-5  # of the evidence
_MAX_PROFILE_STEPS = 3
_STILL = 0.02  # nats that consensus, offsets and threshold may still gain
# Where nobody ever errs all scales would rise without end, and only how s₀ compares with s_t means anything.
_SCALES, _CONSENSUS_SCALES = (1e-3, 1e3), (1e-3, 64.0)
# Lines: the first and the last distance between points, how many of them at most on a side, and the move below which a
# round was the last.
_FIRST_STEP, _LAST_STEP = math.log(3.0), 0.3
_MOST_STEPS = 5
_SMALL_MOVE = 0.2
# The points of a line are compared to a fraction of a nat; the evidence is flat in sites and consensus where both rest.
_LINE_TOLERANCE, _SMALL_GAIN, _SMALL_SHARE = 1e-2, 0.1, 0.1


def rigid_hyperparameters(
    people: People,
    space: FeatureSpace,
    start: Hyperparameters,
    free: Sequence[str],
    *,
    candidate: Candidate | None = None,
    delta: float | None = None,
    executor: ThreadPoolExecutor | None = None,
) -> Hyperparameters:
    """Maximise the evidence of the rigid population over those of s₀, s_t, w and ℓ that are ``free``.

    The search begins at ``start``, but for scales where people are few: these begin at the top of their prior. With
    functions of a ``candidate``, ℓ is theirs. ``delta=None`` learns the tie threshold along.

    population.md section 2, end: the gradient by the chain rule. About 20 evaluations of one to four E steps.
    """
    candidate = candidate or Candidate(None, None)
    names = [name for name in _COORDINATES if name in free]
    if start.feature_weight == 0.0 and "feature_weight" not in names:
        names = [name for name in names if name != "length_scale"]  # of a kernel that has no share
    if candidate.functions is not None:
        weighted = candidate.functions.has_weight
        names = [name for name in names if name == "variance" or (name == "feature_weight" and weighted)]
    learn_consensus = "consensus_variance" in free
    if not names and not learn_consensus:
        return start
    centre_of_prior = _coordinates(names, start)
    search = _Rigid(people, space, start, candidate, executor)
    search.delta, search.learn_delta = people.scale_of_thresholds(delta)
    search.learn_consensus = learn_consensus

    # The evidence that L-BFGS climbs leaves out what the consensus costs, which matters only where answers are few.
    few = is_consensus_costly(people, search._prior(start))
    lines = ["variance"] if few and "variance" in names else []
    if lines and learn_consensus:
        lines += ["consensus_variance", "common variance"]
        # From far above, the first lines pass the ridge at an angle, and the search creeps along it.
        start = replace(
            start,
            variance=SHARE_OF_PEOPLE / (1.0 + SHARE_OF_PEOPLE),
            consensus_variance=1.0 / (1.0 + SHARE_OF_PEOPLE),
        )
        search.setting, search.consensus_variance = start, start.consensus_variance
    climbs = names != lines[:1]
    step, climb_step = _FIRST_STEP, None
    for k in range(_MOST_ROUNDS if few else _ROUNDS):
        search.start_round()
        if not names:
            search.evaluate(names, np.zeros(0))
        elif climbs and k < _ROUNDS:
            climb_step = _climb(search, names, centre_of_prior, climb_step)
        moves = [abs(search.climb_line(line, step)) for line in lines]
        if k + 1 >= _ROUNDS and max(moves, default=0.0) < _SMALL_MOVE:
            break
        step = max(_LAST_STEP, 0.5 * step)
    search.start_round()
    return replace(search.setting, consensus_variance=search.consensus_variance)


def by_evidence(
    people: People, some_answers: People, space: FeatureSpace, candidate: Candidate, start: Hyperparameters,
    free: Sequence[str], delta: float | None, executor: ThreadPoolExecutor | None,
) -> Hyperparameters:  # fmt: skip
    """Scales and shape by the evidence of the rigid population, and a strength that fits the dimension.

    ``some_answers`` are of the same people, for the evidence where these are few.
    """
    given = some_answers if are_few(people.n_active, candidate.prior(start, space)) else people
    setting = rigid_hyperparameters(given, space, start, free, candidate=candidate, delta=delta, executor=executor)
    if "strength" in free:
        least = least_strength(candidate.prior(setting, space), people.n_active, people.n_answers)
        setting = replace(setting, strength=max(DEFAULTS["strength"], least))
    return setting


def _climb(search: _Rigid, names: list[str], centre_of_prior: list[float], step: FloatArray | None) -> FloatArray:
    """L-BFGS on the evidence plus the weak prior, the prior of the consensus held.

    The first step is ``step``², one a coordinate, times the gradient; None is a short one. Returns what suits a next
    climb. Unscaled, L-BFGS-B goes to the bounds first, where sites and consensus settle far from where they end.
    """
    start = search.setting
    offset = np.array(_coordinates(names, start)) - np.array(centre_of_prior)
    down, up, sd = np.transpose([_COORDINATES[name] for name in names])

    def negative(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = search.evaluate(names, x)
        away = x + offset
        return -value + 0.5 * float(np.sum((away / sd) ** 2)), -gradient + away / sd**2

    def scaled(z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = negative(scale * z)
        return value, scale * gradient

    _, gradient = negative(np.zeros(len(names)))
    scale = np.full(len(names), math.sqrt(_FIRST_MOVE / max(1.0, np.abs(gradient).max()))) if step is None else step
    result = minimize(
        scaled, np.zeros(len(names)), jac=True, method="L-BFGS-B",
        bounds=list(zip((-down - offset) / scale, (up - offset) / scale, strict=True)),
        options={"maxfun": _MAX_EVALUATIONS, "ftol": _TOLERANCE},
    )  # fmt: skip
    search.setting = _hyperparameters(names, start, scale * result.x)
    inverse_hessian: Any = result.hess_inv
    return np.asarray(scale * np.sqrt(np.diagonal(inverse_hessian.todense())))


class _Rigid:
    """The evidence at Σ = s₀ K₀, with the consensus, s_t and δ at their best for it."""

    def __init__(
        self, people: People, space: FeatureSpace, start: Hyperparameters, candidate: Candidate,
        executor: ThreadPoolExecutor | None,
    ) -> None:  # fmt: skip
        self.people = people
        self.space = space
        self.setting = start
        self.candidate = candidate
        self.functions = functions = candidate.functions
        self.Phi = candidate.Phi
        self.executor = executor
        self.sites = Sites.flat(people.n_rows)
        self.m = np.zeros(people.n_items if functions is None else functions.n_functions)
        self.offset = np.zeros(len(self._prior(start).own_share))
        self.delta = 0.0
        self.consensus_variance = start.consensus_variance
        self.learn_delta = False
        self.learn_consensus = False
        self.precision = np.zeros((0, 0))  # of the consensus, held within a round
        self.offset_precision = np.zeros(0)
        self.current: Expectation | None = None

    def start_round(self) -> None:
        """Take the prior of the consensus from where the search stands: its kernel, and s_t by its EM step."""
        prior = self._prior(self.setting)
        inverse_K = prior.precision_of_consensus()
        if self.learn_consensus and self.current is not None:
            m, C_m = consensus_step(self.m, inverse_K / self.consensus_variance, self.current)
            moment = second_moment(inverse_K, m, C_m)
            if len(self.offset):
                variance = 1.0 / (1.0 / (self.consensus_variance * prior.own_share) + self.current.own_H)
                moment += float(np.sum((self.offset**2 + variance) / prior.own_share))
            scale = moment / (len(m) + len(self.offset))
            self.consensus_variance = float(np.clip(scale, *_CONSENSUS_SCALES))
        self.precision = inverse_K / self.consensus_variance
        self.offset_precision = 1.0 / (self.consensus_variance * prior.own_share)

    def climb_line(self, line: str, step: float) -> float:
        """Maximise the evidence, the consensus integrated out, over s₀, s_t or along the ridge of all scales.

        Along the ridge s₀, s_t and δ² rise together. Answers say little of what the three share, and none of them can
        leave a small value alone: the other two hold it back. Points lie ``step`` apart in the logarithm, and it ends
        at the top of the parabola through the best three; returns how far that is.
        """
        values: dict[int, float] = {}
        states: dict[int, _Rigid] = {}

        def value(k: int) -> float:
            if k not in values:
                if states:
                    near = min(states, key=lambda other: abs(other - k))
                    self._go(states[near], step * (k - near), line)
                values[k] = self._profile(max(values.values(), default=-math.inf))
                states[k] = copy(self)
                states[k].sites = self.sites.copy()
            return values[k]

        best = 0
        value(0)

        def gains(k: int) -> bool:
            nonlocal best
            gained = value(k) > values[best]
            best = k if gained else best
            return gained

        climb(one_way((1, -1), lambda side: best + side if abs(best) < _MOST_STEPS else None), gains)
        below, above = (values.get(best + side, -math.inf) for side in (-1, 1))
        curvature = 2.0 * values[best] - below - above
        vertex = 0.5 * (above - below) / curvature if math.isfinite(curvature) and curvature > 0.0 else 0.0
        self._go(states[best], step * vertex, line)
        return step * (best + vertex)

    def _go(self, state: _Rigid, log_factor: float, line: str) -> None:
        """Where another state is, with s₀, s_t or all scales ``exp(log_factor)`` times as large."""
        factor = math.exp(log_factor)
        of_people, of_consensus = line != "consensus_variance", line != "variance"
        if of_consensus:
            factor = float(np.clip(state.consensus_variance * factor, *_CONSENSUS_SCALES)) / state.consensus_variance
        if of_people:
            factor = float(np.clip(state.setting.variance * factor, *_SCALES)) / state.setting.variance
        self.setting = replace(state.setting, variance=state.setting.variance * (factor if of_people else 1.0))
        ratio = factor if of_consensus else 1.0
        self.consensus_variance = ratio * state.consensus_variance
        self.precision, self.offset_precision = state.precision / ratio, state.offset_precision / ratio
        root = math.sqrt(factor) if of_people and of_consensus else 1.0
        self.m, self.offset = root * state.m, root * state.offset
        self.delta = root * state.delta if self.learn_delta else state.delta
        self.sites, self.current = state.sites.copy(), state.current

    def _log_det_of_consensus(self, factor: Factor, current: Expectation) -> float:
        """½ log |I + s_t K H|: what the evidence loses when the consensus is integrated out, in nats."""
        value = factor.log_det() - factorise(self.precision).log_det()
        return 0.5 * (value + float(np.log1p(current.own_H / self.offset_precision).sum()))

    def _advance(self, current: Expectation) -> tuple[float, Factor]:
        """Consensus, offsets and threshold one step on; the gain that their slopes promise, and the consensus' factor.

        Half of the gain is what is to be had, to the second order.
        """
        m, offset, delta = self.m, self.offset, self.delta
        self.m, factor = consensus_factor(m, self.precision, current)
        gain = (current.r - self.precision @ m) @ (self.m - m)
        if len(offset):
            self.offset = offset_step(offset, self.offset_precision, current)
            gain += (current.r_items - self.offset_precision * offset) @ (self.offset - offset)
        if self.learn_delta:
            self.delta = threshold_step(delta, current)
            gain += current.slope_delta * (self.delta - delta)
        return float(gain), factor

    def _penalty(self) -> float:
        """Of the consensus as it stands: twice what its prior takes."""
        return float(self.m @ self.precision @ self.m + self.offset**2 @ self.offset_precision)

    def _profile(self, best: float) -> float:
        """The evidence, consensus integrated out, with the log prior of the scales: accurate near ``best``."""
        prior = self._prior(self.setting)
        log_prior = log_prior_of_variances(self.setting.variance, self.consensus_variance)
        for _ in range(_MAX_PROFILE_STEPS + 1):
            self.current = current = expectation(
                self.people, self.sites, self._law(prior), self.delta, n_sweeps=2, tolerance=_LINE_TOLERANCE,
                executor=self.executor,
            )  # fmt: skip
            penalty = self._penalty()
            gain, factor = self._advance(current)
            value = current.evidence + 0.5 * (gain - penalty) - self._log_det_of_consensus(factor, current) + log_prior
            if gain < max(_SMALL_GAIN, _SMALL_SHARE * (best - value)):
                break
        return value

    def evaluate(self, names: list[str], x: FloatArray) -> tuple[float, FloatArray]:
        """Evidence less the penalty of the consensus, both at their best, and the gradient in ``x``."""
        setting = _hyperparameters(names, self.setting, x)
        prior = self._prior(setting)
        for _ in range(_MAX_PROFILE_STEPS + 1):
            law = self._law(prior)
            self.current = current = expectation(
                self.people, self.sites, law, self.delta, n_sweeps=2, tolerance=_LINE_TOLERANCE, executor=self.executor
            )
            penalty = self._penalty()
            gain, _ = self._advance(current)
            if gain < _STILL:
                break
        # At the best consensus and threshold their own movement adds nothing to the gradient.
        slope = self._slope if self.functions is None else self._slope_of_functions
        value = current.evidence + 0.5 * (gain - penalty)
        return value, np.array([slope(name, setting, law, current) for name in names])

    def _prior(self, setting: Hyperparameters) -> PopulationPrior:
        return self.candidate.prior(setting, self.space)

    def _law(self, prior: PopulationPrior) -> Law:
        Sigma = prior.variance * prior.K
        if self.Phi is None:
            return Law(Sigma, self.m)
        mean = self.Phi @ self.m
        if len(self.offset):
            mean += self.offset
        return Law(Sigma, mean, self.Phi, prior.variance * prior.own_share)

    def _slope_of_functions(self, name: str, setting: Hyperparameters, law: Law, current: Expectation) -> float:
        """Gradient of the evidence in one coordinate."""
        assert self.functions is not None
        assert self.Phi is not None
        diagonal = np.diagonal(current.D)
        if name == "variance":
            return 0.5 * float(np.diagonal(law.Sigma) @ diagonal + law.rho @ current.own_D)
        w = setting.feature_weight
        of_functions, of_items = self.functions.slopes(self.Phi, self.space.known)
        return 0.5 * setting.variance * w * (1.0 - w) * float(of_functions @ diagonal + of_items @ current.own_D)

    def _slope(self, name: str, setting: Hyperparameters, law: Law, current: Expectation) -> float:
        """Gradient of the evidence in one coordinate, ½ tr(D dΣ/dx)."""
        if name == "variance":
            return 0.5 * float(np.vdot(current.D, law.Sigma))
        w = setting.feature_weight
        kernel = law.Sigma / (setting.variance * w)
        np.fill_diagonal(kernel, 1.0)
        if name == "feature_weight":  # K₀ = w K_θ + (1 - w) I, and w is logistic in x
            slope = (1.0 - w) * (kernel - np.eye(len(kernel)))
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.where(kernel > 0.0, -2.0 * kernel * np.log(kernel), 0.0)  # dK_θ / d log ℓ = K_θ r² / ℓ²
        return 0.5 * setting.variance * w * float(np.vdot(current.D, slope))


def _coordinates(names: list[str], setting: Hyperparameters) -> list[float]:
    w = setting.feature_weight
    return [math.log(w / (1.0 - w)) if name == "feature_weight" else math.log(getattr(setting, name)) for name in names]


def _hyperparameters(names: list[str], start: Hyperparameters, x: FloatArray) -> Hyperparameters:
    changes: dict[str, Any] = {}
    for name, centre, offset in zip(names, _coordinates(names, start), x.tolist(), strict=True):
        value = centre + offset
        changes[name] = 1.0 / (1.0 + math.exp(-value)) if name == "feature_weight" else math.exp(value)
    return replace(start, **changes)
