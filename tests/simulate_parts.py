"""A crowd whose answers are written to a file and dealt out to parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from predilect.parts import Parts, partition

N_ITEMS = 6


def votes(n_people: int = 60, per_person: int = 8, seed: int = 0, ties: float = 0.0) -> pl.DataFrame:
    """Pairs of people who differ, in an order of no meaning."""
    rng = np.random.default_rng(seed)
    utilities = rng.standard_normal(N_ITEMS) + rng.standard_normal((n_people, 2)) @ rng.standard_normal((2, N_ITEMS))
    user = rng.permutation(np.repeat(np.arange(n_people), per_person))
    left = rng.integers(N_ITEMS, size=len(user))
    right = (left + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    margin = utilities[user, left] - utilities[user, right] + rng.standard_normal(len(user))
    name = np.array([f"item {k}" for k in range(N_ITEMS)])
    winner = np.where(np.abs(margin) < ties, "tie", name[np.where(margin > 0, left, right)])
    return pl.DataFrame({"user": [f"p{k}" for k in user], "left": name[left], "right": name[right], "winner": winner})


def in_parts(folder: Path, frame: pl.DataFrame, n_parts: int = 3, **how) -> Parts:
    """The frame as a file, and in parts."""
    frame.write_csv(folder / "votes.csv")
    return partition(folder / "votes.csv", folder / "parts", n_parts=n_parts, **how)
