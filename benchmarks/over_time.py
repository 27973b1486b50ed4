"""Ratings over time on made leagues: ``python -m benchmarks.over_time [--worlds N]`` prints numbers beside their bars.

Leagues of 20 items and 2 000 games at random times: an item's utility is its level, and an Ornstein-Uhlenbeck process
with a memory of a quarter of the span; both have variance .5. Coverage: how often 95 % intervals of the differences of
all items, at a tenth, half and the end of the span, hold the truth. No drift: how often items that stay are found to
stay. Forecasts: log loss of the last tenth of the games, of models that know the games before, beside Elo with the step
that is best on that tenth, and kickscore (``pip install kickscore``), if it is installed, at our hyper-parameters.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from predilect import Population
from predilect.errors import DataWarning

FloatArray = NDArray[np.float64]
SPAN = 100.0
_STEPS_OF_ELO = np.geomspace(0.005, 0.5, 25)


class League(NamedTuple):
    """Games, as a frame and outcomes, and the utilities of all items at each, (n_games, n_items)."""

    games: dict[str, Any]
    outcome: NDArray[np.int64]
    utilities: FloatArray

    def at(self, rows: slice) -> League:
        """Some of the games."""
        return League({name: column[rows] for name, column in self.games.items()}, self.outcome[rows],
                      self.utilities[rows])  # fmt: skip


def league(
    seed: int, n_items: int = 20, n_games: int = 2000, *, share: float = 0.5, memory: float = 0.25, ties: float = 0.0,
    n_times: int = 0,
) -> League:  # fmt: skip
    """A made league; ``share`` of the variance 1 moves, with a memory in spans; games are at ``n_times`` times, or
    each at its own; answers within ``ties`` of 0 are ties.
    """
    rng = np.random.default_rng(seed)
    when = np.sort(rng.integers(n_times, size=n_games) / n_times if n_times else rng.random(n_games)) * SPAN
    kept = np.exp(-np.diff(when, prepend=when[0]) / (memory * SPAN))
    f = rng.standard_normal((n_games, n_items))
    for j in range(1, n_games):
        f[j] = kept[j] * f[j - 1] + np.sqrt(1.0 - kept[j] ** 2) * f[j]
    f = np.sqrt(1.0 - share) * rng.standard_normal(n_items) + np.sqrt(share) * f
    left = rng.integers(n_items, size=n_games)
    right = (left + rng.integers(1, n_items, size=n_games)) % n_items
    z = f[np.arange(n_games), left] - f[np.arange(n_games), right] + rng.standard_normal(n_games)
    outcome = np.where(np.abs(z) < ties, 0, np.sign(z)).astype(np.int64)
    names = np.array([f"item-{k:03d}" for k in range(n_items)])
    return League({"left": names[left], "right": names[right], "time": when}, outcome, f)


def fitted(made: League, drift: Any = "auto") -> Population:
    """The crowd's model of a league."""
    model = Population(personal=False, drift=drift, n_jobs=1)
    return model.fit(made.games, made.outcome, columns={"time": "time"}, reading={"tie": "0"})


def held(model: Population, made: League, place: int) -> float:
    """Share of all differences at the time of a game that lie in their 95 % intervals."""
    assert model.drift_ is not None
    mean, C = next(model.drift_.laws(made.games["time"][[place]]))
    away, one, other = mean - made.utilities[place], *np.triu_indices(len(mean), 1)
    sd = np.sqrt(C[one, one] + C[other, other] - 2.0 * C[one, other])
    return float((np.abs(away[one] - away[other]) < 1.959964 * sd).mean())


def coverage(n_worlds: int) -> list[float]:
    """Coverage at a tenth, half and the end of the span, over leagues with and without ties."""
    found = []
    for seed in range(n_worlds):
        made = league(seed, ties=0.3 * (seed % 2))
        model, last = fitted(made, True), len(made.outcome) - 1
        found.append([held(model, made, int(q * last)) for q in (0.1, 0.5, 1.0)])
    return list(np.mean(found, axis=0))


def found_to_move(n_worlds: int, share: float) -> float:
    """Share of leagues in which items are found to move."""
    return float(
        np.mean([fitted(league(1000 + seed, share=share)).report_["drift"]["found"] for seed in range(n_worlds)])
    )


def log_loss(p: FloatArray, outcome: NDArray[np.int64]) -> float:
    """Of decided games; ``p`` is the chance of the left item."""
    return float(-np.log(np.where(outcome > 0, p, 1.0 - p)).mean())


