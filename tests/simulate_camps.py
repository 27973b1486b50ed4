"""Crowds of which half want the opposite of the others, and crowds that agree."""

from __future__ import annotations

import numpy as np

from simulate import Answers, answers, crowd, random_pairs

# Nothing to search for, so that a test is quick.
FIXED = {
    "clickers": 0.0,
    "strength": 30.0,
    "variance": 1.0,
    "consensus_variance": 1.0,
    "calibration": None,
    "consistency": 0.0,
    "n_jobs": 1,
}


def camps(seed: int, n_users: int = 40, n_items: int = 6, per_person: int = 12, delta: float = 0.0) -> Answers:
    """Every other person wants the opposite of the others."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), per_person)
    left, right = random_pairs(rng, len(user), n_items)
    taste = np.linspace(-1.5, 1.5, n_items)
    z = np.where(user % 2, 1, -1) * (taste[left] - taste[right]) + rng.standard_normal(len(user))
    outcome = np.where(np.abs(z) <= delta, 0, np.sign(z)).astype(int)
    return answers(user, left, right, outcome, n_items=n_items, n_users=n_users)


def agreeing(seed: int) -> Answers:
    return crowd(seed, 40, 6, 12, person_sd=0.0)
