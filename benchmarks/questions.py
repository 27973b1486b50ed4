"""What choosing a question costs: ``python -m benchmarks.questions``.

All 499 500 pairs of 1 000 items for one of 200 people, with and without features of the items; and 1 000 people who are
asked ten questions each, one a round, with the answers taken in by ``update``. People and answers are simulated. CPU
milliseconds of one call, the median over people and the slowest; no call is left out but the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from predilect import Population

N_USERS, N_ITEMS, N_FEATURES, PER_PERSON = 200, 1000, 5, 30
STRATEGIES = ("bald", "entropy", "eubo")


class Crowd:
    """People who like items by their features."""

    def __init__(self, n_users: int, n_items: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.users, self.items = _names("person", n_users), _names("item", n_items)
        self.features = self.rng.standard_normal((n_items, N_FEATURES))
        self.liking = (1.0 + self.rng.standard_normal((n_users, N_FEATURES))) @ self.features.T

    def item_table(self) -> pl.DataFrame:
        """Features of all items."""
        names = [f"feature {k}" for k in range(N_FEATURES)]
        return pl.DataFrame({"item": self.items} | dict(zip(names, self.features.T, strict=True)))

    def answers(self, per_person: int) -> pl.DataFrame:
        """Answers of everybody on random pairs."""
        n = len(self.items)
        user = np.repeat(np.arange(len(self.users)), per_person)
        left = self.rng.integers(n, size=len(user))
        right = (left + self.rng.integers(1, n, size=len(user))) % n
        return self.asked(user, left, right)

    def asked(self, user: Any, left: Any, right: Any) -> pl.DataFrame:
        """What people answer, by codes."""
        margin = self.liking[user, left] - self.liking[user, right]
        outcome = np.where(margin + self.rng.standard_normal(len(user)) > 0.0, "left", "right")
        who, one, other = self.users.gather(user), self.items.gather(left), self.items.gather(right)
        return pl.DataFrame({"user": who, "left": one, "right": other, "outcome": outcome})


def _names(what: str, n: int) -> pl.Series:
    return pl.Series([f"{what} {code:04d}" for code in range(n)])


def milliseconds(call: Callable[[Any], Any], arguments: list[Any]) -> np.ndarray:
    """CPU time of each call but the first."""
    taken = []
    for argument in arguments:
        began = time.process_time()
        call(argument)
        taken.append(1e3 * (time.process_time() - began))
    return np.array(taken[1:])


def one_person(n_people: int, n_questions: int) -> None:
    """All pairs of 1 000 items."""
    crowd = Crowd(N_USERS, N_ITEMS, 0)
    answers, people = crowd.answers(PER_PERSON), crowd.users.to_list()[: n_people + 1]
    for items, described in ((crowd.item_table(), "with"), (None, "without")):
        model = Population(n_jobs=1).fit(answers, items=items)
        for strategy in STRATEGIES:
            taken = milliseconds(lambda u, m=model, s=strategy: m.suggest(u, n=n_questions, strategy=s), people)
            print(f"{N_ITEMS} items {described} features, {n_questions} questions by {strategy}: "
                  f"{np.median(taken):.0f} ms, the slowest of {len(taken)} {taken.max():.0f} ms")  # fmt: skip


def everybody(n_users: int, n_rounds: int) -> None:
    """A round: a question for everybody from a pool of their own, the answers, and their update."""
    crowd = Crowd(n_users, 20, 1)
    model = Population(n_jobs=1).fit(crowd.answers(10))
    pool = crowd.answers(40).select("user", "left", "right")
    began = time.process_time()
    for _ in range(n_rounds):
        found = model.suggest_each(pool)
        codes = [dict(zip(s.to_list(), range(len(s)), strict=True)) for s in (crowd.users, crowd.items)]
        user = np.array([codes[0][u] for u in found["user"]])
        left, right = (np.array([codes[1][i] for i in found[side]]) for side in ("left", "right"))
        model.update(crowd.asked(user, left, right))
    print(f"{n_users} people, {n_rounds} rounds by bald, pools of 40 pairs, with updates: "
          f"{time.process_time() - began:.1f} s")  # fmt: skip


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--people", type=int, default=40, help="how many are asked one by one (default 40)")
    parser.add_argument("--questions", type=int, default=5, help="questions of a call (default 5)")
    given = parser.parse_args()
    with threadpool_limits(1):
        one_person(given.people, given.questions)
        everybody(1000, 10)


if __name__ == "__main__":
    main()
