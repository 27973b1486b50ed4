"""The posterior of a population: a consensus, how people differ, and every person through their own answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import symmetrise
from predilect.posteriors.basis import Basis, Effects
from predilect.posteriors.compiled.person_prediction import centred_utilities, predict_margins
from predilect.posteriors.gaussian import GaussianPosterior, pair_variance
from predilect.posteriors.law import Law
from predilect.posteriors.people import People, Sites
from predilect.posteriors.utilities import Utilities
from predilect.scale.shards import cut, map_shards

__all__ = ["PopulationPosterior"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

_QUERIES_PER_SHARD = 20_000.0
_MOST_SHARDS = 16
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class PopulationPosterior:
    """f_u = m + what person u's answers say, m ~ N(m, C_m), for every person u.

    A person is never stored: two numbers an answer (the sites) and the population say all there is to know, and a
    person's utilities are rebuilt from them in microseconds.

    Attributes
    ----------
    m : array of float, shape (M,)
        Consensus: of the items (M = n_items), or of the functions of a basis.
    C_m : array of float, shape (M, M)
        Posterior covariance of the consensus.
    Sigma : array of float, shape (M, M)
        Population covariance: how a new person differs from the consensus.
    people, sites
        Every answer and its Gaussian message.
    basis : Basis, optional
        What utilities hang on; by default the items themselves.
    effects : Effects, optional
        How traits of people move their utilities.
    law : Law
        What is known of a person before their own answers.
    """

    m: FloatArray
    C_m: FloatArray
    Sigma: FloatArray
    people: People
    sites: Sites
    basis: Basis | None = None
    effects: Effects | None = None
    law: Law = field(init=False)

    def __post_init__(self) -> None:
        basis, effects = self.basis, self.effects
        if basis is None:
            shift = np.zeros((0, 0)) if effects is None else effects.B
            law = Law(self.Sigma, self.m, shift=shift)
        else:
            shift = np.zeros((0, 0)) if effects is None else basis.Phi @ effects.B
            law = Law(self.Sigma, basis.mean(self.m), basis.Phi, basis.rho, shift)
        object.__setattr__(self, "law", law)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.law.mean)

    def margins(
        self,
        users: IntArray,
        left: IntArray,
        right: IntArray,
        *,
        traits: FloatArray | None = None,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), noise not included.

        Parameters
        ----------
        users, left, right : arrays of int, shape (n,)
            Codes; a user of -1 is someone without answers and gets the population's prediction.
        traits : array of float, shape (n, n_traits), optional
            Traits of the people without answers; by default those of the average person, zeros.
        executor : ThreadPoolExecutor, optional
            Threads.

        Returns
        -------
        mean, variance : arrays of float, shape (n,)

        Notes
        -----
        The consensus is integrated out: the variance holds both what is unknown about the person and about m.
        O(n_u k_u²) a person once, O(k_u²) a query; with a basis O(M (k_u + M)) a query.
        """
        left = np.asarray(left, dtype=np.int64)
        right = np.asarray(right, dtype=np.int64)
        users = np.asarray(users, dtype=np.int64)
        mean, var = np.empty(len(users)), np.empty(len(users))
        counts = np.diff(self.people.answer_ptr)
        silent = (users < 0) | (counts[users] == 0)
        rows = np.flatnonzero(silent)
        if len(rows):
            known = self.people.traits[users[rows]] * (users[rows] >= 0)[:, None]
            if traits is not None:
                known = np.where((users[rows] < 0)[:, None], traits[rows], known)
            mean[rows], var[rows] = self._margins_without_answers(left[rows], right[rows], known)
        heavy = np.isin(users, self.people.heavy)
        for user in np.unique(users[heavy]).tolist():
            rows = np.flatnonzero(users == user)
            mean[rows], var[rows] = self._margins_of(user, left[rows], right[rows])
        known_rows = np.flatnonzero(~silent & ~heavy)
        if not len(known_rows):
            return mean, var
        order = known_rows[np.argsort(users[known_rows], kind="stable")]
        people, n_queries = np.unique(users[order], return_counts=True)
        bounds = np.concatenate([[0], np.cumsum(n_queries)])
        sorted_left, sorted_right = left[order], right[order]
        sorted_mean = np.empty(len(order))
        sorted_var = np.empty(len(order))
        own_C = np.zeros(0) if self.basis is None else self.basis.offset_variance
        C_shift = np.zeros((0, 0)) if self.effects is None else self.effects.covariance

        def work(shard: tuple[int, int]) -> None:
            start, stop = shard
            predict_margins(
                people[start:stop], bounds[start : stop + 1], sorted_left, sorted_right, *self._answers(),
                self.C_m, own_C, C_shift, sorted_mean, sorted_var,
            )  # fmt: skip

        for _ in map_shards(
            work, cut(n_queries.astype(float) + 20.0, _QUERIES_PER_SHARD, _MOST_SHARDS), executor, n_ahead=_MOST_SHARDS
        ):
            pass
        mean[order] = sorted_mean
        var[order] = sorted_var
        return mean, var

    def person(self, user: int = -1, traits: FloatArray | None = None) -> Utilities:
        """One person's utilities in factored form, for any number of items.

        Parameters
        ----------
        user : int, default -1
            Code of a person; -1 is someone without answers, drawn from the population.
        traits : array of float, shape (n_traits,), optional
            Traits of someone without answers; by default those of the average person, zeros.

        Notes
        -----
        The state is (β, e_o): the functions of the basis, and what the person's own items have to themselves.
        O((M + k_u)² k_u) for a person with answers on k_u items.
        """
        known = self.people.traits[user] if user >= 0 else np.zeros(self.people.traits.shape[1])
        known = traits if traits is not None and user < 0 else known
        M, basis = len(self.m), self.basis
        C_m = self.C_m
        mean = self.law.mean
        if self.effects is not None:
            mean = mean + self.law.shift @ known
            C_m = C_m + float(known @ known) * self.effects.covariance
        own = np.zeros(0, dtype=np.int64)
        nothing = user < 0 or self.people.answer_ptr[user] == self.people.answer_ptr[user + 1]
        if nothing:
            return Utilities(mean, self.Sigma + C_m, None if basis is None else basis.Phi, own, self._own_variance())
        items, x, Q = self.people.sums(user, self.sites, self.law)
        rows = np.zeros((len(items), M))
        if basis is None:
            rows[np.arange(len(items)), items] = 1.0
        else:
            rows[:] = basis.Phi[items]
        own = items.astype(np.int64) if basis is not None and basis.has_own else own
        T, C = _blocks(self.Sigma, self.law.rho[own]), _blocks(C_m, self._offset_variance()[own])
        A = np.hstack([rows, np.eye(len(items))]) if len(own) else rows
        gain = T @ A.T
        F = gain @ Q  # (I - F A) is what is left of the prior mean
        rest = C - F @ (A @ C)
        covariance = T - F @ gain.T + rest - (rest @ A.T) @ F.T
        move = gain @ x
        mean = mean + (move[:M] if basis is None else basis.Phi @ move[:M])
        mean[own] += move[M:]
        return Utilities(
            mean, symmetrise(covariance), None if basis is None else basis.Phi, own, self._own_variance(own)
        )

    def utilities(self, user: int = -1) -> tuple[FloatArray, FloatArray]:
        """Mean (n_items,) and covariance (n_items, n_items) of one person's utilities; see :meth:`person`."""
        return self.person(user).dense()

    def crowd(self) -> Utilities:
        """The consensus, the mean of the population of people, in factored form."""
        nothing = np.zeros(0, dtype=np.int64)
        Phi = None if self.basis is None else self.basis.Phi
        return Utilities(self.law.mean, self.C_m, Phi, nothing, self._offset_variance())

    def consensus(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the consensus, the mean of the population of people."""
        return self.crowd().dense()

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
        O(n_items k_u²) a person, with a basis O(n_items (M + k_u)²); nothing of n_items x n_items a person.
        """
        users = np.asarray(users, dtype=np.int64)
        mean = np.empty((len(users), self.n_items))
        var = np.empty_like(mean)
        plain = self.basis is None and self.effects is None
        one_by_one = np.isin(users, self.people.heavy) if plain else np.ones(len(users), dtype=bool)

        def work_one(shard: tuple[int, int]) -> None:
            for row in others[slice(*shard)].tolist():
                mean[row], var[row] = self.person(int(users[row])).centred_marginals()

        others = np.flatnonzero(one_by_one)
        for _ in map_shards(work_one, cut(np.ones(len(others)), 1.0, _MOST_SHARDS), executor, n_ahead=_MOST_SHARDS):
            pass
        light = np.flatnonzero(~one_by_one)
        light_mean = np.empty((len(light), self.n_items))
        light_var = np.empty_like(light_mean)

        def work(shard: tuple[int, int]) -> None:
            rows = slice(*shard)
            centred_utilities(users[light[rows]], *self._answers(), self.C_m, light_mean[rows], light_var[rows])

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
        effects: Effects | None = None,
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
        effects : Effects, optional
            Those of traits over the old and the new items, if there are any.
        """
        cross = A @ self.Sigma
        spread = scale * (strength + trace) / (strength + self.n_items) * R + cross @ A.T
        Sigma = symmetrise(np.block([[self.Sigma, cross.T], [cross, spread]]))
        people = replace(self.people, n_items=len(consensus.mean))
        return PopulationPosterior(consensus.mean, consensus.covariance, Sigma, people, self.sites, effects=effects)

    def with_items(self, Phi: FloatArray, share: FloatArray, consensus_scale: float) -> PopulationPosterior:
        """With new items appended to those that hang on the basis; parameters as :meth:`Basis.extended`."""
        assert self.basis is not None
        basis = self.basis.extended(Phi, share, consensus_scale)
        return replace(self, people=replace(self.people, n_items=len(basis.Phi)), basis=basis)

    def _margins_without_answers(
        self, left: IntArray, right: IntArray, traits: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        law = self.law
        mean = law.mean[left] - law.mean[right]
        var = self._pair_variance(self.Sigma, law.rho, left, right)
        var += self._pair_variance(self.C_m, self._offset_variance(), left, right)
        if self.effects is not None:
            mean = mean + np.einsum("ij,ij->i", law.shift[left] - law.shift[right], traits)
            spread = self._pair_variance(self.effects.covariance, np.zeros(0), left, right)
            var += np.einsum("ij,ij->i", traits, traits) * spread
        return mean, var

    def _pair_variance(self, covariance: FloatArray, own: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
        if self.basis is None:
            return pair_variance(covariance, left, right)
        out = np.empty(len(left))
        for start in range(0, len(left), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            direction = self.basis.Phi[left[rows]] - self.basis.Phi[right[rows]]
            out[rows] = np.einsum("ij,ij->i", direction @ covariance, direction)
        return out + own[left] + own[right] if len(own) else out

    def _margins_of(self, user: int, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
        """One person's margins by matrix products."""
        return self.person(user).margins(left, right)

    def _own_variance(self, without: IntArray | None = None) -> FloatArray:
        """What items have to themselves, of a person and of the consensus; 0 for some of them."""
        if self.basis is None or not self.basis.has_own:
            return np.zeros(0)
        variance = self.basis.rho + self.basis.offset_variance
        if without is not None:
            variance[without] = 0.0
        return variance

    def _offset_variance(self) -> FloatArray:
        return np.zeros(0) if self.basis is None else self.basis.offset_variance

    def _answers(self) -> tuple[npt.NDArray[np.generic], ...]:
        people, law = self.people, self.law
        return (
            people.answer_ptr, people.item_ptr, people.item_idx, people.left, people.right, people.weight,
            people.traits, self.sites.precision, self.sites.linear, law.cov, law.Phi, law.rho, law.mean, law.shift,
        )  # fmt: skip


def _blocks(dense: FloatArray, diagonal: FloatArray) -> FloatArray:
    """A covariance of functions beside independent variances."""
    n, k = len(dense), len(diagonal)
    out = np.zeros((n + k, n + k))
    out[:n, :n] = dense
    out[np.arange(n, n + k), np.arange(n, n + k)] = diagonal
    return out
