"""Attributes of items as the columns of a mixed logit, and the way back to their own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import helmert

from predilect._base.stored import PLAIN, numbers
from predilect._base.text import did_you_mean, either
from predilect._base.types import FloatArray, IntArray
from predilect.data import Comparisons, ItemFeatures
from predilect.data.attributes import Coding, independent, left_out, term_of
from predilect.data.choices import Choices, decided_by, within_choices
from predilect.data.features import FeatureSpace
from predilect.data.terms import Terms, is_product_of
from predilect.errors import DataError

NORMAL, POSITIVE, NEGATIVE, TRIANGULAR, FIXED = 0, 1, -1, 2, 3
DISTRIBUTIONS = {
    "normal": NORMAL, "log-normal": POSITIVE, "negative log-normal": NEGATIVE, "triangular": TRIANGULAR, "fixed": FIXED,
}  # fmt: skip
_MOST_CONSTANTS = 30  # items that are their own attributes: a covariance of so many rows
_DIGITS = 9  # by which attributes are put in order: more would be rounding


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """The d columns of the items, those that vary between people first, each of size about 1 within choices.

    Their order follows from the answers, so that whoever writes the attributes in another order has the same fit.
    Items without features are rows of zeros in ``X``. Reported coefficients, one a number or a level of a category, are
    ``report`` (n_levels, d) times those of the columns, which undoes all scaling and sums to 0 over the levels.
    """

    X: Annotated[FloatArray, numbers("I D")]
    # encoded features to columns; None where items are their own attributes
    map: Annotated[FloatArray | None, numbers("F D")]
    kind: Annotated[npt.NDArray[np.int8], numbers("D", "int8")]  # NORMAL to TRIANGULAR
    n_random: Annotated[int, PLAIN]
    price: Annotated[int, PLAIN]  # the column of the price in the space of willingness to pay, else -1
    report: Annotated[FloatArray, numbers("L D")]
    levels: Annotated[tuple[tuple[str, str], ...], PLAIN]  # attribute and level, which is empty for a number
    notes: Annotated[tuple[str, ...], PLAIN]
    # Of columns that are products: constants of the first factor, and the second one from 1 and the encoded features.
    shift: Annotated[FloatArray | None, numbers("D")] = None
    times: Annotated[FloatArray | None, numbers("F+1 D")] = None

    def checked(self) -> None:
        """ValueError if kinds, the price or levels are none of these columns."""
        n, kinds = len(self.kind), range(-1, TRIANGULAR + 1)
        fits = np.isin(self.kind, kinds).all() and len(self.levels) == len(self.report)
        if not fits or not -1 <= self.price < n or not 0 <= self.n_random <= n:
            raise ValueError("columns, kinds and levels that do not fit each other")

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes, each once."""
        return list(dict.fromkeys(attribute for attribute, _ in self.levels))

    @property
    def sources(self) -> list[str]:
        """The attribute of each column."""
        return [self.levels[int(np.flatnonzero(column)[0])][0] for column in self.report.T]

    def second_factors(self, matrix: FloatArray) -> FloatArray:
        """Of columns that are products what the first factor is multiplied by, 1 of others, (n, d); encoded rows."""
        if self.times is None:
            return np.ones((len(matrix), self.X.shape[1]))
        return np.asarray(self.times[0] + matrix @ self.times[1:])

    def rows(self, matrix: FloatArray) -> FloatArray:
        """Columns (n, d) of new items from their encoded features; zeros where items are their own attributes."""
        if self.map is None:
            return np.zeros((len(matrix), self.X.shape[1]))
        found = matrix @ self.map
        return found if self.shift is None else (found + self.shift) * self.second_factors(matrix)


