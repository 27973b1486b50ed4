"""Choice of the calibration on held-out answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize, minimize_scalar

from predilect._types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.splits import held_out_groups, shuffled_place
from predilect.gaussian.design import Sites
from predilect.likelihoods.calibration import LAPSE_NOISE, Calibration
from predilect.likelihoods.views import PairLikelihood, Probit
from predilect.people.layout import OF_PEOPLE, lay_out_columns
from predilect.people.posterior import PopulationPosterior
from predilect.people.queries import IMPLIED
from predilect.people.update import settle

_LOG_RANGE = (math.log(1e-3), math.log(10.0))
PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_TOLERANCE = 1e-3


def variance_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike,
    likelihood: type[PairLikelihood] = Probit,
) -> float:  # fmt: skip
    """Variance factor κ of held-out margins N(mean, κ var), with a Laplace prior of log κ, scale 0.25; arrays (n,)."""

    def loss(log_factor: float) -> float:
        return float(-weight @ likelihood.all_tilted(outcome, mean, math.exp(log_factor) * var, delta)[0])

    return math.exp(_lowest(loss))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)


# What is searched, each with a Laplace prior of the same scale about 0: log κ at the mean variance, log κ₀ - log κ,
# log κ₌ - log κ, e - 1, log γ, log τ², and λ in units of its own.
_CONSTANT, _UNSEEN, _IMPLIED, _POWER, _THRESHOLD, _NOISE, _LAPSES = range(7)
_UP = np.array([7.0, 7.0, 0.0, 1.0, 2.3, 0.0, 1.2])
_DOWN = np.array([7.0, 7.0, 7.0, 1.0, 2.3, 4.0, 0.0])
_LAPSE_UNIT = 0.2  # with the prior's scale: λ is exponential with mean .05
_SMALLEST_VARIANCE = 1e-12


def calibration(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike,
    kind: npt.NDArray[np.int8], *, variance_power: float | None = None, threshold_factor: float | None = None,
    noise_factor: float | None = None, lapse_rate: float | None = None, likelihood: type[PairLikelihood] = Probit,
) -> Calibration:  # fmt: skip
    """Calibration κ, κ₀, κ₌, e, γ, τ² and λ by penalised likelihood of held-out answers; keywords hold some fixed.

    Why so many: answers of a consistent person are easier to predict than a Gaussian posterior has it (small κ), but
    only on items the person answered on (κ₀); what follows by transitivity is nearly certain, the rest less so (κ₌);
    margins of small variance are mostly known better still (e); a threshold learned at other variances is not the best
    (γ); people may be more consistent than the noise of the fit (τ²), which also has to explain careless answers (λ).

    log κ_i v^(e-1) = a + d i/2 + c [implied] + (e - 1) log(v / v̄) with v̄ the geometric mean of the variances: so a
    does not depend on e, κ = exp(a) v̄^(1-e). a, d, c, e - 1, log γ and log τ² have Laplace priors about 0, scale 0.25
    each, and λ an exponential one of mean .05, so that few rows, or rows of one kind,
    leave the model unchanged; e lies in 0 to 2, λ in 0 to .24, c and log τ² are not above 0: no answer is less certain
    for being implied, and noise that the fit did not see would not shrink with more answers, as a variance does. L-BFGS
    on positive and negative parts, for which the priors have no corner; without lapses and from there with some, and
    the better of the two. By the heat equation ∂ log Ẑ/∂v is half of (∂ log Ẑ/∂m)² + ∂² log Ẑ/∂m², and noise is a
    variance like any other. Some 50 passes over the n rows.
    """
    if not len(mean):
        return Calibration(
            variance_power=1.0 if variance_power is None else variance_power, threshold_factor=threshold_factor or 1.0,
            noise_factor=noise_factor or 1.0, lapse_rate=lapse_rate or 0.0,
        )  # fmt: skip
    log_var = np.log(np.maximum(var, _SMALLEST_VARIANCE))
    centre = float(np.average(log_var, weights=weight))
    implied = kind == IMPLIED
    n_unseen = np.where(implied, 0, kind)
    delta = np.broadcast_to(np.asarray(delta, dtype=float), mean.shape)
    start = np.zeros(7)
    start[_POWER] = 0.0 if variance_power is None else variance_power - 1.0
    start[_THRESHOLD] = math.log(threshold_factor or 1.0)
    start[_NOISE] = math.log(noise_factor or 1.0)
    start[_LAPSES] = (lapse_rate or 0.0) / _LAPSE_UNIT
    free = np.array([
        True, n_unseen.min() < n_unseen.max(), implied.min() < implied.max(), variance_power is None,
        threshold_factor is None and bool(np.any(delta > 0.0)), noise_factor is None and likelihood.has_normal_noise,
        lapse_rate is None,
    ])  # fmt: skip
    columns = np.column_stack([np.ones(len(mean)), 0.5 * n_unseen, implied, log_var - centre])
    objective = _Objective(outcome, mean, log_var, weight, delta, columns, start, likelihood)
    # First without lapses: surprises have two explanations, and from far away the search may end in the worse of them.
    highest = np.concatenate([np.where(free, _UP, 0.0), np.where(free, _DOWN, 0.0)])
    without = highest.copy()
    if lapse_rate is None:
        without[_LAPSES] = 0.0
    best, parts = objective.lowest(np.zeros(14), without)
    if free[_LAPSES]:
        parts_with = parts.copy()
        parts_with[_LAPSES] = PRIOR_SCALE
        other, trial = objective.lowest(parts_with, highest)
        parts = trial if other < best else parts
    x: list[float] = objective.at(parts).tolist()
    factor = math.exp(x[_CONSTANT] - x[_POWER] * centre)
    return Calibration(
        factor, factor * math.exp(x[_UNSEEN]), factor * math.exp(x[_IMPLIED]), 1.0 + x[_POWER],
        math.exp(x[_THRESHOLD]), math.exp(x[_NOISE]), x[_LAPSES] * _LAPSE_UNIT,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Objective:
    """Penalised negative log-likelihood in positive and negative parts of the parameters, (14,)."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    log_var: FloatArray
    weight: FloatArray
    delta: FloatArray
    columns: FloatArray
    start: FloatArray
    likelihood: type[PairLikelihood] = Probit

    def at(self, parts: FloatArray) -> FloatArray:
        """Parameters from their parts, (7,)."""
        return np.asarray(self.start + parts[:7] - parts[7:])

    def lowest(self, parts: FloatArray, highest: FloatArray) -> tuple[float, FloatArray]:
        """Value and place of the minimum near ``parts``, none of which is above ``highest``."""
        found = minimize(
            self, parts, jac=True, method="L-BFGS-B", bounds=Bounds(np.zeros(14), highest),
            options={"ftol": 1e-12, "gtol": 0.02 / PRIOR_SCALE},
        )  # fmt: skip
        return float(found.fun), found.x

    def __call__(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        x, weight = self.at(parts), self.weight
        rate, noise = x[_LAPSES] * _LAPSE_UNIT, math.exp(x[_NOISE])
        v, threshold = np.exp(self.columns @ x[:4] + self.log_var), self.delta * math.exp(x[_THRESHOLD])
        tilted = self.likelihood.all_tilted
        value, slope, curvature, slope_delta, _ = tilted(self.outcome, self.mean, v + (noise - 1.0), threshold)
        gradient = np.zeros(7)
        if rate == 0.0:
            mixed, along_delta = value, weight * slope_delta
            along_v = along_noise = 0.5 * weight * (slope * slope - curvature)
        else:
            wider = v + (LAPSE_NOISE - 1.0)
            other, slope_k, curvature_k, slope_delta_k, _ = tilted(self.outcome, self.mean, wider, threshold)
            mixed = np.logaddexp(math.log1p(-rate) + value, math.log(rate) + other)
            looked, lapsed = weight * np.exp(value - mixed), weight * np.exp(other - mixed)
            along_noise = 0.5 * (1.0 - rate) * looked * (slope * slope - curvature)
            along_v = along_noise + 0.5 * rate * lapsed * (slope_k * slope_k - curvature_k)
            along_delta = (1.0 - rate) * looked * slope_delta + rate * lapsed * slope_delta_k
            gradient[_LAPSES] = (lapsed - looked).sum() * _LAPSE_UNIT
        gradient[:4] = self.columns.T @ (along_v * v)
        gradient[_THRESHOLD] = along_delta @ threshold
        gradient[_NOISE] = along_noise.sum() * noise
        loss = float(parts.sum()) / PRIOR_SCALE - float(weight @ mixed)
        return loss, np.concatenate([-gradient, gradient]) + 1.0 / PRIOR_SCALE


def newcomer_factor(
    given: Calibration, steps: list[Alone], likelihood: type[PairLikelihood] = Probit
) -> float:  # fmt: skip
    """Factor κ_n of a calibration for newcomers, by the same answers at several steps, each of which counts once.

    The other numbers stay: those of people whom the population was learned from must not suffer.
    """
    rows = Alone.together(steps)
    threshold = given.threshold_factor * rows.delta

    def loss(log_factor: float) -> float:
        tried = replace(given, newcomer_factor=math.exp(log_factor))
        chances = tried.log_chances(
            lambda v: likelihood.all_tilted(rows.outcome, rows.mean, v, threshold)[0], rows.var, rows.kind
        )
        return float(-rows.weight @ chances) / len(steps)

    return math.exp(_lowest(loss))


_SITE_TOLERANCE = 1e-3  # of a margin, in units of its noise


class Alone(NamedTuple):
    """Leave-one-out margins, arrays (n,), as :func:`calibration` takes them."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    var: FloatArray
    weight: FloatArray
    delta: FloatArray
    kind: npt.NDArray[np.int8]

    @classmethod
    def together(cls, parts: list[Alone]) -> Alone:
        """Concatenation over folds."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def predict_alone(
    comparisons: Comparisons,
    test: BoolArray,
    posterior: PopulationPosterior,
    delta: float,
    *,
    most_work: float,
    rng: np.random.Generator,
    executor: ThreadPoolExecutor | None = None,
) -> Alone:
    """Leave-one-out predictions of the rows ``test``, each from all other answers of its person.

    ``posterior`` and ``delta`` are of a fit without these rows. No more rows than cost ``most_work`` multiply-adds a
    sweep, those of people with few answers first; the others are predicted as the fold does: for somebody with many
    answers a fifth more or less makes little difference. ``rng`` chooses among people with as many answers.

    An answer is left out with all answers of its person to the same pair or, where tasks are known, in the same task.
    Population and people's own thresholds stay as fitted; sweeps start from the sites of the fit. O(n_u min(n_u, k_u)²)
    a row for a person with n_u answers on k_u items, and the memory of as many people as rows.
    """
    offsets, length = comparisons.user_offsets, np.diff(comparisons.user_offsets)
    n_items_of = np.diff(posterior.people.item_ptr)
    rows = rng.permutation(np.flatnonzero(test))
    size = np.minimum(length, n_items_of).astype(float)[comparisons.user[rows]]
    work = 100.0 + length[comparisons.user[rows]] * size**2
    order = np.argsort(work, kind="stable")
    n_alone = int(np.count_nonzero(np.cumsum(work[order]) <= most_work))
    rows, others = np.sort(rows[order[:n_alone]]), np.sort(rows[order[n_alone:]])
    who = comparisons.user[rows]
    # The answers of each row's person, row after row.
    starts = np.concatenate(([0], np.cumsum(length[who])))
    owner = np.repeat(np.arange(len(rows)), length[who])
    place = np.arange(starts[-1]) + np.repeat(offsets[who] - starts[:-1], length[who])
    group = held_out_groups(comparisons)
    keep = group[place] != group[rows][owner]
    place, owner = place[keep], owner[keep]
    known = posterior.people
    people = lay_out_columns(
        owner, comparisons.left[place], comparisons.right[place], comparisons.outcome[place],
        comparisons.weight[place], n_items=known.n_items, traits=known.traits[who],
        offset=_offsets(comparisons, posterior)[place],
        largest_state=known.largest_state, n_basis=posterior.n_basis, likelihood=known.likelihood,
        **{name: getattr(known, name)[who] for name in OF_PEOPLE},
    )  # fmt: skip
    precision, linear = np.zeros(comparisons.n_rows), np.zeros(comparisons.n_rows)
    precision[~test], linear[~test] = posterior.sites.precision, posterior.sites.linear
    sites = Sites(precision[place], linear[place])
    settle(people, sites, posterior.law, delta, tolerance=_SITE_TOLERANCE, executor=executor)
    alone = replace(posterior, people=people, sites=sites)
    parts = [
        _margins(comparisons, rows, alone, np.arange(n_alone), delta, executor),
        _margins(comparisons, others, posterior, comparisons.user[others], delta, executor),
    ]
    return Alone.together(parts)


