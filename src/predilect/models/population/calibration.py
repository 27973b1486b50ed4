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
from predilect.likelihoods.calibration import IMPLIED_POWER, LAPSE_NOISE, Calibration
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


# What is searched, each with a Laplace prior of the same scale about 0: log κ at the mean variance, log R, e - 1, and λ
# in units of its own.
_CONSTANT, _RATIO, _POWER, _LAPSES = range(4)
_UP = np.array([7.0, 7.0, 1.0, 1.2])
_DOWN = np.array([7.0, 0.0, 1.0, 0.0])
_LAPSE_UNIT = 0.2  # with the prior's scale: λ is exponential with mean .05
_SMALLEST_VARIANCE = 1e-12


def calibration(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: npt.ArrayLike,
    kind: npt.NDArray[np.int8], likelihood: type[PairLikelihood] = Probit,
) -> Calibration:  # fmt: skip
    """Calibration κ, R, e and λ by penalised likelihood of held-out answers.

    Why so many: answers of a consistent person are easier to predict than a Gaussian posterior has it (small κ), but
    only on items the person answered on, and most where they follow by transitivity (R); margins of small variance are
    mostly known better still (e); and some answers are careless (λ).

    log κ_i v^(e-1) = a + d (i/2 - 6 [implied]) + (e - 1) log(v / v̄) with v̄ the geometric mean of the variances: so a
    does not depend on e, κ = exp(a) v̄^(1-e). a, d and e - 1 have Laplace priors about 0, scale 0.25 each, and λ an
    exponential one of mean .05, so that few rows leave the model unchanged; e lies in 0 to 2, λ in 0 to .24, d is not
    below 0: no answer is less certain for being implied. L-BFGS on positive and negative parts, for which the priors
    have no corner; without lapses and from there with some, and the better of the two. By the heat equation ∂ log Ẑ/∂v
    is half of (∂ log Ẑ/∂m)² + ∂² log Ẑ/∂m², and noise is a variance like any other. Some 50 passes over the n rows.
    """
    if not len(mean):
        return Calibration()
    log_var = np.log(np.maximum(var, _SMALLEST_VARIANCE))
    centre = float(np.average(log_var, weights=weight))
    sureness = np.where(kind == IMPLIED, -IMPLIED_POWER, 0.5 * kind)
    delta = np.broadcast_to(np.asarray(delta, dtype=float), mean.shape)
    columns = np.column_stack([np.ones(len(mean)), sureness, log_var - centre])
    objective = _Objective(outcome, mean, log_var, weight, delta, columns, likelihood)
    # Where all pairs are of one kind R cannot be told from κ.
    free = np.array([True, sureness.min() < sureness.max(), True, True])
    highest = np.where(np.tile(free, 2), np.concatenate([_UP, _DOWN]), 0.0)
    # First without lapses: surprises have two explanations, and from far away the search may end in the worse of them.
    without = highest.copy()
    without[_LAPSES] = 0.0
    best, parts = objective.lowest(np.zeros(8), without)
    parts_with = parts.copy()
    parts_with[_LAPSES] = PRIOR_SCALE
    other, trial = objective.lowest(parts_with, highest)
    parts = trial if other < best else parts
    x: list[float] = objective.at(parts).tolist()
    factor = math.exp(x[_CONSTANT] - x[_POWER] * centre)
    return Calibration(factor, math.exp(x[_RATIO]), 1.0 + x[_POWER], x[_LAPSES] * _LAPSE_UNIT)


@dataclass(frozen=True, slots=True)
class _Objective:
    """Penalised negative log-likelihood in positive and negative parts of the parameters, (8,)."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    log_var: FloatArray
    weight: FloatArray
    delta: FloatArray
    columns: FloatArray
    likelihood: type[PairLikelihood] = Probit

    def at(self, parts: FloatArray) -> FloatArray:
        """Parameters from their parts, (4,)."""
        return np.asarray(parts[:4] - parts[4:])

    def lowest(self, parts: FloatArray, highest: FloatArray) -> tuple[float, FloatArray]:
        """Value and place of the minimum near ``parts``, none of which is above ``highest``."""
        found = minimize(
            self, parts, jac=True, method="L-BFGS-B", bounds=Bounds(np.zeros(8), highest),
            options={"ftol": 1e-12, "gtol": 0.02 / PRIOR_SCALE},
        )  # fmt: skip
        return float(found.fun), found.x

    def __call__(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        x, weight = self.at(parts), self.weight
        rate, v = x[_LAPSES] * _LAPSE_UNIT, np.exp(self.columns @ x[:_LAPSES] + self.log_var)
        tilted = self.likelihood.all_tilted
        value, slope, curvature, _, _ = tilted(self.outcome, self.mean, v, self.delta)
        gradient = np.zeros(4)
        if rate == 0.0:
            mixed, along_v = value, 0.5 * weight * (slope * slope - curvature)
        else:
            other, slope_k, curvature_k, _, _ = tilted(self.outcome, self.mean, v + (LAPSE_NOISE - 1.0), self.delta)
            mixed = np.logaddexp(math.log1p(-rate) + value, math.log(rate) + other)
            looked, lapsed = weight * np.exp(value - mixed), weight * np.exp(other - mixed)
            along_v = 0.5 * (1.0 - rate) * looked * (slope * slope - curvature)
            along_v += 0.5 * rate * lapsed * (slope_k * slope_k - curvature_k)
            gradient[_LAPSES] = (lapsed - looked).sum() * _LAPSE_UNIT
        gradient[:_LAPSES] = self.columns.T @ (along_v * v)
        loss = float(parts.sum()) / PRIOR_SCALE - float(weight @ mixed)
        return loss, np.concatenate([-gradient, gradient]) + 1.0 / PRIOR_SCALE


def newcomer_factor(
    given: Calibration, steps: list[Alone], likelihood: type[PairLikelihood] = Probit
) -> float:  # fmt: skip
    """Factor κ_n of a calibration for newcomers, by the same answers at several steps, each of which counts once.

    The other numbers stay: those of people whom the population was learned from must not suffer.
    """
    rows = Alone.together(steps)

    def loss(log_factor: float) -> float:
        tried = replace(given, newcomer_factor=math.exp(log_factor))
        chances = tried.log_chances(
            lambda v: likelihood.all_tilted(rows.outcome, rows.mean, v, rows.delta)[0], rows.var, rows.kind
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
