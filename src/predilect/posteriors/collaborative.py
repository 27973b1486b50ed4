"""The law of the weights of somebody without answers, where people's weights have a mean that is not zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CrowdWeights"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CrowdWeights:
    """w = b + B x + ε with independent ε_c of variance ``spread``; x = 0 for somebody of whom nothing is known.

    Attributes
    ----------
    effects : array of float, shape (C, 1 + n_traits)
        E [b, B]; without features of people n_traits is 0.
    covariance : array of float, shape (C, 1 + n_traits, 1 + n_traits)
        Of each row of [b, B].
    spread : array of float, shape (C,)

    Notes
    -----
    modern.md 5 with one trait that everybody has. **Differs from the paper**, where weights have mean zero: then
    nothing is known of a stranger, however much the crowd agrees.
    """

    effects: FloatArray
    covariance: FloatArray
    spread: FloatArray

    @classmethod
    def average(cls, mean: FloatArray, variance: FloatArray) -> CrowdWeights:
        """Of a person drawn from among people whose weights have these means and variances, shapes (n_users, C)."""
        centre = mean.mean(axis=0)
        spread = (variance + (mean - centre) ** 2).mean(axis=0)
        return cls(centre[:, None], np.zeros((len(centre), 1, 1)), spread)

    def law(self, n_components: int, traits: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """See :class:`~predilect.posteriors.weights.WeightPrior`."""
        n, k = 1 if traits is None else len(traits), self.effects.shape[1]
        rows = np.zeros((n, k))
        rows[:, 0] = 1.0
        if traits is not None and k > 1:
            rows[:, 1:] = traits
        return rows @ self.effects.T, self.spread + np.einsum("nk,ckl,nl->nc", rows, self.covariance, rows)
