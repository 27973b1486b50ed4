"""Live polls in simulation: what to ask a crowd, and when to stop: ``python -m benchmarks.polls``.

People's utilities are N(m, .5 I) about a consensus m ~ N(0, I), and answers have the noise of the model. Everybody
answers one question after the other, in turns of random order; the model takes each answer by ``update``, new weights
of questions are made every five answers, and it is fitted anew at 100, 300 and 900 answers. Ways are compared on the
same truths and people.

boards: the rank correlation of the board with m. best: answers until the first place is right, and stays. stop: answers
until ``outlook`` says that the first place is settled, with truths drawn from a fitted population.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import spearmanr

from predilect import Population
from predilect.decisions import crowd
from predilect.errors import ConvergenceWarning, DataWarning

RESULTS = Path(__file__).parent / "results"
CROWDS = {"10 items": (10, 100, 1000), "200 items": (200, 100, 1000)}
SOUGHT = {"20 items": (20, 100, 1500), "60 items": (60, 100, 2500)}
STOPPED = {"10 items": (10, 100, 800)}
CHECK = 10  # answers from one look at the rule to the next
EVERY, FIRST_FIT, GROWTH, BETWEEN = 5, 100, 3.0, 0.5
CHECKED = (250, 500, 750, 1000)
LEVEL = 0.95
# The hyper-parameters are those of the truth, so that a fit takes no search; both ways have the same.
GIVEN: dict[str, Any] = {
    "strength": 30.0, "variance": BETWEEN, "consensus_variance": 1.0, "consistency": 0.0, "calibration": None,
    "n_jobs": 1,
}  # fmt: skip


class World(NamedTuple):
    """What people think: the consensus (n_items,), and everybody's utilities (n_people, n_items)."""

    truth: npt.NDArray[np.float64]
    people: npt.NDArray[np.float64]

    @classmethod
    def drawn(cls, rng: np.random.Generator, n_items: int, n_people: int) -> World:
        """A consensus and people about it."""
        truth = rng.standard_normal(n_items)
        return cls(truth, truth + np.sqrt(BETWEEN) * rng.standard_normal((n_people, n_items)))


class Poll:
    """A poll of some people by one way of asking."""

    def __init__(self, world: World, way: str, seed: int, start: Population | None = None) -> None:
        self.world, self.way, self.rng = world, way, np.random.default_rng([seed, 1])
        n_people, n_items = world.people.shape
        self.ids = [f"i{k:03d}" for k in range(n_items)]
        self.turns = np.concatenate([np.random.default_rng([seed, 2, k]).permutation(n_people) for k in range(200)])
        self.noise = np.random.default_rng([seed, 3])
        self.rows: list[tuple[str, str, str, str]] = []
        self.shown = np.zeros(n_items)
        self.model = Population(**GIVEN).fit(None, items=self.ids) if start is None else start
        self.next_fit: float = FIRST_FIT
        self.refits = start is None
        self.questions: Any = None

    def step(self) -> bool:
        """Ask, answer, update; False if the person has no pair left."""
        who = int(self.turns[len(self.rows)])
        if self.questions is None or len(self.rows) % EVERY == 0:
            self.questions = self.model.questions(self.way)
        found = self.questions.ask(f"p{who}", random_state=self.rng)
        if not found:
            return False
        a, b = self.ids.index(found[0].left), self.ids.index(found[0].right)
        z = self.world.people[who, a] - self.world.people[who, b] + self.noise.standard_normal()
        winner = self.ids[a if z > 0.0 else b]
        self.shown[[a, b]] += 1
        self.rows.append((f"p{who}", self.ids[a], self.ids[b], winner))
        self.model.update(user=f"p{who}", left=self.ids[a], right=self.ids[b], winner=winner)
        if self.refits and len(self.rows) >= self.next_fit:
            self.next_fit *= GROWTH
            table = pl.DataFrame(self.rows, schema=["user", "left", "right", "winner"], orient="row")
            self.model, self.questions = Population(**GIVEN).fit(table, items=self.ids), None
        return True

    def board(self) -> npt.NDArray[np.float64]:
        """Scores of the items."""
        return np.asarray(self.model.utilities(ranks=False)["mean"].to_numpy())


