"""What one more answer costs, by how many the model holds: ``python -m benchmarks.updates``.

Answers of simulated people, 20 each on 200 items. The people of a million answers are laid beside the population that a
fit to ten thousand found: what an update costs depends on the numbers of people and items, and not on what m and Σ are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect import Population
from predilect.data import Comparisons
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.updating import begin_updates

N_ITEMS, PER_PERSON = 200, 20
SETTINGS = {"strength": 50.0, "variance": 2.0, "consensus_variance": 4.0, "max_iter": 20, "n_jobs": 1}
KINDS: dict[str, dict[str, Any]] = {  # of people, with the share of ties
    "personal": {"tie_threshold": 0.0},
    "own thresholds": {"tie_threshold": ("auto", 0.5)},
}
OUTCOMES = {"left": 1, "tie": 0, "right": -1}
CLOSE = 0.6  # utilities that differ by less are said to be a tie, where there are ties


def answers(n: int, seed: int, n_users: int | None = None, *, ties: bool = False) -> dict[str, Any]:
    """Columns of n answers, perhaps with ties; people in turn, so that each has as many."""
    rng = np.random.default_rng(seed)
    left = rng.integers(N_ITEMS, size=n)
    right = (left + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS
    liking = np.random.default_rng(0).standard_normal(N_ITEMS)
    difference = liking[left] - liking[right] + 1.5 * rng.standard_normal(n)
    outcome = np.where(difference > 0, 1, -1) * (np.abs(difference) > (CLOSE if ties else 0.0))
    user = np.arange(n) % (n_users or n // PER_PERSON)
    rng.shuffle(user)
    return {"user": names("person", user), "left": names("item", left), "right": names("item", right),
            "winner": np.array(["tie", "left", "right"])[outcome].tolist()}  # fmt: skip


def names(what: str, codes: npt.NDArray[np.integer]) -> list[str]:
    """Ids that sort as their codes."""
    return [f"{what} {code:06d}" for code in codes.tolist()]


def with_answers(model: Population, comparisons: Comparisons) -> Population:
    """The population of a model with other people's answers."""
    assert isinstance(model.posterior_, PopulationPosterior)
    comparisons = comparisons.with_items(model.items_)
    people, law = lay_out(comparisons), model.posterior_.law
    sites, spread = Sites.flat(people.n_rows), model.hyperparameters_.tie_spread
    found = converge(people, sites, law, model.tie_threshold_, spread=spread)
    people = replace(people, tie_factor=found.tie_factor)
    posterior = PopulationPosterior(model.posterior_.m, model.posterior_.C_m, model.posterior_.Sigma, people, sites)
    new = Population(**model.get_params())
    vars(new).update(vars(model))
    new.posterior_, new.users_, new.report_ = posterior, comparisons.users, {}
    new.results_by_item_, new.n_answers_ = model.results_by_item_.copy(), comparisons.n_answers
    new.verdict_ = None
    begin_updates(new, comparisons)
    return new


def microseconds(calls: list[Callable[[], Any]]) -> float:
    """Median over calls, each made once."""
    taken = []
    for call in calls:
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return 1e6 * median(taken)


def one_by_one(
    model: Population, n: int, seed: int, n_users: int, *, ties: bool = False, frames: bool = False
) -> tuple[float, float]:
    """Microseconds to take in one answer, and to take it back."""
    rows = answers(n * PER_PERSON, seed, n_users, ties=ties)
    ones = [{name: column[row] for name, column in rows.items()} for row in range(n)]
    if frames:
        made = [{name: [value] for name, value in one.items()} for one in ones]
        return tuple(microseconds([lambda f=f, m=m: m(f) for f in made]) for m in (model.update, model.forget))
    ones = [one | {"outcome": OUTCOMES[one.pop("winner")]} for one in ones]  # `winner` of one answer is an item
    return tuple(microseconds([lambda o=o, m=m: m(**o) for o in ones]) for m in (model.update, model.forget))


def row(model: Population, n: int, repeats: int, ties: bool) -> str:
    """A line of the table: what updates cost a model that holds n answers."""
    n_users = n // PER_PERSON
    one_by_one(model, 20, 3, n_users, ties=ties)
    cells = one_by_one(model, repeats, 4, n_users, ties=ties)
    cells += one_by_one(model, repeats // 5, 5, n_users, ties=ties, frames=True)
    many = answers(10_000, 6, min(n_users, 10_000), ties=ties)
    seconds = [1e-6 * microseconds([partial(change, many)]) for change in (model.update, model.forget)]
    return f"{n:>9} | " + " | ".join([f"{cell:8.0f}" for cell in cells] + [f"{cell:6.2f}" for cell in seconds])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.updates", description=__doc__)
    parser.add_argument("--repeats", type=int, default=500, help="answers taken in one by one (default 500)")
    repeats = parser.parse_args().repeats
    head = ("answers", "one, µs", "back, µs", "frame of one, µs", "back, µs", "10 000 in one call, s", "back, s")
    for kind, settings in KINDS.items():
        ties = settings["tie_threshold"] != 0.0
        small = Population(**SETTINGS, **settings).fit(Comparisons.from_frame(answers(10_000, 1, ties=ties)))
        print(f"{kind}; " + " | ".join(head))
        for n in (10_000, 100_000, 1_000_000):
            model = with_answers(small, Comparisons.from_frame(answers(n, 2, ties=ties)))
            print(row(model, n, repeats, ties))
    print("pooled; " + " | ".join(head[:3]))
    for n in (10_000, 100_000):
        pooled = Population(personal=False, n_jobs=1, consensus_variance=4.0).fit(Comparisons.from_frame(answers(n, 2)))
        cells = one_by_one(pooled, 30, 4, n // PER_PERSON)
        print(f"{n:>9} | " + " | ".join(f"{cell:8.0f}" for cell in cells))


if __name__ == "__main__":
    main()
