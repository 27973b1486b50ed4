"""Consensus of people whose answers on one context depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.checks import FEWEST_CONTEXTS
from predilect.data.orders import weights_of_rows
from predilect.inference.gaussian.dense import factorise, symmetrise, widened
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.pooled import laplacian
from predilect.inference.latent.sandwich import of_student
from predilect.inference.people.layout import People
from predilect.inference.people.posterior import PopulationPosterior

# Few contexts say little of how far they differ on one pair of items: that they differ as far on all is worth four
# contexts (where there are two or three, one or two). Beside more than 20 it would hardly matter.
_FEW, _WORTH_OF_ALIKE = 20, 4
_MOST_NUMBERS = 20_000_000


def with_contexts(posterior: PopulationPosterior, answers: Comparisons) -> PopulationPosterior:
    """The posterior of a fit with C_m + C_m D C_m for the consensus, D being what contexts add to its score's variance.

    D = t K / (K - 1) Σ_k g_k g_kᵀ - Σ_uk g_uk g_ukᵀ over K contexts k and people u, where g_uk is what the answers of u
    on k bring to the score Aᵀ Q_u (s - z̄) of the consensus: products of what two people bring, 0 on average where
    contexts do not matter. t is Student's, and K / (K - 1) as the consensus was made from the same scores. A context of
    one person tells nothing. With 20 contexts or fewer the first sum is drawn to what it would be if contexts moved all
    items alike. people.md, "Contexts". Of one context nothing is known of D. O(n_u k_u²) for n_u answers on k_u items
    of each person, or n_u³ where people have effects of covariates of their own, and M³; K M³ for few contexts.

    ``answers`` are those of the fit, in the order of the rows of ``posterior``.
    """
    contexts = answers.context
    if contexts is None:
        return posterior
    cells = np.unique(np.stack([contexts, answers.user])[:, contexts >= 0], axis=1)
    n_people = np.bincount(cells[0])
    K = int(np.count_nonzero(n_people))
    if K < FEWEST_CONTEXTS:
        return posterior
    people, sites, law, C = posterior.people, posterior.sites, posterior.law, posterior.C_m
    of_cells = np.zeros((answers.n_items, answers.n_items))
    alike = K <= _FEW and len(n_people) * of_cells.size <= _MOST_NUMBERS
    pulls = np.zeros((len(n_people) if alike else 0, *of_cells.shape))  # what shifts of utilities on k bring to g_k
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    for user, rows, items, left, right, precision in _each_person(people, sites):
        A = np.zeros((len(left), len(items)))
        A[np.arange(len(left)), left] = 1.0
        A[np.arange(len(left)), right] = -1.0
        a, w = float(people.consistency[user]), people.weight[rows]
        mean = a * law.person_mean(items, people.traits[user])
        score = a * w * (sites.linear[rows] - sites.precision[rows] * (mean[left] - mean[right]))
        pull = np.divide(score, precision, out=np.zeros_like(score), where=precision > 0.0)
        noise, slope_columns = people.noise(user), people.slope_columns[rows]
        if slope_columns.shape[1]:
            noise = slope_columns @ slope_columns.T + (0.0 if noise is None else noise)
        pull *= people.engaged[user]
        QA = _times_Q(law.covariance(items), left, right, precision, A, noise)
        known, cell = np.unique(contexts[rows], return_inverse=True)
        sums = np.zeros((len(known), len(items)))
        np.add.at(sums, cell, pull[:, None] * QA)
        shared = (known >= 0) & (n_people[known] > 1)
        for place in np.flatnonzero(shared & alike):
            of_one = cell == place
            pulls[known[place]][np.ix_(items, items)] += QA[of_one].T @ A[of_one]
        sums, known = sums[shared], known[shared]
        of_cells[np.ix_(items, items)] += sums.T @ sums
        parts.append((np.repeat(known, len(items)), np.tile(items, len(known)), sums.ravel()))
    which, item, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    scores = csr_array((value, (which, item)), shape=(len(n_people), answers.n_items))
    of_mode = C @ law.Phi.T if law.has_basis else C
    noise = of_mode @ of_cells @ of_mode.T
    between = K / (K - 1) * (of_mode @ (scores.T @ scores).toarray() @ of_mode.T)
    moved = np.zeros_like(C)
    for of_context in pulls:
        moved += (of_mode @ of_context) @ (of_mode @ of_context).T
    worth = (_WORTH_OF_ALIKE if K >= _WORTH_OF_ALIKE else K - 1) if moved.any() else 0
    if worth:
        spread = max(float(np.trace(between - noise)), 0.0) / float(np.trace(moved))
        between = ((K - 1) * between + worth * (spread * moved + noise)) / (K - 1 + worth)
    # Where contexts are few this is known so badly that it may take off more than there is.
    return replace(posterior, C_m=widened(C, symmetrise(of_student(np.array(K + worth)) * between - noise)))


def share_between_contexts(answers: Comparisons) -> float:
    """Chance that two answers of one person are on different contexts; 0 where nobody gave two.

    How far contexts differ is noise of a person's answers in this share, and else part of how people differ. People
    count by the number of their answers.
    """
    assert answers.context is not None
    known = answers.context >= 0
    cells = answers.user[known] * (int(answers.context.max(initial=0)) + 1) + answers.context[known]
    _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
    of_cell = np.bincount(cell, weights_of_rows(answers)[known])
    owner = answers.user[known][first]
    n = np.bincount(owner, of_cell)
    pairs = n * np.maximum(n - 1.0, 0.0)
    alike = np.bincount(owner, of_cell * np.maximum(of_cell - 1.0, 0.0))
    apart = np.divide(pairs - alike, pairs, out=np.zeros_like(n), where=pairs > 0.0)
    total = float(n[pairs > 0.0].sum())
    return float(n @ apart) / total if total else 0.0


def _each_person(people: People, sites: Sites) -> Iterator[tuple[int, slice, IntArray, IntArray, IntArray, FloatArray]]:
    """Everybody who answered: code, rows, own items, the places of left and right among them, and precisions."""
    for user in np.flatnonzero(np.diff(people.answer_ptr)).tolist():
        rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
        own = people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]]
        items, place = np.unique(own, return_inverse=True)
        left, right = place[people.left[rows]], place[people.right[rows]]
        precision = people.consistency[user] ** 2 * people.weight[rows] * sites.precision[rows]
        yield user, rows, items, left, right, precision


def _times_Q(
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
    flow = _of_items(left, right, precision[:, None] * X, k)
    known = np.linalg.solve(np.eye(k) + S @ laplacian(k, left, right, precision), S @ flow)
    return np.asarray(precision[:, None] * (X - known[left] + known[right]))


def _of_items(left: IntArray, right: IntArray, of_rows: FloatArray, k: int) -> FloatArray:
    """Aᵀ times columns of numbers of the rows, (k, n_columns)."""
    sums = np.zeros((k, of_rows.shape[1]))
    np.add.at(sums, left, of_rows)
    np.subtract.at(sums, right, of_rows)
    return sums
