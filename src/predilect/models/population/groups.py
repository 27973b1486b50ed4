"""Groups of opinion among the people of a fitted population: how many, who, and what they think (groups.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from predilect._base.arguments import check_count
from predilect._base.shards import workers
from predilect._base.types import IntArray
from predilect.data.content import Keys, refined
from predilect.decisions.groups import ENOUGH, LEAST, NAMES, Groups, described, in_order
from predilect.inference.people.mixture import Camps, Crowd, GainsOfGroups, means_of_groups, whole
from predilect.inference.people.posterior import PopulationPosterior

_MOST_TRIED, _MOST_RESAMPLED, _RESAMPLES = 1000, 500, 100  # people by whom the number is chosen; and of intervals
_APART = 2.0  # standard deviations within groups between two that are two heaps, and not halves of one


class Grouped(NamedTuple):
    """Groups, and the name of everybody's, by id; nobody's without groups."""

    groups: Groups
    whose: dict[str | int, str]


def groups_of(model: Any, smallest: int, most: int, random_state: int | None) -> Grouped:
    """See :meth:`Population.groups <predilect.Population.groups>`; ``model`` is a snapshot."""
    check_count("smallest", smallest, LEAST)
    check_count("most", most, 2, most=len(NAMES))
    check_count("random_state", random_state, 0, None)
    seed = model.seed_ if random_state is None else int(random_state)
    posterior = model.posterior_
    active = np.flatnonzero(np.diff(posterior.people.answer_ptr))
    none = Groups("few", n_people=len(active), smallest=smallest)
    if len(active) < 2 * smallest or posterior.n_items < 2:
        return Grouped(none, {})
    with workers(model.n_jobs) as executor:
        order = np.argsort(_keys(posterior), kind="stable")
        everybody = Crowd(posterior, model._delta, order, executor).part(active)
        return _grouped(model, everybody, active, most, seed, none)


def _grouped(model: Any, everybody: Crowd, active: IntArray, most: int, seed: int, none: Groups) -> Grouped:
    """The groups of those who answered; ``none`` is what is said where there are too few."""
    tried = everybody
    if len(everybody.order) > _MOST_TRIED:
        tried = everybody.part(np.sort(everybody.order[:_MOST_TRIED]))
    fits = _apart(tried, min(most, len(active) // none.smallest), seed)
    held_out = GainsOfGroups(tried, seed)
    gains = {K: float(held_out.of(K).sum()) for K in fits}
    none = replace(none, outcome="none", gain=max(gains.values(), default=0.0))
    worth = {K: gain - ENOUGH * (K - 1) for K, gain in gains.items() if gain > ENOUGH * (K - 1)}
    for K in sorted(worth, key=lambda K: (-worth[K], K)):
        found = fits[K] if tried is everybody else whole(everybody, K, seed)
        if found.distance() < _APART:
            continue
        sizes = np.bincount(found.belongs.argmax(axis=1), minlength=K)
        if sizes.min() < none.smallest:
            none = replace(none, outcome="small")
            continue
        return _described(model, everybody, active, found, seed, replace(none, outcome="groups"))
    return Grouped(none, {})


def _apart(crowd: Crowd, most: int, seed: int) -> dict[int, Camps]:
    """Fits whose groups stand apart, by their number: only they can be groups, and are worth ten fits without a fold.

    Each group more makes the answers of the people themselves likelier by what it should for held-out ones, at least.
    """
    fits, before = {}, float(crowd.weight @ whole(crowd, 1, seed).evidence)
    for K in range(2, most + 1):
        found = whole(crowd, K, seed)
        now = float(crowd.weight @ found.evidence)
        if now - before < ENOUGH:
            break
        before = now
        if found.distance() >= _APART:
            fits[K] = found
    return fits


def _described(model: Any, crowd: Crowd, users: IntArray, found: Camps, seed: int, groups: Groups) -> Grouped:
    some = np.zeros(len(users), dtype=bool)
    some[crowd.order[:_MOST_RESAMPLED]] = True
    means = means_of_groups(crowd, found, _RESAMPLES, seed, belong=some)
    own = found.belongs.argmax(axis=1)
    sizes = np.bincount(own, minlength=len(found.share))
    each, items = described(list(model.items_.ids), sizes, means)
    name = {k: each[place].name for place, k in enumerate(in_order(sizes, means.share).tolist())}
    ids = model.users_.ids
    whose = {ids[user]: name[k] for user, k in zip(users.tolist(), own.tolist(), strict=True)}
    certainty = float(found.belongs.max(axis=1).mean())
    return Grouped(
        replace(groups, groups=each, items=items, certainty=certainty, distance=found.distance()), whose
    )  # fmt: skip


def _keys(posterior: PopulationPosterior) -> Keys:
    """A key of each person from what they answered, (n_users,), in which no name plays a part."""
    people = posterior.people
    user = np.repeat(np.arange(people.n_users), np.diff(people.answer_ptr))
    left, right = (people.item_idx[people.item_ptr[user] + side] for side in (people.left, people.right))
    nothing = np.zeros(people.n_items, dtype=np.uint64)
    said = people.outcome.astype(np.int64)
    return refined(user, left, right, said, people.weight, people.n_users, nothing).people
