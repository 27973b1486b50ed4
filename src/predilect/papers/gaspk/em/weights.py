"""People's weights on the simplex, given the characteristics at the points: docs/math/gaspk.md section 2.1.

One person's log-likelihood of the weights γ, with z = γᵀf the margin of an answer, is concave:

    L(γ) = Σ_i weight_i ℓ_i(γᵀF_i) + α Σ_c log γ_c
    gradient Σ ℓ' F + α/γ        minus Hessian Σ -ℓ'' FFᵀ + α diag(1/γ²)

"exact" weights maximise it by sequential quadratic programming: each step maximises the quadratic model of L on the
simplex by a primal active-set method (Nocedal & Wright, Algorithm 16.3), followed by a backtracking line search. Steps
are feasible at once, and Newton-Raphson's on the final face. "heuristic" weights are the paper's algorithm 4.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from predilect._base.compile import inner_kernel, kernel
from predilect._base.shards import Shard, cut, map_shards
from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError, PredilectError
from predilect.inference.likelihoods.expectation import value_and_slope
from predilect.inference.likelihoods.probit import tilted_scalar
from predilect.inference.likelihoods.special import mills_curvature_scalar
from predilect.inference.likelihoods.tabulated import log_ndtr_both
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.answers import TradeOffAnswers

OutcomeArray = npt.NDArray[np.int8]
Scalar = TypeVar("Scalar", bound=np.generic)

_ANSWERS_PER_SHARD = 20_000.0
_MOST_SHARDS = 64
_ON_SIMPLEX = 1e-8  # how far a start may be from it
_OFF_THE_EDGE = 1e-12
# Ridge, as a share of the mean curvature: where fewer answers than weights leave the model singular, the shortest
# step is taken, and rounding has no influence.
_RIDGE = 1e-9
_SUFFICIENT = 1e-4  # share of the rise that the gradient promises (Armijo's rule)
_ROUNDING = 1e-14  # relative rounding error of L
_SHORTEST = 1e-10
_SHORT_OF_THE_EDGE = 0.9  # of a step that ends there
_TAIL = -5.0  # where ρ + r loses digits


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """Weights on the simplex with their certificate of optimality; converged if no ``gap`` exceeds the tolerance."""

    weights: FloatArray  # (n_users, n_c)
    value: FloatArray  # (n_users,), log-likelihood and log prior, nats
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

    docs/math/gaspk.md section 2.1, algorithm 4. Weights saturate: with 30 answers of pure noise the largest of 10 is
    .78 on average. Time n n_c additions, and up to 2 n_points n_c evaluations. **Differs from the paper**: line 3 lacks
    Φ and the restriction to the person's answers; the product of probabilities, which underflows, is a sum of
    logarithms.
    """
    F = _checked(answers, F, delta)[1]
    total = np.zeros((answers.n_users, F.shape[1]))
    # In the order of points, so that what characteristics say of one is worked out once.
    rows = answers.by_point
    add_log_likelihoods(
        _plain(rows.user, np.int64), _plain(rows.point, np.int64), _plain(rows.outcome, np.int8),
        _plain(rows.weight, np.float64), float(delta), F, total,
    )  # fmt: skip
    weights = softmax(total, axis=1)
    if concentration > 0.0:
        n_answers = np.bincount(answers.user, answers.weight, answers.n_users)[:, None]
        weights = (concentration + n_answers * weights) / (F.shape[1] * concentration + n_answers)
    return np.asarray(weights)


