"""The conjoint kit of a population model: the linear function of attributes that is closest to utilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from predilect._base.json import typed
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.attributes import Coding, left_out
from predilect.decisions.conjoint import Span, ranges_of, spans_of
from predilect.decisions.sets import chance_of_first, choice_chances
from predilect.errors import DataError
from predilect.inference.gaussian.dense import opposite_draws, root_of_difference, symmetrise
from predilect.inference.people.combinations import Combinations, ConsensusDraws
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.coefficients import Coefficients, LinearFunctions

_PAIRS = 200  # of opposite draws, of each person
_POPULATION = (0, 2)  # which stream of the seed
# Consistencies at which they are drawn, in standard deviations of its logarithm: equally likely, of variance 1.
_AWAY = ndtri((np.arange(8) + 0.5) / 8)
_AWAY /= _AWAY.std()


def coding_of(model: Any) -> tuple[Coding, list[int]]:
    """The coding of all attributes, and its columns whose coefficients the answers of the fit tell apart."""
    coding = Coding.of(model.features_)
    columns = typed(list[int], model.report_["attributes"]["columns"], "columns")
    if columns != [k for k in range(len(coding.source)) if k in columns]:
        raise ValueError(f"columns {columns!r:.100} of {len(coding.source)} of the attributes")
    return coding, columns


def describe_attributes(model: Any) -> list[str]:
    """Sentences on attributes that are left out of what attributes are worth."""
    return [] if model.features_ is None else left_out(*coding_of(model))


@dataclass(slots=True)
class CoefficientDraws:
    """Draws of people's coefficients, as the conjoint kit takes them; see :mod:`predilect.decisions.conjoint`.

    Coefficients of a person are those of the linear function of the attributes that is closest, by least squares over
    the items that have some, to the person's utilities in units of the person's noise. What items have to themselves,
    or a basis of items, is so told in the words of the attributes as far as these go. In each draw the consensus is the
    same for all people, so that averages over them are as unsure as it is. O(k) for a person with functions and k own
    items.
    """

    posterior: PopulationPosterior
    coding: Coding
    fit: FloatArray  # pseudo-inverse of the columns of the items, centred, (n_columns, n_items)
    level: FloatArray  # of the items that have some: the mean of their utilities, as weights, (n_items,)
    spans: list[Span]
    seed: int
    # By how many standard deviations consistencies are away, with what is known then; empty for a pooled model
    states: list[tuple[float, PopulationPosterior]]
    consensus: ConsensusDraws | None  # None for a pooled model
    columns: FloatArray  # of the items, centred; zeros for those without attributes, (n_items, n_columns)
    known: BoolArray  # items that have attributes, (n_items,)
    tie_threshold: float
    consensus_variance: float  # prior variance of a consensus utility
    last: tuple[Any, Combinations] | None = None  # what was asked for last, and what of it is the same for everybody
    found: tuple[FloatArray, FloatArray] | None = None  # of the population, once it was asked for
    of_one_population: ClassVar[bool] = True

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """Attribute and level of each coefficient."""
        return self.coding.levels

    @property
    def n_people(self) -> int:
        """Number of people; 1 for a pooled model."""
        return 1 if self.posterior.is_pooled else self.posterior.n_users

    def coefficients(self, user: int) -> FloatArray:
        """Draws in the units of the attributes, (R, n_levels)."""
        if user == -1 and (found := self.population()) is not None:
            return found[0]
        return self._drawn(self.fit, user) @ self.coding.report.T

    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Means of the population's coefficients in draws, and how people differ in them; None for a pooled model.

        They are those of a hierarchical linear model: what items have to themselves is noise of answers to it.
        """
        posterior = self.posterior
        if self.found is None and not posterior.is_pooled and posterior.consolidated().people.n_rows:
            functions = LinearFunctions.of(self.columns, self.known)
            linear = Coefficients.of(posterior, functions.Phi, self.tie_threshold, self.consensus_variance)
            rng = np.random.default_rng([self.seed, *_POPULATION])
            means, spreads = linear.drawn(functions.coefficients(self.coding.report), rng)
            self.found = means + self._widening(len(means), rng), spreads
        return self.found

    def _widening(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draws of what else than answers one by one leaves unknown of the means: contexts, for one; (R, n_levels)."""
        posterior, report = self.posterior, self.coding.report
        if posterior.C_answers is None:
            return np.zeros((n_draws, len(report)))
        on_basis = report @ (self.fit if posterior.basis is None else self.fit @ posterior.basis.Phi)
        root = root_of_difference(symmetrise(on_basis @ (posterior.C_m - posterior.C_answers) @ on_basis.T))
        return np.asarray(rng.standard_normal((n_draws, root.shape[1])) @ root.T)

    def ranges(self, user: int) -> FloatArray:
        """How far utilities are apart by each attribute over the items, (R, n_attributes)."""
        return ranges_of(self._drawn(self.fit, user), self.spans)

    def utilities(self, user: int | None, rows: LinearRows) -> FloatArray:
        """Utilities of items, with what each known one has to itself, in units of the user's noise; (R, k)."""
        return self._drawn(rows, user)

    def chances(self, V: FloatArray) -> FloatArray:
        """Probabilities of each item to be chosen, from utilities (R, k)."""
        return choice_chances(V)

    def chance_of_first(self, V: FloatArray) -> FloatArray:
        """That of the first item alone, (R,)."""
        return chance_of_first(V)

    def _drawn(self, asked: FloatArray | LinearRows, user: int | None) -> FloatArray:
        """Draws of what is asked for, over the utilities and the consistency, (R, q).

        ``asked``: rows of items, or A (q, n_items) for A f.
        """
        rng = np.random.default_rng([self.seed] if user is None else [self.seed, user + 1])
        if self.consensus is None or user == -1:
            return opposite_draws(*self.posterior.crowd().combined(self._combined(asked)), 2 * _PAIRS, rng)
        if self.last is None or self.last[0] is not asked:
            self.last = asked, Combinations.of(self.posterior, self._combined(asked), self.consensus)
        code, shared = -1 if user is None else user, self.last[1]
        spread = self.posterior.calibration.consistency_spread
        found = np.empty((2, _PAIRS, len(shared.A)))
        # In any order, or all people would be consistent in the same draws.
        parts = rng.permutation(_PAIRS).reshape(len(self.states), -1)
        for pairs, (away, posterior) in zip(parts, self.states, strict=True):
            factor = np.exp(away * spread) if user is None else posterior.consistency_of(code)
            given = posterior.combined(code, shared).times(factor)
            root = root_of_difference(given.covariance)
            moved = given.moved[pairs] + rng.standard_normal((len(pairs), root.shape[1])) @ root.T
            found[:, pairs] = given.mean + moved, given.mean - moved
        return found.reshape(2 * _PAIRS, -1)

    def _combined(self, rows: FloatArray | LinearRows) -> FloatArray:
        """A with A f the utilities of items, (k, n_items), or as it is given."""
        if not isinstance(rows, LinearRows):
            return rows
        A = rows.columns @ self.coding.map @ self.fit
        known = rows.codes >= 0
        A[known, rows.codes[known]] += 1.0
        A[~known] += self.level
        return A


def draws_of(model: Any) -> CoefficientDraws:
    """Draws of a fitted model; DataError without attributes."""
    if model.features_ is None:
        raise DataError(
            "what attributes are worth needs attributes, and this model was fitted without: fit(..., items=table), "
            "one row an item"
        )
    if not model.features_.outputs:
        raise DataError(f"no attribute differs between the items: {' '.join(model.features_.report)}")
    every, columns = coding_of(model)
    coding = every.only(columns)
    if not columns:
        raise DataError(f"nothing is learned of what attributes are worth. {' '.join(describe_attributes(model))}")
    known = model._space.known
    X = model._space.matrix @ coding.map
    X = np.where(known[:, None], X - X[known].mean(axis=0), 0.0)
    size = np.sqrt((X**2).sum(axis=0))
    fit = np.linalg.pinv(X / size) / size[:, None]
    level = known / known.sum()
    spans = spans_of(coding.levels, coding.report, X)
    posterior, seed = model.posterior_, model.seed_
    consensus, states = None, []
    if not posterior.is_pooled:
        consensus = ConsensusDraws.of(posterior, _PAIRS, np.random.default_rng([seed, 0]))
        aways = _AWAY.tolist() if posterior.calibration.consistency_spread else [0.0]
        states = [(away, posterior.with_consistencies(away)) for away in aways]
    h = model.hyperparameters_.in_unit()
    return CoefficientDraws(
        posterior, coding, fit, level, spans, seed, states, consensus, X, known, model.tie_threshold_,
        h.consensus_variance,
    )  # fmt: skip


class LinearRows(NamedTuple):
    """Items by what the linear function of the attributes adds to one that is known, or to the average item.

    ``codes``: of the items, -1 for the average of those with attributes, (k,); ``columns``: by how much the encoded
    attributes differ from it, (k, n_columns).
    """

    codes: IntArray
    columns: FloatArray


def rows_of(model: Any, codes: IntArray, described: FloatArray) -> LinearRows:
    """Items with these codes; those that the model does not know by their encoded attributes alone."""
    columns, new = np.zeros((len(codes), described.shape[1])), codes >= len(model.items_)
    if new.any():
        average = model._space.matrix[model._space.known].mean(axis=0)
        columns[new] = described[codes[new] - len(model.items_)] - average
    return LinearRows(np.where(new, -1, codes), columns)
