"""Groups of people who want alike: a mixture of normal distributions in place of one, by EM, and its held-out gains.

f_u | k ~ N(m + A b_k, Σ - A Aᵀ + A W Aᵀ) with probability π_k: A holds the q leading directions in which people differ,
and Σ = A Aᵀ + rest. With one group, b = 0 and W = I that is the population model (groups.md, "Model").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.means import k_means
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import with_own
from predilect.inference.people.person import part_of
from predilect.inference.people.posterior import PopulationPosterior

_AXES = 2  # directions at least: groups are found along few, and more cost what held-out people do not pay back
_STRENGTH = 5.0  # people's worth of belief that the spread within groups is the population's
_SHARE = 2.0  # people that each group is thought to have beside those that are seen (groups.md: α)
_STARTS, _SHORT, _LONG = 3, 6, 60  # starts, and iterations of EM of each and of the best of them
_TOLERANCE = 2e-3  # nats: EM ends when its objective rises by less
_ONE = 0.5  # standard deviations within groups: two that have come so near are one, and EM ends too
_SWEEPS, _SITES = 2, 1e-4  # of EP in an iteration
_FOLDS = 10  # of people
_AGAIN = 3  # iterations of EM of a resampled crowd, from the mixture of all
_SCALES, _SCALED = np.exp(np.linspace(-1.0, 1.0, 9)), 8  # of Σ within groups, and iterations of EM at each
_NONE = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Crowd:
    """People with answers, and what is known of the population: what groups are looked for in.

    ``order`` (n_users,) sorts people by what they answered: all that is drawn follows it, so that names play no part.
    """

    posterior: PopulationPosterior  # of people with answers alone, nobody changed since
    delta: float  # tie threshold, or scale of thresholds, of the sweeps
    order: IntArray
    executor: ThreadPoolExecutor | None = None  # threads that share people; sums are the same for any number

    @property
    def weight(self) -> FloatArray:
        """How much each person counts: the probability that they do not click at random."""
        return self.posterior.people.engaged

    def directions(self, n: int) -> FloatArray:
        """A, (M, n): leading directions of Σ by what utilities, centred over the items, differ along them."""
        root = factorise(self.posterior.Sigma).lower
        rows = root if self.posterior.basis is None else self.posterior.basis.Phi @ root
        rows = rows - rows.mean(axis=0)
        return np.asarray(root @ eigh(rows.T @ rows)[1][:, ::-1][:, :n])

    def places(self, A: FloatArray) -> FloatArray:
        """Posterior means of people along directions, in standard deviations over people, (n_users, q)."""
        people, sites, law = self.posterior.people, self.posterior.sites, self.posterior.law
        rows = A if self.posterior.basis is None else self.posterior.basis.Phi @ A
        found = np.zeros((people.n_users, A.shape[1]))
        for user in range(people.n_users):
            items, x, _ = people.believed_sums(user, sites, law)
            found[user] = rows[items].T @ x[: len(items)]
        return found

    def part(self, users: IntArray) -> Crowd:
        """Some of them, in their order."""
        people, sites = part_of(
            self.posterior.people, self.posterior.sites, users, n_basis=self.posterior.n_basis
        )  # fmt: skip
        rank = np.empty(len(self.order), dtype=np.int64)
        rank[self.order] = np.arange(len(self.order))
        posterior = replace(self.posterior, people=people, sites=sites, newcomers=None, since=None)
        return Crowd(posterior, self.delta, np.argsort(rank[users]), self.executor)

    def law(self, mean: FloatArray, Sigma: FloatArray) -> Law:
        """Population distribution about another mean of the items or functions, (M,)."""
        basis = self.posterior.basis
        return replace(self.posterior.law, mean=mean if basis is None else basis.mean(mean), Sigma=Sigma)

    def pass_over(self, law: Law, sites: Sites, weight: FloatArray) -> Expectation:
        """Sums over people, each times a weight, at the sites as they are."""
        people = with_own(self.posterior.people, _NONE, _NONE, _NONE, engaged=np.ascontiguousarray(weight))
        return expectation(people, sites, law, self.delta, n_sweeps=0, executor=self.executor)

    def evidences(self, law: Law, sites: Sites, n_sweeps: int = _SWEEPS) -> FloatArray:
        """Log Z_u of each person, (n_users,), after sweeps of the sites, in place."""
        found = expectation(
            self.posterior.people, sites, law, self.delta, n_sweeps=n_sweeps, tolerance=_SITES, sums=False,
            executor=self.executor,
        )  # fmt: skip
        return found.evidences


@dataclass(slots=True)
class Camps:
    """K groups along q directions."""

    A: FloatArray  # (M, q)
    b: FloatArray  # (K, q)
    W: FloatArray  # (q, q)
    share: FloatArray  # π, (K,)
    sites: list[Sites]  # of all answers, for each group
    belongs: FloatArray  # r, (n_users, K): the probability of each group, given what a person answered
    evidence: FloatArray  # log Σ_k π_k Z_uk, (n_users,)
    objective: float = -math.inf

    def distance(self) -> float:
        """Between the means of the two nearest groups, in standard deviations within groups."""
        i, j = np.triu_indices(len(self.b), 1)
        away = self.b[i] - self.b[j]
        return math.sqrt(float(np.einsum("ij,ij->i", away @ np.linalg.inv(self.W), away).min()))

    def laws(self, crowd: Crowd) -> list[Law]:
        """Distribution of each group."""
        rest = crowd.posterior.Sigma - self.A @ self.A.T
        Sigma = symmetrise(rest + self.A @ self.W @ self.A.T)
        return [crowd.law(crowd.posterior.m + self.A @ b, Sigma) for b in self.b]


def fit_mixture(crowd: Crowd, A: FloatArray, places: FloatArray, K: int, weight: FloatArray, seed: int) -> Camps:
    """K groups by EM from the best of a few starts (Dempster et al. 1977; McLachlan and Peel 2000, ch. 3).

    ``weight`` (n_users,) is 0 for people who are held out. groups.md, "Inference": with sites of each group's own.
    """
    if K == 1:
        return _climb(crowd, _begun(crowd, A, np.ones((len(weight), 1))), weight, _LONG)
    rng = np.random.default_rng([seed, K])
    begun = [_begun(crowd, A, _start(crowd.order, places, weight, K, rng)) for _ in range(_STARTS)]
    best = max((_climb(crowd, one, weight, _SHORT) for one in begun), key=lambda one: one.objective)
    return _climb(crowd, best, weight, _LONG)


def _begun(crowd: Crowd, A: FloatArray, belongs: FloatArray) -> Camps:
    """Groups that are all alike, but for who belongs to them."""
    K, q = belongs.shape[1], A.shape[1]
    sites = [crowd.posterior.sites.copy() for _ in range(K)]
    return Camps(A, np.zeros((K, q)), np.eye(q), np.full(K, 1.0 / K), sites, belongs, _NONE)


def _climb(crowd: Crowd, start: Camps, weight: FloatArray, max_iter: int) -> Camps:
    """EM until the objective rests, or two groups are one.

    The objective is the evidence and priors, b_k ~ N(0, I) and W ~ inverse Wishart about I.
    """
    now, A, eye = replace(start, sites=[one.copy() for one in start.sites]), start.A, np.eye(start.A.shape[1])
    n, K, last = float(weight.sum()), len(start.b), -math.inf
    for number in range(max_iter + 1):
        laws = now.laws(crowd)
        if number or len(now.evidence):
            log_z = np.column_stack(
                [crowd.evidences(law, sites) for law, sites in zip(laws, now.sites, strict=True)]
            ) + np.log(now.share)  # fmt: skip
            now.evidence = logsumexp(log_z, axis=1)
            now.belongs = np.exp(log_z - now.evidence[:, None])
            of_W = np.linalg.slogdet(now.W)[1] + np.trace(np.linalg.inv(now.W))
            now.objective = float(
                weight @ now.evidence - 0.5 * np.sum(now.b**2) + _SHARE * np.log(now.share).sum()
                - 0.5 * _STRENGTH * of_W
            )  # fmt: skip
            rests = now.objective - last < _TOLERANCE or (K > 1 and now.distance() < _ONE)
            if number == max_iter or (number > 1 and rests):
                break
            last = now.objective
        sums = [
            crowd.pass_over(law, sites, weight * belongs)
            for law, sites, belongs in zip(laws, now.sites, now.belongs.T, strict=True)
        ]
        now.share = (weight @ now.belongs + _SHARE) / (n + K * _SHARE)
        D = A.T @ np.sum([one.D for one in sums], axis=0) @ A
        W = (n * now.W + now.W @ D @ now.W + _STRENGTH * eye) / (n + _STRENGTH)
        now.b = np.array([
            np.linalg.solve(eye + A.T @ one.H @ A, A.T @ one.r + A.T @ one.H @ (A @ b))
            for one, b in zip(sums, now.b, strict=True)
        ])  # fmt: skip
        # Over-relaxed along the geodesic, as the population covariance is, but for the first, which leaves the start.
        now.W = symmetrise(W @ np.linalg.solve(now.W, W)) if number else symmetrise(W)
    return now


def _start(order: IntArray, places: FloatArray, weight: FloatArray, K: int, rng: np.random.Generator) -> FloatArray:
    """Who belongs to whom at first, (n_users, K): by k-means of people's places."""
    x = places[order]
    centres = k_means(x[weight[order] > 0.0], K, rng)
    own = np.argmin([np.sum((x - one) ** 2, axis=1) for one in centres], axis=0)
    belongs = np.empty((len(x), K))
    belongs[order] = 0.9 * np.eye(K)[own] + 0.1 / K
    return belongs


