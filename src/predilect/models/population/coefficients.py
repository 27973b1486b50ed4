"""What attributes are worth in a population model: the linear function of them that is closest to utilities, in draws.

That of the population is of a hierarchical linear model of the attributes: people.md, "The population of coefficients".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from predilect._base.compile import kernel
from predilect._base.json import typed
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.attributes import Coding, left_out
from predilect.decisions.conjoint import Span, interval_of_spread, ranges_of, spans_of
from predilect.decisions.questions import chance_of_first, choice_chances, expected_largest
from predilect.errors import DataError
from predilect.inference.gaussian.dense import (
    factorise,
    opposite_draws,
    root_of_difference,
    semidefinite_root,
    symmetrise,
)
from predilect.inference.gaussian.small import DEGREES, draw_covariance, draw_normal, draw_scale, inverse
from predilect.inference.likelihoods.special import TAILS_95
from predilect.inference.people.combinations import Combinations, ConsensusDraws
from predilect.inference.people.layout import People
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationState, fit_population
from predilect.models.population.prior import PopulationPrior, least_strength

_N_DRAWS, _BURN, _THIN = 1000, 300, 5
_MOST_VISITS = 400_000  # of people by the sweeps that are kept: of many people fewer sweeps lie between two draws
_MOST_PEOPLE, _MOST_FUNCTIONS = 2000, 20  # beyond, the covariance stays as estimated
# Prior of the covariance at which answers are approximated, in people, and of people's utilities about the mean
_STRENGTH, _VARIANCE = 2.0, 1.0
_WIDTH = 5.0  # of the half-t prior of standard deviations
# Least prior variance of m: one that is learned would draw in what answers hardly tell, as of two attributes alike.
_LEAST_VARIANCE = 25.0
_PAIRS = 200  # of opposite draws, of each person
_POPULATION = (0, 2)  # which stream of the seed
# Consistencies at which they are drawn, in standard deviations of its logarithm: equally likely, of variance 1.
_AWAY = ndtri((np.arange(8) + 0.5) / 8)
_AWAY /= _AWAY.std()


class LinearFunctions(NamedTuple):
    """Φ (n_items, M) of a linear model: columns of the attributes, and one for each item without attributes."""

    Phi: FloatArray
    size: FloatArray  # by which columns of the attributes are divided, (n_columns,)

    @classmethod
    def of(cls, columns: FloatArray, known: BoolArray) -> LinearFunctions:
        """From centred columns of the items (n_items, n_columns), which say nothing of those that are not known."""
        size = np.sqrt((columns[known] ** 2).mean(axis=0) * columns.shape[1])
        return cls(np.hstack([columns / size, np.eye(len(known))[:, ~known]]), size)

    def coefficients(self, report: FloatArray) -> FloatArray:
        """``report`` (q, n_columns) of the columns, of the coefficients of the functions, (q, M)."""
        found = np.zeros((len(report), self.Phi.shape[1]))
        found[:, : len(self.size)] = report / self.size
        return found


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Coefficients b_u ~ N(m, Σ) of M functions, and the Gaussian that stands for each person's answers."""

    mean: FloatArray  # m at its mode, (M,)
    covariance: FloatArray  # of m at the estimated Σ, (M, M)
    Sigma: FloatArray  # estimated, (M, M)
    prior_precision: float  # of each element of m
    information: FloatArray  # H_u of people with answers, (U, M, M)
    linear: FloatArray  # h_u, (U, M)
    engaged: FloatArray  # probability that a person does not click at random, (U,)

    @classmethod
    def of(cls, posterior: PopulationPosterior, Phi: FloatArray, delta: float, variance: float) -> Coefficients:
        """Fit of utilities Φ b_u to the answers of a population, whose people answer as consistently as it found.

        ``Phi`` (n_items, M) has rows of mean square 1; ``variance`` is that of a consensus utility. Traits of people
        are part of how they differ. O(U n² M) a pass, as a fit.
        """
        people = posterior.consolidated().people
        # Who clicks at random stays as it was found.
        people = replace(people, traits=np.zeros((people.n_users, 0)), clicks=np.zeros(0))
        M, effects = Phi.shape[1], posterior.covariates
        variance = max(variance, _LEAST_VARIANCE)
        spread = () if effects is None else tuple(effects.spread.tolist())
        prior = PopulationPrior(np.eye(M), _STRENGTH, _VARIANCE, variance, Phi=Phi, covariate_spread=spread)
        prior = replace(prior, strength=max(_STRENGTH, least_strength(prior, people.n_active, people.n_answers)))
        state = fit_population(people, prior, delta=delta)
        return cls._at(state, people, prior)

    @classmethod
    def _at(cls, state: PopulationState, people: People, prior: PopulationPrior) -> Coefficients:
        fitted = state.posterior(people, prior)
        people, sites, law = fitted.people, fitted.sites, fitted.law
        users = np.flatnonzero(np.diff(people.answer_ptr))
        M = len(state.m)
        score, information = np.empty((len(users), M)), np.empty((len(users), M, M))
        for place, user in enumerate(users.tolist()):
            items, x, Q = people.sums(user, sites, law)
            rows, k = law.Phi[items], len(items)
            score[place], information[place] = rows.T @ x[:k], rows.T @ Q[:k, :k] @ rows
        # The covariance Σ - Σ T Σ is (Σ⁻¹ + H)⁻¹, and the mean m + Σ score is that times Σ⁻¹ m + h.
        H = np.linalg.solve(np.eye(M) - information @ state.Sigma, information)
        H = 0.5 * (H + H.transpose(0, 2, 1))
        h = H @ state.m + score + np.einsum("uij,uj->ui", H @ state.Sigma, score)
        return cls(
            state.m, state.C_m, state.Sigma, 1.0 / prior.consensus_variance, H, h, people.engaged[users].copy()
        )  # fmt: skip

    def drawn(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draws of the means over the population of ``report`` b, (R, q); its standard deviations and their 95 %
        intervals: mean, lower and upper, (3, q).

        Σ is integrated out by Gibbs sampling: O(R thin U M³). Of more than 2 000 people, or 20 functions, it stays as
        estimated: m is normal, and a spread has its :func:`~predilect.decisions.conjoint.interval_of_spread`.
        """
        exponent = np.frexp(np.abs(report).max(axis=1))[1]  # of units in which squares neither overflow nor vanish
        means, spreads = self._drawn(np.ldexp(report, -exponent[:, None]), rng)
        return np.ldexp(means, exponent), np.ldexp(spreads, exponent)

    def _drawn(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        U, M = self.linear.shape
        if U > _MOST_PEOPLE or M > _MOST_FUNCTIONS:
            return self._at_estimate(report, rng)
        means, covariances = np.empty((_N_DRAWS, M)), np.empty((_N_DRAWS, M, M))
        thin = int(np.clip(_MOST_VISITS // (_N_DRAWS * U), 1, _THIN))
        _sample(
            self.information, self.linear, self.engaged, self.mean, self.Sigma, self.prior_precision, _WIDTH, _BURN,
            thin, rng, means, covariances,
        )  # fmt: skip
        spreads = np.sqrt(np.einsum("qi,rij,qj->rq", report, covariances, report, optimize=True))
        return means @ report.T, np.vstack([spreads.mean(axis=0), np.quantile(spreads, TAILS_95, axis=0)])

    def _at_estimate(self, report: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        root = semidefinite_root(self.covariance)
        means = self.mean + rng.standard_normal((_N_DRAWS, root.shape[1])) @ root.T
        s = np.sqrt(np.einsum("qi,ij,qj->q", report, self.Sigma, report))
        left = np.linalg.inv(factorise(self.Sigma).inverse() + self.information).mean(axis=0)
        v = np.einsum("qi,ij,qj->q", report, left, report)
        return means @ report.T, np.vstack([s, *interval_of_spread(s, v, len(self.linear))])


@kernel
def _sample(
    H: FloatArray, h: FloatArray, engaged: FloatArray, mean: FloatArray, Sigma: FloatArray, precision: float,
    width: float, burn: int, thin: int, rng: np.random.Generator, means: FloatArray, covariances: FloatArray,
) -> None:  # fmt: skip
    """Gibbs sampling of b_u ~ N(m, Σ), told of by H_u and h_u, of m ~ N(0, I/precision), and of Σ.

    Somebody who may click at random says something in a share ``engaged`` of the sweeps. Draws are written to ``means``
    (R, M) and ``covariances`` (R, M, M).
    """
    U, M = h.shape
    S, P, V, L, b = Sigma.copy(), np.empty((M, M)), np.empty((M, M)), np.empty((M, M)), np.empty(M)
    m, total, scatter, scale = mean.copy(), np.empty(M), np.empty((M, M)), np.empty(M)
    df = DEGREES + M - 1.0
    for sweep in range(burn + len(means) * thin):
        inverse(S, L, P, M)
        draw_scale(P, df, width, M, rng, scale)
        for i in range(M):
            total[i] = 0.0
            for j in range(M):
                scatter[i, j] = 0.0
        for u in range(U):
            engaged_now = 1.0 if rng.random() < engaged[u] else 0.0
            for i in range(M):
                b[i] = engaged_now * h[u, i]
                for j in range(M):
                    V[i, j] = P[i, j] + engaged_now * H[u, i, j]
                    b[i] += P[i, j] * m[j]
            draw_normal(V, L, b, M, rng)
            for i in range(M):
                total[i] += b[i]
                for j in range(i + 1):
                    scatter[i, j] += b[i] * b[j]
        for i in range(M):
            b[i] = 0.0
            for j in range(M):
                V[i, j] = U * P[i, j]
                b[i] += P[i, j] * total[j]
            V[i, i] += precision
        draw_normal(V, L, b, M, rng)
        for i in range(M):
            m[i] = b[i]
        for i in range(M):
            for j in range(i + 1):
                scatter[i, j] += U * m[i] * m[j] - m[i] * total[j] - m[j] * total[i]
            scatter[i, i] += scale[i]
        draw_covariance(scatter, df + U, False, M, rng, S)
        place = sweep - burn
        if place >= 0 and place % thin == thin - 1:
            place = place // thin
            for i in range(M):
                means[place, i] = m[i]
                for j in range(M):
                    covariances[place, i, j] = S[i, j]


def coding_of(model: Any) -> tuple[Coding, list[int]]:
    """The coding of all attributes, and those of its columns whose coefficients the answers identify."""
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
    """Draws of people's coefficients, as :mod:`predilect.decisions.conjoint` takes them.

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

    def pay_of_people(self, price: int) -> None:
        """People's coefficients are normal: the mean of a ratio to one does not exist."""

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

    def chances(self, V: FloatArray, user: int | None, rows: LinearRows) -> FloatArray:
        """Probabilities of each item to be chosen, from utilities (R, k)."""
        return choice_chances(V)

    def chance_of_first(self, V: FloatArray, user: int | None, rows: LinearRows, sets: IntArray) -> FloatArray:
        """That of the first item of each set alone, (R, n)."""
        return chance_of_first(V.reshape(-1, V.shape[2])).reshape(V.shape[:2])

    def expected_best(self, V: FloatArray, user: int | None, rows: LinearRows) -> FloatArray:
        """Expected utility of the item that is chosen, (R,)."""
        return expected_largest(V)

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
