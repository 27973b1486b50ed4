"""Simulated crowds, and answers laid out for the compiled loops without being sorted or added up."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons
from predilect.inference.people.layout import People, lay_out

Answers = SimpleNamespace  # user, left, right, outcome, weight, n_users, n_items, n_rows


def answers(
    user: npt.ArrayLike,
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    n_items: int,
    n_users: int | None = None,
) -> Answers:
    """Columns of codes as given: repeated rows stay apart and left may exceed right, as nothing is canonicalised."""
    user = np.asarray(user, dtype=np.int32)
    return SimpleNamespace(
        user=user,
        left=np.asarray(left, dtype=np.int32),
        right=np.asarray(right, dtype=np.int32),
        outcome=np.asarray(outcome, dtype=np.int8),
        weight=np.ones(len(user)) if weight is None else np.asarray(weight, dtype=float),
        n_users=int(user.max()) + 1 if n_users is None else n_users,
        n_items=n_items,
        n_rows=len(user),
    )


def laid_out(rows: Answers) -> People:
    """Sorted by person only (stable), then laid out."""
    order = np.argsort(rows.user, kind="stable")
    columns = {name: getattr(rows, name)[order] for name in ("user", "left", "right", "outcome", "weight")}
    return lay_out(SimpleNamespace(**({"covariates": None, "task": None, "copies": None} | vars(rows) | columns)))


def comparisons(rows: Answers) -> Comparisons:
    """The same answers through the front door. Every item must occur, since codes become ids and ids codes again."""
    names = {1: "left", 0: "tie", -1: "right"}
    result = Comparisons.from_frame(
        {
            "user": rows.user.tolist(),
            "left": rows.left.tolist(),
            "right": rows.right.tolist(),
            "winner": [names[int(y)] for y in rows.outcome],
            "weight": rows.weight.tolist(),
        }
    )
    assert result.n_items == rows.n_items
    assert result.n_users == rows.n_users
    return result


def random_pairs(rng: np.random.Generator, n: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """n pairs of different items, in either order."""
    left = rng.integers(n_items, size=n)
    return left, (left + rng.integers(1, n_items, size=n)) % n_items


def probit_answers(
    rng: np.random.Generator, utilities: np.ndarray, user: np.ndarray, delta: npt.ArrayLike = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random pairs, left and right, for each entry of ``user``, and what they answer; ``delta`` of all, or of each."""
    left, right = random_pairs(rng, len(user), utilities.shape[1])
    z = utilities[user, left] - utilities[user, right] + rng.standard_normal(len(user))
    return left, right, np.where(np.abs(z) <= delta, 0, np.sign(z)).astype(int)


def named(user: np.ndarray, left: np.ndarray, right: np.ndarray) -> dict[str, list[str]]:
    """The columns of a frame, with a name for each person and item."""
    codes = {"user": ("u", user), "left": ("i", left), "right": ("i", right)}
    return {column: [f"{letter}{k}" for k in values] for column, (letter, values) in codes.items()}


def shuffled(frame: dict[str, list[Any]], random: Random) -> dict[str, list[Any]]:
    """The rows of a frame in another order, some with left and right swapped."""
    order = list(range(len(frame["left"])))
    random.shuffle(order)
    moved = {name: [column[k] for k in order] for name, column in frame.items()}
    for k in order:
        if random.random() < 0.5:
            moved["left"][k], moved["right"][k] = moved["right"][k], moved["left"][k]
    return moved


def random_covariance(rng: np.random.Generator, n: int, scale: float = 1.0) -> np.ndarray:
    """A well-conditioned covariance with mean variance ``scale``."""
    root = rng.standard_normal((n, n + 3))
    matrix = root @ root.T / (n + 3) + 0.1 * np.eye(n)
    return scale * matrix / np.mean(np.diagonal(matrix))


def crowd(
    seed: int,
    n_users: int,
    n_items: int,
    per_person: int | Sequence[int],
    *,
    delta: float = 0.0,
    consensus_sd: float = 1.0,
    person_sd: float = 1.0,
) -> Answers:
    """People with f_u = m + their own part answer random pairs by the probit model with tie threshold ``delta``."""
    rng = np.random.default_rng(seed)
    m = consensus_sd * rng.standard_normal(n_items)
    utilities = m + person_sd * rng.standard_normal((n_users, n_items))
    user = np.repeat(np.arange(n_users), per_person)
    left, right, outcome = probit_answers(rng, utilities, user, delta)
    rows = answers(user, left, right, outcome, n_items=n_items, n_users=n_users)
    rows.truth = utilities
    return rows
