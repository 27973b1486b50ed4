"""Active learning in rounds: learning curves of strategies that choose the next question.

Everybody has a pool of pairs whose answers are known, but not to the model. In each round everybody is asked one pair
of their own pool, all answers are learned, and the model is measured. The model, and what is done with it, come as
functions.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.json import plain
from predilect.data import Comparisons
from predilect.data.frames import to_columns
from predilect.errors import DataError

__all__ = ["Gain", "Pools", "cases_of", "curve", "gain", "play", "pools_of", "resume", "sign_error"]

FloatArray = npt.NDArray[np.float64]
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pools:
    """Answers that a run starts with, may ask for, and is measured on.

    Attributes
    ----------
    start, pool, test : Comparisons
        Over the same vocabularies; a person's pairs are in one of them.
    """

    start: Comparisons
    pool: Comparisons
    test: Comparisons


def pools_of(answers: Comparisons, n_start: int, n_test: int, random_state: int = 0) -> Pools:
    """Deal the answers of each person out at random: some to start with, some for the test, the rest to be asked for.

    Parameters
    ----------
    answers : Comparisons
    n_start, n_test : int
        Answers of each person.
    random_state : int, default 0

    Raises
    ------
    DataError
        If a person has too few answers, or answered a pair twice.
    """
    n_rows = np.diff(answers.user_offsets)
    if (n_rows < n_start + n_test).any():
        few = int(np.argmin(n_rows))
        raise DataError(
            f"{n_start} answers to start with and {n_test} for the test are asked of everybody, but "
            f"{answers.users.ids[few]!r} has {n_rows[few]} in all. Leave such people out"
        )
    if len(np.unique(_keys(answers))) < answers.n_rows:
        raise DataError("somebody answered a pair twice, and a pool can give only one answer. Leave one of them out")
    order = np.lexsort((np.random.default_rng(random_state).random(answers.n_rows), answers.user))
    place = np.empty(answers.n_rows, dtype=np.int64)
    place[order] = np.arange(answers.n_rows) - np.repeat(answers.user_offsets[:-1], n_rows)
    test = (place >= n_start) & (place < n_start + n_test)
    return Pools(answers.take(place < n_start), answers.take(place >= n_start + n_test), answers.take(test))


def play(
    pools: Pools,
    strategy: str,
    *,
    fit: Callable[[Comparisons], Any],
    learn: Callable[[Any, Comparisons, Comparisons], Any],
    measure: Callable[[Any, Comparisons], dict[str, float]],
    n_rounds: int,
    random_state: int = 0,
) -> Iterator[Record]:
    """Play the rounds, and tell of each; the first record is of the model before any question.

    Parameters
    ----------
    pools : Pools
    strategy : str
        As :func:`~predilect.decisions.questions.suggest_each` takes it.
    fit : callable
        ``fit(start)`` is a fitted model.
    learn : callable
        ``learn(model, new, everything)`` is the model with the answers of this round too: an update by ``new``, or
        another fit to ``everything``.
    measure : callable
        ``measure(model, test)``: named numbers, such as :func:`sign_error` gives.
    n_rounds : int
        Ends before where all pools are empty.
    random_state : int, default 0
        Of a strategy that draws.

    Yields
    ------
    record : dict
        round, n_answers, what was measured, and CPU seconds: ask_cpu_s, learn_cpu_s.
    """
    known, pool = pools.start, pools.pool
    clock = time.process_time()
    model = fit(known)
    spent = {"ask_cpu_s": 0.0, "learn_cpu_s": time.process_time() - clock}
    yield {"round": 0, "n_answers": known.n_answers, **measure(model, pools.test), **spent}
    for number in range(1, n_rounds + 1):
        if not pool.n_rows:
            return
        clock = time.process_time()
        # A pool holds no pair that was answered: it shrinks.
        asked = model.suggest_each(pool, strategy=strategy, repeat=True, random_state=random_state * 10_007 + number)
        chosen = _rows_of(pool, asked)
        heard = time.process_time()
        new, pool = pool.take(chosen), pool.take(~chosen)
        known = known.append(new)
        model = learn(model, new, known)
        spent = {"ask_cpu_s": heard - clock, "learn_cpu_s": time.process_time() - heard}
        yield {"round": number, "n_answers": known.n_answers, **measure(model, pools.test), **spent}


def sign_error(model: Any, test: Comparisons) -> dict[str, float]:
    """Share of answers, neither of them ties, that are not the sign of the margin: "error"."""
    mean, _ = model.predict_margin(test)
    return {"error": float(np.average(np.sign(mean) != test.outcome, weights=test.weight))}


def resume(path: Path, cases: Iterable[Record], run: Callable[[Record], Iterable[Record]]) -> list[Record]:
    """Run what a file does not hold yet; each run is written as soon as it is done, one line of JSON.

    Parameters
    ----------
    path : Path
        Of JSON lines; made if it is not there. A line that was cut short is dropped, and its run made again.
    cases : iterable of dict
        Plain values that name a run.
    run : callable
        From a case to its records, as :func:`play` yields them.

    Returns
    -------
    runs : list of dict
        In the order of the cases: each case with its records in "rounds".
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    held = _runs(text)
    whole = "".join(json.dumps(found) + "\n" for found in held.values())
    if text != whole:
        path.write_text(whole, encoding="utf-8")
    runs = []
    for case in cases:
        name = _name(case)
        if name not in held:
            held[name] = {"case": plain(case), "rounds": [plain(record) for record in run(case)]}
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(held[name], allow_nan=False) + "\n")
        runs.append(held[name]["case"] | {"rounds": held[name]["rounds"]})
    return runs


