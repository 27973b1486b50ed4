"""How often 95 % intervals hold the truth, in studies simulated from it: ``python -m benchmarks.coverage``.

Averages: of 20, 80 or 300 people, who choose ten times the best of three out of 72 profiles of four attributes, whose
weights differ from person to person, with normal noise (for the mixed logit: logistic). Importances, and shares of the
items of three scenarios, in one of which 1 to 2 % take an item, are held against those of a population of 200 000, and
of the people of the study. Contexts: 100 people compare 15 pairs of eight items, each on one of a few contexts, by
which utilities differ with standard deviation 1; differences of scores are held against the true ones in units of the
noise of an answer, which holds the contexts (and, pooled, how people differ). Tastes: people with tastes of their own
about one order compare pairs of eight items, utilities of which differ with standard deviation 1 (where each gives six
answers .7); every other person's board is looked at. Worlds: 30 people give 20 answers each to pairs of eight items,
and tastes are those of the model, normal with standard deviation .5; or noise is logistic, of the same variance; or
tastes have heavy tails (t with three degrees of freedom); or people are of two camps, whose utilities lie 1 apart, and
differ little within. Consistency: 30 people of 40 answers. A tier holds if its leader is better than the first item of
the next. Clickers: 9 of 30 people, 3 or none, answer 20 pairs of eight items at random, the others with noise of
exactly 1 and tastes of standard deviation .5. Coefficients: of the population that the people of the averages are drawn
from. Covariates: 60 people choose 20 times the better of two of eight items, or eight times the best of three, each
with a covariate whose effect is .5 on average. Near-collinear: 80 people and ten choices, of profiles with two
attributes that correlate by .95. Verdicts: crowds of whom it is known whether people differ in taste, and in
consistency; how often the verdict finds so, and what it says that personal rankings gain, beside what they gain on a
fifth of the answers, held out beforehand. Logit: people of the averages, who differ, make eight choices of three, and a
logit has the same coefficients for all; the truth is the logit that 20 000 such people make.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from benchmarks.store import made_with, missing, read_lines, write_whole
from predilect import Comparisons, MixedLogit, Population
from predilect.decisions.conjoint import OF, RULES
from predilect.errors import ConvergenceWarning
from predilect.inference.likelihoods.special import Z_95

FloatArray = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
PARTS = (
    "averages", "contexts", "tastes", "worlds", "consistency", "clickers", "coefficients", "covariates", "collinear",
    "verdicts", "logit",
)  # fmt: skip

PROFILES = list(product([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0], ["a", "b", "c"], ["no", "yes"]))
ITEMS = {"item": [f"p{k:02d}" for k in range(len(PROFILES))]} | dict(
    zip(["price", "size", "brand", "milk"], map(list, zip(*PROFILES, strict=True)), strict=True)
)
# Of the price, of the size, of brands a, b and c, of milk no and yes: levels of a category sum to 0.
X = np.array([[p, s, *(b == x for x in "abc"), m == "no", m == "yes"] for p, s, b, m in PROFILES], dtype=np.float64)
LEVELS = np.zeros((5, 7))
LEVELS[[0, 1, 2, 2, 3, 3, 4, 4], [0, 1, 2, 4, 3, 4, 6, 5]] = [1, 1, 1, -1, 1, -1, 1, -1]
MEANS = np.array([-0.6, 0.5, 0.4, -0.1, 0.5])
ROOT = np.linalg.cholesky(0.3 + 0.7 * np.eye(5)) * np.array([0.35, 0.4, 0.6, 0.4, 0.5])[:, None]
SCENARIOS = {"three": [0, 40, 70], "four": [5, 10, 60, 33], "rare": [13, 31, 66]}
PEOPLE, N_TASKS, N_SHOWN = (300, 80, 20), 10, 3
MODELS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "Population": (Population, {}),
    "Population of attributes alone": (Population, {"basis": "attributes", "consistency": 0.0, "feature_weight": 1.0}),
    "MixedLogit": (MixedLogit, {}),
}
N_OF_POPULATION = 200_000
# Heading, what is held, columns, and what the labels are, of parts that have one table
FURTHER: dict[str, tuple[str, str, dict[str, str], list[str]]] = {
    "tastes": (
        "Tastes about one order", "Differences of the scores of own boards, and of the crowd's; and, where tastes are "
        "one, how often the verdict is that personal rankings gain nothing (mean gain, nats an answer)",
        {"own": "own", "crowd": "crowd", "nothing gained": "nothing"}, ["answers of each, tastes", "people"],
    ),
    "worlds": (
        "Where the model is wrong", "Differences of scores of the crowd's board and own boards; ranks of the crowd's "
        "board, and of own ones; leaders of tiers; and how often the first item is the best (its mean P(best))",
        {"crowd": "crowd", "own": "own", "ranks": "ranks", "own ranks": "places", "tiers": "tiers", "first": "first"},
        ["world", "people"],
    ),
    "consistency": (
        "People who differ in consistency", "Everybody's own consistency, in studies where people are found to differ",
        {"own": "own"}, ["board", "log sd, %"],
    ),
    "clickers": (
        "People who click at random", "Differences of the board's scores, absolute and with the best common factor "
        "divided out, that factor, ranks of all own boards, and people told rightly whether they click",
        {"absolute": "absolute", "scaled": "scaled", "factor": "slope", "own ranks": "own ranks", "found": "found"},
        ["board", "clickers of 30"],
    ),
    "coefficients": (
        "Coefficients of the population", "Means, and standard deviations over people",
        {"means": "mean", "price": "mean: price", "spread": "spread"}, ["model", "people"],
    ),
    "covariates": (
        "A covariate of alternatives", "Its effect, and differences of the crowd's board; its mean (and mean spread)",
        {"effect": "effect", "board": "board", "mean": "mean"}, ["answers", "spread times 10"],
    ),
    "collinear": (
        "Near-collinear attributes", "Means over people of the coefficients of two attributes that correlate by .95, "
        "and of one apart", {"near-collinear": "near-collinear", "apart": "apart"}, ["model", "people"],
    ),
    "logit": (
        "One logit for people who differ", "Coefficients, what they are worth in the price, shares and elasticities",
        {"coefficients": "coefficient", "pay": "pay", "shares": "share", "elasticities": "elasticity"},
        ["errors", "people"],
    ),
    "verdicts": (
        "Verdicts", "How often personal rankings are said to predict better, and consistency to differ (mean gain, "
        "nats an answer), and how often what personal rankings are said to gain is within a fifth of what they gain on "
        "answers held out (the one over the other)",
        {"personal better": "personal", "consistency better": "consistency", "gain within a fifth": "within"},
        ["crowd", "people"],
    ),
}  # fmt: skip
CONTEXTS = (2, 3, 4, 6, 8, 20)
N_ANSWERS, TASTE = 15, 0.5
COEFFICIENTS = (("price", None), ("size", None), ("brand", "a"), ("brand", "b"), ("milk", "yes"))
CLICKERS = (9, 3, 0)
CONSISTENCY = (25, 50, 80)  # standard deviation of its logarithm, in per cent
LOGIT: dict[str, Any] = {"errors": ("clustered", "hessian"), "people": (150, 30), "tasks": 8, "truth": 20_000}
ANSWERS_WITH_COVARIATES = {"pairs": (2, 20), "choices of three": (3, 8)}  # of so many alternatives, so many answers
SPREADS_OF_EFFECT = (0.0, 0.4)  # times 10: the size of a study
EFFECT, CORRELATION = 0.5, 0.95


# Answers of each person, standard deviation of tastes: people, these two, and the standard deviation over items.
TASTES = {
    "20, 0.5": (30, 20, 0.5, 1.0), "6, 0.7": (30, 6, 0.7, 0.7), "3, 0.7": (150, 3, 0.7, 1.0),
    "20, 0": (30, 20, 0.0, 1.0), "15, 0.5": (8, 15, 0.5, 1.0), "60, 0.5": (2, 60, 0.5, 1.0),
}  # fmt: skip
# Standard deviation of tastes, and what is not as the model has it.
WORLDS = {"the model's": TASTE, "logistic noise": TASTE, "heavy tails": TASTE, "two camps": 0.2}
PROBIT = 1.702 * np.sqrt(3.0) / np.pi  # of logistic noise with variance 1: by what a probit's utilities are smaller


class Crowd(NamedTuple):
    """Who gives verdicts' answers."""

    n_people: int
    n_items: int
    n_answers: int  # of each to pairs at random, 0 for a complete ranking
    n_studies: int
    consensus: tuple[float, ...] = (1.0,)  # standard deviations of items' utilities, study by study
    taste: float = 0.0
    guess: float = 0.0  # share who guess
    held_out: float = 0.0


