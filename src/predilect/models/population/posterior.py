"""Posterior of the pooled model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predilect._types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.posterior import GaussianPosterior, Utilities
from predilect.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.models.population.prior import Functions, Hyperparameters


@dataclass(frozen=True, slots=True)
class Believed:
    """What the prior of a pooled model is made from; not its covariance, which is as large as the posterior's."""

    hyperparameters: Hyperparameters
    space: FeatureSpace
    functions: Functions | None

    def covariance(self) -> FloatArray:
        """Prior covariance of the items' utilities, or of the functions of a basis, (M, M)."""
        h = self.hyperparameters
        if self.functions is None:
            return h.consensus_variance * self.space.covariance(h.consensus_weight, h.length_scale)
        return h.consensus_variance * self.functions.prior_covariance(h.consensus_weight)


@dataclass(frozen=True, slots=True)
class PooledPosterior(GaussianPosterior):
    """Utilities of everybody as one, with their prior and the calibration of predictions."""

    believed: Believed | None = None
    calibration: Calibration = UNCALIBRATED

    @classmethod
    def of(
        cls, mean: FloatArray, covariance: FloatArray, Phi: FloatArray | None, believed: Believed
    ) -> PooledPosterior:
        """Posterior under hyper-parameters, by which predictions are calibrated."""
        return cls(mean, covariance, Phi, believed, believed.hyperparameters.calibration_of_predictions)

    def prior(self) -> Utilities:
        assert self.believed is not None
        return GaussianPosterior(np.zeros(len(self.mean)), self.believed.covariance(), self.Phi).person()
