"""Basis of the utilities: the items themselves, their attributes, or a kernel through inducing points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from predilect._types import BoolArray, FloatArray
from predilect.data.features import FeatureSpace
from predilect.gaussian.dense import factorise
from predilect.gaussian.inducing import centres
from predilect.gaussian.kernels import squared_exponential

BASES = ("items", "attributes", "inducing", "attributes+inducing")
_LEAST_SHARE = 1e-6  # keeps the prior of an item-specific residual proper at an inducing point


@dataclass(frozen=True, slots=True)
class Functions:
    """M basis functions of an item's features: f_u = Φ β_u + e_u (population.md section 6).

    If ``own``, item-specific residuals exceed what inducing points lose: w is then the share of the prior variance that
    features explain, attributes and kernel half each. Otherwise w is the share of the kernel, and attributes have the
    rest. A kernel without attributes always leaves 1 - w to the items.
    """

    kind: str
    n_attributes: int  # the first columns of Φ
    attribute_scale: float  # their divisor: rows of mean square 1, so that prior scales mean the same for every basis
    points: FloatArray  # inducing points Z, (n_points, n_columns), in feature space
    length_scale: float
    own: bool

    @classmethod
    def of(
        cls, kind: str, space: FeatureSpace, points: FloatArray, length_scale: float, own: bool = False
    ) -> Functions:
        """Functions of a kind, one of :data:`BASES` but "items"."""
        attributes = kind.startswith("attributes")
        scale = float(np.sqrt(np.sum(space.matrix[space.known] ** 2) / max(int(space.known.sum()), 1)))
        if not kind.endswith("inducing"):
            points = points[:0]
        return cls(kind, space.matrix.shape[1] if attributes else 0, scale or 1.0, points, length_scale, own)

    @property
    def n_functions(self) -> int:
        """Number of functions M."""
        return self.n_attributes + len(self.points)

    def rows(self, space: FeatureSpace) -> FloatArray:
        """Design matrix Φ of some items, (n_items, M); zeros for an item without features.

        Kernel columns are K_xZ L⁻ᵀ with K_ZZ = L Lᵀ: independent weights of variance 1 are the Nyström approximation.
        """
        parts = []
        if self.n_attributes:
            parts.append(space.matrix / self.attribute_scale)
        if len(self.points):
            lower = factorise(squared_exponential(self.points, self.points, self.length_scale)).lower
            cross = squared_exponential(self.points, space.matrix, self.length_scale)
            parts.append(solve_triangular(lower, cross, lower=True, check_finite=False).T)
        Phi = np.ascontiguousarray(np.hstack(parts))
        Phi[~space.known] = 0.0
        return Phi

    def prior_covariance(self, weight: float) -> FloatArray:
        """Diagonal prior covariance (M, M): shares of the prior variance, a millionth at least, to be proper."""
        attributes, kernel = self._shares(weight)
        shares = np.repeat([attributes, kernel], [self.n_attributes, len(self.points)])
        return np.diag(np.maximum(shares, _LEAST_SHARE))

    def own_share(self, Phi: FloatArray, known: BoolArray, weight: float) -> FloatArray:
        """Share of the prior variance that functions and inducing points lose, (n_items,); empty if none."""
        attributes, kernel = self._shares(weight)
        if not len(self.points) and attributes == 1.0 and known.all():
            return np.zeros(0)
        share = 1.0 - attributes - kernel * np.sum(Phi[:, self.n_attributes :] ** 2, axis=1)
        return np.where(known, np.maximum(share, _LEAST_SHARE), 1.0)

    def slopes(self, Phi: FloatArray, known: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives in w of the diagonal of :meth:`prior_covariance`, (M,), and of :meth:`own_share`, (n_items,)."""
        (low, low_kernel), (high, high_kernel) = self._shares(0.0), self._shares(1.0)
        attributes, kernel = high - low, high_kernel - low_kernel
        share = -attributes - kernel * np.sum(Phi[:, self.n_attributes :] ** 2, axis=1)
        return np.repeat([attributes, kernel], [self.n_attributes, len(self.points)]), np.where(known, share, 0.0)

    @property
    def has_weight(self) -> bool:
        """Whether w is a parameter: not with attributes only."""
        return self.own or len(self.points) > 0

    def _shares(self, weight: float) -> tuple[float, float]:
        """Shares of attributes and of the kernel, linear in w."""
        if not len(self.points):
            return (weight, 0.0) if self.own else (1.0, 0.0)
        if not self.n_attributes:
            return 0.0, weight
        return (0.5 * weight, 0.5 * weight) if self.own else (1.0 - weight, weight)

    def to_dict(self) -> dict[str, Any]:
        """Kind and numbers of functions, for the report."""
        return {"kind": self.kind, "n_attributes": self.n_attributes, "n_inducing": len(self.points), "own": self.own}


def inducing_points(space: FeatureSpace, n_points: int, random_state: int) -> FloatArray:
    """Inducing points (<= n_points, n_columns): k-means centres of the items with features."""
    return centres(space.matrix[space.known], n_points, random_state)