def folds_of(crowd: Crowd, seed: int) -> IntArray:
    """The fold in which each person is held out, (n_users,)."""
    n = len(crowd.order)
    fold = np.empty(n, dtype=np.int64)
    fold[crowd.order] = np.random.default_rng(seed).permutation(np.arange(n) % _FOLDS)
    return fold


class GainsOfGroups:
    """What groups gain over one on each person's answers, by people of other folds (groups.md, "How many")."""

    def __init__(self, crowd: Crowd, seed: int) -> None:
        self.crowd, self.seed, self.fold = crowd, seed, folds_of(crowd, seed)
        self._single: dict[int, FloatArray] = {}  # evidence with one group, by the number of directions

    def of(self, K: int) -> FloatArray:
        """Of K groups, (n_users,), in nats: a fit a fold, and one of a single group for each number of directions."""
        n_axes = _axes_of(K)
        A = self.crowd.directions(n_axes)
        places = self.crowd.places(A)
        if n_axes not in self._single:
            self._single[n_axes] = self._evidence(A, places, 1)
        return self.crowd.weight * (self._evidence(A, places, K) - self._single[n_axes])

    def _evidence(self, A: FloatArray, places: FloatArray, K: int) -> FloatArray:
        """Evidence of each person with K groups of the people of other folds, (n_users,)."""
        found = np.zeros(len(self.fold))
        for one in range(_FOLDS):
            out = self.fold == one
            found[out] = fit_mixture(self.crowd, A, places, K, self.crowd.weight * ~out, self.seed).evidence[out]
        return found