CROWDS = {
    "half guess": Crowd(150, 6, 15, 40, guess=0.5),
    "one ranking, 20 people": Crowd(20, 8, 12, 30),
    "one ranking, 30 people": Crowd(30, 8, 15, 30),
    "rankings, nothing shared": Crowd(40, 12, 0, 10, (0.0,), 1.0),
    "rankings": Crowd(40, 12, 0, 10, (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 0.35, 1.25), 1.0, held_out=0.2),
}


def people(n: int, rng: np.random.Generator) -> FloatArray:
    """Weights of people, (n, 7)."""
    return np.asarray((MEANS + rng.standard_normal((n, 5)) @ ROOT.T) @ LEVELS)


def noise(shape: tuple[int, ...], is_logit: bool, rng: np.random.Generator) -> FloatArray:
    """Of each alternative, so that of the difference of two it is a standard normal, or a logistic."""
    return rng.gumbel(size=shape) if is_logit else np.sqrt(0.5) * rng.standard_normal(shape)


def choices(weights: FloatArray, is_logit: bool, rng: np.random.Generator, n_tasks: int = N_TASKS) -> Comparisons:
    """What people choose."""
    shown = np.array([[rng.choice(len(X), N_SHOWN, replace=False) for _ in range(n_tasks)] for _ in weights])
    V = (X[shown] * weights[:, None, None, :]).sum(axis=-1)
    best = (V + noise(V.shape, is_logit, rng)).argmax(axis=-1)
    user, task, place = np.indices(shown.shape).reshape(3, -1)
    return Comparisons.from_frame({
        "user": [f"u{code:03d}" for code in user.tolist()], "task": task.tolist(),
        "item": [ITEMS["item"][k] for k in shown.ravel().tolist()],
        "choice": (place == best[user, task]).astype(int).tolist(),
    })  # fmt: skip


def importances(weights: FloatArray) -> dict[str, float]:
    """Of the average person."""
    ranges = np.column_stack([
        3.0 * np.abs(weights[:, 0]), 2.0 * np.abs(weights[:, 1]), np.ptp(weights[:, 2:5], axis=1),
        np.ptp(weights[:, 5:], axis=1),
    ])  # fmt: skip
    mean = (ranges / ranges.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(["price", "size", "brand", "milk"], mean.tolist(), strict=True))


