"""How the prior is chosen where people are few or items many: ``python -m benchmarks.small_crowds``.

Simulated crowds of 2 to 60 people. Each is fitted at defaults, as one crowd (pooled), and at strengths given by hand,
and judged by the expected log loss under the truth of 10 000 new questions. The cells were drawn once (a Latin
hypercube, logarithmic but for the spread) and are not to be tuned on: ``DEVELOPMENT`` is for that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from benchmarks.store import made_with, write_whole
from predilect import Population
from predilect.errors import ConvergenceWarning

RESULTS = Path(__file__).parent / "results"
N_QUESTIONS = 10_000
CONSENSUS_SD = 0.8
STRENGTHS = (1.0, 5.0, 25.0, 95.0, 400.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {}, "pooled": {"personal": False}, **{f"strength {s:g}": {"strength": s} for s in STRENGTHS},
}  # fmt: skip
WORSE_THAN_POOLED, WORSE_THAN_BEST = 0.01, 0.02  # what the mean over seeds may lose, in nats an answer

# People, items, answers of each, standard deviation of a person's utility about the consensus.
Cell = tuple[int, int, int, float]
CELLS: tuple[Cell, ...] = (
    (42, 130, 170, 0.93), (6, 180, 210, 0.42), (5, 150, 110, 0.46), (25, 140, 260, 0.92), (3, 100, 280, 0.07),
    (3, 60, 30, 0.17), (26, 560, 340, 0.51), (2, 220, 60, 0.19), (18, 70, 140, 1.00), (44, 510, 20, 0.44),
    (11, 90, 30, 0.81), (8, 70, 40, 0.75), (5, 260, 390, 0.61), (31, 330, 20, 0.29), (4, 450, 230, 0.83),
    (15, 80, 110, 0.97), (3, 250, 120, 0.66), (3, 60, 240, 0.24), (24, 40, 350, 0.54), (13, 40, 50, 0.63),
    (11, 410, 60, 0.05), (46, 170, 100, 0.88), (4, 340, 30, 0.58), (6, 80, 100, 0.25), (55, 370, 190, 0.08),
    (30, 120, 290, 0.56), (16, 50, 150, 0.39), (2, 490, 60, 0.73), (39, 50, 180, 0.95), (7, 100, 90, 0.90),
    (28, 140, 40, 0.78), (4, 360, 30, 0.12), (49, 50, 80, 0.27), (10, 160, 90, 0.53), (2, 590, 20, 0.14),
    (52, 540, 50, 0.31), (7, 70, 180, 0.15), (13, 80, 70, 0.10), (2, 40, 40, 0.37), (21, 200, 70, 0.86),
    (8, 390, 120, 0.22), (6, 110, 40, 0.68), (4, 60, 30, 0.41), (14, 110, 50, 0.80), (5, 120, 20, 0.76),
    (5, 60, 30, 0.00), (8, 470, 250, 0.47), (35, 190, 50, 0.71), (33, 310, 160, 0.69), (10, 210, 40, 0.03),
    (20, 280, 370, 0.32), (3, 230, 300, 0.85), (9, 430, 200, 0.20), (12, 90, 60, 0.59), (37, 270, 80, 0.49),
    (17, 130, 30, 0.64), (58, 50, 140, 0.34), (19, 240, 130, 0.02), (3, 300, 80, 0.98), (22, 170, 320, 0.36),
)  # fmt: skip
DEVELOPMENT: tuple[Cell, ...] = (
    (15, 300, 100, 0.30), (4, 70, 50, 0.37), (8, 40, 150, 0.89), (17, 370, 30, 0.26), (20, 220, 100, 0.16),
    (24, 100, 20, 0.47), (33, 280, 30, 0.21), (12, 560, 110, 0.95), (28, 80, 370, 0.00), (3, 490, 60, 0.32),
    (6, 170, 320, 1.00), (2, 140, 130, 0.53), (7, 330, 240, 0.05), (4, 60, 30, 0.11), (46, 110, 50, 0.58),
    (5, 430, 180, 0.79), (55, 60, 40, 0.63), (39, 130, 70, 0.74), (3, 190, 280, 0.42), (10, 50, 80, 0.68),
    (14, 250, 200, 0.84),
)  # fmt: skip


class Crowd:
    """Answers of a simulated crowd, and the truth about new questions."""

    def __init__(self, cell: Cell, seed: int) -> None:
        n_people, n_items, n_answers, sd = cell
        rng = np.random.default_rng([seed, n_people, n_items, n_answers, round(100 * sd)])
        consensus = CONSENSUS_SD * rng.standard_normal(n_items)
        self.utilities = consensus + sd * rng.standard_normal((n_people, n_items))
        user = np.repeat(np.arange(n_people), n_answers)
        left, right, z = self._pairs(rng, user, np.arange(n_items))
        self.answers = self._frame(user, left, right)
        self.outcome = np.where(z + rng.standard_normal(len(z)) > 0.0, 1, -1)
        seen = np.unique(np.concatenate([left, right]))
        user = rng.integers(n_people, size=N_QUESTIONS)
        left, right, self.z = self._pairs(rng, user, seen)
        self.questions = self._frame(user, left, right)

    def _pairs(self, rng: np.random.Generator, user: Any, items: Any) -> tuple[Any, Any, Any]:
        left = rng.integers(len(items), size=len(user))
        right = items[(left + rng.integers(1, len(items), size=len(user))) % len(items)]
        left = items[left]
        return left, right, self.utilities[user, left] - self.utilities[user, right]

    @staticmethod
    def _frame(user: Any, left: Any, right: Any) -> dict[str, list[str]]:
        columns = {"user": ("u", user), "left": ("i", left), "right": ("i", right)}
        return {name: [f"{kind}{code:04d}" for code in codes.tolist()] for name, (kind, codes) in columns.items()}

    def loss(self, log_proba: Any) -> float:
        """Expected log loss under the truth, in nats an answer, of the log probabilities of left and right."""
        return float(
            -(np.exp(log_ndtr(self.z)) * log_proba[:, 0] + np.exp(log_ndtr(-self.z)) * log_proba[:, -1]).mean()
        )

    @property
    def least(self) -> float:
        """The loss of who knows the truth."""
        return self.loss(np.column_stack([log_ndtr(self.z), log_ndtr(-self.z)]))


def run(cell: Cell, seed: int, setting: str) -> dict[str, Any]:
    """Fit and judge one crowd."""
    crowd = Crowd(cell, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record says so
        model = Population(**SETTINGS[setting], random_state=0, n_jobs=1).fit(crowd.answers, crowd.outcome)
    seconds = time.process_time() - began
    chosen = model.hyperparameters_
    return {
        "cell": list(cell), "seed": seed, "setting": setting,
        "loss": crowd.loss(np.asarray(model.predict_log_proba(crowd.questions))), "least": crowd.least,
        "cpu_s": seconds, "passes": model.report_["fit"]["iterations"],
        "converged": model.report_["fit"]["converged"], "strength": chosen.strength, "variance": chosen.variance,
        "consensus_variance": chosen.consensus_variance,
    }  # fmt: skip


def page(records: list[dict[str, Any]], command: str) -> str:
    """What is written to ``results/small_crowds.md``."""
    by_cell: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    seconds: dict[str, list[float]] = defaultdict(list)
    for record in records:
        by_cell[tuple(record["cell"])][record["setting"]].append(record["loss"])
        seconds[record["setting"]].append(record["cpu_s"])
    rows, to_pooled, to_best = [], [], []
    for cell, losses in by_cell.items():
        mean = {name: float(np.mean(values)) for name, values in losses.items()}
        fixed = [mean[name] for name in mean if name.startswith("strength")]
        to_pooled.append(mean["default"] - mean.get("pooled", np.nan))
        to_best.append(mean["default"] - min(fixed, default=np.nan))
        numbers = [f"{mean[name]:.4f}" if name in mean else "" for name in seconds]
        rows.append([*map(str, cell), *numbers, f"{to_pooled[-1]:+.4f}", f"{to_best[-1]:+.4f}"])
    head = ["people", "items", "answers each", "sd", *seconds, "to pooled", "to best strength"]
    n_seeds = len({record["seed"] for record in records})
    lines = [
        "# Small crowds: is the prior chosen well?", "",
        "Expected log loss under the truth, nats an answer, of 10 000 new questions; mean of "
        f"{n_seeds} seeds. Pooled may be beaten by no more than {WORSE_THAN_POOLED}, the best strength given by hand "
        f"by no more than {WORSE_THAN_BEST}.", "",
        f"Worse than pooled by more than {WORSE_THAN_POOLED}: {sum(d > WORSE_THAN_POOLED for d in to_pooled)} of "
        f"{len(rows)} cells (worst {max(to_pooled):+.4f}). Worse than the best strength by more than "
        f"{WORSE_THAN_BEST}: {sum(d > WORSE_THAN_BEST for d in to_best)} (worst {max(to_best):+.4f}).", "",
        "CPU seconds a fit, mean: " + ", ".join(f"{k} {np.mean(v):.1f}" for k, v in seconds.items()) + ".", "",
        "| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows), "",
        made_with(command), "",
    ]  # fmt: skip
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_crowds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--development", action="store_true", help="the cells for development, and no page")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th cell from the K-th, to share the work")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    first, step = map(int, given.part.split("/"))
    path = given.out / f"small_crowds{'-' + given.part.replace('/', '-') if step > 1 else ''}.jsonl"
    records = [json.loads(line) for file in given.out.glob("small_crowds*.jsonl") for line in file.open()]
    done = {(tuple(r["cell"]), r["seed"], r["setting"]) for r in records}
    cells = DEVELOPMENT if given.development else CELLS
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for cell in cells[first - 1 :: step]:
            for setting in given.settings.split(","):
                if (cell, seed, setting) in done:
                    continue
                records.append(record := run(cell, seed, setting))
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, file=sys.stderr, flush=True)
    if step == 1:
        records.sort(key=lambda r: (cells.index(tuple(r["cell"])), r["seed"], list(SETTINGS).index(r["setting"])))
        write_whole({path: "".join(json.dumps(r) + "\n" for r in records)})
        command = "python -m benchmarks.small_crowds" + (" --development" if given.development else "")
        write_whole({given.out / "small_crowds.md": page(records, command)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
