"""Where a model walks: crowds, what they answer in every form, models with any settings, and what these say."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

import predilect
from predilect.errors import ConvergenceWarning, DataWarning, PredilectError

ITEMS = ("tea", "milk", "juice", "cocoa", "water", "beer", "cider")
PEOPLE = ("ann", "bob", "cas", "dan", "eve", "fay", "gus", "hal", *(f"p{k}" for k in range(9, 60)))
STRANGER = "zoe"
NOISE, TIED, DIFFER, GROWS, LEANS = 1.0, 0.4, 0.8, 0.6, 0.5

# --- A crowd, and what it answers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crowd:
    """People who differ about some items; where ``clickers`` is n, each n-th of them picks anything."""

    people: int = 2
    items: int = 2
    clickers: int = 0
    seed: int = 0

    @cached_property
    def utilities(self) -> np.ndarray:
        """Of everybody who may ever answer, about all that may ever be asked about."""
        rng = np.random.default_rng(self.seed)
        own = DIFFER * rng.standard_normal((len(PEOPLE), len(ITEMS)))
        return 1.5 * rng.standard_normal(len(ITEMS)) + own

    @property
    def names(self) -> tuple[str, ...]:
        return PEOPLE[: self.people]

    def clicks(self, user: str) -> bool:
        return bool(self.clickers) and PEOPLE.index(user) % self.clickers == 0

    @cached_property
    def items_table(self) -> dict[str, list[Any]]:
        """Features of the items that are there at the first fit."""
        rng = np.random.default_rng([self.seed, 1])
        price = [float(one) for one in rng.permutation(len(ITEMS)) + 1]
        kind = ["hot" if one in ("tea", "cocoa") else "cold" for one in ITEMS]
        return {"item": list(ITEMS), "price": price, "kind": kind}

    def described(self, items: tuple[str, ...]) -> dict[str, list[Any]]:
        """Features of some items."""
        rows = [ITEMS.index(one) for one in items]
        return {name: [column[row] for row in rows] for name, column in self.items_table.items()}

    def known(self, people: tuple[str, ...]) -> dict[str, list[Any]]:
        """Features of some people."""
        rows = [PEOPLE.index(one) for one in people]
        group = ["in" if row % 2 else "out" for row in rows]
        return {"user": list(people), "age": [20.0 + 7.0 * (row * 5 % 11) for row in rows], "group": group}


Answer = tuple[Any, ...]  # what a row, or a task, says, whoever wrote it down how


@dataclass(frozen=True)
class Table:
    """Answers as a user has them: columns, and how they are read."""

    columns: dict[str, list[Any]]
    roles: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> dict[str, Any]:
        """How ``fit``, ``update`` and ``forget`` take it."""
        return {name: one for name, one in (("columns", self.roles), ("reading", self.reading)) if one}

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    @property
    def telling(self) -> list[dict[str, Any]]:
        """The rows without tasks that say nothing: one profile stands alone, or all ratings are the same."""
        if "rating" in self.columns and "task" in self.columns:
            given: dict[Any, set[Any]] = {}
            for row in self.rows:
                given.setdefault((row.get("user"), row["task"]), set()).add(row["rating"])
            return [row for row in self.rows if len(given[row.get("user"), row["task"]]) > 1]
        if "alt" not in self.columns:
            return self.rows
        shown: dict[Any, set[tuple[Any, ...]]] = {}
        for row in self.rows:
            shown.setdefault((row.get("user"), row["task"]), set()).add((row["price"], row["kind"]))
        told = [row for row in self.rows if len(shown[row.get("user"), row["task"]]) > 1]
        return told or self.rows  # where profiles differ in no task, their places are what was chosen

    def of(self, rows: list[dict[str, Any]]) -> Table:
        """The same with other rows."""
        return replace(self, columns={name: [row[name] for row in rows] for name in self.columns})

    def __add__(self, other: Table) -> Table:
        return self.of(self.rows + other.rows)

    @property
    def is_pairs(self) -> bool:
        return "left" in self.columns

    @property
    def grades(self) -> bool:
        return bool(self.reading.get("grades"))

    def shown(self) -> str:
        names = list(self.columns)
        return "\n".join(",".join(map(str, row)) for row in [names, *zip(*self.columns.values(), strict=True)])

    def answers(self) -> dict[Answer, float]:
        """What is said, by the weight of each: of a pair who, the two in order, for whom, what differs beside them."""
        found: Counter[Answer] = Counter()
        for key, rows in itertools.groupby(self.telling, key=lambda row: (row.get("user"), row.get("task"))):
            several = list(rows)
            if not self.is_pairs:
                told = tuple(sorted(tuple(sorted(row.items(), key=str)) for row in several if row))
                found[(key[0], told)] += several[0].get("weight", 1)
                continue
            for row in several:
                swapped = row["left"] > row["right"]
                length = row.get("length", 0.0)
                found[(
                    row.get("user"), *sorted((row["left"], row["right"])), row["winner"],
                    -length if swapped else length, row.get("prompt"), row.get("when"), swapped,
                )] += row.get("weight", 1)  # fmt: skip
        return dict(found)

    def items(self) -> set[str]:
        names = [name for name in ("left", "right", "item") if name in self.columns]
        found = {one for name in names for one in self.columns[name]}
        return found | {one for text in self.columns.get("alternatives", ()) for one in text.split("|")}


FORMS = ("pairs", "best", "order", "first", "best and worst", "ratings", "profiles")
CARRY = ("ties", "weights", "contexts", "covariates", "grades", "sides", "nobody", "times")


@dataclass(frozen=True)
class Asked:
    """Questions to some people, and what the answers carry.

    ``form``: of the answers; ``each``: questions a person; ``who``: by default all of the crowd; ``items``: how many of
    all items they are about, by default those of the crowd; ``seed``: of what is asked and answered.
    """

    form: str = "pairs"
    each: int = 2
    carry: frozenset[str] = frozenset()
    who: tuple[str, ...] | None = None
    items: int | None = None
    seed: int = 0

    def __repr__(self) -> str:
        given = [repr(self.form), str(self.each), *(f"{one}=True" for one in sorted(self.carry))]
        given += [f"{name}={value!r}" for name in ("who", "items", "seed") if (value := getattr(self, name))]
        return f"Asked({', '.join(given)})"

    def of(self, crowd: Crowd) -> Table:
        """What the crowd answers."""
        rng = np.random.default_rng([crowd.seed, self.seed, 2])
        who = crowd.names if self.who is None else self.who
        n_items = crowd.items if self.items is None else self.items
        rows: list[dict[str, Any]] = []
        for user in who:
            for number in range(self.each):
                told = self._pair if self.form == "pairs" else self._set
                rows += told(crowd, user, number, n_items, rng)
        if "nobody" in self.carry:
            rows = [{name: one for name, one in row.items() if name != "user"} for row in rows]
        roles: dict[str, Any] = {"context": "prompt"} if "contexts" in self.carry else {}
        if "times" in self.carry:
            roles["time"] = "when"
        if "covariates" in self.carry and self.form == "pairs":
            roles["covariates"] = ["length"]
        reading: dict[str, Any] = {"side": "yes"} if self.form == "pairs" and "sides" in self.carry else {}
        if self.form == "pairs" and "grades" in self.carry:
            reading["grades"] = ["slightly", "much"]
        if self.form == "first":
            reading["kind"] = "order"
        return Table({name: [row[name] for row in rows] for name in rows[0]}, roles, reading)

    def _also(self, rng: np.random.Generator) -> dict[str, Any]:
        also = {"weight": int(rng.integers(1, 4)), "prompt": f"q{rng.integers(3)}", "when": int(rng.integers(30))}
        names = (("weights", "weight"), ("contexts", "prompt"), ("times", "when"))
        return {name: also[name] for what, name in names if what in self.carry}

    def _pair(
        self, crowd: Crowd, user: str, number: int, n_items: int, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        left, right = rng.permutation(n_items)[:2].tolist()
        length = float(rng.integers(-2, 3))
        f = crowd.utilities[PEOPLE.index(user)] * (not crowd.clicks(user))
        z = f[left] - f[right] + NOISE * rng.standard_normal()
        z += GROWS * length * ("covariates" in self.carry) + LEANS * ("sides" in self.carry)
        side = "left" if z > 0 else "right"
        winner = ITEMS[left if z > 0 else right]
        if "grades" in self.carry:
            winner = f"{side} {'much' if abs(z) > 1.5 else 'slightly'} better"
        if "ties" in self.carry and abs(z) < TIED:
            winner = "tie"
        row = {"user": user, "left": ITEMS[left], "right": ITEMS[right], "winner": winner}
        return [row | ({"length": length} if "covariates" in self.carry else {}) | self._also(rng)]

    def _set(
        self, crowd: Crowd, user: str, number: int, n_items: int, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        size = int(rng.integers(2, 5))
        shown = rng.integers(n_items, size=size) if self.form == "profiles" else rng.permutation(n_items)[:size]
        size = len(shown)
        f = crowd.utilities[PEOPLE.index(user)][shown] * (not crowd.clicks(user))
        order = np.argsort(-(f + NOISE * rng.standard_normal(size))).tolist()
        place = np.argsort(order).tolist()
        names = [ITEMS[one] for one in shown]
        best, worst = names[order[0]], names[order[-1]]
        first, also = {"user": user}, self._also(rng)
        task = f"{user}{number}{'' if not self.seed else f'.{self.seed}'}"
        if self.form == "first":
            told = {"order": " > ".join(names[one] for one in order[:2]), "alternatives": "|".join(names)}
            return [first | told | also]
        if self.form == "best and worst":
            return [first | {"alternatives": "|".join(names), "best": best, "worst": worst} | also]
        if self.form == "ratings":
            stars = [max(1, 5 - one // (2 if "ties" in self.carry else 1)) for one in place]
            told = [{"item": name, "rating": one} for name, one in zip(names, stars, strict=True)]
        elif self.form == "order":
            told = [{"item": name, "rank": one + 1} for name, one in zip(names, place, strict=True)]
        elif self.form == "best":
            told = [{"item": name, "chosen": int(one == 0)} for name, one in zip(names, place, strict=True)]
        else:
            alike = [
                {name: column[one] for name, column in crowd.items_table.items() if name != "item"} for one in shown
            ]
            told = [{"alt": k + 1, **one, "chosen": int(place[k] == 0)} for k, one in enumerate(alike)]
        return [first | {"task": task} | one | also for one in told]


# --- Models -----------------------------------------------------------------------------------------------------------

# Hyper-parameters with which little is searched for, and that quickly; a spec says what differs.
GIVEN: dict[str, Any] = {
    "strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "feature_weight": 0.5, "length_scale": 1.0,
    "calibration": None, "consistency": 0.0, "clickers": "auto", "n_jobs": 1,
}  # fmt: skip
POPULATION: dict[str, list[Any]] = {
    "personal": [False],
    "clickers": [0.0, 0.2],
    "variance": ["auto", 0.05],
    "strength": ["auto"],
    "consensus_variance": ["auto", math.inf],
    "feature_weight": ["auto", (0.5, 0.2)],
    "length_scale": ["auto"],
    "calibration": ["auto", predilect.Calibration(newcomer_weight=0.5, variance_factor=1.2)],
    "basis": ["items", "attributes", "inducing", "attributes+inducing"],
    "user_features": [True, False],
    "tie_threshold": [0.4, ("auto", 0.4), ("auto", 0.4, 0.3)],
    "ties": [True],
    "consistency": ["auto", 0.4],
    "drift": [True, (0.5, 10.0)],
}
FLAT = {"distributions": "fixed", "n_jobs": 1}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "logit": ("MixedLogit", FLAT),
    "latent class": ("MixedLogit", FLAT | {"n_classes": 2}),
    "mixed logit": ("MixedLogit", {"n_draws": 60, "n_jobs": 1}),
    "simulated logit": ("MixedLogit", {"method": "simulated", "n_draws": 40, "n_jobs": 1}),
    # Of which pay has a mean over people.
    "fixed price": (
        "MixedLogit",
        {"method": "simulated", "n_draws": 40, "n_jobs": 1, "distributions": {"price": "fixed"}},
    ),
    "joint": ("JointGP", {"n_jobs": 1}),
}


@dataclass(frozen=True)
class Spec:
    """A model: a population with some settings of its own, or one of the others."""

    name: str = "population"
    own: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"Spec({', '.join([repr(self.name), *(f'{name}={value!r}' for name, value in self.own)])})"

    @property
    def is_population(self) -> bool:
        return self.name == "population"

    @property
    def settings(self) -> dict[str, Any]:
        return GIVEN | dict(self.own) if self.is_population else OTHERS[self.name][1]

    @property
    def searches(self) -> bool:
        """Whether something is chosen by the answers."""
        return any("auto" in (value if isinstance(value, tuple) else (value,)) for value in self.settings.values())

    def new(self, **more: Any) -> Any:
        """The model, before its fit."""
        kind = "Population" if self.is_population else OTHERS[self.name][0]
        return getattr(predilect, kind)(**self.settings | more)


def specs(others: tuple[str, ...] = tuple(OTHERS)) -> st.SearchStrategy[Spec]:
    """Populations with any settings, and other models."""
    settings = [(name, value) for name, values in POPULATION.items() for value in values]
    own = st.lists(st.sampled_from(settings), max_size=4, unique_by=lambda one: one[0])
    population = own.map(lambda given: Spec(own=tuple(sorted(given, key=lambda one: one[0]))))
    return population | st.sampled_from(others).map(Spec) if others else population


def crowds(most: int) -> st.SearchStrategy[Crowd]:
    few = st.integers(2, min(most, 6))
    people = few if most <= 6 else few | st.sampled_from([one for one in (12, 24, 40) if one <= most])
    return st.builds(
        Crowd, people=people, items=st.integers(2, 5), clickers=st.sampled_from((0, 3, 4)), seed=st.integers(0, 99)
    )


def asked(most: int = 6, who: Any = None, items: Any = None) -> st.SearchStrategy[Asked]:
    return st.builds(
        Asked, form=st.just("pairs") | st.sampled_from(FORMS), each=st.integers(1, most) | st.just(2 * most),
        carry=st.frozensets(st.sampled_from(CARRY), max_size=3), who=st.none() if who is None else who,
        items=st.none() if items is None else items, seed=st.integers(0, 99),
    )  # fmt: skip


SOMEBODY = st.lists(st.sampled_from(PEOPLE[:8]), min_size=1, max_size=3, unique=True).map(tuple)
ANYBODY = st.sampled_from((*PEOPLE[:8], STRANGER))
ANYTHING = st.sampled_from(ITEMS)
# What nobody means, and somebody passes.
NONSENSE: tuple[Any, ...] = (
    "", " ", "Tea", -1, 0, 3, 2.5, 1e300, math.nan, math.inf, True, b"tea", (), ("tea",), [], ["tea"], ["tea", "tea"],
    {}, {"tea": 1}, [("tea", "milk", "juice")], [[]], np.float64(3.0), object,
)  # fmt: skip

# --- What a model says ------------------------------------------------------------------------------------------------

WIDE = 10.0  # noises of one answer: beyond, nothing is known, and expectation propagation is off by more


def noted(text: str) -> None:
    """Said beside a step of a walk that fails; nothing where somebody runs the printed steps by hand."""
    with suppress(InvalidArgument):
        note(text)


@contextmanager
def quiet() -> Iterator[None]:
    """What the package warns of on purpose is no fault; any other warning is."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for told in (DataWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", told)
        yield


