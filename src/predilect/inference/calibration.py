"""What held-out answers ask for: how much of the variance of a margin, which tie threshold, how many lapses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize, minimize_scalar

from predilect.inference.prior import Hyperparameters
from predilect.likelihoods.probit import tilted

__all__ = ["Calibration", "calibration", "variance_factor", "with_lapses"]

FloatArray = npt.NDArray[np.float64]

_LOG_RANGE = (math.log(1e-3), math.log(10.0))
_PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_TOLERANCE = 1e-3
_LAPSE_UNIT = 0.08  # with the prior's rate: λ is exponential with mean .02
_REACH = np.array([7.0, 7.0, 1.0, 2.3, 3.0])  # of log κ, log κ₀ - log κ, e - 1, log γ and λ in that unit
_SMALLEST_VARIANCE = 1e-12


def variance_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike
) -> float:
    """The κ with which N(mean, κ var) predicts held-out answers best.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        +1, 0 or -1.
    mean, var : arrays of float, shape (n,)
        Margins, predicted without these answers.
    weight : array of float, shape (n,)
    delta : float or array of float, shape (n,)
        Tie threshold.

    Notes
    -----
    Maximises the log-likelihood plus a Laplace prior of log κ, scale 0.25. Some 20 passes over the n rows.
    """

    def loss(log_factor: float) -> float:
        return float(-weight @ tilted(outcome, mean, math.exp(log_factor) * var, delta)[0])

    return math.exp(_lowest(loss))


@dataclass(frozen=True, slots=True)
class Calibration:
    """How chances of answers come from margins: N(mean, κ_i vᵉ) at the threshold γ δ, but a share λ of any answers.

    Attributes
    ----------
    factor, factor_unseen : float
        κ, and κ₀ for two items that the person has no answer on; √(κ κ₀) where that is so of one of the two.
    power : float
        e. 1 where all margins ask for the same share of their variance; more where those that are known well are
        known better still.
    threshold_factor : float
        γ.
    lapse_rate : float
        λ: the share of answers that are given without a look at the pair, any one of those possible.
    """

    factor: float = 1.0
    factor_unseen: float = 1.0
    power: float = 1.0
    threshold_factor: float = 1.0
    lapse_rate: float = 0.0

    @classmethod
    def of(cls, setting: Hyperparameters) -> Calibration:
        """What hyper-parameters say of it."""
        return cls(
            setting.variance_factor, setting.unseen_factor, setting.variance_power, setting.threshold_factor,
            setting.lapse_rate,
        )  # fmt: skip

    def variance(self, var: FloatArray, n_unseen: npt.ArrayLike = 0) -> FloatArray:
        """The variance that chances take; ``n_unseen`` as in :func:`calibration`."""
        middle = math.sqrt(self.factor * self.factor_unseen)
        steps = np.array([self.factor, middle, self.factor_unseen])[np.asarray(n_unseen)]
        return np.asarray(steps * (var if self.power == 1.0 else var**self.power))


def with_lapses(log_chances: FloatArray, rate: float, n_outcomes: int) -> FloatArray:
    """log[(1 - λ) p + λ / n_outcomes], from log p: answers of which a share λ is any of those possible."""
    if rate == 0.0:
        return log_chances
    return np.asarray(np.logaddexp(math.log1p(-rate) + log_chances, math.log(rate / n_outcomes)))


def calibration(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike,
    n_unseen: npt.NDArray[np.int8], *, power: float | None = None, threshold_factor: float | None = None,
    lapse_rate: float | None = None,
) -> Calibration:  # fmt: skip
    """The κ, κ₀, e, γ and λ with which held-out answers are predicted best.

    Answers of a person who never contradicts himself on the items he answered on are easier to predict than a Gaussian
    has it, and ask for a small κ. That says nothing of items he was never asked about. Nor is what a Gaussian makes of
    a person equally wrong for all pairs: mostly, margins of small variance are known better still. And a threshold that
    was learned with the variances as they were is not the best once they change. And some answers are slips of the
    hand, against which no margin is large enough.

    Parameters
    ----------
    outcome, mean, var, weight, delta
        As in :func:`variance_factor`.
    n_unseen : array of int, shape (n,)
        On how many of the two items, 0 to 2, the person has no other answer.
    power, threshold_factor, lapse_rate : float, optional
        To hold fixed.

    Notes
    -----
    log κ_i v^(e-1) = a + d i/2 + (e - 1) log(v / v̄) with v̄ the geometric mean of the variances: so a does not depend on
    e, κ = exp(a) v̄^(1-e). a, d, e - 1 and log γ have Laplace priors about 0, scale 0.25 each, and λ an exponential one
    of mean .02, so that few rows, or rows of one kind, leave the model as it stands; e lies in 0 to 2, λ in 0 to .24.
    L-BFGS on positive and negative parts, for which the priors have no corner; without lapses and from there with some,
    and the better of the two. By the heat equation ∂ log Ẑ/∂v is half of (∂ log Ẑ/∂m)² + ∂² log Ẑ/∂m². Some 30 passes
    over the n rows.
    """
    if not len(mean):
        return Calibration(1.0, 1.0, 1.0 if power is None else power, threshold_factor or 1.0, lapse_rate or 0.0)
    log_var = np.log(np.maximum(var, _SMALLEST_VARIANCE))
    centre = float(np.average(log_var, weights=weight))
    columns = np.column_stack([np.ones(len(mean)), 0.5 * n_unseen, log_var - centre])
    delta = np.broadcast_to(np.asarray(delta, dtype=float), mean.shape)
    ties = bool(np.any(delta > 0.0))
    n_outcomes = 3 if ties else 2
    start = np.array([
        0.0, 0.0, 0.0 if power is None else power - 1.0, math.log(threshold_factor or 1.0),
        (lapse_rate or 0.0) / _LAPSE_UNIT,
    ])  # fmt: skip
    free = np.array([
        True, n_unseen.min() < n_unseen.max(), power is None, threshold_factor is None and ties, lapse_rate is None
    ])  # fmt: skip
    up = np.where(free, _REACH, 0.0)
    down = up * [1.0, 1.0, 1.0, 1.0, 0.0]

    def loss(parts: FloatArray) -> tuple[float, FloatArray]:
        x = start + parts[:5] - parts[5:]
        rate = x[4] * _LAPSE_UNIT
        v, threshold = np.exp(columns @ x[:3] + log_var), delta * math.exp(x[3])
        value, slope, curvature, slope_delta, _ = tilted(outcome, mean, v, threshold)
        mixed = with_lapses(value, rate, n_outcomes)
        looked = weight * np.exp(math.log1p(-rate) + value - mixed)  # how much of each answer is no lapse
        along_v = looked * (0.5 * (slope * slope - curvature) * v)
        along_rate = 0.0
        if rate > 0.0:
            any_answer = np.exp(-math.log(n_outcomes) - mixed)
            along_rate = float(weight @ (any_answer - np.exp(value - mixed))) * _LAPSE_UNIT
        gradient = np.concatenate([columns.T @ along_v, [looked @ (slope_delta * threshold), along_rate]])
        loss = float(parts.sum()) / _PRIOR_SCALE - float(weight @ mixed)
        return loss, np.concatenate([-gradient, gradient]) + 1.0 / _PRIOR_SCALE

    def lowest(parts: FloatArray, highest: FloatArray) -> tuple[float, FloatArray]:
        found = minimize(
            loss, parts, jac=True, method="L-BFGS-B", bounds=Bounds(np.zeros(10), highest),
            options={"ftol": 1e-12, "gtol": 0.02 / _PRIOR_SCALE},
        )  # fmt: skip
        return float(found.fun), found.x

    # First without lapses: surprises have two explanations, and from far away the search may end in the worse of them.
    # Then from a few of them on: at none the slope has no bound where an answer had no chance.
    highest = np.concatenate([up, down])
    fixed = highest * (np.arange(10) != 4)
    best, parts = lowest(np.zeros(10), fixed)
    if free[4]:
        other, trial = lowest(np.where(np.arange(10) == 4, _PRIOR_SCALE, parts), highest)
        parts = trial if other < best else parts
    a, d, rest, log_gamma, lapses = (start + parts[:5] - parts[5:]).tolist()
    factor = math.exp(a - rest * centre)
    return Calibration(factor, factor * math.exp(d), 1.0 + rest, math.exp(log_gamma), lapses * _LAPSE_UNIT)


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / _PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)
