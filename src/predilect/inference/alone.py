"""Leave-one-out predictions of held-out answers, at the population of a fold.

A fold predicts from four fifths of a person's answers, a model in use from all of them, so margins of held-out answers
are less certain than those in use, and a calibration that depends on the variance
(:mod:`predilect.inference.calibration`) would not fit. At the population of a fold, which has not seen the held-out
answers, leaving one answer out costs a few sweeps of one person.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.data import Comparisons
from predilect.data.splits import held_out_groups
from predilect.inference.population import settle
from predilect.posteriors.people import Sites, lay_out_columns
from predilect.posteriors.population import PopulationPosterior

__all__ = ["Alone", "predict_alone"]

FloatArray = npt.NDArray[np.float64]

_SITE_TOLERANCE = 1e-3  # of a margin, in units of its noise


class Alone(NamedTuple):
    """Leave-one-out margins, arrays (n,), as :func:`~predilect.inference.calibration_search.calibration` takes them."""

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
    test: npt.NDArray[np.bool_],
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
        comparisons.weight[place], n_items=known.n_items, traits=known.traits[who], tie_factor=known.tie_factor[who],
        largest_state=known.largest_state, n_basis=posterior.n_basis,
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
    comparisons: Comparisons, rows: npt.NDArray[np.integer], posterior: PopulationPosterior,
    users: npt.NDArray[np.integer], delta: float, executor: ThreadPoolExecutor | None,
) -> Alone:  # fmt: skip
    """Predicted margins of answers, each as one of the people of a posterior (by their codes)."""
    left, right = comparisons.left[rows], comparisons.right[rows]
    mean, var = posterior.margins(users, left, right, executor=executor)
    return Alone(
        comparisons.outcome[rows], mean, var, comparisons.weight[rows], delta * posterior.tie_factors(users),
        posterior.pair_kinds(users, left, right),
    )  # fmt: skip
