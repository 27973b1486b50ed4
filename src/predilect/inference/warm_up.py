"""Compile, or load from the cache, the compiled loops before they are needed, and say so if that takes long."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from predilect._compile import announced
from predilect.inference.expectation import expectation
from predilect.inference.updating import settled, settled_together
from predilect.likelihoods.probit import outcome_probabilities
from predilect.posteriors.law import Law
from predilect.posteriors.overlay import person_of
from predilect.posteriors.people import People, Sites
from predilect.posteriors.population import PopulationPosterior

__all__ = ["warm_up", "warm_up_updates"]


@functools.cache
def warm_up() -> None:
    """Run each compiled loop of fits and predictions once, on one person with two answers; later calls do nothing."""
    with announced():
        people, sites, law = _one_person()
        expectation(people, sites, law, 0.5)
        expectation(replace(people, largest_state=0), sites.copy(), law, 0.5)
        posterior = PopulationPosterior(law.mean, law.Sigma, law.Sigma, people, sites)
        user = np.array([0])
        mean, var = posterior.margins(user, user, user + 1)
        posterior.pair_kinds(user, user, user + 1)
        posterior.centred_utilities(user)
        posterior.utilities(0)
        outcome_probabilities(mean, var, 0.5)


@functools.cache
def warm_up_updates() -> None:
    """The same for the loops that updates need beside them."""
    warm_up()
    with announced():
        people, sites, law = _one_person()
        settled(person_of(people, sites, 0), law, 0.5, largest_state=people.largest_state, spread=0.5)
        settled_together(people, sites, law, 0.5, None, spread=0.5)


def _one_person() -> tuple[People, Sites, Law]:
    people = People(
        answer_ptr=np.array([0, 2]),
        item_ptr=np.array([0, 3]),
        item_idx=np.array([0, 1, 2], dtype=np.int32),
        left=np.array([0, 1], dtype=np.int32),
        right=np.array([1, 2], dtype=np.int32),
        outcome=np.array([1, 0], dtype=np.int8),
        weight=np.ones(2),
        n_items=3,
        shards=[(0, 1)],
    )
    return people, Sites.flat(2), Law(np.eye(3), np.zeros(3))
