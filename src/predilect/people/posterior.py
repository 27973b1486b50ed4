"""Posterior of the population model: the consensus, the population covariance, and each user's answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data.keyed_rows import Rows, keys_of, sides_of
from predilect.gaussian.covariates import CovariateEffects
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.design import Sites
from predilect.gaussian.posterior import GaussianPosterior, Posterior, Utilities
from predilect.likelihoods.calibration import UNCALIBRATED, Calibration
from predilect.people.layout import LARGEST_STATE, OF_PEOPLE, Basis, Effects, Law, People, shards_of
from predilect.people.queries import NEWCOMER, centred_in, kinds_in, margins_in, offset_variance, person_in

_LOOK_UP_ONE_BY_ONE = 1000
_N_PARTS = 64
_LIKE_THE_CROWD, _KNOWN = np.ones(1), np.zeros(1)


class Person(NamedTuple):
    """One user's answers and their sites; arrays as in :class:`~predilect.people.layout.People`."""

    items: npt.NDArray[np.int32]  # own items, (k,), ascending codes
    left: npt.NDArray[np.int32]  # positions in ``items``, (n,)
    right: npt.NDArray[np.int32]
    outcome: npt.NDArray[np.int8]
    weight: FloatArray
    variant: IntArray  # which of the covariates' patterns, (n,)
    offset: FloatArray
    precision: FloatArray  # sites of one copy of each answer, (n,)
    linear: FloatArray
    traits: FloatArray  # (1, n_traits)
    tie_factor: FloatArray = _LIKE_THE_CROWD  # multiplies the tie threshold, (1,)
    consistency: FloatArray = _LIKE_THE_CROWD  # (1,)
    consistency_sd: FloatArray = _KNOWN  # of its logarithm, (1,)

    @classmethod
    def without_answers(cls, traits: FloatArray) -> Person:
        """User without answers."""
        nothing, flat = np.zeros(0, dtype=np.int32), np.zeros(0)
        none = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0, dtype=np.int8), flat, none, flat, flat, flat, traits)

    @classmethod
    def of(cls, rows: Rows, traits: FloatArray, offsets: FloatArray, **of_person: FloatArray) -> Person:
        """From answers, with the sites that their rows carry; ``offsets`` (V,) of the covariates' patterns."""
        left, right, outcome, variant = sides_of(rows.key)
        n = len(left)
        both = np.concatenate((left, right))
        items = np.sort(both)
        first = np.ones(2 * n, dtype=bool)
        np.not_equal(items[1:], items[:-1], out=first[1:])
        items = items[first]
        place = items.searchsorted(both).astype(np.int32)
        precision, linear = rows.carried
        return cls(
            items.astype(np.int32), place[:n], place[n:], outcome, rows.weight, variant, offsets[variant], precision,
            linear, traits, **of_person,
        )  # fmt: skip

    def rows(self) -> Rows:
        """Distinct answers, with their sites."""
        key = keys_of(self.items[self.left], self.items[self.right], self.outcome, self.variant)
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
        people.outcome[rows], people.weight[rows], people.variant[rows], people.offset[rows], sites.precision[rows],
        sites.linear[rows], people.traits[user : user + 1],
        *(getattr(people, name)[user : user + 1] for name in OF_PEOPLE),
    )  # fmt: skip


def side_by_side(
    persons: Sequence[Person], n_items: int, *, largest_state: int = LARGEST_STATE, n_basis: int | None = None
) -> tuple[People, Sites]:
    """Layout of some users, in their order; n_basis as in :func:`~predilect.people.layout.lay_out_columns`."""
    columns: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in persons]) for name in Person._fields}
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

    columns = {name: column(name, rows) for name in ("left", "right", "outcome", "weight", "variant", "offset")}
    columns |= {name: column(name, order) for name in ("traits", *OF_PEOPLE)}
    shards = shards_of(answer_ptr, item_ptr, columns["weight"], people.n_items, people.largest_state, n_basis)
    layout = People(
        answer_ptr=answer_ptr, item_ptr=item_ptr, item_idx=column("item_idx", places), n_items=people.n_items,
        shards=shards, largest_state=people.largest_state, likelihood=people.likelihood, **columns,
    )  # fmt: skip
    return layout, Sites(*(column(name, rows, sites, more_sites) for name in ("precision", "linear")))


