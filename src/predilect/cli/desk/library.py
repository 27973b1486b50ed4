"""Results in a folder, or those of a live poll: their report, and questions that are answered at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from predilect._base.text import one_line, percent
from predilect.cli.folder import Results
from predilect.cli.report import contents_in
from predilect.cli.session import Common, Talk
from predilect.errors import DataError
from predilect.show.charts.facts import has_attributes
from predilect.show.charts.pictures import MOST_ROWS
from predilect.show.report.parts import Column, Part, Table
from predilect.show.report.sections import Contents, board_table
from predilect.show.report.tables import sentence_of_pair

OFFERS = ("A", "B", "C")  # alternatives of a scenario
_MOST_HELD, _MOST_NAMED = 2, 1000  # in a list to choose from
_STEPS = 11  # prices of a curve


class Attribute(NamedTuple):
    """What a scenario sets of each offer: a number between two others, or one of several values."""

    name: str
    low: float = 0.0
    high: float = 0.0
    middle: float = 0.0
    values: tuple[str, ...] = ()


@dataclass
class OpenResults:
    """A fitted model with its report; ``folder`` holds it, or is None for the model of a live poll."""

    contents: Contents
    folder: Path | None

    @property
    def model(self) -> Any:
        """The model."""
        return self.contents.model

    @property
    def items(self) -> list[str]:
        """Items, best first; the first thousand."""
        return [str(one) for one in self.contents.board["item"].head(_MOST_NAMED).to_list()]

    @cached_property
    def people(self) -> list[str]:
        """People who have a board of their own, the first thousand."""
        users = self.model.users_ if self.model.personal_ else None
        return [] if users is None else [str(one) for one in users.ids[:_MOST_NAMED]]

    @cached_property
    def attributes(self) -> list[Attribute]:
        """What offers of a scenario differ in; none where the model knows no attributes."""
        model = self.model
        if not has_attributes(model) or not hasattr(getattr(model, "worth", None), "simulate") or model._not_usable:
            return []
        features = model.features_
        found: dict[str, Attribute] = {}
        for k, one in enumerate(features.outputs):
            if one.kind == "number":
                raw = features.matrix[:, k] * one.scale + one.centre
                low, high, middle = (float(f"{value:.4g}") for value in (raw.min(), raw.max(), np.median(raw)))
                before = found.get(one.source)
                low, high = (low, high) if before is None else (min(low, before.low), max(high, before.high))
                found[one.source] = Attribute(one.source, low, high, middle)
            elif one.kind == "category":
                values = found.get(one.source, Attribute(one.source)).values
                found[one.source] = Attribute(one.source, values=(*values, str(one.category)))
        return list(found.values())

    def of_person(self, user: str) -> list[Part]:
        """The board of one person."""
        model, scale = self.model, self.contents.scale
        board = pl.DataFrame(model.rank(user, scale=scale))
        return [board_table(board, scale, MOST_ROWS), *getattr(model, "_alike", [])]

    def of_pair(self, left: str, right: str, user: str = "") -> list[Part]:
        """Which of two items is better, in a sentence."""
        model, scale = self.model, self.contents.scale
        found = pl.DataFrame(model.versus([(left, right)], user=user or None, scale=scale))
        return [sentence_of_pair(row, scale.of_differences) for row in found.iter_rows(named=True)]

    @cached_property
    def groups(self) -> list[Part]:
        """What divides people and what unites them: looked for when it is asked, as that takes long."""
        found = replace(self.contents, find_groups=self.model._find_groups).parts_of("groups")
        return found or ["There are too few people with rankings of their own to look for groups."]

    def defaults(self) -> dict[str, str]:
        """Values of a scenario that nobody has changed yet, by the names of its controls."""
        return {
            f"{offer}.{one.name}": one.values[k % len(one.values)] if one.values else f"{one.middle:g}"
            for k, offer in enumerate(OFFERS) for one in self.attributes
        }  # fmt: skip

    def shares(self, said: Mapping[str, str]) -> list[Part]:
        """Which share of people would choose each offer, and how shares move with one number of the first."""
        rows: dict[str, list[Any]] = {"item": list(OFFERS)}
        for one in self.attributes:
            given = [said.get(f"{offer}.{one.name}", "") for offer in OFFERS]
            rows[one.name] = given if one.values else [_number(one.name, value) for value in given]
        items = pl.DataFrame(rows)
        found = self.model.worth.simulate(list(OFFERS), items=items)
        table = Table("Share of people who would choose each, 95 % interval", _shares("Offer", "item"), _rows(found))
        return [table, *self._curve(items, said.get("curve", ""))]

    def _curve(self, items: pl.DataFrame, name: str) -> Iterator[Part]:
        one = next((one for one in self.attributes if one.name == name and not one.values), None)
        if one is None:
            return
        values = np.linspace(one.low, one.high, _STEPS).round(6).tolist()
        found = self.model.worth.price_curve(list(OFFERS), OFFERS[0], name, values, items=items)
        first = pl.DataFrame(found).filter(pl.col("item") == OFFERS[0])
        head = f"{one_line(name)} of {OFFERS[0]}"
        yield Table(
            f"Share of {OFFERS[0]} by its {one_line(name)}, all else as above", _shares(head, "price"), _rows(first)
        )


def _shares(head: str, name: str) -> list[Column]:
    return [
        Column(head, lambda row: row[name] if isinstance(row[name], str) else f"{row[name]:g}", "name"),
        Column("Share", lambda row: percent(row["share"])),
        Column("95 % interval", lambda row: f"{percent(row['lower'])} … {percent(row['upper'])}"),
    ]


def _rows(table: Any) -> list[dict[str, Any]]:
    return list(pl.DataFrame(table).iter_rows(named=True))


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise DataError(f"{one_line(name)} is a number; got {one_line(text) or '(nothing)'}")
    return value


class Library:
    """Results by their keys, loaded when they are first looked at; the last two stay."""

    def __init__(self) -> None:
        self._places: dict[str, Path] = {}
        self._lock, self._loaded = threading.Lock(), lru_cache(_MOST_HELD)(_loaded)

    def put(self, key: str, place: Path) -> None:
        """A folder of results, or the log of a live poll."""
        self._places[key] = place

    def at(self, key: str) -> OpenResults:
        """Results; DataError if there are none of this key."""
        if key not in self._places:
            raise DataError("these results are not open any more. Rank again, or open the folder")
        with self._lock:
            return self._loaded(self._places[key])


def polls_in(path: Path) -> list[str]:
    """Names of the live polls whose log a file is; none of any other file."""
    from predilect.live.web.hosting import polls_at

    try:
        return list(polls_at(str(path)))
    except (DataError, OSError):
        return []


def _loaded(place: Path) -> OpenResults:
    if place.is_file():
        from predilect.live import Poll

        poll = Poll.open(place, polls_in(place)[0], background=False)
        try:
            return OpenResults(poll.contents(), None)
        finally:
            poll.disconnect()
    results = Results.of(place).with_people(Talk(Common(quiet=True)))
    return OpenResults(contents_in(results, name_people=True, groups=lambda: None), place)