def columns_of(
    answers: Comparisons, choices: Choices, features: ItemFeatures | None, space: FeatureSpace, *,
    distributions: str | Mapping[str, str], price: str | None, personal: bool, terms: Terms | None = None,
) -> ItemColumns:  # fmt: skip
    """The columns for some choices; DataError for attributes that cannot be used as asked for."""
    products = None
    if features is None:
        coding = _constants(answers)
        raw = coding.map
    else:
        _refuse_unknown(answers, choices, space)
        coding, products = (Coding.of(features), None) if terms is None else terms.coded(features)
        raw = space.matrix @ coding.map
        if products is not None:
            raw = (raw + products[0]) * (products[1][0] + space.matrix @ products[1][1:])
    source = list(coding.source)
    price = None if price is None else term_of(price, source)
    kinds = _kinds(distributions, price, source, features)
    deviation, chosen = within_choices(raw, choices)
    deviation *= np.sqrt(np.repeat(choices.weight, np.diff(choices.ptr)))[:, None]
    gram = deviation.T @ deviation
    # Columns of one attribute have one unit, so that no level is treated otherwise than another.
    size = np.diagonal(gram) / float(choices.weight @ np.diff(choices.ptr))
    unit = np.sqrt(np.array([np.mean(size[[one == name for one in source]]) for name in source]))
    keep = independent(gram, coding)
    if price is not None and price not in {source[k] for k in keep}:
        raise DataError(
            f'the price "{price}" does not vary within choices, or follows from the other attributes, so nothing can '
            f"be valued in it. Leave {either('--price', 'price=...')} out, or name another attribute"
        )
    notes = [] if features is None or terms is None else terms.said_of_some_items(features)
    notes += left_out(coding, keep)
    if not keep:
        raise DataError("no attribute varies within choices, so there is nothing to learn from them. Give others")
    if not personal:
        kinds[:] = FIXED
    slope = np.divide(choices.weight @ chosen, unit, out=np.zeros(len(unit)), where=unit > 0.0)
    order = _in_turn(keep, kinds, slope / choices.weight.sum(), source)
    n_random = sum(kinds[k] != FIXED for k in keep)
    where = order.index(source.index(price)) if price is not None else -1
    kind = np.array([NORMAL if kinds[k] == FIXED else kinds[k] for k in order], dtype=np.int8)
    if where >= 0:
        kind[where] = NEGATIVE
    scale = 1.0 / unit[order]
    coding = coding.only(order)
    shift, times = (None, None) if products is None else (products[0][order] * scale, products[1][:, order])
    notes += [line for k in keep if (line := decided_by(chosen[:, k], source[k]))]
    return ItemColumns(
        raw[:, order] * scale, None if features is None else coding.map * scale, kind, n_random, where,
        coding.report * scale, coding.levels, tuple(notes), shift, times,
    )  # fmt: skip


def _constants(answers: Comparisons) -> Coding:
    """Items as their own attributes: contrasts, whose order depends on answers and not on names."""
    n = answers.n_items
    if n > _MOST_CONSTANTS:
        raise DataError(
            f"without attributes each of the {n} items has a coefficient of its own, and a mixed logit holds "
            f"{_MOST_CONSTANTS} of them. Give the attributes of the items ({either('--items FILE', 'items=...')})"
        )
    best = np.where(answers.outcome >= 0, answers.left, answers.right)
    wins = np.bincount(best, answers.weight * np.abs(answers.outcome), n)
    shown = np.bincount(answers.left, answers.weight, n) + np.bincount(answers.right, answers.weight, n)
    contrast = np.zeros((n, n - 1))
    contrast[np.lexsort((shown, wins))] = helmert(n).T
    levels = tuple(("item", str(name)) for name in answers.items.ids)
    return Coding(contrast, contrast, levels, ("item",) * (n - 1))


