"""Sandwich covariance of a pooled model, for answers of one person or context that depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import ndtri, stdtrit

from predilect._types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.checks import connected_items
from predilect.gaussian.dense import symmetrise
from predilect.latent.pooled import PooledAnswers, PooledPrior, PooledState, Precision

FEWEST_GROUPS = 5  # people without whom nothing is known of how much they differ
FEWEST_CONTEXTS = 2
_MOST_FUNCTIONS = 3000  # products of dense matrices of all items take minutes beyond
_NUMBERS_AT_ONCE = 2_000_000


def dependence(state: PooledState, C: FloatArray, comparisons: Comparisons) -> FloatArray | None:
    """D of the covariance C + C D C, (M, M), in which people and contexts are independent, and not their answers.

    For people D = t Σ_u x_u x_uᵀ - H, where C x_u is what one Newton step moves the mode when person u is
    left out: x_u = (I - H_u C)⁻¹ g_u, with the score g_u and the information H_u of the person's answers, H = Σ_u H_u,
    and t of Student's law. With contexts the same sum over them is added, and that over the answers of one person in
    one context taken off, as these are in both. None where fewer than five people, and than two contexts, are named, or
    M is beyond 3 000; 0 for groups of items on which fewer answered. population.md section 4. O(Σ_u n_u min(n_u, M)² +
    U M²) for n_u rows of each of U people.

    ``C`` (M, M) is the covariance of ``state``, of effects of covariates too.
    """
    rows, M = comparisons, len(C)
    groups = []
    if rows.has_users and len(np.unique(rows.user)) >= FEWEST_GROUPS:
        groups.append((rows.user.astype(np.int64), FEWEST_GROUPS))
    if rows.context is not None and len(np.unique(rows.context)) >= FEWEST_CONTEXTS:
        groups.append((rows.context_groups, FEWEST_CONTEXTS))
    if not groups or M > _MOST_FUNCTIONS:
        return None
    scores = _Scores.of(state, C, rows)
    total, known = np.zeros((M, M)), np.zeros(M, dtype=bool)
    in_both = np.ones(M, dtype=bool)
    for group, fewest in groups:
        between, factor = scores.between(group, fewest)
        total, known, in_both = total + between, known | (factor > 0.0), in_both & (factor > 0.0)
    if len(groups) > 1:
        (people, _), (contexts, fewest) = groups
        between, factor = scores.between(people * (int(contexts.max()) + 1) + contexts, fewest)
        total -= (in_both & (factor > 0.0))[:, None] * between
    return symmetrise(total - known[:, None] * state.prior.information(state.rows, state.information))


class _Scores(NamedTuple):
    """Scores and information of the rows at the mode."""

    prior: PooledPrior
    C: FloatArray
    answers: PooledAnswers
    score: FloatArray  # (n_rows,)
    information: Precision
    island: IntArray  # of each item: of those that answers connect; with functions all are one

    @classmethod
    def of(cls, state: PooledState, C: FloatArray, rows: Comparisons) -> Self:
        """At the mode of a pooled model."""
        answers, prior = PooledAnswers.of(rows, state.rows.likelihood, state.rows.thresholds), state.prior
        _, score, information = answers.views(state.delta, prior.margins(answers, state.mode))
        island = connected_items(rows) if prior.Phi is None else np.zeros(rows.n_items, dtype=np.int64)
        return cls(prior, C, answers, score, information, island)

    def between(self, group: IntArray, fewest: int) -> tuple[FloatArray, FloatArray]:
        """Sum t (G - 1) / G Σ x_g x_gᵀ over G groups of rows, (M, M), and the root of what is before the sum, (M,).

        That is 0 for parameters of which fewer groups than ``fewest`` tell.
        """
        prior, C, M = self.prior, self.C, len(self.C)
        order = np.argsort(group, kind="stable")
        answers = _at(self.answers, order)
        score, information = self.score[order], _of_rows(self.information, order)
        group = np.unique(group[order], return_inverse=True)[1]
        counts = np.bincount(group)
        n_groups, offsets = len(counts), np.concatenate([[0], np.cumsum(counts)])
        # Groups with more rows than M one by one, the others in pair space, all with as many rows at once.
        busy = np.flatnonzero(counts > M)
        x = np.empty((len(busy), M))
        for place, one in enumerate(busy.tolist()):
            own = np.arange(offsets[one], offsets[one + 1])
            theirs = _at(answers, own)
            H_u = prior.information(theirs, _of_rows(information, own))
            x[place] = np.linalg.solve(np.eye(M) - H_u @ C, prior.gather(theirs, score[own]))
        pull = np.zeros(len(score))
        for n in np.unique(counts[counts <= M]).tolist():
            begin = offsets[:-1][counts == n]
            most = max(1, _NUMBERS_AT_ONCE // n**2)
            for start in range(0, len(begin), most):
                some = begin[start : start + most, None] + np.arange(n)
                covariance = _margin_covariance(C, prior.Phi, answers, some)
                if isinstance(information, np.ndarray):
                    system = np.eye(n) - information[some][:, :, None] * covariance
                else:
                    system = np.eye(n) - _within(information, some) @ covariance
                pull[some] = np.linalg.solve(system, score[some][:, :, None])[:, :, 0]
        places = (np.r_[group, group], np.r_[answers.left, answers.right])
        of_groups = csr_array((np.r_[pull, -pull], places), shape=(n_groups, answers.n_items))
        if prior.Phi is not None:
            of_groups = csr_array(of_groups @ prior.Phi)
        if answers.covariates is not None:
            of_effects = np.zeros((n_groups, prior.n_effects))
            np.add.at(of_effects, group, pull[:, None] * answers.covariates)
            of_groups = hstack([of_groups, csr_array(of_effects)], format="csr")
        between = x.T @ x
        between += (of_groups.T @ of_groups).toarray()
        n_islands = int(self.island.max()) + 1
        pairs = np.unique(group * n_islands + self.island[answers.left])
        factor = np.full(M, np.sqrt(_of_few(np.array(n_groups), fewest)))
        if prior.Phi is None:
            on_island = np.sqrt(_of_few(np.bincount(pairs % n_islands, minlength=n_islands), fewest))
            factor[: answers.n_items] = on_island[self.island]
        return factor[:, None] * between * factor, factor


def _of_rows(information: Precision, rows: IntArray) -> Precision:
    """Of some of the rows."""
    return information[rows] if isinstance(information, np.ndarray) else csr_array(information[rows][:, rows])


def _within(information: csr_array, some: IntArray) -> FloatArray:
    """Blocks of groups of rows, (groups, n, n); ``some`` (groups, n)."""
    groups, n = some.shape
    inside = information[some.ravel()][:, some.ravel()].tocoo()
    same = inside.row // n == inside.col // n
    blocks = np.zeros((groups, n, n))
    blocks[inside.row[same] // n, inside.row[same] % n, inside.col[same] % n] = inside.data[same]
    return blocks


def _at(answers: PooledAnswers, rows: IntArray) -> PooledAnswers:
    """Some of the rows, as places of a design."""
    return replace(
        answers, left=answers.left[rows], right=answers.right[rows], outcome=answers.outcome[rows],
        weight=answers.weight[rows], orders=None,
        covariates=None if answers.covariates is None else answers.covariates[rows],
    )  # fmt: skip


def of_student(n_groups: IntArray) -> FloatArray:
    """t, by which to multiply a variance that so many groups tell: a 95 % interval is then Student's."""
    return np.asarray((stdtrit(n_groups - 1, 0.975) / ndtri(0.975)) ** 2)


def _of_few(n_groups: IntArray, fewest: int) -> FloatArray:
    """Student's factor with that of leaving out one group at a time; 0 with fewer groups than ``fewest``."""
    n = np.maximum(n_groups, fewest)
    return np.where(n_groups < fewest, 0.0, of_student(n) * (n - 1) / n)


def _margin_covariance(C: FloatArray, Phi: FloatArray | None, rows: PooledAnswers, some: IntArray) -> FloatArray:
    """Covariance of the margins of the rows of several groups, (groups, n, n); ``some`` (groups, n)."""
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
