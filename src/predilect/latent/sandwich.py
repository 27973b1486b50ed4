"""Sandwich covariance of a pooled model, for answers of one person that depend on each other, by the jackknife."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import ndtri, stdtrit

from predilect._types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.checks import connected_items
from predilect.gaussian.dense import symmetrise
from predilect.latent.pooled import PooledAnswers, PooledState

_FEWEST_PEOPLE = 5
_MOST_FUNCTIONS = 3000  # products of dense matrices of all items take minutes beyond
_NUMBERS_AT_ONCE = 2_000_000


def dependence(state: PooledState, C: FloatArray, comparisons: Comparisons) -> FloatArray | None:
    """D of the covariance C + C D C, (M, M), in which people are independent of each other, and not their answers.

    D = t Σ_u x_u x_uᵀ - H, where C x_u is what one Newton step moves the mode when person u is left out: x_u = (I - H_u
    C)⁻¹ g_u, with the score g_u and the information H_u of the person's answers, H = Σ_u H_u, and t of Student's law.
    None where fewer than five people are named, or M is beyond 3 000; 0 for groups of items on which fewer than five
    answered. population.md section 4. O(Σ_u n_u min(n_u, M)² + U M²) for n_u rows of each of U people.

    ``C`` (M, M) is the covariance of ``state``, of effects of covariates too.
    """
    rows, M = comparisons, len(C)
    offsets = rows.user_offsets
    counts = np.diff(offsets)
    n_people = int(np.count_nonzero(counts))
    if not rows.has_users or n_people < _FEWEST_PEOPLE or M > _MOST_FUNCTIONS:
        return None
    prior, Phi = state.prior, state.prior.Phi
    answers = PooledAnswers.of(rows, state.rows.likelihood)
    _, slope, curvature = answers.likelihood(state.delta).at(rows.outcome, prior.margins(answers, state.mode))
    score, information = rows.weight * slope, rows.weight * curvature
    # People with more rows than M one by one, the others in pair space, all with as many rows at once.
    busy = np.flatnonzero(counts > M)
    x = np.empty((len(busy), M))
    for place, user in enumerate(busy.tolist()):
        own = slice(offsets[user], offsets[user + 1])
        theirs = replace(
            answers, left=rows.left[own], right=rows.right[own], outcome=rows.outcome[own], weight=rows.weight[own],
            covariates=None if rows.covariates is None else rows.covariates[own],
        )  # fmt: skip
        H_u = prior.information(theirs, information[own])
        x[place] = np.linalg.solve(np.eye(M) - H_u @ C, prior.gather(theirs, score[own]))
    pull = np.zeros(rows.n_rows)
    for n in np.unique(counts[(counts > 0) & (counts <= M)]).tolist():
        begin = offsets[:-1][counts == n]
        most = max(1, _NUMBERS_AT_ONCE // n**2)
        for start in range(0, len(begin), most):
            some = begin[start : start + most, None] + np.arange(n)
            system = np.eye(n) - information[some][:, :, None] * _margin_covariance(C, Phi, rows, some)
            pull[some] = np.linalg.solve(system, score[some][:, :, None])[:, :, 0]
    places = (np.r_[rows.user, rows.user], np.r_[rows.left, rows.right])
    of_items = csr_array((np.r_[pull, -pull], places), shape=(rows.n_users, rows.n_items))
    between = x.T @ x
    n_effects = prior.n_effects
    of_people = of_items if Phi is None else csr_array(of_items @ Phi)
    if rows.covariates is not None:
        of_effects = np.zeros((rows.n_users, n_effects))
        np.add.at(of_effects, rows.user, pull[:, None] * rows.covariates)
        of_people = hstack([of_people, csr_array(of_effects)], format="csr")
    between += (of_people.T @ of_people).toarray()
    H = prior.information(state.rows, state.information)
    if Phi is not None:
        return symmetrise(_of_student(np.array(n_people)) * between - H)
    group = connected_items(rows)
    n_groups = int(group.max()) + 1
    pairs = np.unique(rows.user.astype(np.int64) * n_groups + group[rows.left])
    wider = np.sqrt(_of_student(np.bincount(pairs % n_groups, minlength=n_groups)))[group]
    wider = np.append(wider, np.full(n_effects, np.sqrt(_of_student(np.array(n_people)))))
    return symmetrise(wider[:, None] * between * wider - (wider > 0.0)[:, None] * H)


def _of_student(n_people: IntArray) -> FloatArray:
    """Factor of G: a variance is known by so many people only, and a 95 % interval is Student's; 0 with few people."""
    n = np.maximum(n_people, _FEWEST_PEOPLE)
    factor = (stdtrit(n - 1, 0.975) / ndtri(0.975)) ** 2 * (n - 1) / n
    return np.where(n_people < _FEWEST_PEOPLE, 0.0, factor)


def _margin_covariance(C: FloatArray, Phi: FloatArray | None, rows: Comparisons, some: IntArray) -> FloatArray:
    """Covariance of the margins of several people's rows, (people, n, n); ``some`` (people, n)."""
    left, right = rows.left[some], rows.right[some]
    M = C.shape[0] if rows.covariates is None else C.shape[0] - rows.covariates.shape[1]
    if Phi is not None:
        A = Phi[left] - Phi[right]
        found = A @ C[:M, :M] @ A.transpose(0, 2, 1)
    else:
        one, other, first, second = left[:, :, None], right[:, :, None], left[:, None, :], right[:, None, :]
        found = C[one, first] - C[one, second] - C[other, first] + C[other, second]
    if rows.covariates is None:
        return np.asarray(found)
    X, shared = rows.covariates[some], C[:M, M:]
    cross = (A @ shared if Phi is not None else shared[left] - shared[right]) @ X.transpose(0, 2, 1)
    return np.asarray(found + cross + cross.transpose(0, 2, 1) + X @ C[M:, M:] @ X.transpose(0, 2, 1))