def labels_of(choices: Choices, features: ItemFeatures | None, space: FeatureSpace) -> FloatArray | None:
    """Contrasts (n_items, L - 1) of the attribute that labels the alternatives; None if there is none.

    Of no choice two items have the same value of it; of several such attributes that with the most values.
    """
    if features is None:
        return None
    owner = np.repeat(np.arange(choices.n_choices), np.diff(choices.ptr))
    best: FloatArray | None = None
    for source in dict.fromkeys(one.source for one in features.outputs if one.kind == "category"):
        places = [k for k, one in enumerate(features.outputs) if one.source == source and one.kind == "category"]
        centre, scale = (np.array([getattr(features.outputs[k], name) for k in places]) for name in ("centre", "scale"))
        has = space.matrix[:, places] * scale + centre > 0.5
        level = np.where(has.any(axis=1), has.argmax(axis=1), len(places))  # none: a level of its own
        n = int(level[choices.item].max()) + 1
        is_label = len(np.unique(owner * n + level[choices.item])) == len(owner)
        if is_label and (best is None or n > best.shape[1] + 1):
            seen = np.unique(level[choices.item])
            best = (level[:, None] == seen[1:]).astype(np.float64)
    return best if best is None or best.shape[1] else None


def _refuse_unknown(answers: Comparisons, choices: Choices, space: FeatureSpace) -> None:
    asked = np.zeros(len(space.known), dtype=bool)
    asked[choices.item] = True
    lost = np.flatnonzero(asked & ~space.known)
    if len(lost):
        first = answers.items.labels(lost[:1])[0]
        raise DataError(
            f"{len(lost)} items were chosen from and are not in the table of attributes (first: {first!r}): the "
            "mixed logit knows items by their attributes alone. Give a row for each"
        )


def _kinds(
    distributions: str | Mapping[str, str], price: str | None, source: list[str], features: ItemFeatures | None
) -> IntArray:
    """Distribution of each raw column."""
    names = list(dict.fromkeys(source))
    asked: dict[str, Any] = (
        dict.fromkeys(names, distributions) if isinstance(distributions, str)
        else {term_of(name, names): one for name, one in distributions.items()}
    )  # fmt: skip
    unknown = [name for name in [*asked, *([] if price is None else [price])] if name not in names]
    if unknown:
        dropped = [] if features is None else [line for line in features.report if f'"{unknown[0]}"' in line]
        raise DataError(
            f'there is no attribute "{unknown[0]}" to be used; there are {", ".join(names) or "none"}. '
            + (dropped[0] if dropped else f"Name one of them.{did_you_mean(unknown[0], names)}")
        )
    numbers = set() if features is None else {one.source for one in features.outputs if one.kind == "number"}
    numbers |= {name for name in names if is_product_of(name, numbers)}
    found = np.array([DISTRIBUTIONS[asked.get(name, "normal")] for name in source], dtype=np.int64)
    for name, kind in zip(source, found, strict=True):
        if name not in numbers and (name == price or kind not in (NORMAL, FIXED)):
            raise DataError(
                f'"{name}" is not a number: only numbers can be the price, or have coefficients of one sign or of a '
                "triangular distribution"
            )
    if price is not None:
        place = source.index(price)
        if source.count(price) > 1:
            raise DataError(
                f'"{price}" is piecewise linear, and has no one coefficient in which to value the others. Leave '
                f"{either('--price', 'price=...')} out, or the cuts"
            )
        if found[place] not in (NORMAL, NEGATIVE, FIXED):
            raise DataError(f'"{price}" is the price: its coefficient is "negative log-normal" or "fixed"')
        found[place] = FIXED if found[place] == FIXED else NEGATIVE
    return found


def _in_turn(keep: list[int], kinds: IntArray, slope: FloatArray, source: list[str]) -> list[int]:
    """Columns that vary between people, then the others, each by how far chosen items lie from the rest of their set.

    Columns of one attribute stay together. ``slope``: mean deviation of chosen items, of columns of size 1.
    """
    apart = {name: float(np.linalg.norm(slope[[k for k in keep if source[k] == name]])) for name in source}
    return sorted(keep, key=lambda k: (kinds[k] == FIXED, -round(apart[source[k]], _DIGITS), source[k], k))
