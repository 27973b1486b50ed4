"""Candidate pairs of a question: of a list or of all items, without those answered; draws among what is equal."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import polars as pl

from predilect._base.text import quoted
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons, Vocabulary
from predilect.data.comparisons import joint_rows
from predilect.data.frames import is_list
from predilect.data.read.columns import pair_columns
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.posterior import Posterior, Utilities

MOST_ITEMS = 1000  # of which all pairs are looked at
_TABLE_OF_ITEMS = 1000  # up to so many items, whether a pair is barred stands in a table of all
_OPTIMISM = 2.0  # standard deviations that an item may be better than it is thought


class Fitted(Protocol):
    """Fitted model for which questions can be chosen, and choices made: every estimator of the package is one.

    Its posterior, or else ``comparisons_``, tells what the person answered.
    """

    posterior_: Posterior
    items_: Vocabulary
    users_: Vocabulary | None
    personal_: bool
    _added_users: dict[Any, int]
    tie_threshold_: float
    _backend: str

    def predict_margin(self, X: Any) -> tuple[FloatArray, FloatArray]: ...

    def _predict_margin_and_proba(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]: ...

    def predict_choice(self, X: Any) -> FloatArray: ...


EQUAL = 1e-9  # of the largest score, and of 1: scores that differ by no more are equal but for rounding


def best_first(score: FloatArray, rng: np.random.Generator) -> IntArray:
    """Places in the order of their scores, the largest first; those of equal scores are drawn."""
    order = np.argsort(-score, kind="stable")
    fall = -np.diff(score[order], prepend=score[order[:1]])
    group = np.cumsum(fall > EQUAL * max(1.0, float(np.abs(score).max(initial=0.0))))
    return np.asarray(order[np.lexsort((rng.permutation(len(order)), group))])


def items_left(model: Any, retired: Iterable[Any]) -> IntArray:
    """Items that are not retired, by code; DataError for fewer than two."""
    n_items = len(model.items_)
    left = np.delete(np.arange(n_items), model.items_.codes(list(retired)).astype(np.int64))
    if len(left) < 2:
        raise DataError(f"{len(left)} of the {n_items} items are not retired: a comparison needs two")
    return left


def all_pairs(items: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of some items, each once, in the order of their places; shapes (n (n - 1) / 2,)."""
    first, second = np.triu_indices(len(items), 1)
    return items[first], items[second]


def pair_keys(left: IntArray, right: IntArray, n_items: int) -> IntArray:
    """One number a pair, whichever item is on the left; shape (n,)."""
    return np.asarray(np.minimum(left, right) * n_items + np.maximum(left, right))


def without(left: IntArray, right: IntArray, keys: IntArray, n_items: int) -> tuple[IntArray, IntArray]:
    """Pairs whose key is none of ``keys``."""
    if not len(keys) or not len(left):
        return left, right
    key = pair_keys(left, right, n_items)
    if n_items <= _TABLE_OF_ITEMS:
        table = np.ones(n_items * n_items, dtype=bool)
        table[keys] = False
        free = table[key]
    else:
        free = ~np.isin(key, keys)
    return left[free], right[free]


def read_pairs(frame: Any, items: Vocabulary) -> tuple[IntArray, IntArray, pl.Series | None]:
    """Codes of the items of pairs in a frame or Comparisons, and the users if it names them; raises DataError."""
    if isinstance(frame, Comparisons):
        code = items.codes(frame.items.series(), unknown="minus_one")
        left, right = code[frame.left].astype(np.int64), code[frame.right].astype(np.int64)
        if min(left.min(initial=0), right.min(initial=0)) < 0:
            items.codes(frame.items.series())  # says which are not known
        return left, right, pl.Series(frame.users.labels(frame.user)) if frame.has_users else None
    roles, columns = pair_columns(frame)
    for role, series in columns.items():
        if series.null_count():
            row = int(series.is_null().arg_max() or 0) + 1
            raise DataError(
                f'column "{roles[role]}" of the candidates holds {series.null_count()} missing ids (first: row {row}). '
                "Leave such rows out"
            )
    left, right = (items.codes(columns[side]).astype(np.int64) for side in ("left", "right"))
    same = np.flatnonzero(left == right)
    if len(same):
        raise DataError(
            f"{len(same)} of {len(left)} candidates compare an item with itself (first: row {same[0] + 1}, "
            f"{columns['left'][int(same[0])]!r}). Leave them out"
        )
    return left, right, columns.get("user")


