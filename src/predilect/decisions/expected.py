"""What compressing costs people: the expected loss of what is left, when the full posterior is the truth."""

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
    """Means over people.

    Attributes
    ----------
    loss : str
    full, compressed : float
        Of acting on the full posterior, and on what is left of it.
    excess, error : float
        Their difference and its standard error over people (draws are the same for both); NaN for one person.
    n_people : int
        How many people were drawn.
    """

    loss: str
    full: float
    compressed: float
    excess: float
    error: float
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

    Parameters
    ----------
    model : estimator
        The full model.
    subset : SubsetPosterior or JointProcess
        What :func:`~predilect.decisions.sparsify.sparsify` left of it.
    loss : str or callable
        See :mod:`predilect.decisions.losses`.
    n_draws : int, default 200
    random_state : int, default 0
        Of the draws, and of the people: 100 at most, fewer with very many items.
    people : callable, optional
        As in :func:`~predilect.decisions.sparsify.sparsify`.

    Raises
    ------
    DataError
        If the loss is none, or gives anything but finite numbers.

    Notes
    -----
    n_items³ / 3 + n_draws n_items² operations a person.
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
    """Which items a person keeps, shape (n_items,); of a posterior that was never cut down, all."""
    kept = np.zeros(n_items, dtype=bool)
    if isinstance(subset, SubsetPosterior):
        kept[subset.kept(user)] = True
    elif isinstance(subset, JointProcess) and not len(subset.rows.left):
        cells = subset.rows.codes.astype(np.int64)
        kept[cells[cells[:, 0] == user, 1]] = True
    else:
        kept[:] = True
    return kept
