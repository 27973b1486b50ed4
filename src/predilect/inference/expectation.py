"""The E step of the population model: a map over shards of people and an ordered sum."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.inference.compiled.person_ep import em_pass
from predilect.inference.dense_ep import PersonPass, dense_pass
from predilect.posteriors.people import People, Sites
from predilect.scale.shards import Shard, map_shards

__all__ = ["Expectation", "expectation"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Sums over people (population.md section 3).

    Attributes
    ----------
    evidence : float
        Σ log Z_u, in nats.
    H, D : arrays of float, shape (n_items, n_items)
        Σ Xᵀ Q X, and Σ (Xᵀ α αᵀ X - Xᵀ Q X), twice the gradient of the evidence in Σ.
    r : array of float, shape (n_items,)
        Σ Xᵀ α, the gradient of the evidence in m.
    slope_delta, curvature_delta : float
        Gradient of the evidence in the tie threshold, and its curvature with the cavities held.
    largest_change : float
        Largest change that the last sweep made to a margin, in units of its noise.
    """

    evidence: float
    H: FloatArray
    D: FloatArray
    r: FloatArray
    slope_delta: float
    curvature_delta: float
    largest_change: float


def expectation(
    people: People,
    sites: Sites,
    Sigma: FloatArray,
    m: FloatArray,
    delta: float,
    *,
    n_sweeps: int = 1,
    tolerance: float = 0.0,
    executor: ThreadPoolExecutor | None = None,
) -> Expectation:
    """Sweep every person's sites, in place, and add up what each contributes.

    Parameters
    ----------
    people, sites
        Answers and their sites; ``sites`` is updated.
    Sigma, m : arrays of float, shapes (n_items, n_items) and (n_items,)
        Population covariance and consensus.
    delta : float
        Tie threshold (0: no ties).
    n_sweeps, tolerance : int, float
        At most so many sweeps a person; fewer once a sweep changes no margin by more than ``tolerance``.
    executor : ThreadPoolExecutor, optional
        Threads for the shards.

    Notes
    -----
    population.md sections 2 and 3. Time Σ_u n_u min(n_u, k_u)² + k_u³ for n_u answers on k_u items; memory
    2 n_items² floats a shard in flight, never anything of people x items x items.
    """
    n_items = people.n_items

    def work(shard: Shard) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        H = np.zeros((n_items, n_items))
        D = np.zeros((n_items, n_items))
        r = np.zeros(n_items)
        out = np.zeros(4)
        em_pass(
            shard[0], shard[1], people.answer_ptr, people.item_ptr, people.item_idx, people.left, people.right,
            people.outcome, people.weight, sites.precision, sites.linear, Sigma, m, delta, n_sweeps, tolerance,
            people.is_heavy, H, D, r, out,
        )  # fmt: skip
        return H, D, r, out

    def work_dense(shard: Shard) -> PersonPass:
        return dense_pass(people, shard[0], sites, Sigma, m, delta, n_sweeps, tolerance)

    H = np.zeros((n_items, n_items))
    D = np.zeros((n_items, n_items))
    r = np.zeros(n_items)
    sums = np.zeros(3)
    largest = 0.0
    for H_s, D_s, r_s, out in map_shards(work, people.shards, executor):
        H += H_s
        D += D_s
        r += r_s
        sums += out[:3]
        largest = max(largest, float(out[3]))
    for lower in (H, D):
        lower += np.tril(lower, -1).T
    for person in map_shards(work_dense, [(user, user + 1) for user in people.heavy.tolist()], executor):
        own = np.ix_(person.items, person.items)
        H[own] += person.Q
        D[own] += np.outer(person.x, person.x) - person.Q
        r[person.items] += person.x
        sums += person.out[:3]
        largest = max(largest, float(person.out[3]))
    return Expectation(float(sums[0]), H, D, r, float(sums[1]), float(sums[2]), largest)
