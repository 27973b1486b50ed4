"""Populations on a basis with nothing special about them, as the package and as the referee take them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predilect.inference.people.law import Law
from predilect.inference.people.layout import People
from referees.dense_basis import Truth
from simulate import laid_out, random_covariance

# Part of a population: own parts, traits of people.
PARTS = {"plain": (False, False), "own": (True, False), "traits": (False, True), "own and traits": (True, True)}


def truth_of(rows, *, own: bool, traits: bool, n_functions: int = 3, delta: float = 0.4, seed: int = 0) -> Truth:
    """Random parameters; own variances differ from item to item, and one is nearly nothing."""
    rng = np.random.default_rng(seed)
    n_items, M, n_traits = rows.n_items, n_functions, 2 * traits
    n_own = n_items * own
    share = rng.uniform(0.2, 1.0, n_own)
    share[:1] = 1e-6
    x = rng.standard_normal((rows.n_users, n_traits))
    return Truth(
        Phi=rng.standard_normal((n_items, M)), Sigma=random_covariance(rng, M, 1.5), m=rng.standard_normal(M),
        share=share, own_scale=0.7, offset=0.5 * rng.standard_normal(n_own),
        B=0.6 * rng.standard_normal((M, n_traits)), traits=x, delta=delta, C_m=random_covariance(rng, M, 0.3),
        offset_variance=rng.uniform(0.05, 0.4, n_own), C_B=random_covariance(rng, M, 0.1),
    )  # fmt: skip


def law_of(truth: Truth) -> Law:
    """The same as a law of the package."""
    mean = truth.Phi @ truth.m
    if len(truth.offset):
        mean = mean + truth.offset
    return Law(truth.Sigma, mean, truth.Phi, truth.rho, truth.Phi @ truth.B)


def people_of(rows, truth: Truth, *, heavy: bool = False) -> People:
    """The answers laid out, for rank-one updates or, all of them, for dense factorisations."""
    people = laid_out(rows)
    return replace(people, traits=truth.traits, largest_state=0 if heavy else 10**9)
