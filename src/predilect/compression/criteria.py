"""Informative vector machine: greedy assumed-density filtering, each time with the most informative answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._text import quoted
from predilect._types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.likelihoods.special import log_ndtr, mills_ratio
from predilect.likelihoods.views import Likelihood


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


UCB_VARIANTS = ("exact", "taylor", "gp_ucb")
_NOTHING = 1e-10  # of the largest variance: an item that the kept ones tell already
_FAR = -1e5  # below, c + φ(c)/Φ(c) is -1/c to all digits, and its two terms are not


def entropy_risk(var: FloatArray) -> FloatArray:
    """E[-log q(f)] = ½ log(2πe σ²) in nats, -inf at variance 0: vvm.md 3, loss of the informative vector machine."""
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * np.log(2.0 * np.pi * np.e * var))


def log_improvement(mean: FloatArray, var: FloatArray, best: npt.ArrayLike) -> FloatArray:
    """Logarithm of the expected improvement, without underflow far below ``best``; -inf where the improvement is 0."""
    sigma = np.sqrt(np.asarray(var, dtype=np.float64))
    gap = np.asarray(mean, dtype=np.float64) - np.asarray(best, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        c = np.where(sigma > 0.0, gap / np.where(sigma > 0.0, sigma, 1.0), 0.0)
        excess = np.where(c < _FAR, -1.0 / np.where(c < _FAR, c, -1.0), c + mills_ratio(np.maximum(c, _FAR)))
        value = np.log(sigma) + log_ndtr(c) + np.log(excess)
        return np.where(sigma > 0.0, value, np.log(np.maximum(gap, 0.0)))


def confidence_score(
    mean: FloatArray, var: FloatArray, beta: float = 1.0, variant: str = "exact", kappa: float = 1.0
) -> FloatArray:
    """Upper confidence bound: orders items by decreasing exponential risk.

    "exact": mean + β var / 2, the logarithm of the exact expectation over β; "taylor": mean + β (var + mean²) / 2, the
    paper's second order of a Taylor series; "gp_ucb": mean + κ √var. β is per unit of the noise of one answer; the
    paper's in units of 1/α of it: its β = 1 at α = 3 is 3 here.

    vvm.md 3. **Differs from the paper**: E f² is var + mean², which is no bound of anything and puts an item of mean -3
    above one of mean 0.2; "taylor" is for comparison only.
    """
    if variant == "exact":
        return mean + 0.5 * beta * var
    if variant == "taylor":
        return mean + 0.5 * beta * (var + mean**2)
    if variant == "gp_ucb":
        return mean + kappa * np.sqrt(var)
    raise ValueError(f"variant must be one of {', '.join(UCB_VARIANTS)}, not {quoted(variant)}")


_ROUNDING = 1e-9  # of a share times the number of items: 7 % of 100 items are 7, whatever 0.07 * 100 is


def items_a_person(keep: Any, n_items: int) -> int:
    """Number of items a person keeps, from a number, a share (rounded up) or text; DataError if impossible."""
    number, is_share = _read(keep)
    said = _said(keep)
    if not math.isfinite(number):
        raise DataError(f"{said} is no number: give a number of items from 1 to {n_items}, or a share like 20%")
    if number <= 0:
        raise DataError(f"{said} keeps nothing: give a number of items from 1 to {n_items}, or a share like 20%")
    if is_share:
        if number > 1.0:
            raise DataError(
                f"{said} is more than all: a share is at most 100 %. A number of items is a whole number, 1 to "
                f"{n_items}"
            )
        r = math.ceil(number * n_items - _ROUNDING)
        if r < 1:
            raise DataError(f"{said} of {n_items} items rounds to none: keep at least {1.0 / n_items:.2%}")
        return r
    if number > n_items:
        raise DataError(f"{said} is more than all: there are {n_items} items. A share is written as 20% or 0.2")
    return int(number)


def items_in_all(budget: Any, n_users: int, n_items: int) -> int:
    """Number of items of all people together; DataError unless whole, at least one a person and not above all."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise DataError(f"budget must be a whole number of items of all people together; got {quoted(budget)}")
    if not n_users <= budget <= n_users * n_items:
        raise DataError(
            f"budget={budget} cannot be shared out: {n_users} people keep at least one item "
            f"each and at most {n_items}, {n_users} to {n_users * n_items} together"
        )
    return int(budget)


def _said(keep: Any) -> str:
    return f"keep={quoted(keep)}"


def _read(keep: Any) -> tuple[float, bool]:
    """A number, and whether it is a share."""
    if isinstance(keep, str):
        text = keep.strip()
        try:
            if text.endswith("%"):
                return float(text[:-1]) / 100.0, True
            return (float(text), False) if text.lstrip("+-").isdigit() else (float(text), True)
        except ValueError:
            raise DataError(f"{_said(keep)} is neither a number of items nor a share: write 10, 0.2 or 20%") from None
    if isinstance(keep, bool) or not isinstance(keep, int | float | np.integer | np.floating):
        raise DataError(f"keep must be a number of items, or a share such as 0.2 or '20%'; got {quoted(keep)}")
    return float(keep), isinstance(keep, float | np.floating)


