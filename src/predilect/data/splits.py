"""Deterministic folds and samples of answers and people, the same for any order of the rows read."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predilect._base.types import BoolArray, IntArray
from predilect.data.canonical import groups_by_task, repeats, row_offsets
from predilect.data.comparisons import Comparisons
from predilect.data.content import Keys, dealt, hashed, summed
from predilect.data.features import FeatureSpace
from predilect.data.orders import weights_of_rows
from predilect.data.vocabulary import Vocabulary
from predilect.errors import DataError

Seed = int | np.random.SeedSequence | np.random.Generator


def k_folds_answers(
    comparisons: Comparisons, n_folds: int = 5, *, random_state: Seed = 0, keys: Keys | None = None
) -> NDArray[np.int8]:
    """Fold in which each row is tested, balanced within every person; int8, shape (n_rows,).

    Folds are 0 to ``n_folds - 1`` (2 to 127 folds, else DataError); -1 is always training, for people with one task.
    The numbers of a person's tasks per fold differ by at most one; all answers of a task share a fold. Where tasks are
    not known, all answers of a person to one pair are one. With ``keys`` of the rows, such as
    :func:`~predilect.data.content.keys_of_answers`, names of people and items play no part.
    """
    if not 2 <= n_folds <= 127:
        raise DataError(f"n_folds must lie between 2 and 127, got {n_folds}.")
    group, person, size = groups_of_people(comparisons)
    rng = np.random.default_rng(random_state)
    chance, n_people = rng.random(len(person)), comparisons.n_users
    # People start at different folds, or the first folds would hold all the surplus pairs.
    start = rng.integers(0, n_folds, size=n_people)
    if keys is not None:
        of_group = summed(keys, group, len(person))
        of_person = summed(hashed(of_group), person, n_people)
        chance, start = dealt(chance, of_group, of_person[person]), dealt(start, of_person)
    # Large tasks are dealt first, so that folds come out about equal in answers too.
    place, n_pairs = _places(person, n_people, chance, size)
    fold = ((place + start[person]) % n_folds).astype(np.int8)
    fold[n_pairs[person] < 2] = -1
    return fold[group]


def held_out_groups(comparisons: Comparisons) -> NDArray[np.int64]:
    """Group of each row that :func:`k_folds_answers` holds out together; shape (n_rows,)."""
    return groups_of_people(comparisons)[0]


def groups_of_people(
    comparisons: Comparisons,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]:
    """Group held out together of each row, the user of each group and, where tasks are known, its answers."""
    group, person = _pairs_of_people(comparisons)
    if comparisons.task is None:
        return group, person, None
    return groups_by_task(group, comparisons.user, comparisons.task, comparisons.weight)


def _pairs_of_people(comparisons: Comparisons) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The (user, pair) group of each row, and the user of each group."""
    fresh = ~repeats(comparisons.user, comparisons.left, comparisons.right)
    return np.cumsum(fresh) - 1, comparisons.user[fresh]


