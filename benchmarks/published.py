"""``python -m benchmarks.published``: numbers of the crowdGPPL papers beside ours, in ``results/published.md``.

Stored from protocols.md P2a (the article of 2020), P2b (its preprint) and P6 (the original code, run by us on one
core), which says where they come from. tau is over all (person, item) scores at once, as the original code has it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from benchmarks.datasets import default_seeds
from benchmarks.in_short import IN_SHORT
from benchmarks.models import VARIANTS
from benchmarks.published_notes import FIGURES, NOTES, REPETITIONS, WHY_FEWER, WHY_NOT
from benchmarks.store import Store, mean_and_error, write_whole

__all__ = ["BARS", "PUBLISHED", "Bar", "Row", "markdown"]

HERE = Path(__file__).parent
ARTICLE, PREPRINT, CODE = "article", "preprint", "original code"


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one task, as somebody else reported it; None where they did not.

    Attributes
    ----------
    method : str
        Its name there; a key of ``VARIANTS`` where we have the same model.
    source : str
    accuracy, log_loss, tau : float or None
        Log loss in nats.
    seconds : float or None
        Of the fit; not comparable between machines.
    """

    method: str
    source: str
    accuracy: float | None
    log_loss: float | None
    tau: float | None = None
    seconds: float | None = None


def _rows(source: str, table: str) -> list[Row]:
    """One method a line: name | accuracy | log loss | tau | seconds, "-" for what is not known."""
    rows = []
    for line in table.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        numbers = [None if cell == "-" else float(cell) for cell in cells]
        rows.append(Row(name, source, *numbers))
    return rows