def elo(made: League, start: int) -> float:
    """Log loss of the games from ``start`` on, by ratings after those before, with the step that is best on them."""
    losses = []
    items, codes = np.unique(np.concatenate([made.games["left"], made.games["right"]]), return_inverse=True)
    left, right = np.split(codes, 2)
    for step in _STEPS_OF_ELO:
        rating = np.zeros(len(items))
        for a, b, y in zip(left[:start], right[:start], made.outcome[:start], strict=True):
            change = step * (0.5 * (y + 1) - expit(rating[a] - rating[b]))
            rating[a] += change
            rating[b] -= change
        losses.append(log_loss(expit(rating[left[start:]] - rating[right[start:]]), made.outcome[start:]))
    return min(losses)


def kickscore(made: League, start: int, model: Population) -> float:
    """Log loss of the games from ``start`` on under kickscore, fitted to those before at our hyper-parameters."""
    import kickscore as ks

    drift, level = model.drift_, model.hyperparameters_.consensus_variance
    assert drift is not None
    theirs = ks.BinaryModel(obs_type="probit")
    for item in model.items_.ids:
        theirs.add_item(item, kernel=ks.kernel.Constant(level) + ks.kernel.Exponential(drift.variance, drift.length))
    left, right, when = (made.games[name] for name in ("left", "right", "time"))
    for k in range(start):
        one, two = (left[k], right[k]) if made.outcome[k] > 0 else (right[k], left[k])
        theirs.observe(winners=[one], losers=[two], t=float(when[k]))
    theirs.fit()
    p = [theirs.probabilities([left[k]], [right[k]], t=float(when[k]))[0] for k in range(start, len(left))]
    return log_loss(np.array(p), made.outcome[start:])


def ours(made: League, start: int, model: Population) -> float:
    """Log loss of the games from ``start`` on under a model that was fitted to those before."""
    if model.drift_ is None:
        return log_loss(model.predict_proba({name: made.games[name][start:] for name in ("left", "right")})[:, 0],
                        made.outcome[start:])  # fmt: skip
    when, place = np.unique(made.games["time"][start:], return_inverse=True)
    laws = list(model.drift_.laws(when))[::-1]
    left, right = (model.items_.codes(made.games[name][start:]) for name in ("left", "right"))
    p = np.zeros(len(place))
    for k, (j, a, b) in enumerate(zip(place, left, right, strict=True)):
        mean, C = laws[j]
        p[k] = ndtr((mean[a] - mean[b]) / np.sqrt(1.0 + C[a, a] + C[b, b] - 2.0 * C[a, b]))
    return log_loss(p, made.outcome[start:])


def forecasts(n_worlds: int) -> dict[str, float]:
    """Mean log loss of the last tenth of the games by model."""
    found: dict[str, list[float]] = {}
    for seed in range(2000, 2000 + n_worlds):
        made = league(seed)
        start = len(made.outcome) * 9 // 10
        before = made.at(slice(start))
        moving = fitted(before, True)
        losses = {
            "ratings over time": ours(made, start, moving),
            "ratings that stay": ours(made, start, fitted(before, False)),
            "Elo, best step": elo(made, start),
        }  # fmt: skip
        if find_spec("kickscore"):
            losses["kickscore"] = kickscore(made, start, moving)
        for name, loss in losses.items():
            found.setdefault(name, []).append(loss)
    return {name: float(np.mean(losses)) for name, losses in found.items()}


def busy(n_items: int = 500, n_games: int = 100_000) -> tuple[float, float]:
    """CPU seconds of a fit to a large league, and the share of true differences at the end that it holds."""
    made = league(3, n_items, n_games, n_times=365)
    start = time.process_time()
    model = fitted(made)
    taken = time.process_time() - start
    return taken, held(model, made, n_games - 1)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=60)
    n = parser.parse_args().worlds
    warnings.simplefilter("ignore", DataWarning)  # forecasts go beyond the games
    print("| what | value | bar |\n|---|---|---|", flush=True)
    for when, value in zip(("a tenth", "half", "the end"), coverage(n), strict=True):
        print(f"| 95 % intervals of differences at {when} of the span hold | {value:.3f} | .92 to .98 |", flush=True)
    print(f"| found to move, of {n} leagues that stay | {found_to_move(n, 0.0):.3f} | at most .05 |", flush=True)
    print(f"| found to move, of {n // 3} that do | {found_to_move(n // 3, 0.5):.3f} | at least .95 |", flush=True)
    for name, loss in forecasts(max(1, n // 10)).items():
        print(f"| log loss of the last tenth: {name} | {loss:.4f} | |", flush=True)
    taken, holds = busy()
    print(f"| 500 items, 100 000 games: CPU s | {taken:.1f} | 20 |", flush=True)
    print(f"| their differences at the end hold | {holds:.3f} | .92 to .98 |", flush=True)


if __name__ == "__main__":
    main()
