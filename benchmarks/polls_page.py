"""The page of live polls in simulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.store import made_with

Row = dict[str, Any]
_HEAD = """# What to ask a crowd, and when to stop

Made by `python -m benchmarks.polls`; do not edit. Simulated polls of 100 people whose utilities are N(m, .5 I) about a
consensus m ~ N(0, I). Hyper-parameters are those of the truth; the model is fitted anew at 100, 300 and 900 answers,
takes the others by `update`, and weighs the pairs anew every five answers. Ways are compared on the same truths and
people, who are all that there are.
"""
_CHECKED = ("250", "500", "750", "1000")
_CHOSEN = """Weights are exp(I / τ), τ = (largest I - median I) / sharpness. 3, 6 and 10 were tried on 200 items, seeds
100 to 102, with a refit at each half more of answers: .836, .831 and .855 after 1 000 answers. The standard error of a
difference is .01 to .03: none is known to be better. 3 is taken: at 10, thirty visitors of one state of a poll on
7 items were asked three different pairs.
"""


def markdown(rows: Sequence[Row]) -> str:
    """The page, from the records of all polls."""
    kinds = defaultdict(list)
    for row in rows:
        kinds[row["kind"]].append(row)
    parts = [_HEAD, *_boards(kinds["boards"]), "## How sharp the weights of pairs are", "", _CHOSEN,
             *_places(kinds["places"]), *_forecasts(kinds["places"]), *_learned(kinds["learned"]),
             *_chances(kinds["chances"])]  # fmt: skip
    return "\n".join([*parts, made_with("python -m benchmarks.polls page"), ""])


def _by_way(rows: Sequence[Row], size: str) -> dict[str, dict[int, Row]]:
    """Records of a size, by way and seed."""
    found: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        if row["size"] == size:
            found[row["way"]][row["seed"]] = row
    return found


def _sizes(rows: Sequence[Row]) -> list[str]:
    return sorted({row["size"] for row in rows}, key=lambda size: int(size.split()[0]))


def _boards(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## The whole board", "",
        "Rank correlation of the board with m: of pairs at random, and by how much it is higher with `board`, ± "
        "standard error over paired seeds.", "",
        "| | seeds | after 250 | 500 | 750 | 1 000 | items never shown, random / board |", "|---" * 7 + "|",
    ]  # fmt: skip
    for size in _sizes(rows):
        ways = _by_way(rows, size)
        seeds = sorted(ways["random"].keys() & ways["board"].keys())
        cells = []
        for n in _CHECKED:
            more, error = _mean([ways["board"][seed][n] - ways["random"][seed][n] for seed in seeds])
            cells.append(f"{np.mean([ways['random'][seed][n] for seed in seeds]):.3f} {more:+.3f} ± {error:.3f}")
        unseen = " / ".join(str(sum(ways[way][seed]["unseen"] for seed in seeds)) for way in ("random", "board"))
        lines.append("| " + " | ".join([size, str(len(seeds)), *cells, unseen]) + " |")
    return [*lines, ""]


def _places(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## First place", "",
        "`best` against pairs at random, until `outlook` first says that first place is settled with probability .95, "
        "which is looked at every ten answers, or until the last answer. *Said*: the mean of that probability. *Right "
        "for good*: answers after which the first place of the board was right until the end.", "",
        "| | way | polls | answers at most | settled | right then | said | answers, median of all polls | "
        "right for good, median |", "|---" * 9 + "|",
    ]  # fmt: skip
    for size in _sizes(rows):
        for way, found in _by_way(rows, size).items():
            polls = list(found.values())
            done = [one for one in polls if one["settled"]]
            right, error = _mean([float(one["right"]) for one in done])
            said, most = _mean([one["told"] for one in done])[0], max(one["answers"] for one in polls)
            until = _median([one["settled"] for one in polls], most)
            since = _median([one["right_since"] if one["right"] else None for one in polls], most)
            lines.append(
                f"| {size} | {way} | {len(polls)} | {most} | {len(done)} | {right:.3f} ± {error:.3f} | {said:.3f} | "
                f"{until} | {since} |"
            )
    return [*lines, "", *_paired(rows)]


def _paired(rows: Sequence[Row]) -> list[str]:
    """How many answers are saved, on seeds that both ways have."""
    lines = []
    for size in _sizes(rows):
        ways = _by_way(rows, size)
        seeds = sorted(ways["random"].keys() & ways["best"].keys())
        if len(seeds) < 2:
            continue
        most = max(ways["random"][seed]["answers"] for seed in seeds)
        needed = {way: [ways[way][seed]["settled"] or np.inf for seed in seeds] for way in ("random", "best")}
        sooner = sum(best < random for best, random in zip(needed["best"], needed["random"], strict=True))
        later = sum(best > random for best, random in zip(needed["best"], needed["random"], strict=True))
        half = sum(2 * best <= min(random, most) for best, random in zip(needed["best"], needed["random"], strict=True))
        lines.append(
            f"- {size}: of {len(seeds)} pairs of polls `best` was settled first in {sooner} and last in {later}; in "
            f"{half} it took at most half of the answers of the other (of all {most}, where that was not settled)."
        )
    return [*lines, ""]


def _median(values: Sequence[float | None], most: int) -> str:
    value = float(np.median([np.inf if one is None else one for one in values]))
    return f"{value:.0f}" if np.isfinite(value) else f"above {most}"


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    if len(values) < 2:
        return (float(values[0]) if values else float("nan")), float("nan")
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _forecasts(rows: Sequence[Row]) -> list[str]:
    lines = [
        "### How many more answers", "",
        "What `outlook` said of polls with `best` after 100, 200 and 400 answers, and the share that were settled by "
        "then. Numbers that lie beyond the end of the simulation cannot be judged and are left out.", "",
        "| said | as likely as not: polls | settled by then | likely (.8): polls | settled by then |", "|---" * 5 + "|",
    ]  # fmt: skip
    chosen = [row for row in rows if row["way"] == "best"]
    most = {size: max(row["answers"] for row in chosen if row["size"] == size) for size in _sizes(chosen)}
    for n in sorted({n for row in chosen for n in row["said"]}, key=int):
        cells = [f"after {n}"]
        for place in (0, 1):
            held = []
            for row in chosen:
                more = row["said"].get(n, [0, 0])[place]
                if more and int(n) + more <= most[row["size"]]:
                    held.append(row["settled"] is not None and row["settled"] <= int(n) + more)
            cells += [str(len(held)), f"{np.mean(held):.2f}" if held else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _chances(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Probabilities of questions", "",
        "Chi-square of the probability that is logged with each question against 100 000 draws, 12 items after 60 "
        "answers of 20 people: p-values.", "", "| target | somebody with answers | a newcomer |", "|---" * 3 + "|",
        *(f"| {row['way']} | {row['known']:.2f} | {row['newcomer']:.2f} |" for row in rows),
    ]  # fmt: skip
    return [*lines, ""]


def _learned(rows: Sequence[Row]) -> list[str]:
    """Coverage and first places of polls with learned settings; errors are clustered by poll."""
    lines = [
        "## Polls as users have them", "",
        "Settings are learned, and the model is fitted anew as a live poll does it. At ten looks, evenly: 95 % "
        "intervals of scores that hold the truth, over all looks and at the last; and first place when `outlook` first "
        "says that it is settled with probability .95.", "",
        "| | polls | hold | at the last look | settled | right then | said |", "|---" * 7 + "|",
    ]  # fmt: skip
    for size in _sizes(rows):
        polls = [row for row in rows if row["size"] == size]
        held, error = _mean([float(np.mean(row["held"])) for row in polls])
        last, last_error = _mean([row["held"][-1] for row in polls])
        done = [row["settled"] for row in polls if row["settled"]]
        right, right_error = _mean([float(one[2]) for one in done])
        lines.append(
            f"| {size} | {len(polls)} | {held:.3f} ± {error:.3f} | {last:.3f} ± {last_error:.3f} | {len(done)} | "
            f"{right:.3f} ± {right_error:.3f} | {_mean([one[1] for one in done])[0]:.3f} |"
        )
    lines += [
        "", "Probabilities of first place of all items at all looks, and how often the item was the first.", "",
        "| said | chances | mean | was first | more than said |", "|---" * 5 + "|",
    ]  # fmt: skip
    table = np.array([
        (poll, p, item == row["first"])
        for poll, row in enumerate(rows) for chances in row["chances"] for item, p in enumerate(chances)
    ]).reshape(-1, 3)  # fmt: skip
    poll, p, was = table[:, 0].astype(int), table[:, 1], table[:, 2]
    place = np.minimum((10.0 * p).astype(int), 9)
    for k in np.unique(place).tolist():
        here = place == k
        of_poll = np.bincount(poll[here], was[here] - p[here])
        lines.append(
            f"| {k / 10:.1f} to {(k + 1) / 10:.1f} | {here.sum()} | {p[here].mean():.3f} | {was[here].mean():.3f} | "
            f"{of_poll.sum() / here.sum():+.3f} ± {np.sqrt(of_poll @ of_poll) / here.sum():.3f} |"
        )
    return [*lines, ""]
