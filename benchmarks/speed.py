"""Where a fit takes longest, measured: ``python -m benchmarks.speed [CASE ...]`` prints CPU seconds beside their bars.

Judges of many scripts, orders with levels, choices among brands, MaxDiff, sets of fifty, a thousand items, GaSPK, a
million votes, the bundled votes with their verdict, and the first compilation; all generated, but for the votes. Whole
commands, from a file to the board, with a peer's time for the same: votes, a logit, the first board. A name of a task
(``sushi-a``, ``electricity:1`` with its seed) is a case too. Each is fitted in a process of its own, with one thread,
when all has been compiled; the log loss is of held-out answers. Without a name, all in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from numba.core.event import install_recorder

from benchmarks.datasets import TASKS
from benchmarks.datasets.trade_offs import grid_items
from benchmarks.measure import answer_scores, warm_up
from benchmarks.models import build
from benchmarks.over_time import busy
from benchmarks.parts import find_loader
from benchmarks.sizes import Size, crowd
from benchmarks.task import Task, split_rows
from benchmarks.workers import THREAD_VARIABLES
from predilect import Comparisons, GaSPK, Population
from predilect.data import Vocabulary

Sets = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame | None]  # for training, held out, and attributes of items


def judges(n_users: int, n_items: int, n: int, seed: int = 1, n_test: int = 4000) -> Task:
    """Comparative judgement: few people, each with answers on many scripts, who differ little."""
    rng = np.random.default_rng(seed)
    utilities = 1.2 * rng.standard_normal(n_items) + 0.4 * rng.standard_normal((n_users, n_items))
    user = np.concatenate([np.sort(rng.integers(n_users, size=n)), rng.integers(n_users, size=n_test)])
    left = rng.integers(n_items, size=len(user))
    right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    z = utilities[user, left] - utilities[user, right] + rng.standard_normal(len(user))
    return _task(seed, user, left, right, np.sign(z), np.arange(len(user)) >= n, n_items)


def orders(n_users: int, n_items: int, per: int, levels: int, seed: int = 1) -> Task:
    """All pairs of what each person put into levels: about half are ties."""
    rng = np.random.default_rng(seed)
    common, rows = rng.standard_normal(n_items), []
    for user in range(n_users):
        items = rng.choice(n_items, per, replace=False)
        score = common[items] + 0.5 * rng.standard_normal(per) + 0.7 * rng.standard_normal(per)
        level = np.searchsorted(np.quantile(score, np.linspace(0, 1, levels + 1)[1:-1]), score)
        i, j = np.triu_indices(per, 1)
        rows.append(np.stack([np.full(len(i), user), items[i], items[j], np.sign(level[i] - level[j])], 1))
    user, left, right, outcome = np.concatenate(rows).T
    return _task(seed, user, left, right, outcome, np.random.default_rng(seed + 1).random(len(user)) < 0.15, n_items)


def _task(seed: int, user: Any, left: Any, right: Any, outcome: Any, test: Any, n_items: int) -> Task:
    frame = pl.DataFrame({"user": user, "left": left, "right": right})
    return split_rows("speed", seed, frame, outcome.astype(np.int8), test, vocabulary=Vocabulary(range(n_items)))


def scanner(n_users: int, n_items: int, n_tasks: int, size: int, seed: int) -> Sets:
    """Choices of households among one offer a brand, with price, display and feature; some buy often."""
    rng = np.random.default_rng(seed)
    brand = np.arange(n_items) % size
    price, display, feature = rng.normal(0, 1, n_items).round(2), rng.random(n_items) < 0.2, rng.random(n_items) < 0.15
    X = np.column_stack([np.eye(size)[brand], price, display, feature]).astype(float)
    mean, sd = np.r_[np.linspace(0.8, -0.8, size), -0.8, 0.4, 0.5], np.r_[np.full(size, 1.2), 0.5, 0.3, 0.3]
    utilities = (mean + sd * rng.normal(size=(n_users, size + 3))) @ X.T
    share = rng.exponential(size=n_users) + 0.1
    who = np.repeat(np.arange(n_users), np.maximum(2, np.round(share / share.sum() * n_tasks)).astype(int))
    sets = np.array([[rng.choice(np.flatnonzero(brand == b)) for b in range(size)] for _ in who])
    items = pl.DataFrame({
        "item": np.arange(n_items), "brand": [f"b{b}" for b in brand], "price": price,
        "display": display.astype(int), "feature": feature.astype(int),
    })  # fmt: skip
    held_out = np.isin(np.arange(len(who)), rng.choice(len(who), len(who) // 6, replace=False))
    return *_choices(rng, utilities, who, sets, held_out), items


def best_of(n_users: int, n_items: int, per: int, size: int, seed: int = 3) -> Sets:
    """The best of random sets; a tenth of everybody's are held out."""
    rng = np.random.default_rng(seed)
    utilities = rng.standard_normal(n_items) + 0.7 * rng.standard_normal((n_users, n_items))
    who = np.repeat(np.arange(n_users), per)
    sets = np.array([rng.choice(n_items, size, replace=False) for _ in who])
    return *_choices(rng, utilities, who, sets, np.arange(len(who)) % per < max(1, per // 10)), None


def _choices(
    rng: np.random.Generator, utilities: Any, who: Any, sets: Any, held_out: npt.NDArray[np.bool_]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    best = (utilities[who[:, None], sets] + rng.gumbel(size=sets.shape)).argmax(axis=1)
    k = sets.shape[1]
    table = pl.DataFrame({
        "user": np.repeat(who, k), "task": np.repeat(np.arange(len(who)), k), "item": sets.ravel(),
        "chosen": (np.arange(k) == best[:, None]).astype(int).ravel(),
    })  # fmt: skip
    out = np.repeat(held_out, k)
    return table.filter(~out), table.filter(out)


def made_votes(n: int, n_items: int, n_judges: int) -> pl.DataFrame:
    """Votes on one ranking, a few of them ties; with 0 judges nobody says who voted."""
    rng = np.random.default_rng(0)
    utilities, left = rng.standard_normal(n_items), rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    z = utilities[left] - utilities[right] + rng.standard_normal(n)
    name = np.array([f"model-{i:03d}" for i in range(n_items)])
    winner = np.where(z > 0.4, name[left], np.where(z < -0.4, name[right], "tie"))
    table = pl.DataFrame({"left": name[left], "right": name[right], "winner": winner})
    if not n_judges:
        return table
    judge = np.array([f"judge-{i:05d}" for i in range(n_judges)])[rng.integers(n_judges, size=n)]
    return table.insert_column(0, pl.Series("user", judge))


def votes(n: int = 10**6, n_items: int = 100, n_judges: int = 10**4) -> dict[str, tuple[float, float]]:
    """Reading and fitting of votes on one ranking, and what evalica takes for the same."""
    table = made_votes(n, n_items, n_judges)
    read, data = _timed(lambda: Comparisons.from_frame(table))
    fit, _ = _timed(lambda: Population(personal=False, n_jobs=1).fit(data))
    return {"read": (read, np.nan), "fit": (fit, np.nan), "evalica": (_timed(lambda: evalica_of(table))[0], np.nan)}


def evalica_of(table: pl.DataFrame) -> Any:
    """The ranking of votes by evalica."""
    import evalica

    left, right, winner = (table[name].to_list() for name in ("left", "right", "winner"))
    kind = evalica.Winner
    kinds = [kind.X if w == a else kind.Y if w == b else kind.Draw for a, b, w in zip(left, right, winner, strict=True)]
    return evalica.bradley_terry(left, right, kinds)


def whole_votes(n: int = 10**6, n_items: int = 100, n_judges: int = 20_000) -> dict[str, tuple[float, float]]:
    """``predilect rank`` of a file of votes, without judges and with them, and reading and ranking by evalica."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for who, way in ((0, ""), (n_judges, "no"), (n_judges, "yes")):
            made_votes(n, n_items, who).write_csv(f"{folder}/{who}.csv")
            name = f"{who} judges, personal {way}" if who else "no judges"
            said = ("--personal", way) if way else ()
            rank = ("-m", "predilect", "rank", f"{folder}/{who}.csv", *said, "--jobs", "1", "-o", f"{folder}/{name}")
            found[name], _ = _process(*rank)
        peer = f"import polars; from benchmarks.speed import evalica_of; evalica_of(polars.read_csv('{folder}/0.csv'))"
        found["evalica"], _ = _process("-c", peer)
    return {name: (taken, np.nan) for name, taken in found.items()}


_LOGIT = """
import predilect, sys
predilect.MixedLogit(method="simulated", distributions="fixed", n_jobs=1).fit(predilect.read(sys.argv[1]))
"""
_XLOGIT = """
import pandas, sys, xlogit
rows = pandas.read_csv(sys.argv[1])
names = ["x1", "x2", "x3"]
xlogit.MultinomialLogit().fit(
    rows[names], rows["chosen"], varnames=names, ids=rows["task"], alts=rows["alternative"], verbose=0
)
"""


def whole_logit(n_tasks: int = 10**5, size: int = 4) -> dict[str, tuple[float, float]]:
    """Reading a file of tasks and fitting a logit, with the memory of the process, and xlogit's for the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_tasks, size, 3)).round(2)
    best = (X @ np.array([0.5, -1.0, 0.3]) + rng.gumbel(size=(n_tasks, size))).argmax(axis=1)
    table = {"task": np.repeat(np.arange(n_tasks), size), "alternative": np.tile(np.arange(size), n_tasks)}
    table |= {f"x{k + 1}": X[..., k].ravel() for k in range(3)}
    table["chosen"] = (np.arange(size) == best[:, None]).astype(int).ravel()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame(table).write_csv(f"{folder}/tasks.csv")
        for name, code in (("", _LOGIT), ("xlogit", _XLOGIT)):
            taken, peak = _process("-c", code, f"{folder}/tasks.csv")
            found |= {name: (taken, np.nan), f"{name} peak, MB".strip(): (peak, np.nan)}
    return found


def first_board() -> dict[str, tuple[float, float]]:
    """``predilect rank`` of the bundled votes after an installation, when loops are compiled, and once more."""
    place = files("predilect") / "examples" / "llmfao"
    with tempfile.TemporaryDirectory() as folder:
        rank = ("-m", "predilect", "rank", str(place / "comparisons.csv.gz"), "--map", f"{place / 'items.csv'}:model")
        kept = {"NUMBA_CACHE_DIR": f"{folder}/loops"}
        taken = [_process(*rank, "-o", f"{folder}/{k}", compiled=False, **kept)[0] for k in range(2)]
    return {"with compilation": (taken[0], np.nan), "second": (taken[1], np.nan)}


def _process(*arguments: str, compiled: bool = True, **environment: str) -> tuple[float, float]:
    """User CPU seconds and peak memory, in MB, of a process of Python.

    Once more where it compiled loops, unless it need not be ``compiled``.
    """
    with tempfile.TemporaryFile("w+") as said:
        started = subprocess.Popen(
            [sys.executable, *arguments], env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if started.returncode:
        raise RuntimeError(f"{arguments} ended with {started.returncode}: {text[-500:]}")
    if compiled and "compiling" in text:
        return _process(*arguments, "--force") if "rank" in arguments else _process(*arguments)
    return usage.ru_utime, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def demo() -> dict[str, tuple[float, float]]:
    """The bundled votes: fit, and verdict."""
    folder = files("predilect") / "examples" / "llmfao"
    votes, texts = (pl.read_csv(str(folder / name)) for name in ("comparisons.csv.gz", "items.csv"))
    models = dict(texts.select("item", "model").iter_rows())
    comparisons = Comparisons.from_frame(votes, item_map=models)
    fit, model = _timed(lambda: Population(n_jobs=1).fit(comparisons))
    return {"fit": (fit, np.nan), "verdict": (_timed(model.verdict)[0], np.nan)}


def trade_offs(per: int, n_users: int = 264) -> dict[str, tuple[float, float]]:
    """GaSPK as it is by default, on choices between items of eight attributes: 5 333 trade-offs for 35 a person."""
    task = grid_items((2, 2, 2, 2, 2, 3, 3, 3), per * n_users, n_users, 0, n_test=20_000)
    taken, model = _timed(lambda: GaSPK(n_jobs=1).fit(task.train, items=task.items))
    return {"": (taken, -float(np.average(model._answer_log_proba(task.test), weights=task.test.weight)))}


def compilation() -> dict[str, tuple[float, float]]:
    """A first fit, less a second one, where nothing has been compiled yet."""
    code = (
        "import time; from benchmarks.speed import judges; from predilect import Population\n"
        "data, taken = judges(10, 12, 200).train, []\n"
        "for _ in range(2):\n"
        "    start = time.process_time(); Population(n_jobs=1).fit(data); taken.append(time.process_time() - start)\n"
        "print(taken[0] - taken[1])"
    )
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": folder}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    return {"": (float(said.stdout.split()[-1]), np.nan)}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a piece of work, and what it found; done again where loops were compiled meanwhile."""
    while True:
        with install_recorder("numba:compile") as compiled:
            start = time.process_time()
            found = work()
            taken = time.process_time() - start
        if not compiled.buffer:
            return taken, found


def _of_task(task: Task) -> dict[str, tuple[float, float]]:
    taken, model = _timed(lambda: build("population")(task))
    return {"": (taken, answer_scores(task.test, model.log_proba(task.test))["log_loss"])}


def _of_sets(sets: Sets) -> dict[str, tuple[float, float]]:
    train, test, items = sets
    taken, model = _timed(lambda: Population(n_jobs=1).fit(train, items=items))
    chance = np.asarray(model.predict_choice(test.select("user", "task", "item")))
    return {"": (taken, -float(np.log(chance[test["chosen"].to_numpy() == 1]).mean()))}


# What is made, and the bars of its parts in CPU seconds.
CASES: dict[str, tuple[Callable[[], Any], dict[str, float]]] = {
    "10 judges, 189 scripts": (lambda: judges(10, 189, 1890), {"": 4.0}),
    "40 judges, 2000 scripts": (lambda: judges(40, 2000, 26_000), {"": 90.0}),
    "60 people, 573 items, levels": (lambda: orders(60, 573, 11, 3), {"": 10.0}),
    "14 people, 576 items, ties": (lambda: crowd(Size(14, 400, 576, 10.0, delta=0.5), 0), {"": 10.0}),
    "1000 items": (lambda: crowd(Size(2000, 20, 1000, 15.0), 0), {"": 15.0}),
    "choices of four, 100 households": (lambda: scanner(100, 244, 2400, 4, 1), {"": 8.0}),
    "choices of four, 136 households": (lambda: scanner(136, 276, 3300, 4, 2), {"": 8.0}),
    "choices of five, 332 households": (lambda: scanner(332, 427, 5300, 5, 3), {"": 8.0}),
    "MaxDiff: best of 4 of 12, 100 a person": (lambda: best_of(50, 12, 100, 4), {}),
    "best of 50 of 100, 200 choices": (lambda: best_of(20, 100, 10, 50), {"": 10.0}),
    "GaSPK, 264 people, 35 choices of 8 attributes": (lambda: trade_offs(35), {"": 16.0}),
    "GaSPK, 264 people, 350 choices of 8 attributes": (lambda: trade_offs(350), {"": 26.0}),
    "a million votes": (votes, {"read": 2.0, "fit": 1.0}),
    "rank a million votes": (
        whole_votes,
        {"no judges": 3.5, "20000 judges, personal no": 4.5, "20000 judges, personal yes": 35.0},
    ),
    "logit of 100000 tasks of four": (whole_logit, {"": 3.0, "peak, MB": 400.0}),
    "first board": (first_board, {"with compilation": 34.0, "second": 12.0}),
    "ratings over time: 500 items, 100 000 games": (lambda: {"": (busy()[0], np.nan)}, {"": 20.0}),
    "bundled votes": (demo, {"fit": 4.0, "verdict": 4.0}),
    "compilation": (compilation, {"": 12.0}),
}
TASK_BARS = {
    "sushi-a": 0.4, "sushi-b": 1.8, "generator-10k": 3.5, "generator-100k": 8.0, "generator-1m": 20.0,
    "swissmetro": 3.0, "electricity": 2.5, "tax-plans": 4.0, "amt-cars": 0.4,
}  # fmt: skip


def measure(name: str) -> None:
    """Print the rows of a case."""
    made, bars = CASES.get(name, (None, {"": TASK_BARS.get(name.partition(":")[0], np.nan)}))
    if made is None:
        task, _, seed = name.partition(":")
        made = lambda: find_loader(task)(int(seed or 0))  # noqa: E731
    warm_up("population")
    warnings.simplefilter("ignore")  # of small generated crowds fits warn of much; seconds are asked for alone
    found = made()
    if not isinstance(found, dict):
        found = _of_task(found) if isinstance(found, Task) else _of_sets(found)
    for part, (taken, loss) in found.items():
        said = name if not part else f"{name}: {part}"
        print(f"| {said} | {taken:.2f} | {bars.get(part, np.nan):g} | {loss:.4f} |", flush=True)


def main() -> None:
    """Each case in a process of its own."""
    if sys.argv[1:2] == ["--here"]:
        measure(sys.argv[2])
        return
    print("| case | CPU s | bar | log loss |\n|---|---|---|---|", flush=True)
    names = sys.argv[1:] or [*CASES, *(task for task in TASK_BARS if task in TASKS)]
    for name in names:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.speed", "--here", name],
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"), check=False,
        )  # fmt: skip


if __name__ == "__main__":
    main()
