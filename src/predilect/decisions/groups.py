"""Groups of opinion, in numbers and in words: what divides a crowd, and what unites it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Self

import numpy as np
import polars as pl
from scipy.special import ndtr

from predilect._base.json import plain, typed
from predilect._base.text import number, percent
from predilect._base.types import FloatArray, IntArray
from predilect.inference.likelihoods.special import Z_95
from predilect.inference.people.mixture import GroupMeans

OUTCOMES = ("groups", "none", "small", "few")
SMALLEST, LEAST = 10, 5  # people in a group that is shown: by default, and always
ENOUGH = float(np.log(10.0))  # nats: so much likelier the answers of held-out people have to be with each group more
NAMES = "ABCDE"
UNITES = 0.9  # probability that the group that likes an item least likes it more than the average item
_LISTED = 3
_COUNTS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a group thinks of an item, in units of the noise of one answer, centred over the items.

    ``difference``: less what all others think, by their number. Intervals of 95 %, from resampled people.
    """

    item: str | int
    mean: float
    lower: float
    upper: float
    difference: float
    difference_lower: float
    difference_upper: float


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its name, the people who likely belong to it, and its share of the population, with 95 % interval."""

    name: str
    people: int
    share: float
    lower: float
    upper: float
    opinions: tuple[Opinion, ...]  # what the group has more than the others first

    @property
    def prefers(self) -> list[Opinion]:
        """At most three items that it likes better than the others do, beyond chance."""
        return [one for one in self.opinions if one.difference_lower > 0.0][:_LISTED]


@dataclass(frozen=True, slots=True)
class ItemOfAll:
    """What all groups make of an item.

    ``lowest``: what the group thinks that likes it least; ``liked``: the probability that this group likes it more than
    the average item; ``divides``: the share of the variance between people that is between groups.
    """

    item: str | int
    lowest: float
    liked: float
    divides: float


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of opinion: what :meth:`Population.groups <predilect.Population.groups>` finds.

    Attributes
    ----------
    outcome : {"groups", "none", "small", "few"}
        Groups were found; people differ by degrees; one of the groups would be too small to be shown; too few people.
    groups : tuple of Group
        The largest first; empty without.
    items : tuple of ItemOfAll
        What all groups like best first; empty without groups.
    n_people : int
        People with answers.
    smallest : int
        People that a group has at least.
    gain : float
        By how much groups make the answers of held-out people likelier, in nats, all people together; of the best
        number of groups that stand apart, shown or not; 0 where none do. Each group more takes 2.3: answers ten times
        as likely.
    certainty : float
        Mean probability with which people belong to their group; 1 without groups.
    distance : float
        Between the two nearest groups, in standard deviations within groups; 2 is where two heaps become visible.
    """

    outcome: str
    groups: tuple[Group, ...] = ()
    items: tuple[ItemOfAll, ...] = ()
    n_people: int = 0
    smallest: int = SMALLEST
    gain: float = 0.0
    certainty: float = 1.0
    distance: float = 0.0

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def unites(self) -> list[ItemOfAll]:
        """At most three items that every group likes better than the average item."""
        return [one for one in self.items if one.liked > UNITES][:_LISTED]

    @property
    def divides(self) -> list[ItemOfAll]:
        """At most three items on which groups differ most."""
        return sorted(self.items, key=lambda one: -one.divides)[:_LISTED]

    @property
    def sentences(self) -> list[str]:
        """What was found, in plain sentences."""
        if self.outcome == "few":
            return [
                f"{self.n_people} people are too few for groups of opinion: two of {self.smallest} take "
                f"{2 * self.smallest}."
            ]
        if self.outcome == "small":
            return [f"No groups of opinion are shown: one of them would have fewer than {self.smallest} people."]
        if self.outcome == "none":
            return ["There are no groups of opinion: people differ by degrees, or agree."]
        lines = [
            f"There are {_COUNTS[len(self)]} groups of opinion among {self.n_people} people, who belong to theirs with "
            f"probability {percent(self.certainty)} on average."
        ]
        for one in self.groups:
            more = "; ".join(f"{each.item} (by {number(each.difference)})" for each in one.prefers)
            liking = (
                f"likes more than the others do: {more}" if more else "likes nothing surely more than the others do"
            )
            lines.append(
                f"Group {one.name}, {one.people} people ({percent(one.share)} of the population, {percent(one.lower)} "
                f"to {percent(one.upper)}), {liking}."
            )
        unites = "; ".join(str(one.item) for one in self.unites)
        lines.append(f"All groups like: {unites}." if unites else "There is nothing that surely all groups like.")
        lines.append(f"They differ most on: {'; '.join(str(one.item) for one in self.divides)}.")
        return lines

    def table(self) -> pl.DataFrame:
        """A row for each group and item; without groups no row.

        Columns group, people, share, share_lower, share_upper, item, mean, lower, upper, difference, difference_lower,
        difference_upper, liked_by_all and divides.
        """
        of_all = {one.item: one for one in self.items}
        rows = [
            {
                "group": group.name, "people": group.people, "share": group.share, "share_lower": group.lower,
                "share_upper": group.upper, **asdict(one), "liked_by_all": of_all[one.item].liked,
                "divides": of_all[one.item].divides,
            }
            for group in self.groups for one in group.opinions
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=None if rows else _COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        found: dict[str, Any] = plain(asdict(self))
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; raises KeyError, TypeError or ValueError for other values."""
        found: Self = typed(cls, values, "groups")
        if found.outcome not in OUTCOMES:
            raise ValueError(f"the outcome {found.outcome!r} is none of {', '.join(OUTCOMES)}")
        return found

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return f"<div><strong>Groups of opinion</strong>{said}</div>"


_NUMBERS = ("mean", "lower", "upper", "difference", "difference_lower", "difference_upper", "liked_by_all", "divides")
_COLUMNS: dict[str, Any] = {
    "group": pl.String, "people": pl.Int64, "share": pl.Float64, "share_lower": pl.Float64, "share_upper": pl.Float64,
    "item": pl.String, **dict.fromkeys(_NUMBERS, pl.Float64),
}  # fmt: skip


def in_order(sizes: IntArray, share: FloatArray) -> IntArray:
    """Groups by the number of their people, the largest first, (K,)."""
    return np.lexsort((-share, -sizes))


def described(
    items: Sequence[Any], sizes: IntArray, found: GroupMeans
) -> tuple[tuple[Group, ...], tuple[ItemOfAll, ...]]:
    """Groups with intervals, and what all make of the items (n_items,), from ``sizes`` (K,) and means."""
    share, mean, within, shares, means = found
    order = in_order(sizes, share)
    away, each_away = _against_rest(share, mean), _against_rest(shares, means)
    sd_share, sd, sd_away = (np.std(one, axis=0, ddof=1) for one in (shares, means, each_away))
    groups = []
    for place, k in enumerate(order.tolist()):
        opinions = [
            Opinion(items[i], *_interval(mean[k, i], sd[k, i]), *_interval(away[k, i], sd_away[k, i]))
            for i in np.argsort(-away[k], kind="stable").tolist()
        ]
        lower, upper = (min(max(share[k] + side * Z_95 * sd_share[k], 0.0), 1.0) for side in (-1, 1))
        groups.append(Group(NAMES[place], int(sizes[k]), float(share[k]), float(lower), float(upper), tuple(opinions)))
    liked = ndtr(mean / np.maximum(sd, np.finfo(float).tiny)).min(axis=0)
    between = share @ (mean - share @ mean) ** 2
    part = between / np.maximum(between + within, np.finfo(float).tiny)
    best = np.lexsort((-mean.min(axis=0), liked <= UNITES))
    of_all = [ItemOfAll(items[i], float(mean[:, i].min()), float(liked[i]), float(part[i])) for i in best.tolist()]
    return tuple(groups), tuple(of_all)


def _against_rest(share: FloatArray, mean: FloatArray) -> FloatArray:
    """What each group thinks less what all others do, by their shares; (..., K, n_items)."""
    all_of_them = np.einsum("...k,...ki->...i", share, mean)[..., None, :]
    return np.asarray((mean - all_of_them) / (1.0 - share)[..., None])


def _interval(value: float, sd: float) -> tuple[float, float, float]:
    return float(value), float(value - Z_95 * sd), float(value + Z_95 * sd)
