"""What both methods of the mixed logit start from: rows of differences by person, and the law of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, softmax

from predilect._base.stored import amounts, numbers
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit import loops
from predilect.choice.mixed_logit.attributes import NORMAL, TRIANGULAR, ItemColumns
from predilect.data.choices import Choices
from predilect.inference.gaussian.dense import covariances

_ROUNDS = 12  # of the empirical Bayes that finds where to start
_NEWTON = 20
_AVERAGES = 4  # rounds of Gaussian variational inference


@dataclass(frozen=True, slots=True)
class ChoiceProblem:
    """Choices as rows of differences: an item minus the chosen one, by choice and person.

    People stand in an order that follows from their answers and not from their names: ``people`` are their codes.
    """

    D: FloatArray  # (R, d), by columns in memory
    weight: FloatArray  # of choices, (T,)
    answer: IntArray  # that a choice is of, and what part of it: ½ for the halves of a tie, (T,)
    share: FloatArray
    row_ptr: IntArray  # (T + 1,)
    choice_ptr: IntArray  # (U + 1,)
    traits: FloatArray  # (U, G), the first column ones
    people: IntArray  # (U,)
    kind: npt.NDArray[np.int8]
    n_random: int
    price: int

    @property
    def rows(self) -> loops.ChoiceRows:
        """As the compiled loops take them."""
        return loops.ChoiceRows(
            np.ascontiguousarray(self.D.T), self.weight, self.row_ptr, self.choice_ptr, self.kind, self.price
        )

    @property
    def n_users(self) -> int:
        """People, with or without answers."""
        return len(self.people)

    @property
    def n_coefficients(self) -> int:
        """Columns."""
        return len(self.kind)


def problem_of(choices: Choices, columns: ItemColumns, traits: FloatArray, n_users: int) -> ChoiceProblem:
    """Rows of the choices, sorted by their content; O(n log n)."""
    rank = np.unique(columns.X, axis=0, return_inverse=True)[1].reshape(-1).astype(">i4")
    size = np.diff(choices.ptr)
    owner = np.repeat(np.arange(choices.n_choices), size)
    is_chosen = np.zeros(len(choices.item), dtype=bool)
    is_chosen[choices.ptr[:-1]] = True
    # Items of a choice after the chosen one by their columns, choices of a person by their items, people by choices.
    item = choices.item[np.lexsort((rank[choices.item], ~is_chosen, owner))]
    kind = np.unique(np.column_stack([choices.sign, choices.weight]), axis=0, return_inverse=True)[1].reshape(-1)
    letter = _places(kind, rank[item], choices.ptr).astype(">i4")
    order = np.lexsort((letter, choices.user))
    count = np.bincount(choices.user, minlength=n_users)
    first = np.concatenate([[0], np.cumsum(count)])
    mine = [order[start:stop] for start, stop in pairwise(first.tolist())]
    people = np.array(sorted(range(n_users), key=lambda u: letter[mine[u]].tobytes()))
    turn = np.concatenate([mine[u] for u in people])
    size, start = size[turn], choices.ptr[turn]
    after = np.cumsum(size - 1)
    place = np.arange(after[-1] if len(after) else 0) - np.repeat(after - (size - 1), size - 1)
    others = item[np.repeat(start + 1, size - 1) + place]
    D = columns.X[others] - np.repeat(columns.X[item[start]], size - 1, axis=0)
    D *= np.repeat(choices.sign[turn], size - 1)[:, None]
    return ChoiceProblem(
        np.asfortranarray(D), choices.weight[turn], choices.answer[turn], choices.share[turn],
        np.concatenate([[0], after]), np.concatenate([[0], np.cumsum(count[people])]),
        np.ascontiguousarray(traits[people]), people, columns.kind, columns.n_random, columns.price,
    )  # fmt: skip


def _places(first: IntArray, value: IntArray, ptr: IntArray) -> IntArray:
    """Places of sequences in the order of ``first`` (T,), then of their values, alike ones at the same; (T,).

    Those of sequence t are ``value[ptr[t] : ptr[t + 1]]``, not negative; of two the shorter comes first where it is the
    beginning of the other.
    """
    place, many = first, int(value.max(initial=0)) + 2
    for k in range(int(np.diff(ptr).max(initial=0))):
        there = ptr[:-1] + k < ptr[1:]
        key = place.astype(np.int64) * many
        key[there] += value[ptr[:-1][there] + k] + 1
        place = np.unique(key, return_inverse=True)[1]
        if int(place.max(initial=-1)) == len(place) - 1:
            break
    return place


@dataclass(frozen=True, slots=True)
class Mixture:
    """Population distributions of states z, one a draw: K classes with means B' traits and covariances Ω.

    ``member``: log odds of the classes of somebody with traits, against the first; by default ``share`` is everybody's.
    """

    B: Annotated[FloatArray, numbers("S K T+1 D")]
    Omega: Annotated[FloatArray, covariances("S K N N")]
    share: Annotated[FloatArray, amounts("S K")]
    member: Annotated[FloatArray | None, numbers("S K T+1")] = None

    def checked(self) -> None:
        """ValueError unless shares sum to 1."""
        if np.abs(self.share.sum(axis=1) - 1.0).max(initial=0.0) > 1e-6:
            raise ValueError("shares of classes that do not sum to 1")

    def thinned(self, most: int) -> Mixture:
        """At most so many of the draws, evenly."""
        rows = np.unique(np.linspace(0, len(self.B) - 1, min(most, len(self.B))).round().astype(int))
        member = None if self.member is None else self.member[rows]
        return Mixture(self.B[rows], self.Omega[rows], self.share[rows], member)

    def shares(self, traits: FloatArray) -> FloatArray:
        """Shares of the classes among people with traits (G,), in each draw, (S, K)."""
        if self.member is None or not traits[1:].any():
            return self.share
        return np.asarray(softmax(self.member @ traits, axis=1))

    def moments(self, traits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (S, d) and variance (S, n) of the states of people with traits (G,), over the classes."""
        n = self.Omega.shape[-1]
        means = np.einsum("skgd,g->skd", self.B, traits)
        mean = np.einsum("sk,skd->sd", self.share, means)
        inner = np.diagonal(self.Omega, axis1=2, axis2=3) + (means[..., :n] - mean[:, None, :n]) ** 2
        return mean, np.einsum("sk,skn->sn", self.share, inner)

    def central(self, traits: FloatArray, kind: npt.NDArray[np.int8], price: int) -> FloatArray:
        """Coefficients c(B' traits) in each draw, (S, d), averaged over classes: means, of log-normal ones medians.

        Means of log-normal coefficients would rest on the far tail, and a class without people has none.
        """
        means = coefficients_of(np.einsum("skgd,g->skd", self.B, traits), kind, price)
        return np.asarray(np.einsum("sk,skd->sd", self.share, means))

    def people(self, traits: FloatArray, kind: npt.NDArray[np.int8], price: int, seed: int) -> FloatArray:
        """Coefficients of somebody without answers, one a draw, (S, d); traits (G,).

        By a Latin hypercube: each S-th of the distribution is drawn from once in each direction.
        """
        rng = np.random.default_rng(seed)
        S, n = len(self.B), self.Omega.shape[-1]
        stratum = rng.permuted(np.tile(np.arange(S)[:, None], n + 1), axis=0)
        points = (stratum + rng.random((S, n + 1))) / S
        noise, lot = ndtri(points[:, :n]), points[:, n]
        share = self.shares(traits)
        label = np.minimum((lot[:, None] > np.cumsum(share, axis=1)).sum(axis=1), share.shape[1] - 1)
        rows = np.arange(S)
        z = np.einsum("sgd,g->sd", self.B[rows, label], traits)
        noise[:, kind[:n] == TRIANGULAR] = triangular(noise[:, kind[:n] == TRIANGULAR])
        if n:
            z[:, :n] += np.einsum("sij,sj->si", np.linalg.cholesky(self.Omega[rows, label]), noise)
        return coefficients_of(z, kind, price)


