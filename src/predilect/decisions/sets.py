"""Active choice of a set to ask "which of these?" of."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import entr, ndtr

from predilect._base.arguments import check_list
from predilect._base.forks import refuse_without_threads
from predilect._base.text import either, quoted
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons, build_frame
from predilect.data.frames import clean_ids, column_names, open_frame, to_columns
from predilect.data.read.columns import listed
from predilect.data.read.names import ITEM, PEOPLE, TASK, guess_one
from predilect.decisions.candidates import (
    Fitted,
    all_pairs,
    answered_rows,
    best_first,
    draws_for,
    read_pairs,
    rows_of,
)
from predilect.decisions.information import bald
from predilect.decisions.queries import code_of
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.dense import semidefinite_root

_DRAWS = 400  # of the utilities: the information of a set is known to about .01 bits
_MOST_ITEMS = 60  # of which sets are made
LARGEST_SET = 20
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Where there are very many sets; of eight items right to .003 of a chance.
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_FEW_WEIGHTS = _FEW_WEIGHTS / _FEW_WEIGHTS.sum()


def suggest_set(
    model: Fitted, user: Any = None, size: int = 4, candidates: Sequence[Any] | None = None, *, exclude: Any = None,
    repeat: bool = False, random_state: int = 0,
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_set <predilect.models.asking.Asking.suggest_set>`."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= LARGEST_SET:
        raise DataError(f"size must be a whole number of alternatives from 2 to {LARGEST_SET}; got {quoted(size)}")
    model = copy.copy(model)  # as it is now, whatever other threads do
    if not model.posterior_.by_utilities:
        raise DataError(
            "the answers of this model are about more than the utilities of items, so that no set can be chosen by "
            "them. Ask for pairs: suggest"
        )
    every = np.arange(len(model.items_))
    items = every if candidates is None else np.unique(model.items_.codes(candidates)).astype(np.int64)
    if len(items) < size:
        raise DataError(f"a set of {size} was asked for, but there are {len(items)} items to show")
    code = code_of(model, user, "the questions are for")
    answered = answered_rows(model, user, code)
    rng = draws_for(model, user, answered, random_state)
    mean, covariance = model.posterior_.calibrated(code).times(model.posterior_.consistency_of(code)).dense()
    if len(items) > _MOST_ITEMS:
        within = covariance[np.ix_(items, items)]
        own = np.diagonal(within) - 2.0 * within.mean(axis=0) + within.mean()
        items = np.sort(items[best_first(own, rng)[:_MOST_ITEMS]])
    covariance = covariance[np.ix_(items, items)]
    root = semidefinite_root(covariance)
    draws = mean[items] + rng.standard_normal((_DRAWS, root.shape[1])) @ root.T
    barred = _barred(model, user, answered, exclude, repeat)
    place_of = {item: place for place, item in enumerate(items.tolist())}
    closed = [{place_of[item] for item in one} for one in set(barred) if len(one) == size and one <= place_of.keys()]
    first, second = all_pairs(np.arange(len(items)))
    var = np.diagonal(covariance)[first] + np.diagonal(covariance)[second] - 2.0 * covariance[first, second]
    told = bald(mean[items][first] - mean[items][second], np.maximum(var, 0.0))
    starts = ([int(first[k]), int(second[k])] for k in best_first(told, rng))
    chosen = next((start for start in starts if is_open(start, len(items), size, closed)), [])
    while chosen and len(chosen) < size:
        rest = np.array([place for place in range(len(items)) if place not in chosen])
        told, _ = _information(draws, np.column_stack([np.tile(chosen, (len(rest), 1)), rest]))
        nexts = ([*chosen, int(place)] for place in rest[best_first(told, rng)])
        chosen = next(more for more in nexts if is_open(more, len(items), size, closed))
    names = model.items_.series().gather(pl.Series(items[chosen], dtype=pl.Int64)).alias("item")
    begun = [_information(draws, np.array([chosen[:k]])) for k in range(2, len(chosen) + 1)]
    scores = [0.0, *(float(bits[0]) for bits, _ in begun)] if chosen else []
    chances = begun[-1][1][0] if chosen else np.zeros(0)
    return build_frame({"item": names, "p_best": chances, "score": np.array(scores, dtype=np.float64)}, model._backend)


def is_open(begun: list[int], n_items: int, size: int, closed: list[set[int]]) -> bool:
    """Whether a set that begins so may be completed to one that is not closed."""
    n_closed = sum(one.issuperset(begun) for one in closed)
    return n_closed < math.comb(n_items - len(begun), size - len(begun))


def _barred(
    model: Fitted, user: Any, answered: tuple[IntArray, IntArray, IntArray] | None, exclude: Any, repeat: bool
) -> list[frozenset[int]]:  # fmt: skip
    """Sets of items, by code, that are not to be asked; ``answered``: see :func:`answered_rows`."""
    barred = [] if exclude is None else read_sets(exclude, model, user)
    if repeat:
        return barred
    if answered is not None:
        return barred + sets_of_rows(*answered)
    if exclude is None:
        warnings.warn(
            f"this model does not hold who answered what: a set that {quoted(user)} answered may be asked again. "
            f"Name such with {either('--exclude ANSWERS', 'exclude=answers')}", DataWarning, stacklevel=3,
        )  # fmt: skip
    return barred


def read_sets(exclude: Any, model: Fitted, user: Any) -> list[frozenset[int]]:
    """Sets of a person's, or of all where nobody is named, by codes of their items."""
    if isinstance(exclude, Comparisons):
        left, right, whose = read_pairs(exclude, model.items_)
        mine = rows_of(user, whose, len(left))
        tasks = np.full(len(left), -1) if exclude.task is None else exclude.task
        return sets_of_rows(left[mine], right[mine], tasks[mine])
    if isinstance(exclude, list | tuple):
        for one in exclude:
            check_list("a set not to ask", one, of="items")
        return [frozenset(model.items_.codes(list(one)).tolist()) for one in exclude]
    table, _ = open_frame(exclude)
    names = column_names(table)
    item, task, person = (guess_one(names, known) for known in (ITEM, TASK, PEOPLE))
    if item is None:
        raise DataError(
            f"sets not to ask have a column item, a row an item, and a column task where there are several; these "
            f"columns are {listed(names)}. Rename them, or give answers: Comparisons.from_frame(...)"
        )
    grouping = [name for name in (task, person) if name is not None]
    columns = to_columns(table, [item, *grouping])
    codes = model.items_.codes(clean_ids(columns[item], item)).astype(np.int64)
    mine = rows_of(user, None if person is None else clean_ids(columns[person], person), len(codes))
    number = np.zeros(len(codes), dtype=np.int64)
    if grouping:  # people may number their tasks alike
        refuse_without_threads()
        number = pl.DataFrame({name: columns[name] for name in grouping}).to_struct().rank("dense").to_numpy()
    return [frozenset(codes[mine & (number == one)].tolist()) for one in np.unique(number[mine])]


