"""Segments of people: the effects of the groups that people belong to, and how far these spread.

f_u ~ N(m + Σ b_s, Σ) with the segments s of person u, and b_s ~ N(0, s_k K_t) for the segments of column k. The board
of a segment is m + b_s, with m the average person's (population.md section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import PersonFeatures, Vocabulary
from predilect.data.features import Traits
from predilect.data.keyed_rows import results_of
from predilect.decisions.ranking import beyond_chance, board_columns, rank_utilities, refuse_unsound
from predilect.decisions.scales import Scale
from predilect.errors import DataError
from predilect.inference.gaussian.dense import Factor, factorise, solve_lower, symmetrise
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge, expectation
from predilect.inference.people.law import Effects, Law
from predilect.inference.people.layout import People
from predilect.inference.people.person import part_of
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationState
from predilect.models.population.prior import PopulationPrior

_FIRST_SHARE = 0.1  # of people's prior variance
_MOST_ROUNDS, _CLOSE = 4, 0.2  # of fits; until no logarithm of a variance moves by more
_SMALLEST_SD, _LARGEST_SD, _GRID, _MOST_ZOOMS = 0.01, 100.0, 13, 4
_NEGLIGIBLE, _ENOUGH = 1e-3, 6  # of a grid: weight relative to the best; points with more
_FINE, _NEAR = 0.15, 0.8  # step of a grid of logarithms that is fine anyway; how far an estimate moves in a round
_LARGEST_REST, _MOST_ENTRIES = 10_000, 300_000_000
_WIDENINGS, _SWEEPS, _SITE_TOLERANCE, _SETTLED = 3, 10, 1e-6, 1e-9
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of people: ``code`` (n_users, n_columns), counted through all columns; -1 for none of a column."""

    code: IntArray
    n_levels: tuple[int, ...]

    @classmethod
    def of(cls, features: PersonFeatures, users: Vocabulary) -> Segments:
        """Segments of users; DataError if there is nobody with one."""
        matrix, known = features.align(users)
        code = np.full((len(users), len(features.segments)), -1)
        for place, (_, columns, start) in enumerate(segment_columns(features)):
            scale, centre = (np.array([getattr(features.outputs[c], name) for c in columns]) for name in _CODING)
            belongs = (matrix[:, columns] * scale + centre > 0.5) & known[:, None]
            code[:, place] = np.where(belongs.any(axis=1), start + belongs.argmax(axis=1), -1)
        if (code < 0).all():
            raise DataError(
                f"nobody who answered has a segment ({', '.join(features.segments)}). Do the ids of people agree with "
                "those of the answers?"
            )
        return cls(code, tuple(len(columns) for _, columns, _ in segment_columns(features)))

    @property
    def column_of(self) -> IntArray:
        """The column of each segment, (n_segments,)."""
        return np.repeat(np.arange(len(self.n_levels)), self.n_levels)

    def one_hot(self) -> FloatArray:
        """Who belongs to which segment, (n_users, n_segments)."""
        belongs = np.zeros((len(self.code), sum(self.n_levels)))
        user, column = np.nonzero(self.code >= 0)
        belongs[user, self.code[user, column]] = 1.0
        return belongs

    def shares(self) -> FloatArray:
        """Share of each segment in the people who have one of its column, (n_segments,)."""
        belongs = self.one_hot().sum(axis=0)
        total = np.bincount(self.column_of, belongs)[self.column_of]
        return belongs / np.maximum(total, 1.0)

    def centred(self) -> FloatArray:
        """Traits whose mean over people is 0, (n_users, n_segments): zeros for who has no segment of a column."""
        has_one = (self.code >= 0)[:, self.column_of]
        return np.where(has_one, self.one_hot() - self.shares(), 0.0)


_CODING = ("scale", "centre")


def segment_columns(features: PersonFeatures) -> list[tuple[str, IntArray, int]]:
    """For each column of segments its name, the columns of the matrix of features, and the number of the first."""
    sources = np.array([one.source for one in features.outputs])
    columns = [np.flatnonzero(sources == name) for name in features.segments]
    starts = np.cumsum([0, *map(len, columns)])[:-1].tolist()
    return list(zip(features.segments, columns, starts, strict=True))


