"""Posterior of the pooled model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from predilect._types import FloatArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.covariates import CovariateEffects
from predilect.gaussian.dense import symmetrise, widened
from predilect.gaussian.posterior import GaussianPosterior, Utilities
from predilect.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.models.population.prior import Functions, Hyperparameters


@dataclass(frozen=True, slots=True)
class Believed:
    """Prior of a pooled model, without its covariance, which is as large as the posterior's."""

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
    """Utilities of everybody as one, with their prior and the calibration of predictions.

    ``covariance`` takes all answers for independent; what comes out takes people, if ``dependence`` (M, M) is known.
    """

    believed: Believed | None = None
    calibration: Calibration = UNCALIBRATED
    dependence: FloatArray | None = None  # of the effects of covariates too: (M + n, M + n) with n of them
    between_people: FloatArray | None = None  # the covariance with it
    covariates: CovariateEffects | None = None  # of answers
    joint: FloatArray | None = None  # covariance of utilities, or weights of functions, and effects of covariates

    @classmethod
    def of(
        cls, mean: FloatArray, covariance: FloatArray, Phi: FloatArray | None, believed: Believed,
        dependence: FloatArray | None, covariates: CovariateEffects | None = None,
    ) -> PooledPosterior:  # fmt: skip
        """Posterior under hyper-parameters, by which predictions are calibrated; arguments as of :meth:`moved`."""
        calibration = believed.hyperparameters.calibration_of_predictions
        first = cls(mean, covariance, Phi, believed, calibration, dependence, covariates=covariates)
        return first.moved(mean, covariance)

    def moved(self, mean: FloatArray, covariance: FloatArray) -> PooledPosterior:
        """The same with other answers; how much those of one person hang together is held.

        ``mean`` and ``covariance`` are of utilities, or weights of functions, and then of the effects of covariates.
        """
        effects, wider = self.covariates, None
        M = len(mean) if effects is None else len(mean) - len(effects.mean)
        if self.dependence is not None:
            # Differences alone depend on answers; what a flat prior leaves of the mean would drown them in rounding.
            C = covariance
            if self.Phi is None:
                C = C.copy()
                C[:, :M] -= C[:, :M].mean(axis=1, keepdims=True)
            # Where answers were taken back, those that are left may be too few for all of it.
            wider = widened(covariance, symmetrise(C @ self.dependence @ C.T))
        if effects is not None:
            known = covariance if wider is None else wider
            effects = replace(effects, mean=mean[M:], covariance=known[M:, M:])
        return replace(
            self, mean=mean[:M], covariance=covariance[:M, :M], covariates=effects,
            between_people=None if wider is None else wider[:M, :M], joint=None if effects is None else covariance,
        )  # fmt: skip

    def person(self, user: int = -1) -> Utilities:
        """Utilities in the form that boards are made from."""
        return self._plain().person()

    def extended(self, A: FloatArray, R: FloatArray, *, consensus_variance: float) -> GaussianPosterior:
        """With new items."""
        return self._plain().extended(A, R, consensus_variance=consensus_variance)

    def _plain(self) -> GaussianPosterior:
        known = self.covariance if self.between_people is None else self.between_people
        return GaussianPosterior(self.mean, known, self.Phi)

    def prior(self) -> Utilities:
        assert self.believed is not None
        return GaussianPosterior(np.zeros(len(self.mean)), self.believed.covariance(), self.Phi).person()