def sets_of_rows(left: IntArray, right: IntArray, task: IntArray) -> list[frozenset[int]]:
    """Items of each task, and of each row that is an answer by itself."""
    found: dict[int, set[int]] = {}
    for row, (one, other, number) in enumerate(zip(left.tolist(), right.tolist(), task.tolist(), strict=True)):
        found.setdefault(number if number >= 0 else -1 - row, set()).update((one, other))
    return [frozenset(one) for one in found.values()]


def _information(draws: FloatArray, sets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Bits that choices from sets (n, k) tell, (n,), and the chances of the alternatives, (n, k)."""
    told, chances = np.empty(len(sets)), np.empty(sets.shape)
    for row, alternatives in enumerate(sets):
        p = choice_chances(draws[:, alternatives])
        average = p.mean(axis=0)
        told[row] = (entr(average).sum() - entr(p).sum(axis=1).mean()) / np.log(2.0)
        chances[row] = average
    return told, chances


def choice_chances(f: FloatArray) -> FloatArray:
    """Chances of each of k alternatives with utilities f (n, k) to be felt best, with noise N(0, ½) on each; (n, k)."""
    k = f.shape[1]
    apart = np.sqrt(2.0) * (f[:, :, None] - f[:, None, :])  # in standard deviations of one alternative's noise
    inside = ndtr(apart[:, :, :, None] + _NODES)
    inside[:, np.arange(k), np.arange(k)] = 1.0
    p = inside.prod(axis=2) @ _WEIGHTS
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def chance_of_first(f: FloatArray) -> FloatArray:
    """Chance of the first of k alternatives, as :func:`choice_chances` has it; (n,)."""
    apart = np.sqrt(2.0) * (f[:, :1] - f[:, 1:])
    return np.asarray(ndtr(apart[:, :, None] + _FEW_NODES).prod(axis=1) @ _FEW_WEIGHTS)
