"""Calibration: probabilities of answers from the mean and variance of their margins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect.inference.prior import Hyperparameters
from predilect.likelihoods.probit import tilted

__all__ = ["PRIOR_SCALE", "Calibration", "variance_factor"]

FloatArray = npt.NDArray[np.float64]

_LOG_RANGE = (math.log(1e-3), math.log(10.0))
PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_TOLERANCE = 1e-3


def variance_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike
) -> float:
    """Variance factor κ of held-out margins N(mean, κ var), with a Laplace prior of log κ, scale 0.25; arrays (n,)."""

    def loss(log_factor: float) -> float:
        return float(-weight @ tilted(outcome, mean, math.exp(log_factor) * var, delta)[0])

    return math.exp(_lowest(loss))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibrated predictions: a share 1 - λ of answers has margin N(mean, κ_i vᵉ) and noise τ²; threshold γ δ."""

    factor: float = 1.0  # κ
    factor_unseen: float = 1.0  # κ₀, two items on which the person has no answer; √(κ κ₀) for one
    factor_implied: float = 1.0  # κ₌, the answer follows from others by transitivity
    power: float = 1.0  # e, above 1 where margins of small variance are known better still
    threshold_factor: float = 1.0  # γ
    noise_factor: float = 1.0  # τ², at most that of the fit, 1
    lapse_rate: float = 0.0  # λ, share of careless answers
    lapse_noise: float = math.inf  # variance of their noise; inf is a fair coin

    @classmethod
    def of(cls, setting: Hyperparameters) -> Calibration:
        """Calibration in some hyper-parameters."""
        return cls(
            setting.variance_factor, setting.unseen_factor, setting.implied_factor, setting.variance_power,
            setting.threshold_factor, setting.noise_factor, setting.lapse_rate, setting.lapse_noise,
        )  # fmt: skip

    @property
    def depends_on_pair(self) -> bool:
        """Whether it depends on how a pair stands to its person's answers."""
        return not self.factor == self.factor_unseen == self.factor_implied

    def components(self, var: FloatArray, kind: npt.ArrayLike = 0) -> list[tuple[float, FloatArray]]:
        """Mixture components: shares, and variances (n,) for likelihoods of noise 1; ``kind`` from ``pair_kinds``."""
        middle = math.sqrt(self.factor * self.factor_unseen)
        steps = np.array([self.factor, middle, self.factor_unseen, self.factor_implied])[np.asarray(kind)]
        spread = np.asarray(steps * (var if self.power == 1.0 else var**self.power))
        # Noise is a variance like the margin's own.
        looked = spread if self.noise_factor == 1.0 else spread + (self.noise_factor - 1.0)
        if self.lapse_rate == 0.0:
            return [(1.0, looked)]
        return [(1.0 - self.lapse_rate, looked), (self.lapse_rate, spread + (self.lapse_noise - 1.0))]

    def log_chances(
        self, log_likelihood: Callable[[FloatArray], FloatArray], var: FloatArray, kind: npt.ArrayLike = 0
    ) -> FloatArray:
        """Log probabilities under the mixture, from those at given variances."""
        parts = [math.log(share) + log_likelihood(v) for share, v in self.components(var, kind)]
        return parts[0] if len(parts) == 1 else np.asarray(np.logaddexp(*parts))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)