def representative(away: FloatArray, C: FloatArray, r: int) -> IntArray:
    """Items (r,) from which the margins of all pairs are told best by the law N(m, C) of people, ascending.

    ``away`` (n,): the person's mean utilities less m. Greedy: each item lowers most the mean square, over all pairs, of
    the difference between the full model's mean margin and that which the kept items' means give. Equal ones: the
    first. O(r n²).
    """
    d, C = away.copy(), C.copy()
    smallest = _NOTHING * np.diagonal(C).max(initial=0.0)
    free = np.ones(len(d), dtype=bool)
    for _ in range(r):
        own = np.diagonal(C)
        may = free & (own > smallest)
        step = np.where(may, d, 0.0) / np.where(may, own, 1.0)
        centred = C - C.mean(axis=0)
        loss = step * (step * np.einsum("ij,ij->j", centred, centred) - 2.0 * (centred.T @ d))
        best = int(np.argmin(np.where(may, loss, np.where(free, 0.0, np.inf))))
        free[best] = False
        if may[best]:
            c = C[:, best].copy()
            d -= c * (d[best] / c[best])
            C -= np.outer(c, c / c[best])
    return np.flatnonzero(~free)


CRITERIA = ("ucb", "voi", "ivm", "pairs", "adf", "random", "mean")
IVM_VARIANTS = ("min_posterior_entropy", "max_posterior_entropy", "max_reduction")
BEST = ("all", "selected")
# The criterion of the nearest loss: a decision by the largest mean needs the items that may be best, a prediction of
# any pair those that tell most of the others.
_FOR = {"regret": "voi", "recommendation": "ucb", "zero_one": "pairs", "log": "pairs"}
_MOST_FOR_PAIRS = 500  # items: the time of a person grows by their cube


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion with its options.

    "pairs": the items from which the margins of all pairs are told best (:func:`representative`), which has no scores
    by item; "ucb": exponential utility, with ``beta``, ``ucb`` and ``kappa`` of
    :func:`~predilect.compression.criteria.confidence_score`; "voi": value of information; "ivm": entropy of the item's
    utility; "random" and "mean" (largest posterior mean) are controls; "adf", the original informative vector machine,
    orders answers and has no scores.

    vvm.md 3. Marginals do not depend on what else is kept, so the greedy loop of the paper is a sort: for "voi" with
    "selected" too, where the first item is the one with the largest mean, after which f* is constant.
    """

    name: str = "ucb"
    beta: float = 1.0
    ucb: str = "exact"
    kappa: float = 1.0
    best: str = "all"  # f* of "voi": largest mean of all the person's items, or of those selected so far
    ivm: str = "min_posterior_entropy"  # keep the least entropy (the paper), the most, or the largest reduction
    random_state: int = 0

    def __post_init__(self) -> None:
        choices = {"name": CRITERIA, "ucb": UCB_VARIANTS, "best": BEST, "ivm": IVM_VARIANTS}
        for field, known in choices.items():
            if getattr(self, field) not in known:
                what = "criterion" if field == "name" else field
                raise DataError(f"{what} must be one of {', '.join(known)}; got {quoted(getattr(self, field))}")
        for field in ("beta", "kappa"):
            if not np.isfinite(getattr(self, field)) or getattr(self, field) <= 0.0:
                raise DataError(f"{field} must be a positive number; got {quoted(getattr(self, field))}")

    def scores(self, mean: FloatArray, var: FloatArray, prior_var: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Scores (n_items,), the larger the better; ``prior_var`` are variances before the person's own answers."""
        if self.name == "ucb":
            return confidence_score(mean, var, self.beta, self.ucb, self.kappa)
        if self.name == "voi":
            score = log_improvement(mean, var, mean.max())
            if self.best == "selected":
                score[mean.argmax()] = np.inf
            return score
        if self.name == "ivm":
            risk = entropy_risk(var)
            if self.ivm == "max_reduction":
                return entropy_risk(prior_var) - risk
            return -risk if self.ivm == "min_posterior_entropy" else risk
        if self.name == "mean":
            return mean
        if self.name == "random":
            return rng.random(len(mean))
        raise DataError(f'criterion "{self.name}" does not order items by their marginals')


def criterion_for(loss: str, n_items: int = 0, *, has_budget: bool = False) -> str:
    """Name of the criterion that goes with a named loss; "ucb" for a custom loss.

    Where many items, or a budget for all people, leave no room for "pairs", it is "ivm".
    """
    found = _FOR.get(loss, "ucb")
    return "ivm" if found == "pairs" and (has_budget or n_items > _MOST_FOR_PAIRS) else found


def in_order(scores: FloatArray) -> IntArray:
    """Positions by score, the largest first, equal ones by the lowest position."""
    return np.lexsort((np.arange(len(scores)), -scores))
