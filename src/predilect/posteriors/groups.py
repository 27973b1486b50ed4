"""The answers of several people as one set of rows, so that many are changed at once."""

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
    """Rows of several people: a key is the person's place times the number of kinds of answers, plus the kind.

    Attributes
    ----------
    rows : Rows
        Answers and their sites.
    kinds : int64[n_kinds]
        Keys of one person's answers, ascending, that occur among these people and in the change.
    traits, tie_factor : float64[n_people, n_traits], float64[n_people]
    """

    rows: Rows
    kinds: CodeArray
    traits: FloatArray
    tie_factor: FloatArray

    @classmethod
    def of(cls, posterior: PopulationPosterior, users: CodeArray, traits: FloatArray, key: CodeArray) -> Group:
        """People of a posterior.

        Parameters
        ----------
        posterior : PopulationPosterior
        users : array of int, shape (n_people,)
            Distinct codes, ascending; from the number of known people on they are new.
        traits : array of float, shape (n_new, n_traits)
            Of all new people, in the order of their codes.
        key : array of int
            Keys of the answers that will come or go.

        Notes
        -----
        O(their answers), whatever the others'.
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
        """Keys in the group of answers of its people, given by their places among them."""
        return np.asarray(owner * len(self.kinds) + self.kinds.searchsorted(key))

    def layout(self, rows: Rows, like: PopulationPosterior) -> tuple[People, Sites]:
        """The people with other rows, as a layout."""
        left, right, outcome = sides_of(self.kinds[rows.key % len(self.kinds)])
        people = lay_out_columns(
            rows.key // len(self.kinds), left, right, outcome, rows.weight, n_items=like.n_items, traits=self.traits,
            tie_factor=self.tie_factor, largest_state=like.people.largest_state, n_basis=like.n_basis,
        )  # fmt: skip
        return people, Sites(rows.carried[0].copy(), rows.carried[1].copy())