def shares(weights: FloatArray, items: list[int], is_logit: bool, is_sure: bool) -> FloatArray:
    """Shares of items, (k,), of people who choose with noise, or without it if they are sure."""
    V = weights @ X[items].T
    if is_sure:
        return np.bincount(V.argmax(axis=1), minlength=len(items)) / len(V)
    if is_logit:
        odds = np.exp(V - V.max(axis=1, keepdims=True))
        return np.asarray((odds / odds.sum(axis=1, keepdims=True)).mean(axis=0))
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    found = np.empty(len(items))
    for i in range(len(items)):
        others = [j for j in range(len(items)) if j != i]
        ahead = np.sqrt(2.0) * (V[:, [i]] - V[:, others])
        found[i] = sum(w * ndtr(ahead + e).prod(axis=1).mean() for e, w in zip(nodes, mass / mass.sum(), strict=True))
    return found


@cache
def truth_of_population(is_logit: bool) -> dict[str, Any]:
    """The truth of everybody, by quantity."""
    return truth(people(N_OF_POPULATION, np.random.default_rng(0)), is_logit)


def truth(weights: FloatArray, is_logit: bool) -> dict[str, Any]:
    """Importances by attribute, and shares by rule and scenario."""
    found: dict[str, Any] = {"importance": importances(weights)}
    for rule in RULES:
        found[rule] = {name: shares(weights, items, is_logit, rule != "share") for name, items in SCENARIOS.items()}
    return found


def held(model: Any, of: str, true: dict[str, Any]) -> Iterator[tuple[str, str, bool, float]]:
    """Quantity, what of it, whether its interval holds the truth, and how wide it is."""
    for row in model.worth.importances(of).iter_rows(named=True):
        value = true["importance"][row["attribute"]]
        yield "importance", row["attribute"], bool(row["lower"] <= value <= row["upper"]), row["upper"] - row["lower"]
    sets = {name: [ITEMS["item"][k] for k in items] for name, items in SCENARIOS.items()}
    for rule in RULES:
        table = model.worth.simulate(sets, rule, of=of)
        values = np.concatenate([true[rule][name] for name in SCENARIOS])
        for row, value in zip(table.iter_rows(named=True), values.tolist(), strict=True):
            what = f"{row['scenario']} {row['item']}"
            yield rule, what, bool(row["lower"] <= value <= row["upper"]), row["upper"] - row["lower"]


class Study(NamedTuple):
    """A simulated study: who answered, and a model of the answers."""

    weights: FloatArray
    model: Any
    seconds: float  # of CPU, for the fit


def study(name: str, n_people: int, seed: int) -> Study:
    """Simulate and fit."""
    kind, settings = MODELS[name]
    rng = np.random.default_rng([seed, n_people])
    weights = people(n_people, rng)
    answers = choices(weights, kind is MixedLogit, rng)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # coverage says how good a fit is
        model = kind(n_jobs=1, **settings).fit(answers, items=ITEMS)
    model._backend = "polars"
    return Study(weights, model, time.process_time() - began)


