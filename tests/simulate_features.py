"""Crowds drawn from the model itself, item features and the inverse Wishart included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import invwishart

from simulate import probit_answers

Columns = dict[str, Any]


@dataclass
class FeaturedCrowd:
    """A truth, and as many answers of it as one likes."""

    rng: np.random.Generator
    items: Columns  # features, as a frame
    true: dict[str, float]  # hyper-parameters
    consensus: np.ndarray
    utilities: np.ndarray  # n_users x n_items
    delta: float

    def answers(self, per_person: int) -> tuple[Columns, np.ndarray]:
        """Random pairs: columns user, left and right, and the outcomes."""
        user = np.repeat(np.arange(len(self.utilities)), per_person)
        left, right, outcome = probit_answers(self.rng, self.utilities, user, self.delta)
        return {"user": user, "left": left, "right": right}, outcome


def featured_crowd(
    seed: int,
    n_users: int,
    n_items: int,
    *,
    scale: float,
    feature_weight: float,
    strength: float = 40.0,
    consensus_variance: float = 4.0,
    length_scale: float = 1.5,
    delta: float = 0.0,
) -> FeaturedCrowd:
    """f_u ~ N(m, Σ), m ~ N(0, s_t K₀), Σ ~ IW with mean s₀ K₀ and weight ν₀, K₀ = w SE(two features) + (1 - w) I."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_items, 2))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    distance = ((x[:, None] - x) ** 2).sum(axis=-1)
    K = feature_weight * np.exp(-0.5 * distance / length_scale**2) + (1 - feature_weight) * np.eye(n_items)
    Sigma = invwishart(df=strength + n_items + 1, scale=strength * scale * K).rvs(random_state=rng)
    m = rng.multivariate_normal(np.zeros(n_items), consensus_variance * K)
    true = {
        "strength": strength, "variance": scale, "consensus_variance": consensus_variance,
        "feature_weight": feature_weight, "length_scale": length_scale,
    }  # fmt: skip
    items = {"item": np.arange(n_items), "a": x[:, 0], "b": x[:, 1]}
    return FeaturedCrowd(rng, items, true, m, rng.multivariate_normal(m, Sigma, size=n_users), delta)
