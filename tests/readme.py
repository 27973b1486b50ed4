"""What README.md shows, made anew: ``make readme`` writes it, and ``test_readme.py`` compares."""

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
from importlib.resources import files
from pathlib import Path
from typing import Any

from scipy.stats import norm

from cli.running import run

README = Path(__file__).parents[1] / "README.md"
ARROW = "→ "  # in a comment of the Python example: what follows is the value of its line
WIDTH = 100
# The lines of the demo that are shown, by how they begin; None stands for others.
SHOWN = (
    "Read ", None, "Warning: The left item", "Note: ", "", "Model: ", "One unit ", None, "That is without ties",
    None, "Verdict: Personal", None, "Returned: ", "",
)  # fmt: skip
N_ROWS = 8  # of the board, with its head


def rewritten(text: str) -> str:
    """The README with every number that a run of its examples gives."""
    with in_a_folder_of_its_own():
        example = files("predilect") / "examples" / "llmfao"
        ran = run(
            "rank", example / "comparisons.csv.gz", "--item-map", example / "items.csv", "--item-map-column", "model",
            "--top", "20", "--out", "predilect-demo",
        )  # fmt: skip
        assert ran.exit_code == 0, ran.output
        threshold = json.loads(Path("predilect-demo/leaderboard.json").read_text())["model"]["tie_threshold"]
    text = replaced(text, r"(?<=What `make demo` prints \(shortened\):\n\n).*?(?=\n\n##)", demo(ran.output))
    text = replaced(text, r"At the demo's .*?% worse\.", threshold_sentence(threshold))
    return replaced(text, r"(?<=```python\n).*?(?=```)", python_example(text))


def replaced(text: str, pattern: str, new: str) -> str:
    found, n = re.subn(pattern, lambda _: new, text, flags=re.DOTALL)
    assert n == 1, f"{pattern} is in README.md {n} times"
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


def demo(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines()]
    shown: list[str] = []
    for start in SHOWN:
        if start is None or not start:
            shown.append("..." if start is None else "")
            continue
        line = next(line for line in lines if line.startswith(start))
        shown += textwrap.wrap(line, WIDTH - 4, break_on_hyphens=False)
    head = next(place for place, line in enumerate(lines) if line.startswith(" Rank "))
    written = next(line for line in lines if line.startswith("Written to "))
    shown += [*lines[head : head + N_ROWS], "...", *textwrap.wrap(written, WIDTH - 4, break_on_hyphens=False)]
    return textwrap.indent("\n".join(shown), "    ")


def threshold_sentence(threshold: float) -> str:
    better, worse = norm.cdf([0.5 - threshold, -0.5 - threshold])
    said = (
        f"At the demo's {threshold:.2f}, the middle person's, a gap of 0.5 means {better:.0%} better, "
        f"{1 - better - worse:.0%} tie, {worse:.0%} worse."
    )
    return said.replace("%", " %")


def python_example(text: str) -> str:
    """The example, with the value of each line that ends in a comment with an arrow."""
    code = re.search(r"(?<=```python\n).*?(?=```)", text, flags=re.DOTALL)
    assert code is not None
    lines = code.group().splitlines()
    names: dict[str, Any] = {}
    with in_a_folder_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of its lines warns, as its comment says
        for statement in ast.parse(code.group()).body:
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


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
