"""Groups of people who want alike: a mixture of normal distributions in place of one, by EM, and its held-out gains.

f_u | k ~ N(m + A b_k, Σ - A Aᵀ + A W Aᵀ) with probability π_k: A holds the q leading directions in which people differ,
and Σ = A Aᵀ + rest. With one group, b = 0 and W = I that is the population model (groups.md, "Model").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.inference.gaussian.dense import factorise, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.means import k_means
from predilect.inference.people.expectation import Expectation, expectation
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, with_own
from predilect.inference.people.person import part_of
from predilect.inference.people.posterior import PopulationPosterior

_AXES = 2  # directions at least: groups are found along few, and more cost what held-out people do not pay back
_STRENGTH = 5.0  # people's worth of belief that the spread within groups is the population's
_SHARE = 2.0  # people that each group is thought to have beside those that are seen (groups.md: α)
_STARTS, _MOST = 5, 60  # starts, and iterations of EM at most
_TOLERANCE = 2e-3  # nats: EM ends when its objective rises by less
_ONE = 0.5  # standard deviations within groups: two that have come so near are one, and EM ends too
_SWEEPS, _SITES = 2, 1e-4  # of EP in an iteration
_FOLDS = 10  # of people
_SUREST = 1e-9  # least variance of anybody's place: of very many answers rounding leaves none
_LARGEST = 2**24  # numbers at once of resampled crowds
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

    def places(self, A: FloatArray) -> Places:
        """Where people are along directions, at the sites of the population."""
        people, sites, law = self.posterior.people, self.posterior.sites, self.posterior.law
        rows = A if self.posterior.basis is None else self.posterior.basis.Phi @ A
        n, q = people.n_users, A.shape[1]
        mean, covariance = np.zeros((n, q)), np.empty((n, q, q))
        for user in range(n):
            items, x, Q = people.believed_sums(user, sites, law)
            own = rows[items]
            mean[user] = own.T @ x[: len(items)]
            covariance[user] = np.eye(q) - own.T @ Q[: len(items), : len(items)] @ own
        return Places(mean, covariance)

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

    def evidences(self, laws: list[Law], sites: list[Sites], n_sweeps: int = _SWEEPS) -> FloatArray:
        """Log Z_uk of each person by each law, (n_users, K), after sweeps of its sites, in place."""
        return np.column_stack([
            expectation(
                self.posterior.people, own, law, self.delta, n_sweeps=n_sweeps, tolerance=_SITES, sums=False,
                executor=self.executor,
            ).evidences
            for law, own in zip(laws, sites, strict=True)
        ])  # fmt: skip


@dataclass(slots=True)
class Camps:
    """K groups along q directions."""

    A: FloatArray  # (M, q)
    b: FloatArray  # (K, q)
    W: FloatArray  # (q, q)
    share: FloatArray  # π, (K,)
    belongs: FloatArray  # r, (n_users, K): the probability of each group, given what a person answered
    evidence: FloatArray = field(default_factory=lambda: np.zeros(0))  # log Σ_k π_k Z_uk, (n_users,)
    objective: float = -math.inf
    sites: list[Sites] = field(default_factory=list)  # of all answers, of each group's own

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


class Places(NamedTuple):
    """Each person's normal posterior along the directions, in standard deviations over people."""

    mean: FloatArray  # (n_users, q)
    covariance: FloatArray  # (n_users, q, q)


class _Sums(NamedTuple):
    """Of each group, along the directions: information and gradient in b_k, and, of all, what W follows."""

    H: FloatArray  # (K, q, q)
    r: FloatArray  # (K, q)
    D: FloatArray  # (q, q)


class _AtPlaces:
    """Groups at the sites of the population, where all is normal, and an iteration of EM costs next to nothing."""

    def __init__(self, places: Places) -> None:
        values, vectors = np.linalg.eigh(places.covariance)
        root = vectors / np.sqrt(np.maximum(values, _SUREST))[:, None, :]
        inverse = root @ root.transpose(0, 2, 1)
        self.precision = inverse - np.eye(places.mean.shape[1])
        self.linear = (inverse @ places.mean[:, :, None])[:, :, 0]

    def evidences(self, now: Camps) -> FloatArray:
        """Log Z_uk but for what is the same in all groups, (n_users, K)."""
        prior = np.linalg.inv(now.W)
        precision = prior + self.precision
        linear = now.b @ prior + self.linear[:, None]
        fit = np.einsum("uki,uij,ukj->uk", linear, np.linalg.inv(precision), linear)
        of_b = np.einsum("ki,ij,kj->k", now.b, prior, now.b)
        log_det = np.linalg.slogdet(precision)[1] + np.linalg.slogdet(now.W)[1]
        return np.asarray(0.5 * (fit - of_b - log_det[:, None]))

    def sums(self, now: Camps, weight: FloatArray) -> _Sums:
        """Over people of weights (n_users, K)."""
        prior = np.linalg.inv(now.W)
        within = np.linalg.inv(prior + self.precision)
        alpha = (np.einsum("uij,ukj->uki", within, now.b @ prior + self.linear[:, None]) - now.b) @ prior
        Q = prior - prior @ within @ prior
        r, H = np.einsum("uk,uki->ki", weight, alpha), np.einsum("uk,uij->kij", weight, Q)
        return _Sums(H, r, np.einsum("uk,uki,ukj->ij", weight, alpha, alpha) - H.sum(axis=0))


