"""The walk of a model: it is fitted, told, asked, saved, dealt out to parts, and compared after every step.

What a model says is compared with what it said of the same answers before, with what another way to them says, and with
sums that are written here from the documentation alone.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.special import logsumexp

import predilect
from cli.running import run
from predilect.parts import partition
from tolerances import EXACT, ITERATIVE
from walks.checks import (
    answers_in,
    attribute_of,
    check_board,
    check_folder,
    check_people,
    choices_in,
    equal,
    is_normal,
    item_of,
    left_out,
    near,
    options_of,
    plain_of,
    renamed,
    replace_columns,
    retold,
    table_or_refusal,
    verbs,
    why_not_in_parts,
    why_not_told,
    why_refused,
    word_for,
)
from walks.crowds import (
    ANYBODY,
    ANYTHING,
    ITEMS,
    NONSENSE,
    PEOPLE,
    SOMEBODY,
    STRANGER,
    WIDE,
    Asked,
    Crowd,
    Refused,
    Said,
    Spec,
    Table,
    asked,
    asking,
    by,
    columns_of,
    crowds,
    noted,
    quiet,
    same,
    specs,
)

NEARLY = 0.03  # chances by expectation propagation are right to about .01, and here they are added up


class ModelWalk(RuleBasedStateMachine):
    """A model and the crowd that it is told of. Subclasses say how large a walk may be."""

    most_people: ClassVar[int] = 40

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="walk-"))
        self.model: Any = None
        self.n_folders = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # Where the walk stands.

    def begun(self, model: Any, spec: Spec, told: list[Table], items: Any, people: Any) -> None:
        """A model was fitted to tables."""
        self.model, self.spec, self.tables, self.items, self.people = model, spec, told, items, people
        self.held: Counter[Any] = Counter()
        for table in told:
            self.held.update(table.answers())
        self.erased: frozenset[str] = frozenset()
        self.fresh, self.loaded, self.unsure, self.seen = True, False, 0, {}
        self.counted = float(model.n_answers_)

    @property
    def everybody(self) -> tuple[str, ...]:
        """People of whom a model is asked, and somebody who never answered."""
        told = {key[0] for key in self.held if key[0] is not None}
        return (*dict.fromkeys((*self.crowd.names, *sorted(told))), STRANGER)[-12:]

    @property
    def known_items(self) -> tuple[Any, ...]:
        return tuple(self.model.items_.ids)[:5]

    def said(self, model: Any = None) -> Said:
        return Said.by(self.model if model is None else model, self.everybody, self.known_items)

    def place(self, name: str) -> Path:
        self.n_folders += 1
        return self.folder / f"{self.n_folders}-{name}"

    def fitted(self, spec: Spec, table: Any, **how: Any) -> Any:
        return asking(spec.new().fit, table, **how)

    # Verbs.

    @initialize(crowd=st.runner().flatmap(lambda walk: crowds(walk.most_people)))
    def begin(self, crowd: Crowd) -> None:
        self.crowd = crowd

    @rule(spec=specs(), told=asked(), described=st.booleans(), people=st.booleans())
    def fit(self, spec: Spec, told: Asked, described: bool, people: bool) -> None:
        """Answers of everybody, perhaps with features of items and people."""
        table = told.of(self.crowd)
        noted(table.shown())
        items = self.crowd.described(ITEMS[: self.crowd.items]) if described and told.form != "profiles" else None
        who = self.crowd.known(self.crowd.names) if people and "user" in table.columns else None
        found = self.fitted(spec, table.columns, items=items, people=who, **table.said)
        if isinstance(found, Refused):
            assert why_refused(spec, table, items, who, found.why), found.why
            noted(f"refused: {found.why}")
            return
        self.begun(found, spec, [table], items, who)

    @rule(spec=specs(others=()), described=st.booleans(), n_items=st.integers(2, 5))
    def fit_nothing(self, spec: Spec, described: bool, n_items: int) -> None:
        """The prior, before there are answers."""
        ids = ITEMS[:n_items]
        items = self.crowd.described(ids) if described else list(ids)
        found = self.fitted(spec, None, items=items)
        if isinstance(found, Refused):
            noted(f"refused: {found.why}")
            return
        self.begun(found, spec, [], items if described else None, None)

    @property
    def takes_answers(self) -> bool:
        return self.model is not None and self.spec.is_population

    @precondition(lambda self: self.takes_answers)
    @rule(told=asked(3, who=SOMEBODY, items=st.none() | st.integers(2, 7)))
    def update(self, told: Asked) -> None:
        """A table of answers, perhaps of new people and about items that are not known."""
        table = told.of(self.crowd)
        noted(table.shown())
        self.tell(table)

    @precondition(lambda self: self.takes_answers)
    @rule(
        user=ANYBODY,
        pair=st.lists(ANYTHING, min_size=2, max_size=2),
        tie=st.booleans(),
        weight=st.sampled_from((1, 2, 0.5)),
    )
    def answer(self, user: str, pair: list[str], tie: bool, weight: float) -> None:
        """One answer."""
        left, right = pair
        one = {"left": left, "right": right, "winner": "tie" if tie else left, "weight": weight}
        if self.model.users_ is not None:
            one["user"] = user
        before = self.said()
        found = asking(self.model.update, **one)
        known = self.model.items_.ids
        may = left in known and right in known and left != right and (not tie or self.model.tie_threshold_ > 0.0)
        may = may and (weight >= 1 or not self.model.personal_) and self.model.drift_ is None
        assert isinstance(found, Refused) != may, found.why if isinstance(found, Refused) else "taken"
        if not may:
            same(before, self.said(), 0.0, "a refused answer changes nothing")
            return
        self.took(Table({name: [value] for name, value in one.items()}), weight)

    def tell(self, table: Table) -> None:
        """Update by a table, of which a model may take all, some or nothing."""
        model, before = self.model, self.said()
        found = asking(model.update, table.columns, **table.said)
        if isinstance(found, Refused):
            assert why_not_told(model, table), found.why
            same(before, self.said(), 0.0, "a refused update changes nothing")
            noted(f"refused: {found.why}")
            return
        rows = [row for row in table.rows if not left_out(model, table, row)]
        gone = {(row.get("user"), row.get("task")) for row in table.rows if left_out(model, table, row)}
        if "task" in table.columns:  # a task is one answer
            rows = [row for row in rows if (row.get("user"), row["task"]) not in gone]
        if rows:
            taken = table.of(rows)
            self.took(taken, answers_in(taken))
        else:
            same(before, self.said(), 0.0, "nothing was taken in")

    def took(self, table: Table, n_answers: float, sign: int = 1) -> None:
        """The model holds a table more, or less."""
        self.fresh = False
        if sign > 0:
            self.tables.append(table)
            self.held.update(table.answers())
        else:
            self.held.subtract(table.answers())
            self.held = +self.held
        self.counted += sign * n_answers

    @precondition(lambda self: self.takes_answers and self.tables)
    @rule(which=st.integers(0, 9), whose=st.none() | st.integers(0, 9))
    def forget(self, which: int, whose: int | None) -> None:
        """A table that was told, or what one person said in it."""
        place = which % len(self.tables)
        table = self.tables[place]
        rows = table.telling
        who = list(dict.fromkeys(row.get("user") for row in rows))
        if whose is not None:
            rows = [row for row in rows if row.get("user") == who[whose % len(who)]]
        gone = table.of(rows)
        if set(gone.answers()) - set(self.held) or any(self.held[key] < w for key, w in gone.answers().items()):
            return  # taken back already
        n = answers_in(gone)
        found = asking(self.model.forget, gone.columns, **gone.said)
        if isinstance(found, Refused):
            assert not self.sure_to_hold(gone), found.why
            return
        rest = [row for row in table.telling if row not in rows]
        self.tables[place : place + 1] = [table.of(rest)] if rest else []
        self.took(gone, n, -1)

    def sure_to_hold(self, table: Table) -> bool:
        """Whether nothing speaks against that the model holds the answers as they were given."""
        return not self.erased and self.model.drift_ is None

    @precondition(lambda self: self.takes_answers and self.model.users_ is not None)
    @rule(user=ANYBODY)
    def erase(self, user: str) -> None:
        """Forget all that is known of a person."""
        before, known = self.said(), user in set(self.model.users_.ids) | {key[0] for key in self.held}
        found = asking(self.model.forget, user=user)
        if isinstance(found, Refused):
            assert not known or len(self.model.users_.ids) < 3 or self.model.drift_ is not None, found.why
            same(before, self.said(), 0.0, "a refused erasure changes nothing")
            return
        assert user not in self.model.users_.ids
        now = self.said()
        if self.model.personal_:
            told = {key[0] for key in self.held} - {user}  # whoever told nothing begins from the crowd's board
            others = {key: one for key, one in before.numbers.items() if key[0] in told}
            if others:
                same(Said(others, 0.0), now, EXACT, f"others after {user} was erased")
            theirs = {key: one for key, one in now.numbers.items() if key[0] == user}
            if theirs:
                same(Said(theirs, 0.0), now, EXACT, f"{user} is somebody unknown", people={user: STRANGER})
        self.fresh, self.erased = False, self.erased | {user}
        self.tables = [table.of(rows) for table in self.tables
                       if (rows := [row for row in table.rows if row.get("user") != user])]  # fmt: skip
        self.held = Counter({key: n for key, n in self.held.items() if key[0] != user})
        self.counted = float(self.model.n_answers_)

    @precondition(lambda self: self.takes_answers)
    @rule(items=st.lists(ANYTHING, min_size=1, max_size=2, unique=True), described=st.booleans())
    def join(self, items: list[str], described: bool) -> None:
        """Items join, with or without features."""
        new = self.crowd.described(tuple(items)) if described else items
        before, known = self.said(), set(self.model.items_.ids)
        found = asking(self.model.update, items=new)
        if isinstance(found, Refused):
            noted(f"refused: {found.why}")
            same(before, self.said(), 0.0, "a refused item changes nothing")
            return
        assert set(self.model.items_.ids) == known | set(items)
        self.fresh &= known >= set(items)  # the answers alone do not name them
        same(before, self.said(), ITERATIVE, f"what was said before {items} joined")

    @precondition(lambda self: self.model is not None)
    @rule(go_on=st.booleans())
    def save_and_load(self, go_on: bool) -> None:
        """What was saved is what was there; the walk goes on with the one or the other."""
        place = self.place("model")
        with quiet():
            self.model.save(place)
            again = predilect.load(place)
        same(self.said(), self.said(again), EXACT, "loaded and saved")
        for told in (lambda one: one.describe(), repr, lambda one: one.report_ | {"timing": None},
                     lambda one: one.n_answers_, lambda one: columns_of(one.rank())):  # fmt: skip
            assert equal(told(self.model), told(again)), (told(self.model), told(again))
        for name in ("people", "covariates", "history", "worth.parts"):
            one, other = (table_or_refusal(model, name) for model in (self.model, again))
            assert equal(one, other), (name, one, other)
        if go_on:
            self.model, self.loaded, self.fresh = again, True, False

    @precondition(lambda self: self.model is not None and not self.loaded and self.held)
    @rule()
    def fit_again(self) -> None:
        """On all the answers that the model holds, as it advises when much has changed."""
        answers = self.model.comparisons_
        found = self.fitted(self.spec, answers, items=self.items, people=self.people)
        if isinstance(found, Refused):
            noted(f"refused: {found.why}")
            return
        assert not self.spec.is_population or found.n_answers_ == self.counted
        self.begun(found, self.spec, self.tables, self.items, self.people)
        self.fresh = False

    @precondition(lambda self: self.model is not None and self.fresh and self.tables)
    @rule(
        way=st.sampled_from(("again", "rows", "columns", "pandas", "arrow", "sides", "names", "twice")),
        seed=st.integers(0, 9),
    )
    def retell(self, way: str, seed: int) -> None:
        """The same answers, told in another way, make the same model."""
        (table,) = self.tables
        people: dict[str, str] = {}
        items: dict[str, str] = {}
        base, features, who = self.model, self.items, self.people
        if way == "twice":
            if not table.is_pairs:
                return
            weight = table.columns.get("weight", [1] * len(table.rows))
            heavy = replace_columns(table, weight=[2 * one for one in weight])
            base = self.fitted(self.spec, heavy.columns, items=features, people=who, **heavy.said)
        if way == "names":
            people = dict(zip(PEOPLE, PEOPLE[::-1], strict=True))
            items = dict(zip(ITEMS, ITEMS[::-1], strict=True))
            searches = self.spec.searches or "time" in table.roles
            if table.columns.get("alt") or searches or not self.spec.is_population:
                return
            features, who = (None if one is None else renamed(one, people | items) for one in (features, who))
        if way == "sides" and "side" in (columns_of(base.covariates())["covariate"] if self.spec.is_population else ()):
            return
        told = retold(table, way, seed, people | items)
        other = self.fitted(self.spec, told.columns, items=features, people=who, **table.said)
        assert not isinstance(other, Refused), f"told another way ({way}): {other.why}"
        bits = way not in ("names", "sides")
        asked_of = self.everybody
        there = Said.by(other, tuple(people.get(one, one) for one in asked_of),
                        tuple(items.get(one, one) for one in self.known_items))  # fmt: skip
        same(self.said(base), there, EXACT if bits else 1e-5, f"told another way: {way}", people=people, items=items)

    @precondition(lambda self: self.takes_answers and self.fresh and self.tables)
    @rule(n_parts=st.integers(1, 4))
    def parts(self, n_parts: int) -> None:
        """A fit to parts is a fit, or says what it cannot do."""
        (table,) = self.tables
        file, out = self.place("answers.csv"), self.place("parts")
        pl.DataFrame(table.columns, strict=False).write_csv(file)
        with quiet():
            answers = predilect.read(file, **table.said)
        whole = self.fitted(self.spec, answers, items=self.items)
        dealt = asking(partition, file, out, n_parts=n_parts, **table.said)
        if isinstance(dealt, Refused):
            assert "user" not in table.columns, dealt.why
            return
        parted = asking(self.spec.new().fit_parts, out, items=self.items, work=self.place("work"))
        if isinstance(parted, Refused):
            assert why_not_in_parts(self.spec, table, parted.why), parted.why
            noted(f"refused: {parted.why}")
            return
        assert not isinstance(whole, Refused), f"only in parts: {whole.why}"
        h = whole.hyperparameters_
        one, other = plain_of(h), plain_of(parted.population.hyperparameters_)
        for name, value in one.items():
            # The unit is of modes of people's consistency, each maximised as far as the objective tells it.
            agrees = equal(value, other[name], 1e-3 if name == "unit" else 1e-5)
            assert agrees, f"{name} of the whole is {value}, in parts {other[name]}"
        pairs = list(itertools.permutations(self.known_items, 2))
        frame = {"user": [one for one in self.crowd.names for _ in pairs]}
        frame |= {
            side: [pair[k] for _ in self.crowd.names for pair in pairs] for k, side in enumerate(("left", "right"))
        }
        with quiet():
            far = np.abs(whole.predict_proba(frame) - parted.predict_parts(pl.DataFrame(frame))).max()
            # What is of one person is maximised apart, and agrees as far as the objective tells it.
            own = h.tie_spread or h.item_tie_spread or h.consistency_spread
            assert far < (0.01 if own else 0.001), f"chances of people are off by {far:.4f}"
            for user in (None, self.crowd.names[0]):
                for name in ("mean", "sd", "n"):
                    one, other = (by(model.rank(user), "item") for model in (whole, parted))
                    far = max(abs(one[item][name] - other[item][name]) for item in one)
                    assert far < (0.05 if own else 0.005), (
                        f"{name} of the board of {user or 'the crowd'} is off by {far:.4f}"
                    )
        place = self.place("saved")
        parted.save(place)
        again = type(parted).load(place)
        assert equal(columns_of(again.rank()), columns_of(parted.rank()))

    @precondition(lambda self: self.model is not None)
    @rule(user=st.none() | ANYBODY, n=st.integers(1, 3), repeat=st.booleans(), seed=st.integers(0, 9),
          about=st.sampled_from(("person", "board", "best", "top", "random")))  # fmt: skip
    def suggest(self, user: str | None, n: int, repeat: bool, seed: int, about: str) -> None:
        """Questions that were not asked before, with the chances of their answers."""
        found = asking(self.model.suggest, user, n, target=about, repeat=repeat, random_state=seed)
        assert not isinstance(found, Refused), found.why
        table = columns_of(found)
        pairs = list(zip(table["left"], table["right"], strict=True))
        assert len({frozenset(pair) for pair in pairs}) == len(pairs) <= n
        if not repeat and user is not None and not self.loaded and self.model.users_ is not None:
            told = {frozenset(key[1:3]) for key in self.held if key[0] == user and isinstance(key[1], str)}
            assert not told & {frozenset(pair) for pair in pairs}, "asked again"
        p = np.array([table[name] for name in ("p_left", "p_tie", "p_right")]).reshape(3, -1)
        np.testing.assert_allclose(p.sum(axis=0), 1.0, atol=ITERATIVE)
        with quiet():
            again = columns_of(self.model.suggest(user, n, target=about, repeat=repeat, random_state=seed))
        assert equal(table, again), "the same state has the same questions"
        if pairs and about == "person":
            frame = {"left": table["left"], "right": table["right"]} | (
                {} if user is None else {"user": [user] * len(pairs)}
            )
            with quiet():
                np.testing.assert_allclose(p.T, self.model.predict_proba(frame), atol=ITERATIVE)

    @precondition(lambda self: self.model is not None)
    @rule(user=st.none() | ANYBODY, size=st.integers(2, 4), about=st.sampled_from(("board", "best", "top", "random")))
    def said_chances(self, user: str | None, size: int, about: str) -> None:
        """The chances with which all questions are drawn, as they are said with each, add up to one."""
        model = self.model
        questions = asking(model.questions, about)
        if isinstance(questions, Refused) or size > len(model.items_) or len(model.items_) > 5:
            return
        chance: dict[frozenset[Any], float] = {}
        for seed in range(30 * size):
            one = asking(questions.ask_set, user, size, repeat=True, random_state=seed)
            assert not isinstance(one, Refused), one.why
            shown = frozenset(one.items)
            said = chance.setdefault(shown, one.probability)
            assert abs(said - one.probability) < ITERATIVE, f"{set(shown)} has two chances: {said}, {one.probability}"
        total = sum(chance.values())
        assert total < 1.0 + ITERATIVE, f"chances of {len(chance)} sets add up to {total}"
        if len(chance) == math.comb(len(model.items_), size):
            assert abs(total - 1.0) < ITERATIVE, f"chances of all {len(chance)} sets add up to {total}"

    @precondition(lambda self: self.model is not None)
    @rule(
        user=st.none() | ANYBODY,
        n=st.integers(2, 4),
        costs=st.tuples(st.sampled_from((0.0, 1.0, 3.0)), st.sampled_from((0.0, 0.05, 0.3))),
    )
    def decide(self, user: str | None, n: int, costs: tuple[float, float]) -> None:
        """By what the person would choose, as predicted; what is least of the costs is done."""
        options = list(self.known_items)[:n]
        found = asking(self.model.decide, user, options, cost_wrong=costs[0], cost_question=costs[1])
        assert not isinstance(found, Refused), found.why
        chance = dict(zip(found.options, found.probabilities, strict=True))
        sets = {"task": [0] * len(options), "item": options} | ({} if user is None else {"user": [user] * len(options)})
        with quiet():
            predicted = dict(zip(options, self.model.predict_choice(sets), strict=True))
        assert abs(sum(predicted.values()) - 1.0) < ITERATIVE, predicted
        assert near(chance, predicted), (chance, predicted)
        assert found.costs[found.action] <= min(found.costs.values()) + EXACT
        json.dumps(found.to_dict(), allow_nan=False)
        if self.model.personal_ and self.model.users_ is not None and self.model.users_.ids:
            many = by(self.model.decide_many(options, cost_wrong=costs[0], cost_question=costs[1]), "user")
            if user in many:
                assert many[user]["action"] == found.action, (many[user], found)

    @precondition(lambda self: self.takes_answers and self.model.n_answers_)
    @rule()
    def verdict(self) -> None:
        """Asked again it is the same, and saved with the model."""
        self.look_for_groups(5)
        how = {"n_folds": 2, "n_bootstrap": 100, "max_people": 50}
        found = asking(self.model.verdict, **how)
        if isinstance(found, Refused):
            assert self.loaded or "few" in found.why or "two" in found.why, found.why
            return
        assert self.model.verdict_ is self.model.verdict(**how)
        json.dumps(found.to_dict(), allow_nan=False)
        place = self.place("judged")
        self.model.save(place)
        assert equal(predilect.load(place).verdict(**how).to_dict(), found.to_dict())

    def look_for_groups(self, smallest: int) -> None:
        """Groups of opinion, none too small, or none at all; who is pooled has none."""
        found = asking(self.model.groups, smallest=smallest)
        if isinstance(found, Refused):
            assert not self.model.personal_, found.why
            return
        assert all(one.people >= smallest for one in found.groups), found
        assert sum(one.people for one in found.groups) in (0, found.n_people), found
        assert (found.outcome == "few") == (found.n_people < 2 * smallest), found
        assert type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found
        assert found.table().height == len(found) * len(self.model.items_)

    @precondition(
        lambda self: (
            self.model is not None and hasattr(getattr(self.model, "worth", None), "parts") and self.model.attributes_
        )
    )
    @rule(of=st.sampled_from(("population", "respondents")), first=st.booleans())
    def worth(self, of: str, first: bool) -> None:
        """What attributes are worth: intervals contain their means, shares add up to one."""
        worth = self.model.worth
        tables = {
            "part_worths": worth.parts, "coefficients": worth.coefficients,
            "importances": lambda: worth.importances(of),
            "willingness_to_pay": lambda: worth.willingness_to_pay("price"),
            "contrasts": lambda: worth.contrasts("kind"),
            "surplus": lambda: worth.surplus({"same": self.known_items, "too": self.known_items[::-1]}, "price", of=of),
            "simulate": lambda: worth.simulate(list(self.known_items), "first_choice" if first else "share", of=of),
        }  # fmt: skip
        for name, call in tables.items():
            found = asking(call)
            if isinstance(found, Refused):
                noted(f"{name} refused: {found.why}")
                continue
            table = columns_of(found)
            value = next((one for one in ("median", "mean", "worth", "importance", "share") if one in table), None)
            intervals = [(value, "lower", "upper")] if value and "lower" in table else []
            intervals += [("mean", "mean_lower", "mean_upper")] if "mean_lower" in table else []
            for one in (
                intervals if self.spec.name not in ("simulated logit", "fixed price") or len(intervals) > 1 else ()
            ):
                for m, low, high in zip(*(table[column] for column in one), strict=True):
                    if None not in (m, low, high):
                        assert low - ITERATIVE <= m <= high + ITERATIVE, f"{name}: {m} is not in ({low}, {high})"
            if name == "surplus":
                assert np.abs(table["surplus"]).max() < ITERATIVE, table
            if name == "simulate":
                assert abs(sum(table["share"]) - 1.0) < ITERATIVE, table
            if name == "importances":
                assert abs(sum(table[value]) - 1.0) < ITERATIVE, table

    @precondition(lambda self: hasattr(self.model, "likelihood_ratio"))
    @rule()
    def likelihood_ratio(self) -> None:
        """Nothing is left out of a model in itself, which is refused in words."""
        before = self.said()
        found = asking(self.model.likelihood_ratio, self.model)
        assert isinstance(found, Refused), found
        assert re.search("no fewer parameters|no maximum of the likelihood", found.why), found.why
        same(before, self.said(), 0.0, "a test changes nothing")

    @precondition(lambda self: self.model is not None)
    @rule(user=st.none() | ANYBODY, scale=st.sampled_from(("probit", "logit", "elo", "0-100", "share")))
    def page(self, user: str | None, scale: str) -> None:
        """The page and the notebook say the numbers of the board."""
        file = self.place("board.md")
        with quiet():
            board = by(self.model.rank(scale=scale), "item")
            self.model.report(file, scale=scale)
            self.model._repr_html_()
        text = file.read_text(encoding="utf-8")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith("| ") and line.count("|") == 10 and line[2].isdigit()]  # fmt: skip
        there = {row[2]: row for row in rows}
        if all(isinstance(item, str) and item.isalpha() for item in board):
            assert set(there) == set(board), (there, set(board))
            for item, row in board.items():
                shown = there[item]
                assert int(shown[0]) == row["rank"], (shown, row)
                digits = len(shown[3].partition(".")[2])
                assert abs(float(shown[3].replace(",", "")) - row["mean"]) <= 0.51 * 10.0**-digits, (shown, row)
                assert float(shown[7].replace(",", "")) == row["n"], (shown, row)

    @precondition(lambda self: self.takes_answers and self.fresh and self.tables)
    @rule()
    def command(self) -> None:
        """What ``predilect rank`` writes is what Python says of the same file, in JSON, CSV, Parquet and the model."""
        (table,) = self.tables
        settings = {name: one for name, one in self.spec.settings.items() if name != "n_jobs"}
        if any(isinstance(one, predilect.Calibration) for one in settings.values()):
            return  # which the command has no words for
        personal = "yes" if settings.pop("personal", True) and "user" in table.columns else "no"
        file, out = self.place("answers.csv"), self.place("results")
        pl.DataFrame(table.columns, strict=False).write_csv(file)
        given = ["--model", ",".join(["population", *(f"{name}={word_for(one)}" for name, one in settings.items())])]
        for name, one in (("--items", self.items), ("--people", self.people if personal == "yes" else None)):
            if one is not None:
                given += [name, str(self.place(f"{name[2:]}.csv"))]
                pl.DataFrame(one).write_csv(given[-1])
        ran = run("rank", file, *options_of(table), "--personal", personal, *given, "-o", out)
        with quiet():
            answers = predilect.read(file, **table.said)
        here = Spec(own=(*settings.items(), ("personal", personal == "yes")))
        there = self.fitted(here, answers, items=self.items, people=self.people if personal == "yes" else None)
        assert (ran.exit_code == 2) == isinstance(there, Refused), f"the command: {ran.output}\nPython: {there}"
        if ran.exit_code != 2:
            assert ran.exit_code == 0, ran.output
            with quiet():
                check_folder(out, predilect.load(out / "model"), there)

    @precondition(lambda self: self.model is not None)
    @rule(k=st.integers(1, 3), size=st.integers(2, 4), user=st.none() | ANYBODY)
    def tables_of(self, k: int, size: int, user: str | None) -> None:
        """Everybody's best, how people answer, effects and rescaled scores agree with boards and answers."""
        model = self.model
        with quiet():
            scores = by(model.scores(size, user=user), "item")
            assert abs(sum(row["score"] for row in scores.values()) - 100.0) < ITERATIVE, scores
            for item, row in scores.items():
                assert row["lower"] - ITERATIVE <= row["score"] <= row["upper"] + ITERATIVE, (item, row)
            if self.takes_answers:
                for name, row in by(model.covariates(), "covariate").items():
                    assert row["lower"] <= row["effect"] <= row["upper"], (name, row)
                if model.personal_ and len(model.users_.ids):
                    check_people(model, k)

    @precondition(lambda self: self.model is not None)
    @rule(what=st.sampled_from([(verb, name) for verb, arguments in verbs().items() for name in arguments]),
          value=st.sampled_from(NONSENSE))  # fmt: skip
    def nonsense(self, what: tuple[str, str], value: Any) -> None:
        """A wrong value in place of any argument of any verb is refused in words, or means something."""
        verb, argument = what
        call = attribute_of(self.model, verb)
        if call is None:
            return
        arguments = verbs(self.known_items, self.everybody[0])[verb] | {argument: value}
        before, who = self.said(), self.model.n_answers_
        found = asking(call, **arguments)
        if isinstance(found, Refused):
            assert " " in found.why, found
            same(before, self.said(), 0.0, f"a refused {verb} changes nothing")
            assert self.model.n_answers_ == who
        elif verb in ("update", "forget"):
            self.fresh, self.unsure = False, self.unsure + 1
            self.counted, self.seen = float(self.model.n_answers_), {}

    # What holds after every step.

    @invariant()
    def holds(self) -> None:
        """All that holds after every step."""
        if self.model is not None:
            self.same_answers_same_words()
            self.one_board()
            self.answers_have_a_chance()
            self.a_logit_is_at_its_maximum()

    def same_answers_same_words(self) -> None:
        """Since a fit, a model says the same of the same answers, however they came, to 1e-6."""
        if not self.spec.is_population:
            return
        key = frozenset(self.held.items()), self.erased
        now = self.said()
        same(self.seen.setdefault(key, now), now, ITERATIVE, "the same answers as before")
        assert abs(self.model.n_answers_ - self.counted) < ITERATIVE, (self.model.n_answers_, self.counted)
        assert self.model.needs_refit_ is None or len(self.model.needs_refit_) > 20
        json.dumps(self.model.report_, allow_nan=False)

    def one_board(self) -> None:
        """Rank, utilities, versus and the joint law say the same of the crowd, and of each person."""
        users: list[Any] = [None]
        if self.model.personal_ and self.model.users_ is not None:
            users += list(self.model.users_.ids)[:2]
        for user in users:
            with quiet():
                check_board(self.model, user)

    def answers_have_a_chance(self) -> None:
        """Of all answers that a question may get, one is given."""
        model, ids = self.model, self.known_items
        if len(ids) < 2 or model.grades_:
            return
        who = {} if model.users_ is None else {"user": list(model.users_.ids)[:1] or [STRANGER]}
        pair = [{"left": [ids[0]], "right": [ids[1]], "winner": [one]} for one in ids[:2]]
        if model.tie_threshold_ > 0.0:
            pair.append({"left": [ids[0]], "right": [ids[1]], "winner": ["tie"]})
        best = [{"task": [1] * 3, "item": ids[:3], "chosen": [int(one == item) for item in ids[:3]]} for one in ids[:3]]
        questions = {"pair": pair}
        sd = max(row["sd"] for row in by(model.utilities(ranks=False), "item").values())
        if len(ids) > 2 and model.tie_threshold_ == 0.0 and sd < WIDE:  # a tie in a set is no answer that one can write
            questions["set"] = best
        for name, every in questions.items():
            with quiet():
                frames = [
                    {key: column * len(one[next(iter(one))]) for key, column in who.items()} | one for one in every
                ]
                total = sum(math.exp(model.score(frame)) for frame in frames)
            exact = name == "pair" or not is_normal(model)
            assert abs(total - 1.0) < (ITERATIVE if exact else NEARLY), f"chances of all answers to a {name}: {total}"

    def a_logit_is_at_its_maximum(self) -> None:
        """The log-likelihood of a conditional logit is Σ log exp(u_chosen) / Σ exp(u_shown), and largest there."""
        if self.spec.name != "logit" or not self.fresh:
            return
        (table,) = self.tables
        told = choices_in(table)
        if told is None:
            return
        u = {item: row["mean"] for item, row in by(self.model.utilities(), "item").items()}
        if not all(one in u for shown, _ in told for one in shown):
            return  # attributes that differ in no task are no part of a profile's name

        def log_likelihood(u: dict[Any, float]) -> float:
            return sum(w * (u[shown[0]] - logsumexp([u[one] for one in shown])) for shown, w in told)

        found = log_likelihood(u)
        assert abs(found - self.model.log_evidence_) < 1e-3 * (1 + abs(found)), (found, self.model.log_evidence_)
        if not table.columns.get("price") and self.items is None:
            return
        price = {item_of(row): row["price"] for row in (table if self.items is None else Table(self.items)).rows}
        for step in (-0.01, 0.01):
            moved = log_likelihood({item: value + step * price[item] for item, value in u.items()})
            assert moved < found + 1e-3, f"{moved} at {step} more a unit of price, and {found} at the maximum"
