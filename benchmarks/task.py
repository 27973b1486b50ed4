"""What a model is measured on: training answers, test answers, and what is known of the items."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.closure import implied_answers
from benchmarks.splits import split_hash
from predilect.data import Comparisons, Vocabulary
from predilect.data.canonical import AnswerColumns, canonical_answers
from predilect.errors import DataError

__all__ = [
    "HeldOut",
    "Loader",
    "Task",
    "expect",
    "read_answers",
    "read_csv",
    "split_comparisons",
    "split_rows",
    "winner_outcome",
    "without_absent",
]

VARIABLE = "PREDILECT_DATA"


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Further answers to predict with the same fit.

    Attributes
    ----------
    test : Comparisons
        Over the items of the task. Nobody told apart: the consensus is asked for.
    gold : data frame or None
        Columns item, score and, for personal utilities, user.
    """

    test: Comparisons
    gold: pl.DataFrame | None = None


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
    oracle_log_loss : float or None
        Log loss of the true probabilities on ``test``, in nats an answer, where the answers were simulated.
    further : mapping of str to HeldOut
        Other test answers, or other gold utilities, by what they are about.
    """

    name: str
    seed: int
    train: Comparisons
    test: Comparisons
    items: pl.DataFrame | None = None
    users: pl.DataFrame | None = None
    gold: pl.DataFrame | None = None
    implied: npt.NDArray[np.bool_] | None = None
    oracle_log_loss: float | None = None
    further: Mapping[str, HeldOut] = field(default_factory=dict)

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


def read_answers(
    frame: pl.DataFrame, outcome: npt.ArrayLike, items: Vocabulary | None = None, task: str | None = None
) -> Comparisons:
    """Comparisons from columns user, left, right of ids; equal answers (of one task) are added up.

    Parameters
    ----------
    frame : data frame, n rows
    outcome : array of int, shape (n,)
        +1 left better, 0 tie, -1 right better.
    items : Vocabulary, optional
        By default the items of the frame.
    task : str, optional
        Column of the ids of the tasks, distinct within a person.
    """
    users = Vocabulary(frame["user"])
    items = items or Vocabulary(pl.concat([frame["left"], frame["right"]]))
    codes = (users.codes(frame["user"]), items.codes(frame["left"]), items.codes(frame["right"]))
    outcome = np.asarray(outcome, dtype=np.int8)
    tasks = None if task is None else Vocabulary(frame[task]).codes(frame[task])
    answers = canonical_answers(AnswerColumns(*codes, outcome, np.ones(len(outcome)), tasks))
    return Comparisons(users, items, **answers._asdict())


def winner_outcome(frame: pl.DataFrame, tie: str | None = None) -> npt.NDArray[np.int8]:
    """Outcomes of a frame with left, right and winner, shape (n,)."""
    left, right = (frame["winner"].eq(frame[side]).to_numpy() for side in ("left", "right"))
    known = left | right | (frame["winner"].eq(tie).to_numpy() if tie else False)
    if not known.all():
        raise DataError(f"{int((~known).sum())} winners are neither of the two items.")
    return left.astype(np.int8) - right.astype(np.int8)


def split_rows(
    name: str,
    seed: int,
    frame: pl.DataFrame,
    outcome: npt.ArrayLike,
    test: npt.NDArray[np.bool_],
    task: str | None = None,
    vocabulary: Vocabulary | None = None,
    **known: Any,
) -> Task:
    """A task from rows of a frame, as in :func:`read_answers`, some of which are held out.

    Parameters
    ----------
    test : bool array, shape (n,)
        Which.
    task : str, optional
        Column of the ids of tasks; the training answers carry them, the test needs none.
    vocabulary : Vocabulary, optional
        Items; by default those of the frame.
    **known
        Further attributes of the task.
    """
    outcome = np.asarray(outcome)
    items = vocabulary or Vocabulary(pl.concat([frame["left"], frame["right"]]))
    train = read_answers(frame.filter(pl.Series(~test)), outcome[~test], items, task)
    held_out = read_answers(frame.filter(pl.Series(test)), outcome[test], items)
    return _task(name, seed, train, held_out, known)


def split_comparisons(name: str, seed: int, everything: Comparisons, test: npt.NDArray[np.bool_], **known: Any) -> Task:
    """A task from comparisons and the mask of the rows that are held out, shape (n_rows,)."""
    return _task(name, seed, without_absent(everything.take(~test)), without_absent(everything.take(test)), known)


def _task(name: str, seed: int, train: Comparisons, test: Comparisons, known: dict[str, Any]) -> Task:
    strict = not (train.has_ties or test.has_ties)
    return Task(name, seed, train, test, implied=implied_answers(train, test) if strict else None, **known)


def without_absent(comparisons: Comparisons) -> Comparisons:
    """The same answers without people who gave none."""
    codes, user = np.unique(comparisons.user, return_inverse=True)
    return replace(comparisons, users=Vocabulary(comparisons.users.labels(codes)), user=user)