class _OwnSites:
    """Groups by expectation propagation, each with sites of its own."""

    def __init__(self, crowd: Crowd, A: FloatArray, K: int) -> None:
        self.crowd, self.A = crowd, A
        self.sites = [crowd.posterior.sites.copy() for _ in range(K)]

    def evidences(self, now: Camps) -> FloatArray:
        """Log Z_uk, (n_users, K), after sweeps of the sites."""
        return self.crowd.evidences(now.laws(self.crowd), self.sites)

    def sums(self, now: Camps, weight: FloatArray) -> _Sums:
        """Over people of weights (n_users, K)."""
        laws, A = now.laws(self.crowd), self.A
        found = [self.crowd.pass_over(*one) for one in zip(laws, self.sites, weight.T, strict=True)]
        H, r = (np.array([A.T @ x for x in of_all]) for of_all in ([one.H @ A for one in found], [o.r for o in found]))
        return _Sums(H, r, A.T @ np.sum([one.D for one in found], axis=0) @ A)


def fit_mixture(crowd: Crowd, A: FloatArray, places: Places, K: int, weight: FloatArray, seed: int) -> Camps:
    """K groups by EM (Dempster et al. 1977; McLachlan and Peel 2000, ch. 3).

    First at the sites of the population, from a few starts; from the best of these with sites of each group's own.
    ``weight`` (n_users,) is 0 for people who are held out. groups.md, "Inference".
    """
    rng, near = np.random.default_rng([seed, K]), _AtPlaces(places)
    begun = (_begun(A, _start(crowd.order, places.mean, weight, K, rng)) for _ in range(_STARTS if K > 1 else 1))
    best = max((_climb(near, one, weight) for one in begun), key=lambda one: one.objective)
    own = _OwnSites(crowd, A, K)
    return replace(_climb(own, best, weight), sites=own.sites)


def _begun(A: FloatArray, belongs: FloatArray) -> Camps:
    """Groups that are all alike, but for who belongs to them."""
    K, q = belongs.shape[1], A.shape[1]
    return Camps(A, np.zeros((K, q)), np.eye(q), np.full(K, 1.0 / K), belongs)