def likeliest_weights(
    answers: TradeOffAnswers, F: FloatArray, *, start: FloatArray, delta: float = 0.0, concentration: float = 0.0,
    tolerance: float = 1e-6, max_steps: int = 200, executor: ThreadPoolExecutor | None = None,
) -> Climb:  # fmt: skip
    """Weights of maximum likelihood given the characteristics ``F``, or with ``concentration`` α the most probable.

    With α > 0 the density is one of log γ (:mod:`~predilect.papers.gaspk.em.dirichlet`).

    As :func:`heuristic_weights` takes answers and ``F``. ``start`` (n_users, n_c): whoever is within the tolerance
    (nats an answer) there stays; where answers do not determine the weights, the result is near it. Raises as
    :func:`heuristic_weights`, for ``start`` too.

    docs/math/gaspk.md section 2.1, the "exact" M step with γ >= 0 and Φ. A step costs n n_c² and a few n_c³ a person
    (people with equal answers and starts are one); memory O(n_users n_c) beyond the columns. It took 6 steps at most
    (10 answers, 10 characteristics of size 2), where exponentiated gradients took 156 on average, and for some people
    over 2000.
    """
    rows, F = _checked(answers, F, delta)
    n_users, n_c = answers.n_users, F.shape[1]
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
    n_answers = np.diff(rows.user_ptr)
    if max_steps > 0:
        weights[n_answers == 0] = 1.0 / n_c
    alike = answers.alike(weights)
    people = np.unique(alike)
    found = _WeightsFound(weights, np.empty(n_users), np.empty(n_users))
    known = _Known(F, float(delta), float(concentration))

    def work(shard: Shard) -> int:
        room = _Room(*np.empty((6, n_c)), *np.empty((3, n_c, n_c)), *np.empty((2, n_c), dtype=np.int64))
        steps: int = climb(people[slice(*shard)], rows, known, tolerance, max_steps, found, room)
        return steps

    shards = cut(n_answers[people] + 1.0, _ANSWERS_PER_SHARD, _MOST_SHARDS) if n_users else []
    n_steps = max(map_shards(work, shards, executor, n_ahead=_MOST_SHARDS), default=0)
    return Climb(weights[alike], found.value[alike], found.gap[alike], n_steps)


class _WeightRows(NamedTuple):
    """The columns as compiled loops want them, and where each person's rows begin."""

    point: IntArray
    outcome: OutcomeArray
    weight: FloatArray
    user_ptr: IntArray


class _Known(NamedTuple):
    """What the weights are given."""

    F: FloatArray  # (n_points, n_c)
    delta: float
    concentration: float  # α of the prior; 0: none


class _WeightsFound(NamedTuple):
    """What is written: see :class:`Climb`."""

    gamma: FloatArray
    value: FloatArray
    gap: FloatArray


class _Room(NamedTuple):
    """Workspace of a thread: vectors (n_c,), matrices (n_c, n_c), and codes (n_c,)."""

    candidate: FloatArray
    g: FloatArray
    new_g: FloatArray
    d: FloatArray
    r: FloatArray
    s: FloatArray
    H: FloatArray
    new_H: FloatArray
    L: FloatArray
    face: IntArray
    is_free: IntArray


def _checked(answers: TradeOffAnswers, F: FloatArray, delta: float) -> tuple[_WeightRows, FloatArray]:
    F = _plain(F, np.float64)
    rows = _WeightRows(
        _plain(answers.point, np.int64), _plain(answers.outcome, np.int8), _plain(answers.weight, np.float64),
        np.searchsorted(answers.user, np.arange(answers.n_users + 1)).astype(np.int64),
    )  # fmt: skip
    if F.ndim != 2 or F.shape[1] == 0 or len(F) < answers.n_points:
        raise DataError(f"expected characteristics at {answers.n_points} points, not of shape {F.shape}.")
    Probit(delta).check(rows.outcome)
    if not np.isfinite(F).all():
        raise PredilectError(
            f"{np.count_nonzero(~np.isfinite(F))} values of the characteristics are not finite. Likely causes: "
            "attributes of very different sizes, or a kernel that overflows. Standardise the attributes."
        )
    return rows, F


def _plain(values: npt.NDArray[Any], kind: type[Scalar]) -> npt.NDArray[Scalar]:
    """One type, in C order and writable: a loop would be compiled again for anything else."""
    return np.require(values, kind, ["C", "W"])


