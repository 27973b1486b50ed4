"""Population distribution of the weights where they have a mean other than zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CrowdWeights"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CrowdWeights:
    """Weights w = b + B x + ε with independent ε_c; x = 0 where no features are known. modern.md 5, with an intercept.

    **Differs from the paper**, with weights of mean zero: nothing is known of an unseen user, even if the crowd agrees.
    """

    effects: FloatArray  # E [b, B], (C, 1 + n_traits)
    covariance: FloatArray  # of each row of [b, B], (C, 1 + n_traits, 1 + n_traits)
    spread: FloatArray  # variance of ε, (C,)

    @classmethod
    def average(cls, mean: FloatArray, variance: FloatArray) -> CrowdWeights:
        """Distribution of a user drawn from those with weights of these means and variances, (n_users, C)."""
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
