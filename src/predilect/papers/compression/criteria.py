"""Which items a person keeps: how many, and by which criterion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_count, check_flag, check_function, check_positive
from predilect._base.text import quoted
from predilect._base.types import LARGEST_NUMBER, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Utilities
from predilect.inference.likelihoods.special import log_ndtr, mills_ratio
from predilect.papers.compression.posterior import marginal_variances

_NOTHING = 1e-10  # of the largest variance: an item that the kept ones tell already
_FAR = -1e5  # below, c + φ(c)/Φ(c) is -1/c to all digits, and its two terms are not


def log_improvement(mean: FloatArray, var: FloatArray, best: npt.ArrayLike) -> FloatArray:
    """Logarithm of the expected improvement, without underflow far below ``best``; -inf where the improvement is 0."""
    sigma = np.sqrt(np.asarray(var, dtype=np.float64))
    gap = np.asarray(mean, dtype=np.float64) - np.asarray(best, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        c = np.where(sigma > 0.0, gap / np.where(sigma > 0.0, sigma, 1.0), 0.0)
        excess = np.where(c < _FAR, -1.0 / np.where(c < _FAR, c, -1.0), c + mills_ratio(np.maximum(c, _FAR)))
        value = np.log(sigma) + log_ndtr(c) + np.log(excess)
        return np.where(sigma > 0.0, value, np.log(np.maximum(gap, 0.0)))


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
    check_count("budget", budget, 1)
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
    return float(keep if isinstance(keep, float) else min(keep, LARGEST_NUMBER)), isinstance(keep, float | np.floating)


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


Score = Callable[[int, Utilities], npt.ArrayLike]  # of a person by code: scores (n_items,), the larger the better


@dataclass(frozen=True, slots=True)
class _OfMarginals:
    """Scores by mean and variance of each utility: of marginals, the greedy loop of the paper is a sort.

    ``raw``: of utilities as they are, as in the paper, with the constant that only the prior knows; else less their
    mean over the items.
    """

    raw: bool = False

    def __post_init__(self) -> None:
        check_flag("raw", self.raw)

    def __call__(self, user: int, utilities: Utilities) -> FloatArray:
        mean, var = (utilities.mean, marginal_variances(utilities)) if self.raw else utilities.centred_marginals()
        return self._scores(mean, np.maximum(var, 0.0))

    def _scores(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class VOI(_OfMarginals):
    """Value of information: E (f - f*)₊ beyond the largest mean f* (vvm.md 3, eq. 29 with its sign).

    Parameters
    ----------
    raw : bool, default False
        By marginals of utilities as they are, as in the paper; else of utilities less their mean over the items.
    """

    def _scores(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return log_improvement(mean, var, mean.max())


@dataclass(frozen=True, slots=True)
class UCB(_OfMarginals):
    """Upper confidence bound: the exponential utility -exp(βf), whose expected risk μ + βσ²/2 orders (vvm.md 3).

    Parameters
    ----------
    raw : bool, default False
        As of :class:`VOI`.
    beta : float, default 1.0
        β, per unit of the noise of one answer: the paper's β = 1 at noise α = 3 is 3 here.
    taylor : bool, default False
        The second order of the Taylor series of exp(βf) that the paper prints, μ + β(σ² + μ²)/2 (eq. 30).

    Notes
    -----
    **Differs from the paper**: without ``taylor``, which is no bound: it puts an item of mean -3 above one of .2.
    """

    beta: float = 1.0
    taylor: bool = False

    def __post_init__(self) -> None:
        _OfMarginals.__post_init__(self)
        check_positive("beta", self.beta)
        check_flag("taylor", self.taylor)

    def _scores(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return mean + 0.5 * self.beta * (var + mean**2 if self.taylor else var)


@dataclass(frozen=True, slots=True)
class IVM(_OfMarginals):
    """Informative vector machine of items: the least entropy of the utility, -σ² (vvm.md 3, eq. 28).

    Parameters
    ----------
    raw : bool, default False
        As of :class:`VOI`.
    """

    def _scores(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return -var


@dataclass(frozen=True, slots=True)
class Pairs:
    """The items from which the margins of all pairs are told best: :func:`representative`; not in the paper."""


@dataclass(frozen=True, slots=True)
class InformativeAnswers:
    """Informative vector machine of answers (eq. 26): answers of a joint process are taken one by one, most first.

    Parameters
    ----------
    active_only : bool, default True
        Only answers that were taken count in the posterior, as of the paper's baseline. Otherwise people keep the items
        of the same order, with their moments by all answers.

    Notes
    -----
    vvm.md 3, the original form. A person's answers are taken as long as there is room for their items, or both are
    kept; who was asked about fewer also keeps the first items. It needs the answers: compress before saving.
    O(n_answers) a step and answer taken.
    """

    active_only: bool = True

    def __post_init__(self) -> None:
        check_flag("active_only", self.active_only)


Criterion = VOI | UCB | IVM | Pairs | InformativeAnswers
NAMED: dict[str, type[Criterion]] = {
    "voi": VOI, "ucb": UCB, "ivm": IVM, "pairs": Pairs, "answers": InformativeAnswers,
}  # fmt: skip
CRITERIA = tuple(NAMED)
# The criterion of the nearest loss: a decision by the largest mean needs the items that may be best, a prediction of
# any pair those that tell most of the others.
_FOR = {"regret": "voi", "recommendation": "ucb", "zero_one": "pairs", "log": "pairs"}
_MOST_FOR_PAIRS = 500  # items: the time of a person grows by their cube


def find_criterion(criterion: str | Criterion | Score) -> Criterion | Score:
    """A criterion by its name, with its usual settings, or that which is given; DataError if it is none.

    **Differs from the paper**: it prints the risks of "voi" and "ucb" without their minus signs.
    """
    if isinstance(criterion, Criterion):
        return criterion
    check_function("criterion", criterion, 2, CRITERIA)
    return NAMED[criterion]() if isinstance(criterion, str) else criterion


def said_of(criterion: str | Criterion | Score) -> str:
    """A criterion in reports: its name, what makes it anew, or the name of a function."""
    return criterion if isinstance(criterion, str) else getattr(criterion, "__name__", repr(criterion))


def scores_of(criterion: Score, user: int, utilities: Utilities) -> FloatArray:
    """Scores of a person's items, (n_items,); DataError unless it is one number for each."""
    found, n = np.asarray(criterion(user, utilities)), len(utilities.mean)
    if found.shape != (n,) or found.dtype.kind not in "fiub" or np.isnan(found).any():
        raise DataError(
            f"the criterion should give one number for each of {n} items, shape {(n,)}, not {found.dtype} of shape "
            f"{found.shape}. It takes a person's code and utilities"
        )
    return found.astype(np.float64)


def criterion_for(loss: str, n_items: int = 0, *, has_budget: bool = False) -> str:
    """Name of the criterion that goes with a named loss; "ucb" for a custom loss.

    Where many items, or a budget for all people, leave no room for "pairs", it is "ivm".
    """
    found = _FOR.get(loss, "ucb")
    return "ivm" if found == "pairs" and (has_budget or n_items > _MOST_FOR_PAIRS) else found


def in_order(scores: FloatArray) -> IntArray:
    """Positions by score, the largest first, equal ones by the lowest position."""
    return np.lexsort((np.arange(len(scores)), -scores))
