"""Answers of several users as one set of rows, so that many are updated at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.posteriors.overlay import Person, joined, picked, side_by_side
from predilect.posteriors.people import People, Sites, lay_out_columns
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.rows import Rows, keys_of, sides_of

__all__ = ["Group"]

FloatArray = npt.NDArray[np.float64]
CodeArray = npt.NDArray[np.int64]


class Group(NamedTuple):
    """Rows of several users: a key is the user's position times the number of kinds of answers, plus the kind."""

    rows: Rows
    kinds: CodeArray  # keys of one user's answers that occur here or in the change, ascending
    traits: FloatArray  # (n_people, n_traits)
    tie_factor: FloatArray  # (n_people,)

    @classmethod
    def of(cls, posterior: PopulationPosterior, users: CodeArray, traits: FloatArray, key: CodeArray) -> Group:
        """Users of a posterior, with distinct ascending codes; ``key`` are the answers that will come or go.

        Codes from the number of known users on are new, with ``traits`` (n_new, n_traits). O(their answers).
        """
        overlay, n_base = posterior.overlay.people, posterior.people.n_users
        base = users[[user < n_base and user not in overlay for user in users.tolist()]]
        beside = {
            user: overlay[user] if user in overlay else Person.silent(traits[user - posterior.n_users][None])
            for user in np.setdiff1d(users, base).tolist()
        }
        people, sites = picked(posterior.people, posterior.sites, base)
        if beside:
            others = side_by_side(list(beside.values()), posterior.n_items)
            order = np.argsort(np.concatenate((base, np.array(list(beside)))))
            people, sites = joined(people, sites, others, order)
        owner = np.repeat(np.arange(len(users)), np.diff(people.answer_ptr))
        start = people.item_ptr[owner]
        own = keys_of(people.item_idx[start + people.left], people.item_idx[start + people.right], people.outcome)
        kinds = np.unique(np.concatenate((own, key)))
        place = owner * len(kinds) + kinds.searchsorted(own)
        return cls(
            Rows.of(place, people.weight, (sites.precision, sites.linear)), kinds, people.traits, people.tie_factor
        )

    def keys(self, owner: CodeArray, key: CodeArray) -> CodeArray:
        """Keys in the group of answers, from the positions of their users in it."""
        return np.asarray(owner * len(self.kinds) + self.kinds.searchsorted(key))

    def layout(self, rows: Rows, like: PopulationPosterior) -> tuple[People, Sites]:
        """Layout of the users with other rows."""
        left, right, outcome = sides_of(self.kinds[rows.key % len(self.kinds)])
        people = lay_out_columns(
            rows.key // len(self.kinds), left, right, outcome, rows.weight, n_items=like.n_items, traits=self.traits,
            tie_factor=self.tie_factor, largest_state=like.people.largest_state, n_basis=like.n_basis,
        )  # fmt: skip
        return people, Sites(rows.carried[0].copy(), rows.carried[1].copy())
