"""Questions for one person: the pairs of ``suggest`` and ``suggest_each``, the set of ``suggest_set``."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import entr, ndtr

from predilect._base.arguments import check_arguments, check_choice, check_list
from predilect._base.forks import refuse_without_threads
from predilect._base.text import did_you_mean, either, quoted
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Comparisons, Vocabulary, build_frame
from predilect.data.frames import clean_ids, column_names, open_frame, to_columns
from predilect.data.read.columns import listed
from predilect.data.read.names import ITEM, PEOPLE, TASK, guess_one
from predilect.decisions.candidates import (
    Fitted,
    all_pairs,
    answered_rows,
    best_first,
    candidate_pairs,
    draws_for,
    pair_keys,
    read_pairs,
    rows_of,
    without,
)
from predilect.decisions.information import (
    Score,
    bald,
    equal_to_best,
    expected_best,
    greedy,
    no_variance,
    remaining_entropy,
    shuffled,
)
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.dense import semidefinite_root
from predilect.inference.gaussian.posterior import Utilities

_MOST_PREDICTED = 5000  # pairs that are predicted one by one
_MEASURES = {"bald": bald, "entropy": remaining_entropy}  # of what an answer tells
STRATEGIES = (*_MEASURES, "eubo", "random")
_DRAWS = 400  # of the utilities: the information of a set is known to about .01 bits
_MOST_ITEMS = 60  # of which sets are made
LARGEST_SET = 20
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Where there are very many sets; of eight items right to .003 of a chance.
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_FEW_WEIGHTS = _FEW_WEIGHTS / _FEW_WEIGHTS.sum()


def suggest(
    model: Fitted,
    user: Any = None,
    candidates: Any = None,
    n: int = 1,
    strategy: str = "bald",
    *,
    exclude: Any = None,
    repeat: bool = False,
    random_state: int = 0,
) -> Any:
    """See :meth:`Asking.suggest <predilect.models.asking.Asking.suggest>`."""
    check_choice("strategy", strategy, STRATEGIES)
    check_arguments(n=n)
    model = copy.copy(model)  # as it is now, whatever other threads do
    code = code_of(model, user, "the questions are for")
    # In units of the noise of the person's own answers.
    consistency = model.posterior_.consistency_of(code)
    utilities = model.posterior_.calibrated(code).times(consistency)
    answered = answered_rows(model, user, code)
    rng = draws_for(model, user, answered, random_state)
    left, right = candidate_pairs(candidates, model.items_, utilities, user=user, strategy=strategy, rng=rng)
    n_items = len(model.items_)
    barred: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    if exclude is not None:
        first, second, whose = read_pairs(exclude, model.items_)
        mine = rows_of(user, whose, len(first))
        barred.append(pair_keys(first[mine], second[mine], n_items))
    if not repeat:
        if answered is not None:
            barred.append(pair_keys(*answered[:2], n_items))
        elif exclude is None and len(left):
            warnings.warn(
                f"this model does not hold who answered what: pairs that {quoted(user)} answered may be asked again. "
                f"Name them with {either('--exclude ANSWERS', 'exclude=answers')}", DataWarning, stacklevel=2,
            )  # fmt: skip
    left, right = without(left, right, np.concatenate(barred), n_items)
    mean, var = utilities.margins(left, right)
    delta = _thresholds(model, np.array([code]), left, right)
    if strategy == "random":
        few = shuffled(var, rng)[:n]
    elif not model.posterior_.by_utilities:
        # Answers are about more than two utilities, such as a trade-off: by these, which pairs are worth a prediction.
        coarse = _scorer(strategy, mean, var, delta, _level(utilities), left, right)(slice(None), None)
        few = np.arange(len(left))
        if len(few) > _MOST_PREDICTED:
            few = np.sort(best_first(coarse, rng)[:_MOST_PREDICTED])
    else:
        few = None
    if few is not None:
        left, right = left[few], right[few]
        delta = delta[few] if len(delta) > 1 else delta
        mean, var = _predicted(model, _repeated(user, code, len(left)), left, right)
        mean, var = consistency * mean, consistency**2 * var
    chosen: IntArray
    if strategy == "random":
        chosen, scores = np.arange(len(left)), bald(mean, var, delta)
    else:
        score = _scorer(strategy, mean, var, delta, _level(utilities), left, right)
        chosen, scores = greedy(score, var, left, right, utilities, int(n), rng)
        if strategy == "eubo":
            scores = scores / consistency
    return _frame(model, _repeated(user, code, len(chosen)), left[chosen], right[chosen], scores)


def suggest_each(
    model: Fitted, candidates: Any, strategy: str = "bald", *, repeat: bool = False, random_state: int = 0
) -> Any:
    """See :meth:`Asking.suggest_each <predilect.models.asking.Asking.suggest_each>`."""
    check_choice("strategy", strategy, STRATEGIES)
    model = copy.copy(model)  # as it is now, whatever other threads do
    left, right, names = read_pairs(candidates, model.items_)
    if names is None:
        raise DataError("the candidates name nobody: give a column user, or call suggest for one person")
    people = Vocabulary(names)
    who = people.codes(names, what="user").astype(np.int64)
    code = np.array([_find(model, person) for person in people.ids], dtype=np.int64)
    if not repeat:
        free = _unanswered(model, people, code, who, pair_keys(left, right, len(model.items_)))
        left, right, who = left[free], right[free], who[free]
    mean, var = _predicted(model, people.series().gather(who), left, right)
    consistency = model.posterior_.consistencies(code)[0]
    care, delta = consistency[who], _thresholds(model, code[who], left, right)
    mean, var = care * mean, care * care * model.posterior_.widenings(code)[who] * var
    if strategy == "random":
        scores = bald(mean, var, delta)
    else:
        sought, offset = np.zeros(0), np.zeros(len(who), dtype=np.int64)
        if strategy == "eubo" and len(code):
            levels = [_level(model.posterior_.person(person)) for person in code.tolist()]
            sought = np.concatenate([a * level for a, level in zip(consistency.tolist(), levels, strict=True)])
            offset = who * len(model.items_)
        scores = _scorer(strategy, mean, var, delta, sought, left + offset, right + offset)(slice(None), None)
        if strategy == "eubo":
            scores = scores / care
    value = np.where(no_variance(var), -np.inf, scores)
    order = np.argsort(who, kind="stable")
    rows_of_each = np.split(order, np.flatnonzero(np.diff(who[order])) + 1) if len(order) else []

    def one_of(rows: IntArray) -> int:
        """The row that its person is asked."""
        equal = rows if strategy == "random" else rows[equal_to_best(value[rows])]
        if len(equal) == 1:
            return int(equal[0])
        place = who[rows[0]]
        person = people.ids[place]
        rng = draws_for(model, person, answered_rows(model, person, int(code[place])), random_state)
        if strategy == "random" or value[equal[0]] == -np.inf:
            return int(equal[shuffled(var[equal], rng)[0]])
        return int(rng.choice(equal))

    chosen = np.array([one_of(rows) for rows in rows_of_each], dtype=np.int64)
    asked_people = people.series().gather(who[chosen])
    return _frame(model, asked_people, left[chosen], right[chosen], scores[chosen], named=True)


def code_of(model: Fitted, user: Any, whose: str = "what is said is of") -> int:
    """Code of a person; -1 for an unseen user, with a warning if one was named."""
    check_arguments(user=user)
    if user is None:
        return -1
    code = _find(model, user)
    if code < 0:
        why = "tells nobody apart" if model.users_ is None else f"does not know {quoted(user)}"
        near = "" if model.users_ is None else did_you_mean(user, model.users_)
        warnings.warn(
            f"the model {why}: {whose} somebody without answers.{near}", DataWarning, stacklevel=3
        )  # fmt: skip
    return code


def _find(model: Fitted, user: Any) -> int:
    if model.users_ is None:
        return -1
    added = model._added_users.get(model.users_.own(user), -1)
    return added if added >= 0 else model.users_.code(user)


def _thresholds(model: Fitted, codes: IntArray, left: IntArray, right: IntArray) -> FloatArray:
    """Tie thresholds of people, by code, about pairs, (n,); (1,) for one person if they are the same for all pairs."""
    of_people = model.tie_threshold_ * model.posterior_.tie_factors(codes)
    return np.asarray(of_people * model.posterior_.tie_factors_of_pairs(left, right))


def _unanswered(model: Fitted, people: Vocabulary, code: IntArray, who: IntArray, key: IntArray) -> BoolArray:
    """Mask of the candidates that their people did not answer, shape (n,)."""
    size, taken, lost = len(model.items_) ** 2, [], 0
    for place, (person, known) in enumerate(zip(people.ids, code.tolist(), strict=True)):
        answered = answered_rows(model, person, known)
        lost += answered is None
        if answered is not None:
            taken.append(place * size + pair_keys(*answered[:2], len(model.items_)))
    if lost:
        warnings.warn(
            f"this model does not hold who answered what: pairs that {lost} of the people answered may be asked again",
            DataWarning, stacklevel=3,
        )  # fmt: skip
    return ~np.isin(who * size + key, np.concatenate(taken)) if taken else np.ones(len(who), dtype=bool)


def _level(utilities: Utilities) -> FloatArray:
    """Mean utility of each item above the average item, shape (n_items,)."""
    return np.asarray(utilities.mean - utilities.mean.mean()) if len(utilities.mean) else utilities.mean


def _scorer(
    strategy: str,
    mean: FloatArray,
    var: FloatArray,
    delta: FloatArray,
    level: FloatArray,
    left: IntArray,
    right: IntArray,
) -> Score:
    """Score that is maximised; "eubo" also takes ``level``, mean utilities at the places ``left`` and ``right``."""
    each = len(delta) == len(mean) and len(delta) != 1

    def score(rows: Any, resolved: FloatArray | None) -> FloatArray:
        if strategy == "eubo":
            rest = var[rows] if resolved is None else np.maximum(var[rows] - resolved, 0.0)
            return expected_best(level[left[rows]], level[right[rows]], rest)
        known = None if resolved is None else np.minimum(resolved, var[rows])  # rounding
        return _MEASURES[strategy](mean[rows], var[rows], delta[rows] if each else delta[0], resolved=known)

    return score


def _repeated(user: Any, code: int, n: int) -> pl.Series | None:
    return pl.Series([user] * n) if code >= 0 else None


def _pairs(model: Fitted, left: IntArray, right: IntArray) -> dict[str, pl.Series]:
    series = model.items_.series()
    return {"left": series.gather(left).alias("left"), "right": series.gather(right).alias("right")}


def _predicted(model: Fitted, who: pl.Series | None, left: IntArray, right: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of margins by the model's ``predict_margin``."""
    if not len(left):
        return np.zeros(0), np.zeros(0)
    pairs = _pairs(model, left, right)
    return model.predict_margin(pairs if who is None or not model.personal_ else pairs | {"user": who})


