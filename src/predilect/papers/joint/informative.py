"""The informative vector machine: answers taken one by one by assumed-density filtering, and what people keep by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.design import Sites, preference
from predilect.inference.likelihoods.views import Likelihood, Probit
from predilect.papers.joint.fit import JointAnswers
from predilect.papers.joint.process import JointProcess


def filter_answers(
    column: Callable[[int], FloatArray],
    diagonal: FloatArray,
    outcome: npt.NDArray[np.int8],
    likelihood: Likelihood,
    free: BoolArray | None = None,
) -> Iterator[tuple[int, float, float, float, FloatArray, FloatArray]]:
    """Informative answers, one by one until none is left (vvm.md 3; Lawrence, Seeger and Herbrich 2003).

    ``column(k)`` is the prior covariance of all margins with that of answer k, ``diagonal`` their variances. Yields the
    answer, how much it lowers the entropy of the margins (nats), precision and linear term of its site, and means and
    variances (n_answers,) of the margins so far. Ties go to the first answer. Only answers that ``free``
    (n_answers,) has as true are taken: whoever reads may turn others false between two steps. O(n_answers a) at step a.
    """
    n = len(outcome)
    mean, var = np.zeros(n), diagonal.astype(np.float64).copy()
    free = np.ones(n, dtype=bool) if free is None else free
    M = np.zeros((min(n, 16), n))
    for done in range(n):
        if not free.any():
            return
        _, slope, curvature = likelihood.tilted(outcome, mean, var)  # the marginal is the cavity
        left_over = 1.0 - curvature * var  # > 0 for a log-concave likelihood
        tau = curvature / left_over
        gain = np.where(free, 0.5 * np.log1p(tau * var), -np.inf)
        k = int(np.argmax(gain))
        nu = (slope[k] + mean[k] * curvature[k]) / left_over[k]
        s = column(k) - M[:done].T @ M[:done, k]
        shrink = 1.0 + tau[k] * var[k]
        mean = mean + s * ((nu - tau[k] * mean[k]) / shrink)
        if done == len(M):
            M = np.vstack([M, np.zeros((min(done, n - done), n))])
        M[done] = s * np.sqrt(tau[k] / shrink)
        var = np.maximum(var - M[done] ** 2, 0.0)
        free[k] = False
        yield k, float(gain[k]), float(tau[k]), float(nu), mean, var


def prior_of_answers(
    process: JointProcess, users: IntArray, left: IntArray, right: IntArray
) -> tuple[FloatArray, Callable[[int], FloatArray]]:
    """Prior variances (n,) of the margins of answers under a joint process, and columns of their prior covariance."""
    K_u, K_x = process.kernel.users.covariance(), process.kernel.items.covariance()
    pairs = preference(K_x, left, right)

    def column(k: int) -> FloatArray:
        return np.asarray(K_u[users, users[k]] * pairs[:, k])

    return np.diagonal(K_u)[users] * np.diagonal(pairs), column


def order_of_answers(model: Any) -> Callable[[], Iterator[int]]:
    """Answers of a joint process, the most informative first (vvm.md 3, the original machine); each computed once."""
    answers = _answers_of(model)
    columns = (np.asarray(column, dtype=np.int64) for column in (answers.user, answers.left, answers.right))
    diagonal, column = prior_of_answers(model.posterior_, *columns)
    steps = filter_answers(column, diagonal, answers.outcome, Probit(model.tie_threshold_))
    taken: list[int] = []

    def again() -> Iterator[int]:
        yield from taken
        for k, *_ in steps:
            taken.append(k)
            yield k

    return again


def items_of_answers(model: Any, r: int, order: Callable[[], Iterator[int]]) -> list[IntArray]:
    """Items of the most informative answers that each person keeps, ascending, filled up with the smallest ids."""
    answers = model.comparisons_
    kept: list[list[int]] = [[] for _ in range(answers.n_users)]
    missing = len(kept) * r
    for k in order():
        mine = kept[answers.user[k]]
        for item in (int(answers.left[k]), int(answers.right[k])):
            if len(mine) < r and item not in mine:
                mine.append(item)
                missing -= 1
        if not missing:
            break
    for mine in kept:
        mine += [item for item in range(len(model.items_)) if item not in mine][: r - len(mine)]
    return [np.sort(np.array(mine, dtype=np.int64)) for mine in kept]


def _answers_of(model: Any) -> Any:
    """Answers that a joint process was fitted to; DataError where they are not there."""
    if model.comparisons_ is None:
        raise DataError('criterion "answers" needs the answers, which a saved model has not: compress before saving')
    return model.comparisons_


def vector_machine(model: Any, r: int) -> tuple[JointProcess, list[IntArray]]:
    """The paper's baseline (vvm.md 3, original form), and the r items that each person keeps, ascending.

    Answers become active one by one, the most informative first, as long as the person keeps fewer than r items or both
    of the answer's. The posterior is that of assumed-density filtering of the active answers: others do not count.
    """
    rows = _answers_of(model)
    copies = np.repeat(np.arange(rows.n_rows), rows.weight.astype(np.int64))
    u, a, b = (np.asarray(column, dtype=np.int64)[copies] for column in (rows.user, rows.left, rows.right))
    outcome, n_items = rows.outcome[copies], len(model.items_)
    kept, free = np.zeros((rows.n_users, n_items), dtype=bool), np.ones(len(u), dtype=bool)
    diagonal, column = prior_of_answers(model.posterior_, u, a, b)
    taken: list[tuple[int, float, float]] = []
    likelihood = Probit(model.tie_threshold_)
    for k, _, tau, nu, *_ in filter_answers(column, diagonal, outcome, likelihood, free):
        taken.append((k, tau, nu))
        mine = kept[u[k]]
        for item in (a[k], b[k]):
            mine[item] |= mine.sum() < r
        if mine.sum() == r:
            free[u == u[k]] &= (mine[a] & mine[b])[u == u[k]]
    for mine in kept:  # as "adf" does where somebody was not asked about so many
        mine[np.flatnonzero(~mine)[: r - mine.sum()]] = True
    active, taus, nus = (np.array(column) for column in zip(*taken, strict=True))
    kernel = model.posterior_.kernel
    answers = JointAnswers(u[active], a[active], b[active], outcome[active], np.ones(len(active)))
    process = JointProcess.of(kernel, answers.rows(len(kernel.items)), Sites(taus, nus))
    return process, [np.flatnonzero(mine) for mine in kept]
