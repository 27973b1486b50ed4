"""The conjoint kit of a fitted mixed logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.attributes import ItemColumns
from predilect.choice.mixed_logit.posterior import MixedLogitPosterior
from predilect.decisions.conjoint import Span, logit_chances, ranges_of, spans_of


class ItemRows(NamedTuple):
    """Columns of items (k, d), and their encoded attributes (k, n_features)."""

    X: FloatArray
    encoded: FloatArray


@dataclass(frozen=True, slots=True)
class LogitDraws:
    """Draws of people's coefficients, as the conjoint kit takes them."""

    posterior: MixedLogitPosterior
    columns: ItemColumns
    spans: list[Span]
    of_one_population: bool

    @classmethod
    def of(cls, posterior: MixedLogitPosterior, columns: ItemColumns, of_one_population: bool) -> LogitDraws:
        """Draws of a posterior, with what occurs in the items."""
        return cls(posterior, columns, spans_of(columns.levels, columns.report, columns.X), of_one_population)

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """See :class:`~predilect.decisions.conjoint.PersonDraws`."""
        return self.columns.levels

    @property
    def n_people(self) -> int:
        """Number of people."""
        return len(self.posterior.people)

    def coefficients(self, user: int) -> FloatArray:
        """Draws in the units of the attributes, (R, n_levels)."""
        return self._draws(user) @ self.columns.report.T

    def population(self) -> None:
        """The population follows from the draws of people."""

    def ranges(self, user: int) -> FloatArray:
        """How far utilities are apart by each attribute over the items, (R, n_attributes)."""
        return ranges_of(self._draws(user), self.spans)

    def utilities(self, user: int | None, rows: ItemRows) -> FloatArray:
        """Utilities of items, (R, n_items)."""
        return self._draws(user) @ rows.X.T

    def chances(self, V: FloatArray) -> FloatArray:
        """Probabilities of each item to be chosen, from utilities (R, n_items)."""
        return logit_chances(V)

    def chance_of_first(self, V: FloatArray) -> FloatArray:
        """That of the first item alone, (R,)."""
        return logit_chances(V)[:, 0]

    def _draws(self, user: int | None) -> FloatArray:
        if user is None or user >= 0:
            return self.posterior.draws_of(-1 if user is None else user)
        return self.posterior.central