def averages(name: str, n_people: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of one study hold."""
    one = study(name, n_people, seed)
    is_logit = MODELS[name][0] is MixedLogit
    of_whom = {"population": truth_of_population(is_logit), "respondents": truth(one.weights, is_logit)}
    head = {"part": "averages", "model": name, "n": n_people, "seed": seed}
    found = []
    for of in OF:
        began = time.process_time()
        rows = list(held(one.model, of, of_whom[of]))
        parts: dict[str, list[Any]] = {}
        for quantity, of_what, holds, width in rows:
            parts.setdefault(f"{quantity}: {of_what}", []).append([int(holds), width])
        seconds = {"fit_cpu_s": round(one.seconds, 3), "cpu_s": round(time.process_time() - began, 3)}
        found.append({**head, "of": of, **seconds, "held": parts})
    return found


def coefficients(name: str, n_people: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of the population's mean coefficients, and of how far people differ in them, hold."""
    one = study(name, n_people, seed)
    table, spreads = one.model.worth.coefficients(), np.sqrt((ROOT**2).sum(axis=1))
    parts: dict[str, list[Any]] = {}
    for (attribute, level), mean, sd in zip(COEFFICIENTS, MEANS.tolist(), spreads.tolist(), strict=True):
        row = table.filter((pl.col("attribute") == attribute) & (pl.col("level").eq_missing(pl.lit(level or ""))))
        held_by = row.row(0, named=True)
        for what, begins, value in (("mean", "", mean), ("spread", "spread_", sd)):
            lower, upper = held_by[f"{begins}lower"], held_by[f"{begins}upper"]
            parts[f"{what}: {attribute}"] = [
                *parts.get(f"{what}: {attribute}", []), [int(lower <= value <= upper), upper - lower]
            ]  # fmt: skip
    return [{
        "part": "coefficients", "model": name, "n": n_people, "seed": seed, "fit_cpu_s": round(one.seconds, 3),
        "held": parts,
    }]  # fmt: skip


def fitted(
    f: FloatArray, consistency: FloatArray, n_answers: int, rng: np.random.Generator, *, is_logistic: bool = False
) -> tuple[Any, float]:
    """A model of answers to random pairs of people with utilities ``f``, in noise of variance 1 / consistency²; and
    the CPU seconds it took.
    """
    user, n_items = np.repeat(np.arange(len(f)), n_answers), f.shape[1]
    left = rng.integers(n_items, size=len(user))
    right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    z = consistency[user] * (f[user, left] - f[user, right])
    z += rng.logistic(0.0, np.sqrt(3.0) / np.pi, len(user)) if is_logistic else rng.standard_normal(len(user))
    began = time.process_time()
    model = Population(n_jobs=1).fit({
        "user": [f"u{u:02d}" for u in user.tolist()], "left": [f"i{k}" for k in left.tolist()],
        "right": [f"i{k}" for k in right.tolist()],
        "winner": [f"i{k}" for k in np.where(z > 0.0, left, right).tolist()],
    })  # fmt: skip
    seconds = time.process_time() - began
    model._backend = "polars"
    return model, seconds


def differences(model: Any, true: FloatArray, user: str | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Differences of scores of the crowd's board, or of a person's, those in truth, and their standard deviations."""
    mean, C = model.utility_distribution(user)
    true = true[[int(item[1:]) for item in model.items_.ids]]
    i, j = np.triu_indices(len(true), 1)
    of_unit = (user is None) * model.hyperparameters_.unit_sd * (mean[i] - mean[j])
    return mean[i] - mean[j], true[i] - true[j], np.sqrt(C[i, i] + C[j, j] - 2.0 * C[i, j] + of_unit**2)


def held_in(gap: FloatArray, true: FloatArray, sd: FloatArray) -> list[list[float]]:
    """Whether intervals hold the truth, and how wide they are."""
    return np.column_stack([np.abs(gap - true) < Z_95 * sd, 2.0 * Z_95 * sd]).tolist()


def tastes(name: str, seed: int) -> list[dict[str, Any]]:
    """What the intervals of differences hold, of the crowd's board and of own ones; and the verdict of one taste."""
    n_people, n_answers, taste, spread = TASTES[name]
    n_items, rng = 8, np.random.default_rng([seed, n_people, n_answers, round(10 * taste)])
    utility = spread * rng.standard_normal(n_items)
    f = utility + taste * rng.standard_normal((n_people, n_items))
    model, seconds = fitted(f, np.ones(n_people), n_answers, rng)
    parts = {
        "crowd": held_in(*differences(model, utility)),
        "own": [one for u in range(0, n_people, 2) for one in held_in(*differences(model, f[u], f"u{u:02d}"))],
    }  # fmt: skip
    if not taste:
        verdict = model.verdict().personal
        parts["nothing"] = [[float(verdict.outcome == "nothing"), float(verdict.gain or 0.0)]]
    return [{
        "part": "tastes", "model": name, "n": n_people, "seed": seed, "fit_cpu_s": round(seconds, 3), "held": parts,
    }]  # fmt: skip


def worlds(name: str, seed: int) -> list[dict[str, Any]]:
    """What intervals of scores and ranks, tiers and chances of first place hold, where the model is right or wrong."""
    n_people, n_items, rng = 30, 8, np.random.default_rng([seed, 30, [*WORLDS].index(name)])
    utility = rng.standard_normal(n_items)
    tastes = (
        rng.standard_t(3.0, (n_people, n_items)) / np.sqrt(3.0)
        if name == "heavy tails"
        else rng.standard_normal((n_people, n_items))
    )
    f = utility + WORLDS[name] * tastes
    if name == "two camps":
        f += np.where(np.arange(n_people) % 2, 0.5, -0.5)[:, None] * rng.choice([-1.0, 1.0], n_items)
    is_logistic = name == "logistic noise"
    model, seconds = fitted(f, np.ones(n_people), 20, rng, is_logistic=is_logistic)
    unit = 1.0 / PROBIT if is_logistic else 1.0
    crowd = f"all of {n_people}"
    boards = {crowd: (model.rank(), utility)}
    boards |= {user: (model.rank(user), f[int(user[1:])]) for user in (f"u{u:02d}" for u in range(0, n_people, 3))}
    parts: dict[str, Any] = {"crowd": held_in(*differences(model, unit * utility)), "own": [], "places": []}
    for user, (board, true) in boards.items():
        item = [int(name[1:]) for name in board["item"]]
        place = (true[item][:, None] < true[None, :]).sum(axis=1) + 1
        low, high = board["rank_low"].to_numpy(), board["rank_high"].to_numpy()
        ranks = np.column_stack([(low <= place) & (place <= high), high - low]).astype(np.float64).tolist()
        if user != crowd:
            parts["own"] += held_in(*differences(model, unit * true, user))
            parts["places"] += ranks
            continue
        first = [k for k, tier in enumerate(board["tier"]) if not k or tier != board["tier"][k - 1]]
        parts |= {
            "ranks": ranks,
            "tiers": [[float(true[item[a]] > true[item[b]]), 1.0] for a, b in pairwise(first)],
            "first": [[float(place[0] == 1), board["p_best"][0]]],
        }
    return [{
        "part": "worlds", "model": name, "n": n_people, "seed": seed, "fit_cpu_s": round(seconds, 3),
        "held": {what: values for what, values in parts.items() if values},
    }]  # fmt: skip


def consistency(percent: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of people's own consistency hold, whose logarithm has this standard deviation."""
    n_people, n_items, rng = 30, 8, np.random.default_rng([seed, percent, 31])
    own = np.exp(percent / 100.0 * rng.standard_normal(n_people))
    f = rng.standard_normal(n_items) + TASTE * rng.standard_normal((n_people, n_items))
    model, seconds = fitted(f, own, 40, rng)
    rows = [row for row in model.people().iter_rows(named=True) if row["lower"] is not None]  # found to differ
    held = [[float(r["lower"] <= own[int(r["user"][1:])] <= r["upper"]), r["upper"] - r["lower"]] for r in rows]
    return [{
        "part": "consistency", "model": "personal", "n": percent, "seed": seed, "fit_cpu_s": round(seconds, 3),
        "held": {"own": held} if held else {},
    }]  # fmt: skip


def clickers(n_clickers: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of a board's differences hold, absolute and scaled, and of own boards' ranks."""
    n_people, n_items, n_answers, rng = 30, 8, 20, np.random.default_rng([seed, n_clickers, 30])
    utility = rng.standard_normal(n_items)
    f = utility + TASTE * rng.standard_normal((n_people, n_items))
    careful = np.arange(n_people) >= n_clickers
    model, seconds = fitted(f, careful.astype(np.float64), n_answers, rng)
    gap, of_truth, sd = differences(model, utility)
    slope = float(gap @ (of_truth / sd**2) / (of_truth @ (of_truth / sd**2)))
    own: list[Any] = []
    for u in range(n_people):
        board = model.rank(f"u{u:02d}")
        place = {item: float((f[u] > f[u, int(item[1:])]).sum()) + 1.0 for item in board["item"]}
        own += [
            [int(low <= place[item] <= high), high - low]
            for item, low, high in zip(board["item"], board["rank_low"], board["rank_high"], strict=True)
        ]
    table = model.people()
    chance = table["clicks_at_random"].fill_null(0.0).to_list()

    parts = {
        "absolute": held_in(gap, of_truth, sd), "scaled": held_in(gap, slope * of_truth, sd),
        "own ranks": own, "slope": [[slope, slope]],
        "found": [[int((p > 0.5) != c), p] for p, c in zip(chance, careful.tolist(), strict=True)],
    }  # fmt: skip
    return [{
        "part": "clickers", "model": "personal", "n": n_clickers, "seed": seed, "fit_cpu_s": round(seconds, 3),
        "held": {name: [list(map(float, one)) for one in values] for name, values in parts.items()},
    }]  # fmt: skip


def covariates(answers: str, spread: float, seed: int) -> list[dict[str, Any]]:
    """Whether intervals of the effect of a covariate of alternatives, and of the board beside it, hold the truth."""
    n_people, n_items, (n_shown, n_tasks) = 60, 8, ANSWERS_WITH_COVARIATES[answers]
    rng = np.random.default_rng([seed, 60, round(10 * spread)])
    utility = rng.standard_normal(n_items)
    f = utility + TASTE * rng.standard_normal((n_people, n_items))
    effect = EFFECT + spread * rng.standard_normal(n_people)
    rows = []
    for u, task in product(range(n_people), range(n_tasks)):
        shown, x = rng.choice(n_items, n_shown, replace=False), rng.standard_normal(n_shown)
        best = int((f[u, shown] + effect[u] * x + noise((n_shown,), False, rng)).argmax())
        rows += [
            (f"u{u:02d}", task, f"i{shown[best]}", f"i{shown[k]}", "left", x[best], x[k])
            for k in range(n_shown) if k != best
        ]  # fmt: skip
    frame = pl.DataFrame(rows, ["user", "task", "left", "right", "winner", "x_left", "x_right"], orient="row")
    began = time.process_time()
    model = Population(n_jobs=1).fit(Comparisons.from_frame(frame, columns={"covariates": ["x"]}))
    seconds = time.process_time() - began
    model._backend = "polars"
    row = model.covariates().row(0, named=True)
    held = {
        "effect": [[int(row["lower"] <= EFFECT <= row["upper"]), row["upper"] - row["lower"]]],
        "mean": [[row["effect"], row["spread"] or 0.0]], "board": held_in(*differences(model, utility)),
    }  # fmt: skip
    return [{
        "part": "covariates", "model": answers, "n": round(10 * spread), "seed": seed,
        "fit_cpu_s": round(seconds, 3), "held": held,
    }]  # fmt: skip


def collinear(n_people: int, seed: int) -> list[dict[str, Any]]:
    """Whether the intervals of the population's coefficients of two attributes that nearly say the same hold them."""
    rng = np.random.default_rng([seed, n_people, 95])
    n_profiles, means, sds = 40, np.array([0.6, -0.3, 0.5]), np.array([0.4, 0.4, 0.4])
    x = rng.standard_normal((n_profiles, 3))
    x[:, 1] = CORRELATION * x[:, 0] + np.sqrt(1.0 - CORRELATION**2) * x[:, 1]
    weights = means + sds * rng.standard_normal((n_people, 3))
    shown = np.array([[rng.choice(n_profiles, N_SHOWN, replace=False) for _ in range(N_TASKS)] for _ in weights])
    V = (x[shown] * weights[:, None, None, :]).sum(axis=-1)
    best = (V + noise(V.shape, False, rng)).argmax(axis=-1)
    user, task, place = np.indices(shown.shape).reshape(3, -1)
    answers = Comparisons.from_frame({
        "user": user.tolist(), "task": task.tolist(), "item": [f"p{k:02d}" for k in shown.ravel().tolist()],
        "choice": (place == best[user, task]).astype(int).tolist(),
    })  # fmt: skip
    items = {"item": [f"p{k:02d}" for k in range(n_profiles)]} | {f"x{k}": x[:, k].tolist() for k in range(3)}
    began = time.process_time()
    model = Population(n_jobs=1).fit(answers, items=items)
    seconds = time.process_time() - began
    model._backend = "polars"
    table, parts = model.worth.coefficients(), {}
    for k in range(3):
        row = table.filter(pl.col("attribute") == f"x{k}").row(0, named=True)
        name = "near-collinear" if k < 2 else "apart"
        parts.setdefault(name, []).append([int(row["lower"] <= means[k] <= row["upper"]), row["upper"] - row["lower"]])
    return [{
        "part": "collinear", "model": "Population", "n": n_people, "seed": seed, "fit_cpu_s": round(seconds, 3),
        "held": parts,
    }]  # fmt: skip


def of_logit(n_people: int, errors: str, seed: int) -> tuple[dict[str, list[tuple[float, float, float]]], float]:
    """Estimates of a logit with the ends of their intervals, by quantity; and seconds of CPU for the fit."""
    rng = np.random.default_rng([seed, n_people, 8])
    answers = choices(people(n_people, rng), True, rng, LOGIT["tasks"])
    began = time.process_time()
    model = MixedLogit(distributions="fixed", errors=errors, n_jobs=1).fit(answers, items=ITEMS)
    seconds = time.process_time() - began
    model._backend = "polars"
    market = [ITEMS["item"][k] for k in SCENARIOS["four"]]
    tables = {
        "coefficient": model.worth.coefficients().select("mean", "lower", "upper"),
        "pay": model.worth.willingness_to_pay("price").select("median", "lower", "upper"),
        "share": model.worth.simulate(market).select("share", "lower", "upper"),
        "elasticity": model.worth.elasticities(market, "price").select("elasticity", "lower", "upper"),
    }
    return {name: table.rows() for name, table in tables.items()}, seconds


@cache
def truth_of_logit() -> dict[str, list[float]]:
    """What studies of ever more people who differ come to, by quantity."""
    return {name: [row[0] for row in rows] for name, rows in of_logit(LOGIT["truth"], "hessian", 10**6)[0].items()}


def logit(errors: str, n_people: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of a logit hold whose people differ."""
    found, seconds = of_logit(n_people, errors, seed)
    parts = {
        name: [[int(low <= value <= high), high - low] for (_, low, high), value in zip(rows, true, strict=True)]
        for (name, rows), true in zip(found.items(), truth_of_logit().values(), strict=True)
    }
    return [{
        "part": "logit", "model": errors, "n": n_people, "seed": seed, "fit_cpu_s": round(seconds, 3), "held": parts,
    }]  # fmt: skip


def verdicts(name: str, seed: int) -> list[dict[str, Any]]:
    """What the verdict says of a crowd."""
    crowd = CROWDS[name]
    rng = np.random.default_rng([seed, crowd.n_people, crowd.n_items, crowd.n_answers])
    U, n_items = crowd.n_people, crowd.n_items
    f = crowd.consensus[seed % len(crowd.consensus)] * rng.standard_normal(n_items)
    f = f + crowd.taste * rng.standard_normal((U, n_items))
    if crowd.n_answers:
        user = np.repeat(np.arange(U), crowd.n_answers)
        left = rng.integers(n_items, size=len(user))
        right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    else:
        i, j = np.triu_indices(n_items, 1)
        user, left, right = np.repeat(np.arange(U), len(i)), np.tile(i, U), np.tile(j, U)
    careful = np.arange(U) >= crowd.guess * U
    z = careful[user] * (f[user, left] - f[user, right])
    z = z + (rng.standard_normal(len(user)) if crowd.n_answers else 0.0)
    asked, outcome = {"user": user, "left": left, "right": right}, np.where(z > 0.0, 1, -1)
    kept = rng.random(len(user)) >= crowd.held_out
    answers = {column: codes[kept] for column, codes in asked.items()}, outcome[kept]
    began = time.process_time()
    model = Population(n_jobs=1).fit(*answers)
    verdict = model.verdict()
    seconds = time.process_time() - began
    parts = {
        what: [[0.0, 0.0] if one is None else [float(one.outcome == "better"), float(one.gain or 0.0)]]
        for what, one in (("personal", verdict.personal), ("consistency", verdict.consistency))
    }
    if not kept.all():
        models = (Population(n_jobs=1, personal=False).fit(*answers), model)
        rows, place = {column: codes[~kept] for column, codes in asked.items()}, 1 - outcome[~kept]
        pooled, personal = (-float(one.predict_log_proba(rows)[np.arange(len(place)), place].mean()) for one in models)
        ratio = float(verdict.personal.gain or 0.0) / (pooled - personal)
        parts["within"] = [[float(abs(ratio - 1.0) <= 0.2), ratio]]
    return [{
        "part": "verdicts", "model": name, "n": U, "seed": seed, "fit_cpu_s": round(seconds, 3), "held": parts,
    }]  # fmt: skip


def contexts(personal: bool, n_contexts: int, seed: int) -> list[dict[str, Any]]:
    """What the intervals of the differences of one crowd's scores hold."""
    n_people, n_items, rng = 100, 8, np.random.default_rng([seed, n_contexts, 100])
    utility = rng.standard_normal(n_items)
    own, of_context = TASTE * rng.standard_normal((n_people, n_items)), rng.standard_normal((n_contexts, n_items))
    user = np.repeat(np.arange(n_people), N_ANSWERS)
    left = rng.integers(n_items, size=len(user))
    right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    context = rng.integers(n_contexts, size=len(user))
    f = utility + own[user] + of_context[context]
    at = np.arange(len(user))
    winner = np.where(f[at, left] - f[at, right] + rng.standard_normal(len(user)) > 0.0, left, right)
    frame = {"user": user.tolist(), "context": context.tolist()} | {
        name: [f"i{k}" for k in codes.tolist()]
        for name, codes in (("left", left), ("right", right), ("winner", winner))
    }
    answers = Comparisons.from_frame(frame, columns={"context": "context"})
    began = time.process_time()
    model = Population(personal=personal, n_jobs=1).fit(answers)
    seconds = time.process_time() - began
    of_noise = 1.0 + 2.0 + (0.0 if personal else 2.0 * TASTE**2)
    gap, true, sd = differences(model, utility / np.sqrt(of_noise))
    parts = {"difference": held_in(gap, true, sd)}
    if personal:  # of an oracle who knows the variance of contexts, which all have as many answers
        i, j = np.triu_indices(n_items, 1)
        C = model.posterior_.C_answers
        of_oracle = np.sqrt(C[i, i] + C[j, j] - 2.0 * C[i, j] + 2.0 / (of_noise * n_contexts))
        parts["oracle"] = held_in(gap, true, of_oracle)
    return [{
        "part": "contexts", "model": "personal" if personal else "pooled", "n": n_contexts, "seed": seed,
        "fit_cpu_s": round(seconds, 3), "held": parts,
    }]  # fmt: skip


def runs(parts: list[str], n_studies: int) -> Iterator[tuple[str, str, int, int]]:
    """Part, model, size and seed of each study."""
    for seed in range(n_studies):
        if "averages" in parts:
            yield from (("averages", name, n, seed) for name in MODELS for n in PEOPLE)
        if "contexts" in parts:
            yield from (("contexts", name, n, seed) for name in ("personal", "pooled") for n in CONTEXTS)
        if "tastes" in parts:
            yield from (("tastes", name, people[0], seed) for name, people in TASTES.items())
        if "worlds" in parts:
            yield from (("worlds", name, 30, seed) for name in WORLDS)
        if "consistency" in parts:
            yield from (("consistency", "personal", n, seed) for n in CONSISTENCY)
        if "clickers" in parts:
            yield from (("clickers", "personal", n, seed) for n in CLICKERS)
        if "coefficients" in parts:
            yield from (("coefficients", name, n, seed) for name in MODELS for n in PEOPLE[:2])
        if "covariates" in parts:
            yield from (
                ("covariates", name, round(10 * s), seed) for name in ANSWERS_WITH_COVARIATES for s in SPREADS_OF_EFFECT
            )
        if "collinear" in parts:
            yield ("collinear", "Population", PEOPLE[1], seed)
        if "logit" in parts:
            yield from (("logit", name, n, seed) for name in LOGIT["errors"] for n in LOGIT["people"])
        if "verdicts" in parts:
            yield from (("verdicts", name, c.n_people, seed) for name, c in CROWDS.items() if seed < c.n_studies)


def run(part: str, name: str, n: int, seed: int) -> list[dict[str, Any]]:
    """One study."""
    match part:
        case "averages":
            return averages(name, n, seed)
        case "contexts":
            return contexts(name == "personal", n, seed)
        case "tastes":
            return tastes(name, seed)
        case "worlds":
            return worlds(name, seed)
        case "consistency":
            return consistency(n, seed)
        case "clickers":
            return clickers(n, seed)
        case "coefficients":
            return coefficients(name, n, seed)
        case "covariates":
            return covariates(name, n / 10.0, seed)
        case "verdicts":
            return verdicts(name, seed)
        case "logit":
            return logit(name, n, seed)
    return collinear(n, seed)


def coverage(records: list[dict[str, Any]], begins: str) -> tuple[float, float, float]:
    """Share of the intervals that hold the truth, its standard error over studies (NaN for one), and the mean width;
    NaN where there are none.
    """
    by_study = [
        np.mean([pair for name, pairs in one["held"].items() if name.startswith(begins) for pair in pairs], axis=0)
        for one in records if any(name.startswith(begins) for name in one["held"])
    ]  # fmt: skip
    if not by_study:
        return np.nan, np.nan, np.nan
    holds, width = np.transpose(by_study)
    error = float(holds.std(ddof=1) / np.sqrt(len(holds))) if len(holds) > 1 else np.nan
    return float(holds.mean()), error, float(width.mean())


def cell(holds: float, error: float, width: float) -> str:
    """What a table says of a coverage; empty where there is none."""
    return "" if np.isnan(holds) else f"{holds:.3f} ± {error:.3f} ({width:.3f})"


class Row(NamedTuple):
    """A row of the table in short: studies of a part, and what begins the names of the intervals."""

    interval: str
    where: str
    part: str
    begins: str
    model: str | None = None
    n: int | None = None
    of: str | None = None


OF_WORLDS = {"crowd": "scores of the crowd", "ranks": "ranks of the crowd", "own": "one person's scores",
             "places": "one person's ranks"}  # fmt: skip
IN_SHORT = [
    *(
        Row(what, f"30 people of 20 answers; {name}", "worlds", begins, name)
        for begins, what in OF_WORLDS.items() for name in WORLDS
    ),
    Row("scores of the crowd", "30 people of 6 answers", "tastes", "crowd", "6, 0.7"),
    Row("scores of the crowd", "150 people of 3 answers", "tastes", "crowd", "3, 0.7"),
    Row("scores of the crowd", "8 people of 15 answers", "tastes", "crowd", "15, 0.5"),
    Row("one person's scores", "30 people of 6 answers", "tastes", "own", "6, 0.7"),
    Row("one person's scores", "8 people of 15 answers", "tastes", "own", "15, 0.5"),
    Row("one person's scores", "2 people of 60 answers", "tastes", "own", "60, 0.5"),
    *(Row("scores of the crowd", f"{n} of 30 people of 20 answers click at random", "clickers", "absolute", n=n)
      for n in CLICKERS),
    *(Row("one person's consistency", f"30 people of 40 answers, log sd {n / 100}", "consistency", "own", n=n)
      for n in CONSISTENCY),
    *(Row("scores of the crowd", f"100 people, {n} contexts, differences of sd 1", "contexts", "diff", "personal", n)
      for n in (2, 4, 20)),
    *(Row(what, f"60 people of {n_answers} {answers} with a covariate, sd {n / 10} over people", "covariates", begins,
          answers, n)
      for what, begins in (("the effect of a covariate", "effect"), ("scores of the crowd", "board"))
      for answers, (_, n_answers) in ANSWERS_WITH_COVARIATES.items() for n in (0, 4)),
    *(Row(f"{what} of the population", f"{n} people, ten choices of three; `{name}`", "averages", begins, name, n,
          "population")
      for what, begins in (("importances", "importance"), ("shares", "share"))
      for name in ("Population", "MixedLogit") for n in (20, 80)),
    *(Row(f"{what} over people", f"80 people, ten choices of three; `{name}`", "coefficients", begins, name, 80)
      for what, begins in (("mean coefficients", "mean"), ("spreads of coefficients", "spread"))
      for name in ("Population", "MixedLogit")),
    *(Row(f"{what} of a logit", "150 people who differ, 8 choices, errors by person", "logit", begins, "clustered", 150)
      for what, begins in (("coefficients", "coefficient"), ("pay", "pay"), ("shares", "share"),
                           ("elasticities", "elasticity"))),
]  # fmt: skip


def in_short(records: list[dict[str, Any]]) -> list[str]:
    """The table that the documentation shows: per cent of the intervals that hold."""
    lines = ["<!-- held -->", "| interval of | where | % | studies |", "|---|---|---|---|"]
    for row in IN_SHORT:
        some = [
            one for one in records
            if one["part"] == row.part and all(
                wanted is None or one[name] == wanted
                for name, wanted in (("model", row.model), ("n", row.n), ("of", row.of))
            )
        ]  # fmt: skip
        holds, error, _ = coverage(some, row.begins)
        if not np.isnan(holds):
            lines.append(f"| {row.interval} | {row.where} | {100 * holds:.0f} ± {100 * error:.0f} | {len(some)} |")
    return [*lines, "<!-- /held -->", ""]


def page(records: list[dict[str, Any]], command: str) -> str:
    """What is written to ``results/coverage.md``."""
    lines = ["# How often 95 % intervals hold the truth", "", str(__doc__).split("\n\n", 1)[1].strip(), ""]
    lines += in_short(records)

    def table(some: list[dict[str, Any]], columns: dict[str, str], heads: list[str], labels: list[str]) -> None:
        lines.extend(["| " + " | ".join([*heads, "studies", *columns, "CPU s a fit"]) + " |"])
        lines.append("|" + "---|" * (len(heads) + len(columns) + 2))
        for key in dict.fromkeys(tuple(one[label] for label in labels) for one in some):
            these = [one for one in some if tuple(one[label] for label in labels) == key]
            cells = [cell(*coverage(these, begins)) for begins in columns.values()]
            cpu = f"{np.mean([one['fit_cpu_s'] for one in these]):.1f}"
            lines.append("| " + " | ".join([*map(str, key), str(len(these)), *cells, cpu]) + " |")
        lines.append("")

    of_averages = sorted(
        (one for one in records if one["part"] == "averages"),
        key=lambda one: ([*MODELS].index(one["model"]), -one["n"], OF.index(one["of"]), one["seed"]),
    )
    if of_averages:
        lines += [
            "## Averages over people", "",
            "Share of the intervals that hold the truth, ± its standard error over studies (mean width). ``of``: whose "
            "average, and whose truth.", "",
        ]  # fmt: skip
        measures = {"importances": "importance", "shares": "share", "first choice": "first_choice",
                    "randomised": "randomised"}  # fmt: skip
        table(of_averages, measures, ["model", "people", "of"], ["model", "n", "of"])
        each = {name: f"importance: {name}" for name in ("price", "size", "brand", "milk")}
        rare = {
            f"{rule} of what 1 to 2 % take": f"{rule}: rare {ITEMS['item'][SCENARIOS['rare'][-1]]}" for rule in RULES
        }
        table(of_averages, each | rare, ["model", "people", "of"], ["model", "n", "of"])
    of_contexts = sorted(
        (one for one in records if one["part"] == "contexts"), key=lambda one: (one["model"], one["n"], one["seed"])
    )
    if of_contexts:
        lines += ["## Few contexts", "", "Differences of scores of the crowd's board, and of an oracle who knows how "
                  "much contexts differ; the same.", ""]  # fmt: skip
        table(of_contexts, {"differences": "difference", "oracle": "oracle"}, ["board", "contexts"], ["model", "n"])
    for part, (head, says, columns, labels) in FURTHER.items():
        of_part = (one for one in records if one["part"] == part)
        some = sorted(of_part, key=lambda one: (one["model"], one["n"], one["seed"]))
        if some:
            lines += [f"## {head}", "", f"{says}; the same.", ""]
            table(some, columns, labels, ["model", "n"])
    lines += [made_with(command), ""]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"{', '.join(PARTS)} (default all)")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    path = given.out / "coverage.jsonl"
    with threadpool_limits(1):
        for one, _ in missing(path, ("part", "model", "n", "seed"), runs(given.parts, given.studies), run):
            print(*one, file=sys.stderr, flush=True)
    write_whole({given.out / "coverage.md": page(read_lines(path), "python -m benchmarks.coverage")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
