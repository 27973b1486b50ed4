"""Active choice of a set to ask "which of these?" of."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import entr, ndtr

from predilect._types import FloatArray, IntArray
from predilect.data import build_frame
from predilect.decisions.candidates import Fitted, all_pairs
from predilect.decisions.information import bald
from predilect.decisions.queries import code_of
from predilect.errors import DataError
from predilect.gaussian.dense import semidefinite_root

_DRAWS = 400  # of the utilities: the information of a set is known to about .01 bits
_MOST_ITEMS = 60  # of which sets are made
_LARGEST_SET = 20
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Where there are very many sets; of eight items right to .003 of a chance.
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_FEW_WEIGHTS = _FEW_WEIGHTS / _FEW_WEIGHTS.sum()


def suggest_set(
    model: Fitted, user: Any = None, size: int = 4, candidates: Sequence[Any] | None = None, *, random_state: int = 0
) -> Any:
    """Choose the alternatives of which to ask one person for the best.

    Parameters
    ----------
    model : estimator
        Any fitted model of the package whose answers are about utilities of items.
    user : id, optional
        Who is asked; by default, and with a warning for an id that the model does not know, somebody without answers.
    size : int, default 4
        How many alternatives, from 2 to 20.
    candidates : list of items, optional
        What may be shown; by default all items.
    random_state : int, default 0
        Seed of the draws.

    Returns
    -------
    question : data frame of the caller's kind
        Columns item, p_best (the probability that it is chosen) and score: the bits that the answer is expected to
        tell about the person's utilities, of the items down to this row (the first tells nothing). A row an
        alternative; whose place on the screen is yours to shuffle.

    Raises
    ------
    DataError
        If an item is not known, or there are fewer than ``size``.

    Notes
    -----
    collaborative.md section 5 for a choice with normal noise of variance ½ an alternative: the entropy of the answer
    less its expected entropy given the utilities, over 400 draws of them, each chance by Gauss-Hermite quadrature.
    Greedy: the most telling pair, then one item after the other. Of more than 60 items the 60 whose utilities vary most
    about the person's average one. Some 30 ms for a set of four of 30 items.

    Examples
    --------
    >>> import predilect
    >>> from predilect.decisions import suggest_set
    >>> answers = {"user": ["ann", "bob", "cas"], "left": ["tea"] * 3, "right": ["milk", "juice", "milk"]}
    >>> model = predilect.Population().fit(answers, [1, 1, -1])
    >>> suggest_set(model, "ann", 3)["item"].to_list()
    ['juice', 'milk', 'tea']
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= _LARGEST_SET:
        raise DataError(f"size must be a whole number of alternatives from 2 to {_LARGEST_SET}; got {size!r}")
    model = copy.copy(model)  # as it is now, whatever other threads do
    if not model.posterior_.by_utilities:
        raise DataError(
            "the answers of this model are about more than the utilities of items, so that no set can be chosen by "
            "them. Ask for pairs: suggest"
        )
    every = np.arange(len(model.items_))
    items = every if candidates is None else np.unique(model.items_.codes(candidates)).astype(np.int64)
    if len(items) < size:
        raise DataError(f"a set of {size} was asked for, but there are {len(items)} items to show")
    code = code_of(model, user)
    mean, covariance = model.posterior_.calibrated(code).times(model.posterior_.consistency_of(code)).dense()
    if len(items) > _MOST_ITEMS:
        within = covariance[np.ix_(items, items)]
        own = np.diagonal(within) - 2.0 * within.mean(axis=0) + within.mean()
        items = np.sort(items[np.argsort(-own, kind="stable")[:_MOST_ITEMS]])
    covariance = covariance[np.ix_(items, items)]
    root = semidefinite_root(covariance)
    draws = mean[items] + np.random.default_rng(random_state).standard_normal((_DRAWS, root.shape[1])) @ root.T
    first, second = all_pairs(np.arange(len(items)))
    var = np.diagonal(covariance)[first] + np.diagonal(covariance)[second] - 2.0 * covariance[first, second]
    between = mean[items][first] - mean[items][second]
    best = int(np.argmax(bald(between, np.maximum(var, 0.0))))
    chosen = [int(first[best]), int(second[best])]
    scores = [0.0, _information(draws, np.array([chosen]))[0][0]]
    while len(chosen) < size:
        rest = np.array([place for place in range(len(items)) if place not in chosen])
        told, _ = _information(draws, np.column_stack([np.tile(chosen, (len(rest), 1)), rest]))
        place = int(np.argmax(told))
        chosen.append(int(rest[place]))
        scores.append(float(told[place]))
    chances = _information(draws, np.array([chosen]))[1][0]
    names = model.items_.series().gather(pl.Series(items[chosen])).alias("item")
    return build_frame({"item": names, "p_best": chances, "score": np.array(scores)}, model.backend_)


def _information(draws: FloatArray, sets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Bits that choices from sets (n, k) tell, (n,), and the chances of the alternatives, (n, k)."""
    told, chances = np.empty(len(sets)), np.empty(sets.shape)
    for row, alternatives in enumerate(sets):
        p = choice_chances(draws[:, alternatives])
        average = p.mean(axis=0)
        told[row] = (entr(average).sum() - entr(p).sum(axis=1).mean()) / np.log(2.0)
        chances[row] = average
    return told, chances


def choice_chances(f: FloatArray) -> FloatArray:
    """Chances of each of k alternatives with utilities f (n, k) to be felt best, with noise N(0, ½) on each; (n, k)."""
    k = f.shape[1]
    apart = np.sqrt(2.0) * (f[:, :, None] - f[:, None, :])  # in standard deviations of one alternative's noise
    inside = ndtr(apart[:, :, :, None] + _NODES)
    inside[:, np.arange(k), np.arange(k)] = 1.0
    p = inside.prod(axis=2) @ _WEIGHTS
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def chance_of_first(f: FloatArray) -> FloatArray:
    """Chance of the first of k alternatives, as :func:`choice_chances` has it; (n,)."""
    apart = np.sqrt(2.0) * (f[:, :1] - f[:, 1:])
    return np.asarray(ndtr(apart[:, :, None] + _FEW_NODES).prod(axis=1) @ _FEW_WEIGHTS)