def board(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """Rank correlation at some numbers of answers, and how often the item shown least was."""
    n_items, n_people, n_answers = size
    poll = Poll(World.drawn(np.random.default_rng([seed, 0]), n_items, n_people), way, seed)
    found = {}
    for n in range(1, n_answers + 1):
        poll.step()
        if n in CHECKED:
            found[str(n)] = float(spearmanr(poll.board(), poll.world.truth).statistic)
    return {"way": way, "seed": seed, **found, "unseen": int((poll.shown == 0).sum()), "fewest": int(poll.shown.min())}


def best(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """Share of the answers after each of which the first place is right, and answers until it stays so."""
    n_items, n_people, n_answers = size
    poll = Poll(World.drawn(np.random.default_rng([seed, 0]), n_items, n_people), way, seed)
    first, right = int(np.argmax(poll.world.truth)), []
    for _ in range(n_answers):
        poll.step()
        right.append(int(np.argmax(poll.board())) == first)
    wrong = np.flatnonzero(~np.array(right))
    stays = int(wrong[-1]) + 2 if len(wrong) else 1
    of_time = {str(n): float(np.mean(right[n - 100 : n])) for n in range(100, n_answers + 1, 100)}
    return {"way": way, "seed": seed, "stays": stays, **of_time, "unseen": int((poll.shown == 0).sum())}


def stop(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """Answers until ``outlook`` says that first place is settled, whether it is right, and what was said."""
    n_items, n_people, n_answers = size
    # Truths are those of the prior, which is not fitted anew.
    world = World.drawn(np.random.default_rng([seed, 0]), n_items, n_people)
    poll = Poll(world, way, seed, start=Population(**GIVEN).fit(None, items=[f"i{k:03d}" for k in range(n_items)]))
    told = 0.0
    for n in range(1, n_answers + 1):
        if not poll.step():
            break
        if n % CHECK:
            continue
        mean, covariance = poll.model.utility_distribution()
        draws = np.random.default_rng(n).multivariate_normal(mean, covariance, size=1000, method="eigh")
        if np.bincount(draws.argmax(axis=1)).max() < (LEVEL - 0.05) * 1000:  # far from settled: not worth the asking
            continue
        found = poll.model.outlook("best", LEVEL)
        told = found.probability
        if found.enough:
            break
    first = int(np.argmax(world.truth))
    chosen = int(np.argmax(poll.board()))
    stopped = told >= LEVEL
    return {"way": way, "seed": seed, "stopped": stopped, "answers": n, "right": chosen == first, "told": told}


def run(kind: str, ways: list[str], seeds: range, sharpness: float | None, out: Path | None, sizes: list[str]) -> None:
    """Run and print a line of JSON a poll, as soon as it is done."""
    if sharpness is not None:
        crowd._SHARPNESS = sharpness  # type: ignore[misc]
    measure, all_sizes = {"boards": (board, CROWDS), "best": (best, SOUGHT), "stop": (stop, STOPPED)}[kind]
    for seed in seeds:
        for size in sizes or list(all_sizes):
            for way in ways:
                row = {"kind": kind, "size": size, "sharpness": sharpness, **measure(way, seed, all_sizes[size])}
                line = json.dumps(row)
                print(line, flush=True)
                if out is not None:
                    with out.open("a") as file:
                        file.write(line + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polls", description=__doc__)
    parser.add_argument("kind", choices=("boards", "best", "stop"))
    parser.add_argument("--ways", nargs="+", choices=crowd.TARGETS, default=["random", "board"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 40), metavar=("FROM", "TO"))
    parser.add_argument("--sizes", nargs="+", default=[])
    parser.add_argument("--sharpness", type=float, default=None)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(given.kind, given.ways, range(*given.seeds), given.sharpness, given.out, given.sizes)


if __name__ == "__main__":
    main()
