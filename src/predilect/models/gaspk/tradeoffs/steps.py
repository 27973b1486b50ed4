"""Steps of one attribute in a trade-off: an increase of a number, or one category instead of another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predilect.errors import DataError
from predilect.models.gaspk.tradeoffs.map import Dimension, TradeOffMap

FloatArray = NDArray[np.float64]

_INSTEAD = " instead of "
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A direction among trade-offs."""

    label: str  # "price (EUR)", or "fuel=hybrid instead of fuel=petrol"
    source: str  # column of the table of items
    is_number: bool  # else an amount of 1 is one category instead of another
    dimension: Dimension  # of two categories the one that is gained
    direction: FloatArray  # (k,), the trade-off of one own unit


def steps_of(trade_offs: TradeOffMap) -> list[Step]:
    """A step for every number, and in every column of categories one for each category instead of the first.

    Marks of missing numbers are left out. Where items are their own attributes there are none.
    """
    steps, seen = [], set()
    for dimension in trade_offs.dimensions:
        if dimension.kind in ("number", "custom"):
            steps.append(step_of(trade_offs, dimension.label))
        elif dimension.kind == "category" and dimension.source not in seen:
            seen.add(dimension.source)
            first, *others = [d.name for d in _categories(trade_offs, dimension.source)]
            steps += [step_of(trade_offs, name) for name in others or [first]]
    return steps


def step_of(trade_offs: TradeOffMap, name: str) -> Step:
    """The step of that name; DataError if there is none, or items are their own attributes.

    Label or name of a number; "fuel=gas instead of fuel=petrol"; "fuel=gas": instead of the first category, or the
    first instead of the second; "fuel", if it has two categories.
    """
    if trade_offs.items_are_attributes:
        raise DataError(
            "this model was fitted without a table of items: items are their own attributes, which come in no amounts. "
            "Fit it with items=... (--items FILE)."
        )
    gained, _, lost = str(name).partition(_INSTEAD)
    found = _dimension(trade_offs, gained)
    if found is not None and found.kind != "category" and not lost:
        return _made(trade_offs, found.label, found, {found.name: 1.0})
    if found is not None and found.kind == "category":
        mirrors = trade_offs.mirrors
        others = [d.name for d in _categories(trade_offs, found.source)]
        others += [mirror for mirror, kept in mirrors.items() if kept in others]
        others.remove(gained)
        if lost in others or not lost:
            lost = lost or (others[0] if others else "")
            label = f"{gained}{_INSTEAD}{lost}" if lost else gained
            changes = {mirrors.get(gained, gained): -1.0 if gained in mirrors else 1.0}
            if lost and mirrors.get(lost, lost) not in changes:
                changes[mirrors.get(lost, lost)] = 1.0 if lost in mirrors else -1.0
            return _made(trade_offs, label, found, changes)
    of_column = [d.name for d in trade_offs.dimensions if d.source == name and d.kind != "missing"]
    if len(of_column) == 1:
        return step_of(trade_offs, of_column[0])
    known = [step.label for step in steps_of(trade_offs) if not of_column or step.source == name]
    listed = ", ".join(known[:_MOST_LISTED]) + (" ..." if len(known) > _MOST_LISTED else "")
    if of_column:
        raise DataError(f'"{name}" has several categories. Name a change, such as: {listed}.')
    raise DataError(f'there is no attribute "{name}"; there are {listed}.')


def round_size(size: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest to ``size`` > 0 by ratio."""
    power = 10.0 ** np.floor(np.log10(size))
    steps = np.array([1.0, 2.0, 5.0, 10.0])
    return float(f"{steps[np.argmin(np.abs(np.log(steps * power / size)))] * power:.1g}")


def _made(trade_offs: TradeOffMap, label: str, dimension: Dimension, changes: dict[str, float]) -> Step:
    t = np.array([changes.get(d.name, 0.0) / d.scale for d in trade_offs.dimensions])
    t = t if trade_offs.projection is None else t @ trade_offs.projection
    return Step(label, dimension.source, dimension.kind != "category", dimension, t)


def _categories(trade_offs: TradeOffMap, source: str) -> list[Dimension]:
    return [d for d in trade_offs.dimensions if d.kind == "category" and d.source == source]


def _dimension(trade_offs: TradeOffMap, name: str) -> Dimension | None:
    kept = trade_offs.mirrors.get(name, name)
    return next((d for d in trade_offs.dimensions if kept in (d.name, d.label)), None)
