"""What README.md and one page of the docs show, made anew; ``pages.py`` makes all others, and writes."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
from scipy.stats import norm

from cli.running import run
from predilect.decisions.scales import SCALES
from predilect.examples import copy_into
from predilect.show.report.folder import plot_board

ROOT = Path(__file__).parents[1]
README, OUTPUTS = ROOT / "README.md", ROOT / "docs" / "reference" / "outputs.md"
PICTURE = ROOT / "docs" / "board.svg"
ARROW = "→ "  # in a comment of a Python example: what follows is the value of its line
WIDTH = 100
SHOWN = ("Score: ", "Verdict: ", "Written to ")  # the lines of the demo below the board, by how they begin
N_ROWS = 8  # of the board, with its head
N_DRAWN = 12  # items in the picture


def rewritten() -> dict[Path, str]:
    """The pages with every number that a run of their examples gives."""
    ran, told = ran_demo()
    first, model = told["board"][0], told["model"]
    readme = README.read_text(encoding="utf-8")
    readme = replaced(readme, r"(?<=What `make demo` prints \(shortened\):\n\n).*?(?=\n\n- \*\*Score)", demo(ran))
    told_rank = f"beside the rank: {first['item']} is first, and its rank may be anything from {first['rank_low']} to "
    readme = replaced(readme, r"beside the rank: .*?(?=\. The other)", filled(f"{told_rank}{first['rank_high']}"))
    outputs = OUTPUTS.read_text(encoding="utf-8")
    outputs = replaced(outputs, r"At the demo's .*?% worse\.", threshold_sentence(model["tie_threshold"]))
    return {README: with_values(readme), OUTPUTS: outputs}


@cache
def ran_demo() -> tuple[str, dict[str, Any]]:
    """What ``make demo`` prints, and its leaderboard.json."""
    with in_a_folder_of_its_own():
        example = files("predilect") / "examples" / "llmfao"
        ran = run(
            "rank", example / "comparisons.csv.gz", "--map", f"{example / 'items.csv'}:model", "-o",
            "predilect-demo",
        )  # fmt: skip
        assert ran.exit_code == 0, ran.output
        return ran.output, json.loads(Path("predilect-demo/leaderboard.json").read_text())


def draw(told: dict[str, Any], path: Path) -> None:
    """The picture of the best items of the demo's board."""
    board, model = pl.DataFrame(told["board"]), told["model"]
    said = f"{model['n_answers']:.0f} answers of {model['n_users']} people"
    title = f"The best {N_DRAWN} of {len(board)} items, from {said}"
    plot_board(board.head(N_DRAWN), SCALES["probit"], title, [path])


def replaced(text: str, pattern: str, new: str) -> str:
    found, n = re.subn(pattern, lambda _: new, text, flags=re.DOTALL)
    assert n == 1, f"{pattern} is on the page {n} times"
    return found


@contextlib.contextmanager
def in_a_folder_of_its_own() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def filled(text: str) -> str:
    return " ".join(text.split())


def wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH - 4, break_on_hyphens=False)


def demo(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines()]
    head = next(place for place, line in enumerate(lines) if line.startswith(" Rank "))
    shown = [*lines[head : head + N_ROWS], "...", ""]
    for start in SHOWN:
        shown += wrapped(next(line for line in lines if line.startswith(start)))
    return textwrap.indent("\n".join(shown), "    ")


def threshold_sentence(threshold: float) -> str:
    better, worse = norm.cdf([0.5 - threshold, -0.5 - threshold])
    said = (
        f"At the demo's {threshold:.2f}, the middle person's, a gap of 0.5 means {better:.0%} better, "
        f"{1 - better - worse:.0%} tie, {worse:.0%} worse."
    )
    return said.replace("%", " %")


def with_values(text: str) -> str:
    """A page with one Python example, with its values."""
    code = re.search(r"(?<=```python\n).*?(?=```)", text, flags=re.DOTALL)
    assert code is not None
    with in_a_folder_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit to a few answers: a page shows values alone
        copy_into(".")
        return replaced(text, r"(?<=```python\n).*?(?=```)", valued(code.group(), {}))


def valued(code: str, names: dict[str, Any]) -> str:
    """Code that was run, with the value of each line that ends in a comment with an arrow; ``names`` stay."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if isinstance(statement, ast.Expr):
                value = eval(ast.unparse(statement.value), names)
            else:
                exec(ast.unparse(statement), names)
                value = None
        last = (statement.end_lineno or 0) - 1
        before, arrow, _ = lines[last].partition(ARROW)
        if arrow:
            told = printed.getvalue().strip() or str(value.tolist() if hasattr(value, "tolist") else value)
            lines[last] = before + arrow + told
    return "\n".join(lines) + "\n"
