"""Problem and result types of inference for one latent function."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report
from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.condition import Conditioned, LatentPrior, Space
from predilect.inference.gaussian.design import MarginMatrix, Sites
from predilect.inference.gaussian.posterior import GaussianPosterior
from predilect.inference.likelihoods.views import Likelihood, Probit

Method = Literal["laplace", "ep", "variational"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Prior f ~ N(mean, K), margins z = A f, and answers p(outcome_p | z_p), ``weight_p`` identical ones a row."""

    prior: LatentPrior
    outcome: npt.NDArray[Any]
    weight: FloatArray
    likelihood: Likelihood

    @classmethod
    def of(
        cls,
        K: npt.ArrayLike,
        left: npt.ArrayLike,
        right: npt.ArrayLike | None,
        outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        likelihood: Likelihood | None = None,
        *,
        mean: npt.ArrayLike | None = None,
        space: Space | None = None,
    ) -> Problem:
        """Problem from checked input.

        ``K`` (n_items, n_items) may be singular. The margin of an answer is f(left) - f(right), or f(left) if ``right``
        is None, as in classification; ``weight`` counts identical answers; the default likelihood is the probit without
        ties. ``space``: where matrices live, "items" or "answers", by default the smaller. DataError if shapes do not
        fit, codes are out of range, numbers are not finite, weights are not positive, or the likelihood does not have
        such an outcome.
        """
        K = np.asarray(K, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.isfinite(K).all():
            raise DataError(f"K must be a square matrix of finite numbers; its shape is {K.shape}.")
        n_items = len(K)
        y = np.asarray(outcome)
        w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        a = _codes(left, n_items, "left")
        b = None if right is None else _codes(right, n_items, "right")
        if not all(part.shape == a.shape for part in (y, w, *(() if b is None else (b,)))):
            raise DataError(
                f"left, right, outcome and weight must be columns of one length; their shapes are {a.shape}, "
                f"{None if b is None else b.shape}, {y.shape} and {w.shape}."
            )
        if not (np.isfinite(w).all() and (w > 0.0).all()):
            row = int(np.flatnonzero(~(np.isfinite(w) & (w > 0.0)))[0])
            raise DataError(f"weights must be positive finite numbers (first that is not: row {row}, {w[row]}).")
        likelihood = likelihood or Probit()
        likelihood.check(y)
        m = None if mean is None else np.asarray(mean, dtype=np.float64)
        if m is not None and (m.shape != (n_items,) or not np.isfinite(m).all()):
            raise DataError(f"mean must be {n_items} finite numbers, one for each row of K; its shape is {m.shape}.")
        return cls(LatentPrior(K, MarginMatrix(a, b, n_items), m, space), y, w, likelihood)

    @property
    def n_answers(self) -> int:
        """Number of rows."""
        return len(self.outcome)

    def condition(self, sites: Sites) -> Conditioned:
        """Posterior given sites of one copy of each answer."""
        return self.prior.condition(sites.times(self.weight))

    def starting_sites(self, start: Sites | None) -> Sites:
        """Starting sites: those given, or flat ones."""
        if start is None:
            return Sites.flat(self.n_answers)
        if start.precision.shape != self.weight.shape:
            raise DataError(f"start holds {len(start.precision)} sites for {self.n_answers} answers.")
        return start.copy()


@dataclass(frozen=True, slots=True)
class SingleLatent:
    """Gaussian approximation of the posterior of one latent function."""

    method: Method
    evidence: float  # approximate log evidence, in nats; the lower bound for "variational"
    sites: Sites  # of one copy of each answer
    report: Report
    state: Conditioned = field(repr=False)
    problem: Problem = field(repr=False)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of f at the points of K, shape (n_items,)."""
        return self.state.mean()

    def covariance(self) -> FloatArray:
        """Posterior covariance, shape (n_items, n_items); computed anew at each call, O(n_items³)."""
        return self.state.covariance()

    def posterior(self) -> GaussianPosterior:
        """Posterior over the points of K."""
        return GaussianPosterior(self.mean, self.covariance())


def change_of_margin(weight: FloatArray, old: Sites, new: Sites, mean: FloatArray, var: FloatArray) -> float:
    """Scale-free measure of convergence: largest change of a margin, in noise units; inf if not a number."""
    d_precision = weight * (new.precision - old.precision)
    d_linear = weight * (new.linear - old.linear)
    change = np.abs(d_precision) * (1.0 + np.abs(mean)) + np.abs(d_linear - d_precision * mean)
    largest = float(np.max(change * var / (1.0 + np.sqrt(var)), initial=0.0))
    return largest if np.isfinite(largest) else float("inf")


def report_of(
    method: str, iterations: int, residual: float, tolerance: float, state: Conditioned, began: float, advice: str
) -> Report:
    """Report of an iteration over sites."""
    return Report(
        method=method,
        iterations=iterations,
        residual=residual,
        tolerance=tolerance,
        converged=residual <= tolerance,
        jitter=state.jitter,
        seconds=time.perf_counter() - began,
        unit="noise units of the largest change of a margin",
        advice=advice,
    )


def _codes(values: npt.ArrayLike, n_items: int, what: str) -> IntArray:
    codes = np.asarray(values)
    if codes.ndim != 1 or not (np.issubdtype(codes.dtype, np.integer) or codes.size == 0):
        raise DataError(f"{what} must be a column of integer codes, not {codes.dtype} of shape {codes.shape}.")
    codes = codes.astype(np.int64)
    outside = (codes < 0) | (codes >= n_items)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"{what} holds codes outside 0 .. {n_items - 1} (first: row {row}, {codes[row]}).")
    return codes