def _frame(
    model: Fitted, who: pl.Series | None, left: IntArray, right: IntArray, scores: FloatArray, named: bool = False
) -> Any:
    """Questions with the probabilities of their answers, in the caller's kind of frame."""
    pairs = _pairs(model, left, right)
    asked = pairs if who is None or not model.personal_ else pairs | {"user": who}
    chance = model._predict_margin_and_proba(asked)[2] if len(left) else np.zeros((0, 3))
    columns: dict[str, Any] = {"user": who} if named else {}
    columns |= pairs | {"score": scores}
    columns |= {f"p_{outcome}": chance[:, k] for k, outcome in enumerate(("left", "tie", "right"))}
    return build_frame(columns, model._backend)


def suggest_set(
    model: Fitted, user: Any = None, size: int = 4, candidates: Sequence[Any] | None = None, *, exclude: Any = None,
    repeat: bool = False, random_state: int = 0,
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_set <predilect.models.asking.Asking.suggest_set>`."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 2 <= size <= LARGEST_SET:
        raise DataError(f"size must be a whole number of alternatives from 2 to {LARGEST_SET}; got {quoted(size)}")
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
    code = code_of(model, user, "the questions are for")
    answered = answered_rows(model, user, code)
    rng = draws_for(model, user, answered, random_state)
    mean, covariance = model.posterior_.calibrated(code).times(model.posterior_.consistency_of(code)).dense()
    if len(items) > _MOST_ITEMS:
        within = covariance[np.ix_(items, items)]
        own = np.diagonal(within) - 2.0 * within.mean(axis=0) + within.mean()
        items = np.sort(items[best_first(own, rng)[:_MOST_ITEMS]])
    covariance = covariance[np.ix_(items, items)]
    root = semidefinite_root(covariance)
    draws = mean[items] + rng.standard_normal((_DRAWS, root.shape[1])) @ root.T
    barred = _barred(model, user, answered, exclude, repeat)
    place_of = {item: place for place, item in enumerate(items.tolist())}
    closed = [{place_of[item] for item in one} for one in set(barred) if len(one) == size and one <= place_of.keys()]
    first, second = all_pairs(np.arange(len(items)))
    var = np.diagonal(covariance)[first] + np.diagonal(covariance)[second] - 2.0 * covariance[first, second]
    information = bald(mean[items][first] - mean[items][second], np.maximum(var, 0.0))
    starts = ([int(first[k]), int(second[k])] for k in best_first(information, rng))
    chosen = next((start for start in starts if is_open(start, len(items), size, closed)), [])
    while chosen and len(chosen) < size:
        rest = np.array([place for place in range(len(items)) if place not in chosen])
        information, _ = _information(draws, np.column_stack([np.tile(chosen, (len(rest), 1)), rest]))
        nexts = ([*chosen, int(place)] for place in rest[best_first(information, rng)])
        chosen = next(more for more in nexts if is_open(more, len(items), size, closed))
    names = model.items_.series().gather(pl.Series(items[chosen], dtype=pl.Int64)).alias("item")
    begun = [_information(draws, np.array([chosen[:k]])) for k in range(2, len(chosen) + 1)]
    scores = [0.0, *(float(bits[0]) for bits, _ in begun)] if chosen else []
    chances = begun[-1][1][0] if chosen else np.zeros(0)
    return build_frame({"item": names, "p_best": chances, "score": np.array(scores, dtype=np.float64)}, model._backend)


def is_open(begun: list[int], n_items: int, size: int, closed: list[set[int]]) -> bool:
    """Whether a set that begins so may be completed to one that is not closed."""
    n_closed = sum(one.issuperset(begun) for one in closed)
    return n_closed < math.comb(n_items - len(begun), size - len(begun))


def _barred(
    model: Fitted, user: Any, answered: tuple[IntArray, IntArray, IntArray] | None, exclude: Any, repeat: bool
) -> list[frozenset[int]]:  # fmt: skip
    """Sets of items, by code, that are not to be asked; ``answered``: see :func:`answered_rows`."""
    barred = [] if exclude is None else read_sets(exclude, model, user)
    if repeat:
        return barred
    if answered is not None:
        return barred + sets_of_rows(*answered)
    if exclude is None:
        warnings.warn(
            f"this model does not hold who answered what: a set that {quoted(user)} answered may be asked again. "
            f"Name such with {either('--exclude ANSWERS', 'exclude=answers')}", DataWarning, stacklevel=3,
        )  # fmt: skip
    return barred


def read_sets(exclude: Any, model: Fitted, user: Any) -> list[frozenset[int]]:
    """Sets of a person's, or of all where nobody is named, by codes of their items."""
    if isinstance(exclude, Comparisons):
        left, right, whose = read_pairs(exclude, model.items_)
        mine = rows_of(user, whose, len(left))
        tasks = np.full(len(left), -1) if exclude.task is None else exclude.task
        return sets_of_rows(left[mine], right[mine], tasks[mine])
    if isinstance(exclude, list | tuple):
        for one in exclude:
            check_list("a set not to ask", one, of="items")
        return [frozenset(model.items_.codes(list(one)).tolist()) for one in exclude]
    table, _ = open_frame(exclude)
    names = column_names(table)
    item, task, person = (guess_one(names, known) for known in (ITEM, TASK, PEOPLE))
    if item is None:
        raise DataError(
            f"sets not to ask have a column item, a row an item, and a column task where there are several; these "
            f"columns are {listed(names)}. Rename them, or give answers: Comparisons.from_frame(...)"
        )
    grouping = [name for name in (task, person) if name is not None]
    columns = to_columns(table, [item, *grouping])
    codes = model.items_.codes(clean_ids(columns[item], item)).astype(np.int64)
    mine = rows_of(user, None if person is None else clean_ids(columns[person], person), len(codes))
    number = np.zeros(len(codes), dtype=np.int64)
    if grouping:  # people may number their tasks alike
        refuse_without_threads()
        number = pl.DataFrame({name: columns[name] for name in grouping}).to_struct().rank("dense").to_numpy()
    return [frozenset(codes[mine & (number == one)].tolist()) for one in np.unique(number[mine])]


def sets_of_rows(left: IntArray, right: IntArray, task: IntArray) -> list[frozenset[int]]:
    """Items of each task, and of each row that is an answer by itself."""
    found: dict[int, set[int]] = {}
    for row, (one, other, number) in enumerate(zip(left.tolist(), right.tolist(), task.tolist(), strict=True)):
        found.setdefault(number if number >= 0 else -1 - row, set()).update((one, other))
    return [frozenset(one) for one in found.values()]


def _information(draws: FloatArray, sets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Bits that choices from sets (n, k) tell, (n,), and the chances of the alternatives, (n, k)."""
    information, chances = np.empty(len(sets)), np.empty(sets.shape)
    for row, alternatives in enumerate(sets):
        p = choice_chances(draws[:, alternatives])
        average = p.mean(axis=0)
        information[row] = (entr(average).sum() - entr(p).sum(axis=1).mean()) / np.log(2.0)
        chances[row] = average
    return information, chances


def choice_chances(f: FloatArray) -> FloatArray:
    """Chances of each of k alternatives with utilities f (n, k) to be felt best, with noise N(0, ½) on each; (n, k)."""
    inside = np.ones((*f.shape, len(_NODES)))
    for one, other in permutations(range(f.shape[1]), 2):
        apart = np.sqrt(2.0) * (f[:, one] - f[:, other])  # in standard deviations of one alternative's noise
        inside[:, one] *= ndtr(apart[:, None] + _NODES)
    p = inside @ _WEIGHTS
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def expected_largest(f: FloatArray) -> FloatArray:
    """Expected value of the largest of k utilities f (n, k) with the noise of :func:`choice_chances`; (n,)."""
    k = f.shape[1]
    inside = ndtr(np.sqrt(2.0) * (f[:, :, None] - f[:, None, :])[:, :, :, None] + _NODES)
    inside[:, np.arange(k), np.arange(k)] = f[:, :, None] + np.sqrt(0.5) * _NODES
    return np.asarray((inside.prod(axis=2) @ _WEIGHTS).sum(axis=1))


def chance_of_first(f: FloatArray) -> FloatArray:
    """Chance of the first of k alternatives, as :func:`choice_chances` has it; (n,)."""
    apart = np.sqrt(2.0) * (f[:, :1] - f[:, 1:])
    return np.asarray(ndtr(apart[:, :, None] + _FEW_NODES).prod(axis=1) @ _FEW_WEIGHTS)