def part_of(people: People, sites: Sites, users: IntArray) -> tuple[People, Sites]:
    """Layout of some users of a layout; O(n_rows)."""
    nobody = side_by_side([Person.without_answers(np.zeros((1, people.traits.shape[1])))], people.n_items)
    return joined(people, sites, nobody, users)


def _ranges(first: IntArray, second: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """Pointers of users taken in some order out of two layouts with such pointers, and where their rows lie."""
    both = np.concatenate((first, second[1:] + first[-1]))
    start, length = both[order], np.diff(both)[order]
    pointer = np.concatenate(([0], np.cumsum(length)))
    return pointer, np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)


@dataclass(frozen=True, slots=True)
class PopulationPosterior(Posterior):
    """Posterior of f_u = m + the deviation of user u, with the consensus m ~ N(m, C_m).

    Users' posteriors are not stored: two numbers per answer (the sites) and the population distribution determine them.
    """

    m: FloatArray  # consensus of the items (M = n_items), or of the functions of a basis, (M,)
    C_m: FloatArray  # posterior covariance of the consensus, (M, M)
    Sigma: FloatArray  # population covariance of deviations from the consensus, (M, M)
    people: People  # all answers and sites but those of the users in ``overlay``
    sites: Sites
    basis: Basis | None = None  # by default the items themselves
    effects: Effects | None = None
    overlay: Overlay = field(default_factory=Overlay)  # users whose answers changed since, and new users
    calibration: Calibration = UNCALIBRATED
    newcomers: BoolArray | None = None  # (people.n_users,): who came after the fit; None: nobody but in ``overlay``
    covariates: CovariateEffects | None = None  # of answers
    law: Law = field(init=False)  # population distribution

    def __post_init__(self) -> None:
        basis, effects = self.basis, self.effects
        if basis is None:
            shift = np.zeros((0, 0)) if effects is None else effects.B
            law = Law(self.Sigma, self.m, shift=shift)
        else:
            shift = np.zeros((0, 0)) if effects is None else basis.Phi @ effects.B
            law = Law(self.Sigma, basis.mean(self.m), basis.Phi, basis.rho, shift)
        object.__setattr__(self, "law", law)

    @property
    def n_items(self) -> int:
        return len(self.law.mean)

    @property
    def n_users(self) -> int:
        """Number of known users; their codes are below it."""
        return self.people.n_users + self.overlay.n_added

    @property
    def n_basis(self) -> int | None:
        """Number of basis functions; None where these are the items."""
        return None if self.basis is None else len(self.m)

    def answers_of(self, user: int) -> Person:
        """One user's answers and sites."""
        changed = self.overlay.get(user)
        return person_of(self.people, self.sites, user) if changed is None else changed

    def answered_pairs(self, user: int) -> tuple[IntArray, IntArray]:
        person = self.answers_of(user)
        return person.items[person.left], person.items[person.right]

    def with_people(
        self, people: Mapping[int, Person], n_new: int, covariates: CovariateEffects | None = None
    ) -> PopulationPosterior:
        """With other answers of some users, by code, the last ``n_new`` of whom are new; all else is shared.

        ``covariates`` has the patterns of the new answers too.
        """
        new = object.__new__(PopulationPosterior)  # dataclasses.replace would compute the law again
        for name in self.__slots__:
            object.__setattr__(new, name, getattr(self, name))
        object.__setattr__(new, "overlay", self.overlay.plus(people, n_new))
        object.__setattr__(new, "covariates", covariates)
        return new

    def consolidated(self, order: IntArray | None = None) -> PopulationPosterior:
        """The same in one layout, with users in the order of their new codes, by default the same; O(n_rows)."""
        changed = np.arange(self.n_users)
        position = {user: self.people.n_users + place for place, user in enumerate(self.overlay)}
        changed[list(position)] = list(position.values())
        people, sites = joined(
            self.people, self.sites, self._beside(list(position)), changed if order is None else changed[order],
            n_basis=self.n_basis,
        )  # fmt: skip
        newcomers = self.newcomers
        if self.overlay.n_added or newcomers is not None:
            n = self.people.n_users
            newcomers = np.append(
                np.zeros(n, bool) if newcomers is None else newcomers, np.ones(self.n_users - n, bool)
            )
            newcomers = newcomers if order is None else newcomers[order]
        return replace(self, people=people, sites=sites, overlay=Overlay(), newcomers=newcomers)

    def margins(
        self,
        users: IntArray,
        left: IntArray,
        right: IntArray,
        *,
        traits: FloatArray | None = None,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,), noise not included, the consensus integrated out.

        A user of -1 is unseen, with ``traits`` (n, n_traits), by default the mean, zeros. O(n_u k_u²) per user once,
        O(k_u²) per query; with a basis O(M (k_u + M)) per query.
        """
        left = np.asarray(left, dtype=np.int64)
        right = np.asarray(right, dtype=np.int64)
        users = np.asarray(users, dtype=np.int64)
        mean, var = np.empty(len(users)), np.empty(len(users))
        for rows, people, sites, codes in self._where(users):
            known = None if traits is None else traits[rows]
            mean[rows], var[rows] = margins_in(self, people, sites, codes, left[rows], right[rows], known, executor)
        return mean, var

    def margins_of_answers(
        self, users: IntArray, left: IntArray, right: IntArray, covariates: FloatArray | None = None, *,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """:meth:`margins`, with effects of ``covariates`` (n, n_covariates), in units of the noise of the user's own
        answers.
        """
        mean, var = self.margins(users, left, right, executor=executor)
        if self.covariates is not None:
            mean, var = self.covariates.added(mean, var, covariates)
        return self._in_units_of_noise(mean, var, users)

    def pair_kinds(self, users: IntArray, left: IntArray, right: IntArray) -> npt.NDArray[np.int8]:
        kind = np.full(len(users), 2, dtype=np.int8)
        for rows, people, _, codes in self._where(users):
            kind[rows] = kinds_in(people, codes, left[rows], right[rows])
        kind[self.are_newcomers(users)] += NEWCOMER
        return kind

    def are_newcomers(self, users: IntArray) -> BoolArray:
        """Whether the population was learned without users, (n,): unseen, without answers, or added after the fit."""
        users = np.asarray(users, dtype=np.int64)
        found = self.without_answers(users) | (users >= self.people.n_users)
        if self.newcomers is not None:
            found[~found] = self.newcomers[users[~found]]
        return np.asarray(found)

    def without_answers(self, users: IntArray) -> BoolArray:
        """Whether users, by code, have no answers: their posterior is the population distribution."""
        users = np.asarray(users, dtype=np.int64)
        unseen = np.ones(len(users), dtype=bool)
        for rows, people, _, codes in self._where(users):
            unseen[rows] = (codes < 0) | (np.diff(people.answer_ptr)[codes] == 0)
        return unseen

    def tie_factors(self, users: IntArray) -> FloatArray:
        """Factors of users' tie thresholds, by code; 1 for an unseen user (-1)."""
        return self._of_people("tie_factor", users)

    def consistencies(self, users: IntArray) -> tuple[FloatArray, FloatArray]:
        sd = self._of_people("consistency_sd", users, self.calibration.consistency_spread)
        return self._of_people("consistency", users), sd

    def _of_people(self, name: str, users: IntArray, of_unseen: float = 1.0) -> FloatArray:
        users = np.asarray(users, dtype=np.int64)
        found = np.empty(len(users))
        for rows, people, _, codes in self._where(users):
            found[rows] = np.where(codes >= 0, getattr(people, name)[codes], of_unseen)
        return found

    def person(self, user: int = -1, traits: FloatArray | None = None) -> Utilities:
        """One user's utilities in factored form, for any number of items; -1: unseen, with ``traits`` (n_traits,).

        State (β, e_o): the basis functions, and the residuals of the user's k_u own items. O((M + k_u)² k_u).
        """
        if user in self.overlay:
            people, sites = self._beside([user])
            return person_in(self, people, sites, 0)
        return person_in(self, self.people, self.sites, user, traits)

    def crowd(self, traits: FloatArray | None = None) -> Utilities:
        """Consensus, the mean of the population, in factored form; or the mean of those with ``traits`` (n_traits,)."""
        nothing = np.zeros(0, dtype=np.int64)
        Phi = None if self.basis is None else self.basis.Phi
        mean, covariance = self.law.mean, self.C_m
        if traits is not None and self.effects is not None:
            mean, covariance = mean + self.law.shift @ traits, covariance + self.effects.spread(traits)
        return Utilities(mean, covariance, Phi, nothing, offset_variance(self))

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of known users' utilities, centred over the items; (n, n_items).

        O(n_items k_u²) per user, with a basis O(n_items (M + k_u)²); nothing of n_items x n_items per user.
        """
        users = np.asarray(users, dtype=np.int64)
        mean = np.empty((len(users), self.n_items))
        var = np.empty_like(mean)
        for rows, people, sites, codes in self._where(users):
            mean[rows], var[rows] = centred_in(self, people, sites, codes, executor)
        return mean, var

    def extended(
        self,
        A: FloatArray,
        R: FloatArray,
        *,
        consensus: GaussianPosterior,
        scale: float,
        strength: float,
        trace: float,
        effects: Effects | None = None,
    ) -> PopulationPosterior:
        """With new items appended that have no answers (population.md section 6): A = K_*o K_oo⁻¹, R = K_** - A K_o*.

        ``consensus`` and ``effects`` are over all items; ``scale`` is s₀, ``strength`` ν₀, ``trace`` tr((s₀ K_oo)⁻¹
        Σ_oo).
        """
        cross = A @ self.Sigma
        spread = scale * (strength + trace) / (strength + self.n_items) * R + cross @ A.T
        Sigma = symmetrise(np.block([[self.Sigma, cross.T], [cross, spread]]))
        people = replace(self.people, n_items=len(consensus.mean))
        return PopulationPosterior(
            consensus.mean, consensus.covariance, Sigma, people, self.sites, None, effects, self.overlay,
            self.calibration, self.newcomers,
        )  # fmt: skip

    def with_items(self, Phi: FloatArray, share: FloatArray, consensus_variance: float) -> PopulationPosterior:
        """With new items appended as linear functions of the basis; parameters as :meth:`Basis.extended`."""
        assert self.basis is not None
        basis = self.basis.extended(Phi, share, consensus_variance)
        return replace(self, people=replace(self.people, n_items=len(basis.Phi)), basis=basis)

    def _where(self, users: IntArray) -> Iterator[tuple[IntArray | slice, People, Sites, IntArray]]:
        """Rows of queries by the layout that holds their users, with the users' codes there."""
        held = self.overlay.holds(users)
        if held is None:
            yield slice(None), self.people, self.sites, users
            return
        if not held.all():
            rows = np.flatnonzero(~held)
            yield rows, self.people, self.sites, users[rows]
        rows = np.flatnonzero(held)
        changed, codes = np.unique(users[rows], return_inverse=True)
        yield rows, *self._beside(changed.tolist()), codes

    def _beside(self, users: list[int]) -> tuple[People, Sites]:
        """Layout of some of the changed users."""
        persons = [self.overlay[user] for user in users]
        if not persons:  # with traits of the right number
            persons = [Person.without_answers(np.zeros((1, self.people.traits.shape[1])))]
        return side_by_side(persons, self.n_items, largest_state=self.people.largest_state, n_basis=self.n_basis)
