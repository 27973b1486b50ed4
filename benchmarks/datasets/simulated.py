"""The generator of benchmarks/README.md: many items with features, five tastes, known probabilities."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import log_ndtr

from benchmarks.task import Loader, Task, split_rows
from predilect.inference.gaussian.kernels import squared_exponential

__all__ = ["TASKS"]

N_ITEMS, N_FEATURES, N_TASTES = 200, 8, 5
LENGTH_SCALE = 2.83
PAIRS_A_PERSON, N_TEST = 20, 10_000
SIZES = {"generator-10k": 10_000, "generator-100k": 100_000, "generator-1m": 1_000_000}


def load(name: str, seed: int) -> Task:
    """Probit answers, margin 1.2 (t_a - t_b + w_u·(v_a - v_b)); t / 1.5 and the five columns of v are GP draws.

    w_u ~ N(0, I_5). The test pairs are further ones of the same people; their oracle is Φ of the true margin.
    """
    n_answers = SIZES[name]
    n_people = n_answers // PAIRS_A_PERSON
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((N_ITEMS, N_FEATURES))
    kernel = squared_exponential(features, features, LENGTH_SCALE)
    values, vectors = np.linalg.eigh(kernel)
    draws = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.standard_normal((N_ITEMS, N_TASTES + 1)))
    consensus = 1.5 * draws[:, 0]
    taste = rng.standard_normal((n_people, N_TASTES))
    user = np.concatenate([np.repeat(np.arange(n_people), PAIRS_A_PERSON), rng.integers(n_people, size=N_TEST)])
    left = rng.integers(N_ITEMS, size=len(user))
    right = (left + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    z = 1.2 * (consensus[left] - consensus[right])
    z += 1.2 * np.einsum("nk,nk->n", taste[user], draws[left, 1:] - draws[right, 1:])
    outcome = np.where(z + rng.standard_normal(len(z)) > 0, 1, -1)
    test = np.arange(len(user)) >= n_answers
    items = pl.DataFrame({"item": np.arange(N_ITEMS)} | {f"x{k}": features[:, k] for k in range(N_FEATURES)})
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    oracle = float(-log_ndtr(outcome[test] * z[test]).mean())
    return split_rows(name, seed, frame, outcome, test, items=items, oracle_log_loss=oracle)


def _loader(name: str) -> Loader:
    return lambda seed: load(name, seed)


TASKS: dict[str, Loader] = {name: _loader(name) for name in SIZES}
