"""Pending updates: users whose answers changed since the flat layout of all users was made.

Inserting an answer would move half of the flat arrays. Changed users have small ones, until :func:`joined` merges all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.gaussian.sites import Sites
from predilect.people.layout import LARGEST_STATE, People, shards_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

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

    def layout(self, n_items: int, largest_state: int = LARGEST_STATE) -> tuple[People, Sites]:
        """Layout of this user only."""
        people = People(
            np.array([0, len(self.outcome)]), np.array([0, len(self.items)]), self.items, self.left, self.right,
            self.outcome, self.weight, n_items, [(0, 1)], largest_state, self.traits, self.tie_factor,
        )  # fmt: skip
        return people, Sites(self.precision, self.linear)


class Changed(Mapping[int, Person]):
    """Users by code, immutable: :meth:`plus` makes another, which shares all that is the same.

    Many small dicts, of which :meth:`plus` copies those that change: safe for readers, a microsecond per change.
    """

    __slots__ = ("_parts", "_size")

    def __init__(self, people: Mapping[int, Person] | None = None) -> None:
        self._parts: tuple[dict[int, Person], ...] = ({},) * _N_PARTS
        self._size = 0
        if people:
            more = self.plus(people)
            self._parts, self._size = more._parts, more._size

    def plus(self, people: Mapping[int, Person]) -> Changed:
        """With more users, or other answers of some."""
        parts, size = list(self._parts), self._size
        copied = set()
        for user, person in people.items():
            place = user % _N_PARTS
            if place not in copied:
                parts[place] = parts[place].copy()
                copied.add(place)
            size += user not in parts[place]
            parts[place][user] = person
        new = Changed()
        new._parts, new._size = tuple(parts), size
        return new

    def __getitem__(self, user: int) -> Person:
        return self._parts[user % _N_PARTS][user]

    def __contains__(self, user: Any) -> bool:
        return user in self._parts[user % _N_PARTS]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._size


@dataclass(frozen=True, slots=True)
class Overlay:
    """Changed users by code; those who are new (``n_added``) have codes from the end of the layout on."""

    people: Changed = field(default_factory=Changed)
    n_added: int = 0

    def plus(self, people: Mapping[int, Person], n_new: int) -> Overlay:
        """With more users, or other answers of some; ``n_new`` of them are new."""
        return Overlay(self.people.plus(people), self.n_added + n_new)

    def holds(self, users: IntArray) -> npt.NDArray[np.bool_] | None:
        """Which of some codes are here; None if none is."""
        if not self.people:
            return None
        if len(users) <= _LOOK_UP_ONE_BY_ONE:
            held = np.array([user in self.people for user in users.tolist()], dtype=bool)
        else:
            held = np.isin(users, np.fromiter(self.people, dtype=np.int64))
        return held if held.any() else None


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

    def column(name: str) -> Any:
        return np.concatenate([getattr(person, name) for person in persons])

    answer_ptr = np.concatenate(([0], np.cumsum([len(person.outcome) for person in persons])))
    item_ptr = np.concatenate(([0], np.cumsum([len(person.items) for person in persons])))
    people = People(
        answer_ptr=answer_ptr,
        item_ptr=item_ptr,
        item_idx=column("items"),
        left=column("left"),
        right=column("right"),
        outcome=column("outcome"),
        weight=column("weight"),
        n_items=n_items,
        shards=shards_of(answer_ptr, item_ptr, column("weight"), n_items, largest_state, n_basis),
        largest_state=largest_state,
        traits=column("traits"),
        tie_factor=column("tie_factor"),
    )
    return people, Sites(column("precision"), column("linear"))


def picked(people: People, sites: Sites, users: IntArray) -> tuple[People, Sites]:
    """Layout of some users of a layout, in their order; O(their answers)."""
    start, stop = people.answer_ptr[users], people.answer_ptr[users + 1]
    answer_ptr, rows = _ranges(start, stop - start)
    start, stop = people.item_ptr[users], people.item_ptr[users + 1]
    item_ptr, places = _ranges(start, stop - start)
    layout = People(
        answer_ptr=answer_ptr,
        item_ptr=item_ptr,
        item_idx=people.item_idx[places],
        left=people.left[rows],
        right=people.right[rows],
        outcome=people.outcome[rows],
        weight=people.weight[rows],
        n_items=people.n_items,
        shards=[(0, len(users))],
        largest_state=people.largest_state,
        traits=people.traits[users],
        tie_factor=people.tie_factor[users],
    )
    return layout, Sites(sites.precision[rows], sites.linear[rows])


def joined(
    people: People, sites: Sites, others: tuple[People, Sites], order: IntArray, *, n_basis: int | None = None
) -> tuple[People, Sites]:
    """One layout of users out of two; O(n_rows) time and memory, without sorting.

    ``order`` (n_users,) says who is in the new layout: positions in the first, and from its end on in ``others``.
    """
    more, more_sites = others

    def pointers(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.concatenate((first, second[1:] + first[-1]))

    def column(name: str) -> Any:
        return np.concatenate((getattr(people, name), getattr(more, name)))

    both = People(
        answer_ptr=pointers(people.answer_ptr, more.answer_ptr),
        item_ptr=pointers(people.item_ptr, more.item_ptr),
        item_idx=column("item_idx"),
        left=column("left"),
        right=column("right"),
        outcome=column("outcome"),
        weight=column("weight"),
        n_items=people.n_items,
        shards=[],
        largest_state=people.largest_state,
        traits=column("traits"),
        tie_factor=column("tie_factor"),
    )
    precision = np.concatenate((sites.precision, more_sites.precision))
    layout, sites = picked(both, Sites(precision, np.concatenate((sites.linear, more_sites.linear))), order)
    shards = shards_of(layout.answer_ptr, layout.item_ptr, layout.weight, layout.n_items, layout.largest_state, n_basis)
    return replace(layout, shards=shards), sites


def _ranges(
    start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pointers of concatenated ranges, and what they hold."""
    pointer = np.concatenate(([0], np.cumsum(length)))
    return pointer, np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
