"""Two models' boards against each other: what changed, and whether it is more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from predilect._base.text import either, one_line
from predilect._base.types import IntArray
from predilect.data import Vocabulary
from predilect.decisions.ranking import beyond_chance
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import centre
from predilect.inference.likelihoods.special import Z_95

_MOST_NAMED = 5
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
    more_than_chance (Benjamini-Hochberg at a false discovery rate of 5 %), old_rank, new_rank (in the models' boards);
    without rows where the models are of two kinds, as ``kinds``, old and new, tells: their scores are on two scales.
    """

    old: str
    table: pl.DataFrame
    came: list[Any]
    went: list[Any]
    kinds: tuple[str, str]
    digits: int  # of differences

    @property
    def sentence(self) -> str:
        """The changes in a sentence, with the items that are surest to have changed."""
        beside = [f"{len(ids)} {what}" for ids, what in ((self.came, "came"), (self.went, "went")) if ids]
        words = f"; items that {', '.join(beside)}" if beside else ""
        if self.kinds[0] != self.kinds[1]:
            return (
                f'Against {self.old}: no scores are compared, as its model is "{self.kinds[0]}" and this one '
                f'"{self.kinds[1]}", each with a scale of its own{words}. {self._remedy()}.'
            )
        sure = self.table.filter("more_than_chance")
        which = "none of them" if sure.is_empty() else f"{len(sure)} of them"
        named = ", ".join(
            f"{one_line(str(item))} {difference:+.{self.digits}f}"
            for item, difference in sure.select("item", "difference").head(_MOST_NAMED).iter_rows()
        )
        named += f" and {len(sure) - _MOST_NAMED} more" if len(sure) > _MOST_NAMED else ""
        return (
            f"Against {self.old}: of {len(self.table)} items in both, the scores of {which} differ by more than chance"
            f"{f' ({named})' if named else ''}{words}."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "against": self.old, "kinds": list(self.kinds), "items": self.table.to_dicts(), "came": self.came,
            "went": self.went,
        }  # fmt: skip

    def _remedy(self) -> str:
        one_for_all = {"pooled", "population"} == {*self.kinds}
        option = either("--personal", "personal=") if one_for_all else either("--model", "a model of that kind")
        return f"Rank both with the same {option}"


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
        mean, covariance = model.utility_distribution()
        mean, covariance = centre(mean[codes], covariance[np.ix_(codes, codes)])
        found[key] = mean, np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kinds = (old.report_["model"], new.report_["model"])
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
    rows = table[order] if kinds[0] == kinds[1] else table.clear()
    return Changes(name, rows, came, went, kinds, scale.of_differences.digits)
