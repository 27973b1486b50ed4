"""Tables of any columns and values are read, or refused in words; never anything else."""

from __future__ import annotations

import datetime as dt
import math
import random

import pandas as pd
import polars as pl
import pytest

from predilect.data import Comparisons
from predilect.data.read.names import (
    APPROVED,
    AVAILABLE,
    CHOSEN,
    IDENTIFIED,
    PEOPLE_OF_SETS,
    PLACED,
    RANKED,
    RATED,
    TASKS,
)
from predilect.errors import DataError

NAMES = [
    *PEOPLE_OF_SETS, *TASKS, *IDENTIFIED, *PLACED, *AVAILABLE, *CHOSEN, *APPROVED, *RANKED, *RATED, "best", "worst",
    "none", "weight", "left", "right", "model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie",
    "rejected", "loser", "order", "alternatives", "items", "shown", "item1", "item2", "item3", "rank1", "rank2",
    "first", "second", "rank_tea", "rank_milk", "price1", "price2", "av1", "av2", "alt1_price", "alt2_price", "A_p",
    "B_p", "TRAIN_TT", "CAR_TT", "TRAIN_AV", "price", "{x}", "a%sb", "  ",
]  # fmt: skip
KINDS = ["best", "best_worst", "order", "rank", "rating", "approval", "pairs"]
USUAL = [["x", "y", "z"], [0, 1, 2, 3], [0, 1], [1, 2, None], ["", "x", "{y}", "1", "none", None]]
ODD = [
    [1.5, math.inf, math.nan, 1e300, -1.0], [True, False], ["x > y", "y=z>x", ">", "= >"],
    [["x", "y"], ["z"], [], None],
    [["x", ["y", "z"]], [["x"]], []], [[1, 2], [1, "a"]], ['["x","y"]', '["x"'], ["x|y|z", "z|"], [dt.date(2020, 1, 1)],
    [dt.timedelta(1)], [1, "x", 2.5, None], [{"a": 1}], [-1, 0, 1], [b"\xff"],
]  # fmt: skip


@pytest.mark.parametrize("n_tables", [150, pytest.param(300, marks=pytest.mark.slow)])
def test_tables_are_read_or_refused_in_words(n_tables):
    dice = random.Random(0)
    n_read, refused = 0, []
    for _ in range(n_tables):
        n_rows = dice.choice([1, 2, 4, 6])
        columns = {}
        for name in dice.sample(NAMES, dice.randint(2, 7)):
            values = dice.choice(USUAL if dice.random() < 0.8 else ODD)
            columns[name] = [dice.choice(values) for _ in range(n_rows)]
        reading = {"kind": dice.choice(KINDS)} if dice.random() < 0.4 else {}
        roles = {}
        if dice.random() < 0.3:
            roles["alternatives"] = dice.choice([list(columns), next(iter(columns)), ["A", "B"], ["CAR", "TRAIN"]])
        if dice.random() < 0.4:
            reading["drop"] = ["missing", "self", "unknown"]
        frame = dice.choice([dict, pd.DataFrame, lambda table: pl.DataFrame(table, strict=False)])(columns)
        try:
            found = Comparisons.from_frame(frame, columns=roles, reading=reading)
        except DataError as error:
            refused.append(str(error))
        else:
            n_read += bool(found.intake.describe())
    assert n_read
    assert not [message for message in refused if "{where}" in message]
