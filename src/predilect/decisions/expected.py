"""Expected loss of a compressed model under the full posterior."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import semidefinite_root
from predilect.decisions.losses import Loss, find_loss, losses_of_draws
from predilect.decisions.sparsify import People, people_of_model
from predilect.posteriors.joint_process import JointProcess
from predilect.posteriors.subset import SubsetPosterior

__all__ = ["ExpectedLoss", "expected_loss", "kept_of"]

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


def kept_of(subset: Any, user: int, n_items: int) -> npt.NDArray[np.bool_]:
    """Items that a person keeps as a mask (n_items,); of a posterior that was never compressed, all."""
    kept = np.zeros(n_items, dtype=bool)
    if isinstance(subset, SubsetPosterior):
        kept[subset.kept(user)] = True
    elif isinstance(subset, JointProcess) and not len(subset.rows.left):
        cells = subset.rows.codes.astype(np.int64)
        kept[cells[cells[:, 0] == user, 1]] = True
    else:
        kept[:] = True
    return kept
