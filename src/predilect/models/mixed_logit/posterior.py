"""Posterior of a mixed logit: draws of people's coefficients and of the population, and their moments for boards."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.posterior import Posterior, Utilities
from predilect.models.mixed_logit.problem import Law

_AT_ONCE = 20_000  # pairs


def moments(draws: npt.NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
    """Mean (..., d) and covariance (..., d, d) of draws (..., R, d)."""
    mean = draws.mean(axis=-2, dtype=np.float64)
    deviation = draws - mean[..., None, :]
    covariance = np.swapaxes(deviation, -1, -2) @ deviation / max(draws.shape[-2] - 1, 1)
    return mean, 0.5 * (covariance + np.swapaxes(covariance, -1, -2))


@dataclass(frozen=True, slots=True)
class MixedLogitPosterior(Posterior):
    """Utilities X c_u, with draws of the coefficients of all people; boards know their first two moments."""

    X: FloatArray  # columns of the items, (n_items, d)
    m: FloatArray  # coefficients of the crowd, those of a central person, (d,), and their covariance
    C_m: FloatArray
    people: npt.NDArray[np.float32]  # draws of people's coefficients, (U, R, d)
    law: Law
    unseen: FloatArray  # draws of somebody without answers, (S, d)
    mean: FloatArray = field(init=False)  # of people and, last, somebody without answers, (U + 1, d)
    covariance: FloatArray = field(init=False)  # (U + 1, d, d)

    def __post_init__(self) -> None:
        found = [moments(self.people), moments(self.unseen[None])]
        object.__setattr__(self, "mean", np.concatenate([one for one, _ in found]))
        object.__setattr__(self, "covariance", np.concatenate([one for _, one in found]))

    @property
    def n_items(self) -> int:
        return len(self.X)

    def draws_of(self, user: int) -> FloatArray:
        """Draws of one person's coefficients, (R, d); -1: unseen."""
        return self.unseen if user < 0 else self.people[user].astype(np.float64)

    def margins(self, users: IntArray, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,)."""
        return self.margins_of(users, self.X[left] - self.X[right])

    def margins_of(
        self, users: IntArray, difference: FloatArray, more: tuple[FloatArray, FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of margins with differences of columns (n, d); codes of people from U on are of ``more``.

        ``more`` are means (k, d) and covariances (k, d, d).
        """
        place = np.asarray(users, dtype=np.int64)
        n = len(self.people)
        place = np.where(place < 0, n, place + (place >= n))
        mean, covariance = self.mean, self.covariance
        if more is not None:
            mean, covariance = np.concatenate([mean, more[0]]), np.concatenate([covariance, more[1]])
        out, var = np.empty(len(place)), np.empty(len(place))
        for start in range(0, len(place), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            x, who = difference[rows], place[rows]
            out[rows] = np.einsum("nd,nd->n", x, mean[who])
            var[rows] = np.einsum("ni,nij,nj->n", x, covariance[who], x)
        return out, var

    def person(self, user: int = -1) -> Utilities:
        return self._utilities(self.mean[user], self.covariance[user])

    def crowd(self) -> Utilities:
        return self._utilities(self.m, self.C_m)

    def _utilities(self, mean: FloatArray, covariance: FloatArray) -> Utilities:
        nothing = np.zeros(0, dtype=np.int64)
        return Utilities(self.X @ mean, symmetrise(covariance), self.X, nothing, np.zeros(0))