@kernel
def add_log_likelihoods(
    user: IntArray, point: IntArray, outcome: OutcomeArray, weight: FloatArray, delta: float, F: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Add each answer's log-likelihood to ``out``, (n_users, n_c), for each margin F_tc by itself.

    Consecutive answers about one point share the evaluations.
    """
    n_c = F.shape[1]
    found = np.empty((3, n_c))  # of refusals, ties and acceptances
    last, last_tied = -1, -1
    for i in range(user.shape[0]):
        t, y, share = point[i], outcome[i], weight[i]
        f = F[t]
        if t != last:
            last = t
            for c in range(n_c):
                found[2, c], found[0, c] = log_ndtr_both(f[c], delta)
        if y == 0 and t != last_tied:
            last_tied = t
            for c in range(n_c):
                found[1, c] = tilted_scalar(0, f[c], 0.0, delta)[0]
        sums, values = out[user[i]], found[y + 1]
        for c in range(n_c):
            sums[c] += share * values[c]


@inner_kernel
def _log_likelihood(outcome: int, z: float, delta: float) -> tuple[float, float, float]:
    """(ℓ, ℓ', -ℓ'') of one answer."""
    if outcome == 0:
        value, slope, curvature, _, _ = tilted_scalar(outcome, z, 0.0, delta)
        return value, slope, curvature
    value, slope = value_and_slope(outcome, z, delta)
    r = outcome * z - delta
    if r < _TAIL:
        return value, slope, mills_curvature_scalar(r)
    return value, slope, slope * (slope + outcome * r)


@inner_kernel
def _assess(user: int, rows: _WeightRows, known: _Known, gamma: FloatArray, g: FloatArray, H: FloatArray) -> float:
    """L of one person; its gradient goes to ``g`` and minus its Hessian to the lower triangle of ``H``."""
    n_c = gamma.shape[0]
    total = 0.0
    for c in range(n_c):
        g[c] = 0.0
        for k in range(c + 1):
            H[c, k] = 0.0
    for p in range(rows.user_ptr[user], rows.user_ptr[user + 1]):
        f, weight = known.F[rows.point[p]], rows.weight[p]
        z = 0.0
        for c in range(n_c):
            z += gamma[c] * f[c]
        value, slope, curvature = _log_likelihood(rows.outcome[p], z, known.delta)
        total += weight * value
        slope *= weight
        curvature *= weight
        for c in range(n_c):
            g[c] += slope * f[c]
            own = curvature * f[c]
            for k in range(c + 1):
                H[c, k] += own * f[k]
    alpha = known.concentration
    if alpha > 0.0:
        for c in range(n_c):
            total += alpha * math.log(gamma[c])
            g[c] += alpha / gamma[c]
            H[c, c] += alpha / gamma[c] ** 2
    return total


@inner_kernel
def _direction(gamma: FloatArray, g: FloatArray, H: FloatArray, slack: float, room: _Room) -> float:
    """Maximise gᵀd - dᵀHd/2 over γ + d in the simplex, by a primal active set; returns gᵀd, and d in ``room``."""
    n_c = gamma.shape[0]
    d, r, s, L, face, is_free = room.d, room.r, room.s, room.L, room.face, room.is_free
    ridge = 0.0
    for c in range(n_c):
        ridge += _RIDGE * H[c, c] / n_c
    for c in range(n_c):
        H[c, c] += ridge
        for k in range(c):
            H[k, c] = H[c, k]
        d[c] = 0.0
        r[c] = g[c]
        is_free[c] = gamma[c] > 0.0
    for _ in range(10 * n_c):
        n = -1  # of free weights, without the one that pays for the others: Σ s = 0
        payer = 0
        for c in range(n_c):
            if is_free[c]:
                if n < 0:
                    payer = c
                else:
                    face[n] = c
                n += 1
        for j in range(n + 1):  # Cholesky, row by row; the right-hand side as the last row
            for k in range(min(j + 1, n)):
                if j < n:
                    a = H[face[j], face[k]] - H[face[j], payer] - H[payer, face[k]] + H[payer, payer]
                else:
                    a = r[face[k]] - r[payer]
                for i in range(k):
                    a -= L[j, i] * L[k, i]
                L[j, k] = math.sqrt(a) if j == k else a / L[k, k]
        for c in range(n_c):
            s[c] = 0.0
        for j in range(n - 1, -1, -1):
            a = L[n, j]
            for i in range(j + 1, n):
                a -= L[i, j] * s[face[i]]
            s[face[j]] = a / L[j, j]
            s[payer] -= a / L[j, j]
        step = 1.0
        blocking = -1
        for c in range(n_c):
            if s[c] < 0.0 and gamma[c] + d[c] + step * s[c] < 0.0:
                step = -(gamma[c] + d[c]) / s[c]
                blocking = c
        for c in range(n_c):
            d[c] += step * s[c]
            for k in range(n_c):
                r[k] -= step * s[c] * H[c, k]
        if blocking >= 0:
            d[blocking] = -gamma[blocking]
            is_free[blocking] = 0
            continue
        best = -1
        most = r[payer] + slack  # all of the face have the gradient of the payer
        for c in range(n_c):
            if not is_free[c] and r[c] > most:
                best = c
                most = r[c]
        if best < 0:
            break
        is_free[best] = 1
    rise = 0.0
    for c in range(n_c):
        rise += g[c] * d[c]
    return rise


@kernel
def climb(
    people: IntArray,
    rows: _WeightRows,
    known: _Known,
    tolerance: float,
    max_steps: int,
    found: _WeightsFound,
    room: _Room,
) -> int:
    """Maximum of L for each of ``people``; returns the most steps that anyone took.

    Converged once max_c g_c - gᵀγ (the Frank-Wolfe gap) is at most ``tolerance`` per answer, which bounds how much
    higher L is anywhere on the simplex; ``max_steps`` 0 only evaluates. ``found.gamma`` is changed in place, but not
    for people without answers.
    """
    gamma, value, gap = found
    candidate, d = room.candidate, room.d
    g, new_g, H, new_H = room.g, room.new_g, room.H, room.new_H
    n_c = gamma.shape[1]
    most_steps = 0
    for u in people:
        n_answers = 0.0
        for p in range(rows.user_ptr[u], rows.user_ptr[u + 1]):
            n_answers += rows.weight[p]
        value[u] = 0.0
        gap[u] = 0.0
        if n_answers == 0.0:
            continue
        for c in range(n_c):
            candidate[c] = gamma[u, c]
        value[u] = -math.inf  # so that the start is accepted
        gap[u] = math.inf
        rise = 0.0
        step = 1.0
        n_steps = -1
        while step > _SHORTEST:  # where the line search fails, the gap shows it
            new = _assess(u, rows, known, candidate, new_g, new_H)
            if new >= value[u] + _SUFFICIENT * step * rise - _ROUNDING * abs(value[u]):
                value[u] = new
                g, new_g = new_g, g
                H, new_H = new_H, H
                n_steps += 1
                largest = g[0]
                mean = 0.0
                for c in range(n_c):
                    gamma[u, c] = candidate[c]
                    largest = max(largest, g[c])
                    mean += g[c] * candidate[c]
                gap[u] = (largest - mean) / n_answers
                if gap[u] <= tolerance or n_steps == max_steps:
                    break
                rise = _direction(gamma[u], g, H, 0.1 * tolerance * n_answers, room)
                if not rise > 0.0:
                    break
                step = 1.0
                if known.concentration > 0.0:  # the prior keeps weights off the edge
                    for c in range(n_c):
                        if gamma[u, c] + d[c] <= 0.0:
                            step = _SHORT_OF_THE_EDGE
            else:
                step *= 0.5
            total = 0.0
            for c in range(n_c):
                candidate[c] = max(gamma[u, c] + step * d[c], 0.0)
                total += candidate[c]
            for c in range(n_c):
                candidate[c] /= total
        most_steps = max(most_steps, n_steps)
    return most_steps