def other_columns(features: PersonFeatures) -> IntArray:
    """All other columns of the matrix."""
    return np.array([i for i, one in enumerate(features.outputs) if one.source not in features.segments], dtype=int)


def joint_traits(features: PersonFeatures, others: Traits | None) -> Traits:
    """Map from all features to the traits ``others`` of :func:`other_columns`, if used, and the segments, 0 or 1."""
    columns = np.concatenate([columns for _, columns, _ in segment_columns(features)])
    n_others = 0 if others is None else others.rotation.shape[1]
    mean, rotation = np.zeros(len(features.outputs)), np.zeros((len(features.outputs), n_others + len(columns)))
    if others is not None:
        mean[other_columns(features)] = others.mean
        rotation[other_columns(features), :n_others] = others.rotation
    for place, column in enumerate(columns.tolist(), n_others):
        one = features.outputs[column]
        mean[column], rotation[column, place] = -one.centre / one.scale, one.scale
    return Traits(mean, rotation)


@dataclass(frozen=True, slots=True)
class _Cell:
    """People who share their segments."""

    levels: IntArray
    people: People
    sites: Sites


@dataclass(frozen=True, slots=True)
class _CellInformation:
    """Information of cells on the means of their utilities: ℓ(f) = ηᵀ f - ½ fᵀ H f."""

    levels: list[IntArray]  # the segments of each cell
    H: FloatArray  # (n_cells, M, M)
    eta: FloatArray  # (n_cells, M)

    @classmethod
    def of(
        cls, cells: list[_Cell], law: Law, delta: float, mean: FloatArray, spread: FloatArray | None,
        executor: ThreadPoolExecutor | None,
    ) -> _CellInformation:  # fmt: skip
        """At the means (n_cells, M); sites are made anew if the means are uncertain, with ``spread`` (n_cells, M, M).

        ``law`` has what is added to the mean of a cell as its mean.
        """
        H, eta = [], []
        for number, cell in enumerate(cells):
            here = law.mean + (law.Phi @ mean[number] if law.has_basis else mean[number])
            if spread is not None:
                wide = replace(law, Sigma=law.Sigma + spread[number], mean=here)
                expectation(
                    cell.people, cell.sites, wide, delta, n_sweeps=_SWEEPS, tolerance=_SITE_TOLERANCE, executor=executor
                )
            narrow = replace(law, mean=here)
            found = expectation(cell.people, cell.sites, narrow, delta, n_sweeps=0, executor=executor)
            H.append(found.H)
            eta.append(found.r + found.H @ mean[number])
        return cls([cell.levels for cell in cells], np.array(H), np.array(eta))

    def without_one(self, covariance: FloatArray, n_people: IntArray) -> FloatArray:
        """Covariances (n_cells, M, M) of the means of cells without what one of their people says."""
        return np.array([
            factorise(symmetrise(factorise(C).inverse() - H / n)).inverse()
            for C, H, n in zip(covariance, self.H, n_people, strict=True)
        ])  # fmt: skip


