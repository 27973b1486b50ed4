"""Attributes of items as columns whose coefficients answers tell apart, and the way back to their own units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import helmert
from scipy.sparse import csr_array

from predilect._base.text import first_few, shown
from predilect._base.types import FloatArray, IntArray
from predilect.data.comparisons import Comparisons
from predilect.data.encoding import Output
from predilect.data.features import FeatureSpace, ItemFeatures
from predilect.errors import DataError

_NEGLIGIBLE = 1e-8  # of a column's variance within answers, beside those of others
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Coding:
    """Attributes as d columns: numbers and their pieces, a category of L levels as L - 1 contrasts.

    Numbers are in their units over a power of two, near 1: their squares neither overflow nor vanish.

    Reported coefficients, one a number or a level of a category, are ``report`` times those of the columns; they sum to
    0 over the levels.
    """

    map: FloatArray  # (n_features, d): encoded features to columns
    report: FloatArray  # (n_levels, d)
    levels: tuple[tuple[str, str], ...]  # attribute and level, which is empty for a number
    source: tuple[str, ...]  # the attribute of each column

    @classmethod
    def of(cls, features: ItemFeatures) -> Self:
        """The coding of all attributes."""
        outputs = features.outputs
        made: list[FloatArray] = []
        source: list[str] = []
        back: list[tuple[int, FloatArray]] = []
        levels: list[tuple[str, str]] = []
        for places in columns_of_attributes(features):
            first = outputs[places[0]]
            contrast, in_units = _contrasts(outputs, places), _in_units(outputs, places)
            if first.kind == "category":
                levels += [(first.source, str(outputs[k].category)) for k in places]
            elif first.kind == "product":
                levels += [(first.source, outputs[k].name.removeprefix(first.source)[1:]) for k in places]
            else:
                levels.append((first.source if first.kind == "number" else first.name, first.piece))
            size = np.abs(in_units).max()
            if first.kind == "number":  # all pieces
                size = max(one.scale for one in outputs if (one.kind, one.source) == (first.kind, first.source))
            exponent = int(np.frexp(size)[1])
            for column in contrast.T:
                made.append(column @ np.ldexp(in_units, -exponent))
                source.append(levels[-1][0])
                back.append((len(levels) - len(places), np.ldexp(column, -exponent)))
        report = np.zeros((len(levels), len(made)))
        for k, (begin, column) in enumerate(back):
            report[begin : begin + len(column), k] = column
        return cls(np.array(made).reshape(len(made), len(outputs)).T, report, tuple(levels), tuple(source))

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes, each once."""
        return list(dict.fromkeys(name for name, _ in self.levels))

    def only(self, keep: Sequence[int]) -> Self:
        """With some of the columns, in this order; what has none of them left is not reported."""
        columns = list(keep)
        report = self.report[:, columns]
        reported = np.flatnonzero(report.any(axis=1)).tolist()
        return replace(
            self, map=self.map[:, columns], report=report[reported], levels=tuple(self.levels[k] for k in reported),
            source=tuple(self.source[k] for k in columns),
        )  # fmt: skip


def _contrasts(outputs: Sequence[Output], places: Sequence[int]) -> FloatArray:
    """Orthonormal columns (L, k): of categories those that sum to 0, of products those of both factors multiplied."""
    if outputs[places[0]].kind == "product":
        sides = (
            list(dict.fromkeys(one.factors[side] for k in places if (one := outputs[k]).factors)) for side in (0, 1)
        )
        first, second = (_contrasts(outputs, side) for side in sides)
        return np.asarray(np.kron(first, second), dtype=np.float64)
    if outputs[places[0]].kind == "category" and len(places) > 1:
        return np.asarray(helmert(len(places)).T)
    return np.eye(len(places))


def _in_units(outputs: Sequence[Output], places: Sequence[int]) -> FloatArray:
    """What encoded features make, but for constants, the raw values at some places, (L, n_features).

    Of a product these are the products of its factors in their units.
    """
    found = np.zeros((len(places), len(outputs)))
    for row, k in zip(found, places, strict=True):
        row[k] = outputs[k].scale
        if (factors := outputs[k].factors) is not None:
            one, other = factors
            row[k] *= outputs[one].scale * outputs[other].scale
            row[one] += outputs[one].scale * outputs[other].centre
            row[other] += outputs[other].scale * outputs[one].centre
    return found


def columns_of_attributes(features: ItemFeatures) -> list[list[int]]:
    """Columns that belong together: all categories of a source, all of a product, and each other column by itself."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, output in enumerate(features.outputs):
        key = (output.kind, output.source) if output.kind in ("category", "product") else ("", output.name)
        found.setdefault(key, []).append(place)
    return list(found.values())


def independent(gram: FloatArray, coding: Coding) -> list[int]:
    """Columns that are no linear functions of others, from their inner products (d, d).

    Where some follow from each other, those of the attribute with the most levels stay, such as the constants of the
    alternatives, and of several with as many the first: rows of a Cholesky factor, without those that are next to
    nothing. O(r² d) for r columns that stay.
    """
    n_levels = Counter(name for name, _ in coding.levels)
    keep: list[int] = []
    rest, R = gram.diagonal().copy(), np.zeros_like(gram)  # of each column beside those that stay
    for k in sorted(range(len(gram)), key=lambda k: -n_levels[coding.source[k]]):
        if rest[k] > _NEGLIGIBLE * gram[k, k]:
            above = R[: len(keep)]
            row = (gram[k] - above[:, k] @ above) / np.sqrt(rest[k])
            R[len(keep)], rest = row, rest - row**2
            keep.append(k)
    return sorted(keep)


def identified_columns(answers: Comparisons, space: FeatureSpace, coding: Coding) -> list[int]:
    """Columns whose coefficients answers tell apart, by the differences of the two items of each row."""
    rows = space.known[answers.left] & space.known[answers.right]
    left, right, weight = answers.left[rows], answers.right[rows], answers.weight[rows]
    n = answers.n_items
    ends: tuple[IntArray, IntArray] = (np.r_[left, right, left, right], np.r_[left, right, right, left])
    laplacian = csr_array((np.r_[weight, weight, -weight, -weight], ends), shape=(n, n))
    columns = space.matrix @ coding.map
    return independent(columns.T @ (laplacian @ columns), coding)


def left_out(coding: Coding, keep: Sequence[int]) -> list[str]:
    """What to know of attributes that have columns which are not kept, in sentences."""
    lost = list(dict.fromkeys(name for k, name in enumerate(coding.source) if k not in keep))
    if not lost:
        return []
    return [
        f"Within answers nothing of {first_few(lost, _MOST_NAMED)} varies that other attributes do not tell: "
        "what attributes are worth is said without it."
    ]


def term_of(name: str, attributes: Sequence[str]) -> str:
    """The term of an attribute that only some alternatives have, "fee[car]" of "fee"; other names as they are."""
    found = [] if name in attributes else [one for one in dict.fromkeys(attributes) if one.startswith(f"{name}[")]
    return found[0] if len(found) == 1 else name


def refuse_left_out(name: str, features: ItemFeatures, attributes: Sequence[str]) -> None:
    """DataError for an attribute that is none of those whose worth answers tell."""
    if name in features.sources and term_of(name, attributes) not in attributes:
        raise DataError(
            f'what "{shown(name)}" is worth is not known: within answers nothing of it varies that other attributes do '
            f"not tell. Name another; these are: {first_few(attributes, _MOST_NAMED) or 'none'}"
        )
