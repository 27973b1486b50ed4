"""Answers about several alternatives in the fitted model: predictions, scores, updates, saving, invariances."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import predilect
from predilect import Calibration, Comparisons, Population
from predilect.errors import DataError, DataWarning
from tolerances import CONVERGED, EXACT, ITERATIVE

FIXED = {"strength": 10.0, "variance": 1.0, "consensus_variance": 2.0, "calibration": None, "consistency": 0.0,
         "clickers": 0.0, "n_jobs": 1}  # fmt: skip
ITEMS = [f"i{place}" for place in range(6)]


def choices(n_users=12, n_tasks=4, size=4, seed=0, who="p"):
    """Rows (user, task, winner, loser) of the best of some items."""
    rng = np.random.default_rng(seed)
    m, rows = rng.standard_normal(6), []
    for user in range(n_users):
        f = m + rng.standard_normal(6)
        for task in range(n_tasks):
            shown = rng.permutation(6)[:size]
            felt = f[shown] + np.sqrt(0.5) * rng.standard_normal(size)
            best = shown[felt.argmax()]
            rows += [(f"{who}{user:02d}", task, ITEMS[best], ITEMS[item]) for item in shown if item != best]
    return rows


def read(rows, joint=None):
    user, task, winner, loser = map(list, zip(*rows, strict=True))
    frame = {"user": user, "task": task, "left": winner, "right": loser, "winner": winner}
    if joint is None:
        return Comparisons.from_frame(frame, columns={"task": "task"}, reading={"side": False})
    return replace(
        Comparisons.from_frame(frame, columns={"task": "task"}, reading={"side": False, "kind": "pairs"}), joint=joint
    )


@pytest.fixture(scope="module")
def model():
    return Population(**FIXED).fit(read(choices()))


SET = {"user": ["p01"] * 4, "task": [1] * 4, "item": ITEMS[:4]}


def test_choice_probabilities_are_those_of_the_posterior(model):
    found = model.predict_choice(SET)
    assert found.sum() == pytest.approx(1.0, abs=EXACT)
    mean, covariance = model.utility_distribution("p01")
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(mean[:4], covariance[:4, :4] + 0.5 * np.eye(4), size=200_000)
    expected = np.bincount(draws.argmax(axis=1), minlength=4) / 200_000
    np.testing.assert_allclose(found, expected, atol=0.012)


@pytest.mark.slow
def test_all_that_may_be_chosen_has_probability_one_whatever_the_calibration():
    """The kind of an answer, of which its certainty depends, is that of the set, and not of the answer."""
    given = FIXED | {"calibration": Calibration(variance_factor=2.0, unseen_ratio=2.0)}
    careful = Population(**given).fit(read(choices(n_tasks=2)))
    for user in range(12):
        who = f"p{user:02d}"
        one_by_one = [
            careful.score(read([(who, 9, best, other) for other in ITEMS[:4] if other != best])) for best in ITEMS[:4]
        ]
        assert sum(np.exp(one_by_one)) == pytest.approx(1.0, abs=0.01)


def test_sets_come_in_any_order_and_two_alternatives_are_a_pair(model):
    shuffled = np.random.default_rng(1).permutation(8)
    both = {name: [*column, *column] for name, column in SET.items()} | {"user": ["p01"] * 4 + ["p02"] * 4}
    mixed = {name: [column[place] for place in shuffled] for name, column in both.items()}
    np.testing.assert_allclose(model.predict_choice(mixed), model.predict_choice(both)[shuffled], atol=EXACT)
    np.testing.assert_allclose(model.predict_choice(both)[:4], model.predict_choice(SET), atol=EXACT)
    pair = model.predict_choice({name: column[:2] for name, column in SET.items()})
    margin = model.predict_proba({"user": ["p01"], "left": ["i0"], "right": ["i1"]})
    np.testing.assert_allclose(pair, margin[0, [0, 2]], atol=CONVERGED)
    assert model.predict_choice({"user": ["p01"], "task": [1], "item": ["i0"]}).tolist() == [1.0]
    with pytest.warns(DataWarning, match="without answers"):
        stranger = model.predict_choice(SET | {"user": ["zoe"] * 4})
    crowd = model.predict_choice({name: SET[name] for name in ("task", "item")})
    np.testing.assert_allclose(stranger, crowd, atol=EXACT)


def test_where_ties_are_left_out_so_are_sets_without_a_clear_winner(tmp_path):
    omitted = 0.8
    pairs = {"user": [], "left": [], "right": [], "winner": []}
    for user, _, winner, loser in choices(size=2):
        for name, value in zip(pairs, (user, winner, loser, winner), strict=True):
            pairs[name].append(value)
    model = Population(**FIXED | {"calibration": Calibration(omitted_ties=omitted)}).fit(pairs)
    pair = model.predict_choice({name: column[:2] for name, column in SET.items()})
    proba = model.predict_proba({"user": ["p01"], "left": ["i0"], "right": ["i1"]})
    np.testing.assert_allclose(pair, proba[0, [0, 2]], atol=CONVERGED)
    mean, covariance = model.utility_distribution("p01")
    draws = np.random.default_rng(0).multivariate_normal(mean[:4], covariance[:4, :4] + 0.5 * np.eye(4), size=800_000)
    two = draws[:, :2]
    clear = np.abs(two[:, 0] - two[:, 1]) > omitted
    assert proba[0, 0] == pytest.approx(np.mean(two[clear, 0] > two[clear, 1]), abs=0.003)
    second, best = np.sort(draws, axis=1)[:, -2:].T
    clear = best - second > omitted
    expected = np.bincount(draws[clear].argmax(axis=1), minlength=4) / clear.sum()
    np.testing.assert_allclose(model.predict_choice(SET), expected, atol=0.012)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(Population.load(tmp_path / "model").predict_choice(SET), model.predict_choice(SET))
    # An update knows the same; ties that are answers have a threshold of their own.
    more = {name: column[:6] for name, column in pairs.items()} | {"user": ["zoe"] * 6}
    moved = model.update(more)
    chances = moved.predict_proba({"user": ["zoe"] * 2, "left": ["i0", "i1"], "right": ["i1", "i0"]})
    np.testing.assert_allclose(chances[0], chances[1, ::-1], atol=EXACT)
    assert chances[0].sum() == pytest.approx(1.0, abs=EXACT)


def test_an_item_that_stands_in_a_set_several_times_is_as_many_alternatives(model):
    asked = SET | {"item": ["i0", "i1", "i1", "i2"]}
    found = model.predict_choice(asked)
    assert found.sum() == pytest.approx(1.0, abs=EXACT)
    mean, covariance = model.utility_distribution("p01")
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, size=200_000)[:, [0, 1, 1, 2]]
    draws += np.sqrt(0.5) * np.random.default_rng(1).standard_normal(draws.shape)
    expected = np.bincount(draws.argmax(axis=1), minlength=4) / 200_000
    np.testing.assert_allclose(found, expected, atol=0.012)
    same = {name: column[:3] for name, column in SET.items()} | {"item": ["i0"] * 3}
    np.testing.assert_allclose(model.predict_choice(same), 1.0 / 3.0, atol=EXACT)
    both = {name: [*asked[name], *same[name]] for name in SET} | {"task": [1] * 4 + [2] * 3}
    np.testing.assert_allclose(model.predict_choice(both), [*found, *[1.0 / 3.0] * 3], atol=EXACT)


def profiles(n_users=10, n_tasks=6, seed=0, who="p"):
    """Choices of the best of three profiles, of which there are six, drawn with replacement."""
    rng = np.random.default_rng(seed)
    rows = {"person": [], "task": [], "alt": [], "price": [], "milk": [], "chosen": []}
    for user in range(n_users):
        b = [-0.7, 1.0] + 0.4 * rng.standard_normal(2)
        for task in range(n_tasks):
            X = np.column_stack([rng.integers(1, 4, 3), rng.integers(0, 2, 3)])
            best = (X @ b + np.sqrt(0.5) * rng.standard_normal(3)).argmax()
            for place, (price, milk) in enumerate(X.tolist()):
                row = f"{who}{user:02d}", f"{who}{user}t{task}", place + 1, price, milk, int(place == best)
                for column, value in zip(rows.values(), row, strict=True):
                    column.append(value)
    return rows


@pytest.mark.parametrize("personal", [True, False])
def test_tasks_with_equal_profiles_come_go_and_are_saved(personal, tmp_path):
    answers, more = (Comparisons.from_frame(profiles(who=who, seed=k)) for k, who in enumerate("pq"))
    assert answers.copies is not None
    given = FIXED | {"personal": personal, "basis": "attributes", "feature_weight": 1.0}
    model = Population(**given).fit(answers, items=answers.item_table)
    asked = {"task": [0] * 3, "item": [model.items_.ids[k] for k in (0, 1, 1)]}
    chances, score = model.predict_choice(asked), model.score(answers)
    assert chances[1] == chances[2]
    moved = copy.deepcopy(model)
    moved.update(more)
    refitted = Population(**given).fit(answers.append(more), items=answers.item_table)
    assert moved._log.comparisons == refitted.comparisons_
    if not personal:  # then the population is all there is
        means = [one.predict_margin(pair_of(one))[0] for one in (moved, refitted)]
        np.testing.assert_allclose(*means, atol=ITERATIVE)
    moved.save(tmp_path / "moved")
    loaded = Population.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded.predict_choice(asked), moved.predict_choice(asked))
    assert loaded.score(more) == pytest.approx(moved.score(more), abs=EXACT)
    for one in (moved, loaded):
        one.forget(more)
        np.testing.assert_allclose(one.predict_choice(asked), chances, atol=ITERATIVE)
        assert one.score(answers) == pytest.approx(score, abs=ITERATIVE)
    with pytest.raises(DataError, match="holds no such answer"):
        moved.forget(more)


def test_without_features_a_second_copy_has_the_items_own_utility():
    """Whatever the model takes items to have to themselves, copies share it."""
    rows = profiles()
    answers = Comparisons.from_frame(rows)
    model = Population(**FIXED).fit(answers)
    mean, covariance = model.utility_distribution("p03")
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, size=200_000)[:, [0, 1, 1]]
    draws += np.sqrt(0.5) * np.random.default_rng(1).standard_normal(draws.shape)
    asked = {"user": ["p03"] * 3, "task": [1] * 3, "item": [model.items_.ids[k] for k in (0, 1, 1)]}
    expected = np.bincount(draws.argmax(axis=1), minlength=3) / 200_000
    np.testing.assert_allclose(model.predict_choice(asked), expected, atol=0.012)


@pytest.mark.slow
def test_models_of_pairs_leave_copies_out():
    answers = Comparisons.from_frame(profiles())
    merged = answers.by_pairs()
    one, other = (predilect.models.HierarchicalGP().fit(rows) for rows in (answers, merged))
    np.testing.assert_array_equal(one.predict_margin(pair_of(one))[0], other.predict_margin(pair_of(other))[0])


def pair_of(model):
    return {"left": [model.items_.ids[0]], "right": [model.items_.ids[1]]}


def test_bad_sets_are_refused(model):
    with pytest.raises(DataError, match="no column for the task"):
        model.predict_choice({"item": ["i0", "i1"]})
    with pytest.raises(DataError, match="missing ids"):
        model.predict_choice(SET | {"item": ["i0", None, "i1", "i2"]})


def test_the_score_counts_a_choice_once(model):
    held = [row for row in choices(seed=0, n_tasks=6) if row[1] >= 4]
    answers = read(held)
    sets = {"user": [], "task": [], "item": []}
    for user, task in dict.fromkeys((row[0], row[1]) for row in held):
        own = [row for row in held if row[:2] == (user, task)]
        sets["user"] += [user] * 4
        sets["task"] += [task] * 4
        sets["item"] += [own[0][2], *(row[3] for row in own)]
    chosen = model.predict_choice(sets)[::4]
    # Not normalised over the set there: expectation propagation is right to about .01.
    assert model.score(answers) == pytest.approx(np.log(chosen).mean(), abs=0.02)
    assert model.score(read(held, joint=False)) > model.score(answers)


def test_names_and_the_order_of_rows_do_not_matter():
    rows, model = choices(), Population(tol=1e-10, **FIXED).fit(read(choices()))
    again = Population(tol=1e-10, **FIXED).fit(
        read([rows[place] for place in np.random.default_rng(3).permutation(len(rows))])
    )
    np.testing.assert_array_equal(again.predict_choice(SET), model.predict_choice(SET))
    other = {name: f"j{9 - int(name[1])}" for name in ITEMS}
    renamed = Population(tol=1e-10, **FIXED).fit(
        read([(user, f"t{9 - task}", other[a], other[b]) for user, task, a, b in rows])
    )
    found = renamed.predict_choice(SET | {"item": [other[item] for item in SET["item"]]})
    np.testing.assert_allclose(found, model.predict_choice(SET), atol=ITERATIVE)


def test_what_all_pairs_of_an_order_say_is_the_order():
    orders = [(f"p{user}", 0, ITEMS[a], ITEMS[b]) for user in range(6) for a, b in ((0, 1), (1, 2), (2, 3))]
    every = [*orders, *((f"p{user}", 0, ITEMS[a], ITEMS[b]) for user in range(6) for a, b in ((0, 2), (0, 3), (1, 3)))]
    one, other = (Population(**FIXED).fit(read(rows, joint=True)) for rows in (orders, every))
    np.testing.assert_array_equal(one.posterior_.m, other.posterior_.m)


def test_updates_take_whole_answers_and_give_them_back(model):
    before = model.predict_choice(SET)
    more = read([row for row in choices(seed=5) if row[0] in ("p01", "p03")])
    new = read(choices(n_users=2, seed=6, who="q"))
    moved = copy.deepcopy(model).update(more).update(new)
    assert moved.n_answers_ == model.n_answers_ + more.n_rows + new.n_rows
    assert moved.comparisons_ == model.comparisons_.append(more).append(new)
    assert np.abs(moved.predict_choice(SET) - before).max() > 0.01
    # As if they had all been there when the person was met.
    refitted = copy.deepcopy(model).forget(model.comparisons_).update(model.comparisons_.append(more))
    np.testing.assert_allclose(refitted.predict_choice(SET), moved.predict_choice(SET), atol=CONVERGED)
    back = moved.forget(new).forget(more)
    np.testing.assert_array_equal(back.predict_choice(SET), before)
    assert copy.deepcopy(model).update(more).forget(more).comparisons_ == model.comparisons_
    with pytest.raises(DataError, match="holds no such answer of this person"):
        copy.deepcopy(model).forget(more)
    pair = copy.deepcopy(model).update(user="p01", left="i0", right="i1", outcome=1)
    assert (pair.posterior_.answers_of(1).rows.task < 0).sum() == 1


def test_a_saved_model_is_the_same(model, tmp_path):
    moved = copy.deepcopy(model).update(read(choices(n_users=2, seed=6, who="q")))
    moved.save(tmp_path / "model")
    loaded = predilect.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_choice(SET), moved.predict_choice(SET))
    loaded.update(read(choices(n_users=1, seed=8)))
    moved.update(read(choices(n_users=1, seed=8)))
    np.testing.assert_allclose(loaded.predict_choice(SET), moved.predict_choice(SET), atol=EXACT)


@pytest.mark.parametrize("with_users", [True, False])
def test_a_pooled_model_takes_whole_answers_and_gives_them_back(with_users, tmp_path):
    def told(rows):
        answers = read(rows)
        return (
            answers
            if with_users
            else Comparisons.from_frame(
                answers.to_frame().drop("user"), columns={"task": "task"}, reading={"side": False}
            )
        )

    model = Population(personal=False, consensus_variance=2.0, n_jobs=1).fit(told(choices()))
    sets = {name: SET[name] for name in ("task", "item")}
    before, more = model.predict_choice(sets), told(choices(seed=5))
    np.testing.assert_allclose(before.sum(), 1.0, atol=EXACT)
    moved = copy.deepcopy(model).update(more)
    together = Population(personal=False, consensus_variance=2.0, n_jobs=1).fit(told(choices()).append(more))
    np.testing.assert_allclose(moved.posterior_.mean, together.posterior_.mean, atol=CONVERGED)
    # How much answers of one person depend on each other is held.
    np.testing.assert_allclose(moved.predict_choice(sets), together.predict_choice(sets), atol=0.01)
    moved.save(tmp_path / "model")
    loaded = predilect.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_choice(sets), moved.predict_choice(sets))
    np.testing.assert_allclose(loaded.forget(more).predict_choice(sets), before, atol=CONVERGED)
    with pytest.raises(DataError, match="holds no such answer"):
        loaded.forget(more)
    pair = {"left": ["i0"], "right": ["i1"], "winner": ["i0"]} | ({"user": ["p01"]} if with_users else {})
    back = copy.deepcopy(model).update(pair).forget(pair)
    np.testing.assert_allclose(back.predict_choice(sets), before, atol=CONVERGED)
    assert back.comparisons_ == model.comparisons_


def test_other_models_take_rows_for_answers_of_their_own():
    answers = read(choices())
    one = predilect.models.HierarchicalGP().fit(answers)
    other = predilect.models.HierarchicalGP().fit(read(choices(), joint=False))
    np.testing.assert_array_equal(one.rank()["mean"].to_numpy(), other.rank()["mean"].to_numpy())


def orders_of(rng, f, kind):
    """Winner over loser of one answer on all items by utilities ``f``, as pairs of places."""
    felt = f + np.sqrt(0.5) * rng.standard_normal(len(f))
    order = np.argsort(-felt)
    if kind == "order":
        return list(pairwise(order))
    if kind == "top 3":
        return [(order[0], order[1]), (order[1], order[2]), *((order[2], item) for item in order[3:])]
    shown = order[np.sort(rng.permutation(len(f))[:5])]  # best and worst of five
    return [*((shown[0], item) for item in shown[1:-1]), *((item, shown[-1]) for item in shown[1:-1])]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n_answers"), [("order", 1), ("order", 3), ("best worst", 6), ("top 3", 2)])
def test_intervals_of_differences_cover_and_those_of_all_pairs_do_not(kind, n_answers):
    rng = np.random.default_rng(7)
    n_items, n_people = 10, 150
    told, pairs, truth = [], [], rng.standard_normal((n_people, n_items))
    for person in range(n_people):
        for task in range(n_answers):
            rows = orders_of(rng, truth[person], kind)
            told += [(f"p{person:03d}", task, f"i{a}", f"i{b}") for a, b in rows]
            above = np.zeros((n_items, n_items), dtype=bool)
            for a, b in rows:
                above[a, b] = True
            for _ in range(n_items):
                above |= above @ above
            pairs += [(f"p{person:03d}", task, f"i{a}", f"i{b}") for a, b in np.argwhere(above).tolist()]
    known = {**FIXED, "strength": 1e12, "consensus_variance": 1e-6}  # Σ is known, and the consensus is nothing
    covered = []
    for rows, joint in ((told, True), (pairs, False)):
        model = Population(**known).fit(read(rows, joint=joint))
        a, b = np.triu_indices(n_items, 1)
        users = np.repeat(np.arange(n_people), len(a))
        mean, var = model.posterior_.margins(users, np.tile(a, n_people), np.tile(b, n_people))
        real = (truth[:, a] - truth[:, b]).ravel()
        covered.append(np.mean(np.abs(real - mean) < 1.96 * np.sqrt(var)))
    assert 0.93 < covered[0] < 0.97
    assert covered[1] < 0.93
