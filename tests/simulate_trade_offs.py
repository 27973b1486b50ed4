"""Choices by people whose utilities are linear in a few attributes, so that what they would pay is known."""

from __future__ import annotations

import numpy as np
import polars as pl

from simulate import random_pairs

__all__ = ["WORTH", "linear_choices"]

# Utility of one unit of price, comfort, and of fuel=gas instead of fuel=oil, of two kinds of people.
WORTH = {"thrifty": (-0.20, 0.4, 0.5), "rich": (-0.06, 0.6, -0.5)}


def linear_choices(
    n_users: int = 30, n_answers: int = 40, tie_threshold: float = 0.0, seed: int = 0, three_fuels: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Answers with columns user, left, right, winner; and items with price, comfort and fuel.

    People with an even number are thrifty. With three fuels people like sun as they like gas.
    """
    rng = np.random.default_rng(seed)
    n_items = 60
    price, comfort = rng.integers(0, 21, n_items).astype(float), rng.integers(0, 5, n_items).astype(float)
    fuel = rng.choice(["oil", "gas", "sun"] if three_fuels else ["oil", "gas"], n_items)
    items = pl.DataFrame(
        {"item": [f"i{k:02d}" for k in range(n_items)], "price": price, "comfort": comfort, "fuel": fuel.tolist()}
    )
    user = np.repeat(np.arange(n_users), n_answers)
    left, right = random_pairs(rng, len(user), n_items)
    worth = np.array([WORTH["thrifty"], WORTH["rich"]])[user % 2]
    rows = np.column_stack([price, comfort, fuel != "oil"])
    z = np.einsum("ij,ij->i", rows[left] - rows[right], worth) + rng.standard_normal(len(user))
    winner = np.where(np.abs(z) < tie_threshold, "tie", np.where(z > 0, "left", "right"))
    names = items["item"].to_numpy()
    answers = {
        "user": [f"p{u:02d}" for u in user], "left": names[left], "right": names[right], "winner": winner.tolist()
    }  # fmt: skip
    return pl.DataFrame(answers), items
