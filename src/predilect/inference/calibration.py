"""How chances of answers come from margins, beyond what the model says of them: what held-out answers ask for."""

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
    """A share 1 - λ of answers has the margin N(mean, κ_i vᵉ) and noise τ², the rest more noise; thresholds are γ δ.

    Attributes
    ----------
    factor, factor_unseen : float
        κ, and κ₀ for two items that the person has no answer on; √(κ κ₀) where that is so of one of the two.
    factor_implied : float
        κ₌ where the answer follows from others of the person by transitivity.
    power : float
        e. 1 where all margins ask for the same share of their variance; more where those that are known well are
        known better still.
    threshold_factor : float
        γ.
    noise_factor : float
        τ²: variance of the noise of an answer, at most 1, that of the fit.
    lapse_rate, lapse_noise : float
        λ: the share of answers given with little care, and the variance of their noise; inf tosses a coin.
    """

    factor: float = 1.0
    factor_unseen: float = 1.0
    factor_implied: float = 1.0
    power: float = 1.0
    threshold_factor: float = 1.0
    noise_factor: float = 1.0
    lapse_rate: float = 0.0
    lapse_noise: float = math.inf

    @classmethod
    def of(cls, setting: Hyperparameters) -> Calibration:
        """What hyper-parameters say of it."""
        return cls(
            setting.variance_factor, setting.unseen_factor, setting.implied_factor, setting.variance_power,
            setting.threshold_factor, setting.noise_factor, setting.lapse_rate, setting.lapse_noise,
        )  # fmt: skip

    @property
    def depends_on_pair(self) -> bool:
        """Whether it matters how a pair stands to what its person answered."""
        return not self.factor == self.factor_unseen == self.factor_implied

    def components(self, var: FloatArray, kind: npt.ArrayLike = 0) -> list[tuple[float, FloatArray]]:
        """What chances are a mixture of: shares, and variances as likelihoods of noise 1 take them.

        Parameters
        ----------
        var : array of float, shape (n,)
            Of margins.
        kind : int or array of int, shape (n,)
            As :meth:`~predilect.posteriors.population.PopulationPosterior.pair_kinds` has it.
        """
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
        """Logarithms of chances, from what they are at given variances."""
        parts = [math.log(share) + log_likelihood(v) for share, v in self.components(var, kind)]
        return parts[0] if len(parts) == 1 else np.asarray(np.logaddexp(*parts))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)
