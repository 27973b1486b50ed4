"""What charts show, out of a fitted model: pairs, ranks, people, attributes. Estimators come as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from predilect._base.types import FloatArray, IntArray
from predilect.decisions.versus import chances_of_no_side
from predilect.show.charts.chart import name_of

MOST_ITEMS, MOST_PEOPLE = 30, 500
_DRAWS = 2000
_ENDS = 3  # items that say what an axis is about
_UNIT, _CONSTANT = "one unit more", "against the average"  # what a part-worth without a level is of
_MOST_GROUPS = 5  # beside "other"


@dataclass(frozen=True, slots=True)
class PairShares:
    """Chances and shares of row preferred to column, (n, n), NaN on the diagonal and where nobody was asked.

    ``expected``: of a new person's answer; ``observed``: of the answers, ``n`` in number.
    """

    items: list[Any]
    expected: FloatArray
    observed: FloatArray
    n: FloatArray


def pairs_of(model: Any, ids: pl.Series) -> PairShares:
    """Items against each other; O(n²) predictions, and one pass over the answers."""
    n = len(ids)
    i, j = np.triu_indices(n, 1)
    expected = np.full((n, n), np.nan)
    if n > 1:
        chances = chances_of_no_side(model, ids.gather(i), ids.gather(j))
        expected[i, j], expected[j, i] = chances[:, 0], chances[:, 2]
    won, asked = np.zeros((n, n)), np.zeros((n, n))
    answers = model.comparisons_
    if answers is not None:
        place = np.full(len(answers.items), -1)
        place[answers.items.codes(ids)] = np.arange(n)
        left, right = place[answers.left], place[answers.right]
        both = (left >= 0) & (right >= 0)
        left, right, y, w = left[both], right[both], answers.outcome[both], answers.weight[both]
        np.add.at(won, (np.where(y < 0, right, left), np.where(y < 0, left, right)), w * (y != 0))
        np.add.at(asked, (left, right), w)
        asked = asked + asked.T
    return PairShares(
        ids.to_list(), expected, np.divide(won, asked, out=np.full((n, n), np.nan), where=asked > 0.0), asked
    )


def rank_shares(model: Any, ids: pl.Series) -> FloatArray:
    """Share of 2 000 joint draws of the crowd's utilities in which items have rank 1, 2, ...

    Shape (n, n + 1) with all ranks beyond n in the last column; without it where these are all items.
    """
    shown = model.items_.codes(ids)
    utilities = model.posterior_.crowd()
    root, rng = utilities.root(), np.random.default_rng(model.seed_)
    n = len(shown)
    counts = np.zeros((n, n + 1))
    step = max(1, 10_000_000 // len(model.items_))
    for start in range(0, _DRAWS, step):
        draws = utilities.draws(min(step, _DRAWS - start), rng, root)
        rank = np.argsort(np.argsort(-draws, axis=1), axis=1)[:, shown]
        for k in range(n):
            counts[k] += np.bincount(np.minimum(rank[:, k], n), minlength=n + 1)
    shares = counts / _DRAWS
    return shares if len(model.items_) > n else shares[:, :n]


@dataclass(frozen=True, slots=True)
class PeopleMap:
    """People on the two main axes of how their utilities differ; ``place`` (n, 2), 0 is their average.

    Nobody is named: charts are handed on. ``share``: of the variance between people, of each axis; ``ends``: for each
    axis the items that those to the left (below) and to the right (above) like more than others do; ``group``: of each
    person in ``groups``, 0 without.
    """

    place: FloatArray
    share: tuple[float, float]
    ends: tuple[tuple[list[str], list[str]], ...]
    n_people: int
    groups: list[str]
    group: IntArray


def people_map(model: Any, most: int = MOST_PEOPLE) -> PeopleMap | None:
    """Up to ``most`` people, drawn with the model's seed; None where it tells fewer than three people apart."""
    if not model.personal_ or model.users_ is None or len(model.users_) < 3:
        return None
    n_people = len(model.users_)
    users = np.arange(n_people)
    if n_people > most:
        users = np.sort(np.random.default_rng(model.seed_).choice(n_people, most, replace=False))
    mean = model.posterior_.centred_utilities(users)[0]
    away = mean - mean.mean(axis=0)
    u, s, vt = np.linalg.svd(away, full_matrices=False)
    if len(s) < 2 or s[0] <= 1e-9 * max(float(np.abs(mean).max()), 1e-300):
        return None  # everybody is the same
    sign = np.where(
        vt[np.arange(2), np.abs(vt[:2]).argmax(axis=1)] < 0.0, -1.0, 1.0
    )  # of no meaning, but always the same
    vt, place = sign[:, None] * vt[:2], u[:, :2] * s[:2] * sign / np.sqrt(mean.shape[1])
    ids, n_ends = model.items_.ids, min(_ENDS, mean.shape[1] // 2)
    order = np.argsort(vt, axis=1, kind="stable")
    ends = tuple(
        ([name_of(ids[k]) for k in one[:n_ends].tolist()], [name_of(ids[k]) for k in one[::-1][:n_ends].tolist()])
        for one in order
    )
    groups, group = _groups(model, users)
    share = s[:2] ** 2 / (s**2).sum()
    return PeopleMap(place, (float(share[0]), float(share[1])), ends, n_people, groups, group)


def _groups(model: Any, users: IntArray) -> tuple[list[str], IntArray]:
    """Names of the largest segments of the first column of segments, and whose each person is."""
    features = model.user_features_
    if features is None or not features.segments:
        return [], np.zeros(len(users), dtype=int)
    columns = [k for k, one in enumerate(features.outputs) if one.source == features.segments[0]]
    matrix, known = features.align(model.users_)
    coded = [features.outputs[k] for k in columns]
    belongs = matrix[:, columns] * [one.scale for one in coded] + [one.centre for one in coded] > 0.5
    belongs = (belongs & known[:, None])[users]
    largest = np.argsort(-belongs.sum(axis=0), kind="stable")[:_MOST_GROUPS]
    found = np.where(belongs[:, largest].any(axis=1), belongs[:, largest].argmax(axis=1), len(largest))
    names = [name_of(coded[k].category) for k in largest.tolist()]
    return names + ["other or unknown"] * bool((found == len(largest)).any()), found


def further_table(model: Any, name: str) -> pl.DataFrame | None:
    """A table that only this kind of model has; None where it has none of the name."""
    make = model._further_tables().get(name)
    return None if make is None else pl.DataFrame(make())


def has_attributes(model: Any) -> bool:
    """Whether the model says what attributes of items are worth."""
    return model.features_ is not None and bool(getattr(model, "attributes_", []))


def part_worths_of(model: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Importances of attributes, and part-worths of the population; some milliseconds and draws for each person.

    The second is the table of ``coefficients`` with a column label: the level, or what else the worth is of.
    """
    # "None of these", or that an attribute is missing: what it is worth where all else is as usual.
    constants = [one.name for one in model.features_.outputs if one.kind == "missing"]
    unit = pl.when(pl.col("attribute").is_in(constants)).then(pl.lit(_CONSTANT)).otherwise(pl.lit(_UNIT))
    label = pl.when(pl.col("level") == "").then(unit).otherwise(pl.col("level")).alias("label")
    return pl.DataFrame(model.worth.importances()), pl.DataFrame(model.worth.coefficients()).with_columns(label)
