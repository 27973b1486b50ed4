"""Crowds who differ in care or in what they call a tie, answers with covariates, and populations of every form."""

from __future__ import annotations

import numpy as np

from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out_columns
from simulate import Answers, answers, probit_answers, random_covariance

N_ITEMS, DELTA, SPREAD = 6, 0.6, 0.7
# (user, winner, loser, task): a choice of four, an order of three, best and worst of four, levels, and pairs.
TASKS = [
    (0, 2, 0, 0), (0, 2, 1, 0), (0, 2, 5, 0), (0, 3, 4, -1),
    (1, 4, 0, 0), (1, 0, 3, 0), (1, 0, 1, 1), (1, 0, 2, 1), (1, 1, 5, 1), (1, 2, 5, 1), (1, 4, 5, -1), (1, 3, 2, -1),
    (2, 0, 4, 0), (2, 0, 5, 0), (2, 1, 4, 0), (2, 1, 5, 0), (2, 3, 1, 1), (2, 3, 4, 1),
]  # fmt: skip


def differing(what: str, seed: int, n_users: int, per_person, spread: float) -> Answers:
    """With "ties" person u ties if the noisy margin is within δ exp(θ_u); with "care" the noise of u is exp(-θ_u)."""
    rng = np.random.default_rng(seed)
    theta = spread * rng.standard_normal(n_users)
    utilities = rng.standard_normal(N_ITEMS) + 0.7 * rng.standard_normal((n_users, N_ITEMS))
    user, factor = np.repeat(np.arange(n_users), per_person), np.exp(theta)
    if what == "ties":
        told = probit_answers(rng, utilities, user, DELTA * factor[user])
    else:
        told = probit_answers(rng, utilities * factor[:, None], user, DELTA)
    rows = answers(user, *told, n_items=N_ITEMS, n_users=n_users)
    rows.theta = theta
    return rows


def laws() -> list[Law]:
    """A population on the items, and one on functions, with what items have to themselves and a trait of people."""
    mean = np.linspace(-1.0, 1.0, N_ITEMS)
    on_items = Law(random_covariance(np.random.default_rng(1), N_ITEMS, 1.5), mean)
    rng = np.random.default_rng(2)
    shift, Phi = 0.3 * rng.standard_normal((N_ITEMS, 1)), rng.standard_normal((N_ITEMS, 3))
    return [
        on_items,
        Law(on_items.Sigma, mean, shift=shift),
        Law(random_covariance(rng, 3, 1.0), mean, Phi),
        Law(random_covariance(rng, 3, 1.0), mean, Phi, rng.uniform(0.1, 0.8, N_ITEMS), shift),
    ]


def with_covariates(n_users: int, n_items: int, largest_state: int = 600, sign: float = 1.0) -> People:
    """One with fewer answers than items, the others with more; ties, weights, two covariates, people of unlike care."""
    rng = np.random.default_rng(3)
    user = np.sort(rng.integers(1, n_users, size=60))
    user[:3] = 0
    left = rng.integers(n_items - 1, size=60)
    right = left + 1 + rng.integers(n_items, size=60) % (n_items - 1 - left)
    patterns, variant = np.unique(np.round(rng.normal(size=(60, 2)), 1), axis=0, return_inverse=True)
    return lay_out_columns(
        user, left, right, rng.integers(-1, 2, size=60).astype(np.int8), rng.integers(1, 3, size=60).astype(float),
        n_items=n_items, traits=np.zeros((n_users, 0)), largest_state=largest_state, patterns=sign * patterns,
        variant=variant.reshape(-1), consistency=np.exp(0.4 * rng.normal(size=n_users)),
    )  # fmt: skip


def plain_law(n_items: int, basis: bool = False) -> Law:
    """A population on the items, or on three functions and with something of each item's own."""
    rng = np.random.default_rng(4)
    if not basis:
        root = rng.normal(size=(n_items, n_items))
        return Law(root @ root.T / n_items, rng.normal(size=n_items))
    Phi, root = rng.normal(size=(n_items, 3)), rng.normal(size=(3, 3))
    return Law(root @ root.T, Phi @ rng.normal(size=3), Phi, 0.2 * np.ones(n_items))


def in_tasks(rows=TASKS, largest_state: int = 600, consistency=(1.3, 0.8, 1.0)) -> People:
    """Answers of people about several alternatives."""
    user, winner, loser, task = (np.array(column) for column in zip(*rows, strict=True))
    return lay_out_columns(
        user, np.minimum(winner, loser), np.maximum(winner, loser), np.where(winner < loser, 1, -1).astype(np.int8),
        np.ones(len(rows)), n_items=N_ITEMS, traits=np.zeros((len(consistency), 0)), largest_state=largest_state,
        task=task, consistency=np.array(consistency),
    )  # fmt: skip


def many_in_tasks() -> People:
    """People with many more rows than items: choices, orders, best-worst, in a mixed order, pairs between them."""
    rng = np.random.default_rng(7)
    rows = []
    for user in range(3):
        for task in range(26):
            a, b, c, d = rng.permutation(N_ITEMS)[:4].tolist()
            kinds = [(a, b), (a, c), (a, d)], [(a, b), (b, c), (c, d)], [(a, b), (a, c), (b, d), (c, d)]
            rows += [(user, *pair, task) for pair in kinds[(user + task) % 3]]
            rows.append((user, a, d, -1))
    order = np.lexsort((rng.random(len(rows)), [row[0] for row in rows]))
    return in_tasks([rows[place] for place in order])
