"""The specification of utilities: attributes by name, their products, and products with covariates of people."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from predilect._base.arguments import check_names
from predilect._base.text import did_you_mean, either, first_few, shown
from predilect._base.types import FloatArray
from predilect.data.attributes import Coding
from predilect.data.encoding import Output, product_of, product_output
from predilect.data.features import ItemFeatures, PersonFeatures
from predilect.errors import DataError

_SPECIFIC = re.compile(r"(.+)\[(.+)\]\Z", re.DOTALL)
MOST_NAMED = 10


class ByPeople(NamedTuple):
    """An attribute whose coefficient depends on a covariate of people."""

    name: str
    attribute: str
    covariate: str


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of utility: attributes, products of two ("price:quality", "price[bus,car]"), and those by people."""

    plain: tuple[str, ...]
    products: tuple[tuple[str, str, str, tuple[str, ...]], ...]  # name, first, second, and levels of the second, or ()
    by_people: tuple[ByPeople, ...]

    @classmethod
    def of(
        cls, asked: Sequence[str], features: ItemFeatures | None, people: PersonFeatures | None, *, wants: str = "",
    ) -> Terms:  # fmt: skip
        """DataError for a name that is not there, or twice; ``wants``: what has terms by people, where the model has
        none.
        """
        if isinstance(asked, str):
            raise DataError(f'attributes is a list of names, got "{shown(asked)}". Write ["{shown(asked)}"]')
        check_names("attributes", asked)
        if features is None:
            raise DataError(
                "attributes names attributes of items, and items have none. Give a table of them "
                f"({either('--items FILE', 'items=...')})"
            )
        twice = [one for k, one in enumerate(asked) if one in asked[:k]]
        if twice:
            raise DataError(f'attributes names "{shown(twice[0])}" twice')
        known, covariates = Coding.of(features).attributes, [] if people is None else people.sources
        plain: list[str] = []
        products: list[tuple[str, str, str, tuple[str, ...]]] = []
        by_people: list[ByPeople] = []
        for name in asked:
            first, colon, second = name.partition(":")
            specific = _SPECIFIC.match(name)
            if name in known:
                plain.append(name)
            elif specific and specific[1] in known:
                products.append((name, specific[1], *_levels_of(features, specific[2], name)))
            elif not colon:
                raise DataError(
                    f'there is no attribute "{shown(name)}"; there are {first_few(known, MOST_NAMED)}.'
                    f"{did_you_mean(name, known)}"
                )
            else:
                sides = [side.strip() for side in (first, second)]
                sides = sides if sides[0] in known else sides[::-1]
                lost = [one for one in sides if one not in known and one not in covariates]
                if lost or sides[0] not in known:
                    there = f"; covariates of people are {', '.join(covariates)}" if covariates else ""
                    said = f'there is no "{shown(lost[0])}"' if lost else "neither is an attribute of items"
                    come = f"come in a table ({either('--people FILE', 'people=...')})"
                    raise DataError(
                        f'"{shown(name)}" is an interaction, and {said}: attributes are '
                        f"{first_few(known, MOST_NAMED)}{there}. Covariates of people "
                        + (f"have terms in {wants} alone, and {come}" if wants else come)
                    )
                if sides[1] in known:
                    products.append((name, sides[0], sides[1], ()))
                else:
                    by_people.append(ByPeople(name, sides[0], sides[1]))
        found = cls(tuple(plain), tuple(products), tuple(by_people))
        for one in by_people:
            if one.attribute not in plain:
                raise DataError(
                    f'"{shown(one.name)}" says how the coefficient of {shown(one.attribute)} depends on '
                    f'{shown(one.covariate)}: name "{shown(one.attribute)}" among the attributes too'
                )
        if not plain and not products:
            raise DataError("attributes is an empty list. Name some, or leave it out for all of them")
        return found

    @classmethod
    def of_all(cls, features: ItemFeatures) -> Terms:
        """All attributes, without the marks of gaps that a category tells."""
        told = {f"{name} missing" for name in features.only}
        return cls(tuple(name for name in Coding.of(features).attributes if name not in told), (), ())

    def of_some_items(self, features: ItemFeatures) -> Terms:
        """Where only items with some levels of a category have an attribute, "fee[car]" in place of "fee".

        DataError for a product with one.
        """
        only = {name: f"{name}[{','.join(one.levels)}]" for name, one in features.only.items() if name in self.plain}
        for name, first, second, levels in self.products:
            lost = [] if levels else [one for one in (first, second) if one in features.only]
            if lost:
                raise DataError(
                    f'"{shown(name)}" is a product, and items have "{shown(lost[0])}" only '
                    f"{features.only[lost[0]]}. Leave it out, or make it a column of the table of items"
                )
        own = tuple((term, name, *features.only[name]) for name, term in only.items() if term not in self.names)
        plain = tuple(name for name in self.plain if name not in only)
        by_people = tuple(one._replace(attribute=only.get(one.attribute, one.attribute)) for one in self.by_people)
        return Terms(plain, self.products + own, by_people)

    def said_of_some_items(self, features: ItemFeatures) -> list[str]:
        """What to know of attributes that only some items have, in sentences."""
        there = {first for _, first, _, levels in self.products if levels}
        return [
            f'"{shown(name)}" is of items {one} alone, and its coefficient is theirs.'
            for name, one in features.only.items()
            if name in there
        ]

    @property
    def names(self) -> set[str]:
        """Names of the terms of items."""
        return {*self.plain, *(name for name, *_ in self.products)}

    def features_of(self, features: ItemFeatures) -> ItemFeatures:
        """Features of the terms alone, with a column for each product; DataError for one whose factors are no terms.

        Columns of products are of centred factors, which hardly follow from the factors themselves.
        """
        named = [_attribute_of(one) for one in features.outputs]
        needed = [(name, one) for name, first, second, _ in self.products for one in (first, second)]
        needed += [
            (one.source, named[k]) for one in features.outputs if one.source in self.plain for k in one.factors or ()
        ]
        for name, factor in needed:
            if factor not in self.plain:
                raise DataError(
                    f'"{shown(name)}" is learned beside what it is a product of: name "{shown(factor)}" among the '
                    "attributes too"
                )
        keep = [k for k, name in enumerate(named) if name in self.plain]
        place = {k: new for new, k in enumerate(keep)}
        outputs = [
            replace(one, factors=None if one.factors is None else (place[one.factors[0]], place[one.factors[1]]))
            for one in (features.outputs[k] for k in keep)
        ]
        matrix = features.matrix[:, keep]
        for name, first, second, levels in self.products:
            sides = [[place[k] for k in keep if named[k] == one] for one in (first, second)]
            if len(levels) > 1:
                several = ", ".join(f"{first}[{one}]" for one in levels)
                raise DataError(f'"{shown(name)}" is of several levels at once: name {shown(several)} here')
            if levels:
                sides[1] = [k for k in sides[1] if outputs[k].category in levels]
            for i, k in product(*sides):
                label = "" if levels else ":".join(filter(None, (_level(outputs[one]) for one in (i, k))))
                one = product_output("=".join(filter(None, (name, label))), name, (i, k), matrix)
                outputs.append(one)
                matrix = np.column_stack([matrix, one.scaled(product_of(matrix, (i, k)))])
        return replace(features, matrix=matrix, outputs=tuple(outputs), n_columns_before_constants=len(outputs))

    def coded(self, features: ItemFeatures) -> tuple[Coding, tuple[FloatArray, FloatArray] | None]:
        """Columns of the terms, and of products the constants of their first factors (d,) and second factors (F+1, d).

        A factor is in its own units: products of centred numbers would have other coefficients of their parts.
        """
        whole = Coding.of(features)
        coding = whole.only([k for k, name in enumerate(whole.source) if name in self.plain])
        if not self.products:
            return coding, None
        n = len(features.outputs)
        shift, times = [np.zeros(coding.map.shape[1])], [np.eye(n + 1, 1).repeat(coding.map.shape[1], axis=1)]
        for name, first, second, only in self.products:
            A, a, report_a, levels_a = factor(whole, features, first)
            B, b, report_b, levels_b = factor(whole, features, second, only)
            k, m = A.shape[1], B.shape[1]
            shift.append(np.repeat(a, m))
            times.append(np.vstack([np.tile(b, k), np.tile(B, k)]))
            levels = [(name, ":".join(filter(None, (one, other)))) for one in levels_a for other in levels_b]
            coding = replace(
                coding, map=np.hstack([coding.map, np.repeat(A, m, axis=1)]),
                report=blocks(coding.report, products_of(report_a, report_b)), levels=(*coding.levels, *levels),
                source=coding.source + (name,) * (k * m),
            )  # fmt: skip
        return coding, (np.concatenate(shift), np.hstack(times))


