"""Coefficients that depend on covariates of people: columns of differences times a covariate, and their way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect._base.text import first_few, shown
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.attributes import ItemColumns
from predilect.choice.mixed_logit.problem import ChoiceProblem
from predilect.data import PersonFeatures, Vocabulary
from predilect.data.attributes import Coding
from predilect.data.features import Traits
from predilect.data.terms import MOST_NAMED, Terms, blocks, factor, products_of
from predilect.errors import DataError

_NEGLIGIBLE = 1e-10  # of the largest eigenvalue of columns' inner products


@dataclass(frozen=True, slots=True)
class Shifts:
    """Columns of differences that are those of items times a covariate of the person who chooses.

    Column i is D[:, place[i]] times w[:, covariate[i]] over ``size[i]``: its coefficient γ_i adds γ_i w / size to that
    of the column at its place.
    """

    place: IntArray  # (I,)
    covariate: IntArray
    size: FloatArray
    w: FloatArray  # covariates of people, (U, W)
    mean: FloatArray  # (W,)
    traits: Traits  # that give w - mean from encoded features
    report: FloatArray  # (L, I)
    levels: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, terms: Terms, source: Sequence[str], report: FloatArray, levels: Sequence[tuple[str, str]],
        people: PersonFeatures, users: Vocabulary,
    ) -> Shifts:  # fmt: skip
        """From the items' columns, whose attributes are ``source`` and whose way back is ``report``.

        DataError if somebody has no covariates.
        """
        matrix, known = people.align(users)
        if not known.all():
            lost = users.labels(np.flatnonzero(~known)[:1])[0]
            raise DataError(
                f"{int((~known).sum())} of {len(users)} people have no row in the table of people (first: {lost!r}), "
                f'and "{shown(terms.by_people[0].name)}" needs their {shown(terms.by_people[0].covariate)}'
            )
        coding = Coding.of(people)
        w: list[FloatArray] = []
        rotation: list[FloatArray] = []
        place: list[int] = []
        covariate: list[int] = []
        parts: list[FloatArray] = []
        names: list[tuple[str, str]] = []
        for one in terms.by_people:
            A, a, back, of_people = factor(coding, people, one.covariate)
            mine = [k for k, name in enumerate(source) if name == one.attribute]
            own_levels = [k for k, (name, _) in enumerate(levels) if name == one.attribute]
            first = len(w)
            w += list((matrix @ A + a).T)
            rotation += list(A.T)
            place += [k for k in mine for _ in range(A.shape[1])]
            covariate += [first + g for _ in mine for g in range(A.shape[1])]
            parts.append(products_of(report[np.ix_(own_levels, mine)], back))
            names += [
                (one.name, ":".join(filter(None, (levels[k][1], other)))) for k in own_levels for other in of_people
            ]
        whole = parts[0]
        for block in parts[1:]:
            whole = blocks(whole, block)
        W = np.array(w).T
        traits = Traits(matrix.mean(axis=0), np.array(rotation).T)
        return cls(
            np.array(place), np.array(covariate), np.ones(len(place)), W, W.mean(axis=0), traits, whole, tuple(names)
        )

    def extended(self, problem: ChoiceProblem, columns: ItemColumns) -> tuple[Shifts, ChoiceProblem, ItemColumns]:
        """With columns of size 1, the problem with them, and all columns for what is reported.

        DataError if nothing of an interaction varies that other columns do not tell.
        """
        person = np.repeat(problem.people, np.diff(problem.row_ptr[problem.choice_ptr]))
        more = problem.D[:, self.place] * self.w[person][:, self.covariate]
        size = np.sqrt(np.square(more).mean(axis=0))
        scaled = np.divide(more, size, out=np.zeros_like(more), where=size > 0.0)
        D = np.asfortranarray(np.hstack([problem.D, scaled]))
        gram = D.T @ D
        values = np.linalg.eigvalsh(gram)
        if values[0] <= _NEGLIGIBLE * values[-1]:
            names = first_few(list(dict.fromkeys(name for name, _ in self.levels)), MOST_NAMED)
            raise DataError(
                f"within answers nothing of {names} varies that other attributes do not tell. Leave an interaction out"
            )
        kind = np.concatenate([problem.kind, np.zeros(len(self.place), dtype=np.int8)])
        report = blocks(columns.report, self.report / size)
        own_levels = replace(columns, kind=kind, report=report, levels=(*columns.levels, *self.levels))
        return replace(self, size=size), replace(problem, D=D, kind=kind), own_levels

    def folded(self, B: FloatArray) -> FloatArray:
        """B (S, K, 1, d + I) as (S, K, 1 + W, d): what the centred covariates add to the coefficients of items."""
        d = B.shape[3] - len(self.place)
        found = np.zeros((*B.shape[:2], 1 + len(self.mean), d))
        found[:, :, 0] = B[:, :, 0, :d]
        for i, (j, g) in enumerate(zip(self.place, self.covariate, strict=True)):
            gamma = B[:, :, 0, d + i] / self.size[i]
            found[:, :, 1 + g, j] += gamma
            found[:, :, 0, j] += gamma * self.mean[g]
        return found

    def of_each(self, people: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Coefficients of people (U, R, d + I) as (U, R, d)."""
        d = people.shape[2] - len(self.place)
        found = people[..., :d].astype(np.float64)
        for i, (j, g) in enumerate(zip(self.place, self.covariate, strict=True)):
            found[..., j] += people[..., d + i] * (self.w[:, None, g] / self.size[i])
        return found.astype(np.float32)