def rows_of(user: Any, whose: pl.Series | None, n_rows: int) -> BoolArray:
    """Mask of the rows of a person, shape (n_rows,): all where the table names nobody, or ``user`` is None."""
    if whose is None or user is None:
        return np.ones(n_rows, dtype=bool)
    people = Vocabulary(whose)
    return np.asarray(people.codes(whose, what="user") == people.code(user))


def candidate_pairs(
    candidates: Any, items: Vocabulary, utilities: Utilities, *, user: Any = None, strategy: str,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """Codes of the items of the pairs that may be asked, each pair once; raises DataError.

    ``candidates`` are pairs, items of which all pairs are meant, or None for all items; of pairs with users only those
    of ``user``. Of more than 1 000 items a shortlist of 1 000 is made: those with the largest centred variance, of
    which most is to be learned; for "eubo" those with the highest mean plus two standard deviations; for "random" any.
    Pairs that are given are all looked at.
    """
    if candidates is None:
        chosen = np.arange(len(items))
    elif isinstance(candidates, Vocabulary) or is_list(candidates):
        if not len(candidates):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        chosen = np.unique(items.codes(candidates)).astype(np.int64)
    else:
        left, right, whose = read_pairs(candidates, items)
        mine = rows_of(user, whose, len(left))
        if len(mine) and not mine.any():
            warnings.warn(f"none of the {len(mine)} candidates is of {quoted(user)}", DataWarning, stacklevel=3)
        left, right = left[mine], right[mine]
        _, first = np.unique(pair_keys(left, right, len(items)), return_index=True)
        first.sort()
        return left[first], right[first]
    if len(chosen) > MOST_ITEMS:
        rank = np.zeros(len(chosen))
        if strategy != "random":
            mean, rank = (part[chosen] for part in utilities.centred_marginals())
            if strategy == "eubo":
                rank = mean + _OPTIMISM * np.sqrt(np.maximum(rank, 0.0))
        chosen = np.sort(chosen[best_first(rank, rng)[:MOST_ITEMS]])
    return all_pairs(chosen)


def answered_rows(model: Fitted, user: Any, code: int) -> tuple[IntArray, IntArray, IntArray] | None:
    """Items of the rows that a person answered, and the task they share, -1 for none; None if the model has no answers.

    Each (n,). What the posterior holds is looked at first: it knows of every update, and survives saving.
    """
    nothing = np.zeros(0, dtype=np.int64)
    if code < 0:
        return nothing, nothing, nothing
    held = model.posterior_.answered_rows(code) if model.personal_ else None
    if held is not None:
        return held[0].astype(np.int64), held[1].astype(np.int64), held[2]
    answers: Comparisons | None = getattr(model, "comparisons_", None)
    if answers is None:
        return None
    place = answers.users.code(user)
    if place < 0:
        return nothing, nothing, nothing
    rows = slice(*np.searchsorted(answers.user, [place, place + 1]).tolist())
    known = model.items_.codes(answers.items.series()).astype(np.int64)
    return known[answers.left[rows]], known[answers.right[rows]], joint_rows(answers)[rows].astype(np.int64)


def draws_for(
    model: Fitted, user: Any, answered: tuple[IntArray, ...] | None, random_state: Any
) -> np.random.Generator:
    """Draws among questions that are equally good: others for each person and after each answer, and repeatable.

    ``answered``: see :func:`answered_rows`.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    own = None if model.users_ is None else model.users_.own(user)
    name = b"" if user is None else str(user if own is None else own).encode("utf-8", "surrogatepass")
    digest = int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "little")  # unlike hash(), always the same
    return np.random.default_rng([int(random_state), digest, 0 if answered is None else len(answered[0])])