class _Joint:
    """Posterior of consensus and effects with the sites held; the largest column of segments is eliminated first."""

    def __init__(self, cells: _CellInformation, inverse: FloatArray, consensus_variance: float, segments: Segments,
                 variances: FloatArray) -> None:  # fmt: skip
        """``inverse`` is K_t⁻¹, ``variances`` (n_segments,) are the prior variances of the effects."""
        self.n, M = len(variances), len(inverse)
        eliminated = segments.column_of == int(np.argmax(segments.n_levels))
        self.own, self.rest = np.flatnonzero(eliminated), np.flatnonzero(~eliminated)
        place = {level: 1 + i for i, level in enumerate(self.rest.tolist())}  # the consensus comes first
        size = (1 + len(self.rest)) * M
        P, h = np.zeros((size, size)), np.zeros(size)
        P[:M, :M] = inverse / consensus_variance
        for level, i in place.items():
            P[i * M : (i + 1) * M, i * M : (i + 1) * M] = inverse / variances[level]
        cross: dict[int, FloatArray] = {g: np.zeros((M, size)) for g in self.own.tolist()}
        own_P = {g: inverse / variances[g] for g in cross}
        own_h = {g: np.zeros(M) for g in cross}
        for levels, H, eta in zip(cells.levels, cells.H, cells.eta, strict=True):
            at = [slice(i * M, (i + 1) * M) for i in (0, *(place[s] for s in levels.tolist() if s in place))]
            for one in at:
                h[one] += eta
                for two in at:
                    P[one, two] += H
            for g in levels.tolist():
                if g in own_P:
                    own_P[g] = own_P[g] + H
                    own_h[g] += eta
                    for one in at:
                        cross[g][:, one] += H
        self.factors: dict[int, Factor] = {g: factorise(symmetrise(own)) for g, own in own_P.items()}
        self.halves: dict[int, FloatArray] = {}  # L⁻¹ times the precision across, for each eliminated segment
        fit = 0.0
        for g, factor in self.factors.items():
            self.halves[g], half = factor.solve_lower(cross[g]), factor.solve_lower(own_h[g])
            P -= self.halves[g].T @ self.halves[g]
            h -= self.halves[g].T @ half
            fit += float(half @ half)
        self.factor, self.M = factorise(symmetrise(P)), M
        self.rest_mean, self.own_h = self.factor.solve(h), own_h
        fit += float(h @ self.rest_mean)
        log_det = self.factor.log_det() + sum(factor.log_det() for factor in self.factors.values())
        self.log_evidence = 0.5 * (fit - log_det - M * float(np.log(variances).sum()))

    def effects(self) -> tuple[FloatArray, FloatArray, dict[int, FloatArray]]:
        """Effects as functions of what is not eliminated, (n_segments, M, size), their means, and what is left over.

        The latter are the covariances of the eliminated effects given the rest, by segment.
        """
        M, size = self.M, len(self.rest_mean)
        rows, mean = np.zeros((self.n, M, size)), np.zeros((self.n, M))
        for i, level in enumerate(self.rest, 1):
            rows[level][:, i * M : (i + 1) * M] = np.eye(M)
        for g, half in self.halves.items():
            rows[g] = -solve_lower(self.factors[g].lower, half, transposed=True)
            mean[g] = self.factors[g].solve(self.own_h[g])
        return rows, mean + rows @ self.rest_mean, {g: factor.inverse() for g, factor in self.factors.items()}

    def of_cells(self, levels: list[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Means (n_cells, M) and covariances (n_cells, M, M) of the utilities of cells."""
        rows, mean, left = self.effects()
        V, eye = self.factor.inverse(), np.eye(self.M, len(self.rest_mean))
        means, covariances = [], []
        for own in levels:
            row = eye + rows[own].sum(axis=0)
            means.append(self.rest_mean[: self.M] + mean[own].sum(axis=0))
            over = [left[g] for g in own.tolist() if g in left]
            covariances.append(symmetrise(row @ V @ row.T + (over[0] if over else 0.0)))
        return np.array(means), np.array(covariances)

    def summary(self, segments: Segments) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean (M,) and covariance of the average person's utilities; of segments' differences, one after the other."""
        M, shares, column_of = self.M, segments.shares(), segments.column_of
        rows, mean, left = self.effects()
        V = self.factor.inverse()
        own_spread = np.sum([shares[g] ** 2 * left[g] for g in left], axis=0)
        average, average_mean = np.eye(M, len(V)), self.rest_mean[:M].copy()
        for column in range(len(segments.n_levels)):
            of = column_of == column
            common, common_mean = np.tensordot(shares[of], rows[of], 1), shares[of] @ mean[of]
            average, average_mean = average + common, average_mean + common_mean
            rows[of] -= common
            mean[of] -= common_mean
        differences = np.array([symmetrise(row @ V @ row.T) for row in rows])
        for g in left:
            differences[g] += (1.0 - 2.0 * shares[g]) * left[g] + own_spread
        return average_mean, symmetrise(average @ V @ average.T + own_spread), mean, differences


def fit_segments(
    fit: Callable[[People, PopulationPrior, PopulationState | None], PopulationState],
    people: People,
    prior: PopulationPrior,
    segments: Segments,
    executor: ThreadPoolExecutor | None,
) -> tuple[PopulationState, PopulationPosterior, FloatArray]:
    """Population with segments: state and posterior, and the prior variance of each segment's effect, by evidence.

    ``fit`` fits the population to people under a prior, from an earlier state. The traits that ``people`` have already
    keep their prior variance, ``prior.trait_scale``; segments become traits of zeros and ones. After each
    fit some 30 evaluations of the evidence a column, each of n_segments M³ operations, and (M s)³ for the s segments
    outside the largest column.
    """
    n_segments, n_columns, M = sum(segments.n_levels), len(segments.n_levels), prior.n_functions
    rest = (1 + n_segments - max(segments.n_levels)) * M
    if rest > _LARGEST_REST or n_segments * M * M > _MOST_ENTRIES:
        raise DataError(
            f"{n_segments} segments in {n_columns} columns are too many to tell apart all at once with {M} items or "
            "functions of them. Ask for one column of segments at a time, or for one with fewer"
        )
    inverse = prior.precision_of_consensus()
    others, centred, column_of = people.traits, segments.centred(), segments.column_of
    n_others = others.shape[1]
    _, one, cell = np.unique(segments.code, axis=0, return_index=True, return_inverse=True)
    cell = cell.ravel()
    first = np.flatnonzero(np.diff(column_of, prepend=-1))  # segment of each column
    size = np.maximum.reduceat(segments.shares(), first)  # bounds the variance of any combination of a column's traits
    found = np.full(len(column_of), _FIRST_SHARE * prior.variance)
    before, state = np.ones(0), None
    for number in range(_MOST_ROUNDS):
        variances = found
        # In the fit all effects have one prior variance, and no combination of traits a variance above 1, for which its
        # steps are made: the traits are scaled for both.
        scale = float(variances[first] @ size) + (prior.trait_scale if n_others else 0.0)
        factors = np.sqrt(np.append(np.full(n_others, prior.trait_scale), variances) / scale)
        traits = np.ascontiguousarray(np.hstack([others, centred]) * factors)
        here, at = replace(people, traits=traits), replace(prior, trait_scale=scale)
        state = fit(here, at, None if state is None else replace(state, B=state.B * (before / factors)))
        before, posterior = factors, state.posterior(here, at)
        cells = [_cell_of(posterior, np.flatnonzero(cell == c), segments, n_others) for c in range(len(one))]
        # Point estimates of the effects would leave people's sites too sure, and the effects too small where a segment
        # has few answers an item: they are made anew with the effects uncertain, without what the person says of them.
        law = posterior.law
        law = replace(
            law, mean=law.mean - (law.Phi @ state.m if law.has_basis else state.m), shift=law.shift[:, :n_others]
        )
        mean = state.m + traits[one][:, n_others:] @ state.B[:, n_others:].T
        known = _CellInformation.of(cells, law, state.delta, mean, None, executor)
        for _ in range(_WIDENINGS):
            joint = _Joint(known, inverse, prior.consensus_variance, segments, found)
            mean, covariance = joint.of_cells(known.levels)
            spread = known.without_one(covariance, np.bincount(cell))
            known = _CellInformation.of(cells, law, state.delta, mean, spread, executor)
        tried = partial(_Joint, known, inverse, prior.consensus_variance, segments)
        for k in range(n_columns):
            found = _with_variance(tried, found, column_of == k, is_near=number > 0)
        if float(np.abs(np.log(found / variances)).max()) < _CLOSE:
            break
    assert state is not None
    m, C_m, differences, spread = tried(found).summary(segments)
    B = np.hstack([state.B[:, :n_others] * factors[:n_others], differences.T])
    if n_others:
        C_B = factorise(symmetrise(inverse / prior.trait_scale + known.H.sum(axis=0))).inverse()
        spread = np.concatenate([C_B[None], spread])
    plain = replace(posterior.people, traits=np.hstack([others, segments.one_hot()]))
    posterior = replace(posterior, m=m, C_m=C_m, effects=Effects(B, spread), people=plain)
    of_ties = prior.tie_spread if len(state.log_tie_factor) else 0.0
    last = converge(
        plain, posterior.sites, posterior.law, state.delta, spread=of_ties, tolerance=_SETTLED, executor=executor
    )
    if of_ties:
        posterior = replace(posterior, people=replace(plain, tie_factor=last.tie_factor))
    return state, posterior, found


def _cell_of(posterior: PopulationPosterior, users: IntArray, segments: Segments, n_others: int) -> _Cell:
    """People who share their segments, with their own sites; traits other than segments stay theirs."""
    people, sites = part_of(posterior.people, posterior.sites, users)
    levels = segments.code[users[0]]
    traits = np.ascontiguousarray(people.traits[:, :n_others])
    return _Cell(levels[levels >= 0], replace(people, traits=traits), sites)


def _with_variance(
    joint: Callable[[FloatArray], _Joint], variances: FloatArray, of: BoolArray, *, is_near: bool = False
) -> FloatArray:
    """Variances of effects with those ``of`` one column at their posterior mean, flat in the standard deviation.

    Unlike a mode it is never 0, at which segments would be said to be just like the crowd, without any uncertainty.
    ``is_near``: they are about what they are already.
    """
    ends = math.log(_SMALLEST_SD), math.log(_LARGEST_SD)
    now = 0.5 * math.log(float(variances[of][0]))
    low, high = (now - _NEAR, now + _NEAR) if is_near else ends
    for _ in range(_MOST_ZOOMS):
        log_sd = np.linspace(low, high, _GRID)
        evidence = [joint(np.where(of, math.exp(2.0 * x), variances)).log_evidence for x in log_sd]
        log_weight = np.array(evidence) + log_sd
        weight = np.exp(log_weight - log_weight.max())
        inside, step = np.flatnonzero(weight > _NEGLIGIBLE), float(log_sd[1] - log_sd[0])
        if is_near and (inside[0] == 0 or inside[-1] == _GRID - 1):  # it was not
            is_near, (low, high) = False, ends
        elif len(inside) >= _ENOUGH or step < _FINE:
            break
        else:
            low, high = float(log_sd[inside[0]]) - step, float(log_sd[inside[-1]]) + step
    return np.where(of, np.average(np.exp(2.0 * log_sd), weights=weight), variances)


def segment_boards(model: Any, scale: Scale) -> dict[str, Any]:
    """Columns of the boards of all segments with people, the largest of each column of segments first.

    Differences are of centred scores, whatever the anchor.
    """
    posterior, features = model.posterior_, model.user_features_
    people, effects, items = posterior.people, posterior.effects, model.items_
    Phi = np.eye(len(items)) if posterior.basis is None else posterior.basis.Phi
    rows = Phi - Phi.mean(axis=0)
    levels = [features.outputs[c] for _, columns, _ in segment_columns(features) for c in columns.tolist()]
    n_others = people.traits.shape[1] - len(levels)
    n_people = np.rint(people.traits[:, n_others:].sum(axis=0)).astype(int)
    user = np.repeat(np.arange(people.n_users), np.diff(people.answer_ptr))
    sides = [people.item_idx[people.item_ptr[user] + side] for side in (people.left, people.right)]
    parts: list[dict[str, Any]] = []
    order = sorted(range(len(levels)), key=lambda g: (features.segments.index(levels[g].source), -n_people[g], g))
    for g in order:
        if not n_people[g]:
            continue
        trait = np.eye(people.traits.shape[1])[n_others + g]
        utilities = posterior.crowd(trait)
        board = rank_utilities(utilities, random_state=model.seed_)
        weight = people.weight * people.traits[user, n_others + g]
        results = results_of(sides[0], sides[1], people.outcome, weight, len(items))
        difference, covariance = rows @ effects.B[:, n_others + g], effects.spread(trait)
        variance = np.einsum("ij,ij->i", rows @ covariance, rows)
        refuse_unsound(difference, variance)
        sd = np.sqrt(np.maximum(variance, 0.0))
        own = board_columns(scale.of_board(board, utilities, items), items, results)
        parts.append({
            "column": np.full(len(items), levels[g].source), "segment": np.full(len(items), levels[g].category),
            "people": np.full(len(items), n_people[g]), **own,
            "difference": scale.per_probit * difference[board.item],
            "difference_sd": scale.per_probit * sd[board.item],
        })  # fmt: skip
    table = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    more = np.zeros(len(table["column"]), dtype=bool)
    for column in features.segments:
        of = np.flatnonzero(np.array(table["column"]) == column)
        z = np.array(table["difference"])[of] / np.maximum(np.array(table["difference_sd"])[of], _SMALLEST)
        more[of] = beyond_chance(z)
    return table | {"more_than_chance": more.tolist()}
