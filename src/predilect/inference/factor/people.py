"""Weights of people as a Gaussian process of their features, in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import Factor, factorise
from predilect.inference.factor.items import FunctionState
from predilect.posteriors.projection import Projection

__all__ = ["PeopleDesign"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PeopleDesign:
    """Rows G = A L_K of the people, as :class:`~predilect.inference.factor.items.ItemDesign` has them of items.

    Attributes
    ----------
    projection : Projection
    G : array of float, shape (n_users, M)
    own : array of float, shape (n_users,)
        Variance of a weight given the points, at s = 1.
    """

    projection: Projection
    G: FloatArray
    own: FloatArray

    @classmethod
    def of(cls, projection: Projection) -> PeopleDesign:
        """For all people of the projection."""
        return cls(projection, np.ascontiguousarray(projection.expand(projection.factor.lower)), projection.own)

    @property
    def n_points(self) -> int:
        """M."""
        return int(self.G.shape[1])

    def mixed(
        self, old: tuple[FloatArray, FloatArray], W: FloatArray, H: FloatArray, s: float, rho: float
    ) -> tuple[FloatArray, FloatArray]:
        """Natural parameters after a step of ``rho`` towards s I + Gᵀ diag(W) G and Gᵀ H; W, H of shape (n_users,)."""
        precision = self.G.T @ (W[:, None] * self.G)
        precision.flat[:: len(precision) + 1] += s
        return old[0] + rho * (precision - old[0]), old[1] + rho * (self.G.T @ H - old[1])

    def state(self, precision: FloatArray, linear: FloatArray) -> tuple[FunctionState, FloatArray, FloatArray]:
        """q(x), and mean and variance (without ``own``) of everybody's weight, shapes (n_users,)."""
        factor = factorise(precision)
        mean = factor.solve(linear)
        inverse = factor.solve_lower(np.eye(len(mean)))
        root = inverse @ self.G.T
        square = float(mean @ mean + np.einsum("ij,ij->", inverse, inverse))
        nothing = np.zeros(0)
        function = FunctionState(mean, factor.lower, square, -factor.log_det(), nothing, nothing)
        return function, self.G @ mean, np.einsum("mu,mu->u", root, root)

    def values(self, function: FunctionState) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the weights at the points, shapes (M,) and (M, M)."""
        lower = self.projection.factor.lower
        root = Factor(function.lower, 0.0).solve_lower(lower.T)
        return lower @ function.mean, root.T @ root
