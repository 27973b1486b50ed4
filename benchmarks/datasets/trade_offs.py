"""Simulated choices about trade-offs: GaSPK's scalability experiment, and a crowd on a grid of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from benchmarks.task import Task, read_answers, split_rows
from predilect.data import Vocabulary

__all__ = ["GridCrowd", "grid_crowd", "grid_items", "utility_planes"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

N_INSTANCES = 15
NOISE = 0.5  # of a pair's difference, in standard deviations of such differences
TEST_SHARE = 0.2


def utility_planes(n_dimensions: int, n_users: int, seed: int, *, own_instances: bool = False) -> Task:
    """GaSPK's synthetic data: a random utility plane for each person, 15 random instances, noise, all 105 pairs.

    Parameters
    ----------
    n_dimensions : int
        Of an instance; half of them, rounded down, are binary and the others uniform on (0, 1).
    n_users : int
    seed : int
    own_instances : bool
        Whether each person has 15 instances of their own, so that trade-offs are as many as answers, and not the same
        15 as everybody.

    Notes
    -----
    protocols.md P3, last paragraph. The paper does not say how large the noise is, nor whether people share instances:
    here its standard deviation is half of that of the differences of utility.
    """
    rng = np.random.default_rng([seed, n_dimensions, n_users])
    n_items = N_INSTANCES * (n_users if own_instances else 1)
    x = rng.random((n_items, n_dimensions))
    binary = n_dimensions // 2
    x[:, :binary] = x[:, :binary] < 0.5
    planes = rng.standard_normal((n_users, n_dimensions))
    one, other = np.triu_indices(N_INSTANCES, 1)
    user = np.repeat(np.arange(n_users), len(one))
    first = user * N_INSTANCES if own_instances else np.zeros_like(user)
    left, right = np.tile(one, n_users) + first, np.tile(other, n_users) + first
    difference = np.einsum("pd,pd->p", planes[user], x[left] - x[right])
    difference += NOISE * difference.std() * rng.standard_normal(len(user))
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    items = pl.DataFrame({"item": np.arange(n_items)} | {f"x{d + 1}": x[:, d] for d in range(n_dimensions)})
    test = rng.random(len(user)) < TEST_SHARE
    vocabulary = Vocabulary(items["item"])
    return split_rows(
        "utility planes", seed, frame, np.where(difference > 0, 1, -1), test, vocabulary=vocabulary, items=items
    )


@dataclass(frozen=True, slots=True, eq=False)
class GridCrowd:
    """Answers of people about points of a grid.

    Attributes
    ----------
    levels : tuple of arrays of float
        Of each dimension, symmetric about 0.
    user, code : arrays of int, shape (n,)
        Who, and which point of the grid (row-major).
    outcome : array of int8, shape (n,)
    n_users : int
    """

    levels: tuple[FloatArray, ...]
    user: IntArray
    code: IntArray
    outcome: npt.NDArray[np.int8]
    n_users: int


def grid_crowd(shape: tuple[int, ...], n_answers: int, n_users: int, seed: int, n_kinds: int = 10) -> GridCrowd:
    """People asked about random points of a grid.

    Each weighs the dimensions as one of ten kinds of people does, and a little as a second kind. Answers are by the
    probit of a plane whose values over the grid have standard deviation 1.5, no more certain than those of real people.
    """
    rng = np.random.default_rng([seed, n_answers])
    levels = tuple(np.linspace(-1.0, 1.0, n) for n in shape)
    user = np.arange(n_answers) % n_users
    code = rng.integers(int(np.prod(shape)), size=n_answers)
    where = np.stack([level[k] for level, k in zip(levels, np.unravel_index(code, shape), strict=True)], axis=1)
    kinds = rng.standard_normal((n_kinds, len(shape)))
    first, second = rng.integers(n_kinds, size=(2, n_users))
    planes = 0.8 * kinds[first] + 0.2 * kinds[second]
    z = np.einsum("pd,pd->p", planes[user], where)
    outcome = np.where(rng.random(n_answers) < ndtr(1.5 * z / z.std()), 1, -1).astype(np.int8)
    return GridCrowd(levels, user, code, outcome, n_users)


def grid_items(halves: tuple[int, ...], n_answers: int, n_users: int, seed: int, n_test: int = 0) -> Task:
    """The same kind of crowd, asked about pairs of items: attribute d has ``halves[d]`` equal levels.

    Differences then have 2 halves[d] - 1 levels. ``n_test`` further pairs of the same people are for the test. Nothing
    is asked of what answers imply by transitivity, which would take items x items bits.
    """
    rng = np.random.default_rng([seed, n_answers])
    places = np.stack(np.unravel_index(np.arange(int(np.prod(halves))), halves), axis=1)
    x = places / (np.array(halves) - 1)
    n, n_items = n_answers + n_test, len(x)
    user = np.arange(n) % n_users
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    kinds = rng.standard_normal((10, len(halves)))
    first, second = rng.integers(10, size=(2, n_users))
    planes = 0.8 * kinds[first] + 0.2 * kinds[second]
    z = np.einsum("pd,pd->p", planes[user], x[left] - x[right])
    outcome = np.where(rng.random(n) < ndtr(1.5 * z / z.std()), 1, -1)
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    items = pl.DataFrame({"item": np.arange(n_items)} | {f"x{d + 1}": x[:, d] for d in range(len(halves))})
    vocabulary = Vocabulary(items["item"])
    train, test = (
        read_answers(frame[rows], outcome[rows], vocabulary)
        for rows in (slice(None, n_answers), slice(n_answers, None) if n_test else slice(0, 1))
    )
    return Task("items on a grid", seed, train, test, items=items)
