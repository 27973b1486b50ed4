"""Crowds whose utilities are linear in attributes of the items, with weights that traits of people may move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulate import probit_answers

Columns = dict[str, Any]


@dataclass
class AttributedCrowd:
    """Features as frames, and answers of some of the people."""

    items: Columns
    users: Columns
    utilities: np.ndarray  # n_users x n_items
    rng: np.random.Generator

    def answers(self, per_person: int, users: Any = None, delta: float = 0.0) -> tuple[Columns, np.ndarray]:
        """Random pairs of the given people, by default of all: columns user, left and right, and the outcomes."""
        user = np.repeat(np.arange(len(self.utilities)) if users is None else users, per_person)
        left, right, outcome = probit_answers(self.rng, self.utilities, user, delta)
        return {"user": user, "left": left, "right": right}, outcome


def attributed_crowd(
    seed: int, n_users: int = 60, n_items: int = 12, *, trait_sd: float = 0.0, person_sd: float = 0.6
) -> AttributedCrowd:
    """Two attributes of items; people's weights on them are a consensus, a part of their own, and traits' effect."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_items, 2))
    age, group = rng.standard_normal(n_users), rng.integers(2, size=n_users)
    traits = np.c_[age, 2.0 * group - 1.0]
    effects = trait_sd * rng.choice([-1.0, 1.0], size=(2, 2))
    weights = np.array([0.8, -0.4]) + person_sd * rng.standard_normal((n_users, 2)) + traits @ effects
    items = {"item": np.arange(n_items), "a": x[:, 0], "b": x[:, 1]}
    users = {"user": np.arange(n_users), "age": 40.0 + 12.0 * age, "group": np.array(["in", "out"])[group]}
    return AttributedCrowd(items, users, weights @ x.T, rng)