def triangular(normal: FloatArray) -> FloatArray:
    """Draws of the triangular distribution on ±√6, of variance 1, from standard normal ones."""
    half = np.sqrt(2.0 * ndtr(-np.abs(normal)))
    return np.asarray(np.copysign(np.sqrt(6.0) * (1.0 - half), normal))


def coefficients_of(z: FloatArray, kind: npt.NDArray[np.int8], price: int) -> FloatArray:
    """c(z) of states (..., d), as :func:`~predilect.choice.mixed_logit.loops.coefficients`."""
    signed = np.isin(kind, (-1, 1))
    c = np.where(signed, kind * np.exp(np.where(signed, z, 0.0)), z)
    if price >= 0:
        size = np.where(np.arange(len(kind)) == price, 1.0, np.exp(z[..., price : price + 1]))
        c = c * size
    return np.asarray(c)


@dataclass(frozen=True, slots=True)
class Quadratics:
    """Quadratics that stand for people's log-likelihoods around their modes in a population N(mean_u, Ω)."""

    z: FloatArray  # modes, (U, d)
    slope: FloatArray  # of the log-likelihood, (U, d)
    curvature: FloatArray  # (U, d, d)
    root: FloatArray  # lower factors of people's posterior covariances, (U, n, n)

    @property
    def linear(self) -> FloatArray:
        """Slopes at z = 0 of the quadratics, (U, d)."""
        return self.slope + np.einsum("uij,uj->ui", self.curvature, self.z)

    @property
    def covariance(self) -> FloatArray:
        """People's posterior covariances, (U, n, n)."""
        return self.root @ np.swapaxes(self.root, 1, 2)


