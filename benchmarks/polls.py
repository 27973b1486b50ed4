"""Live polls in simulation: what to ask a crowd, and when to stop.

    python -m benchmarks.polls boards|places|chances|learned [--seeds FROM TO] [--sizes ...] [--ways ...]
    python -m benchmarks.polls page

People's utilities are N(m, .5 I) about a consensus m ~ N(0, I), and answers have the noise of the model. Everybody
answers one question after the other, in turns of random order; the model takes each answer by ``update``, new weights
of questions are made every five answers, and it is fitted anew at 100, 300 and 900 answers, with the hyper-parameters
of the truth. Ways are compared on the same truths and people.

boards: the rank correlation of the board with m. places: answers until ``outlook`` says that first place is settled,
whether it is right then, and what was said before. chances: chi-square of the probabilities that are logged, against
100 000 draws. learned: polls as users have them, with learned settings and the refits of a live poll: how often
intervals of the board and probabilities of first place hold, and what is first when that is settled. page: write
benchmarks/results/polls.md from the records of the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import chisquare, spearmanr

from benchmarks.polls_page import markdown
from benchmarks.store import write_whole
from predilect import Population
from predilect.decisions import crowd
from predilect.errors import ConvergenceWarning, DataWarning
from predilect.live.state import due_counts

RESULTS = Path(__file__).parent / "results"
CROWDS = {"10 items": (10, 100, 1000), "200 items": (200, 100, 1000)}
PLACES = {"10 items": (10, 100, 800), "20 items": (20, 100, 1500), "60 items": (60, 100, 2500)}
LEARNED = {"8 items": (8, 10, 200), "12 items": (12, 30, 400), "20 items": (20, 100, 600)}
LOOKS = 10  # at a poll with learned settings, evenly
CHECK = 10  # answers from one look at the rule to the next
FORECASTS = (100, 200, 400)  # answers at which it is said how many more settle first place
N_CHANCES = 100_000
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

    def __init__(self, world: World, way: str, seed: int, *, is_learned: bool = False) -> None:
        self.settings = {"n_jobs": 1} if is_learned else GIVEN
        self.fits = due_counts() if is_learned else (int(FIRST_FIT * GROWTH**k) for k in itertools.count())
        self.world, self.way, self.rng = world, way, np.random.default_rng([seed, 1])
        n_people, n_items = world.people.shape
        self.ids = [f"i{k:03d}" for k in range(n_items)]
        self.turns = np.concatenate([np.random.default_rng([seed, 2, k]).permutation(n_people) for k in range(200)])
        self.noise = np.random.default_rng([seed, 3])
        self.rows: list[tuple[str, str, str, str]] = []
        self.shown = np.zeros(n_items)
        self.model = Population(**self.settings).fit(None, items=self.ids)
        self.next_fit = next(self.fits)
        self.questions: Any = None

    def step(self) -> bool:
        """Ask, answer, update; False if the person has no pair left."""
        who = int(self.turns[len(self.rows)])
        if self.questions is None or len(self.rows) % EVERY == 0:
            self.questions = self.model.questions(self.way)
        found = self.questions.draw(f"p{who}", random_state=self.rng)
        if not found:
            return False
        a, b = self.ids.index(found[0].left), self.ids.index(found[0].right)
        z = self.world.people[who, a] - self.world.people[who, b] + self.noise.standard_normal()
        winner = self.ids[a if z > 0.0 else b]
        self.shown[[a, b]] += 1
        self.rows.append((f"p{who}", self.ids[a], self.ids[b], winner))
        self.model.update(user=f"p{who}", left=self.ids[a], right=self.ids[b], winner=winner)
        if len(self.rows) >= self.next_fit:
            self.next_fit = next(self.fits)
            table = pl.DataFrame(self.rows, schema=["user", "left", "right", "winner"], orient="row")
            self.model, self.questions = Population(**self.settings).fit(table, items=self.ids), None
        return True

    def board(self) -> npt.NDArray[np.float64]:
        """Scores of the items."""
        return np.asarray(self.model.utilities(ranks=False)["mean"].to_numpy())


def boards(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """Rank correlation at some numbers of answers, and how often the item shown least was."""
    n_items, n_people, n_answers = size
    poll = Poll(World.drawn(np.random.default_rng([seed, 0]), n_items, n_people), way, seed)
    found = {}
    for n in range(1, n_answers + 1):
        poll.step()
        if n in CHECKED:
            found[str(n)] = float(spearmanr(poll.board(), poll.world.truth).statistic)
    return {"way": way, "seed": seed, **found, "unseen": int((poll.shown == 0).sum()), "fewest": int(poll.shown.min())}


def places(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """Answers until ``outlook`` says that first place is settled, whether it is right, and what was said before."""
    n_items, n_people, n_answers = size
    poll = Poll(World.drawn(np.random.default_rng([seed, 0]), n_items, n_people), way, seed)
    first = int(np.argmax(poll.world.truth))
    right, said, told = [], {}, 0.0
    for n in range(1, n_answers + 1):
        if not poll.step():
            break
        right.append(int(np.argmax(poll.board())) == first)
        if n % CHECK or (n not in FORECASTS and not _is_near(poll, n)):
            continue
        found = poll.model.outlook("best", LEVEL, n_people=n_people)  # nobody else will answer
        told = found.probability
        if n in FORECASTS:
            said[str(n)] = [found.more_answers, found.likely_answers]
        if found.enough:
            break
    wrong = np.flatnonzero(~np.array(right))
    return {
        "way": way, "seed": seed, "settled": len(right) if told >= LEVEL else None, "right": right[-1], "told": told,
        "right_since": int(wrong[-1]) + 2 if len(wrong) else 1, "answers": len(right), "said": said,
        "right_of_all": int(np.argmax(poll.world.people.mean(axis=0))) == first,
    }  # fmt: skip


def _is_near(poll: Poll, n: int) -> bool:
    """Whether first place is about settled by now: draws of the board cost less than to ask for all of ``outlook``."""
    mean, covariance = poll.model.utility_distribution()
    values, vectors = np.linalg.eigh(covariance)
    draws = np.random.default_rng(n).standard_normal((2000, len(mean))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return bool(np.bincount((mean + draws).argmax(axis=1)).max() >= (LEVEL - 0.015) * 2000)


def chances(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """p-values of chi-square of the probabilities that are logged, for somebody with answers and for a newcomer."""
    n_items, n_people, n_answers = size
    poll = Poll(World.drawn(np.random.default_rng([seed, 0]), n_items, n_people), way, seed)
    for _ in range(n_answers):
        poll.step()
    asker, found = poll.model.questions(way), {}
    for who, user in (("known", "p0"), ("newcomer", None)):
        times: Counter[frozenset[str]] = Counter()
        logged: dict[frozenset[str], float] = {}
        for _ in range(N_CHANCES):
            (pair,) = asker.draw(user, random_state=poll.rng)
            times[frozenset(pair[:2])] += 1
            logged[frozenset(pair[:2])] = pair.probability
        often = [one for one in logged if logged[one] * N_CHANCES >= 5.0]
        rest = N_CHANCES - sum(times[one] for one in often)
        wanted = np.array([*(logged[one] for one in often), max(1.0 - sum(logged[one] for one in often), 1e-12)])
        seen = np.array([*(times[one] for one in often), rest])
        held = wanted * N_CHANCES >= 0.5
        found[who] = float(chisquare(seen[held], wanted[held] / wanted[held].sum() * seen[held].sum()).pvalue)
        found[f"{who}_pairs"] = len(often)
    return {"way": way, "seed": seed, **found}


def learned(way: str, seed: int, size: tuple[int, int, int]) -> dict[str, Any]:
    """How often intervals and probabilities of first place hold at some looks, and what is first when it is settled."""
    n_items, n_people, n_answers = size
    world = World.drawn(np.random.default_rng([seed, 0]), n_items, n_people)
    poll, true = Poll(world, way, seed, is_learned=True), world.truth - world.truth.mean()
    first, settled = int(np.argmax(true)), None
    held, chances = [], []
    for n in range(1, n_answers + 1):
        if not poll.step():
            break
        if n % (n_answers // LOOKS) == 0:
            board = poll.model.rank().sort("item")
            lower, upper = board["lower"].to_numpy(), board["upper"].to_numpy()
            held.append(float(np.mean((lower <= true) & (true <= upper))))
            chances.append([round(p, 4) for p in board["p_best"].to_list()])
        if settled is None and n % CHECK == 0 and _is_near(poll, n):
            found = poll.model.outlook("best", LEVEL)
            if found.enough:
                settled = [n, found.probability, int(np.argmax(poll.board())) == first]
    return {"way": way, "seed": seed, "held": held, "chances": chances, "first": first, "settled": settled}


KINDS = {
    "boards": (boards, CROWDS),
    "places": (places, PLACES),
    "chances": (chances, {"12 items": (12, 20, 60)}),
    "learned": (learned, LEARNED),
}


def run(kind: str, ways: list[str], seeds: range, sharpness: float, out: Path, sizes: list[str]) -> None:
    """Run, and keep a line of JSON a poll as soon as it is done."""
    crowd.SHARPNESS = sharpness
    measure, all_sizes = KINDS[kind]
    for seed in seeds:
        for size in sizes or list(all_sizes):
            for way in ways:
                row = {"kind": kind, "size": size, "sharpness": sharpness, **measure(way, seed, all_sizes[size])}
                line = json.dumps(row)
                print(line, flush=True)
                with out.open("a") as file:
                    file.write(line + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.polls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=(*KINDS, "page"))
    parser.add_argument("--ways", nargs="+", choices=crowd.TARGETS, default=["random", "board"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 40), metavar=("FROM", "TO"))
    parser.add_argument("--sizes", nargs="+", default=[])
    parser.add_argument("--sharpness", type=float, default=crowd.SHARPNESS)
    parser.add_argument("--records", type=Path, default=RESULTS / "polls.jsonl")
    given = parser.parse_args(arguments)
    if given.kind == "page":
        rows = [json.loads(line) for line in given.records.read_text().splitlines()]
        write_whole({RESULTS / "polls.md": markdown(rows)})
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(given.kind, given.ways, range(*given.seeds), given.sharpness, given.records, given.sizes)


if __name__ == "__main__":
    main()