def _margins(
    comparisons: Comparisons, rows: IntArray, posterior: PopulationPosterior,
    users: IntArray, delta: float, executor: ThreadPoolExecutor | None,
) -> Alone:  # fmt: skip
    """Predicted margins of answers, each as one of the people of a posterior (by their codes)."""
    left, right = comparisons.left[rows], comparisons.right[rows]
    x = None if comparisons.covariates is None else comparisons.covariates[rows]
    mean, var = posterior.margins_of_answers(users, left, right, x, executor=executor)
    return Alone(
        comparisons.outcome[rows], mean, var, comparisons.weight[rows], delta * posterior.tie_factors(users),
        posterior.pair_kinds(users, left, right),
    )  # fmt: skip


def _offsets(comparisons: Comparisons, posterior: PopulationPosterior) -> FloatArray:
    """Effects of the covariates of all rows, (n_rows,)."""
    if posterior.covariates is None or comparisons.covariates is None:
        return np.zeros(comparisons.n_rows)
    return np.asarray(comparisons.covariates @ posterior.covariates.mean)


STEPS = (0, 1, 3, 6)  # answers of a newcomer that are known
_MOST_ASKED = 10  # of one newcomer


def predict_newcomers(
    comparisons: Comparisons,
    left_out: BoolArray,
    posterior: PopulationPosterior,
    delta: float,
    *,
    rng: np.random.Generator,
    executor: ThreadPoolExecutor | None = None,
) -> list[Alone]:
    """Predictions of the people ``left_out`` (n_users,) of a fit, with 0, 1, 3 and 6 of their answers known.

    The same answers are predicted at every step, none of them to the pair, or in the task, of one that is known; at
    most half of a person's answers become known.
    """
    who = comparisons.user
    rows = np.flatnonzero(left_out[who])
    place, length = shuffled_place(who[rows], comparisons.n_users, rng)
    n_known = np.minimum(max(STEPS), length // 2)[who[rows]]
    group = held_out_groups(comparisons)[rows]
    may_ask = ~np.isin(group, group[place < n_known])
    asked = np.sort(rows[may_ask & (place < n_known + _MOST_ASKED)])
    found = []
    for step in STEPS:
        known = np.sort(rows[place < np.minimum(n_known, step)])
        people = lay_out_columns(
            who[known], comparisons.left[known], comparisons.right[known], comparisons.outcome[known],
            comparisons.weight[known], n_items=posterior.n_items, traits=posterior.people.traits,
            offset=_offsets(comparisons, posterior)[known],
            largest_state=posterior.people.largest_state, n_basis=posterior.n_basis,
            likelihood=posterior.people.likelihood, consistency_sd=posterior.people.consistency_sd,
        )  # fmt: skip
        sites = Sites.flat(len(known))
        settle(people, sites, posterior.law, delta, tolerance=_SITE_TOLERANCE, executor=executor)
        alone = replace(posterior, people=people, sites=sites, newcomers=left_out)
        found.append(_margins(comparisons, asked, alone, who[asked], delta, executor))
    return found
