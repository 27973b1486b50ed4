"""What a model is measured on: training answers, test answers, and what is known of the items."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.closure import implied_answers
from predilect.data import Comparisons, Vocabulary, split_hash
from predilect.data.canonical import canonical_rows
from predilect.errors import DataError

__all__ = ["Loader", "Task", "expect", "read_answers", "read_csv", "split_comparisons", "split_rows", "winner_outcome"]

VARIABLE = "PREDILECT_DATA"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One split of one data set.

    Attributes
    ----------
    name, seed : str, int
    train, test : Comparisons
        Over the same vocabularies of items; people of ``test`` need not be in ``train``. As everywhere in the package
        the item with the smaller id is on the left, so the orientation says nothing of the winner.
    items : data frame or None
        Features of items that models may use, with a column ``item``.
    users : data frame or None
        Features of people, with a column ``user``.
    gold : data frame or None
        Columns user, item, score: how much a person truly likes an item, higher is more.
    implied : bool array, shape (test.n_rows,), or None
        Test rows that follow from the person's own training answers by transitivity; None where ties occur.
    choice : int array, shape (train.n_rows,), or None
        Where a choice of one among several items became several pairs: which choice a training row is of. A model that
        cross-validates must not hold out one pair and keep the others.
    oracle_log_loss : float or None
        Log loss of the true probabilities on ``test``, in nats an answer, where the answers were simulated.
    """

    name: str
    seed: int
    train: Comparisons
    test: Comparisons
    items: pl.DataFrame | None = None
    users: pl.DataFrame | None = None
    gold: pl.DataFrame | None = None
    implied: npt.NDArray[np.bool_] | None = None
    choice: npt.NDArray[np.int64] | None = None
    oracle_log_loss: float | None = None

    @property
    def split_hash(self) -> str:
        """Fingerprint of training and test answers together, 16 hexadecimal digits."""
        parts = [split_hash(np.ones(side.n_rows, dtype=bool), side) for side in (self.train, self.test)]
        return parts[0][:8] + parts[1][:8]


Loader = Callable[[int], Task]


def folder(name: str) -> Path:
    """Folder of one data set under ``PREDILECT_DATA``.

    Raises
    ------
    DataError
        If the variable is not set, or there is no such folder.
    """
    root = os.environ.get(VARIABLE)
    if not root:
        raise DataError(
            f"the data sets are not part of the project; set {VARIABLE} to the folder that holds them, one subfolder a "
            f"data set (such as {name}/)."
        )
    path = Path(root).expanduser() / name
    if not path.is_dir():
        raise DataError(f"there is no folder {path}. {VARIABLE} must be the folder that holds {name}/.")
    return path


def read_csv(data_set: str, file: str, **options: Any) -> pl.DataFrame:
    """A file of a data set, plain or gzipped."""
    path = folder(data_set) / file
    if not path.is_file():
        raise DataError(f"{path} is missing. Is the data set {data_set} complete?")
    return pl.read_csv(path, infer_schema_length=None, **options)


def expect(data_set: str, **counts: tuple[int, int]) -> None:
    """Refuse data whose counts are not those that its SOURCE.md states.

    Parameters
    ----------
    data_set : str
    **counts : (found, stated)

    Raises
    ------
    DataError
        Naming every count that differs.
    """
    wrong = [f"{found} {name}, not {stated}" for name, (found, stated) in counts.items() if found != stated]
    if wrong:
        raise DataError(f"{data_set} is not the data set that the benchmarks know: it holds {'; '.join(wrong)}.")


def read_answers(frame: pl.DataFrame, outcome: npt.ArrayLike, items: Vocabulary | None = None) -> Comparisons:
    """Comparisons from columns user, left, right of ids; equal answers are added up.

    Parameters
    ----------
    frame : data frame, n rows
    outcome : array of int, shape (n,)
        +1 left better, 0 tie, -1 right better.
    items : Vocabulary, optional
        By default the items of the frame.
    """
    users = Vocabulary(frame["user"])
    items = items or Vocabulary(pl.concat([frame["left"], frame["right"]]))
    codes = (users.codes(frame["user"]), items.codes(frame["left"]), items.codes(frame["right"]))
    outcome = np.asarray(outcome, dtype=np.int8)
    return Comparisons(users, items, *canonical_rows(*codes, outcome, np.ones(len(outcome))))


def winner_outcome(frame: pl.DataFrame, tie: str | None = None) -> npt.NDArray[np.int8]:
    """Outcomes of a frame with left, right and winner, shape (n,)."""
    left, right = (frame["winner"].eq(frame[side]).to_numpy() for side in ("left", "right"))
    known = left | right | (frame["winner"].eq(tie).to_numpy() if tie else False)
    if not known.all():
        raise DataError(f"{int((~known).sum())} winners are neither of the two items.")
    return left.astype(np.int8) - right.astype(np.int8)


def split_rows(
    name: str, seed: int, frame: pl.DataFrame, outcome: npt.ArrayLike, test: npt.NDArray[np.bool_], **known: Any
) -> Task:
    """A task from rows of a frame, as in :func:`read_answers`, some of which are held out.

    Parameters
    ----------
    test : bool array, shape (n,)
        Which.
    **known
        Further attributes of the task.
    """
    outcome = np.asarray(outcome)
    items = Vocabulary(pl.concat([frame["left"], frame["right"]]))
    train, held_out = (read_answers(frame.filter(pl.Series(m)), outcome[m], items) for m in (~test, test))
    return _task(name, seed, train, held_out, known)


def split_comparisons(name: str, seed: int, everything: Comparisons, test: npt.NDArray[np.bool_], **known: Any) -> Task:
    """A task from comparisons and the mask of the rows that are held out, shape (n_rows,)."""
    return _task(name, seed, _without_absent(everything.take(~test)), _without_absent(everything.take(test)), known)


def _task(name: str, seed: int, train: Comparisons, test: Comparisons, known: dict[str, Any]) -> Task:
    strict = not (train.has_ties or test.has_ties)
    return Task(name, seed, train, test, implied=implied_answers(train, test) if strict else None, **known)


def _without_absent(comparisons: Comparisons) -> Comparisons:
    """The same answers without people who gave none."""
    codes, user = np.unique(comparisons.user, return_inverse=True)
    return replace(comparisons, users=Vocabulary(comparisons.users.labels(codes)), user=user)
