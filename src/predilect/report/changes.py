"""Two models' boards against each other: what changed, and whether it is more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from predilect._types import IntArray
from predilect.data import Vocabulary
from predilect.decisions.ranking import beyond_chance
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.gaussian.posterior import centre
from predilect.likelihoods.special import Z_95

ASSUMPTION = (
    "The test takes the two fits for independent. Where the new answers hold the old ones they are not: the old ones "
    "are in both, so that a real change is harder to find, and one that is not there is hardly ever found. It takes no "
    "account of a change in who was asked. Few answers draw scores closer together, so that a board spreads as more "
    "come. Scores are centred over the items that both models know."
)


@dataclass(frozen=True)
class Changes:
    """Differences of scores, new less old, of the items in both models, largest first.

    ``table``: columns item, old, old_lower, old_upper, new, new_lower, new_upper, difference, lower, upper,
    more_than_chance (Benjamini-Hochberg at a false discovery rate of 5 %), old_rank, new_rank (in the models' boards).
    """

    old: str
    table: pl.DataFrame
    came: list[Any]
    went: list[Any]

    @property
    def sentence(self) -> str:
        """The changes in a sentence."""
        n, sure = len(self.table), int(self.table["more_than_chance"].sum())
        beside = [f"{len(ids)} {what}" for ids, what in ((self.came, "came"), (self.went, "went")) if ids]
        told = f"; items that {', '.join(beside)}" if beside else ""
        which = "none of them" if not sure else f"{sure} of them"
        return f"Against {self.old}: of {n} items in both, the scores of {which} differ by more than chance{told}."


def shared_items(items: Vocabulary, old: Any, name: str) -> tuple[IntArray, IntArray]:
    """Codes of the items that an old model knows, and their codes there; DataError if they are fewer than two."""
    places = old.items_.codes(items.series(), unknown="minus_one")
    shared = np.flatnonzero(places >= 0)
    if len(shared) < 2:
        raise DataError(f"{name} has {len(shared)} items in common with this ranking, and a comparison takes two")
    return shared, places[shared]


def changes_between(new: Any, old: Any, scale: Scale, name: str) -> Changes:
    """Changes from an old model to a new one; DataError if they have fewer than two items in common."""
    shared, places = shared_items(new.items_, old, name)
    found = {}
    for key, model, codes in (("new", new, shared), ("old", old, places)):
        mean, covariance = model.consensus_distribution()
        mean, covariance = centre(mean[codes], covariance[np.ix_(codes, codes)])
        found[key] = mean, np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    (mean, sd), (before, sd_before) = found["new"], found["old"]
    difference, spread = mean - before, np.hypot(sd, sd_before)
    z = np.divide(np.abs(difference), spread, out=np.zeros_like(spread), where=spread > 0.0)
    sure = beyond_chance(z)
    unit = scale.per_probit
    ranks = [pl.DataFrame(model.utilities())["rank"].to_numpy() for model in (old, new)]
    table = pl.DataFrame({
        "item": new.items_.series().gather(shared),
        "old": unit * before, "old_lower": unit * (before - Z_95 * sd_before),
        "old_upper": unit * (before + Z_95 * sd_before), "new": unit * mean, "new_lower": unit * (mean - Z_95 * sd),
        "new_upper": unit * (mean + Z_95 * sd), "difference": unit * difference,
        "lower": unit * (difference - Z_95 * spread), "upper": unit * (difference + Z_95 * spread),
        "more_than_chance": sure, "old_rank": ranks[0][places], "new_rank": ranks[1][shared],
    })  # fmt: skip
    order = np.lexsort((np.arange(len(z)), -z))
    came, went = (
        [item for item in one.items_.ids if other.items_.code(item) < 0] for one, other in ((new, old), (old, new))
    )
    return Changes(name, table[order], came, went)
