"""What the walk of a model compares: tables told in another way, boards and what else says their numbers, refusals."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy.special import ndtr

import predilect
from predilect.inference.likelihoods.special import Z_95
from tolerances import ITERATIVE
from walks.crowds import Refused, Spec, Table, asking, by, columns_of

DRAWN = 0.04  # five standard errors of a share of 4 000 draws

# --- Numbers ----------------------------------------------------------------------------------------------------------


def equal(one: Any, other: Any, tolerance: float = 0.0) -> bool:
    """Whether plain values are equal, numbers to a tolerance of themselves; what is not a number is one."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other, itertools.repeat(tolerance)))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other)) or abs(one - other) <= tolerance * (1 + abs(one))
    return bool(one == other)


def near(one: Any, other: Any) -> bool:
    return equal(one, other, 1e-5)


def plain_of(hyperparameters: Any) -> dict[str, Any]:
    return {name: float(one) if isinstance(one, int | float) else one for name, one in asdict(hyperparameters).items()}


def attribute_of(model: Any, name: str) -> Any:
    """What stands under a name, such as "rank" or "worth.parts"; None where the model has no such thing."""
    return reduce(lambda one, part: getattr(one, part, None), name.split("."), model)


def table_or_refusal(model: Any, name: str) -> Any:
    """A table that a model has, as plain columns; or why not."""
    call = attribute_of(model, name)
    if call is None:
        return None
    found = asking(call)
    return found if isinstance(found, Refused) else columns_of(found)


# --- The same answers, told otherwise ---------------------------------------------------------------------------------


def replace_columns(table: Table, **columns: list[Any]) -> Table:
    return replace(table, columns=table.columns | columns)


