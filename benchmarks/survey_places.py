"""Where in the survey electricity's held-out choices stand: ``python -m benchmarks.survey_places``.

Everybody made twelve choices, and those in the middle of the survey are easier to predict than the first and the last.
The prototype behind the bars of electricity (benchmarks/README.md) had a pooled model of accuracy .750 and log loss
.516 on the quarter of choices that it held out. No ranking of the 35 contracts is so good on a random quarter, nor on
all of them; of the quarters that hold out the same three places for everybody, 3 in 100 allow it. Here are those in
which the best ranking comes nearest to these numbers, and what population and the pooled model have there when they
are fitted to the other nine choices.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.task import read_csv
from predilect import Population

N_PLACES, N_HELD_OUT = 12, 3
PROTOTYPE = (0.750, 0.516)  # accuracy, log loss of its pooled model


def places(frame: pl.DataFrame) -> npt.NDArray[np.integer[Any]]:
    """Which of their choices, from 0, each row of a person is of."""
    return frame.select(pl.col("task").rank("dense").over("user")).to_series().to_numpy().astype(np.int64) - 1


def best_ranking(frame: pl.DataFrame, n_items: int) -> npt.NDArray[np.float64]:
    """Log-likelihood of each answer under one utility an item, fitted to all answers."""
    design = np.zeros((len(frame), n_items))
    rows = np.arange(len(frame))
    loser = np.where(frame["winner"] == frame["left"], frame["right"], frame["left"])
    design[rows, frame["winner"]], design[rows, loser] = 1.0, -1.0
    # The winner less the loser, and the other way round: scikit-learn wants both classes.
    both = np.vstack([design, -design])
    model = LogisticRegression(fit_intercept=False, C=100.0, tol=1e-8, max_iter=1000)
    model.fit(both, np.repeat([1, 0], len(frame)))
    return np.asarray(log_expit(design @ model.coef_[0]))


def scores(model: Population, test: pl.DataFrame) -> tuple[float, float]:
    """Accuracy and log loss of answers without ties."""
    asked = test.select("user", "left", "right") if model.personal else test.select("left", "right")
    log_p = model.predict_log_proba(asked)
    right = np.where(test["winner"] == test["left"], log_p[:, 0], log_p[:, 2])
    return float(np.mean(right > np.log(0.5))), float(-right.mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.survey_places", description=__doc__)
    parser.add_argument("--sets", type=int, default=6, help="how many sets of places (default 6)")
    n_sets = parser.parse_args().sets
    frame, items = read_csv("electricity", "comparisons.csv.gz"), read_csv("electricity", "items.csv")
    place, log_p = places(frame), best_ranking(frame, len(items))
    print(f"best ranking of all answers: {np.mean(log_p > np.log(0.5)):.3f} / {-log_p.mean():.3f}")
    found = []
    for held_out in combinations(range(N_PLACES), N_HELD_OUT):
        part = log_p[np.isin(place, held_out)]
        accuracy, loss = float(np.mean(part > np.log(0.5))), float(-part.mean())
        found.append((abs(accuracy - PROTOTYPE[0]) + abs(loss - PROTOTYPE[1]), held_out))
    table = []
    with threadpool_limits(1):
        for _, held_out in sorted(found)[:n_sets]:
            test = pl.Series(np.isin(place, held_out))
            train, asked = frame.filter(~test), frame.filter(test)
            row = [*scores(Population(personal=False, n_jobs=1).fit(train, items=items), asked),
                   *scores(Population(n_jobs=1).fit(train, items=items), asked)]  # fmt: skip
            table.append(row)
            print(f"choices {', '.join(str(k + 1) for k in held_out):>8}: pooled {row[0]:.3f} / {row[1]:.3f}, "
                  f"population {row[2]:.3f} / {row[3]:.3f}", flush=True)  # fmt: skip
    mean = np.mean(table, axis=0)
    print(f"mean:             pooled {mean[0]:.3f} / {mean[1]:.3f}, population {mean[2]:.3f} / {mean[3]:.3f}")


if __name__ == "__main__":
    main()
