"""Covariance of the consensus by what people's scores differ, where the model's own takes too much for known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.sandwich import FEWEST_GROUPS, of_student
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People


class Scores(NamedTuple):
    """Sums over people: G = Σ_u x_u x_uᵀ, H = Σ_u w_u H_u, (M, M) each, and how many people answered.

    x_u = (I - w_u H_u C)⁻¹ w_u g_u for the score g_u of somebody who answers by utilities with probability w_u: C x_u
    is the step by which the consensus moves when u is left out.
    """

    G: FloatArray
    H: FloatArray
    n_people: int


def scores_of_people(people: People, sites: Sites, law: Law, C: FloatArray) -> Scores:
    """Sums over people, at a covariance C of the consensus; O(k³) a person with k items."""
    G, H = np.zeros_like(C), np.zeros_like(C)
    answered = np.flatnonzero(np.diff(people.answer_ptr))
    for user in answered.tolist():
        items, x, Q = people.sums(user, sites, law)
        k, w = len(items), float(people.engaged[user])
        g, H_u, own = w * x[:k], w * Q[:k, :k], items.astype(np.int64)
        if law.has_basis:
            rows, own = law.Phi[items], np.arange(len(C))
            g, H_u = rows.T @ g, rows.T @ H_u @ rows
        at = np.ix_(own, own)
        step = np.linalg.solve(np.eye(len(g)) - H_u @ C[at], g)
        G[at] += np.outer(step, step)
        H[at] += H_u
    return Scores(G, H, len(answered))


def log_evidence_without_own(people: People, sites: Sites, law: Law, C: FloatArray) -> FloatArray:
    """Log of E Z_u(m) over Z_u at the mean of the law, (n_users,): m as it is known without the person's own answers.

    The consensus and its covariance C hold the answers of everybody, so that Z_u at the mean is larger than it was to
    be expected. With the score g and the information H of log Z_u, the probability w that u answers by utilities, and
    C_u = (C⁻¹ - wH)⁻¹, m without u is N(m - w C_u g, C_u), and the ratio is
    exp(½ (1 - w)² gᵀ(C_u⁻¹ + H)⁻¹g - ½ w² gᵀC_u g) / |I + C_u H|^½. 1 of who has no answers.
    O(k³ + kM) a person with k items.
    """
    found = np.zeros(people.n_users)
    for user in np.flatnonzero(np.diff(people.answer_ptr)).tolist():
        items, x, Q = people.sums(user, sites, law)
        k, w = len(items), float(people.engaged[user])
        g, H = x[:k], Q[:k, :k]
        own = law.Phi[items] @ C @ law.Phi[items].T if law.has_basis else C[np.ix_(items, items)]
        without = np.linalg.solve(np.eye(k) - w * own @ H, own)
        widened, step = np.eye(k) + without @ H, without @ g
        gain = (1.0 - w) ** 2 * (g @ np.linalg.solve(widened, step)) - w * w * (g @ step)
        found[user] = 0.5 * (gain - np.linalg.slogdet(widened)[1])
    return found


def wider(C: FloatArray, other: FloatArray) -> FloatArray:
    """The smallest covariance in the coordinates that make both diagonal that is as wide as both along each of them."""
    factor = factorise(C)
    values, vectors = eigh(symmetrise(factor.solve_lower(factor.solve_lower(other).T)))
    root = factor.lower @ vectors
    return symmetrise((root * np.maximum(values, 1.0)) @ root.T)


def widened_by_people(C: FloatArray, scores: Scores) -> FloatArray:
    """C as wide as the sandwich by person C + C D C with D = t (U - 1) / U G - H, and no less; C of fewer than five."""
    U = scores.n_people
    if U < FEWEST_GROUPS:
        return C
    D = symmetrise(float(of_student(np.array(U))) * (U - 1) / U * scores.G - scores.H)
    return wider(C, symmetrise(C + C @ D @ C))
