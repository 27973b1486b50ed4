"""One Gaussian process a person: nothing that one says tells anything of another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.utilities import Utilities

__all__ = ["SeparatePosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class SeparatePosterior:
    """f_u ~ N(0, K/s) for every person u, independent of each other, given that person's answers.

    Attributes
    ----------
    people : PopulationPosterior
        The population model with its consensus at 0 and Σ = K/s: people's answers and their sites.
    mean, covariance : arrays of float, shapes (n_items,) and (n_items, n_items)
        Of the average utilities of the people who answered.
    """

    people: PopulationPosterior
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, people: PopulationPosterior, H: FloatArray, r: FloatArray) -> SeparatePosterior:
        """From everybody's sites.

        Parameters
        ----------
        people : PopulationPosterior
        H, r : arrays of float, shapes (n_items, n_items) and (n_items,)
            Sums over people as in :class:`~predilect.inference.expectation.Expectation`: the average is Σ r / U, with
            covariance (U Σ - Σ H Σ) / U², since people are independent.
        """
        U, Sigma = people.people.n_active, people.Sigma
        covariance = (U * Sigma - Sigma @ H @ Sigma) / U**2
        return cls(people, Sigma @ r / U, 0.5 * (covariance + covariance.T))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), shapes (n,); of somebody without answers (-1) the prior."""
        return self.people.margins(users, left, right, executor=executor)

    def person(self, user: int) -> Utilities:
        """The utilities of one person; of somebody without answers the prior."""
        return self.people.person(user)

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one person's utilities."""
        return self.person(user).dense()

    def crowd(self) -> Utilities:
        """The average utilities of the people who answered."""
        return Utilities(self.mean, self.covariance, None, np.zeros(0, dtype=np.int64), np.zeros(0))

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of :meth:`crowd`."""
        return self.mean, self.covariance

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of people's utilities, centred over the items; shapes (n_users, n_items)."""
        return self.people.centred_utilities(users, executor=executor)

    def with_covariance(self, Sigma: FloatArray) -> PopulationPosterior:
        """Everybody's posterior over more items, of which the first are these.

        Parameters
        ----------
        Sigma : array of float, shape (n_all, n_all)
            K/s over all items.
        """
        people = replace(self.people.people, n_items=len(Sigma))
        return PopulationPosterior(np.zeros(len(Sigma)), np.zeros_like(Sigma), Sigma, people, self.people.sites)
