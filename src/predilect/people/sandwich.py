"""Covariance of the consensus by what people's scores differ, where the model's own takes too much for known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from predilect._types import FloatArray
from predilect.gaussian.dense import factorise, symmetrise
from predilect.latent.sandwich import FEWEST_GROUPS, of_student
from predilect.people.posterior import PopulationPosterior


def between_people(posterior: PopulationPosterior) -> FloatArray:
    """D = t (U - 1) / U Σ_u x_u x_uᵀ - H, (M, M), by which C + C D C is the sandwich by person; 0 of fewer than five.

    x_u = (I - w_u H_u C)⁻¹ w_u g_u for the score g_u of somebody who answers by utilities with probability w_u: C x_u
    is the step by which the consensus moves when u is left out. O(k³) a person with k items, and M³.
    """
    people, sites, law, C = posterior.people, posterior.sites, posterior.law, posterior.C_m
    G, H = np.zeros_like(C), np.zeros_like(C)
    answered = np.flatnonzero(np.diff(people.answer_ptr))
    U = len(answered)
    if U < FEWEST_GROUPS:
        return G
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
    return symmetrise(float(of_student(np.array(U))) * (U - 1) / U * G - H)


def wider(C: FloatArray, other: FloatArray) -> FloatArray:
    """The smallest covariance in the coordinates that make both diagonal that is as wide as both along each of them."""
    factor = factorise(C)
    values, vectors = eigh(symmetrise(factor.solve_lower(factor.solve_lower(other).T)))
    root = factor.lower @ vectors
    return symmetrise((root * np.maximum(values, 1.0)) @ root.T)


def widened_by_people(posterior: PopulationPosterior) -> PopulationPosterior:
    """With the consensus as wide as the sandwich by person has it, and not less than before."""
    C, D = posterior.C_m, between_people(posterior)
    return replace(posterior, C_m=wider(C, symmetrise(C + C @ D @ C))) if D.any() else posterior
