"""Groups of opinion in made polls, of camps and of tastes that differ by degrees: ``python -m benchmarks.groups``.

The bars: two camps are found in 90 % of 50 polls, and "no groups" is said of 50 polls of continuous tastes in 90 %.
The distance of two camps is the root mean square over items of what their means differ by, in standard deviations of
people within a camp; that, ``sd``, is in units of the noise of one answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.store import made_with, missing, read_lines, write_whole
from predilect import Population

RESULTS = Path(__file__).parent / "results"
N_ITEMS, N_ANSWERS = 8, 10  # answers a person
_WITHIN = 0.5  # of the other directions, in standard deviations of the one by which tastes differ


@dataclass(frozen=True)
class Cell:
    """Polls of a kind: "camps", or how continuous tastes are spread; K is the number that is right."""

    kind: str
    n_people: int = 100
    distance: float = 2.0
    sd: float = 1.0
    K: int = 2
    seeds: int = 20
    share: tuple[float, ...] | None = None

    @property
    def right(self) -> int:
        """Number of groups that is right; 0 for none."""
        return self.K if self.kind == "camps" and self.distance else 0


CELLS = {
    "two camps": Cell("camps", sd=2.0, seeds=50),
    "normal": Cell("normal", seeds=50),
    "left to right, normal": Cell("axis", sd=2.0, seeds=50),
    "two camps, vague": Cell("camps"),
    "two camps, 200 people": Cell("camps", n_people=200),
    "two camps, 50 people": Cell("camps", n_people=50, sd=2.0),
    "two camps, 3 to 1": Cell("camps", sd=2.0, share=(0.75, 0.25)),
    "two camps, distance 1": Cell("camps", distance=1.0, sd=2.0),
    "three camps": Cell("camps", distance=3.0, sd=2.0, K=3),
    "left to right, heavy tails": Cell("t", sd=2.0),
    "left to right, flat": Cell("flat", sd=2.0),
}


class Poll:
    """A made poll, and the truth."""

    def __init__(self, name: str, seed: int) -> None:
        cell = self.cell = CELLS[name]
        rng = np.random.default_rng([seed, list(CELLS).index(name)])
        n, K = cell.n_people, cell.K
        consensus = rng.standard_normal(N_ITEMS)
        self.camp = np.zeros(n, dtype=int)
        if cell.kind == "camps":
            means = rng.standard_normal((K, N_ITEMS))
            means -= means.mean(axis=1, keepdims=True)
            means = np.stack([means[0], -means[0]]) if K == 2 else means
            i, j = np.triu_indices(K, 1)
            means *= cell.distance * cell.sd / np.sqrt(np.mean((means[i] - means[j]) ** 2))
            self.camp = rng.choice(K, n, p=cell.share)
            self.means = consensus - consensus.mean() + means
            utilities = self.means[self.camp] + cell.sd * rng.standard_normal((n, N_ITEMS))
        elif cell.kind == "normal":
            utilities = consensus + cell.sd * rng.standard_normal((n, N_ITEMS))
        else:
            along = rng.standard_normal(N_ITEMS)
            along = (along - along.mean()) / along.std()
            place = {
                "axis": rng.standard_normal(n), "t": rng.standard_t(5, n) / np.sqrt(5.0 / 3.0),
                "flat": rng.uniform(-1.0, 1.0, n) * np.sqrt(3.0),
            }[cell.kind]  # fmt: skip
            noise = rng.standard_normal((n, N_ITEMS))
            utilities = consensus + cell.sd * (place[:, None] * along + _WITHIN * noise)
        self.user = np.repeat(np.arange(n), N_ANSWERS)
        self.left = rng.integers(N_ITEMS, size=len(self.user))
        self.right = (self.left + rng.integers(1, N_ITEMS, size=len(self.user))) % N_ITEMS
        z = utilities[self.user, self.left] - utilities[self.user, self.right]
        self.outcome = np.where(z + rng.standard_normal(len(z)) > 0.0, 1, -1)

    def frame(self) -> dict[str, list[str]]:
        """Answers, with names."""
        return {
            "user": [f"u{code:04d}" for code in self.user], "left": [f"i{code}" for code in self.left],
            "right": [f"i{code}" for code in self.right],
        }  # fmt: skip


def run(name: str, seed: int) -> dict[str, Any]:
    """What is found in one poll."""
    poll = Poll(name, seed)
    model = Population(n_jobs=1).fit(poll.frame(), poll.outcome)
    began = time.process_time()
    found = model.groups()
    record = {"cell": name, "seed": seed, "found": len(found), "outcome": found.outcome, "gain": found.gain,
              "cpu_s": time.process_time() - began}  # fmt: skip
    if len(found) and len(found) == poll.cell.right:
        record |= _covered(poll, found)
    return record


def _covered(poll: Poll, found: Any) -> dict[str, float]:
    """How many 95 % intervals hold the truth: of shares, and of differences from the others."""
    K = poll.cell.right
    chance = np.full(K, 1.0 / K) if poll.cell.share is None else np.array(poll.cell.share)
    truth = poll.means - poll.means.mean(axis=1, keepdims=True)
    away = (truth - chance @ truth) / (1.0 - chance)[:, None]
    shares, differences = [], []
    for group in found.groups:
        of = {one.item: one for one in group.opinions}
        ours = np.array([of[f"i{i}"].difference for i in range(N_ITEMS)])
        k = int(np.argmin(np.sum((away - ours) ** 2, axis=1)))
        shares.append(group.lower <= chance[k] <= group.upper)
        differences += [of[f"i{i}"].difference_lower <= away[k, i] <= of[f"i{i}"].difference_upper
                        for i in range(N_ITEMS)]  # fmt: skip
    return {"shares": float(np.mean(shares)), "differences": float(np.mean(differences))}


def page(records: list[dict[str, Any]]) -> str:
    """What is written to ``results/groups.md``."""
    lines = [
        "# Groups of opinion in made polls", "",
        f"{N_ITEMS} items, {N_ANSWERS} answers a person to random pairs, consensus N(0, 1), `Population().fit(...)` "
        "and `groups()` with their defaults. Camps: people are N(camp, sd²) for each item, in units of the noise of "
        "one answer; the distance is what two camps differ by, root mean square over the items, in sd. Continuous "
        f"tastes: N(consensus, sd²) for each item, or along one line with sd and {_WITHIN:g} sd beside it. Right: the "
        "number of groups that there are, for continuous tastes none. The bars ask for 90 % in the first three rows.",
        "",
        "| polls | people | distance | sd | polls made | right | no groups | 2 | 3 and more | intervals hold "
        "shares | and differences | CPU s a poll |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, cell in CELLS.items():
        runs = [r for r in records if r["cell"] == name]
        if not runs:
            continue
        n = np.array([r["found"] for r in runs])
        held = [f"{np.mean(x):.2f}" if (x := [r[key] for r in runs if key in r]) else ""
                for key in ("shares", "differences")]  # fmt: skip
        distance = f"{cell.distance:g}" if cell.kind == "camps" else ""
        right, none, two, more = (f"{100 * np.mean(x):.0f} %" for x in (n == cell.right, n == 0, n == 2, n > 2))
        lines.append(
            f"| {name} | {cell.n_people} | {distance} | {cell.sd:g} | {len(runs)} | {right} | {none} | {two} | {more} "
            f"| {held[0]} | {held[1]} | {np.mean([r['cpu_s'] for r in runs]):.1f} |"
        )
    lines += ["", made_with("python -m benchmarks.groups"), ""]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--seeds", type=int, help="polls of each kind, by default 50 or 20")
    parser.add_argument("--cells", default=";".join(CELLS), help="with ; between them")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "groups.jsonl"
    wanted = (
        (name, seed) for name in given.cells.split(";")
        for seed in range(CELLS[name].seeds if given.seeds is None else given.seeds)
    )  # fmt: skip
    for _, (record,) in missing(path, ("cell", "seed"), wanted, run):
        print(record, file=sys.stderr, flush=True)
    records = sorted(read_lines(path), key=lambda r: (list(CELLS).index(r["cell"]), r["seed"]))
    write_whole({path: "".join(json.dumps(r) + "\n" for r in records), given.out / "groups.md": page(records)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
