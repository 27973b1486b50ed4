"""Effects of covariates of answers: of the side of the screen, the length of a text, and the like."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np

from predilect._base.stored import PLAIN, amounts, numbers, positive
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import covariances
from predilect.inference.likelihoods.special import Z_95


@dataclass(frozen=True, slots=True)
class CovariateEffects:
    """What answers gain by covariates x, left minus right: x γ is added to the margin, with γ ~ N(mean, covariance).

    γ is per :attr:`scale` of a covariate, and covariates come in these units; in tables they are as they were given.
    """

    mean: Annotated[FloatArray, numbers("A")]  # of A covariates
    covariance: Annotated[FloatArray, covariances("A A")]
    names: Annotated[tuple[str, ...], PLAIN] = ()
    # root mean square at the fit, as given
    rms: Annotated[FloatArray, positive("A")] = field(default_factory=lambda: np.zeros(0))
    # distinct x of the answers
    patterns: Annotated[FloatArray, numbers("V A")] = field(default_factory=lambda: np.zeros((1, 0)))
    # standard deviations over people of their own effects; empty where all have the same
    spread: Annotated[FloatArray, amounts("A|0")] = field(default_factory=lambda: np.zeros(0))

    def checked(self) -> None:
        """ValueError unless each effect has a name of its own."""
        if len(self.names) != len(self.mean) or len(set(self.names)) < len(self.names):
            raise ValueError(f"{len(self.mean)} effects of the covariates {self.names}")

    @property
    def scale(self) -> FloatArray:
        """The unit of each covariate: see :func:`unit_of`."""
        return unit_of(self.rms)

    @property
    def offsets(self) -> FloatArray:
        """Effects x γ of the patterns, (V,)."""
        return np.asarray(self.patterns @ self.mean)

    @property
    def slope_columns(self) -> FloatArray:
        """Patterns in the units in which people's own effects have variance 1, (V, n_covariates), or (V, 0)."""
        return self.patterns * self.spread if len(self.spread) else np.zeros((len(self.patterns), 0))

    def of_anybody(self) -> Self:
        """Effects on somebody drawn from the population, without people's own, and without the answers' patterns."""
        own = np.diag(self.spread**2) if len(self.spread) else 0.0
        return replace(self, covariance=self.covariance + own, spread=np.zeros(0), patterns=self.patterns[:0])

    def added(self, mean: FloatArray, var: FloatArray, x: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Means and variances of margins, (n,), with effects of covariates (n, n_covariates); None: equal ones."""
        if x is None:
            return mean, var
        return mean + x @ self.mean, var + np.einsum("ij,jk,ik->i", x, self.covariance, x)

    def with_patterns(self, x: FloatArray) -> tuple[Self, IntArray]:
        """With patterns for rows of covariates (n, n_covariates), and which of them each row has, (n,)."""
        known = {row.tobytes(): code for code, row in enumerate(self.patterns)}
        rows = np.ascontiguousarray(x) + 0.0  # no -0.0
        codes = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], dtype=np.int64)
        if len(known) == len(self.patterns):
            return self, codes
        patterns = np.frombuffer(b"".join(known)).reshape(len(known), -1)
        return replace(self, patterns=patterns), codes

    def used_by(self, variant: IntArray) -> tuple[Self, IntArray]:
        """With those patterns only that rows have, and which of them each row has then, (n,); the order stays."""
        used, place = np.unique(variant, return_inverse=True)
        return replace(self, patterns=self.patterns[used]), place.reshape(-1)

    def columns(self) -> dict[str, Any]:
        """Columns of a table: effects of one unit, as given, and of one root mean square, in noise units.

        The spread over people is NaN where there are no effects of their own.
        """
        sd = np.sqrt(np.diagonal(self.covariance))
        effect, sd = self.mean / self.scale, sd / self.scale
        spread = self.spread if len(self.spread) else np.full(len(self.names), np.nan)
        return {
            "covariate": list(self.names), "effect": effect, "sd": sd, "lower": effect - Z_95 * sd,
            "upper": effect + Z_95 * sd, "rms": self.rms, "effect_of_rms": effect * self.rms,
            "spread": spread / self.scale,
        }  # fmt: skip


def unit_of(rms: FloatArray) -> FloatArray:
    """The power of 2 next to the root mean square of a covariate: dividing by it and back changes no digit."""
    return np.exp2(np.rint(np.log2(rms)))
