"""Answers that were held out, as predicted, and the calibration that suits them best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, brentq, minimize, minimize_scalar

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.content import dealt, keys_of_answers
from predilect.data.orders import rows_by_answer
from predilect.data.splits import held_out_groups, shuffled_place
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.calibration import LAPSE_NOISE, POWERS, Calibration
from predilect.inference.likelihoods.orders import Orders, PairsOfOrders, shared_noise
from predilect.inference.likelihoods.views import PairLikelihood, Probit
from predilect.inference.people.engaged import shares_of_answers, with_clicks
from predilect.inference.people.law import Law
from predilect.inference.people.layout import OF_PEOPLE, People, lay_out_columns
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.queries import NEWCOMER, kinds_of_sets
from predilect.inference.people.update import settle


class Asked(NamedTuple):
    """Answers and their predicted margins: n pairs, and then, in ``var``, ``weight`` and ``kind``, the orders.

    The variance of an order is the mean one of its rows. ``delta`` is of each pair; ``kind`` is of the pair, or of
    most of the order's rows, as :func:`~predilect.inference.people.queries.kinds_in` has it.
    """

    outcome: npt.NDArray[np.int8]  # (n,)
    mean: FloatArray  # (n,)
    var: FloatArray  # (n + n_orders,)
    weight: FloatArray
    delta: FloatArray  # (n,)
    kind: npt.NDArray[np.int8]
    orders: Orders | None = None

    @classmethod
    def together(cls, parts: list[Any]) -> Any:
        """Concatenation, of folds say."""
        pairs, orders = ([part.of_pairs(yes) for part in parts] for yes in (True, False))
        told = [part.orders for part in parts if part.orders is not None]
        columns = {name: np.concatenate([one[name] for one in (*pairs, *orders)]) for name in ("var", "weight", "kind")}
        for name in ("outcome", "mean", "delta"):
            columns[name] = np.concatenate([getattr(part, name) for part in parts])
        return cls(**columns, orders=Orders.together(told) if told else None)

    @property
    def has_ties(self) -> bool:
        """Whether ties are answers, or might be, or there are orders: only of pairs ties may be left out."""
        return self.orders is not None or bool(np.any(self.delta))

    def of_pairs(self, yes: bool) -> dict[str, Any]:
        """What pairs and orders both have, of the first or the second."""
        part = slice(None, len(self.outcome)) if yes else slice(len(self.outcome), None)
        return {"var": self.var[part], "weight": self.weight[part], "kind": self.kind[part]}

    def log_chances(self, given: Calibration, likelihood: type[PairLikelihood]) -> FloatArray:
        """Log probabilities by a calibration, (n + n_orders,)."""
        return given.log_chances(
            lambda v, noise: self.log_proba(v, noise, likelihood, given.omitted_ties)[0], self.var, self.kind
        )

    def log_proba(
        self, var: FloatArray, noise: float, likelihood: type[PairLikelihood], omitted: float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray | float]:
        """Log probabilities at other variances and noise, and slopes in variances and threshold; (n + n_orders,).

        ``omitted``: the threshold of ties that are left out, of which orders have none.
        """
        n = len(self.outcome)
        if omitted and not self.has_ties:
            value, _, _, along, along_omitted = likelihood.decided(
                self.outcome, self.mean, var[:n] + (noise - 1.0), omitted
            )
            return value, along, along_omitted
        value, slope, curvature, _, _ = likelihood.all_tilted(
            self.outcome, self.mean, var[:n] + (noise - 1.0), self.delta
        )
        along = 0.5 * (slope * slope - curvature)  # by the heat equation
        if self.orders is None:
            return value, along, 0.0
        of_orders = self.var[n:]
        known = of_orders > 0.0  # or the alternatives are alike, and nothing is to be scaled
        factor = np.divide(var[n:], of_orders, out=np.ones_like(of_orders), where=known)
        found = self.orders.evidence(factor, noise)
        slope = np.divide(found.slope, of_orders, out=np.zeros_like(of_orders), where=known)
        return np.append(value, found.log_z), np.append(along, slope), 0.0


def asked_of(
    answers: Comparisons, posterior: Any, users: IntArray, delta: float, executor: ThreadPoolExecutor | None,
    with_kinds: bool = True,
) -> Asked:  # fmt: skip
    """Answers as a posterior predicts them, ``users`` (n_rows,) being its codes of who gave them."""
    task = joint_rows(answers)
    rows, ptr = rows_by_answer(task)
    n = len(rows) - ptr[-1]
    left, right, who = answers.left[rows], answers.right[rows], users[rows]
    x = None if answers.covariates is None else answers.covariates[rows]
    both, apart = (who, left, right), None
    if n < len(rows):
        up = answers.outcome[rows[n:]] > 0
        one, other = (side[rows[n:]] for side in answers.alternatives())
        winner, loser = np.where(up, left[n:], right[n:]), np.where(up, right[n:], left[n:])
        apart = PairsOfOrders.of(ptr, winner, loser)
        codes = who[n:][ptr[:-1]][apart.order]
        both = (np.append(who, codes), np.append(left, apart.left), np.append(right, apart.right))
        if x is not None:  # pairs that only say how rows vary together have none
            x = np.concatenate((x, np.zeros((len(codes), x.shape[1]))))
    mean, var = posterior.margins_of_answers(*both, x, executor=executor)
    mean, var, between = mean[: len(rows)], var[: len(rows)], var[len(rows) :]
    kind = posterior.pair_kinds(who[:n], left[:n], right[:n]) if with_kinds else np.zeros(n, dtype=np.int8)
    cut = delta * posterior.tie_factors(who[:n]) * posterior.tie_factors_of_pairs(left[:n], right[:n])
    pairs = Asked(answers.outcome[rows[:n]], mean[:n], var[:n], answers.weight[rows[:n]], cut, kind)
    if apart is None:
        return pairs
    C, N = apart.covariances(between), shared_noise(ptr, np.where(up, one, other), np.where(up, other, one))
    orders = Orders(ptr, np.where(up, mean[n:], -mean[n:]), C, N)
    of_sets = np.zeros(len(ptr) - 1, dtype=np.int8)
    if with_kinds:
        of_sets = kinds_of_sets(posterior.pair_kinds(codes, apart.left, apart.right), apart.order, len(of_sets))
    return Asked(
        pairs.outcome, pairs.mean, np.append(pairs.var, orders.variances()),
        np.append(pairs.weight, answers.weight[rows[n:][ptr[:-1]]]), pairs.delta,
        np.append(pairs.kind, of_sets), orders,
    )  # fmt: skip


def together_held_out(answers: Comparisons, group: IntArray) -> BoolArray:
    """Whether a row stands for its answer: the first of an order, and every other; (n_rows,)."""
    task = joint_rows(answers)
    first = np.ones(answers.n_rows, dtype=bool)
    rows = np.flatnonzero(task >= 0)
    _, start = np.unique(group[rows], return_index=True)
    first[rows] = False
    first[rows[start]] = True
    return first


_RANGE = (1e-3, 10.0)
_LOG_RANGE = (math.log(_RANGE[0]), math.log(_RANGE[1]))
PRIOR_SCALE = 0.25  # of a Laplace prior of log κ about 0: a handful of answers must not move it, but many may, far
_FIRST_LOG, _TOLERANCE = 0.5, 1e-3


def variance_factor(asked: Asked, likelihood: type[PairLikelihood] = Probit) -> float:
    """Variance factor κ of answers held out, with a Laplace prior of log κ, scale 0.25.

    Where the slope of the log loss in log κ, plus or minus that of its prior, is 0: some five passes over the answers.
    """

    @cache
    def slope(x: float) -> float:
        var = math.exp(x) * asked.var
        return -float(asked.weight @ (asked.log_proba(var, 1.0, likelihood)[1] * var))

    at_one = slope(0.0)
    if not abs(at_one) > 1.0 / PRIOR_SCALE:
        return 1.0
    side = -math.copysign(1.0, at_one)

    def rise(x: float) -> float:  # of the penalised loss, away from 0
        return side * slope(x) + 1.0 / PRIOR_SCALE

    near, far, furthest = 0.0, side * _FIRST_LOG, _LOG_RANGE[side > 0.0]
    while not rise(far) >= 0.0:
        if far == furthest:
            return _RANGE[side > 0.0]
        near, far = far, min(max(2.0 * far, _LOG_RANGE[0]), _LOG_RANGE[1])
    return math.exp(brentq(rise, near, far, xtol=_TOLERANCE))


def _lowest(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(
        lambda x: loss(float(x)) + abs(float(x)) / PRIOR_SCALE, bounds=_LOG_RANGE, method="bounded",
        options={"xatol": _TOLERANCE},
    )  # fmt: skip
    return float(found.x)


# What is searched, each with a Laplace prior of the same scale about 0: log κ, log R, λ in units of its own, and
# log(1 + δ₀).
_FACTOR, _RATIO, _LAPSES, _OMITTED = range(4)
_UP = np.array([7.0, 7.0, 1.2, 5.0])
_DOWN = np.array([7.0, 0.0, 0.0, 0.0])
_N = len(_UP)
_LAPSE_UNIT = 0.2  # with the prior's scale: λ is exponential with mean .05


def calibration(asked: Asked, likelihood: type[PairLikelihood] = Probit) -> Calibration:
    """Calibration κ, R and λ, or without ties δ₀ in κ's place, by penalised likelihood of held-out answers.

    Why so many: answers of a consistent person are easier to predict than a Gaussian posterior has it (small κ, or δ₀
    where ties were left out), but only on items the person answered on, and most where they follow by transitivity (R);
    and some answers are careless (λ).

    log κ, log R and log(1 + δ₀) have Laplace priors about 0, scale 0.25 each, and λ an exponential one of mean .05, so
    that few rows leave the model unchanged; λ lies in 0 to .24, log R is not below 0: no answer is less certain for
    being implied. δ₀ takes the place of κ where held-out answers, with the priors, are likelier by it.
    L-BFGS on positive and negative parts, for which the priors have no corner; without lapses and from there with some,
    and the better of the two; then δ₀, from a margin's standard deviation. Some 50 to 80 passes over the answers.
    """
    if not len(asked.weight):
        return Calibration()
    powers = POWERS[asked.kind % NEWCOMER]
    objective = _Objective(asked, powers, likelihood)
    # Where all pairs are of one kind R cannot be told from κ.
    free = np.array([True, powers.min() < powers.max(), True, not asked.has_ties])
    highest = np.where(np.tile(free, 2), np.concatenate([_UP, _DOWN]), 0.0)
    # First without lapses: surprises have two explanations, and from far away the search may end in the worse of them.
    without = highest.copy()
    without[[_LAPSES, _OMITTED]] = 0.0
    best, parts = objective.lowest(np.zeros(2 * _N), without)
    parts_with = parts.copy()
    parts_with[_LAPSES] = PRIOR_SCALE
    other, trial = objective.lowest(parts_with, np.where(np.arange(2 * _N) == _OMITTED, 0.0, highest))
    best, parts = (other, trial) if other < best else (best, parts)
    if free[_OMITTED]:
        parts_with, of_factor = parts.copy(), [_FACTOR, _N + _FACTOR]
        parts_with[of_factor] = highest[of_factor] = 0.0
        parts_with[_OMITTED] = min(0.5 * math.log1p(float(np.average(asked.var, weights=asked.weight))), _UP[_OMITTED])
        other, trial = objective.lowest(parts_with, highest)
        parts = trial if other < best else parts
    x: list[float] = objective.at(parts).tolist()
    return Calibration(
        math.exp(x[_FACTOR]), math.exp(x[_RATIO]), x[_LAPSES] * _LAPSE_UNIT, omitted_ties=math.expm1(x[_OMITTED])
    )


@dataclass(frozen=True, slots=True)
class _Objective:
    """Penalised negative log-likelihood in positive and negative parts of the parameters, (8,)."""

    asked: Asked
    powers: FloatArray  # of R
    likelihood: type[PairLikelihood] = Probit

    def at(self, parts: FloatArray) -> FloatArray:
        """Parameters from their parts, (4,)."""
        return np.asarray(parts[:_N] - parts[_N:])

    def lowest(self, parts: FloatArray, highest: FloatArray) -> tuple[float, FloatArray]:
        """Value and place of the minimum near ``parts``, none of which is above ``highest``."""
        found = minimize(
            self, parts, jac=True, method="L-BFGS-B", bounds=Bounds(np.zeros(2 * _N), highest),
            options={"ftol": 1e-12, "gtol": 0.02 / PRIOR_SCALE},
        )  # fmt: skip
        return float(found.fun), found.x

    def __call__(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        x, weight = self.at(parts), self.asked.weight
        rate, v = x[_LAPSES] * _LAPSE_UNIT, np.exp(x[_FACTOR] + x[_RATIO] * self.powers) * self.asked.var
        omitted = math.expm1(x[_OMITTED])
        value, slope, along_omitted = self.asked.log_proba(v, 1.0, self.likelihood, omitted)
        gradient = np.zeros(_N)
        if rate == 0.0:
            mixed, along_v, along_omitted = value, weight * slope, weight * along_omitted
        else:
            other, slope_k, omitted_k = self.asked.log_proba(v, LAPSE_NOISE, self.likelihood, omitted)
            mixed = np.logaddexp(math.log1p(-rate) + value, math.log(rate) + other)
            looked, lapsed = weight * np.exp(value - mixed), weight * np.exp(other - mixed)
            along_v = (1.0 - rate) * looked * slope + rate * lapsed * slope_k
            along_omitted = (1.0 - rate) * looked * along_omitted + rate * lapsed * omitted_k
            gradient[_LAPSES] = (lapsed - looked).sum() * _LAPSE_UNIT
        gradient[_OMITTED] = np.sum(along_omitted) * (1.0 + omitted)
        gradient[:_LAPSES] = (along_v * v).sum(), self.powers @ (along_v * v)
        loss = float(parts.sum()) / PRIOR_SCALE - float(weight @ mixed)
        return loss, np.concatenate([-gradient, gradient]) + 1.0 / PRIOR_SCALE


def newcomer_factor(given: Calibration, steps: list[Asked], likelihood: type[PairLikelihood] = Probit) -> float:
    """Factor κ_n of a calibration for newcomers, by the same answers at several steps, each of which counts once.

    The other numbers stay: those of people whom the population was learned from must not suffer.
    """
    asked: Asked = Asked.together(steps)

    def loss(log_factor: float) -> float:
        return _loss(replace(given, newcomer_factor=math.exp(log_factor)), asked, likelihood) / len(steps)

    return math.exp(_lowest(loss))


def _loss(given: Calibration, asked: Asked, likelihood: type[PairLikelihood]) -> float:
    """Log loss in nats, of all answers together."""
    return float(-asked.weight @ asked.log_chances(given, likelihood))


def newcomer_weight(given: Calibration, at: Sequence[list[Asked]], likelihood: type[PairLikelihood] = Probit) -> float:
    """Weight w of the shift of newcomers' mean, from the same answers at the steps with weights 0, ½ and 1.

    By the parabola through the three log losses, in each of which an answer counts once; w has an exponential prior of
    mean 0.25.
    """
    none, half, full = (_loss(given, Asked.together(steps), likelihood) / len(steps) for steps in at)
    bend = 2.0 * (none - full) - 4.0 * (none - half)
    slope = 4.0 * (none - half) - (none - full) - 1.0 / PRIOR_SCALE
    if bend >= 0.0:
        return float(bend + slope > 0.0)
    return min(max(-0.5 * slope / bend, 0.0), 1.0)


_SITE_TOLERANCE = 1e-3  # of a margin, in units of its noise


def predict_alone(
    comparisons: Comparisons,
    test: BoolArray,
    posterior: PopulationPosterior,
    delta: float,
    *,
    most_work: float,
    rng: np.random.Generator,
    executor: ThreadPoolExecutor | None = None,
) -> Asked:
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
    group = held_out_groups(comparisons)
    rows = np.flatnonzero(test & together_held_out(comparisons, group))
    rows = rows[np.argsort(dealt(rng.permutation(len(rows)), keys_of_answers(comparisons)[rows]))]
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
    keep = group[place] != group[rows][owner]
    place, owner = place[keep], owner[keep]
    known = posterior.people
    code = comparisons.outcome if known.thresholds is None else comparisons.code
    people = lay_out_columns(
        owner, comparisons.left[place], comparisons.right[place], code[place],
        comparisons.weight[place], n_items=known.n_items, traits=known.traits[who],
        **_of_tasks(comparisons, place), **_of_covariates(comparisons, posterior, place),
        largest_state=known.largest_state, n_basis=posterior.n_basis, likelihood=known.likelihood,
        **{name: getattr(known, name)[who] for name in OF_PEOPLE},
    ).with_thresholds(known.thresholds)  # fmt: skip
    precision, linear = np.zeros(comparisons.n_rows), np.zeros(comparisons.n_rows)
    precision[~test], linear[~test] = posterior.sites.precision, posterior.sites.linear
    sites = Sites(precision[place], linear[place])
    people = _settled(people, sites, posterior, posterior.law, delta, executor)
    alone = replace(posterior, people=people, sites=sites)
    found: Asked = Asked.together([
        _whole(comparisons, rows, group, alone, np.arange(n_alone), delta, executor),
        _whole(comparisons, others, group, posterior, comparisons.user[others], delta, executor),
    ])  # fmt: skip
    return found


def _settled(
    people: People, sites: Sites, posterior: PopulationPosterior, law: Law, delta: float,
    executor: ThreadPoolExecutor | None,
) -> People:  # fmt: skip
    """People whose sites, in place, are at rest, with what their answers say of whether they click at random."""
    rate = posterior.calibration.click_rate
    people = with_clicks(people, rate, shares_of_answers(posterior.people) if rate else None)
    found = settle(people, sites, law, delta, tolerance=_SITE_TOLERANCE, executor=executor)
    return replace(people, engaged=found.engaged, clicks=np.zeros(0)) if rate else people


def _whole(
    comparisons: Comparisons, rows: IntArray, group: IntArray, posterior: PopulationPosterior, users: IntArray,
    delta: float, executor: ThreadPoolExecutor | None,
) -> Asked:  # fmt: skip
    """Predicted answers that rows stand for, each as one of the people of a posterior (by their codes)."""
    if not comparisons.joint:
        return asked_of(comparisons.take(rows), posterior, users, delta, executor)
    task = joint_rows(comparisons)
    code = np.full(int(group.max(initial=0)) + 1, -1, dtype=np.int64)
    in_orders = task[rows] >= 0
    code[group[rows[in_orders]]] = users[in_orders]
    of_row = np.where(task >= 0, code[group], -1)
    of_row[rows] = users
    every = np.flatnonzero(of_row >= 0)
    return asked_of(comparisons.take(every), posterior, of_row[every], delta, executor)


def _of_tasks(comparisons: Comparisons, rows: IntArray) -> dict[str, Any]:
    """Tasks of some rows, and which copies of their items they are of, as of :func:`lay_out_columns`."""
    copies = comparisons.copies
    return {"task": joint_rows(comparisons)[rows], "copies": None if copies is None else copies[rows]}


def _of_covariates(comparisons: Comparisons, posterior: PopulationPosterior, rows: IntArray) -> dict[str, Any]:
    """What covariates of some rows do to their margins, as of :class:`~predilect.inference.people.layout.People`."""
    effects, x = posterior.covariates, comparisons.covariates
    if effects is None or x is None:
        return {"offset": np.zeros(len(rows))}
    found = {"offset": np.asarray(x @ effects.mean)[rows]}
    return found | {"sway": x[rows] * effects.spread} if len(effects.spread) else found


STEPS = (0, 1, 3, 6)  # answers of a newcomer that are known
_MOST_ASKED = 10  # of one newcomer


def predict_newcomers(
    comparisons: Comparisons,
    left_out: BoolArray,
    posterior: PopulationPosterior,
    delta: float,
    *,
    rng: np.random.Generator,
    steps: Sequence[int] = STEPS,
    executor: ThreadPoolExecutor | None = None,
) -> list[Asked]:
    """Predictions of the people ``left_out`` (n_users,) of a fit, with 0, 1, 3 and 6 of their answers known.

    The same answers are predicted at every step, none of them to the pair, or in the task, of one that is known; at
    most half of a person's answers become known.
    """
    who = comparisons.user
    everything = held_out_groups(comparisons)
    stands = together_held_out(comparisons, everything)
    rows = np.flatnonzero(left_out[who] & stands)
    place, length = shuffled_place(who[rows], comparisons.n_users, rng, keys_of_answers(comparisons)[rows])
    n_known = np.minimum(max(STEPS), length // 2)[who[rows]]
    group = everything[rows]
    may_ask = ~np.isin(group, group[place < n_known])
    asked = np.sort(rows[may_ask & (place < n_known + _MOST_ASKED)])
    in_order = joint_rows(comparisons) >= 0
    found = []
    code = comparisons.outcome if posterior.people.thresholds is None else comparisons.code
    for step in steps:
        first = place < np.minimum(n_known, step)
        known = np.union1d(rows[first], np.flatnonzero(in_order & np.isin(everything, group[first])))
        people = lay_out_columns(
            who[known], comparisons.left[known], comparisons.right[known], code[known],
            comparisons.weight[known], n_items=posterior.n_items, traits=posterior.people.traits,
            **_of_tasks(comparisons, known), **_of_covariates(comparisons, posterior, known),
            largest_state=posterior.people.largest_state, n_basis=posterior.n_basis,
            likelihood=posterior.people.likelihood, consistency_sd=posterior.people.consistency_sd,
        ).with_thresholds(posterior.people.thresholds)  # fmt: skip
        sites = Sites.flat(len(known))
        people = _settled(people, sites, posterior, posterior.newcomer_law, delta, executor)
        alone = replace(posterior, people=people, sites=sites, newcomers=left_out)
        found.append(_whole(comparisons, asked, everything, alone, who[asked], delta, executor))
    return found
