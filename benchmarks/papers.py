"""The tables and figures of the five papers anew: ``python -m benchmarks.papers [PAPER ...] [--quick]``.

    make papers                                # all, a night; pages and figures in benchmarks/results
    make papers QUICK=1                        # one split of each, some minutes; in build/papers
    python -m benchmarks.papers vvm            # those of one paper

Runs that are there are not made again. Data are in the folder of PREDILECT_DATA; nothing of Sushi and MovieLens is part
of the project. The quick run leaves out what needs a folder that is not there, and says so. Exit code 1 if a run
failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.models import VARIANTS
from benchmarks.task import folder
from predilect.errors import DataError

HERE = Path(__file__).parent / "results"
QUICK = Path("build/papers")


class Part(NamedTuple):
    """A module of this folder and its arguments: for all of a table, and for one split of some of it."""

    module: str
    every: str
    quick: str
    figure: str  # of the paper
    data: tuple[str, ...] = ()  # folders that it needs, of PREDILECT_DATA

    @property
    def lacking(self) -> str:
        """Why it cannot be run; empty if it can."""
        try:
            for name in self.data:
                folder(name)
        except DataError as error:
            return str(error)
        return ""


def _rows(*names: str) -> str:
    return ",".join(VARIANTS[name] for name in names)


_SUSHI = "--tasks sushi-a-small,sushi-a,sushi-a15,sushi-b --seeds 0-24 --models"
_ONE_SUSHI = "--tasks sushi-a-small --seeds 0 --models"
_ARGUMENTS = "--tasks ukp-topics --seeds 0-31 --models"
_CROWD_ON_ARGUMENTS = _rows("crowdGPPL\\u, arguments", "crowdGPPL\\u,\\t, arguments")
_CROWD = ("crowdGPPL", "crowdGPPL\\u", "crowdGPPL\\u\\x", "crowdGPPL\\u,\\t")
PAPERS: dict[str, list[Part]] = {
    "gaspk": [
        Part("learning_curves", "", "--tasks amt-cars --shares 80 --seeds 1", "Figs. 5 and 6", ("amt_cars",)),
        Part("gaspk_scaling", "", "--parts grid --only 7k --seeds 1", "Figs. 7 and 8"),
    ],
    "gppl": [
        Part("__main__", f"{_SUSHI} {_rows('GPPL', 'GPPL-per-user')}", f"{_ONE_SUSHI} {_rows('GPPL')}", "Table 3",
             ("sushi",)),
        Part("__main__", f"{_ARGUMENTS} {_rows('GPPL, arguments', 'GPPL modern, arguments', 'GPPL, texts')}",
             f"--tasks ukp-topics --seeds 0 --models {_rows('GPPL modern, arguments')}", "Table 2",
             ("ukpconvarg",)),
    ],
    "crowd-gppl": [
        Part("__main__", f"{_SUSHI} {_rows(*_CROWD)}", f"{_ONE_SUSHI} {_rows(*_CROWD)}", "Table 3",
             ("sushi",)),
        Part("__main__", f"{_ARGUMENTS} {_CROWD_ON_ARGUMENTS}",
             f"--tasks ukp-topics --seeds 0 --models {_CROWD_ON_ARGUMENTS}", "Table 2", ("ukpconvarg",)),
        Part("simulations", "", "--which a --seeds 1", "Fig. 1"),
        Part("published", "", "", "Tables 2 and 3"),
    ],
    "collaborative-gp": [
        Part("houlsby", "", "--data jura,uk-election-2010 --repetitions 1", "Tables 1 and 2",
             ("jura", "uk_election_2010")),
        Part("active", "--repetitions 25", "--data jura --repetitions 1", "Table 3 and Fig. 2",
             ("jura",)),
    ],
    "vvm": [Part("vvm", "", "--tasks cars --repetitions 1", "Figs. 2 and 3", ("amt_cars",))],
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Make them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("papers", nargs="*", default=list(PAPERS), help=f"{', '.join(PAPERS)} (default all)")
    parser.add_argument("--quick", action="store_true", help=f"one split of each, in {QUICK}")
    parser.add_argument("--out", type=Path, help="folder of the pages")
    given = parser.parse_args(arguments)
    if unknown := set(given.papers) - set(PAPERS):
        parser.error(f"there is no paper {', '.join(sorted(unknown))}; there are {', '.join(PAPERS)}")
    out = given.out or (QUICK if given.quick else HERE)
    failed = 0
    for paper in given.papers:
        for part in PAPERS[paper]:
            began = time.perf_counter()
            if given.quick and part.lacking:
                print(f"{paper}, {part.figure}: left out, {part.lacking}", file=sys.stderr)
                continue
            said = [*(part.quick if given.quick else part.every).split(), "--out", str(out)]
            print(f"{paper}, {part.figure}: python -m benchmarks.{part.module} {' '.join(said)}", file=sys.stderr)
            run: Callable[[list[str]], int] = import_module(f"benchmarks.{part.module}").main
            code = run(said)
            print(f"{paper}, {part.figure}: {time.perf_counter() - began:.0f} s, exit code {code}", file=sys.stderr)
            failed += bool(code)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