@dataclass(frozen=True)
class Refused:
    """What a model refused, in its words."""

    why: str


def asking(call: Callable[..., Any], *args: Any, **how: Any) -> Any:
    """What a call gives, or the words in which it is refused; no other error is let through."""
    with quiet():
        try:
            return call(*args, **how)
        except PredilectError as error:
            return Refused(str(error))


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """A table of the caller's kind as plain columns."""
    names = getattr(frame, "column_names", None) or frame.columns  # of Arrow, where columns are no names
    return {name: frame[name].to_pylist() if hasattr(frame[name], "to_pylist") else list(frame[name]) for name in names}


def by(frame: Any, key: str) -> dict[Any, dict[str, Any]]:
    """Rows of a table by one of its columns."""
    table = columns_of(frame)
    return {one: {name: column[k] for name, column in table.items()} for k, one in enumerate(table[key])}


@dataclass
class Said:
    """What a model says of some people and items: margins and chances of pairs, scores, counts of answers."""

    numbers: dict[tuple[Any, ...], np.ndarray]
    tie: float

    @classmethod
    def by(cls, model: Any, people: tuple[Any, ...], items: tuple[Any, ...]) -> Said:
        """Of pairs no number depends on what other items there are. Of which nothing is known are left out."""
        pairs = list(itertools.permutations(items, 2))
        numbers: dict[tuple[Any, ...], np.ndarray] = {}
        with quiet():
            frame = {
                "user": [user for user in people for _ in pairs],
                "left": [left for _ in people for left, _ in pairs],
                "right": [right for _ in people for _, right in pairs],
            }
            mean, variance = model.predict_margin(frame)
            proba = model.predict_proba(frame)
            for row, (user, left, right) in enumerate(zip(*frame.values(), strict=True)):
                if variance[row] < WIDE**2:
                    numbers[user, left, right] = np.array([mean[row], variance[row], *proba[row]])
            told = columns_of(model.versus(pairs))
            for row, pair in enumerate(pairs):
                found = np.array([told[name][row] for name in ("difference", "lower", "upper", "p_better")])
                if found[2] - found[1] < 4.0 * WIDE:
                    numbers["the crowd", *pair] = found
        return cls(numbers, float(model.tie_threshold_))

    def far(
        self, other: Said, people: dict[Any, Any] | None = None, items: dict[Any, Any] | None = None
    ) -> dict[Any, float]:
        """How far each number is off, the largest first; ``people`` and ``items`` say how they are called there."""
        people, items = people or {}, items or {}
        found = {}
        for (user, left, right), one in self.numbers.items():
            theirs = other.numbers.get((people.get(user, user), items.get(left, left), items.get(right, right)))
            if theirs is not None:
                found[user, left, right] = float(np.max(np.abs(one - theirs) / (1.0 + np.abs(one))))
        return dict(sorted(found.items(), key=lambda one: -one[1]))


def same(one: Said, other: Said, tolerance: float, what: str, **names: Any) -> None:
    """Both say the same."""
    far = one.far(other, **names)
    assert far or not one.numbers, f"{what}: nothing to compare"
    worst, distance = next(iter(far.items()), (None, 0.0))
    if not distance <= tolerance:
        names = {"people": {}, "items": {}} | {name: value or {} for name, value in names.items()}
        user, left, right = worst
        there = names["people"].get(user, user), names["items"].get(left, left), names["items"].get(right, right)
        shown = [np.array2string(said.numbers[key], precision=7) for said, key in ((one, worst), (other, there))]
        raise AssertionError(
            f"{what}: {len([d for d in far.values() if d > tolerance])} of {len(far)} differ by more than "
            f"{tolerance:g}, most of {user}: {left} or {right} (mean, variance, left, tie, right; of the crowd "
            f"difference, lower, upper, p):\n  {shown[0]}\n  {shown[1]}"
        )