# A backslash is "without": u features of people, x of items, t the consensus, induc inducing points.
PUBLISHED: dict[str, list[Row]] = {
    "sushi-a-small": _rows(ARTICLE, r"""
        crowdGPPL        | .71 | .56 | .48
        crowdGPPL\induc  | .70 | .60 | .45
        crowdGPPL\u      | .70 | .58 | .46
        crowdGPPL\u\x    | .71 | .57 | .49
        crowdGPPL\u,\t   | .68 | .60 | .43
        GPPL             | .65 | .62 | .31
        GPPL-per-user    | .67 | .64 | .42
        collabGP         | .69 | .58 | -
        collabGP\u       | .69 | .59 | -
        GPVU             | .70 | .67 | .43""") + _rows(PREPRINT, r"""
        crowdGPPL        | .67 | .87 | .39 | 77
        crowdGPPL\induc  | .70 | .57 | .46 | 166
        crowdGPPL\u      | .70 | .58 | .46 | 175
        crowdGPPL\u\x    | .71 | .57 | .49 | 5
        crowdGPPL\u,\t   | .68 | .60 | .43 | 291
        GPPL             | .65 | .62 | .31 | 2
        GPPL-per-user    | .67 | .64 | .42 | 97"""),
    "sushi-a": _rows(ARTICLE, r"""
        crowdGPPL        | .84 | .33 | .79
        crowdGPPL\induc  | .84 | .34 | .78
        crowdGPPL\u      | .85 | .31 | .80
        crowdGPPL\u\x    | .85 | .33 | .80
        crowdGPPL\u,\t   | .84 | .33 | .80
        GPPL             | .65 | .62 | .31
        GPPL-per-user    | .83 | .40 | .79
        collabGP         | .83 | .35 | -
        collabGP\u       | .84 | .33 | -
        GPVU             | .72 | .67 | .42"""),
    # The preprint's Sushi-A: 1 000 people, 15 + 5 pairs in its Table 1.
    "sushi-a15": _rows(PREPRINT, r"""
        crowdGPPL        | .79 | .51 | .66 | 150
        crowdGPPL, opt.  | .80 | .48 | .68 | 3718
        crowdGPPL\induc  | .84 | .33 | .79 | 315
        crowdGPPL\u      | .84 | .33 | .80 | 336
        crowdGPPL\u, opt.| .85 | .33 | .80 | 5016
        crowdGPPL\u\x    | .85 | .33 | .80 | 329
        crowdGPPL\u,\t   | .84 | .33 | .79 | 540
        GPPL             | .66 | .62 | .32 | 2
        GPPL-per-user    | .83 | .40 | .79 | 67"""),
    "sushi-b": _rows(ARTICLE, r"""
        crowdGPPL        | .76 | .50 | .54 | 1800
        crowdGPPL\u      | .78 | .50 | .57
        crowdGPPL\u\x    | .77 | .49 | .56
        crowdGPPL\u,\t   | .76 | .51 | .58
        GPPL             | .65 | .62 | .31 | 60
        GPPL-per-user    | .75 | .60 | .60
        collabGP         | .76 | .49 | -
        collabGP\u       | .76 | .50 | -
        GPVU             | .73 | .59 | .52""") + _rows(PREPRINT, r"""
        crowdGPPL        | .69 | 2.23 | .45 | 9163
        crowdGPPL\u      | .76 | .47 | .60 | 21052
        crowdGPPL\u\x    | .76 | .48 | .60 | 15478
        crowdGPPL\u,\t   | .75 | .49 | .59 | 30484
        GPPL             | .65 | .62 | .31 | 51"""),
    # The very splits; one core, features of set A right where there are such runs, the dense product made sparse.
    "sushi-original-a-small": _rows(CODE, r"""
        crowdGPPL        | .705 | .564 | .465 | 2.06
        crowdGPPL\induc  | .688 | .590 | .438 | 4.18
        crowdGPPL\u      | .708 | .559 | .473 | 1.36
        crowdGPPL\u\x    | .710 | .556 | .478 | 1.43
        crowdGPPL\u,\t   | .686 | .582 | .440 | 1.88
        GPPL             | .644 | .634 | .292 | .07
        GPPL-per-user    | .688 | .620 | .439 | .51"""),
    "sushi-original-a": _rows(CODE, r"""
        crowdGPPL        | .848 | .326 | .799 | 5.01
        crowdGPPL\induc  | .843 | .329 | .784 | 6.57
        crowdGPPL\u      | .849 | .319 | .804 | 3.84
        crowdGPPL\u\x    | .849 | .331 | .804 | 3.26
        crowdGPPL\u,\t   | .847 | .337 | .795 | 5.03
        GPPL             | .649 | .625 | .296 | .17
        GPPL-per-user    | .839 | .359 | .790 | .63"""),
    "sushi-original-a15": _rows(CODE, r"""
        crowdGPPL        | .806 | .415 | .696 | 4.54
        crowdGPPL\u      | .817 | .401 | .709 | 4.55
        crowdGPPL\u\x    | .792 | .459 | .652 | 3.05
        GPPL             | .653 | .622 | .313 | 1.78
        GPPL-per-user    | .797 | .463 | .708 | 4.51"""),
    "sushi-original-b": _rows(CODE, r"""
        crowdGPPL        | .747 | .504 | .556 | 605.65
        crowdGPPL\u      | .753 | .493 | .571 | 301.47
        crowdGPPL\u\x    | .751 | .493 | .574 | 302.95
        GPPL             | .660 | .618 | .305 | 5.86
        GPPL-per-user    | .756 | .537 | .608 | 51.89"""),
    "ukp-topics": _rows(ARTICLE, r"""
        GPPL             | .71 | .56 | .31
        crowdGPPL\u      | .72 | .58 | .33
        crowdGPPL\u,\t   | .68 | .63 | .23
        crowdBT-GP       | .69 | .58 | .30"""),
    "ukp-topics/consensus": _rows(ARTICLE, r"""
        GPPL             | .77 | .51 | .50
        crowdGPPL\u      | .79 | .52 | .53
        crowdBT-GP       | .75 | .53 | .45""") + _rows(PREPRINT, r"""
        GPPL             | .77 | .50 | .40
        crowdGPPL\u      | .70 | .69 | .51"""),
    "ukp-topics/over_50": _rows(ARTICLE, r"""
        GPPL             | .72 | .55 | .25
        crowdGPPL\u      | .74 | .55 | .27
        crowdGPPL\u,\t   | .74 | .57 | .27
        crowdBT-GP       | .71 | .56 | .23"""),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bar:
    """What a model must reach: accuracy and tau at least, the others at most."""

    task: str
    model: str
    accuracy: float
    log_loss: float
    tau: float | None = None
    seconds: float | None = None


BARS = (
    Bar("sushi-a", VARIANTS[r"crowdGPPL\u"], 0.840, 0.340, 0.785, 2.0),
    Bar("sushi-a", VARIANTS["crowdGPPL modern"], 0.846, 0.315, 0.79, 4.0),
    Bar("sushi-a", VARIANTS["crowdGPPL modern, C = 30"], 0.846, 0.315, 0.79, 4.0),
    Bar("sushi-b", VARIANTS[r"crowdGPPL\u"], 0.765, 0.485, 0.595, 60.0),
    Bar("sushi-b", VARIANTS["crowdGPPL modern"], 0.778, 0.450, 0.60, 60.0),
    *(
        bar
        for name in ("GPPL modern", "GPPL, texts", "crowdGPPL, texts")
        for bar in (
            Bar("ukp-topics/consensus", VARIANTS[name], 0.79, 0.47, 0.50, 60.0),
            Bar("ukp-topics", VARIANTS[name], 0.72, 0.56),
        )
    ),
)

HEAD = ["method", "source", "accuracy", "log loss", "tau", "s", "**ours**", "accuracy", "log loss", "tau",
        "tau person", "CPU s", "runs"]  # fmt: skip
NOTHING = "–"
# Where the tables' names mean other settings of ours: the papers' M is 500 on Sushi-B, and on arguments their priors
# and length-scales are others.
OURS = {
    "sushi-b": {"crowdGPPL": VARIANTS["crowdGPPL, M = 500"]},
    "ukp-topics": {
        "GPPL": VARIANTS["GPPL, arguments"],
        "crowdGPPL\\u": VARIANTS["crowdGPPL\\u, arguments"],
        "crowdGPPL\\u,\\t": VARIANTS["crowdGPPL\\u,\\t, arguments"],
    },
}
OURS["sushi-original-b"] = OURS["sushi-b"]


def ours(task: str, method: str) -> str | None:
    """Our model for a published row."""
    return OURS.get(task.partition("/")[0], {}).get(method, VARIANTS.get(method))


def markdown(store: Store) -> str:
    """The whole page: bars, then published methods beside our models, task by task."""
    parts = [
        "# Published numbers beside ours",
        IN_SHORT["published"],
        'Written by `python -m benchmarks.published`; do not edit. A backslash is "without": u features of people, x '
        "of items, t the consensus, induc inducing points. Splits are the same only where the task is sushi-original; "
        "seconds are of other machines. Ours are means over the runs stored; ± is their standard error. "
        f"{NOTHING}: not reported there, or, on our side, told below the table. Rows without a source are further "
        "settings of ours.",
        _bars(store),
    ]
    for task, rows in PUBLISHED.items():
        parts += [f"## {task}", _table(store, task, rows), *_notes(store, task, rows)]
    parts += ["## Figures", *FIGURES]
    return "\n\n".join(part for part in parts if part) + "\n"


def measured(store: Store, task: str, model: str) -> Mapping[str, tuple[float, float]]:
    """Mean and standard error of our runs by measure; ``task/what`` is a further test of the task.

    "tau" is the one that the papers' tables hold: pooled over people, but on arguments the mean over people.
    """
    name, _, what = task.partition("/")
    runs = store.runs(name, model) if name in store.records else []
    # A topic without answers of that kind has no scores.
    scored = [{"scores": run["further"][what] if what else run["scores"], "cost": run["cost"]} for run in runs]
    found = {}
    for measure, (section, *keys) in {
        "accuracy": ("scores", "accuracy"),
        "log_loss": ("scores", "log_loss"),
        "tau": ("scores", "tau", "tau_person" if name.startswith("ukp") else "tau_pooled"),
        "tau_person": ("scores", "tau_person"),
        "seconds": ("cost", "fit_cpu_s"),
    }.items():
        for key in keys:
            value = mean_and_error([run for run in scored if key in run[section]], section, key)
            if value is not None and not math.isnan(value[0]):  # a tau of what is not ranked at all
                found[measure] = value
    return found | ({"runs": (float(len(runs)), math.nan)} if runs else {})


def _table(store: Store, task: str, rows: Iterable[Row]) -> str:
    lines, shown = [], set()
    for row in rows:
        model = ours(task, row.method)
        theirs = [row.method, row.source, _number(row.accuracy), _number(row.log_loss), _number(row.tau),
                  _number(row.seconds)]  # fmt: skip
        lines.append(theirs + _ours(store, task, model))
        shown.add(model)
    for name, model in VARIANTS.items():
        if model not in shown and measured(store, task, model):
            lines.append([name, *[NOTHING] * 5, *_ours(store, task, model)])
    return _markdown(HEAD, lines)


def _ours(store: Store, task: str, model: str | None) -> list[str]:
    found = measured(store, task, model) if model else {}
    if not found:
        return [NOTHING] * 7
    cells = [_pair(found.get(key), 3) for key in ("accuracy", "log_loss", "tau", "tau_person")]
    return [f"`{model}`", *cells, _pair(found.get("seconds"), 2), f"{found['runs'][0]:.0f}"]


def _notes(store: Store, task: str, rows: Iterable[Row]) -> list[str]:
    """Sentences below a table: rows without runs of ours, rows with fewer than published, and what else there is."""
    name = task.partition("/")[0]
    wanted, fewer, missing = REPETITIONS[name], [], []
    why: list[str] = []
    for method in dict.fromkeys(row.method for row in rows):
        model = ours(task, method)
        found = measured(store, task, model) if model else {}
        if not found:
            command = f"`python -m benchmarks --tasks {name} --models {quote(str(model))}`"
            missing.append(WHY_NOT.get((name, method), f"{method}: not run so far ({command})."))
        elif found["runs"][0] < wanted:
            fewer.append(f"{method} {found['runs'][0]:.0f} ({found['seconds'][0]:.1f})")
            why += [WHY_FEWER[name, method]] if (name, method) in WHY_FEWER else []
    told = [f"Fewer runs so far than the published {wanted} (CPU s of one): {', '.join(fewer)}."] if fewer else []
    return [*missing, *told, *dict.fromkeys(why), *NOTES.get(task, [])]


def _bars(store: Store) -> str:
    lines = []
    for bar in BARS:
        found = measured(store, bar.task, bar.model)
        runs = found["runs"][0] if found else 0.0
        for key, sign in (("accuracy", 1), ("log_loss", -1), ("tau", 1), ("seconds", -1)):
            wanted = getattr(bar, key)
            if wanted is None:
                continue
            have = found.get(key)
            met = "not run" if have is None else "yes" if sign * have[0] >= sign * wanted else "**no**"
            if have is not None and runs < len(default_seeds(bar.task.partition("/")[0])):
                met = "too few runs"
            limit = f"{'≥' if sign > 0 else '≤'} {wanted:g}"
            lines.append([bar.task, f"`{bar.model}`", key.replace("_", " "), limit, _pair(have, 3), f"{runs:.0f}", met])
    return "## Bars\n\n" + _markdown(["task", "model", "measure", "bar", "found", "runs", "met"], lines)


def _markdown(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def _pair(found: tuple[float, float] | None, digits: int) -> str:
    if found is None:
        return NOTHING
    return f"{found[0]:.{digits}f}" + (f" ± {found[1]:.{digits}f}" if math.isfinite(found[1]) else "")


def _number(value: Any) -> str:
    return NOTHING if value is None else f"{value:g}"


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    out = parser.parse_args(arguments).out
    write_whole({out / "published.md": markdown(Store(out))})
    print(out / "published.md", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
