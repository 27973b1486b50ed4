"""Levels of alternatives, 0 the best, of ranks and of ratings."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from predilect._base.text import shown
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.intake import UNCLEAR, counted
from predilect.data.read.assemble import Unclear
from predilect.data.read.names import RANKED, is_called
from predilect.data.read.options import option
from predilect.data.read.profiles import End, end_sentence
from predilect.data.read.sets import Sets, ranked_levels, rated_levels


def keep_rated(sets: Sets, rated: BoolArray) -> None:
    """Leave out what was not rated."""
    if not rated.all():
        sets.notes.append(f"{counted(int((~rated).sum()), 'row')} without a rating: nothing is said of them.")
        sets.task, sets.level, sets.item = sets.task[rated], sets.level[rated], sets.item.filter(pl.Series(rated))


def levels_of_ratings(rating: FloatArray, column: str, sets: Sets, end: End) -> IntArray:
    """Levels of ratings, the good ``end`` first."""
    sets.notes.append(end_sentence(column, end))
    return ranked_levels(rating) if end == "low" else rated_levels(rating)


def levels_of_ranks(rank: FloatArray, column: str, sets: Sets, end: End) -> IntArray:
    """Levels of ranks by task, the good ``end`` first; what is not ranked is below all that is."""
    odd = np.flatnonzero((rank < 0) | (rank != np.round(rank)) & ~np.isnan(rank))
    if len(odd):
        message = (
            f'column "{shown(column)}" must hold ranks, whole numbers from 1 for the best; other numbers came in '
            f"{counted(len(odd), 'row')} (first: row {odd[0] + 1}, {rank[odd[0]]:g})."
        )
        raise Unclear(message, [(f"If more is better, say {option('kind', 'rating')}.", {"kind": "rating"})])
    levels = ranked_levels(rank) if end == "low" else rated_levels(rank)
    sets.notes.append(end_sentence(column, end))
    ranked = ~np.isnan(rank)
    start = 1.0
    if ranked.any() and rank[ranked].min() == 0:
        start = 0.0
        sets.notes.append(f'Ranks in "{shown(column)}" start at 0, the best.')
    if is_called(column, RANKED):
        bad, tied = _gaps(sets.task[ranked], rank[ranked], start, sets.n_tasks)
        message = (
            f'ranks leave a gap in {{where}} (column "{shown(column)}"): expected {start:g}, {start + 1:g}, '
            f"{start + 2:g} ... in each task. Is a row missing?"
        )
        sets.unusable.append((UNCLEAR, bad, message))
        if tied:
            sets.notes.append(f"Equal ranks in {counted(tied, 'task')} say nothing about each other.")
    return levels


def _gaps(task: IntArray, rank: FloatArray, start: float, n_tasks: int) -> tuple[BoolArray, int]:
    """Tasks whose ranks leave a gap, but for the places after equal ones, (n_tasks,), and how many have equal ones."""
    order = np.lexsort((rank, task))
    task, rank = task[order], rank[order]
    fresh = np.append(True, np.diff(task) != 0)[: len(task)]
    place = np.arange(len(task)) - np.maximum.accumulate(np.where(fresh, np.arange(len(task)), 0))
    step = np.where(fresh, rank - start, np.diff(rank, prepend=start))
    lagging = rank == place + start  # 1, 2, 2, 4
    bad = np.where(fresh, step != 0, (step > 1) & ~lagging)
    tied: NDArray[np.int64] = np.bincount(task[~fresh & (step == 0)], minlength=n_tasks)
    return np.bincount(task[bad], minlength=n_tasks) > 0, int((tied > 0).sum())
