"""Pending updates: users whose answers changed since the flat layout of all users was made.

Inserting an answer would move half of the flat arrays. Changed users have small ones, until :func:`joined` merges all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.gaussian.design import Sites
from predilect.people.layout import LARGEST_STATE, People, shards_of

_LOOK_UP_ONE_BY_ONE = 1000
_N_PARTS = 64
_LIKE_THE_CROWD = np.ones(1)


class Person(NamedTuple):
    """One user's answers and their sites; arrays as in :class:`~predilect.people.layout.People`."""

    items: npt.NDArray[np.int32]  # own items, (k,), ascending codes
    left: npt.NDArray[np.int32]  # positions in ``items``, (n,)
    right: npt.NDArray[np.int32]
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    precision: FloatArray  # sites of one copy of each answer, (n,)
    linear: FloatArray
    traits: FloatArray  # (1, n_traits)
    tie_factor: FloatArray = _LIKE_THE_CROWD  # multiplies the tie threshold, (1,)

    @classmethod
    def silent(cls, traits: FloatArray) -> Person:
        """User without answers."""
        nothing, flat = np.zeros(0, dtype=np.int32), np.zeros(0)
        return cls(nothing, nothing, nothing, np.zeros(0, dtype=np.int8), flat, flat, flat, traits)

    @classmethod
    def of(cls, rows: Rows, traits: FloatArray, tie_factor: FloatArray = _LIKE_THE_CROWD) -> Person:
        """From answers, with the sites that their rows carry."""
        left, right, outcome = sides_of(rows.key)
        n = len(left)
        both = np.concatenate((left, right))
        items = np.sort(both)
        first = np.ones(2 * n, dtype=bool)
        np.not_equal(items[1:], items[:-1], out=first[1:])
        items = items[first]
        place = items.searchsorted(both).astype(np.int32)
        precision, linear = rows.carried
        return cls(
            items.astype(np.int32), place[:n], place[n:], outcome, rows.weight, precision, linear, traits, tie_factor
        )

    def rows(self) -> Rows:
        """Distinct answers, with their sites."""
        key = keys_of(self.items[self.left], self.items[self.right], self.outcome)
        return Rows.of(key, self.weight, (self.precision, self.linear))

    def answers_by_item(self, n_items: int) -> FloatArray:
        """Number of the user's answers on each item; (n_items,)."""
        counts = np.zeros(n_items)
        np.add.at(counts, self.items[self.left], self.weight)
        np.add.at(counts, self.items[self.right], self.weight)
        return counts


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
    """One user of a layout; the arrays are views."""
    rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
    return Person(
        people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]], people.left[rows], people.right[rows],
        people.outcome[rows], people.weight[rows], sites.precision[rows], sites.linear[rows],
        people.traits[user : user + 1], people.tie_factor[user : user + 1],
    )  # fmt: skip


def side_by_side(
    persons: Sequence[Person], n_items: int, *, largest_state: int = LARGEST_STATE, n_basis: int | None = None
) -> tuple[People, Sites]:
    """Layout of some users, in their order; n_basis as in :func:`~predilect.people.layout.lay_out`."""
    columns = {name: np.concatenate([getattr(person, name) for person in persons]) for name in Person._fields}
    item_idx, sites = columns.pop("items"), Sites(columns.pop("precision"), columns.pop("linear"))
    answer_ptr = np.cumsum([0, *(len(person.outcome) for person in persons)])
    item_ptr = np.cumsum([0, *(len(person.items) for person in persons)])
    shards = shards_of(answer_ptr, item_ptr, columns["weight"], n_items, largest_state, n_basis)
    people = People(
        answer_ptr=answer_ptr, item_ptr=item_ptr, item_idx=item_idx, n_items=n_items, shards=shards,
        largest_state=largest_state, **columns,
    )  # fmt: skip
    return people, sites


def joined(
    people: People, sites: Sites, others: tuple[People, Sites], order: IntArray, *, n_basis: int | None = None
) -> tuple[People, Sites]:
    """One layout of users out of two; O(n_rows) time and memory, without sorting.

    ``order`` (n_users,) says who is in the new layout: positions in the first, and from its end on in ``others``.
    """
    more, more_sites = others
    answer_ptr, rows = _ranges(people.answer_ptr, more.answer_ptr, order)
    item_ptr, places = _ranges(people.item_ptr, more.item_ptr, order)

    def column(name: str, index: IntArray, one: Any = people, two: Any = more) -> Any:
        return np.concatenate((getattr(one, name), getattr(two, name)))[index]

    columns = {name: column(name, rows) for name in ("left", "right", "outcome", "weight")}
    columns |= {name: column(name, order) for name in ("traits", "tie_factor")}
    shards = shards_of(answer_ptr, item_ptr, columns["weight"], people.n_items, people.largest_state, n_basis)
    layout = People(
        answer_ptr=answer_ptr, item_ptr=item_ptr, item_idx=column("item_idx", places), n_items=people.n_items,
        shards=shards, largest_state=people.largest_state, **columns,
    )  # fmt: skip
    return layout, Sites(*(column(name, rows, sites, more_sites) for name in ("precision", "linear")))


def _ranges(first: IntArray, second: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """Pointers of users taken in some order out of two layouts with such pointers, and where their rows lie."""
    both = np.concatenate((first, second[1:] + first[-1]))
    start, length = both[order], np.diff(both)[order]
    pointer = np.concatenate(([0], np.cumsum(length)))
    return pointer, np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