def _attribute_of(output: Output) -> str:
    """What :class:`Coding` calls the attribute of a column."""
    return output.name if output.kind == "missing" else output.source


def _level(output: Output) -> str:
    return output.category or output.piece


def is_product_of(name: str, numbers: Collection[str]) -> bool:
    """Whether a term is a number times a number, or times whether an alternative is one."""
    specific = _SPECIFIC.match(name)
    first, _, second = name.partition(":")
    return (specific is not None and specific[1] in numbers) or {first.strip(), second.strip()} <= set(numbers)


def _levels_of(features: ItemFeatures, text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """The category that has a level, or several ones with commas between; DataError if none has, or several have."""
    known = [str(one.category) for one in features.outputs if one.kind == "category"]
    levels = (text,) if text in known else tuple(one.strip() for one in text.split(","))
    of = {source: {features.outputs[k].category for k in features.places_of(source)} for source in features.sources}
    found = [source for source, its in of.items() if set(levels) <= its]
    if len(found) != 1 or len(set(levels)) < len(levels):
        lost = next((one for one in levels if one not in known), text)
        why = f"{' and '.join(found)} have it" if len(found) > 1 else "no category has this level"
        raise DataError(
            f'"{shown(name)}" is a coefficient for "{shown(lost)}" alone, and {why}.{did_you_mean(lost, known)}'
        )
    return found[0], levels


def factor(
    whole: Coding, features: ItemFeatures, source: str, levels: Sequence[str] = ()
) -> tuple[FloatArray, FloatArray, FloatArray, list[str]]:
    """Columns (F, k) of an attribute in its units with their constants (k,), the way back (L, k), and the levels.

    With ``levels`` of a category: one column, of whether an item has any of them.
    """
    outputs = features.outputs
    if levels:
        places = [k for k in features.places_of(source) if outputs[k].category in levels]
        A = np.zeros((len(outputs), 1))
        A[places, 0] = [outputs[k].scale for k in places]
        return A, np.array([sum(outputs[k].centre for k in places)]), np.ones((1, 1)), [""]
    mine = [k for k, name in enumerate(whole.source) if name == source]
    own_levels = [k for k, (name, _) in enumerate(whole.levels) if name == source]
    A = whole.map[:, mine]
    # A column is Σ map (raw - centre) / scale.
    centre = np.array([one.centre / one.scale for one in outputs])
    return A, centre @ A, whole.report[np.ix_(own_levels, mine)], [whole.levels[k][1] for k in own_levels]


def products_of(first: FloatArray, second: FloatArray) -> FloatArray:
    """The way back of products of columns, from those of both."""
    return np.asarray(np.kron(first, second), dtype=np.float64)


def blocks(first: FloatArray, second: FloatArray) -> FloatArray:
    """A matrix with two others along its diagonal."""
    found = np.zeros((first.shape[0] + second.shape[0], first.shape[1] + second.shape[1]))
    found[: len(first), : first.shape[1]], found[len(first) :, first.shape[1] :] = first, second
    return found
