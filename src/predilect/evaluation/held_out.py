"""Folds of answers within people, and held-out predictions of models on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from predilect.data import Comparisons, ItemFeatures, Vocabulary
from predilect.errors import ConvergenceWarning, DataWarning
from predilect.inference.held_out import with_items_of
from predilect.inference.prior import FeatureSpace

__all__ = ["BUSY", "FEWEST_BUSY", "FEWEST_PEOPLE", "Trial", "Watch", "drawn_people"]

FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Watch = Callable[[str, int], None]

# So few people are enough if they answered so much each: what each says of the difference is then known well.
FEWEST_PEOPLE, FEWEST_BUSY, BUSY = 10, 5, 20
_MOST_ROWS = 100_000
# Above, a fit is mostly items x items algebra: two of the folds are enough, as each holds out a share of everybody.
_MANY_ITEMS = 300
_FOLDS_MANY_ITEMS = 2
_OWNERS = 1.5  # people an island of items, at most, for it to be one person's


@dataclass
class Trial:
    """Folds on which models are compared.

    ``fold``: where each row is held out, int8 of shape (n_rows,), -1 for never; ``tie_threshold``: for folds whose
    training answers hold no tie, though others do; ``notes``: what the reader of a verdict should know; ``asked``: the
    answers held out, in canonical order; ``chosen``: settings that the first fit of each model chose, by its name.
    """

    comparisons: Comparisons
    fold: npt.NDArray[np.int8]
    tie_threshold: float
    watch: Watch | None
    notes: list[str] = field(default_factory=list)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [int(k) for k in np.unique(self.fold) if k >= 0]
        if self.comparisons.n_items > _MANY_ITEMS:
            numbers = numbers[:_FOLDS_MANY_ITEMS]
        self.masks = [self.fold == k for k in numbers]
        self.ever = np.logical_or.reduce(self.masks)
        self.asked = self.comparisons.take(self.ever)
        self.places = [mask[self.ever] for mask in self.masks]  # of each fold's answers among those asked

    def run(
        self, name: str, estimator: Any, features: ItemFeatures | None, parts: Sequence[Mask] | None = None
    ) -> FloatArray:
        """Held-out log-probabilities of (left, tie, right) of the answers asked, shape (n, 3).

        With ``parts``, masks of rows that share no item, each is fitted by itself and on its own items.
        """
        found = np.empty((self.asked.n_rows, 3))
        n_short = n_fits = 0
        for number, mask in enumerate(self.masks, 1):
            watch = self._watch(f"{name}, part {number} of {len(self.masks)}")
            for part in parts or [np.ones(self.comparisons.n_rows, dtype=bool)]:
                if not (mask & part).any():
                    continue
                own = self.comparisons if parts is None else _of_own_items(self.comparisons.take(part))
                train, test = own.take(~mask[part]), own.take(mask[part])
                model = clone(estimator)
                if self.comparisons.has_ties and (parts is not None or not train.has_ties):
                    model.set_params(tie_threshold=self.tie_threshold)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")  # fits that fall short are counted
                    # What the data are like was said at the fit to all of them.
                    warnings.simplefilter("ignore", DataWarning)
                    if watch is not None:
                        watch("", n_fits)  # until the fit tells of itself, which may take a while
                    model.fit(train, items=features, watch=watch)
                    found[(mask & part)[self.ever]] = model.predict_log_proba(test)
                n_short += any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
                n_fits += 1
                if n_fits == 1:
                    chosen = self.chosen[name] = model.hyperparameters_.to_dict() | model.choices_
                    estimator = clone(estimator).set_params(
                        **{key: value for key, value in chosen.items() if key in estimator.get_params()}
                    )
        if n_short:
            self.notes.append(f"{n_short} of {n_fits} fits behind the verdict ({name}) did not converge.")
        return found

    def islands(self) -> list[Mask] | None:
        """Rows cut where no item is shared, into parts of some 300 items; None for fewer, or where people share items.

        Without features, answers on one island say nothing of another. Where each is hardly anybody's but one person's,
        that person's own model is the pooled one.
        """
        rows = self.comparisons
        if rows.n_items <= _MANY_ITEMS:
            return None
        edges = coo_array((np.ones(rows.n_rows), (rows.left, rows.right)), shape=(rows.n_items, rows.n_items))
        n_islands, island = connected_components(edges, directed=False)
        of_row = island[rows.left]
        n_owned = len(np.unique(of_row.astype(np.int64) * rows.n_users + rows.user))
        if n_owned > _OWNERS * len(np.unique(of_row)):
            return None
        number = np.cumsum(np.bincount(island, minlength=n_islands)) // _MANY_ITEMS
        return [number[of_row] == part for part in np.unique(number[of_row])]

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


def _of_own_items(comparisons: Comparisons) -> Comparisons:
    return with_items_of(comparisons, FeatureSpace.empty(comparisons.n_items))[0]


def drawn_people(
    comparisons: Comparisons, fold: npt.NDArray[np.int8], max_people: int, rng: np.random.Generator
) -> tuple[Comparisons, npt.NDArray[np.int8]]:
    """At most ``max_people`` people with answers held out, and their share of the others: comparisons and folds.

    Fewer if their answers fill more than 100 000 rows. People are renumbered: someone without answers would be one more
    person to fit.
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
