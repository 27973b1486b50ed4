"""Answers that were held out, as predicted: from their people's other answers, or from few of a newcomer's."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons
from predilect.data.comparisons import joint_rows
from predilect.data.content import dealt, keys_of_answers
from predilect.data.orders import rows_by_answer
from predilect.data.splits import held_out_groups, shuffled_place
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.calibration import Calibration
from predilect.inference.likelihoods.orders import Orders, PairsOfOrders, shared_noise
from predilect.inference.likelihoods.views import PairLikelihood
from predilect.inference.people.engaged import shares_of_answers, with_clicks
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Law
from predilect.inference.people.layout import OF_PEOPLE, People, lay_out_columns
from predilect.inference.people.posterior import PopulationPosterior
from predilect.inference.people.queries import kinds_of_sets


class HeldOut(NamedTuple):
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
        with_orders = [part.orders for part in parts if part.orders is not None]
        columns = {name: np.concatenate([one[name] for one in (*pairs, *orders)]) for name in ("var", "weight", "kind")}
        for name in ("outcome", "mean", "delta"):
            columns[name] = np.concatenate([getattr(part, name) for part in parts])
        return cls(**columns, orders=Orders.together(with_orders) if with_orders else None)

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
) -> HeldOut:  # fmt: skip
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
    pairs = HeldOut(answers.outcome[rows[:n]], mean[:n], var[:n], answers.weight[rows[:n]], cut, kind)
    if apart is None:
        return pairs
    C, N = apart.covariances(between), shared_noise(ptr, np.where(up, one, other), np.where(up, other, one))
    orders = Orders(ptr, np.where(up, mean[n:], -mean[n:]), C, N)
    of_sets = np.zeros(len(ptr) - 1, dtype=np.int8)
    if with_kinds:
        of_sets = kinds_of_sets(posterior.pair_kinds(codes, apart.left, apart.right), apart.order, len(of_sets))
    return HeldOut(
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
) -> HeldOut:
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
    found: HeldOut = HeldOut.together([
        _whole(comparisons, rows, group, alone, np.arange(n_alone), delta, executor),
        _whole(comparisons, others, group, posterior, comparisons.user[others], delta, executor),
    ])  # fmt: skip
    return found


def _settled(
    people: People, sites: Sites, posterior: PopulationPosterior, law: Law, delta: float,
    executor: ThreadPoolExecutor | None,
) -> People:  # fmt: skip
    """People whose sites, in place, have converged, with what their answers say of whether they click at random."""
    rate = posterior.calibration.click_rate
    people = with_clicks(people, rate, shares_of_answers(posterior.people) if rate else None)
    found = converge(people, sites, law, delta, tolerance=_SITE_TOLERANCE, executor=executor)
    return replace(people, engaged=found.engaged, clicks=np.zeros(0)) if rate else people


def _whole(
    comparisons: Comparisons, rows: IntArray, group: IntArray, posterior: PopulationPosterior, users: IntArray,
    delta: float, executor: ThreadPoolExecutor | None,
) -> HeldOut:  # fmt: skip
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
    return found | {"slope_columns": x[rows] * effects.spread} if len(effects.spread) else found


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
) -> list[HeldOut]:
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
