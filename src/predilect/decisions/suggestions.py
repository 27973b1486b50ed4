"""Questions about the crowd's board as frames: what ``suggest``, ``suggest_each`` and ``suggest_set`` give."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl

from predilect.data import build_frame
from predilect.decisions.candidates import draws_for, read_pairs, rows_of
from predilect.decisions.crowd import PairQuestion, QuestionDraws, Questions
from predilect.decisions.queries import code_of
from predilect.decisions.sets import read_sets
from predilect.decisions.weights import Weights
from predilect.errors import DataError

# What ``suggest``, ``suggest_each`` and ``suggest_set`` ask about the crowd's board, as frames.


def suggest_about_crowd(
    model: Any, weights: Weights, user: Any, n: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest <predilect.models.asking.Asking.suggest>`."""
    draws = QuestionDraws(model, weights)
    if user is not None and draws.code(user) < 0 and model.personal_:
        code_of(model, user, "the questions are for")  # warns
    rng = _generator(model, draws, user, random_state)
    found = Questions(model, weights).ask(user, n, exclude=_ids(model, exclude, user), repeat=repeat, random_state=rng)
    return _frame_of(model, found)


def suggest_to_each(
    model: Any, weights: Weights, users: Iterable[Any], *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_each <predilect.models.asking.Asking.suggest_each>`."""
    draws = QuestionDraws(model, weights)
    rng = _generator(model, draws, None, random_state)
    found = Questions(model, weights).ask_each(
        users, exclude=_ids(model, exclude, None), repeat=repeat, random_state=rng
    )  # fmt: skip
    return _frame_of(model, found, named=True)


def suggest_set_about_crowd(
    model: Any, weights: Weights, user: Any, size: int, *, exclude: Any, repeat: bool, random_state: Any
) -> Any:  # fmt: skip
    """See :meth:`Asking.suggest_set <predilect.models.asking.Asking.suggest_set>`."""
    draws = QuestionDraws(model, weights)
    rng = _generator(model, draws, user, random_state)
    barred = [] if exclude is None else read_sets(exclude, model, user)
    ids = model.items_.ids
    sets = [[ids[one] for one in several] for several in barred]
    found = Questions(model, weights).ask_set(user, size, exclude=sets, repeat=repeat, random_state=rng)
    items = () if found is None else found.items
    chance = np.full(len(items), 0.0 if found is None else found.probability)
    series = model.items_.series()
    codes = model.items_.codes(list(items)).astype(np.int64)
    return build_frame({"item": series.gather(codes).alias("item"), "probability": chance}, model._backend)


def _generator(model: Any, draws: QuestionDraws, user: Any, random_state: Any) -> np.random.Generator:
    """Draws for a person in a state: others for each person and after each answer, and repeatable with a seed."""
    if user is not None or not isinstance(random_state, Integral):
        return draws_for(model, user, draws.answered(user, draws.code(user)), random_state)
    return np.random.default_rng([int(random_state), int(model.n_answers_)])


def _ids(model: Any, exclude: Any, user: Any) -> list[tuple[Any, Any]]:
    """Pairs of ids in what was given: a table with left and right, or a list of pairs."""
    if exclude is None:
        return []
    if isinstance(exclude, list | tuple | set | frozenset):
        pairs = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in exclude]
        if any(len(pair) != 2 for pair in pairs):
            raise DataError("a list of pairs not to ask holds two items each: exclude=[(left, right), ...]")
        return pairs
    left, right, whose = read_pairs(exclude, model.items_)
    mine, ids = rows_of(user, whose, len(left)), model.items_.ids
    return [(ids[a], ids[b]) for a, b in zip(left[mine].tolist(), right[mine].tolist(), strict=True)]


def _frame_of(model: Any, questions: list[PairQuestion], named: bool = False) -> Any:
    """Questions in the caller's kind of frame."""
    series = model.items_.series()
    columns: dict[str, Any] = {"user": pl.Series([one.user for one in questions])} if named else {}
    for side in ("left", "right"):
        codes = model.items_.codes([getattr(one, side) for one in questions]).astype(np.int64)
        columns[side] = series.gather(codes).alias(side)
    for name in ("score", "p_left", "p_tie", "p_right", "probability"):
        columns[name] = np.array([getattr(one, name) for one in questions], dtype=np.float64)
    return build_frame(columns, model._backend)