def renamed(columns: dict[str, list[Any]], names: Mapping[str, str]) -> dict[str, list[Any]]:
    """With other names of people and items, wherever they stand."""

    def new(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for sign in (" > ", "|"):
            if sign in value:
                return sign.join(names.get(one, one) for one in value.split(sign))
        return names.get(value, value)

    return {name: column if name == "task" else [new(value) for value in column] for name, column in columns.items()}


_SWAPPED = {"left": "right", "right": "left"}


def retold(table: Table, way: str, seed: int, names: Mapping[str, str]) -> Table:
    """The same answers: ``way`` says what is another."""
    columns = table.columns
    if way in ("rows", "twice"):
        rows = table.rows * (2 if way == "twice" else 1)
        order = np.random.default_rng(seed).permutation(len(rows)).tolist()
        return table.of([rows[k] for k in order])
    if way == "columns":
        return replace(table, columns=dict(reversed(columns.items())))
    if way == "pandas":
        return replace(table, columns=pd.DataFrame(columns))
    if way == "arrow":
        return replace(table, columns=pl.DataFrame(columns, strict=False).to_arrow())
    if way == "names":
        return replace(table, columns=renamed(columns, names))
    if way == "sides" and table.is_pairs:
        winner = []
        for one in columns["winner"]:
            side, *rest = one.split(" ", 1)
            winner.append(" ".join([_SWAPPED.get(side, side), *rest]))
        other = {"left": columns["right"], "right": columns["left"], "winner": winner}
        if "length" in columns:
            other["length"] = [-one for one in columns["length"]]
        return replace(table, columns=columns | other)
    return table


# --- Boards -----------------------------------------------------------------------------------------------------------


def is_normal(model: Any) -> bool:
    """Whether utilities are normal; of those known by draws the mean may be beyond the quantiles."""
    return type(model).__name__ != "MixedLogit"


def check_board(model: Any, user: Any) -> None:
    """The board of the crowd (None) or of a person, and whatever else says its numbers."""
    whose = user or "the crowd"
    board, own = (by(call(user), "item") for call in (model.rank, model.utilities))
    assert board.keys() == own.keys()
    for item, row in board.items():
        assert equal(row, own[item]), f"rank and utilities of {item} for {whose}: {row} {own[item]}"
        assert row["lower"] <= row["upper"], f"{item} for {whose}: {row}"
        assert 1 <= row["rank_low"] <= row["rank_high"] <= len(board), f"{item} for {whose}: {row}"
        if is_normal(model):
            for end, sign in (("lower", -1.0), ("upper", 1.0)):
                assert abs(row[end] - row["mean"] - sign * Z_95 * row["sd"]) < ITERATIVE, f"{item} for {whose}: {row}"
    rows = list(board.values())
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert abs(sum(row["p_best"] for row in rows) - 1.0) < ITERATIVE
    assert abs(sum(row["mean"] for row in rows)) < ITERATIVE * sum(1.0 + row["sd"] for row in rows)
    items = list(own)
    mean, covariance = model.utility_distribution(user)
    unit_sd = 0.0 if user is not None else model.posterior_.crowd().unit_sd
    for k, item in enumerate(items):
        sd, rounding = own[item]["sd"], ITERATIVE * (1.0 + own[item]["sd"])
        assert abs(mean[k] - own[item]["mean"]) < rounding, f"joint law of {item} for {whose}: {mean[k]}, {own[item]}"
        joint = math.sqrt(max(covariance[k, k], 0.0) + (unit_sd * mean[k]) ** 2)
        assert abs(joint - sd) < rounding, f"joint law of {item} for {whose}"
    if len(items) > 1:
        check_versus(model, user, board, covariance)


def check_versus(model: Any, user: Any, board: dict[Any, dict[str, Any]], covariance: np.ndarray) -> None:
    """Each two items against each other, and the board."""
    whose, items = user or "the crowd", list(model.items_.ids)
    pairs = list(itertools.permutations(items, 2))
    told = columns_of(model.versus(pairs, user=user))
    frame = {"left": told["left"], "right": told["right"]} | ({} if user is None else {"user": [user] * len(pairs)})
    there = model.predict_proba(frame)
    back = model.predict_proba(frame | {"left": told["right"], "right": told["left"]})
    chance = 0.5 * (there + back[:, ::-1])
    found: dict[tuple[Any, Any], float] = {}
    equals: set[tuple[Any, Any]] = set()
    leader = next(iter(board))
    for k, (one, other) in enumerate(pairs):
        row = {name: column[k] for name, column in told.items()}
        what = f"{one} or {other} for {whose}: {row}"
        rounding = ITERATIVE * (1.0 + board[one]["sd"] + board[other]["sd"])
        assert abs(row["difference"] - board[one]["mean"] + board[other]["mean"]) < rounding, what
        if is_normal(model):
            assert row["lower"] - ITERATIVE <= row["difference"] <= row["upper"] + ITERATIVE, what
        p = found[one, other] = row["p_better"]
        if (other, one) in found:
            assert abs(p + found[other, one] - 1.0) < ITERATIVE, f"{what}, and the other way {found[other, one]}"
        for name, column in zip(("p_left", "p_tie", "p_right"), range(3), strict=True):
            assert abs(row[name] - chance[k, column]) < ITERATIVE, f"{what}, predicted {chance[k]}"
        a, b = items.index(one), items.index(other)
        sd = math.sqrt(max(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b], 0.0))
        if sd <= 1e-4:
            equals.add((one, other))
        elif is_normal(model):
            assert abs(p - ndtr(row["difference"] / sd)) < 1e-5, f"{what}, sd {sd}"
            if one == leader and abs(p - 0.95) > 1e-4:
                assert board[other]["tied_with_leader"] == (p <= 0.95), f"{what}, {board[other]}"
    for item, row in board.items():
        # Of items that are equal in a draw the first is best.
        most = min(
            (found[item, other] for other in items if other != item and (item, other) not in equals), default=1.0
        )
        assert row["p_best"] <= most + DRAWN, f"{item} is best for {whose} with {row['p_best']}, beats one with {most}"
        if len(items) == 2 and not equals:
            assert abs(row["p_best"] - most) < DRAWN, f"{item} for {whose}: {row['p_best']} and {most}"


def check_folder(out: Path, model: Any, there: Any) -> None:
    """A folder of results: the model in it is the one that Python fits, and every file says its numbers."""
    board = by(model.rank(), "item")
    assert equal(board, by(there.rank(), "item"), ITERATIVE), "the command fits another model than Python"
    told = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert told["model"]["n_answers"] == model.n_answers_
    sheet = pl.read_csv(out / "leaderboard.csv").to_dicts()
    for name, rows in (("leaderboard.json", told["board"]), ("leaderboard.csv", sheet)):
        assert [row["item"] for row in rows] == list(board), name
        for row in rows:
            for key, value in board[row["item"]].items():
                one = float(value) if isinstance(value, int | float) else value
                two = float(row[key]) if isinstance(row[key], int | float) else row[key]
                assert equal(one, two, ITERATIVE), f"{name}, {row['item']}, {key}: {row[key]}, and {value}"
    if not model.personal_:
        return
    for (user, item), row in {
        (row["user"], row["item"]): row for row in pl.read_parquet(out / "users.parquet").to_dicts()
    }.items():
        own = by(model.rank(user), "item")[item]
        for key in ("mean", "sd", "rank", "n"):
            assert equal(float(own[key]), float(row[key]), ITERATIVE), (
                f"users.parquet, {user}, {item}: {row}, and {own}"
            )


