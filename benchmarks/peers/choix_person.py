"""choix's expectation propagation for every person alone: a probit model with independent normal utilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import choix
import numpy as np
import numpy.typing as npt

from benchmarks.peers.tuning import Setting
from benchmarks.task import Task
from predilect.data import Comparisons

__all__ = ["ChoixPerson", "method"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class ChoixPerson:
    """How choix is fitted: prior precision ``alpha``; a tie is a win each way, as answers have no weights."""

    axes: Mapping[str, Sequence[float]] = field(
        default_factory=lambda: {
            "alpha": (0.001, 0.002, 0.004, 0.008, 0.016, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)
        }
    )
    start: Setting = field(default_factory=lambda: {"alpha": 0.06})
    normal: bool = True
    most_rows: int = 1_500
    n_folds: int = 5

    def fit(self, rows: Comparisons, setting: Setting, seed: int) -> ChoixPersonFit:
        """One model a person, of the items that they saw: the others keep the prior."""
        # choix draws the order of the answers from NumPy's global generator.
        np.random.seed(seed)  # noqa: NPY002  it takes no other
        offsets = rows.user_offsets
        starts, items, means, covariances = [0], [], [], []
        failed = 0
        for u in range(rows.n_users):
            mine = slice(int(offsets[u]), int(offsets[u + 1]))
            seen, code = np.unique(np.concatenate([rows.left[mine], rows.right[mine]]), return_inverse=True)
            pairs = _wins(code[: len(code) // 2], code[len(code) // 2 :], rows.outcome[mine], rows.weight[mine])
            try:
                mean, cov = choix.ep_pairwise(len(seen), pairs, setting["alpha"], model="probit")
            except (RuntimeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
                failed += 1  # the person keeps the prior
                mean, cov = np.zeros(len(seen)), np.eye(len(seen)) / setting["alpha"]
            starts.append(starts[-1] + len(seen))
            items.append(seen)
            means.append(mean)
            covariances.append(cov)
        return ChoixPersonFit(np.array(starts), items, means, covariances, 1.0 / setting["alpha"], failed)


@dataclass(frozen=True)
class ChoixPersonFit:
    """Mean and covariance of each person's utilities of the items that they saw, ``items[u]`` in order."""

    starts: IntArray
    items: list[IntArray]
    means: list[FloatArray]
    covariances: list[FloatArray]
    prior: float
    failed: int

    def utility(self, user: IntArray, item: IntArray) -> FloatArray:
        """See :class:`~benchmarks.peers.tuning.Scorer`."""
        return np.array([self._moments(u, i, i)[0] for u, i in zip(user, item, strict=True)])

    def margin(self, user: IntArray, left: IntArray, right: IntArray) -> FloatArray:
        """Mean of the difference over the standard deviation of a noisy one, so that Φ of it is the probability."""
        moments = np.array([self._moments(*triple) for triple in zip(user, left, right, strict=True)])
        a, b, variance = moments.reshape(-1, 3).T
        margin: FloatArray = (a - b) / np.sqrt(1.0 + variance)
        return margin

    def report(self) -> dict[str, Any]:
        """People whose model did not converge."""
        return {"people_not_converged": self.failed}

    def _moments(self, u: int, a: int, b: int) -> tuple[float, float, float]:
        """Means of two items' utilities, and the variance of the difference."""
        if u < 0 or not len(self.items[u]):
            return 0.0, 0.0, 2.0 * self.prior * (a != b)
        seen = self.items[u]
        place = [min(int(np.searchsorted(seen, i)), len(seen) - 1) for i in (a, b)]
        there = [bool(seen[p] == i) for p, i in zip(place, (a, b), strict=True)]
        mean = [float(self.means[u][p]) if t else 0.0 for p, t in zip(place, there, strict=True)]
        cov = self.covariances[u]
        own = [float(cov[p, p]) if t else self.prior for p, t in zip(place, there, strict=True)]
        both = float(cov[place[0], place[1]]) if all(there) else (self.prior if a == b else 0.0)
        return mean[0], mean[1], max(own[0] + own[1] - 2.0 * both, 0.0)


def _wins(left: IntArray, right: IntArray, outcome: IntArray, weight: FloatArray) -> list[tuple[int, int]]:
    """Winner and loser, once an answer; a tie gives both."""
    pairs: list[tuple[int, int]] = []
    for a, b, y, w in zip(left.tolist(), right.tolist(), outcome.tolist(), weight.tolist(), strict=True):
        times = max(1, round(w))
        if y >= 0:
            pairs += [(a, b)] * times
        if y <= 0:
            pairs += [(b, a)] * times
    return pairs


def method(task: Task) -> ChoixPerson:
    """The same for every task."""
    return ChoixPerson()
