"""One person's answers and sites, those of changed people beside a layout, and layouts put together of people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import Rows, copies_in_one, copies_of_sides, keys_of, sides_of
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.grades import Thresholds
from predilect.inference.people.layout import LARGEST_STATE, OF_PEOPLE, People, shards_of

_LOOK_UP_ONE_BY_ONE = 1000
_N_PARTS = 64
_LIKE_THE_CROWD, _KNOWN = np.ones(1), np.zeros(1)
_NO_EFFECTS = np.zeros((0, 0))  # of covariates, of a person's own


class TaskRows(NamedTuple):
    """Rows of a person's answers about several alternatives, with the sites of each; (n,)."""

    key: IntArray
    copies: IntArray  # as of :func:`~predilect.data.keyed_rows.copies_in_one`
    task: IntArray
    precision: FloatArray
    linear: FloatArray


class Person(NamedTuple):
    """One user's answers and their sites; arrays as in :class:`~predilect.inference.people.layout.People`."""

    items: npt.NDArray[np.int32]  # own items, (k,), ascending codes; copies of one after each other
    left: npt.NDArray[np.int32]  # positions in ``items``, (n,)
    right: npt.NDArray[np.int32]
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    task: IntArray  # rows of one number share the noise of their items, (n,); -1 for none
    variant: IntArray  # which of the covariates' patterns, (n,)
    offset: FloatArray
    precision: FloatArray  # sites of one copy of each answer, (n,)
    linear: FloatArray
    traits: FloatArray  # (1, n_traits)
    tie_factor: FloatArray = _LIKE_THE_CROWD  # multiplies the tie threshold, (1,)
    consistency: FloatArray = _LIKE_THE_CROWD  # (1,)
    consistency_sd: FloatArray = _KNOWN  # of its logarithm, (1,)
    engaged: FloatArray = _LIKE_THE_CROWD  # probability that the user does not click at random, (1,)
    ends: FloatArray = np.zeros((0, 2))  # of the intervals of answers, (n, 2), where there are some
    sway: FloatArray = _NO_EFFECTS  # (n, n_effects)

    @classmethod
    def without_answers(cls, traits: FloatArray) -> Person:
        """User without answers."""
        nothing, flat = np.zeros(0, dtype=np.int32), np.zeros(0)
        none = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0, dtype=np.int8), flat, none, none, flat, flat, flat, traits)

    @classmethod
    def of(
        cls, rows: Rows, traits: FloatArray, offsets: FloatArray, tasks: TaskRows | None = None,
        thresholds: Thresholds | None = None, sways: FloatArray = _NO_EFFECTS,
        **of_person: FloatArray,
    ) -> Person:  # fmt: skip
        """From answers, with the sites that their rows carry; ``offsets`` (V,) of the covariates' patterns, and so
        ``sways`` (V, n_effects).
        """
        key, weight, (precision, linear) = rows
        task, copies = np.full(len(key), -1, dtype=np.int64), np.zeros(len(key), dtype=np.int64)
        if tasks is not None and len(tasks.key):
            key, task = np.concatenate((key, tasks.key)), np.concatenate((task, tasks.task))
            copies = np.append(copies, tasks.copies)
            order = np.lexsort((task, copies, key))
            key, copies, task = key[order], copies[order], task[order]
            weight = np.append(weight, np.ones(len(tasks.key)))[order]
            precision = np.append(precision, tasks.precision)[order]
            linear = np.append(linear, tasks.linear)[order]
        left, right, outcome, variant = sides_of(key)
        n = len(left)
        both = np.concatenate((left, right))
        span = 1
        if copies.any():
            which = np.concatenate(copies_of_sides(copies))
            span = int(which.max()) + 1
            both = both * span + which
        items = np.sort(both)
        first = np.ones(2 * n, dtype=bool)
        np.not_equal(items[1:], items[:-1], out=first[1:])
        items = items[first]
        place = items.searchsorted(both).astype(np.int32)
        if thresholds is not None:
            of_person["ends"] = thresholds.ends(outcome, left, right)
        return cls(
            (items // span).astype(np.int32), place[:n], place[n:], outcome, weight, task, variant, offsets[variant],
            precision, linear, traits, sway=sways[variant] if sways.shape[1] else np.zeros((n, 0)), **of_person,
        )  # fmt: skip

    @property
    def answers(self) -> npt.NDArray[Any]:
        """What was answered, as the compiled loops take it."""
        return self.ends if len(self.ends) else self.outcome

    def rows(self) -> Rows:
        """Distinct answers but those of tasks, with their sites."""
        alone = np.flatnonzero(self.task < 0)
        sites = (self.precision[alone], self.linear[alone])
        return Rows.of(self.keys()[alone], self.weight[alone], sites)

    def tasks(self) -> TaskRows:
        """Rows of tasks, with their sites."""
        held = self.task >= 0
        copy = np.arange(len(self.items)) - np.searchsorted(self.items, self.items)
        copies = copies_in_one(copy[self.left], copy[self.right])
        columns = (self.keys(), copies, self.task, self.precision, self.linear)
        return TaskRows._make(column[held] for column in columns)

    def keys(self) -> IntArray:
        """Keys of the rows, (n,)."""
        return keys_of(self.items[self.left], self.items[self.right], self.outcome, self.variant)

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
    """One user of a layout; the arrays are views."""
    rows = slice(people.answer_ptr[user], people.answer_ptr[user + 1])
    return Person(
        people.item_idx[people.item_ptr[user] : people.item_ptr[user + 1]], people.left[rows], people.right[rows],
        people.outcome[rows], people.weight[rows], people.task[rows], people.variant[rows], people.offset[rows],
        sites.precision[rows], sites.linear[rows], people.traits[user : user + 1],
        **{name: getattr(people, name)[user : user + 1] for name in OF_PEOPLE}, ends=people.ends[rows],
        sway=people.sway[rows],
    )  # fmt: skip


def side_by_side(
    persons: Sequence[Person], n_items: int, *, largest_state: int = LARGEST_STATE, n_basis: int | None = None
) -> tuple[People, Sites]:
    """Layout of some users, in their order; n_basis as in ``lay_out_columns``."""
    columns: dict[str, Any] = {name: _stacked([getattr(p, name) for p in persons]) for name in Person._fields}
    item_idx, sites = columns.pop("items"), Sites(columns.pop("precision"), columns.pop("linear"))
    answer_ptr = np.cumsum([0, *(len(person.outcome) for person in persons)])
    item_ptr = np.cumsum([0, *(len(person.items) for person in persons)])
    shards = shards_of(answer_ptr, item_ptr, columns["weight"], columns["task"], n_items, largest_state, n_basis)
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
        return _stacked([getattr(one, name), getattr(two, name)])[index]

    of_rows = ("left", "right", "outcome", "weight", "task", "variant", "offset", "sway")
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


def _stacked(parts: list[Any]) -> Any:
    """Concatenation of arrays, of which those without rows may lack columns."""
    width = max(part.shape[1:] for part in parts)
    return np.concatenate([part.reshape(len(part), *width) for part in parts])


def part_of(
    people: People, sites: Sites, users: IntArray, *, n_basis: int | None = None
) -> tuple[People, Sites]:  # fmt: skip
    """Layout of some users of a layout; O(n_rows)."""
    nobody = side_by_side([Person.without_answers(np.zeros((1, people.traits.shape[1])))], people.n_items)
    return joined(people, sites, nobody, users, n_basis=n_basis)


def _ranges(first: IntArray, second: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """Pointers of users taken in some order out of two layouts with such pointers, and where their rows lie."""
    both = np.concatenate((first, second[1:] + first[-1]))
    start, length = both[order], np.diff(both)[order]
    pointer = np.concatenate(([0], np.cumsum(length)))
    return pointer, np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
