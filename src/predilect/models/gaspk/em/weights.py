"""People's weights on the simplex, given the characteristics at the points: gaspk.md 2.1.

Heuristic, maximum-likelihood and expected-likelihood weights; uniform for people without answers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from predilect._types import FloatArray, IntArray
from predilect.errors import DataError, PredilectError
from predilect.likelihoods.expectation import BOUNDS, RULES
from predilect.likelihoods.views import Probit
from predilect.models.gaspk.em.compiled_weights import add_log_likelihoods, climb
from predilect.models.gaspk.em.mode import TradeOffAnswers
from predilect.shards import Shard, cut, map_shards

Scalar = TypeVar("Scalar", bound=np.generic)


def _mirrored(x: FloatArray, omega: FloatArray, counts: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
    nodes, weights = np.zeros((2, len(x), 2 * x.shape[1]))
    for row, n in enumerate(counts.tolist()):
        nodes[row, : 2 * n : 2], nodes[row, 1 : 2 * n : 2] = x[row, :n], -x[row, :n]
        weights[row, : 2 * n : 2] = weights[row, 1 : 2 * n : 2] = omega[row, :n]
    return nodes, weights, 2 * counts


_ANSWERS_PER_SHARD = 20_000.0
_MOST_SHARDS = 64
_ON_SIMPLEX = 1e-8  # how far a start may be from it
_OFF_THE_EDGE = 1e-12
# One node, at the mean: characteristics that are known. Else nodes on both sides of it.
_NO_RULE = np.zeros((1, 1)), np.ones((1, 1)), np.ones(1, dtype=np.int64)
_BOTH_SIDES = _mirrored(*RULES)


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """Weights on the simplex with their certificate of optimality; converged if no ``gap`` exceeds the tolerance."""

    weights: FloatArray  # (n_users, n_c)
    value: FloatArray  # (n_users,), log-likelihood or its expectation, nats
    gap: FloatArray  # (n_users,), max_c g_c - gᵀγ: bound on the gain, nats an answer
    n_steps: int  # most steps of a person


def random_weights(n_users: int, n_c: int, rng: np.random.Generator) -> FloatArray:
    """Weights (n_users, n_c) drawn uniformly from the simplex; with more people, the first ones draw the same."""
    draws = rng.standard_exponential((n_users, n_c))
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def heuristic_weights(
    answers: TradeOffAnswers, F: FloatArray, *, delta: float = 0.0, concentration: float = 0.0
) -> FloatArray:
    """Softmax over characteristics of the log-likelihood that each by itself gives to a person's answers.

    With ``concentration`` α their average with equal weights, which count as n_c α answers.

    ``F`` (n_points, n_c) are the characteristics in units of the answer noise. Raises DataError for columns that do not
    fit together or ties with delta = 0, PredilectError if ``F`` is not finite.

    gaspk.md 2.1, algorithm 4. Weights saturate: with 30 answers of pure noise the largest of 10 is .78 on average. Time
    n n_c additions, and up to 2 n_points n_c evaluations. **Differs from the paper**: line 3 lacks Φ and the
    restriction to the person's answers; the product of probabilities, which underflows, is a sum of logarithms.
    """
    F = _checked(answers, F, delta)[1]
    total = np.zeros((answers.n_users, F.shape[1]))
    at = answers.by_point
    add_log_likelihoods(
        _plain(at.user, np.int64), _plain(at.point, np.int64), _plain(at.outcome, np.int8),
        _plain(at.weight, np.float64), float(delta), F, total,
    )  # fmt: skip
    n_c, found = F.shape[1], np.asarray(softmax(total, axis=1))
    if concentration == 0.0:
        return found
    n_answers = np.bincount(answers.user, answers.weight, answers.n_users)[:, None]
    return np.asarray((concentration + n_answers * found) / (n_c * concentration + n_answers))


def likeliest_weights(
    answers: TradeOffAnswers,
    F: FloatArray,
    V: FloatArray | None = None,
    *,
    start: FloatArray,
    delta: float = 0.0,
    concentration: float = 0.0,
    tolerance: float = 1e-6,
    max_steps: int = 100,
    executor: ThreadPoolExecutor | None = None,
) -> Climb:
    """Each person's weights on the simplex of largest Σ_i weight_i E log p(y_i | γᵀf(t_i)) + α Σ_c log γ_c.

    f(t_i) ~ N(F_i, V_i), ``F`` (n_points, n_c), ``V`` (n_points, n_c, n_c), α = ``concentration``; without ``V`` the
    characteristics are known, and the weights those of maximum likelihood, or the mode under a Dirichlet(α, ..., α)
    prior, in the softmax basis. ``start`` (n_users, n_c): whoever is within the tolerance (nats an answer) there stays;
    where answers do not determine the weights, the result is near it. Raises as :func:`heuristic_weights`, for
    ``start`` too.

    gaspk.md 2.1, the "exact" M step with γ >= 0 and Φ, and with ``V`` the M step proper. Concave: γᵀf is linear in γ
    for every f, and an average of concave functions is concave; the quadrature, of one rule a point, keeps that. A step
    costs n n_c² and a few n_c³ a person (people with equal answers and starts are one), times 20 evaluations an answer
    with ``V`` where the largest variance v is at most 2, and 3.6 √(8 + v) beyond; memory O(n_users n_c) beyond the
    columns. Newton's method with an active set took 6 steps at most (10 answers, 10 characteristics of size 2), where
    exponentiated gradients took 156 on average, and for some people over 2000.
    """
    rows, F = _checked(answers, F, delta)
    n_users, n_c = answers.n_users, F.shape[1]
    C = np.empty((0, n_c, n_c)) if V is None else _plain(V, np.float64)
    if V is not None and C.shape != (len(F), n_c, n_c):
        raise DataError(f"expected covariances of shape ({len(F)}, {n_c}, {n_c}), not {C.shape}.")
    _require_finite(C, "the covariances")
    weights = np.array(start, dtype=np.float64, order="C")
    if weights.shape != (n_users, n_c):
        raise DataError(f"expected weights of shape ({n_users}, {n_c}), not {weights.shape}.")
    off = np.maximum(np.abs(weights.sum(axis=1) - 1.0), -weights.min(axis=1, initial=0.0))
    if n_users and not off.max() <= _ON_SIMPLEX:
        user = int(np.argmax(~(off <= _ON_SIMPLEX)))
        raise DataError(f"weights must not be negative and add up to 1; those of person {user} are {weights[user]}.")
    if concentration > 0.0:  # off the edge, where the prior has no slope
        weights = np.maximum(weights, _OFF_THE_EDGE)
        weights /= weights.sum(axis=1, keepdims=True)
    # The variance γᵀVγ is convex in γ, so none on the simplex is above the largest of V's diagonal: one rule a point.
    largest = np.zeros(len(F)) if V is None else np.diagonal(C, axis1=1, axis2=2).max(axis=1)
    rule = np.minimum(np.searchsorted(BOUNDS, largest), len(BOUNDS) - 1).astype(np.int64)
    value, gap = np.empty(n_users), np.empty(n_users)
    n_answers = np.diff(rows.user_ptr)
    if max_steps > 0:
        weights[n_answers == 0] = 1.0 / n_c
    alike = answers.alike(weights)
    people = np.unique(alike)

    def work(shard: Shard) -> int:
        steps: int = climb(
            *shard, people, rows.user_ptr, rows.point, rows.outcome, rows.weight, float(delta), F, C, rule,
            *(_NO_RULE if V is None else _BOTH_SIDES), concentration, tolerance, max_steps, weights, value, gap,
            np.empty((7, n_c)), np.empty((3, n_c, n_c)), np.empty((2, n_c), dtype=np.int64),
        )  # fmt: skip
        return steps

    shards = cut(n_answers[people] + 1.0, _ANSWERS_PER_SHARD, _MOST_SHARDS) if n_users else []
    n_steps = max(map_shards(work, shards, executor, n_ahead=_MOST_SHARDS), default=0)
    return Climb(weights[alike], value[alike], gap[alike], n_steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The columns as compiled loops want them, and where each person's rows begin."""

    point: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    user_ptr: IntArray