def shuffled_place(
    person: NDArray[np.int32], n_people: int, rng: np.random.Generator, keys: Keys | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of each group among its person's, at random (by what ``keys`` of the groups say), and a person's groups."""
    chance = rng.random(len(person))
    return _places(person, n_people, chance if keys is None else dealt(chance, keys), None)


def _places(
    person: NDArray[np.int32], n_people: int, chance: NDArray[np.float64], size: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of each group among its person's, by size and then by chance, and how many groups a person has."""
    offsets = row_offsets(person, n_people)
    order = np.lexsort((chance, person) if size is None else (chance, -size, person))
    place = np.empty(len(person), dtype=np.int64)
    place[order] = np.arange(len(person)) - offsets[person]
    return place, np.diff(offsets)


_N_FOLDS = 5
MOST_PEOPLE = 1000
_ENOUGH_HELD_OUT = 600.0  # answers; more folds are fitted until so many were held out
_HEAVY_VOTER = 200  # answers
_ENOUGH_ANSWERS = 5000
_MOST_TYPICAL = 5.0  # rows


def some_people(
    comparisons: Comparisons, rng: np.random.Generator, most: int = MOST_PEOPLE, *, keys: Keys
) -> tuple[Comparisons, IntArray]:
    """At most so many people with more than one row, renumbered, and their old codes; items stay as they are.

    Who is drawn follows the ``keys`` of the rows, and no name.

    The very few who hold most of the answers cost most of the time (up to the cube of their number of answers) and say
    little about how people differ, so they are left out where the others are enough.
    """
    counts = np.bincount(comparisons.user, minlength=comparisons.n_users)
    able = np.flatnonzero(counts > 1)
    light = able[counts[able] <= _HEAVY_VOTER]
    if counts[light].sum() >= _ENOUGH_ANSWERS:
        able = light
    if len(able) == comparisons.n_users <= most:
        return comparisons, np.arange(comparisons.n_users)
    # People with one answer cannot be tested but do train: keep their share.
    share = min(1.0, most / max(len(able), 1))
    single = np.flatnonzero(counts == 1)
    order = shuffled_people(comparisons, rng, keys)
    chosen = [
        group[np.argsort(order[group])[: min(most, max(1, round(share * len(group))))]]
        for group in (able, single)
        if len(group)
    ]
    keep = np.zeros(comparisons.n_users, dtype=bool)
    keep[np.concatenate(chosen)] = True
    return only_people_of(comparisons, keep[comparisons.user])


def shuffled_people(comparisons: Comparisons, rng: np.random.Generator, keys: Keys) -> NDArray[np.int64]:
    """Random place of each of the people, (n_users,), that follows the ``keys`` of their rows and no name."""
    return dealt(rng.permutation(comparisons.n_users), summed(keys, comparisons.user, comparisons.n_users))


def only_people_of(comparisons: Comparisons, mask: BoolArray) -> tuple[Comparisons, IntArray]:
    """Some of the rows, their people renumbered, since one without answers would be one more to fit; the old codes."""
    rows = comparisons.take(mask)
    codes, user = np.unique(rows.user, return_inverse=True)
    users = Vocabulary(rows.users.labels(codes))
    return replace(rows, users=users, user=user.astype(np.int32)), codes.astype(np.int64)


def thinned(comparisons: Comparisons, most: int, *, random_state: Seed, keys: Keys) -> Comparisons:
    """Part of everybody's answers, about ``most`` rows, where there are more."""
    n_parts = min(math.ceil(comparisons.n_rows / most), 127)
    if n_parts < 2:
        return comparisons
    return comparisons.take(k_folds_answers(comparisons, n_parts, random_state=random_state, keys=keys) < 1)


def with_moderate_counts(comparisons: Comparisons) -> Comparisons:
    """The same answers, no row of which counts more than five typical rows (the median's).

    All copies of a row are held out together, since a model trained on some of them would know the others: they are one
    surprise or none, however many they are. One person who repeats an answer 10⁴ times would otherwise decide
    how sure everybody's chances may be.
    """
    if not comparisons.n_rows:
        return comparisons
    most = _MOST_TYPICAL * float(np.median(comparisons.weight))
    if comparisons.weight.max() <= most:
        return comparisons
    return comparisons.with_weight(np.minimum(comparisons.weight, most))


def with_items_of(comparisons: Comparisons, space: FeatureSpace) -> tuple[Comparisons, FeatureSpace]:
    """Only the items that occur, and where they lie."""
    codes, position = np.unique(np.concatenate([comparisons.left, comparisons.right]), return_inverse=True)
    if len(codes) == comparisons.n_items:
        return comparisons, space
    left, right = position[: comparisons.n_rows], position[comparisons.n_rows :]
    items = Vocabulary(comparisons.items.labels(codes))
    rows = replace(comparisons, items=items, left=left.astype(np.int32), right=right.astype(np.int32))
    return rows, FeatureSpace(space.matrix[codes], space.known[codes])


def masks_of_folds(
    comparisons: Comparisons,
    seed: Seed,
    enough: float = _ENOUGH_HELD_OUT,
    *,
    n_folds: int = _N_FOLDS,
    among: BoolArray | None = None,
    keys: Keys | None = None,
) -> list[BoolArray]:
    """As many folds as it takes to hold out enough answers: which rows each holds out, of all or those ``among`` them.

    With more, the first ones are the same.
    """
    fold = k_folds_answers(comparisons, n_folds, random_state=seed, keys=keys)
    answers = weights_of_rows(comparisons)  # a choice from four is one, in three rows
    masks: list[BoolArray] = []
    held_out = 0.0
    for k in range(n_folds):
        mask = fold == k if among is None else among & (fold == k)
        if not mask.any() or held_out >= enough:
            continue
        masks.append(mask)
        held_out += float(answers[mask].sum())
    return masks


_PARTS = 4
_KEPT_OF_NEWCOMERS = np.array([0.0, 0.125, 0.25, 0.5])
_ENOUGH_NEWCOMERS = 100


def masks_of_newcomers(
    comparisons: Comparisons, seed: Seed, enough: float = _ENOUGH_HELD_OUT, *, among: BoolArray, keys: Keys
) -> list[BoolArray]:
    """Which rows to hold out for a quarter of the people to be newcomers: all, or all but an eighth, a quarter or half.

    Rows ``among`` (n_rows,) which there are, whole people. As many quarters as it takes to hold out enough answers of
    a hundred people, whatever fewer there are; none where there are fewer than four people. ``keys`` of the rows
    decide, and no name.
    """
    group, person, _ = groups_of_people(comparisons)
    rng, n_people = np.random.default_rng(seed), comparisons.n_users
    there = np.bincount(comparisons.user[among], minlength=n_people) > 0
    chance = np.where(there, shuffled_people(comparisons, rng, keys), n_people)
    turn = np.argsort(np.argsort(chance, kind="stable"), kind="stable")
    place, length = shuffled_place(person, n_people, rng, summed(keys, group, len(person)))
    kept = np.floor(_KEPT_OF_NEWCOMERS[turn // _PARTS % len(_KEPT_OF_NEWCOMERS)] * length)
    later = among & (place >= kept[person])[group]
    answers = weights_of_rows(comparisons)
    masks: list[BoolArray] = []
    held_out, newcomers = 0.0, 0
    for part in range(_PARTS if there.sum() >= _PARTS else 0):
        mine = there & (turn % _PARTS == part)
        if held_out >= enough and newcomers >= _ENOUGH_NEWCOMERS:
            break
        masks.append(later & mine[comparisons.user])
        held_out += float(answers[masks[-1]].sum())
        newcomers += int(mine.sum())
    return masks
