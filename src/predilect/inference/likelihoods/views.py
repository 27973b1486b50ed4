"""Likelihoods of pairs: the protocol, the base class, and the probit; three views of log p(outcome | z).

- ``at(y, z)``: log p itself, for Laplace's approximation;
- ``tilted(y, m, v)``: log E p for z ~ N(m, v), for expectation propagation and prediction;
- ``expected(y, m, v)``: E log p for z ~ N(m, v), for variational inference.

Each is a value, its slope (∂/∂z or ∂/∂m) and its curvature (-∂²/∂z² or -∂²/∂m²), arrays (n,). A likelihood has to be
log-concave: no curvature is negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, rebound
from predilect._base.types import FloatArray
from predilect.errors import DataError
from predilect.inference.likelihoods import expectation, probit
from predilect.inference.likelihoods.probit import tilted_scalar

View = tuple[FloatArray, FloatArray, FloatArray]


@runtime_checkable
class Likelihood(Protocol):
    """p(outcome | z), log-concave in the margin z."""

    def check(self, outcome: npt.NDArray[np.generic]) -> None:
        """Raise :class:`~predilect.errors.DataError` for an outcome outside the likelihood's support."""
        ...

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        """Log p(outcome | z), ∂/∂z and -∂²/∂z²."""
        ...

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        """∂/∂z of the curvature of :meth:`at`; the gradient of Laplace's evidence needs it."""
        ...

    def tilted(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """Log E p for z ~ N(m, v), ∂/∂m and -∂²/∂m²."""
        ...

    def expected(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        """E log p for z ~ N(m, v), ∂/∂m and -2 ∂/∂v."""
        ...


@inner_kernel
def _moments(outcome: int, m: float, v: float, delta: float) -> tuple[float, float]:
    _, slope, curvature, _, _ = tilted_scalar(outcome, m, v, delta)
    return slope, curvature


@inner_kernel
def _value_and_slope(outcome: int, z: float, delta: float) -> tuple[float, float]:
    value, slope, _, _, _ = tilted_scalar(outcome, z, 0.0, delta)
    return value, slope


@inner_kernel
def _tilted_in_lanes(outcome: Any, row: Any, y: Any, m: Any, v: Any, delta: Any, n: int, out: Any) -> None:
    for lane in range(n):
        for i in range(5):
            out[i, lane] = 0.0
        if row[lane] >= 0:
            out[0, lane], out[1, lane], out[2, lane], out[3, lane], out[4, lane] = tilted_scalar(
                outcome[row[lane]], m[lane], v[lane], delta[lane]
            )


# What the probit has closed forms for, by its ``tilted_scalar`` alone.
_PLAIN = {
    probit.moments_scalar: _moments, expectation.value_and_slope: _value_and_slope,
    probit.tilted_in_lanes: _tilted_in_lanes,
}  # fmt: skip
_STEP = 1e-4  # of central differences
# The logistic function of 1.702 g is within .0095 of Φ(g) everywhere (Camilli 1994).
LOGISTIC_SLOPE = 1.702


@dataclass(frozen=True, slots=True)
class PairLikelihood:
    """Likelihood of an answer to a pair: +1 (left), 0 (tie) or -1 (right), with a tie threshold δ.

    Another one is a subclass with ``name``, ``log_odds`` and ``tilted_scalar``, a
    :func:`~predilect._base.compile.kernel` with arguments and results of
    :func:`predilect.inference.likelihoods.probit.tilted_scalar`, from which all else follows, and an entry in
    :data:`predilect.inference.likelihoods.registry.LIKELIHOODS`. What has a closed form may be replaced. Without normal
    noise a choice from several is a logit.
    """

    name: ClassVar[str]
    tilted_scalar: ClassVar[Any]
    log_odds: ClassVar[float]  # of an answer, in one unit of utility: 1 where they are just that
    unit: ClassVar[str] = "units of the noise of one answer"  # of utilities
    has_normal_noise: ClassVar[bool] = False  # of which rows of one task may share the part of an item

    delta: float = 0.0  # tie threshold in units of the answer noise; ties need delta > 0

    @classmethod
    @cache
    def compiled(cls, loop: Any) -> Any:
        """A compiled loop, which is written for the probit, for this likelihood."""
        if cls.tilted_scalar is tilted_scalar:
            return loop
        return cls.tilted_scalar if loop is tilted_scalar else rebound(_PLAIN.get(loop, loop), cls.compiled, cls.name)

    # With a threshold for each row: (log P, ∂/∂m, -∂²/∂m², ∂/∂δ, ∂²/∂δ²).

    @classmethod
    def all_tilted(
        cls, outcome: npt.ArrayLike, m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0
    ) -> tuple[FloatArray, ...]:
        """Log E p for z ~ N(m, v), with its derivatives in m and δ."""
        return probit.tilted(outcome, m, v, delta, cls.compiled(probit.tilted_arrays))

    @classmethod
    def probabilities(cls, m: npt.ArrayLike, v: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
        """Probabilities of (left, tie, right) for margins z ~ N(m, v), (n, 3)."""
        return np.exp(probit.outcome_log_probabilities(m, v, delta, 0.0, cls.all_tilted))

    @classmethod
    def decided(
        cls, outcome: npt.NDArray[np.int8], m: FloatArray, v: FloatArray, delta: npt.ArrayLike
    ) -> tuple[FloatArray, ...]:
        """Log E p over that of either side, as ties are left out: value, ∂/∂m, -∂²/∂m², ∂/∂v and ∂/∂δ, (n,) each.

        Log-concave in m for the probit: both sides together have more variance than either of them alone.
        """
        this, other = (cls.all_tilted(y, m, v, delta) for y in (outcome, -outcome))
        value, log_rest = (-np.logaddexp(0.0, one[0] - two[0]) for one, two in ((other, this), (this, other)))
        rest, apart = np.exp(log_rest), this[1] - other[1]
        curvature = rest * (this[2] - other[2] + np.exp(value) * apart * apart)
        along = 0.5 * rest * (this[1] ** 2 - this[2] - other[1] ** 2 + other[2])  # by the heat equation
        return value, rest * apart, curvature, along, rest * (this[3] - other[3])

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delta) and self.delta >= 0.0):
            raise DataError(f"the tie threshold must be a finite number >= 0, not {self.delta!r}.")

    def check(self, outcome: npt.NDArray[np.generic]) -> None:
        """Raise DataError for an outcome other than +1, 0, -1, or a tie without a threshold."""
        outcome = np.asarray(outcome)
        known = (outcome == 1) | (outcome == 0) | (outcome == -1)
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            raise DataError(
                f"{np.count_nonzero(~known)} outcomes are none of +1 (left), 0 (tie) and -1 (right) "
                f"(first: row {row}, {outcome[row]!r})."
            )
        if self.delta == 0.0 and bool(np.any(outcome == 0)):
            raise DataError(
                f"{np.count_nonzero(outcome == 0)} outcomes are ties, to which a tie threshold of 0 gives probability "
                f"0. Give the likelihood a threshold, {type(self).__name__}(delta=...), or leave the ties out."
            )

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        return self.tilted(outcome, z, np.zeros(1))

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        """∂/∂z of the curvature of :meth:`at`, by central differences."""
        return np.asarray((self.at(outcome, z + _STEP)[2] - self.at(outcome, z - _STEP)[2]) / (2.0 * _STEP))

    def tilted(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        value, slope, curvature, *_ = self.all_tilted(outcome, m, v, self.delta)
        return value, slope, curvature

    def expected(self, outcome: npt.NDArray[np.generic], m: FloatArray, v: FloatArray) -> View:
        return expectation.expected(outcome, m, v, self.delta, self.compiled(expectation.expected_arrays))


class Probit(PairLikelihood):
    """Answer with normal noise of variance 1; see :mod:`predilect.inference.likelihoods.probit`."""

    __slots__ = ()
    name = "probit"
    tilted_scalar = tilted_scalar
    log_odds = LOGISTIC_SLOPE
    has_normal_noise = True
    all_tilted = staticmethod(probit.tilted)
    probabilities = staticmethod(probit.outcome_probabilities)

    def at(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> View:
        from predilect.inference.likelihoods import tabulated

        return tabulated.at(outcome, z, self.delta)

    def curvature_slope(self, outcome: npt.NDArray[np.generic], z: FloatArray) -> FloatArray:
        from predilect.inference.likelihoods import tabulated

        return tabulated.curvature_slope(outcome, z, self.delta)
