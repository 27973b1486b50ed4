"""Sandwich covariance of a pooled model, for answers of one person or context that depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import ndtri, stdtrit

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.checks import FEWEST_CONTEXTS, connected_items
from predilect.inference.gaussian.dense import symmetrise
from predilect.inference.latent.pooled import PooledAnswers, PooledPrior, PooledState, Precision

FEWEST_GROUPS = 5  # people without whom nothing is known of how much they differ
_MOST_FUNCTIONS = 3000  # products of dense matrices of all items take minutes beyond
_NUMBERS_AT_ONCE = 2_000_000
# Pair space costs the square of a group's rows: with more than such a share of M a series takes less, where the group
# has little of all information.
_ROWS_FOR_SERIES, _LITTLE, _ROUNDING = 6, 0.2, 1e-14


def dependence(state: PooledState, C: FloatArray, comparisons: Comparisons) -> FloatArray | None:
    """D of the covariance C + C D C, (M, M), in which people and contexts are independent, and not their answers.

    For people D = t Σ_u x_u x_uᵀ - H, where C x_u is what one Newton step moves the mode when person u is
    left out: x_u = (I - H_u C)⁻¹ g_u, with the score g_u and the information H_u of the person's answers, H = Σ_u H_u,
    and t of Student's law. With contexts the same sum over them is added, and that over the answers of one person in
    one context taken off, as these are in both. None where fewer than five people, and than two contexts, are named, or
    M is beyond 3 000; 0 for groups of items on which fewer answered. population.md section 4. O(n + U M²) for n rows
    of U people of whom each says little of the crowd; of others, and of answers about several items, Σ_u n_u min(n_u,
    M)² for n_u rows of each.

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
        # Of many rows that together say little, all groups at once; others with more rows than M one by one, and the
        # rest in pair space, all with as many rows at once.
        by_series = self._say_little(answers, information, group, counts)
        series = np.zeros((0, M))
        if by_series.any():
            assert isinstance(information, np.ndarray)
            little = np.flatnonzero(by_series[group])
            number = (np.cumsum(by_series) - 1)[group[little]]
            series = self._summed(_at(answers, little), score[little], information[little], number)
        busy = np.flatnonzero((counts > M) & ~by_series)
        x = np.empty((len(busy), M))
        for place, one in enumerate(busy.tolist()):
            own = np.arange(offsets[one], offsets[one + 1])
            theirs = _at(answers, own)
            H_u = prior.information(theirs, _of_rows(information, own))
            x[place] = np.linalg.solve(np.eye(M) - H_u @ C, prior.gather(theirs, score[own]))
        pull = np.zeros(len(score))
        rest = (counts <= M) & ~by_series
        for n in np.unique(counts[rest]).tolist():
            begin = offsets[:-1][rest & (counts == n)]
            most = max(1, _NUMBERS_AT_ONCE // n**2)
            for start in range(0, len(begin), most):
                some = begin[start : start + most, None] + np.arange(n)
                covariance = _margin_covariance(C, prior.Phi, answers, some)
                if isinstance(information, np.ndarray):
                    system = np.eye(n) - information[some][:, :, None] * covariance
                else:
                    system = np.eye(n) - _within(information, some) @ covariance
                pull[some] = np.linalg.solve(system, score[some][:, :, None])[:, :, 0]
        rows = np.flatnonzero(rest[group])
        places = (np.tile(group[rows], 2), np.r_[answers.left[rows], answers.right[rows]])
        of_groups = csr_array((np.r_[pull[rows], -pull[rows]], places), shape=(n_groups, answers.n_items))
        if prior.Phi is not None:
            of_groups = csr_array(of_groups @ prior.Phi)
        if answers.covariates is not None:
            of_effects = np.zeros((n_groups, prior.n_effects))
            np.add.at(of_effects, group, pull[:, None] * answers.covariates)
            of_groups = hstack([of_groups, csr_array(of_effects)], format="csr")
        between = x.T @ x + series.T @ series
        between += (of_groups.T @ of_groups).toarray()
        n_islands = int(self.island.max()) + 1
        pairs = np.unique(group * n_islands + self.island[answers.left])
        factor = np.full(M, np.sqrt(_of_few(np.array(n_groups), fewest)))
        if prior.Phi is None:
            on_island = np.sqrt(_of_few(np.bincount(pairs % n_islands, minlength=n_islands), fewest))
            factor[: answers.n_items] = on_island[self.island]
        return factor[:, None] * between * factor, factor

    def _say_little(
        self, answers: PooledAnswers, information: Precision, group: IntArray, counts: IntArray
    ) -> BoolArray:  # fmt: skip
        """Of which groups the series of :meth:`_summed` is short and takes less than pair space, (n_groups,)."""
        many = counts * _ROWS_FOR_SERIES > max(len(self.C), answers.n_items)
        if not isinstance(information, np.ndarray) or not many.any():
            return np.zeros(len(counts), dtype=bool)
        rows = np.flatnonzero(many[group])
        of_rows = np.zeros(len(group))
        of_rows[rows] = information[rows] * _margin_covariance(self.C, self.prior.Phi, answers, rows[:, None])[:, 0, 0]
        return many & (np.bincount(group, of_rows, len(counts)) < _LITTLE)

    def _summed(
        self, answers: PooledAnswers, score: FloatArray, information: FloatArray, group: IntArray
    ) -> FloatArray:  # fmt: skip
        """The series x_g = Σ_k (H_g C)ᵏ g_g of all groups at once, (n_groups, M), to rounding.

        The trace of H_g C bounds its largest eigenvalue, and so by how much each term is smaller than the one before.
        A term takes n_groups M² operations, and some for each row.
        """
        Phi, n_items = self.prior.Phi, answers.n_items
        n_groups, n_functions = int(group.max()) + 1, self.prior.n_functions

        def gathered(flow: FloatArray) -> FloatArray:
            cells = n_groups * n_items
            of_items = np.bincount(group * n_items + answers.left, flow, cells)
            of_items = (of_items - np.bincount(group * n_items + answers.right, flow, cells)).reshape(n_groups, n_items)
            found = [of_items if Phi is None else of_items @ Phi]
            if answers.covariates is not None:
                found += [np.bincount(group, flow * one, n_groups)[:, None] for one in answers.covariates.T]
            return np.hstack(found)

        term = gathered(score)
        total = term.copy()
        while np.abs(term).max() > _ROUNDING * np.abs(total).max():
            moved = term @ self.C
            of_items = moved[:, :n_functions] if Phi is None else moved[:, :n_functions] @ Phi.T
            margin = of_items[group, answers.left] - of_items[group, answers.right]
            if answers.covariates is not None:
                margin += np.einsum("ij,ij->i", moved[group, n_functions:], answers.covariates)
            term = gathered(information * margin)
            total += term
        return total


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
