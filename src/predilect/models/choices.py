"""Predictions of choices from several alternatives, of every fitted model."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from predilect._base.forks import refuse_without_threads
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.frames import clean_ids, column_names, open_frame, to_columns
from predilect.data.orders import rows_by_answer
from predilect.data.read.names import ITEM, PEOPLE, TASK, guess_one
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.posterior import Posterior
from predilect.inference.likelihoods.orders import Orders, PairsOfOrders, shared_noise
from predilect.inference.people.queries import kinds_of_sets
from predilect.models.reading import PairQueries

_ALTERNATIVE = ("alternative", "alt", "option", *ITEM)


def answer_log_proba(model: Any, answers: Comparisons, pairs: FloatArray, items: Any, people: Any) -> FloatArray:
    """Log probability of the whole answer that a row is part of, (n_rows,); ``pairs`` are those of the pairs alone."""
    found = pairs[np.arange(answers.n_rows), 1 - answers.outcome]
    rows, ptr = rows_by_answer(joint_rows(answers))
    rows = rows[len(rows) - ptr[-1] :]
    if not len(rows):
        return found
    up = answers.outcome[rows] > 0
    left, right = answers.left[rows], answers.right[rows]
    winner, loser = (np.where(up, *sides).astype(np.int64) for sides in ((left, right), (right, left)))
    now, mean, var, queries = model._margins_of(answers.take(np.sort(rows)), items, people)
    place = np.argsort(np.argsort(rows))
    posterior = now.posterior_
    mean = posterior.in_units_of_noise(mean, var, queries.users)[0][place]
    apart = PairsOfOrders.of(ptr, winner, loser)
    who = answers.user[rows][ptr[:-1]][apart.order]
    frame = {"left": pl.Series(answers.items.labels(apart.left)), "right": pl.Series(answers.items.labels(apart.right))}
    if answers.has_users:
        frame["user"] = pl.Series(answers.users.labels(who))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # it was said of the rows
        _, between, spread, asked = model._margins_of(pl.DataFrame(frame), items, people, in_sets=True)
    C = apart.covariances(posterior.in_units_of_noise(between, spread, asked.users)[1])
    one, other = (side[rows] for side in answers.alternatives())
    N = shared_noise(ptr, np.where(up, one, other), np.where(up, other, one))
    orders = Orders(ptr, np.where(up, mean, -mean), C, N)
    variance = orders.variances()
    kind = np.asarray(posterior.pair_kinds(asked.users, asked.left, asked.right))
    kinds = kinds_of_sets(kind, apart.order, len(ptr) - 1)

    def log_likelihood(v: FloatArray, noise: float) -> FloatArray:
        return orders.evidence(np.divide(v, variance, out=np.ones_like(v), where=variance > 0.0), noise).log_z

    whole = posterior.calibration.log_chances(log_likelihood, variance, kinds)
    found[rows] = np.repeat(whole, np.diff(ptr))
    return found


class ChoiceSets(NamedTuple):
    """Sets of alternatives, one after the other, and the pairs within each."""

    order: IntArray  # rows of the frame, set by set, (n_rows,)
    ptr: IntArray  # where each set begins in ``order``, (n_sets + 1,)
    item: pl.Series  # of each row
    user: pl.Series | None
    pairs: dict[str, pl.Series]  # left, right and perhaps user of pairs of alternatives of a set, of different items
    differ: BoolArray  # which of all pairs of alternatives these are

    @classmethod
    def of(cls, X: Any) -> ChoiceSets:
        """From a frame with a row an alternative; DataError if a column is missing."""
        refuse_without_threads()
        table, _ = open_frame(X)
        names = column_names(table)
        user, task, item = (guess_one(names, known) for known in (PEOPLE, TASK, _ALTERNATIVE))
        if task is None or item is None:
            what = "the task" if task is None else "the alternative"
            raise DataError(
                f"found no column for {what}; the columns are {', '.join(names) or '(none)'}. Give a row for each "
                'alternative, with the columns "task", "item" and perhaps "user"'
            )
        columns = to_columns(table, [name for name in (user, task, item) if name is not None])
        ids = {name: clean_ids(column, name) for name, column in columns.items()}
        for name in (task, item):
            if ids[name].null_count():
                row = int(ids[name].is_null().arg_max() or 0) + 1
                raise DataError(f'column "{name}" holds {ids[name].null_count()} missing ids (first: row {row})')
        keys = [ids[name] for name in (user, task) if name is not None]
        group = pl.DataFrame([key.alias(str(place)) for place, key in enumerate(keys)])
        code = group.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy().astype(np.int64)
        order = np.argsort(code, kind="stable")
        ptr = np.append(np.flatnonzero(np.diff(code[order], prepend=-1)), len(code))
        kind_of_item = ids[item].rank("dense").to_numpy()
        a, b = (order[side] for side in _pairs(ptr))
        differ = kind_of_item[a] != kind_of_item[b]
        a, b = a[differ], b[differ]
        pairs = {"left": ids[item].gather(a), "right": ids[item].gather(b)}
        if user is not None:
            pairs["user"] = ids[user].gather(a)
        return cls(order, ptr, ids[item], None if user is None else ids[user], pairs, differ)


def _pairs(ptr: IntArray) -> tuple[IntArray, IntArray]:
    """Places of all pairs, first before second, set by set."""
    begin, size = ptr[:-1], np.diff(ptr)
    places = {k: np.triu_indices(k, 1) for k in np.unique(size).tolist()}
    sides: tuple[list[IntArray], list[IntArray]] = ([begin[:0]], [begin[:0]])
    for start, k in zip(begin.tolist(), size.tolist(), strict=True):
        for side, place in zip(sides, places[k], strict=True):
            side.append(start + place)
    return np.concatenate(sides[0]), np.concatenate(sides[1])


def _at(rows: BoolArray, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of some rows among zeros for the others."""
    found = np.zeros(len(rows), dtype=values.dtype)
    found[rows] = values
    return found


