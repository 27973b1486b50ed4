"""Fit of a trade-off map to answers: attributes, units, scales, and which dimensions are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from predilect._base.text import first_few, quoted, setting
from predilect._base.types import FloatArray, IntArray
from predilect.data.comparisons import Comparisons
from predilect.data.features import ItemFeatures
from predilect.data.intake import counted
from predilect.errors import DataError
from predilect.papers.gaspk.tradeoffs.map import (
    ITEM_LENGTH,
    Dimension,
    TauFunction,
    TradeOffMap,
    changes,
    raw_trade_offs,
)

MOST_ITEMS = 1000  # as their own attributes
_ANTISYMMETRIC = 1e-9
_MIRROR = 1e-10  # 1 - squared correlation of two columns that are one
_CHUNK = 1 << 16


def fit_trade_offs(
    features: ItemFeatures | None,
    comparisons: Comparisons,
    *,
    tau: Literal["difference", "relative"] | TauFunction = "difference",
    attributes: Iterable[str] | None = None,
    units: Mapping[str, str] | None = None,
    antisymmetric: bool = True,
) -> TradeOffMap:
    """The trade-off map of a set of answers, whose weights count in averages.

    ``features`` None makes every item its own attribute: t is (e_left - e_right) / √2, so that every trade-off has
    length 1; two that share an item on one side are at distance 1, two without a common item at √2. ``tau`` "relative"
    is 2 (x - y) / (|x| + |y|) of original numbers, 0 where both are 0, and the difference for categories; a function
    takes two arrays (n, n_inputs) of the attributes' columns in own units (missing numbers at their mean, categories as
    0 and 1) in the order of ``features.columns``, and gives (n, k). Both are divided by their root mean square over the
    answers.

    Raises DataError if all trade-offs are 0, an item of the answers has no features, a name is unknown, a function is
    not antisymmetric to 1e-9 of its largest value although it must be, or more than 1 000 items have no features.

    docs/math/gaspk.md sections 1 and 3. Left out and reported: dimensions that are 0 in every answer, and a category
    that is minus another of its column in every answer (the second of two). Squares are about 0 and not about a mean,
    which would depend on which item stands on the left. O(m d²) time for m different pairs and d columns, in chunks of
    65 536 pairs.
    """
    left, right, weight = _distinct_pairs(comparisons)
    if features is None:
        if attributes is not None or units or callable(tau):
            raise DataError("attributes, units and a function as tau need features of the items; none were given.")
        return _items_as_attributes(comparisons, left, right)
    matrix, known = features.align(comparisons.items)
    lacking = np.setdiff1d(np.concatenate([left, right]), np.flatnonzero(known))
    if len(lacking):
        names = first_few(list(comparisons.items.labels(lacking[:4])))
        raise DataError(
            f"{counted(len(lacking), 'item')} with answers have no features (first: {names}). Add their rows to the "
            f"table of items, or leave their answers out."
        )
    everything = _with_all_columns(features, tau, attributes, units or {})
    if callable(tau):
        everything = _with_function_dimensions(everything, matrix, left, right)
    found = _without_idle(everything, matrix, left, right, weight)
    return _checked_antisymmetry(found, matrix, left, right, antisymmetric) if callable(tau) else found


def _distinct_pairs(comparisons: Comparisons) -> tuple[IntArray, IntArray, FloatArray]:
    if not comparisons.n_rows:
        raise DataError("there are no answers to make trade-offs of.")
    n_items = comparisons.n_items
    key = comparisons.left.astype(np.int64) * n_items + comparisons.right
    pair, which = np.unique(key, return_inverse=True)
    return pair // n_items, pair % n_items, np.bincount(which, weights=comparisons.weight).astype(np.float64)


def _with_all_columns(
    features: ItemFeatures, tau: str | TauFunction, attributes: Iterable[str] | None, units: Mapping[str, str]
) -> TradeOffMap:
    """A map with every column of the attributes wanted, before scaling by answers and leaving out."""
    if not callable(tau) and tau not in ("difference", "relative"):
        raise DataError(f'tau must be "difference", "relative" or a function of two arrays, got {quoted(tau)}.')
    if isinstance(attributes, str):
        attributes = [attributes]
    wanted = features.sources if attributes is None else list(attributes)
    unknown = [name for name in wanted if name not in features.sources]
    if unknown or not wanted:
        raise DataError(
            f"no usable features are called {', '.join(unknown) or '(none given)'}; there are "
            f"{', '.join(features.sources) or 'none'}. Constant columns and free text are not used."
        )
    amounts = {output.source for output in features.outputs if output.kind == "number"}
    unknown = [name for name in units if name not in amounts]
    if unknown:
        raise DataError(
            f"units are given for {', '.join(unknown)}; columns of numbers are {', '.join(sorted(amounts))}."
        )
    inputs = tuple((column, output) for column, output in enumerate(features.outputs) if output.source in wanted)
    is_relative = tau == "relative"
    dimensions = []
    for _, output in inputs:
        assert output.kind != "product"  # whose source is no column
        unit = units.get(output.source) if output.kind == "number" else None
        scale = output.scale
        if is_relative and output.kind == "number":
            unit, scale = "relative change", 1.0
        dimensions.append(Dimension(output.name, output.source, output.kind, unit, scale))
    kind: Literal["difference", "relative", "custom"]
    kind = "custom" if callable(tau) else "relative" if is_relative else "difference"
    place = tuple(column for column, _ in inputs) if kind == "difference" else tuple(range(len(inputs)))
    found = TradeOffMap(kind, tuple(dimensions), place, inputs, {}, len(features.outputs))
    if not callable(tau):
        return found
    return replace(found, function=tau, tau_name=getattr(tau, "__name__", type(tau).__name__), place=())


def _with_function_dimensions(found: TradeOffMap, matrix: FloatArray, left: IntArray, right: IntArray) -> TradeOffMap:
    k = raw_trade_offs(found, matrix[left[:1]], matrix[right[:1]]).shape[1]
    names = [f"tau {number + 1}" for number in range(k)]
    dimensions = tuple(Dimension(name, name, "custom", None, 1.0) for name in names)
    return replace(found, dimensions=dimensions, place=tuple(range(k)))


def _pieces(
    found: TradeOffMap, matrix: FloatArray, left: IntArray, right: IntArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Unscaled trade-offs of some of the pairs at a time."""
    for start in range(0, len(left), _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield rows, raw_trade_offs(found, matrix[left[rows]], matrix[right[rows]])


def _without_idle(
    found: TradeOffMap, matrix: FloatArray, left: IntArray, right: IntArray, weight: FloatArray
) -> TradeOffMap:
    """The scaled map without dimensions that are always 0 or mirrored."""
    d = len(found.dimensions)
    moment, largest = np.zeros((d, d)), np.zeros(d)
    for rows, t in _pieces(found, matrix, left, right):
        moment += t.T @ (weight[rows, None] * t)
        largest = np.maximum(largest, np.abs(t).max(axis=0))
    moment /= weight.sum()
    idle = largest == 0.0
    if idle.all():
        names = ", ".join(dimension.name for dimension in found.dimensions[:5])
        raise DataError(
            f"no two items that were compared differ in {names}{' ...' if d > 5 else ''}: every trade-off is 0. Use "
            f"other attributes, check that the table of items has the right ids, or give no features, for items as "
            f"their own attributes."
        )
    twin = _mirrors(found.dimensions, moment, idle)
    keep = [k for k in range(d) if not idle[k] and k not in twin]
    report = []
    if idle.any():
        names = ", ".join(f'"{found.dimensions[k].name}"' for k in np.flatnonzero(idle))
        report.append(f"Left out, since no answer is about a difference in it: {names}.")
    if twin:
        names = ", ".join(f'"{found.dimensions[k].name}"' for k in twin)
        report.append(f"Left out, since it is minus the other category of its column in every answer: {names}.")
    deviation = np.sqrt(np.diag(moment))
    dimensions = tuple(
        replace(found.dimensions[k], scale=float(deviation[k])) if changes(found, found.dimensions[k])
        else found.dimensions[k]
        for k in keep
    )  # fmt: skip
    mirrors = {found.dimensions[k].name: found.dimensions[other].name for k, other in twin.items()}
    place = tuple(found.place[k] for k in keep)
    return replace(found, dimensions=dimensions, place=place, mirrors=mirrors, report=tuple(report))


def _mirrors(dimensions: Sequence[Dimension], moment: FloatArray, idle: NDArray[np.bool_]) -> dict[int, int]:
    """Categories that are minus an earlier one of their column in every answer, and which."""
    found: dict[int, int] = {}
    for k, dimension in enumerate(dimensions):
        if dimension.kind != "category" or idle[k]:
            continue
        for other in range(k):
            same = dimensions[other].source == dimension.source and dimensions[other].kind == "category"
            if same and not idle[other] and other not in found and moment[k, other] < 0:
                squares = moment[k, k] * moment[other, other]
                if moment[k, other] ** 2 >= (1.0 - _MIRROR) * squares:
                    found[k] = other
                    break
    return found


def _checked_antisymmetry(
    found: TradeOffMap, matrix: FloatArray, left: IntArray, right: IntArray, wanted: bool
) -> TradeOffMap:
    for rows, t in _pieces(found, matrix, left, right):
        back = raw_trade_offs(found, matrix[right[rows]], matrix[left[rows]])
        apart = np.abs(t + back) > _ANTISYMMETRIC * np.abs(t).max(axis=0)
        if apart.any():
            if wanted:
                row, k = np.argwhere(apart)[0]
                raise DataError(
                    f"{found.tau_name}(left, right) is not -{found.tau_name}(right, left): {t[row, k]} and "
                    f"{back[row, k]} for one pair. Set {setting('antisymmetric', False)} to learn from such "
                    "trade-offs, or change it."
                )
            return replace(found, antisymmetric=False)
    return found


def _items_as_attributes(comparisons: Comparisons, left: IntArray, right: IntArray) -> TradeOffMap:
    n_items = comparisons.n_items
    present = np.union1d(left, right)
    if len(present) > MOST_ITEMS:
        raise DataError(
            f"without features every item is an attribute of its own, and {len(present)} are more than {MOST_ITEMS}. "
            f"Give features of the items."
        )
    names = comparisons.items.labels(present)
    scale = 1.0 / ITEM_LENGTH
    dimensions = tuple(Dimension(str(name), str(name), "item", None, scale) for name in names)
    report = (f"Without features each of {len(present)} items is an attribute of its own.",)
    return TradeOffMap("difference", dimensions, tuple(present.tolist()), (), {}, n_items, report=report)
