"""People whose answers changed, beside a layout of all; and layouts made of people, or of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import Rows, copies_in_one, copies_of_sides, keys_of, sides_of
from predilect.inference.gaussian.covariates import CovariateEffects
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.layout import OF_PEOPLE, People, lay_out_columns, shards_of

_LOOK_UP_ONE_BY_ONE = 1000
_N_PARTS = 64
_LIKE_THE_CROWD, _KNOWN = np.ones(1), np.zeros(1)


class Person(NamedTuple):
    """One user's answers with their sites, and numbers of the user as in :class:`People`, (1,) each."""

    rows: Rows  # of user 0
    traits: FloatArray  # (1, n_traits)
    tie_factor: FloatArray = _LIKE_THE_CROWD
    consistency: FloatArray = _LIKE_THE_CROWD
    consistency_sd: FloatArray = _KNOWN
    engaged: FloatArray = _LIKE_THE_CROWD

    @classmethod
    def without_answers(cls, traits: FloatArray, **numbers: FloatArray) -> Person:
        """User without answers."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(Rows.new(nothing, nothing, np.zeros(0)), traits, **numbers)


class Overlay(Mapping[int, Person]):
    """Changed users by code, immutable; those who are new (``n_added``) have codes from the end of the layout on.

    Many small dicts, of which :meth:`plus` copies those that change: safe for readers, a microsecond per change.
    """

    def __init__(
        self, parts: tuple[dict[int, Person], ...] = ({},) * _N_PARTS, size: int = 0, n_added: int = 0
    ) -> None:
        self._parts, self._size, self.n_added = parts, size, n_added

    def plus(self, people: Mapping[int, Person], n_new: int) -> Overlay:
        """With more users, or other answers of some; ``n_new`` of them are new."""
        parts, more = list(self._parts), defaultdict[int, dict[int, Person]](dict)
        for user, person in people.items():
            more[user % _N_PARTS][user] = person
        for place, changed in more.items():
            parts[place] = parts[place] | changed
        size = self._size + sum([user not in self for user in people])
        return Overlay(tuple(parts), size, self.n_added + n_new)

    def holds(self, users: IntArray) -> BoolArray | None:
        """Which of some codes are here; None if none is."""
        if not self._size:
            return None
        if len(users) <= _LOOK_UP_ONE_BY_ONE:
            held = np.array([user in self for user in users.tolist()], dtype=bool)
        else:
            held = np.isin(users, np.fromiter(self, dtype=np.int64))
        return held if held.any() else None

    def __getitem__(self, user: int) -> Person:
        return self._parts[user % _N_PARTS][user]

    def __contains__(self, user: Any) -> bool:
        return user in self._parts[user % _N_PARTS]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._size


def person_of(people: People, sites: Sites, user: int) -> Person:
    """One user of a layout; rows as they stand there."""
    rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
    items = people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]]
    left, right, task = people.left[rows], people.right[rows], people.task[rows]
    key = keys_of(items[left], items[right], people.outcome[rows], people.variant[rows])
    copies: IntArray = np.zeros(len(key), dtype=np.int64)
    if len(task) and task.max() >= 0:
        copy = np.arange(len(items)) - items.searchsorted(items)
        copies = copies_in_one(copy[left], copy[right])
    own = {name: getattr(people, name)[user : user + 1] for name in OF_PEOPLE}
    answers = Rows(
        np.zeros_like(key), key, copies, task, people.weight[rows], sites.precision[rows], sites.linear[rows]
    )
    return Person(answers, people.traits[user : user + 1], **own)


def side_by_side(
    persons: Sequence[Person], like: People, effects: CovariateEffects | None = None, *, n_basis: int | None = None
) -> tuple[People, Sites]:
    """Layout of some people, in their order, of the items, thresholds and likelihood of another layout.

    ``effects``: of the covariates that variants of answers stand for. n_basis as in ``lay_out_columns``.
    """
    rows = Rows.stacked([person.rows for person in persons])
    user = np.repeat(np.arange(len(persons)), [len(person.rows.key) for person in persons])
    left, right, outcome, variant = sides_of(rows.key)
    more: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in persons]) for name in OF_PEOPLE}
    if effects is not None:
        more |= {"offset": effects.offsets[variant], "slope_columns": effects.slope_columns[variant]}
    if like.thresholds is not None:
        more |= {"thresholds": like.thresholds, "ends": like.thresholds.ends(outcome, left, right)}
    people = lay_out_columns(
        user, left, right, outcome, rows.weight, n_items=like.n_items,
        traits=np.concatenate([one.traits for one in persons]), task=rows.task,
        copies=np.stack(copies_of_sides(rows.copies), axis=1) if rows.copies.any() else None, variant=variant,
        largest_state=like.largest_state, n_basis=n_basis, likelihood=like.likelihood, **more,
    )  # fmt: skip
    return people, Sites(rows.precision, rows.linear)


def joined(
    people: People, sites: Sites, others: tuple[People, Sites] | None, order: IntArray, *, n_basis: int | None = None
) -> tuple[People, Sites]:
    """One layout of users of a layout, or of two; O(n_rows) time and memory, without sorting.

    ``order`` (n_users,) says who is in the new layout: positions in the first, and from its end on in ``others``.
    """
    more, more_sites = others or (None, None)
    answer_ptr, rows = _ranges(people.answer_ptr, None if more is None else more.answer_ptr, order)
    item_ptr, places = _ranges(people.item_ptr, None if more is None else more.item_ptr, order)

    def column(name: str, index: IntArray, one: Any = people, two: Any = more) -> Any:
        first = getattr(one, name)
        return (first if two is None else _stacked(first, getattr(two, name)))[index]

    of_rows = ("left", "right", "outcome", "weight", "task", "variant", "offset", "slope_columns")
    columns = {name: column(name, rows) for name in of_rows}
    if people.thresholds is not None:
        columns |= {"ends": column("ends", rows), "thresholds": people.thresholds}
    columns |= {name: column(name, order) for name in ("traits", *OF_PEOPLE)}
    shards = shards_of(
        answer_ptr, item_ptr, columns["weight"], columns["task"], people.n_items, people.largest_state, n_basis
    )
    layout = People(
        answer_ptr=answer_ptr, item_ptr=item_ptr, item_idx=column("item_idx", places), n_items=people.n_items,
        shards=shards, largest_state=people.largest_state, likelihood=people.likelihood, **columns,
    )  # fmt: skip
    return layout, Sites(*(column(name, rows, sites, more_sites) for name in ("precision", "linear")))


def _stacked(one: Any, two: Any) -> Any:
    """Concatenation of arrays, of which one without rows may lack columns."""
    width = max(one.shape[1:], two.shape[1:])
    return np.concatenate([part.reshape(len(part), *width) for part in (one, two)])


def part_of(people: People, sites: Sites, users: IntArray, *, n_basis: int | None = None) -> tuple[People, Sites]:
    """Layout of some users of a layout; O(n_rows)."""
    return joined(people, sites, None, users, n_basis=n_basis)


def _ranges(first: IntArray, second: IntArray | None, order: IntArray) -> tuple[IntArray, IntArray]:
    """Pointers of users taken in some order out of layouts with such pointers, and where their rows lie."""
    both = first if second is None else np.concatenate((first, second[1:] + first[-1]))
    start, length = both[order], np.diff(both)[order]
    pointer = np.concatenate(([0], np.cumsum(length)))
    return pointer, np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
