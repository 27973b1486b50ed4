"""How much the answers of one person hang together: the sandwich covariance of a pooled model, by the jackknife."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri, stdtrit

from predilect._types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.gaussian.dense import symmetrise
from predilect.latent.pooled import PooledAnswers, PooledState
from predilect.likelihoods.probit import at

_FEWEST_PEOPLE = 5
_MOST_FUNCTIONS = 3000  # products of dense matrices of all items take minutes beyond
_NUMBERS_AT_ONCE = 2_000_000


def dependence(state: PooledState, C: FloatArray, comparisons: Comparisons) -> FloatArray | None:
    """D of the covariance C + C D C, (M, M), in which people are independent of each other, and not their answers.

    D = Σ_u x_u x_uᵀ - H, where C x_u is what one Newton step moves the mode when person u is left out: x_u = (I - H_u
    C)⁻¹ g_u, with the score g_u and the information H_u of the person's answers, and H = Σ_u H_u. None where fewer
    than five people are told apart, or M is beyond 3 000, and 0 for items that nobody compared with others and fewer
    than five people answered on. population.md section 4. O(Σ_u n_u min(n_u, M)² + U M²) for n_u rows of each of U
    people.

    ``C`` (M, M) is the covariance of ``state``.
    """
    n_people = len(np.unique(comparisons.user))
    if not comparisons.has_users or n_people < _FEWEST_PEOPLE or len(C) > _MOST_FUNCTIONS:
        return None
    rows = comparisons
    prior, Phi = state.prior, state.prior.Phi
    f = prior.utilities(state.m)
    _, slope, curvature, _, _ = at(rows.outcome, f[rows.left] - f[rows.right], state.delta)
    score, information = rows.weight * slope, rows.weight * curvature
    _, first, counts = np.unique(rows.user, return_index=True, return_counts=True)
    busy = counts > len(C)
    x: list[FloatArray] = [np.zeros((0, len(C)))]
    for start, n in zip(first[busy].tolist(), counts[busy].tolist(), strict=True):
        own = slice(start, start + n)
        answers = PooledAnswers(rows.left[own], rows.right[own], rows.outcome[own], rows.weight[own], rows.n_items)
        flow = np.bincount(answers.left, score[own], rows.n_items) - np.bincount(
            answers.right, score[own], rows.n_items
        )
        H = prior.information(answers, information[own])
        x.append(np.atleast_2d(np.linalg.solve(np.eye(len(C)) - H @ C, prior.gather(np.asarray(flow, dtype=float)))))
    between = np.concatenate(x).T @ np.concatenate(x)
    pull = np.zeros(rows.n_rows)
    for n in np.unique(counts[~busy]).tolist():
        begin = first[counts == n]
        most = max(1, _NUMBERS_AT_ONCE // n**2)
        for start in range(0, len(begin), most):
            some = begin[start : start + most, None] + np.arange(n)
            system = np.eye(n) - information[some][:, :, None] * _margin_covariance(C, Phi, rows, some)
            pull[some] = np.linalg.solve(system, score[some][:, :, None])[:, :, 0]
    people = np.repeat(np.arange(n_people), counts)
    columns = (np.r_[people, people], np.r_[rows.left, rows.right])
    x_items = csr_array((np.r_[pull, -pull], columns), shape=(n_people, rows.n_items))
    between += (x_items.T @ x_items).toarray() if Phi is None else (x_items @ Phi).T @ (x_items @ Phi)
    H = prior.information(state.rows, state.information)
    if Phi is not None:
        return symmetrise(_of_student(np.array(n_people)) * between - H)
    edges = coo_array((np.ones(rows.n_rows), (rows.left, rows.right)), shape=(rows.n_items, rows.n_items))
    n_islands, island = connected_components(edges, directed=False)
    pairs = np.unique(rows.user.astype(np.int64) * n_islands + island[rows.left])
    wider = np.sqrt(_of_student(np.bincount(pairs % n_islands, minlength=n_islands)))[island]
    return symmetrise(wider[:, None] * between * wider - (wider > 0.0)[:, None] * H)


def _of_student(n_people: IntArray) -> FloatArray:
    """Factor of G: a variance is known by so many people only, and a 95 % interval is Student's; 0 with few people."""
    n = np.maximum(n_people, _FEWEST_PEOPLE)
    factor = (stdtrit(n - 1, 0.975) / ndtri(0.975)) ** 2 * (n - 1) / n
    return np.where(n_people < _FEWEST_PEOPLE, 0.0, factor)


def _margin_covariance(C: FloatArray, Phi: FloatArray | None, rows: Comparisons, some: IntArray) -> FloatArray:
    """Covariance of the margins of several people's rows, (people, n, n); ``some`` (people, n)."""
    left, right = rows.left[some], rows.right[some]
    if Phi is not None:
        A = Phi[left] - Phi[right]
        return np.asarray(A @ C @ A.transpose(0, 2, 1))
    one, other, first, second = left[:, :, None], right[:, :, None], left[:, None, :], right[:, None, :]
    return np.asarray(C[one, first] - C[one, second] - C[other, first] + C[other, second])
