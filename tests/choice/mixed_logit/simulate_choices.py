"""Choices of people with coefficients from a known population."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from predilect import Comparisons


class Choices(NamedTuple):
    answers: Comparisons
    items: dict[str, list]
    coefficients: np.ndarray  # (n_users, 3)


MEAN = np.array([-0.5, 1.0, 0.3])
OMEGA = np.array([[0.5, -0.3, 0.0], [-0.3, 1.0, 0.2], [0.0, 0.2, 0.4]])


def choices(seed: int, n_users: int = 100, n_tasks: int = 8, n_options: int = 3, n_items: int = 30,
            mean: np.ndarray = MEAN, Omega: np.ndarray = OMEGA) -> Choices:  # fmt: skip
    """Each person's choices of the best of some items with attributes price, speed and size."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_items, len(mean))), 2)
    w = rng.multivariate_normal(mean, Omega, size=n_users)
    columns: dict[str, list] = {name: [] for name in ("user", "task", "left", "right", "winner")}
    for user in range(n_users):
        for task in range(n_tasks):
            shown = rng.choice(n_items, n_options, replace=False)
            best = shown[np.argmax(X[shown] @ w[user] + rng.gumbel(size=n_options))]
            for other in shown[shown != best]:
                row = (f"u{user:04d}", task, f"i{best}", f"i{other}", f"i{best}")
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    names = ("price", "speed", "size")[: len(mean)]
    items = {"item": [f"i{i}" for i in range(n_items)], **dict(zip(names, X.T.tolist(), strict=True))}
    return Choices(Comparisons.from_frame(columns, columns={"task": "task"}), items, w)
