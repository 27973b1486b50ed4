"""Parts of a task: ``amt-cars@share=10`` has a tenth of all answers for training, ``@select=8`` eight attributes.

Whatever the share, a fifth of the answers is held out, and the training answers of a smaller share are among those of
a larger one: curves over shares compare like with like.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import TASKS, choices, ratings
from benchmarks.selection import selected_attributes
from benchmarks.task import Loader, Task, without_absent

__all__ = ["TEST_SHARE", "find_loader", "thinned"]

TEST_SHARE = 0.2


def find_loader(name: str) -> Loader:
    """The loader of a task, or of a part of one.

    Parameters
    ----------
    name : str
        A task, and perhaps ``@share=``, per cent of all answers for training, up to 80; ``@select=``, how many
        attributes of the items greedy forward selection leaves. It sees all answers that are not held out, whatever
        the share: it takes longer than all fits together, and the paper too selected once.

    Raises
    ------
    KeyError
        If there is no such task.
    ValueError
        If the options cannot be had.
    """
    base, *pairs = name.split("@")
    if base not in TASKS:
        raise KeyError(f"there is no task {base!r}; there are {', '.join(TASKS)}")
    if not pairs:
        return TASKS[base]
    options = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in ("share", "select") or not value.isdigit():
            raise ValueError(f"{name}: the part of a task is @share=PER CENT or @select=NUMBER, not @{pair}")
        options[key] = int(value)
    share, select = options.get("share"), options.get("select")
    if share is not None and not 0 < share <= 100 * (1 - TEST_SHARE):
        raise ValueError(f"{name}: the share is from 1 to {100 * (1 - TEST_SHARE):.0f} per cent")
    if share is not None and base not in _SPLIT:
        raise ValueError(f"{name}: shares are known for {', '.join(_SPLIT)}")

    def load(seed: int) -> Task:
        task = (TASKS if share is None else _SPLIT)[base](seed)
        if select is not None:
            task = replace(task, items=selected_attributes(task, select))
        if share is not None:
            task = thinned(task, share / 100 / (1 - TEST_SHARE))
        return replace(task, name=name)

    return load


def thinned(task: Task, share: float) -> Task:
    """Some of the training answers of every person.

    Parameters
    ----------
    task : Task
    share : float
        Of the training answers. All answers of a person in one task, or else to one pair, stay together; every person
        keeps that share of them, rounded up or down at random, and that of a smaller share is among that of a larger.
    """
    train = task.train
    parts = (train.user, train.task) if train.task is not None else (train.user, train.left, train.right)
    _, first, group = np.unique(np.stack(parts), axis=1, return_index=True, return_inverse=True)
    kept = _places(train.user[first], np.random.default_rng([task.seed, 1])) < share
    return replace(task, train=without_absent(train.take(kept[np.ravel(group)])), implied=None)


def _places(person: npt.NDArray[np.integer], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each group of a person, spread evenly: n of them, all multiples of 1/n plus a constant."""
    chance = rng.random(len(person))
    order = np.lexsort((chance, person))
    start = np.searchsorted(person[order], person[order], side="left")
    size = np.searchsorted(person[order], person[order], side="right") - start
    offset = rng.random(int(person.max(initial=-1)) + 1)[person[order]]
    place = np.empty(len(person))
    place[order] = (np.arange(len(person)) - start + offset) / size
    return place


# Tasks whose answers can be split at another place than usual.
_SPLIT: dict[str, Loader] = {
    "amt-cars": partial(choices.load_cars, test_share=TEST_SHARE),
    "uk-election-2010": partial(ratings.load_election, test_share=TEST_SHARE),
} | {name.replace("_", "-"): partial(choices.load, name, test_share=TEST_SHARE) for name in choices.SETS}