def _climb(way: _AtPlaces | _OwnSites, start: Camps, weight: FloatArray, max_iter: int = _MOST) -> Camps:
    """EM until the objective rests, or two groups are one.

    The objective is the evidence and priors, b_k ~ N(0, I) and W ~ inverse Wishart about I.
    """
    now, eye = replace(start), np.eye(start.A.shape[1])
    n, K, last = float(weight.sum()), len(start.b), -math.inf
    for number in range(max_iter + 1):
        if number or math.isfinite(now.objective):
            log_z = way.evidences(now) + np.log(now.share)
            now.evidence = np.logaddexp.reduce(log_z, axis=1)
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
        sums = way.sums(now, weight[:, None] * now.belongs)
        now.share = (weight @ now.belongs + _SHARE) / (n + K * _SHARE)
        W = (n * now.W + now.W @ sums.D @ now.W + _STRENGTH * eye) / (n + _STRENGTH)
        step = sums.r + np.einsum("kij,kj->ki", sums.H, now.b)
        now.b = np.linalg.solve(eye + sums.H, step[:, :, None])[:, :, 0]
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

    def _evidence(self, A: FloatArray, places: Places, K: int) -> FloatArray:
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
    basis, n_items = crowd.posterior.basis, crowd.posterior.n_items
    Phi = np.eye(n_items) if basis is None else basis.Phi
    rows = Phi - Phi.mean(axis=0)
    offset = np.zeros(n_items) if basis is None or not basis.has_own else basis.offset
    users, widen = crowd.order[belong[crowd.order]], math.sqrt(belong.mean())
    rng = np.random.default_rng([seed, n_resamples])
    moved, chance = _of_scales(lambda scale: _at_scale(crowd, found, scale))
    weight, scale = np.zeros((1 + n_resamples, len(crowd.order))), np.empty(n_resamples, dtype=np.int64)
    weight[0] = crowd.weight  # of all, as they are
    for number in range(n_resamples):
        times = np.bincount(rng.integers(len(users), size=len(users)), minlength=len(users))
        weight[1 + number, users] = crowd.weight[users] * times
        scale[number] = rng.choice(len(moved), p=chance)
    at_once = max(_LARGEST // (len(found.b) * rows.shape[1] ** 2), 1)
    parts = [_with_weights(crowd, found, weight[k : k + at_once]) for k in range(0, len(weight), at_once)]
    (share, *shares), (mean, *means) = (np.concatenate(x) for x in zip(*parts, strict=True))
    of_all = mean @ rows.T + (offset - offset.mean())
    within = np.einsum("ij,ij->i", rows @ found.laws(crowd)[0].Sigma, rows)
    return GroupMeans(
        share, of_all, within, share + widen * (np.array(shares) - share),
        of_all + (widen * (np.array(means) - mean) + moved[scale]) @ rows.T,
    )  # fmt: skip


def _with_weights(
    crowd: Crowd, found: Camps, weight: FloatArray, n_iter: int = _AGAIN
) -> tuple[FloatArray, FloatArray]:
    """Shares (B, K) and means (B, K, M) after EM, Σ and sites held, with each of B weights of people, (B, n_users).

    There a person's log evidence is log Z + xᵀd - ½ dᵀQd, where the mean is d away from where x and Q are of.
    """
    people = crowd.posterior.people
    prior, laws = factorise(crowd.posterior.Sigma).inverse(), found.laws(crowd)
    start = crowd.posterior.m + found.b @ found.A.T
    log_z = crowd.evidences(laws, found.sites, 0)
    share, mean = np.tile(found.share, (len(weight), 1)), np.tile(start, (len(weight), 1, 1))
    for number in range(n_iter):
        H, r = np.zeros((*mean.shape, mean.shape[2])), np.zeros(mean.shape)
        belongs, log_share, away = np.zeros(share.shape), np.log(share), mean - start
        for user in np.flatnonzero(weight.any(axis=0)).tolist():
            sums, log_r = [], log_share + log_z[user]
            for k, (law, sites) in enumerate(zip(laws, found.sites, strict=True)):
                own, x, Q = _own_sums(people, user, sites, law)
                pull = away[:, k, own] @ Q
                log_r[:, k] += away[:, k, own] @ x - 0.5 * np.einsum("bi,bi->b", away[:, k, own], pull)
                sums.append((own, x - pull, Q))
            if not number:
                log_r[:] = np.log(found.belongs[user])
            w = weight[:, user, None] * np.exp(log_r - np.logaddexp.reduce(log_r, axis=1, keepdims=True))
            belongs += w
            for k, (own, x, Q) in enumerate(sums):
                r[:, k, own] += w[:, k, None] * x
                H[:, k, own[:, None], own] += w[:, k, None, None] * Q
        share = (belongs + _SHARE) / (weight.sum(axis=1, keepdims=True) + len(found.b) * _SHARE)
        step = r + np.einsum("bkij,bkj->bki", H, mean - crowd.posterior.m)
        mean = crowd.posterior.m + np.linalg.solve(prior + H, step[..., None])[..., 0]
    return share, mean


def _own_sums(people: People, user: int, sites: Sites, law: Law) -> tuple[IntArray, FloatArray, FloatArray]:
    """A person's items or, on a basis, all functions, and x and Q of them."""
    items, x, Q = people.sums(user, sites, law)
    x, Q = x[: len(items)], Q[: len(items), : len(items)]
    if not law.has_basis:
        return items, x, Q
    rows = law.Phi[items]
    return np.arange(rows.shape[1]), rows.T @ x, rows.T @ Q @ rows


def _at_scale(crowd: Crowd, found: Camps, scale: float) -> tuple[FloatArray, float]:
    """Means of the groups, (K, M), and log evidence, after EM with Σ within groups a factor larger."""
    posterior, weight, K = crowd.posterior, crowd.weight, len(found.b)
    prior, Sigma = factorise(posterior.Sigma).inverse(), scale * found.laws(crowd)[0].Sigma
    sites, share, evidence = [one.copy() for one in found.sites], found.share, 0.0
    mean = posterior.m + found.b @ found.A.T
    for _ in range(_SCALED):
        laws = [crowd.law(one, Sigma) for one in mean]
        log_z = crowd.evidences(laws, sites) + np.log(share)
        each = np.logaddexp.reduce(log_z, axis=1)
        belongs = weight[:, None] * np.exp(log_z - each[:, None])
        sums = [crowd.pass_over(*one) for one in zip(laws, sites, belongs.T, strict=True)]
        share = (belongs.sum(axis=0) + _SHARE) / (weight.sum() + K * _SHARE)
        roots = [factorise(symmetrise(prior + one.H)) for one in sums]
        away = mean - posterior.m
        mean = posterior.m + np.array([
            root.solve(one.r + one.H @ d) for root, one, d in zip(roots, sums, away, strict=True)
        ])  # fmt: skip
        away = mean - posterior.m
        evidence = float(weight @ each) - 0.5 * (np.sum(away @ prior * away) + sum(root.log_det() for root in roots))
    return mean, evidence


def _of_scales(fit: Callable[[float], tuple[FloatArray, float]]) -> tuple[FloatArray, FloatArray]:
    """What other scales of Σ within groups would move the means by, (S, K, M), and how likely they are, (S,).

    Means are in units of the noise of an answer, and how much of the margins is noise is not known for sure.
    """
    means, evidence = zip(*(fit(scale) for scale in _SCALES.tolist()), strict=True)
    log_weight = np.array(evidence) - 0.5 * np.log(_SCALES) ** 2
    chance = np.exp(log_weight - log_weight.max())
    return np.array(means) - means[len(means) // 2], chance / chance.sum()
