"""Cross-validation of a peer's settings and of its link, on training answers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.peers.link import Link, fit_link
from predilect.data import Comparisons, k_folds_answers

__all__ = ["Method", "Scorer", "Setting", "Tuned", "tune"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
Setting = Mapping[str, float]

MANY_ROWS = 20_000  # above that two of the folds are enough


class Scorer(Protocol):
    """What a peer learned; users and items are codes of the training answers, -1 for a user who is not there."""

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """How much each user likes each item, shape (n,)."""
        ...

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """What the link turns into probabilities, positive where the left item is liked better; shape (n,)."""
        ...

    def report(self) -> dict[str, Any]:
        """Convergence and the like."""
        ...


class Method(Protocol):
    """How a peer is fitted, and what may be tuned.

    Attributes
    ----------
    axes : mapping of str to sequence of float
        Values of each setting, in order.
    start : mapping of str to float
        Where the search begins.
    normal : bool
        Whether the link is Φ.
    most_rows, n_folds : int
        Cross-validation samples people until they hold about that many rows, and cuts so many folds.
    """

    axes: Mapping[str, Sequence[float]]
    start: Setting
    normal: bool
    most_rows: int
    n_folds: int

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> Scorer:
        """Fit to ``rows``."""
        ...


@dataclass(frozen=True)
class Tuned:
    """The outcome of :func:`tune`."""

    setting: Setting
    link: Link
    report: dict[str, Any]


def tune(method: Method, rows: Comparisons, seed: int) -> Tuned:
    """Walk along one setting after another while the log loss on held-out training answers falls.

    The folds are of pairs within people, or of whole choices where the rows tell their tasks.
    Settings are judged with the link that suits each best: a scale helps even margins that are log-odds, as a point
    estimate is bolder than what it was estimated from allows.
    """
    sampled = _sample_people(rows, method.most_rows, seed)
    sample = rows.take(sampled)
    fold, n_folds = _folds(sample, method.n_folds, seed)
    tried: dict[tuple[float, ...], tuple[Link, float]] = {}

    def judged(setting: Setting) -> tuple[Link, float]:
        key = tuple(setting[name] for name in method.axes)
        if key not in tried:
            margin = np.zeros(sample.n_rows)
            for k in range(n_folds):
                out = fold == k
                if not out.any():
                    continue
                fitted = method.fit(sample.take(~out), setting, seed)
                margin[out] = fitted.margin(sample.user[out], sample.left[out], sample.right[out])
            judge = fold >= 0
            answers = (margin[judge], sample.outcome[judge], sample.weight[judge])
            tried[key] = fit_link(*answers, normal=method.normal, ties=rows.has_ties)
        return tried[key]

    setting = _walk(judged, method)
    link, loss = judged(setting)
    report = {
        "folds": n_folds, "settings_tried": len(tried), "validation_log_loss": loss,
        "validation_people": len(np.unique(sample.user)), "validation_answers": sample.n_answers,
    }  # fmt: skip
    return Tuned(setting, link, report)


def _walk(judged: Any, method: Method) -> Setting:
    best = dict(method.start)
    while True:
        before = dict(best)
        for name, values in method.axes.items():
            for step in (1, -1):
                while True:
                    place = values.index(best[name]) + step
                    if not 0 <= place < len(values):
                        break
                    other = best | {name: values[place]}
                    if judged(other)[1] >= judged(best)[1]:
                        break
                    best = other
        if best == before:
            return best


def _sample_people(rows: Comparisons, most_rows: int, seed: int) -> npt.NDArray[np.bool_]:
    """Mask of the rows."""
    if rows.n_rows <= most_rows:
        return np.ones(rows.n_rows, dtype=bool)
    order = np.random.default_rng(seed).permutation(rows.n_users)
    counts = np.diff(rows.user_offsets)
    chosen = np.zeros(rows.n_users, dtype=bool)
    chosen[order[np.cumsum(counts[order]) <= most_rows]] = True
    chosen[order[0]] = True
    mask: npt.NDArray[np.bool_] = chosen[rows.user]
    return mask


def _folds(rows: Comparisons, n_folds: int, seed: int) -> tuple[npt.NDArray[np.int8], int]:
    """Fold of each row, -1 for those that always stay in training; and the number of folds to go through."""
    fold = k_folds_answers(rows, n_folds, random_state=seed)
    if not (fold >= 0).any():  # everybody gave one pair
        fold = np.random.default_rng(seed).integers(n_folds, size=rows.n_rows).astype(np.int8)
    # Fewer folds rather than larger ones: who gave few answers would be left with fewer still, and the penalty that
    # suits them is too strong for all of their answers.
    used = n_folds if rows.n_rows <= MANY_ROWS else 2
    return np.where(fold < used, fold, -1).astype(np.int8), used
