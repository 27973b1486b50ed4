"""The posterior of a population: a consensus, how people differ, and every person through their own answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.posteriors.compiled.person_prediction import centred_utilities, predict_margins
from predilect.posteriors.gaussian import GaussianPosterior, centre, pair_variance
from predilect.posteriors.people import People, Sites
from predilect.scale.shards import cut, map_shards

__all__ = ["PopulationPosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_QUERIES_PER_SHARD = 20_000.0
_MOST_SHARDS = 16


@dataclass(frozen=True, slots=True)
class PopulationPosterior:
    """f_u = m + what person u's answers say, m ~ N(m, C_m), for every person u.

    A person is never stored: two numbers an answer (the sites) and the population say all there is to know, and a
    person's utilities are rebuilt from them in microseconds.

    Attributes
    ----------
    m : array of float, shape (n_items,)
        Consensus.
    C_m : array of float, shape (n_items, n_items)
        Posterior covariance of the consensus.
    Sigma : array of float, shape (n_items, n_items)
        Population covariance: how a new person differs from the consensus.
    people, sites
        Every answer and its Gaussian message.
    """

    m: FloatArray
    C_m: FloatArray
    Sigma: FloatArray
    people: People
    sites: Sites

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.m)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), noise not included.

        Parameters
        ----------
        users, left, right : arrays of int, shape (n,)
            Codes; a user of -1 is someone without answers and gets the population's prediction.
        executor : ThreadPoolExecutor, optional
            Threads.

        Returns
        -------
        mean, variance : arrays of float, shape (n,)

        Notes
        -----
        The consensus is integrated out: the variance holds both what is unknown about the person and about m.
        O(n_u k_u²) a person once, O(k_u²) a query.
        """
        left = np.asarray(left, dtype=np.int64)
        right = np.asarray(right, dtype=np.int64)
        users = np.asarray(users, dtype=np.int64)
        mean = self.m[left] - self.m[right]
        var = pair_variance(self.Sigma, left, right) + pair_variance(self.C_m, left, right)
        heavy = np.isin(users, self.people.heavy)
        for user in np.unique(users[heavy]).tolist():
            rows = np.flatnonzero(users == user)
            mean[rows], var[rows] = self._margins_of(user, left[rows], right[rows], mean[rows], var[rows])
        known = np.flatnonzero((users >= 0) & ~heavy)
        if not len(known):
            return mean, var
        order = known[np.argsort(users[known], kind="stable")]
        people, counts = np.unique(users[order], return_counts=True)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        sorted_left, sorted_right = left[order], right[order]
        sorted_mean = np.empty(len(order))
        sorted_var = np.empty(len(order))

        def work(shard: tuple[int, int]) -> None:
            start, stop = shard
            predict_margins(
                people[start:stop], bounds[start : stop + 1], sorted_left, sorted_right, *self._answers(),
                self.Sigma, self.m, self.C_m, sorted_mean, sorted_var,
            )  # fmt: skip

        for _ in map_shards(
            work, cut(counts.astype(float) + 20.0, _QUERIES_PER_SHARD, _MOST_SHARDS), executor, n_ahead=_MOST_SHARDS
        ):
            pass
        mean[order] = sorted_mean
        var[order] = sorted_var
        return mean, var

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one person's utilities.

        Parameters
        ----------
        user : int, default -1
            Code of a person; -1 is someone without answers, drawn from the population.

        Notes
        -----
        O(n_items² k_u) for a person with answers on k_u items.
        """
        if user < 0 or self.people.answer_ptr[user] == self.people.answer_ptr[user + 1]:
            return self.m, self.Sigma + self.C_m
        items, x, Q = self.people.sums(user, self.sites, self.Sigma, self.m)
        F = self.Sigma[:, items] @ Q
        B_C = self.C_m - F @ self.C_m[items]  # (I - F on the person's items) C_m
        covariance = self.Sigma - F @ self.Sigma[items] + B_C - B_C[:, items] @ F.T
        return self.m + self.Sigma[:, items] @ x, symmetrise(covariance)

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the consensus, the mean of the population of people."""
        return self.m, self.C_m

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of people's utilities, centred over the items.

        Parameters
        ----------
        users : array of int, shape (n,)
            Codes of known people.
        executor : ThreadPoolExecutor, optional
            Threads.

        Returns
        -------
        mean, variance : arrays of float, shape (n, n_items)

        Notes
        -----
        O(n_items k_u²) a person; nothing of n_items x n_items a person.
        """
        users = np.asarray(users, dtype=np.int64)
        mean = np.empty((len(users), self.n_items))
        var = np.empty_like(mean)

        heavy = np.isin(users, self.people.heavy)
        for row in np.flatnonzero(heavy).tolist():
            mean[row], covariance = centre(*self.utilities(int(users[row])))
            var[row] = np.diagonal(covariance)
        light = np.flatnonzero(~heavy)
        light_mean = np.empty((len(light), self.n_items))
        light_var = np.empty_like(light_mean)

        def work(shard: tuple[int, int]) -> None:
            rows = slice(*shard)
            centred_utilities(
                users[light[rows]], *self._answers(), self.Sigma, self.m, self.C_m, light_mean[rows], light_var[rows]
            )

        shards = cut(np.full(len(light), float(self.n_items)), _QUERIES_PER_SHARD, _MOST_SHARDS)
        for _ in map_shards(work, shards, executor, n_ahead=_MOST_SHARDS):
            pass
        mean[light], var[light] = light_mean, light_var
        return mean, var

    def extended(
        self,
        A: FloatArray,
        R: FloatArray,
        *,
        consensus: GaussianPosterior,
        scale: float,
        strength: float,
        trace: float,
    ) -> PopulationPosterior:
        """With new items appended, which no one has answered on (population.md section 6).

        Parameters
        ----------
        A : array of float, shape (n_new, n_items)
            K_*o K_oo⁻¹.
        R : array of float, shape (n_new, n_new)
            K_** - A K_o*.
        consensus : GaussianPosterior
            The consensus over the old and the new items.
        scale, strength : float
            s₀ and ν₀.
        trace : float
            tr((s₀ K_oo)⁻¹ Σ_oo).
        """
        cross = A @ self.Sigma
        spread = scale * (strength + trace) / (strength + self.n_items) * R + cross @ A.T
        Sigma = symmetrise(np.block([[self.Sigma, cross.T], [cross, spread]]))
        people = replace(self.people, n_items=len(consensus.mean))
        return PopulationPosterior(consensus.mean, consensus.covariance, Sigma, people, self.sites)

    def _margins_of(
        self, user: int, left: IntArray, right: IntArray, mean: FloatArray, var: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """One person's margins by matrix products, from those of the population."""
        items, x, Q = self.people.sums(user, self.sites, self.Sigma, self.m)
        c = self.Sigma[np.ix_(items, left)] - self.Sigma[np.ix_(items, right)]
        e = Q @ c
        C_own = self.C_m[np.ix_(items, items)]
        C_cross = self.C_m[np.ix_(items, left)] - self.C_m[np.ix_(items, right)]
        return mean + x @ c, var + np.sum(e * (C_own @ e - c - 2.0 * C_cross), axis=0)

    def _answers(self) -> tuple[npt.NDArray[np.generic], ...]:
        people = self.people
        return (
            people.answer_ptr, people.item_ptr, people.item_idx, people.left, people.right, people.weight,
            self.sites.precision, self.sites.linear,
        )  # fmt: skip