def _axes_of(K: int) -> int:
    """Along how many directions so many groups are looked for."""
    return max(_AXES, K - 1)


def whole(crowd: Crowd, K: int, seed: int) -> Camps:
    """K groups of everybody."""
    A = crowd.directions(_axes_of(K))
    return fit_mixture(crowd, A, crowd.places(A), K, crowd.weight, seed)


class GroupMeans(NamedTuple):
    """Utilities of groups, centred over the items, and of resampled crowds as large."""

    share: FloatArray  # (K,)
    mean: FloatArray  # (K, n_items)
    within: FloatArray  # variance within groups, (n_items,)
    shares: FloatArray  # (B, K)
    means: FloatArray  # (B, K, n_items)


def means_of_groups(crowd: Crowd, found: Camps, n_resamples: int, seed: int, *, belong: BoolArray) -> GroupMeans:
    """Means of the groups in all directions, and those of bootstrap samples of people, with Σ held.

    Each sample starts from the mixture of all, so that groups keep their names, and has some iterations of EM, since
    nobody's group is known for sure. ``belong`` (n_users,): whom to resample; where these are some of all, what
    a resample differs by is multiplied by the root of their share.
    """
    posterior = crowd.posterior
    prior, laws = factorise(posterior.Sigma).inverse(), found.laws(crowd)
    Sigma = laws[0].Sigma
    Phi = np.eye(posterior.n_items) if posterior.basis is None else posterior.basis.Phi
    rows = Phi - Phi.mean(axis=0)
    offset = np.zeros(len(Phi)) if posterior.basis is None or not posterior.basis.has_own else posterior.basis.offset
    K = len(found.share)

    def after(
        weight: FloatArray, n_iter: int, Sigma: FloatArray, sites: list[Sites], n_sweeps: int = 0
    ) -> tuple[FloatArray, FloatArray, float]:  # fmt: skip
        """Shares, utilities and log evidence after EM with Σ held, and sites too, unless they are swept, in place."""
        share, belongs, evidence = found.share, found.belongs, 0.0
        mean = [posterior.m + found.A @ b for b in found.b]
        for number in range(n_iter):
            at = [crowd.law(one, Sigma) for one in mean]
            if number or n_sweeps:
                log_z = np.column_stack(
                    [crowd.evidences(law, one, n_sweeps) for law, one in zip(at, sites, strict=True)]
                ) + np.log(share)  # fmt: skip
                each = logsumexp(log_z, axis=1)
                belongs, evidence = np.exp(log_z - each[:, None]), float(weight @ each)
            sums = [crowd.pass_over(law, one, weight * r)
                    for law, one, r in zip(at, sites, belongs.T, strict=True)]  # fmt: skip
            share = (weight @ belongs + _SHARE) / (weight.sum() + K * _SHARE)
            roots = [factorise(symmetrise(prior + one.H)) for one in sums]
            mean = [
                posterior.m + root.solve(one.r + one.H @ (m - posterior.m))
                for root, one, m in zip(roots, sums, mean, strict=True)
            ]
            away = np.array(mean) - posterior.m
            evidence -= 0.5 * (np.sum(away @ prior * away) + sum(root.log_det() for root in roots))
        return share, np.array(mean) @ rows.T + (offset - offset.mean()), evidence

    def scaled(scale: float) -> tuple[FloatArray, float]:
        return after(crowd.weight, _SCALED, scale * Sigma, [one.copy() for one in found.sites], _SWEEPS)[1:]

    share, mean, _ = after(crowd.weight, _AGAIN, Sigma, found.sites)
    users, widen = crowd.order[belong[crowd.order]], math.sqrt(belong.mean())
    rng = np.random.default_rng([seed, n_resamples])
    moved, chance = _of_scales(scaled)
    shares, means = [], []
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(len(users), size=len(users)), minlength=len(users))
        weight = np.zeros(len(crowd.order))
        weight[users] = crowd.weight[users] * times
        one, other, _ = after(weight, _AGAIN, Sigma, found.sites)
        shares.append(share + widen * (one - share))
        means.append(mean + widen * (other - mean) + moved[rng.choice(len(moved), p=chance)])
    covariance = rows @ Sigma
    within = np.einsum("ij,ij->i", covariance, rows)
    return GroupMeans(share, mean, within, np.array(shares), np.array(means))


def _of_scales(fit: Callable[[float], tuple[FloatArray, float]]) -> tuple[FloatArray, FloatArray]:
    """What other scales of Σ within groups would move the means by, (S, K, n_items), and how likely they are, (S,).

    Means are in units of the noise of an answer, and how much of the margins is noise is not known for sure.
    """
    means, evidence = zip(*(fit(scale) for scale in _SCALES.tolist()), strict=True)
    log_weight = np.array(evidence) - 0.5 * np.log(_SCALES) ** 2
    chance = np.exp(log_weight - log_weight.max())
    return np.array(means) - means[len(means) // 2], chance / chance.sum()
