"""What answers say of the effects of their covariates, and of the consensus, at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from predilect._types import FloatArray, IntArray
from predilect.gaussian.dense import factorise, symmetrise
from predilect.gaussian.design import Sites
from predilect.latent.pooled import laplacian
from predilect.people.law import Law
from predilect.people.layout import People


class CovariateInformation(NamedTuple):
    """Information of all answers in the effects γ of covariates, sites held (population.md section 4)."""

    with_consensus: FloatArray  # Σ_u Aᵀ Q_u X, (M, n_covariates)
    own: FloatArray  # Σ_u Xᵀ Q_u X, (n_covariates, n_covariates)

    def joint(self, C_m: FloatArray, precision: float) -> tuple[FloatArray, FloatArray]:
        """Posterior covariances of consensus and effects, from that of the consensus at known effects."""
        C_R = C_m @ self.with_consensus
        rest = self.own + precision * np.eye(len(self.own)) - self.with_consensus.T @ C_R
        C_gamma = factorise(symmetrise(rest)).inverse()
        return symmetrise(C_m + C_R @ C_gamma @ C_R.T), C_gamma


def covariate_information(people: People, sites: Sites, law: Law) -> CovariateInformation:
    """Sums over people; O(min(n_u, k_u)³) for a person with n_u rows on k_u items."""
    n_effects = people.patterns.shape[1]
    with_items = np.zeros((people.n_items, n_effects))
    own = np.zeros((n_effects, n_effects))
    for user, rows, items, left, right, precision in each_person(people, sites):
        X = people.patterns[people.variant[rows]]
        QX = times_Q(law.covariance(items), left, right, precision, X, people.noise(user))
        with_items[items] += of_items(left, right, QX, len(items))
        own += X.T @ QX
    return CovariateInformation(law.Phi.T @ with_items if law.has_basis else with_items, symmetrise(own))


def each_person(people: People, sites: Sites) -> Iterator[tuple[int, slice, IntArray, IntArray, IntArray, FloatArray]]:
    """Everybody who answered: code, rows, own items, the places of left and right among them, and precisions."""
    for user in np.flatnonzero(np.diff(people.answer_ptr)).tolist():
        rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
        items = people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]]
        left, right = people.left[rows].astype(np.int64), people.right[rows].astype(np.int64)
        precision = people.consistency[user] ** 2 * people.weight[rows] * sites.precision[rows]
        yield user, rows, items, left, right, precision


def times_Q(
    S: FloatArray, left: IntArray, right: IntArray, precision: FloatArray, X: FloatArray, noise: FloatArray | None
) -> FloatArray:
    """Q_u X of a person with prior covariance S (k, k) of the own items, and ``noise`` (n, n) that tasks share.

    X and the result have a row an answer.
    """
    k = len(S)
    if noise is not None or len(left) <= k:
        half = S[left] - S[right]
        root = np.sqrt(precision)[:, None]
        G = half[:, left] - half[:, right]
        B = np.eye(len(left)) + root * (G if noise is None else G + noise) * root.T
        return np.asarray(root * factorise(B).solve(root * X))
    flow = of_items(left, right, precision[:, None] * X, k)
    known = np.linalg.solve(np.eye(k) + S @ laplacian(k, left, right, precision), S @ flow)
    return np.asarray(precision[:, None] * (X - known[left] + known[right]))


def of_items(left: IntArray, right: IntArray, of_rows: FloatArray, k: int) -> FloatArray:
    """Aᵀ times columns of numbers of the rows, (k, n_columns)."""
    sums = np.zeros((k, of_rows.shape[1]))
    np.add.at(sums, left, of_rows)
    np.subtract.at(sums, right, of_rows)
    return sums
