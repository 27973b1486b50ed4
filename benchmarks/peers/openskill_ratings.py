"""openskill: answers one after another in random order, as games between two items, a rating for each of them.

``openskill`` has a rating for each person and item, ``openskill-pooled`` one for each item. A tie is a draw, which
openskill's update knows. Its ``predict_draw`` fixes the share of draws by the number of players, so ties come from the
link as for the others; its ``predict_win`` is Φ of the margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from openskill.models import BradleyTerryFull

from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons

__all__ = ["Ratings", "of_everybody", "of_people"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]

MU, SIGMA = 25.0, 25.0 / 3.0  # openskill's own
BETAS = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Ratings:
    """How openskill is fitted.

    ``beta`` is the noise of a game in units of the prior's σ (openskill's default is ½), ``passes`` how often the
    answers are gone through, ``shared`` how much of an item's pooled rating a person's rating starts with.
    """

    personal: bool
    axes: Mapping[str, Sequence[float]]
    start: Setting
    normal: bool = True
    most_rows: int = 2_500
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> RatingsFit:
        """One game an answer, in every pass."""
        if not self.personal:
            return _play(rows, np.zeros(rows.n_rows, dtype=np.int64), setting, np.zeros(rows.n_items), seed)
        shared = np.zeros(rows.n_items)
        if setting["shared"] > 0:
            pooled = _play(rows, np.zeros(rows.n_rows, dtype=np.int64), {**setting, "passes": 1}, shared, seed)
            shared = setting["shared"] * (
                pooled.utility(np.zeros(rows.n_items, dtype=int), np.arange(rows.n_items)) - MU
            )
        return _play(rows, rows.user.astype(np.int64), setting, shared, seed)


def _play(rows: Comparisons, user: IntArray, setting: Setting, shared: FloatArray, seed: int) -> RatingsFit:
    """Ratings after all games, from ``MU + shared[item]``."""
    model = BradleyTerryFull(mu=MU, sigma=SIGMA, beta=setting["beta"] * SIGMA)
    keys, code = np.unique(
        np.concatenate([user * rows.n_items + side for side in (rows.left, rows.right)]), return_inverse=True
    )
    left, right = (side.tolist() for side in np.split(code, 2))
    ratings = [model.rating(mu=MU + start) for start in shared[keys % rows.n_items].tolist()]
    games = np.repeat(np.arange(rows.n_rows), np.maximum(1, np.round(rows.weight)).astype(int))
    ranks = {1: [1.0, 2.0], 0: [1.0, 1.0], -1: [2.0, 1.0]}
    outcome = rows.outcome.tolist()
    rng = np.random.default_rng(seed)
    for _ in range(int(setting["passes"])):
        for n in rng.permutation(games).tolist():
            a, b = left[n], right[n]
            teams = model.rate([[ratings[a]], [ratings[b]]], ranks=ranks[outcome[n]])
            ratings[a], ratings[b] = teams[0][0], teams[1][0]
    mu, sigma = (np.array([getattr(rating, name) for rating in ratings]) for name in ("mu", "sigma"))
    everybody = not user.any()
    return RatingsFit(everybody, MU + shared, keys, mu, sigma, float(model.beta))


@dataclass(frozen=True)
class RatingsFit:
    """Ratings by sorted ``keys`` = user n_items + item; others are ``unseen``, shape (n_items,), with the prior's σ."""

    everybody: bool
    unseen: FloatArray
    keys: IntArray
    mu: FloatArray
    sigma: FloatArray
    beta: float

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """See :class:`~benchmarks.peers.tuning.Scorer`."""
        return self._rating(user, item)[0]

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """What openskill takes Φ of in ``predict_win``."""
        (mu_left, sigma_left), (mu_right, sigma_right) = (self._rating(user, side) for side in (left, right))
        return (mu_left - mu_right) / np.sqrt(2.0 * self.beta**2 + sigma_left**2 + sigma_right**2)

    def report(self) -> dict[str, Any]:
        """How many ratings there are."""
        return {"ratings": len(self.keys)}

    def _rating(self, user: IntArray, item: IntArray) -> tuple[FloatArray, FloatArray]:
        key = (0 if self.everybody else user.astype(np.int64)) * len(self.unseen) + item
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        there = self.keys[place] == key
        return np.where(there, self.mu[place], self.unseen[item]), np.where(there, self.sigma[place], SIGMA)


def of_people(task: Task) -> Ratings:
    """A rating for each person and item."""
    axes = {"beta": BETAS, "shared": (0.0, 0.5, 1.0, 2.0), "passes": (1, 4)}
    return Ratings(True, axes, {"beta": 0.5, "shared": 1.0, "passes": 1})


def of_everybody(task: Task) -> Ratings:
    """A rating for each item."""
    return Ratings(False, {"beta": BETAS, "passes": (1, 4)}, {"beta": 0.5, "passes": 1})
