"""Loss of deciding by an approximate posterior; a new loss is one function.

A loss takes draws of the person's true utilities and a belief about them, and gives for each draw the cost of acting on
the belief:

    def my_loss(truth, mean, covariance, kept):
        '''truth (n_draws, n_items) -> (n_draws,); the belief's mean, covariance, and which items are kept (n_items,)'''
        return truth.max(axis=1) - truth[:, np.where(kept, mean, -np.inf).argmax()]

A decision by a belief chooses among the kept items: an item that was dropped for not being good enough must not come
back through its prediction from the good ones.

Give the function itself wherever a loss is named. Smaller is better; the unit is the loss's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from predilect._base.arguments import check_function
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.dense import semidefinite_root
from predilect.inference.gaussian.design import pair_variance
from predilect.inference.likelihoods.special import log_ndtr
from predilect.papers.compression.sparsify import People, people_of_model

Loss = Callable[[FloatArray, FloatArray, FloatArray, BoolArray], FloatArray]

_MOST_PAIRS = 500  # of all, evenly spaced: enough for a mean over draws


def zero_one(truth: FloatArray, mean: FloatArray, covariance: FloatArray, kept: BoolArray) -> FloatArray:
    """Share of pairs that the belief's means put in the wrong order; a pair of equal means is half wrong."""
    left, right = _pairs(len(mean))
    said = np.sign(mean[left] - mean[right])
    return np.asarray(0.5 * np.mean(1.0 - said * np.sign(truth[:, left] - truth[:, right]), axis=1))


def recommendation(truth: FloatArray, mean: FloatArray, covariance: FloatArray, kept: BoolArray) -> FloatArray:
    """Items that are recommended and not the best, per cent of the items: 0 or 100 / n_items.

    protocols.md P4, 100 |{x in T* not in T}| / n_items, where one kept item is recommended (the first of equals).
    """
    return np.asarray(100.0 / len(mean) * (truth.argmax(axis=1) != _choice(mean, kept)))


def regret(truth: FloatArray, mean: FloatArray, covariance: FloatArray, kept: BoolArray) -> FloatArray:
    """Utility of the best item less that of the kept one with the largest mean, in units of the noise of one answer."""
    return np.asarray(truth.max(axis=1) - truth[:, _choice(mean, kept)])


def log_loss(truth: FloatArray, mean: FloatArray, covariance: FloatArray, kept: BoolArray) -> FloatArray:
    """Mean over pairs of the log loss of a new answer by the belief, in nats an answer; answers are strict.

    The answer is averaged over its noise: -Φ(d) log p - Φ(-d) log(1 - p) at the true margin d.
    """
    left, right = _pairs(len(mean))
    z = (mean[left] - mean[right]) / np.sqrt(1.0 + pair_variance(covariance, left, right))
    first = ndtr(truth[:, left] - truth[:, right])
    return np.asarray(-np.mean(first * log_ndtr(z) + (1.0 - first) * log_ndtr(-z), axis=1))


LOSSES: dict[str, Loss] = {
    "zero_one": zero_one, "recommendation": recommendation, "regret": regret, "log": log_loss,
}  # fmt: skip


def find_loss(loss: str | Loss) -> tuple[str, Loss]:
    """Name and function of a loss; DataError if it is neither a function nor the name of one."""
    check_function("loss", loss, 4, LOSSES)
    return (loss, LOSSES[loss]) if isinstance(loss, str) else (getattr(loss, "__name__", "loss"), loss)


def losses_of_draws(
    loss: str | Loss, truth: FloatArray, mean: FloatArray, covariance: FloatArray, kept: BoolArray
) -> FloatArray:
    """The loss of each draw; DataError if the function does not give one finite number a draw."""
    name, function = find_loss(loss)
    value = np.asarray(function(truth, mean, covariance, kept))
    if value.shape != (len(truth),) or value.dtype.kind not in "fiub":
        raise DataError(
            f"the loss {name} should give one number for each of {len(truth)} draws, shape ({len(truth)},), not "
            f"{value.dtype} of shape {value.shape}. It takes truth (n_draws, n_items), mean, covariance and kept"
        )
    value = value.astype(np.float64)
    if not np.isfinite(value).all():
        row = int(np.argmin(np.isfinite(value)))
        raise DataError(
            f"the loss {name} gave {value[row]} for {int((~np.isfinite(value)).sum())} of {len(value)} draws (first: "
            f"draw {row}). A loss must be finite for all utilities; likely causes: a division by a difference that is "
            "0, or the logarithm of a probability that is"
        )
    return value


def _choice(mean: FloatArray, kept: BoolArray) -> int:
    return int(np.where(kept, mean, -np.inf).argmax())


def _pairs(n_items: int) -> tuple[IntArray, IntArray]:
    left, right = np.triu_indices(n_items, 1)
    if len(left) > _MOST_PAIRS:
        some = np.linspace(0, len(left) - 1, _MOST_PAIRS).round().astype(np.int64)
        left, right = left[some], right[some]
    return left, right


_MOST_PEOPLE, _MOST_WORK = 100, 2e9  # people who are asked, and multiply-adds of their draws


@dataclass(frozen=True, slots=True)
class ExpectedLoss:
    """Mean losses over people, of acting on the full and on the compressed posterior."""

    loss: str
    full: float
    compressed: float
    excess: float  # compressed - full
    error: float  # standard error of excess over people (same draws for both); NaN for one person
    n_people: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def expected_loss(
    model: Any,
    subset: Any,
    loss: str | Loss,
    *,
    n_draws: int = 200,
    random_state: int = 0,
    people: People | None = None,
) -> ExpectedLoss:
    """The loss over draws of people's utilities from the full posterior, by the full and by the compressed belief.

    Of at most 100 people drawn at random, fewer with very many items; n_items³ / 3 + n_draws n_items² operations a
    person. Raises DataError if the loss is unknown, or gives anything but finite numbers.
    """
    name, _ = find_loss(loss)
    rng = np.random.default_rng(random_state)
    n, n_items = subset.n_users if model.personal_ else 1, len(model.items_)
    most = int(np.clip(_MOST_WORK / (n_items**3 / 3 + n_draws * n_items**2), 5, _MOST_PEOPLE))
    users = np.arange(n) if n <= most else np.sort(rng.permutation(n)[:most])
    people = people_of_model(model) if people is None else people
    full, left, everything = [], [], np.ones(n_items, dtype=bool)
    for user, utilities in zip(users.tolist(), people(users), strict=True):
        mean, covariance = utilities.dense()
        truth = utilities.draws(n_draws, rng, semidefinite_root(utilities.covariance))
        full.append(losses_of_draws(loss, truth, mean, covariance, everything).mean())
        mean, covariance = subset.utilities(user)
        left.append(losses_of_draws(loss, truth, mean, covariance, kept_of(subset, user, n_items)).mean())
    excess = np.array(left) - np.array(full)
    error = float(excess.std(ddof=1) / np.sqrt(len(excess))) if len(excess) > 1 else float("nan")
    return ExpectedLoss(
        name, float(np.mean(full)), float(np.mean(left)), float(excess.mean()), error, len(excess)
    )  # fmt: skip


def kept_of(subset: Any, user: int, n_items: int) -> BoolArray:
    """Items that a person keeps as a mask (n_items,); of a posterior that was never compressed, all."""
    kept = np.zeros(n_items, dtype=bool)
    kept[subset.kept(user)] = True
    return kept
