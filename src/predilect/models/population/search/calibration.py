"""The calibration that suits answers held out best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.optimize import Bounds, brentq, minimize, minimize_scalar

from predilect._base.types import FloatArray
from predilect.inference.likelihoods.calibration import LAPSE_NOISE, POWERS, Calibration
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.queries import NEWCOMER
from predilect.models.population.search.held_out import HeldOut

_RANGE = (1e-3, 10.0)
_LOG_RANGE = (math.log(_RANGE[0]), math.log(_RANGE[1]))
PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_FIRST_LOG, _TOLERANCE = 0.5, 1e-3


def variance_factor(asked: HeldOut, likelihood: type[PairLikelihood] = Probit) -> float:
    """Variance factor κ of answers held out, with a Laplace prior of log κ, scale 0.25.

    Where the slope of the log loss in log κ, plus or minus that of its prior, is 0: some five passes over the answers.
    """

    @cache
    def slope(x: float) -> float:
        var = math.exp(x) * asked.var
        return -float(asked.weight @ (asked.log_proba(var, 1.0, likelihood)[1] * var))

    at_one = slope(0.0)
    if not abs(at_one) > 1.0 / PRIOR_SCALE:
        return 1.0
    side = -math.copysign(1.0, at_one)

    def rise(x: float) -> float:  # of the penalised loss, away from 0
        return side * slope(x) + 1.0 / PRIOR_SCALE

    near, far, furthest = 0.0, side * _FIRST_LOG, _LOG_RANGE[side > 0.0]
    while not rise(far) >= 0.0:
        if far == furthest:
            return _RANGE[side > 0.0]
        near, far = far, min(max(2.0 * far, _LOG_RANGE[0]), _LOG_RANGE[1])
    return math.exp(brentq(rise, near, far, xtol=_TOLERANCE))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)


# What is searched, each with a Laplace prior of the same scale about 0: log κ, log R, λ in units of its own, and
# log(1 + δ₀).
_FACTOR, _RATIO, _LAPSES, _OMITTED = range(4)
_UP = np.array([7.0, 7.0, 1.2, 5.0])
_DOWN = np.array([7.0, 0.0, 0.0, 0.0])
_N = len(_UP)
_LAPSE_UNIT = 0.2  # with the prior's scale: λ is exponential with mean .05


def calibration(asked: HeldOut, likelihood: type[PairLikelihood] = Probit) -> Calibration:
    """Calibration κ, R and λ, or without ties δ₀ in κ's place, by penalised likelihood of held-out answers.

    Why so many: answers of a consistent person are easier to predict than a Gaussian posterior has it (small κ, or δ₀
    where ties were left out), but only on items the person answered on, and most where they follow by transitivity (R);
    and some answers are careless (λ).

    log κ, log R and log(1 + δ₀) have Laplace priors about 0, scale 0.25 each, and λ an exponential one of mean .05, so
    that few rows leave the model unchanged; λ lies in 0 to .24, log R is not below 0: no answer is less certain for
    being implied. δ₀ takes the place of κ where held-out answers, with the priors, are likelier by it.
    L-BFGS on positive and negative parts, for which the priors have no corner; without lapses and from there with some,
    and the better of the two; then δ₀, from a margin's standard deviation. Some 50 to 80 passes over the answers.
    """
    if not len(asked.weight):
        return Calibration()
    powers = POWERS[asked.kind % NEWCOMER]
    objective = _Objective(asked, powers, likelihood)
    # Where all pairs are of one kind R cannot be told from κ.
    free = np.array([True, powers.min() < powers.max(), True, not asked.has_ties])
    highest = np.where(np.tile(free, 2), np.concatenate([_UP, _DOWN]), 0.0)
    # First without lapses: surprises have two explanations, and from far away the search may end in the worse of them.
    without = highest.copy()
    without[[_LAPSES, _OMITTED]] = 0.0
    best, parts = objective.lowest(np.zeros(2 * _N), without)
    parts_with = parts.copy()
    parts_with[_LAPSES] = PRIOR_SCALE
    other, trial = objective.lowest(parts_with, np.where(np.arange(2 * _N) == _OMITTED, 0.0, highest))
    best, parts = (other, trial) if other < best else (best, parts)
    if free[_OMITTED]:
        parts_with, of_factor = parts.copy(), [_FACTOR, _N + _FACTOR]
        parts_with[of_factor] = highest[of_factor] = 0.0
        parts_with[_OMITTED] = min(0.5 * math.log1p(float(np.average(asked.var, weights=asked.weight))), _UP[_OMITTED])
        other, trial = objective.lowest(parts_with, highest)
        parts = trial if other < best else parts
    x: list[float] = objective.at(parts).tolist()
    return Calibration(
        math.exp(x[_FACTOR]), math.exp(x[_RATIO]), x[_LAPSES] * _LAPSE_UNIT, omitted_ties=math.expm1(x[_OMITTED])
    )


@dataclass(frozen=True, slots=True)
class _Objective:
    """Penalised negative log-likelihood in positive and negative parts of the parameters, (8,)."""

    asked: HeldOut
    powers: FloatArray  # of R
    likelihood: type[PairLikelihood] = Probit

    def at(self, parts: FloatArray) -> FloatArray:
        """Parameters from their parts, (4,)."""
        return np.asarray(parts[:_N] - parts[_N:])

    def lowest(self, parts: FloatArray, highest: FloatArray) -> tuple[float, FloatArray]:
        """Value and place of the minimum near ``parts``, none of which is above ``highest``."""
        found = minimize(
            self, parts, jac=True, method="L-BFGS-B", bounds=Bounds(np.zeros(2 * _N), highest),
            options={"ftol": 1e-12, "gtol": 0.02 / PRIOR_SCALE},
        )  # fmt: skip
        return float(found.fun), found.x

    def __call__(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        x, weight = self.at(parts), self.asked.weight
        rate, v = x[_LAPSES] * _LAPSE_UNIT, np.exp(x[_FACTOR] + x[_RATIO] * self.powers) * self.asked.var
        omitted = math.expm1(x[_OMITTED])
        value, slope, along_omitted = self.asked.log_proba(v, 1.0, self.likelihood, omitted)
        gradient = np.zeros(_N)
        if rate == 0.0:
            mixed, along_v, along_omitted = value, weight * slope, weight * along_omitted
        else:
            other, slope_k, omitted_k = self.asked.log_proba(v, LAPSE_NOISE, self.likelihood, omitted)
            mixed = np.logaddexp(math.log1p(-rate) + value, math.log(rate) + other)
            looked, lapsed = weight * np.exp(value - mixed), weight * np.exp(other - mixed)
            along_v = (1.0 - rate) * looked * slope + rate * lapsed * slope_k
            along_omitted = (1.0 - rate) * looked * along_omitted + rate * lapsed * omitted_k
            gradient[_LAPSES] = (lapsed - looked).sum() * _LAPSE_UNIT
        gradient[_OMITTED] = np.sum(along_omitted) * (1.0 + omitted)
        gradient[:_LAPSES] = (along_v * v).sum(), self.powers @ (along_v * v)
        loss = float(parts.sum()) / PRIOR_SCALE - float(weight @ mixed)
        return loss, np.concatenate([-gradient, gradient]) + 1.0 / PRIOR_SCALE


def newcomer_factor(given: Calibration, steps: list[HeldOut], likelihood: type[PairLikelihood] = Probit) -> float:
    """Factor κ_n of a calibration for newcomers, by the same answers at several steps, each of which counts once.

    The other numbers stay: those of people whom the population was learned from must not suffer.
    """
    asked: HeldOut = HeldOut.together(steps)

    def loss(log_factor: float) -> float:
        return _loss(replace(given, newcomer_factor=math.exp(log_factor)), asked, likelihood) / len(steps)

    return math.exp(_lowest(loss))


def _loss(given: Calibration, asked: HeldOut, likelihood: type[PairLikelihood]) -> float:
    """Log loss in nats, of all answers together."""
    return float(-asked.weight @ asked.log_chances(given, likelihood))


def newcomer_weight(
    given: Calibration, at: Sequence[list[HeldOut]], likelihood: type[PairLikelihood] = Probit
) -> float:
    """Weight w of the shift of newcomers' mean, from the same answers at the steps with weights 0, ½ and 1.

    By the parabola through the three log losses, in each of which an answer counts once; w has an exponential prior of
    mean 0.25.
    """
    none, half, full = (_loss(given, HeldOut.together(steps), likelihood) / len(steps) for steps in at)
    bend = 2.0 * (none - full) - 4.0 * (none - half)
    slope = 4.0 * (none - half) - (none - full) - 1.0 / PRIOR_SCALE
    if bend >= 0.0:
        return float(bend + slope > 0.0)
    return min(max(-0.5 * slope / bend, 0.0), 1.0)
