"""Folds of answers within people, and the models that are tried on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from predilect.data import Comparisons, ItemFeatures, Vocabulary
from predilect.errors import ConvergenceWarning, DataWarning

__all__ = ["BUSY", "FEWEST_BUSY", "FEWEST_PEOPLE", "Trial", "Watch", "drawn_people"]

FloatArray = npt.NDArray[np.float64]
Watch = Callable[[str, int], None]

# So few people are enough if they answered so much each: what each says of the difference is then known well.
FEWEST_PEOPLE, FEWEST_BUSY, BUSY = 10, 5, 20
_MOST_ROWS = 100_000
# Above, a fit is mostly items x items algebra: two of the folds are enough, as each holds out a share of everybody.
_MANY_ITEMS = 300
_FOLDS_MANY_ITEMS = 2


@dataclass
class Trial:
    """The folds, on which one model after another is tried.

    Attributes
    ----------
    comparisons : Comparisons
    fold : int8 array, shape (n_rows,)
        Where each row is held out; -1 for never.
    tie_threshold : float
        For folds whose training answers hold no tie, though others do.
    watch : callable or None
        Told of progress.
    notes : list of str
        What the reader of a verdict should know.
    asked : Comparisons
        The answers held out, in their canonical order.
    """

    comparisons: Comparisons
    fold: npt.NDArray[np.int8]
    tie_threshold: float
    watch: Watch | None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = [int(k) for k in np.unique(self.fold) if k >= 0]
        if self.comparisons.n_items > _MANY_ITEMS:
            numbers = numbers[:_FOLDS_MANY_ITEMS]
        self.masks = [self.fold == k for k in numbers]
        ever = np.logical_or.reduce(self.masks)
        self.asked = self.comparisons.take(ever)
        self.places = [mask[ever] for mask in self.masks]  # of each fold's answers among those asked

    def run(self, name: str, estimator: Any, features: ItemFeatures | None) -> FloatArray:
        """Log-probabilities of (left, tie, right) of the answers asked, shape (n, 3)."""
        found = np.empty((self.asked.n_rows, 3))
        n_short = 0
        for number, mask in enumerate(self.masks, 1):
            train, test = self.comparisons.take(~mask), self.comparisons.take(mask)
            model = clone(estimator)
            if self.comparisons.has_ties and not train.has_ties:
                model.set_params(tie_threshold=self.tie_threshold)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")  # fits that fall short are counted
                # What the data are like was said at the fit to all of them.
                warnings.simplefilter("ignore", DataWarning)
                model.fit(train, items=features, watch=self._watch(f"{name}, part {number} of {len(self.masks)}"))
                found[self.places[number - 1]] = model.predict_log_proba(test)
            n_short += any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
            if number == 1:
                chosen = model.hyperparameters_.to_dict() | model.choices_
                estimator = clone(estimator).set_params(
                    **{key: value for key, value in chosen.items() if key in estimator.get_params()}
                )
        if n_short:
            self.notes.append(f"{n_short} of {len(self.masks)} fits behind the verdict ({name}) did not converge.")
        return found

    def tied_at_random(self, log_proba: FloatArray) -> FloatArray:
        """The same preferences, but with the training answers' share of ties for every pair."""
        result = np.empty_like(log_proba)
        for mask, place in zip(self.masks, self.places, strict=True):
            tied, weight = self.comparisons.outcome[~mask] == 0, self.comparisons.weight[~mask]
            # Half a tie and half a decided answer more: neither can be impossible.
            share = (float(weight[tied].sum()) + 0.5) / (float(weight.sum()) + 1.0)
            strict = np.logaddexp(log_proba[place, 0], log_proba[place, 2])
            result[place] = log_proba[place] - strict[:, None] + np.log1p(-share)
            result[place, 1] = np.log(share)
        return result

    def _watch(self, stage: str) -> Watch | None:
        watch = self.watch
        return None if watch is None else lambda _, done: watch(f"held-out answers: {stage}", done)


def drawn_people(
    comparisons: Comparisons, fold: npt.NDArray[np.int8], max_people: int, rng: np.random.Generator
) -> tuple[Comparisons, npt.NDArray[np.int8]]:
    """At most so many people whose answers can be held out, with their share of the others.

    Parameters
    ----------
    comparisons : Comparisons
    fold : int8 array, shape (n_rows,)
    max_people : int
        Fewer are drawn if their answers fill more than 100 000 rows.
    rng : Generator

    Returns
    -------
    comparisons, fold
        Of these people, renumbered: someone without answers would be one more person to fit.
    """
    rows = np.bincount(comparisons.user, minlength=comparisons.n_users)
    able = np.zeros(comparisons.n_users, dtype=bool)
    able[comparisons.user[fold >= 0]] = True
    order = rng.permutation(np.flatnonzero(able))
    n = min(max_people, max(int(np.searchsorted(np.cumsum(rows[order]), _MOST_ROWS, "right")), FEWEST_PEOPLE))
    others = rng.permutation(np.flatnonzero(~able & (rows > 0)))
    share = min(1.0, n / max(len(order), 1))
    keep = np.zeros(comparisons.n_users, dtype=bool)
    keep[order[:n]] = True
    keep[others[: min(max_people, round(share * len(others)))]] = True
    if keep.all():
        return comparisons, fold
    mask = keep[comparisons.user]
    kept = comparisons.take(mask)
    codes, user = np.unique(kept.user, return_inverse=True)
    users = Vocabulary(comparisons.users.labels(codes))
    return replace(kept, users=users, user=user.astype(np.int32)), fold[mask]