def choice_proba(
    sets: ChoiceSets, posterior: Posterior, mean: FloatArray, var: FloatArray, queries: PairQueries, omitted: float
) -> FloatArray:
    """Probability of each row's alternative to be the best of its set, (n_rows,), from the margins of the pairs.

    population.md section 7: expectation propagation for each alternative, normalised over the set. ``omitted``: by how
    much the best must lead each other, or the set had not been asked.
    """
    users = queries.users
    mean, var = posterior.in_units_of_noise(mean, var, users)
    kind = np.asarray(posterior.pair_kinds(users, queries.left, queries.right))
    # Alternatives that are one item do not differ.
    mean, var, kind = (_at(sets.differ, one) for one in (mean, var, kind))
    proba = np.ones(len(sets.order))
    size = np.diff(sets.ptr)
    n_pairs = size * (size - 1) // 2
    begin = np.concatenate(([0], np.cumsum(n_pairs)))
    for k in np.unique(size[size > 1]).tolist():
        which = np.flatnonzero(size == k)
        first, second = np.triu_indices(k, 1)
        at = begin[which][:, None] + np.arange(len(first))
        M, V = np.zeros((len(which), k, k)), np.zeros((len(which), k, k))
        M[:, first, second], M[:, second, first] = mean[at], -mean[at]
        V[:, first, second] = V[:, second, first] = var[at]
        n = k - 1
        others = np.array([[j for j in range(k) if j != w] for w in range(k)])  # (k, n)
        w = np.arange(k)[:, None]
        C = 0.5 * (V[:, w, others][:, :, :, None] + V[:, w, others][:, :, None, :]
                   - V[:, others[:, :, None], others[:, None, :]])  # fmt: skip
        n_orders = len(which) * k
        N = np.tile((0.5 * (np.eye(n) + 1.0)).ravel(), n_orders)
        ptr = n * np.arange(n_orders + 1)
        orders = Orders(ptr, M[:, w, others].ravel() - omitted, np.ascontiguousarray(C).ravel(), N)
        spread = orders.variances()
        of_set, differ = np.repeat(np.arange(len(which)), len(first)), sets.differ[at].ravel()
        kinds = kinds_of_sets(kind[at].ravel()[differ], of_set[differ], len(which)).repeat(k)
        found = np.zeros((len(which), k))
        for share, v, noise in posterior.calibration.components(spread, kinds):
            factor = np.divide(v, spread, out=np.ones_like(v), where=spread > 0.0)
            log_z = orders.evidence(factor, noise).log_z.reshape(-1, k)
            part = np.exp(log_z - log_z.max(axis=1, keepdims=True))
            found += share * part / part.sum(axis=1, keepdims=True)
        proba[sets.order[sets.ptr[which][:, None] + np.arange(k)]] = found
    return proba
