"""Independent Gaussian processes, one per user."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.posteriors.pairs import pair_variance
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.projection import Projection
from predilect.posteriors.utilities import Utilities

__all__ = ["SeparatePosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class SeparatePosterior:
    """f_u ~ N(0, K/s) for every user u, independent of each other, given that user's answers.

    An unseen user, of whom the model knows only the prior, is predicted as a random one of those who answered.
    """

    people: PopulationPosterior  # population model with consensus 0 and Σ = K/s
    mean: FloatArray  # of the average of the users who answered, (n_items,), with covariance (n_items, n_items)
    covariance: FloatArray
    spread: FloatArray  # covariance of the utilities of a random one of them, (n_items, n_items)

    @classmethod
    def of(cls, people: PopulationPosterior, H: FloatArray, D: FloatArray, r: FloatArray) -> SeparatePosterior:
        """Posterior and population average from all sites, and the sums H, D, r over users.

        User u has mean Σ Xᵀα and covariance Σ - Σ XᵀQX Σ, so the average has mean m = Σ r / U and, as users are
        independent, covariance (U Σ - Σ H Σ) / U²; the covariances of all, and of their means about m, add up to Σ + Σ
        D Σ / U - m mᵀ. Sums as in :class:`~predilect.inference.expectation.Expectation`.
        """
        U, Sigma = people.people.n_active, people.Sigma
        mean = Sigma @ r / U
        spread = Sigma + Sigma @ D @ Sigma / U - np.outer(mean, mean)
        return cls(people, mean, symmetrise((U * Sigma - Sigma @ H @ Sigma) / U**2), symmetrise(spread))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); -1 for an unseen user."""
        mean, var = self.mean[left] - self.mean[right], pair_variance(self.spread, left, right)
        known = users >= 0
        if known.any():
            mean[known], var[known] = self.people.margins(users[known], left[known], right[known], executor=executor)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        """Utilities of one user; -1 for an unseen one."""
        return self.people.person(user) if user >= 0 else Utilities.of(self.mean, self.spread)

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one user's utilities."""
        return self.person(user).dense()

    def crowd(self) -> Utilities:
        """Average utilities of the users who answered."""
        return Utilities.of(self.mean, self.covariance)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of :meth:`crowd`."""
        return self.mean, self.covariance

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of users' utilities, centred over the items; (n_users, n_items)."""
        return self.people.centred_utilities(users, executor=executor)

    def with_items(self, everything: Projection, scale: float) -> SeparatePosterior:
        """Over more items, of which the first are these: ``everything`` projects from these to all; ``scale`` is s."""
        A, R = everything.A, everything.residual() / scale
        assert A is not None
        Sigma = A @ self.people.Sigma @ A.T + R
        people = replace(self.people.people, n_items=len(Sigma))
        posterior = PopulationPosterior(np.zeros(len(Sigma)), np.zeros_like(Sigma), Sigma, people, self.people.sites)
        average = A @ self.covariance @ A.T + R / people.n_active
        return SeparatePosterior(posterior, A @ self.mean, average, A @ self.spread @ A.T + R)
