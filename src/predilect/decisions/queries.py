"""Active choice of questions: ``suggest`` for one person, ``suggest_each`` one question for each of many."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import polars as pl

from predilect._base.arguments import check_arguments, check_choice
from predilect._base.text import did_you_mean, either, quoted
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data import Vocabulary, build_frame
from predilect.decisions.candidates import (
    Fitted,
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
from predilect.inference.gaussian.posterior import Utilities

_MOST_PREDICTED = 5000  # pairs that are predicted one by one
STRATEGIES = ("bald", "entropy", "eubo", "random")


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
        measure = bald if strategy == "bald" else remaining_entropy
        return measure(mean[rows], var[rows], delta[rows] if each else delta[0], resolved=known)

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