def approximation(problem: ChoiceProblem, z: FloatArray, mean: FloatArray, Omega: FloatArray) -> Quadratics:
    """Modes by Newton's method from z (U, d) on; ``mean`` (U, d), Ω (n, n)."""
    n = problem.n_random
    kind = np.where(problem.kind == TRIANGULAR, NORMAL, problem.kind).astype(np.int8)
    z = np.where(np.arange(problem.n_coefficients) < n, z, mean)
    slope, curvature = np.empty_like(z), np.empty((*z.shape, z.shape[1]))
    precision = np.linalg.inv(Omega)
    rows = problem.rows._replace(kind=kind)
    loops.modes(z, n, np.ascontiguousarray(mean), precision, rows, _NEWTON if n else 0, slope, curvature)
    root = np.linalg.cholesky(np.linalg.inv(curvature[:, :n, :n] + precision))
    return Quadratics(z, slope, curvature, root)


def spread_out(problem: ChoiceProblem, around: Quadratics, mean: FloatArray, Omega: FloatArray) -> Quadratics:
    """Gaussians that come near people's posteriors as a whole, and not at their modes alone: ``around`` them at first.

    Gaussian variational inference (Opper and Archambeau 2009), with averages over a cubature of 2n points.
    """
    n = problem.n_random
    if not n:
        return around
    precision = np.linalg.inv(Omega)
    points = np.sqrt(n) * np.concatenate([np.eye(n), -np.eye(n)])
    z, root = around.z.copy(), around.root
    slope, curvature = np.empty_like(around.slope), np.empty_like(around.curvature)
    for turn in range(_AVERAGES):
        loops.averaged(z, np.ascontiguousarray(root), points, problem.rows, slope, curvature)
        if turn == _AVERAGES - 1:
            break
        covariance = np.linalg.inv(curvature[:, :n, :n] + precision)
        root = np.asarray(np.linalg.cholesky(covariance))
        z[:, :n] += np.einsum("uij,uj->ui", covariance, slope[:, :n] - (z - mean)[:, :n] @ precision)
    return Quadratics(z, slope, curvature, root)


@dataclass(frozen=True, slots=True)
class Start:
    """Where both methods start: the population by empirical Bayes with Laplace's approximation, and people in it."""

    mean: FloatArray  # (G, d)
    Omega: FloatArray  # (n, n)
    around: Quadratics


def start_of(problem: ChoiceProblem, ridge: float) -> Start:
    """Modes of people and moments of them by turns; ``ridge``: prior precision of a mean, so that it is finite."""
    U, d, n, traits = problem.n_users, problem.n_coefficients, problem.n_random, problem.traits
    G = traits.shape[1]
    mean, Omega, z = np.zeros((G, d)), np.eye(n), np.zeros((U, d))
    for _ in range(_ROUNDS):
        around = approximation(problem, z, traits @ mean, Omega)
        z = around.z
        mean[:, :n] = np.linalg.solve(traits.T @ traits + ridge * np.eye(G), traits.T @ z[:, :n])
        # Newton for what all share, damped to a trust region of one unit.
        total = around.curvature[:, n:, n:].sum(axis=0) + ridge * np.eye(d - n)
        step = np.linalg.solve(total, around.slope[:, n:].sum(axis=0) - ridge * mean[0, n:])
        mean[0, n:] += step / max(1.0, float(np.abs(step).max(initial=0.0)))
        deviation = z[:, :n] - (traits @ mean)[:, :n]
        Omega = (np.eye(n) * n + around.covariance.sum(axis=0) + deviation.T @ deviation) / (U + n)
    return Start(mean, Omega, approximation(problem, z, traits @ mean, Omega))
