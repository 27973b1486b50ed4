"""Dirichlet(α, ..., α) prior of people's weights: what answers leave open of them, and weights to start from.

docs/math/gaspk.md section 2.1, where the density is one of the logarithms of weights (the softmax basis), in which its
mode exists for every α > 0.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from predilect._base.compile import kernel
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import eigenpairs
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.mode import Newton, find_mode
from predilect.papers.gaspk.posterior.basis import PointBasis
from predilect.papers.gaspk.posterior.sums import packed_blocks, row_sums

_DENSE_RANK = 500  # columns of a basis up to which all directions are worked out
_COARSE = 1e-3  # tolerance of a mode that only starts something
_NEAREST = 0.1  # least weight to start from, as a share of the average
_LEAST = 0.03  # α of which people are of one kind each
_ROUNDING = 1e-9  # of the longest direction: shorter ones are none


def squared_length(n_c: int, concentration: float) -> float:
    """Prior mean of |γ|²: prior variance of a person's evaluation, as a share of a characteristic's; 1 for α = 0."""
    return (concentration + 1.0) / (n_c * concentration + 1.0)


def concentration_of(n_c: int, like: float, n_like: int) -> float:
    """The α of n_c characteristics with which people differ as much as with α = ``like`` of ``n_like`` of them.

    The share of the prior variance that is not common to all is (n_c - 1)/(n_c (α + 1)); as much of it as n_c allow.
    """
    share = (n_like - 1.0) / (n_like * (like + 1.0))
    return max((n_c - 1.0) / (n_c * share) - 1.0, _LEAST) if share > 0.0 else like


def open_weights(
    answers: TradeOffAnswers, F: FloatArray, gamma: FloatArray, precision: FloatArray, concentration: float
) -> FloatArray:
    """Covariances (n_users, n_c, n_c) of people's weights at the mode ``gamma``, the characteristics F being known.

    ``precision`` (n,) is each row's curvature times its weight. Laplace's method in the softmax basis: with
    H = Σ precision F Fᵀ + α diag(1/γ²), which is H⁻¹ within the plane of weights that sum to 1. n n_c² + n_users n_c³,
    the latter once for people with equal answers and weights.
    """
    n_users, n_c = gamma.shape
    alike = answers.alike(gamma)
    people = np.unique(alike)
    out = np.empty((n_users, n_c, n_c))
    packed = packed_blocks(answers.point, answers.user, precision, F, n_users)
    _covariances(
        people, packed, np.ascontiguousarray(gamma), concentration, np.empty((2, n_c, n_c)), np.empty(n_c), out
    )  # fmt: skip
    return out if len(people) == n_users else out[alike]


@kernel
def _covariances(
    people: IntArray, packed: FloatArray, gamma: FloatArray, concentration: float, work: FloatArray, sums: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """:func:`open_weights` of ``people`` from triangles of Σ precision F Fᵀ; ``work`` (2, n_c, n_c) and ``sums`` are
    workspace.
    """
    n_c = gamma.shape[1]
    L, M = work[0], work[1]  # M = L⁻¹
    for u in people:
        mine, covariance = gamma[u], out[u]
        first = 0
        for c in range(n_c):
            # Scaled by the weights, of which some are tiny: γ γᵀ ∘ H = γ γᵀ ∘ Σ precision F Fᵀ + α I.
            for d in range(c + 1):
                a = packed[u, first + d] * mine[c] * mine[d]
                if d == c:
                    a += concentration
                for k in range(d):
                    a -= L[c, k] * L[d, k]
                L[c, d] = math.sqrt(a) if c == d else a / L[d, d]
            first += c + 1
        for d in range(n_c):
            M[d, d] = 1.0 / L[d, d]
            for c in range(d + 1, n_c):
                a = 0.0
                for k in range(d, c):
                    a -= L[c, k] * M[k, d]
                M[c, d] = a / L[c, c]
        total = 0.0
        for c in range(n_c):
            sums[c] = 0.0
        for c in range(n_c):
            for d in range(c + 1):
                a = 0.0
                for k in range(c, n_c):
                    a += M[k, c] * M[k, d]
                a *= mine[c] * mine[d]
                covariance[c, d] = covariance[d, c] = a
                sums[c] += a
                if d != c:
                    sums[d] += a
        for c in range(n_c):
            total += sums[c]
        for c in range(n_c):
            for d in range(n_c):
                covariance[c, d] -= sums[c] * sums[d] / total


def weights_of_data(
    basis: PointBasis, answers: TradeOffAnswers, n_c: int, concentration: float, delta: float
) -> FloatArray:
    """Weights (n_users, n_c) to start from, which the answers alone decide: no seed and no names.

    Everybody's slopes at the mode of one characteristic for all, as directions in the coordinates: the n_c - 1 leading
    singular vectors over people are laid out on the simplex around its centre, as far apart as the prior has weights.
    """
    n_users = answers.n_users
    alone = np.ones((n_users, 1))
    mode = find_mode(basis, answers, alone, Probit(delta), Newton(), tolerance=_COARSE)
    rows = answers.by_point
    slope = rows.weight * Probit(delta).at(rows.outcome, mode.z)[1]
    k = min(n_c - 1, basis.rank, n_users)

    def scores(directions: FloatArray) -> FloatArray:
        """Slopes of every person along directions (rank, k), shape (n_users, k)."""
        return row_sums(rows.user, slope[:, None] * basis.forward(directions)[rows.point], n_users)

    def squares(directions: FloatArray) -> FloatArray:
        mine = scores(directions.reshape(basis.rank, -1))[rows.user]
        return basis.backward(row_sums(rows.point, slope[:, None] * mine, basis.n_points))

    if basis.rank <= max(_DENSE_RANK, k + 1):
        vectors = eigenpairs(squares(np.eye(basis.rank)))[1][:, :k]
    else:
        operator = LinearOperator((basis.rank, basis.rank), matvec=squares, dtype=np.float64)
        vectors = eigsh(operator, k=k, v0=mode.w[:, 0], tol=_COARSE)[1][:, ::-1]
    apart = scores(vectors)
    apart *= np.where((apart**3).sum(axis=0) < 0.0, -1.0, 1.0)  # eigenvectors have no sign of their own
    length = np.sqrt(np.square(apart).mean(axis=0))
    apart /= np.where(length > _ROUNDING * length.max(initial=0.0), length, math.inf)
    deviation = math.sqrt(1.0 / (n_c * (n_c * concentration + 1.0)))  # of a Dirichlet, in each of n_c - 1 directions
    offset = deviation * apart @ simplex_directions(n_c)[:, :k].T
    furthest = n_c * -offset.min(axis=1, initial=0.0) / (1.0 - _NEAREST)
    return np.asarray(1.0 / n_c + offset / np.maximum(furthest, 1.0)[:, None])


def simplex_directions(n_c: int) -> FloatArray:
    """Orthonormal directions that keep the sum of weights, shape (n_c, n_c - 1)."""
    return np.asarray(np.linalg.qr(np.column_stack([np.ones(n_c), np.eye(n_c)[:, 1:]]))[0][:, 1:])