def check_people(model: Any, k: int) -> None:
    """How people answer, and the ``k`` best of each."""
    people, top = by(model.people(), "user"), columns_of(model.top(k))
    assert abs(sum(row["n"] for row in people.values()) - model.n_answers_) < ITERATIVE, people
    for user, row in people.items():
        for name in ("agreement", "ties", "clicks_at_random"):
            assert row[name] is None or 0.0 <= row[name] <= 1.0, (user, row)
        if row["lower"] is not None:
            assert row["lower"] <= row["consistency"] <= row["upper"], (user, row)
        board = by(model.rank(user), "item")
        mine = [n for n, one in enumerate(top["user"]) if one == user]
        assert len(mine) == min(k, len(board))
        for n in mine:
            one = board[top["item"][n]]
            for name in ("mean", "sd", "rank"):
                assert equal(float(one[name]), float(top[name][n]), ITERATIVE), (user, one, name, top[name][n])


def word_for(value: Any) -> str:
    """A setting as ``--model`` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def options_of(table: Table) -> list[str]:
    """How a command is told what Python is told by ``columns`` and ``reading``."""
    found: list[str] = []
    for option, given in (("-c", table.roles), ("--read", table.reading)):
        for name, value in given.items():
            found += [option, f"{name}={value if isinstance(value, str) else ','.join(value)}"]
    return found


# --- Choices ----------------------------------------------------------------------------------------------------------


def item_of(row: Mapping[str, Any]) -> str:
    """The item of a row of a task: by its name, or by what describes it."""
    return str(row["item"]) if "item" in row else f"kind={row['kind']}, price={row['price']:g}"


def answers_in(table: Table) -> float:
    """How many answers a table holds, of those that say something."""
    told = table.of(table.telling)
    return predilect.Comparisons.from_frame(told.columns, **told.said).n_answers if told.rows else 0.0


def choices_in(table: Table) -> list[tuple[list[Any], float]] | None:
    """Sets that were shown, the chosen one first, with weights; a tie is half a choice of each. None of other forms."""
    if table.is_pairs and not table.grades:
        found = []
        for row in table.rows:
            pair, weight = [row["left"], row["right"]], float(row.get("weight", 1))
            if row["winner"] == "tie":
                found += [(pair, 0.5 * weight), (pair[::-1], 0.5 * weight)]
            else:
                found.append((pair if row["winner"] == pair[0] else pair[::-1], weight))
        return found
    if "chosen" not in table.columns:
        return None
    found = []
    for _, task in itertools.groupby(table.rows, key=lambda row: (row.get("user"), row["task"])):
        rows = sorted(task, key=lambda row: -row["chosen"])
        found.append(([item_of(row) for row in rows], float(rows[0].get("weight", 1))))
    return found


# --- Refusals ---------------------------------------------------------------------------------------------------------


def why_refused(spec: Spec, table: Table, items: Any, people: Any, words: str) -> bool:
    """Whether a fit may be refused, and the words name the reason."""
    settings = dict(spec.own)
    asks_for_features = settings.get("basis", "items") != "items"
    reasons = {
        "ties": table.is_pairs and set(table.columns["winner"]) == {"tie"},
        "context": "context" in table.roles and (not spec.is_population or len(set(table.columns["prompt"])) == 1),
        "covariate": ("side" in table.reading and not spec.is_population)
        or ("covariates" in table.roles and (not spec.is_population or not any(table.columns["length"]))),
        "features": asks_for_features and items is None,
        "people": settings.get("user_features") is True and people is None,
        "class": spec.name == "latent class",
        'no attribute "price"': spec.name == "fixed price",
        "time": "time" in table.roles or "drift" in settings,
        "no usable answer": not table.is_pairs,
        "is the best nor": spec.name not in ("population", "joint") and "rating" in table.columns,
    }
    return any(word in words and may for word, may in reasons.items())


def why_not_told(model: Any, table: Table) -> bool:
    """Whether a model may refuse a table of answers."""
    return (
        getattr(model, "drift_", None) is not None
        or (model.users_ is not None and "user" not in table.columns)
        or ("covariates" in table.roles and "length" not in columns_of(model.covariates())["covariate"])
        or (table.grades and not model.grades_)
        or not table.telling
    )


def left_out(model: Any, table: Table, row: Mapping[str, Any]) -> bool:
    """Whether a model cannot take a row, by what ``update`` says."""
    if not table.is_pairs:
        shown = row["alternatives"].split("|") if "alternatives" in row else [item_of(row)]
        return any(one not in model.items_.ids for one in shown)
    unknown = row["left"] not in model.items_.ids or row["right"] not in model.items_.ids
    return unknown or (row["winner"] == "tie" and model.tie_threshold_ == 0.0)


def why_not_in_parts(spec: Spec, table: Table, words: str) -> bool:
    """Whether a fit to parts may refuse, and the words name the reason."""
    settings = dict(spec.own)
    reasons = {
        "context": "context" in table.roles, "personal": settings.get("personal") is False,
        "one person": len(set(table.columns["user"])) == 1, "click": spec.settings["clickers"] != 0.0,
        "features": "basis" in settings or "user_features" in settings,
        "time": "time" in table.roles or "drift" in settings,
    }  # fmt: skip
    return any(word in words and may for word, may in reasons.items())


# --- Verbs ------------------------------------------------------------------------------------------------------------


def verbs(items: Sequence[Any] = ("tea", "milk"), user: Any = "ann") -> dict[str, dict[str, Any]]:
    """What may be asked of a model, with arguments that mean something."""
    pair = list(items[:2])
    return {
        "rank": {"user": None, "at": None, "scale": "probit", "base": None, "anchor": None},
        "history": {"items": pair, "at": None},
        "utilities": {"user": user, "ranks": False},
        "utility_distribution": {"user": user},
        "versus": {"pairs": [tuple(pair)], "other": None, "user": user, "scale": "probit"},
        "suggest": {"user": user, "n": 1, "target": "person", "k": 1, "candidates": None, "strategy": "bald",
                    "exclude": None, "retired": (), "difficulty": None, "random_state": 0},
        "suggest_set": {"user": user, "size": 2, "candidates": None, "k": 1, "exclude": None},
        "suggest_each": {"candidates": [user], "target": "board", "k": 1, "strategy": "bald"},
        "decide": {"user": user, "options": pair, "cost_wrong": 1.0, "cost_question": 0.1, "cost_defer": None,
                   "default": None, "items": None},
        "decide_many": {"options": pair, "users": None, "cost_wrong": 1.0, "cost_question": 0.1},
        "outlook": {"claim": "best", "level": 0.9, "k": 1, "n_people": None, "retired": ()},
        "questions": {"target": "board", "k": 1, "retired": (), "difficulty": None, "shown": None, "eps": 0.1},
        "scores": {"size": 2, "anchor": None, "user": None},
        "top": {"k": 2},
        "compress": {"keep": 1, "loss": "regret", "criterion": "auto", "budget": None},
        "worth.importances": {"of": "population"},
        "worth.willingness_to_pay": {"price": "price", "user": None},
        "worth.contrasts": {"attribute": "kind", "user": None},
        "worth.surplus": {"scenarios": {"one": pair, "other": pair[::-1]}, "price": "price", "of": "population"},
        "worth.simulate": {"scenarios": pair, "rule": "share", "of": "population"},
        "update": {"user": user, "left": pair[0], "right": pair[-1], "winner": pair[0], "weight": 1.0},
        "forget": {"user": user, "left": pair[0], "right": pair[-1], "winner": pair[0], "weight": 1.0},
        "predict_proba": {"X": {"left": pair[:1], "right": pair[1:2]}, "items": None, "people": None},
        "predict_choice": {"X": {"task": [0, 0], "item": pair}, "items": None, "people": None},
        "score": {"X": {"left": pair[:1], "right": pair[1:2], "winner": pair[:1]}, "y": None, "items": None},
        "verdict": {"n_folds": 2, "max_people": 50, "n_bootstrap": 100, "random_state": 0},
    }  # fmt: skip