def _checked(answers: TradeOffAnswers, F: FloatArray, delta: float) -> tuple[_Rows, FloatArray]:
    n = len(answers.user)
    F = _plain(F, np.float64)
    rows = _Rows(
        _plain(answers.point, np.int64), _plain(answers.outcome, np.int8), _plain(answers.weight, np.float64),
        np.searchsorted(answers.user, np.arange(answers.n_users + 1)).astype(np.int64),
    )  # fmt: skip
    if F.ndim != 2 or F.shape[1] == 0 or not len(rows.point) == len(rows.outcome) == len(rows.weight) == n:
        raise DataError(
            "expected columns of one length and characteristics of shape (n_points, n_c); the columns have "
            f"{n}, {len(rows.point)}, {len(rows.outcome)} and {len(rows.weight)} rows, the characteristics {F.shape}."
        )
    user = answers.user
    if n and ((user[1:] < user[:-1]).any() or user[0] < 0 or user[-1] >= answers.n_users):
        raise DataError(f"answers must be sorted by person, with codes from 0 to {answers.n_users - 1}.")
    if n and (rows.point.min() < 0 or rows.point.max() >= len(F)):
        raise DataError(f"answers are about points up to {rows.point.max()}; there are {len(F)}.")
    Probit(delta).check(rows.outcome)
    _require_finite(F, "the characteristics")
    return rows, F


def _plain(values: npt.NDArray[Any], kind: type[Scalar]) -> npt.NDArray[Scalar]:
    """One type, in C order and writable: a loop would be compiled again for anything else."""
    return np.require(values, kind, ["C", "W"])


def _require_finite(values: FloatArray, what: str) -> None:
    if not np.isfinite(values).all():
        raise PredilectError(
            f"{np.count_nonzero(~np.isfinite(values))} values of {what} are not finite. Likely causes: attributes of "
            "very different sizes, or a kernel that overflows. Standardise the attributes."
        )