def cases_of(path: Path) -> list[Record]:
    """The cases that a file of :func:`resume` holds, in the order of their runs; none where there is no file."""
    return [found["case"] for found in _runs(path.read_text(encoding="utf-8") if path.exists() else "").values()]


def _runs(text: str) -> dict[str, Record]:
    """Whole lines, by the names of their cases."""
    held: dict[str, Record] = {}
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue
        held[_name(found["case"])] = found
    return held


def curve(runs: Sequence[Record], measure: str = "error") -> tuple[FloatArray, FloatArray]:
    """Mean over runs and its standard error (NaN for one run), by round; shapes (n_rounds + 1,)."""
    values = np.array([[record[measure] for record in run["rounds"]] for run in runs])
    n = len(values)
    error = values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(values.shape[1], math.nan)
    return values.mean(axis=0), error


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much one strategy's measure is below another's, on the same splits.

    Attributes
    ----------
    mean, standard_error : float
        Over repetitions.
    n : int
        Repetitions that both have.
    """

    mean: float
    standard_error: float
    n: int


def gain(runs: Sequence[Record], others: Sequence[Record], measure: str = "error", after: int = -1) -> Gain:
    """``others`` less ``runs``, seed by seed, after a round (by default the last)."""
    one, other = ({run["seed"]: run["rounds"][after][measure] for run in part} for part in (runs, others))
    seeds = sorted(one.keys() & other.keys())
    difference = np.array([other[seed] - one[seed] for seed in seeds])
    if not len(seeds):
        return Gain(math.nan, math.nan, 0)
    spread = float(difference.std(ddof=1)) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
    return Gain(float(difference.mean()), spread, len(seeds))


def _name(case: Record) -> str:
    return json.dumps(plain(case), sort_keys=True)


def _keys(answers: Comparisons) -> npt.NDArray[np.int64]:
    user, left, right = (part.astype(np.int64) for part in (answers.user, answers.left, answers.right))
    return np.asarray((user * answers.n_items + left) * answers.n_items + right)


def _rows_of(pool: Comparisons, asked: Any) -> npt.NDArray[np.bool_]:
    """Which rows of a pool are the pairs that were asked; shape (n_rows,)."""
    columns = to_columns(asked, ("user", "left", "right"))
    user = pool.users.codes(columns["user"], what="user").astype(np.int64)
    left, right = (pool.items.codes(columns[side]).astype(np.int64) for side in ("left", "right"))
    key = (user * pool.n_items + np.minimum(left, right)) * pool.n_items + np.maximum(left, right)
    return np.isin(_keys(pool), key)
