"""update and forget: what a person's answers say at the population that was fitted, however they came."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from contracts.votes import PAIRS, item_ids, questions, user_ids
from predilect import Comparisons, Population
from predilect.errors import ConvergenceError, ConvergenceWarning, DataError, DataWarning
from predilect.inference.gaussian.design import Sites
from predilect.inference.latent.pooled import fit_pooled
from predilect.inference.people.expectation import converge
from predilect.inference.people.layout import lay_out
from predilect.inference.people.posterior import PopulationPosterior
from simulate_updates import (
    AT_FIT,
    FIXED,
    KINDS,
    LATER,
    N_ITEMS,
    N_USERS,
    PERSONAL,
    ROWS,
    USERS,
    columns,
    fitted,
    one,
    state,
)
from tolerances import CONVERGED, EXACT, ITERATIVE


def on_all(model: Population, index) -> PopulationPosterior:
    """The posterior of a population given some answers, from nothing, by another route: laid out and settled anew."""
    answers = Comparisons.from_frame(columns(index)).with_items(model.items_)
    frozen, traits = model.posterior_, None
    if model._traits is not None:
        known, is_known = model.user_features_.align(answers.users)
        traits = model._traits.transform(known, is_known)
        late = np.array([user not in user_ids(range(12)) for user in answers.users.ids])
        traits[late] = 0.0
    people = lay_out(answers, traits=traits, largest_state=frozen.people.largest_state)
    sites = Sites.flat(people.n_rows)
    converge(people, sites, frozen.law, model.tie_threshold_, tolerance=1e-13)
    return PopulationPosterior(frozen.m, frozen.C_m, frozen.Sigma, people, sites, frozen.basis, frozen.effects)


def assert_equals(model: Population, index, users=range(N_USERS)) -> None:
    """The model says what the posterior on these answers says."""
    expected = on_all(model, index)
    known = sorted(set(ROWS.user[index].tolist()))
    for user in users:
        code = known.index(user) if user in known else -1
        asked = {name: list(column) for name, column in questions(1).items()}
        asked["user"] = user_ids([user] * len(PAIRS))
        found = model.predict_margin(asked)
        wanted = expected.margins(np.full(len(PAIRS), code), PAIRS[:, 0], PAIRS[:, 1])
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=CONVERGED)
    counts = np.bincount(ROWS.left[index], minlength=N_ITEMS) + np.bincount(ROWS.right[index], minlength=N_ITEMS)
    np.testing.assert_array_equal(model._results_by_item().sum(axis=1), counts)
    assert model.n_answers_ == len(index)


HEAVY = pytest.param("heavy", marks=pytest.mark.slow)


def heavy(model: Population) -> Population:
    """Everybody by dense factorisations."""
    model.posterior_ = replace(model.posterior_, people=replace(model.posterior_.people, largest_state=0))
    return model


@pytest.mark.parametrize("kind", PERSONAL)
@pytest.mark.parametrize("way", ["one call", "one by one", "backwards", "two calls", HEAVY, "Comparisons"])
def test_update_equals_settling_everybody_on_all_answers(kind, way):
    model = fitted(kind)
    if way in ("one by one", "backwards"):
        for index in LATER[:: -1 if way == "backwards" else 1].tolist():
            model.update(**one(index))
    elif way == "two calls":
        model.update(columns(LATER[::2])).update(columns(LATER[1::2]))
    elif way == "Comparisons":
        model.update(Comparisons.from_frame(columns(LATER)))
    else:
        (heavy(model) if way == "heavy" else model).update(columns(LATER))
    assert_equals(model, np.arange(ROWS.n_rows))
    assert model.report_["updates"] == {
        "answers_added": len(LATER), "answers_taken_back": 0.0, "people_added": 2
    }  # fmt: skip


@pytest.mark.parametrize("kind", PERSONAL)
@pytest.mark.parametrize("way", ["one call", "one by one", HEAVY])
def test_an_answer_taken_back_was_never_given(kind, way):
    model, gone = fitted(kind), np.concatenate([AT_FIT[3:60:7], LATER[::2]])
    if way == "heavy":
        model = heavy(model)
    model.update(columns(LATER))
    if way == "one by one":
        for index in gone.tolist():
            model.forget(**one(index))
    else:
        model.forget(columns(gone))
    assert_equals(model, np.setdiff1d(np.arange(ROWS.n_rows), gone))


@pytest.mark.parametrize("kind", KINDS)
def test_update_then_forget_is_nothing(kind):
    model, before = fitted(kind), fitted(kind)
    model.update(columns(LATER)).forget(columns(LATER))
    asked = questions(12)
    for a, b in zip(model.predict_margin(asked), before.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    np.testing.assert_array_equal(model._results_by_item().sum(axis=1), before._results_by_item().sum(axis=1))
    # Whoever came and took everything back stays known, with the population's prediction.
    with pytest.warns(DataWarning, match="without answers"):
        unseen = before.utility_distribution("person 0013")
    for a, b in zip(model.utility_distribution("person 0013"), unseen, strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    assert model._results_by_item("person 0013").sum(axis=1).sum() == (0 if model.personal_ else model.n_answers_ * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_board_counts_the_answers_that_it_rests_on(kind, tmp_path):
    """Every board moves with answers, the crowd's too, and counts them."""
    model = fitted(kind)
    crowd, own = model.rank(), model.rank(user_ids([0])[0])
    first = one(0) | {"user": user_ids([0])[0]}
    model.update(**first).update(columns(LATER))
    model.save(tmp_path / "model")
    for now in (model, Population.load(tmp_path / "model")):
        assert now.rank()["mean"].to_list() != crowd["mean"].to_list()
        assert now.rank()["n"].sum() == 2 * now.n_answers_
        assert now.utilities()["n"].to_list() == now.rank().sort("item")["n"].to_list()
        assert now.rank(user_ids([0])[0])["n"].sum() > own["n"].sum()
        assert now._results_by_item().sum(axis=1).sum() == 2 * now.n_answers_
    if model.features_ is None:  # a new fit counts all of them
        model.fit(model.comparisons_)
        assert model.rank()["n"].sum() == 2 * model.n_answers_


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_answer_twice_is_one_of_weight_two(kind):
    twice, double, mixed = fitted(kind), fitted(kind), fitted(kind)
    twice.update(**one(3)).update(**one(3))
    double.update(**one(3), weight=2.0)
    mixed.update({name: column * 2 for name, column in columns([3]).items()})
    for other in (double, mixed):
        for a, b in zip(twice.predict_margin(questions(12)), other.predict_margin(questions(12)), strict=True):
            np.testing.assert_allclose(a, b, atol=CONVERGED)
        assert other.n_answers_ == twice.n_answers_
    double.forget(**one(3), weight=2.0)
    for a, b in zip(double.predict_margin(questions(12)), fitted(kind).predict_margin(questions(12)), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)


@pytest.mark.parametrize("kind", PERSONAL)
def test_what_is_said_of_one_person_and_of_many_agrees(kind):
    model = fitted(kind).update(columns(LATER))
    together = fitted(kind).update(columns(LATER))._consolidate()
    assert together.users_.ids == user_ids(range(N_USERS))
    assert not together.posterior_.overlay
    for user in user_ids(range(N_USERS)):
        assert model.rank(user).equals(together.rank(user))
        for a, b in zip(model.utility_distribution(user), together.utility_distribution(user), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(
            model._results_by_item(user).sum(axis=1), together._results_by_item(user).sum(axis=1)
        )
    asked = questions(N_USERS)
    for a, b in zip(model.predict_margin(asked), together.predict_margin(asked), strict=True):
        np.testing.assert_allclose(a, b, atol=EXACT)
    for code in range(12):
        own = model.posterior_.centred_utilities(np.array([code, 12, 13]))
        for a, b in zip(own, together.posterior_.centred_utilities(np.array([code, 12, 13])), strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)


def test_one_layout_again_is_that_of_all_answers():
    model = fitted("items").update(columns(LATER))._consolidate()
    expected = lay_out(Comparisons.from_frame(columns(np.arange(ROWS.n_rows))))
    found = model.posterior_.people
    for name in ("answer_ptr", "item_ptr", "item_idx", "left", "right", "outcome", "weight", "traits"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype
    assert found.shards == expected.shards


def test_many_people_beside_the_layout_bring_it_up_to_date(monkeypatch):
    monkeypatch.setattr("predilect.models.population.updating._MOST_BESIDE", 2)
    model = fitted("items")
    for index in LATER.tolist():
        model.update(**one(index))
        assert len(model.posterior_.overlay) <= 3
    assert "person 0012" in model.users_
    assert_equals(model, np.arange(ROWS.n_rows))


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_holds_what_it_was_told(kind, tmp_path):
    model = fitted(kind).update(columns(LATER)).forget(columns(LATER[:5]))
    before = model.predict_margin(questions(N_USERS))
    model.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    for other in (model, again, pickle.loads(pickle.dumps(model))):
        for a, b in zip(other.predict_margin(questions(N_USERS)), before, strict=True):
            np.testing.assert_allclose(a, b, atol=EXACT)
        assert other.report_["updates"] == {
            "answers_added": len(LATER), "answers_taken_back": 5.0, "people_added": 2
        }  # fmt: skip
        assert other.n_answers_ == ROWS.n_rows - 5
    assert again.comparisons_ is None
    again.update(columns(LATER[:5]))
    model.update(columns(LATER[:5]))
    for a, b in zip(again.predict_margin(questions(N_USERS)), model.predict_margin(questions(N_USERS)), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    with pytest.raises(DataError, match="loaded model has no answers"):
        again.verdict()


@pytest.mark.parametrize("way", ["one call", "one by one", "backwards"])
def test_the_pooled_model_is_that_of_all_answers(way):
    model = fitted("pooled")
    if way == "one call":
        model.update(columns(LATER))
    else:
        for index in LATER[:: -1 if way == "backwards" else 1].tolist():
            model.update(**one(index))
    gone = AT_FIT[::5]
    h = model.hyperparameters_
    K = model._space.covariance(h.feature_weight, h.length_scale)
    for index in (np.arange(ROWS.n_rows), np.setdiff1d(np.arange(ROWS.n_rows), gone)):
        expected = fit_pooled(Comparisons.from_frame(columns(index)), K, h.consensus_variance, delta=0.4)
        np.testing.assert_allclose(model.posterior_.mean, expected.m, atol=ITERATIVE)
        np.testing.assert_allclose(model.posterior_.covariance, expected.C_m, atol=ITERATIVE)
        if len(index) == ROWS.n_rows:
            model.forget(columns(gone))
    assert model.users_ is not None
    assert list(model.rank("person 0013")["item"]) == list(model.rank()["item"])


def test_the_pooled_model_needs_no_names_where_nobody_is_told_apart():
    frame = {name: column for name, column in columns(AT_FIT).items() if name != "user"}
    model = Population(**FIXED).fit(frame)
    model.update(left="item 1", right="item 2", winner="item 2", user="ignored").update(
        {name: column for name, column in columns(LATER).items() if name != "user"}
    )
    assert model.n_answers_ == ROWS.n_rows + 1
    assert model.comparisons_.n_answers == ROWS.n_rows + 1
    model.forget(left="item 2", right="item 1", outcome=1)
    assert model.n_answers_ == ROWS.n_rows


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_that_the_verdict_tries_follow(kind):
    model = fitted(kind)
    model.verdict_, model.report_["verdict"] = "old", {}
    model.update(columns(LATER)).forget(columns(AT_FIT[:4]))
    assert model.verdict_ is None
    assert "verdict" not in model.report_
    expected = Comparisons.from_frame(columns(np.setdiff1d(np.arange(ROWS.n_rows), AT_FIT[:4])))
    assert model.comparisons_ == expected
    for index in AT_FIT[:4].tolist():
        model.update(**one(index))
    assert model.comparisons_ == Comparisons.from_frame(columns(np.arange(ROWS.n_rows)))


@pytest.mark.parametrize("personal", [True, False])
def test_the_answers_do_not_depend_on_when_they_are_read(personal):
    answer = {"user": "who came and went", "left": item_ids([0])[0], "right": item_ids([1])[0], "outcome": 1}
    models = [Population(**FIXED, personal=personal).fit(columns(AT_FIT)) for _ in range(2)]
    for read, model in enumerate(models):
        model.update(**answer)
        assert not read or model.comparisons_.n_answers == models[0].n_answers_ + 1
        model.forget(**answer)
    assert models[0].comparisons_ == models[1].comparisons_
    assert len(models[0].comparisons_.users) == len(models[0].users_) + 1


def test_a_verdict_can_be_asked_for_again():
    model = fitted("items").update(columns(LATER))
    verdict = model.verdict(n_folds=2, n_bootstrap=100)
    assert model.verdict_ is verdict
    assert verdict.contests


def test_sweeps_that_do_not_come_to_rest_are_reported_and_refused_if_strict(monkeypatch):
    monkeypatch.setattr("predilect.inference.people.expectation.MOST_SWEEPS", 1)
    model = fitted("items")
    with pytest.warns(ConvergenceWarning, match="update by EP"):
        model.update(**one(LATER[0]))
    model.strict = True
    before = state(model)
    with pytest.raises(ConvergenceError, match="update by EP"):
        model.update(**one(LATER[1]))
    assert state(model) == before


def test_tasks_stay_with_the_answers_of_the_fit():
    frame = columns(AT_FIT) | {"task": (np.arange(len(AT_FIT)) // 3).tolist()}
    model = Population(**FIXED).fit(frame)
    n_in_tasks = (model.comparisons_.task >= 0).sum()
    model.update(columns(AT_FIT[:1])).update(columns(LATER)).forget(columns(AT_FIT[:2]))
    answers = model.comparisons_
    assert answers.n_answers == ROWS.n_rows - 1
    assert answers.task is not None
    assert n_in_tasks - 2 <= (answers.task >= 0).sum() <= n_in_tasks
    model._consolidate()
    assert model.posterior_.people.n_answers == ROWS.n_rows - 1


def test_features_of_new_people_count():
    model, plain = fitted("traits"), fitted("traits")
    new = LATER[ROWS.user[LATER] == 13]
    model.update(columns(new), people={"user": ["person 0013"], "age": [2.5]})
    plain.update(columns(new))
    asked = {"user": ["person 0013"], "left": ["item 1"], "right": ["item 2"]}
    assert model.predict_margin(asked)[0] != pytest.approx(plain.predict_margin(asked)[0])
    # Standardised as at the fit; a single trait, so the rotation is a sign.
    ages = np.array(USERS["age"])[:12]
    expected = (2.5 - ages.mean()) / ages.std()
    assert abs(model.posterior_.answers_of(12).traits[0, 0]) == pytest.approx(abs(expected), rel=0.2)
    np.testing.assert_array_equal(plain.posterior_.answers_of(12).traits, 0.0)


def test_new_people_of_one_call_each_have_their_own_features():
    ages = {"b": [0.5], "a": [2.5], "c": [-1.5], "d": [-0.5]}
    together = fitted("traits")
    answers = {"user": list(ages), "left": ["item 1"] * 4, "right": ["item 2"] * 4, "outcome": [1, -1, 1, 1]}
    left = {"positive": "left"}
    together.update(answers, people={"user": list(ages), "age": [age for (age,) in ages.values()]}, reading=left)
    for k, (name, age) in enumerate(ages.items()):
        alone = fitted("traits").update({key: [column[k]] for key, column in answers.items()},
                                        people={"user": [name], "age": age}, reading=left)  # fmt: skip
        asked = {"user": [name], "left": ["item 1"], "right": ["item 3"]}
        for one_of, other in zip(together.predict_margin(asked), alone.predict_margin(asked), strict=True):
            np.testing.assert_allclose(one_of, other, atol=EXACT)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_any_frame_does(kind):
    frame = pl.DataFrame(columns(LATER))
    frame = {"pandas": frame.to_pandas, "polars": frame.clone, "pyarrow": frame.to_arrow}[kind]()
    model = fitted("items").update(frame)
    assert model.n_answers_ == ROWS.n_rows
    sides = {name: column for name, column in columns(LATER).items() if name != "winner"}
    other = fitted("items").update(sides, ROWS.outcome[LATER])
    assert list(other.rank("person 0013")["mean"]) == list(model.rank("person 0013")["mean"])


def test_integer_ids_and_their_text():
    frame = columns(AT_FIT) | {"user": ROWS.user[AT_FIT].tolist()}
    model = Population(**FIXED).fit(frame)
    model.update(user=np.int64(3), left="item 1", right="item 2", outcome=1)
    model.update(user="3", left="item 1", right="item 2", outcome=1)
    model.update(user=77.0, left="item 1", right="item 2", outcome=1)
    assert model.report_["updates"]["people_added"] == 1
    assert model.posterior_.answers_of(3).rows.weight.sum() == 11
    with pytest.raises(DataError, match="cannot be an id"):
        model.update(user="zoe", left="item 1", right="item 2", outcome=1)
    with pytest.raises(DataError, match="whole numbers"):
        model.update({"user": ["zoe"], "left": ["item 1"], "right": ["item 2"], "winner": ["left"]})


@pytest.mark.parametrize("kind", PERSONAL)
def test_somebody_who_has_the_answers_of_the_fit_again_is_as_before_to_the_bit(kind):
    model, before = fitted(kind), fitted(kind)
    for index in (0, 1):
        model.update(**one(index), weight=3.0).forget(**one(index), weight=2.0).forget(**one(index))
    model.forget(columns(AT_FIT[20:60])).update(columns(AT_FIT[20:60]))
    for a, b in zip(model.predict_margin(questions(12)), before.predict_margin(questions(12)), strict=True):
        np.testing.assert_array_equal(a, b)
    for user in user_ids(range(12)):
        assert model.rank(user).equals(before.rank(user))


@pytest.mark.parametrize("personal", [True, False])
def test_items_that_answers_do_not_tell_apart_keep_their_order_through_update_and_forget(personal):
    # Whatever was said, the opposite was said too: all means are 0, and rounding must not decide.
    rows = [(0, 1, 4), (0, 4, 0), (0, 0, 3), (0, 1, 4), (0, 3, 1)]
    answers = {
        "user": ["u0"] * 10, "left": [f"i{left}" for _, left, _ in rows] * 2,
        "right": [f"i{right}" for _, _, right in rows] * 2,
    }  # fmt: skip
    answers = {name: [*column, column[0]] for name, column in answers.items()} | {"user": ["u0"] * 10 + ["u1"]}
    said = [1] * 5 + [-1] * 5 + [0]
    model = Population(personal=personal, **{k: v for k, v in FIXED.items() if k != "personal"}).fit(answers, said)
    extra = {"user": "u0", "left": "i0", "right": "i1", "outcome": 1}
    before = [model.rank(), model.rank("u0")]
    model.update(**extra).forget(**extra)
    assert before[0]["item"].to_list() == ["i0", "i1", "i3", "i4"]
    for old, new in zip(before, [model.rank(), model.rank("u0")], strict=True):
        for name in ("item", "rank", "rank_low", "rank_high", "p_best", "tier", "n"):
            assert new[name].to_list() == old[name].to_list(), name
        np.testing.assert_allclose(new["mean"], old["mean"], atol=CONVERGED)


def test_a_pooled_board_takes_people_for_independent_and_not_their_answers(tmp_path):
    named = fitted("pooled")
    frame = {name: column for name, column in columns(AT_FIT).items() if name != "user"}
    unnamed = Population(**FIXED).fit(frame)
    assert unnamed.posterior_.dependence is None
    posterior = named.posterior_
    C, D = posterior.covariance, posterior.dependence
    np.testing.assert_allclose(posterior.utilities()[1], C + C @ D @ C, atol=ITERATIVE)
    assert any("not their answers" in line for line in named.describe())
    assert any("all answers for independent" in line for line in unnamed.describe())
    # What people have in common is held, in a file and in what follows.
    named.save(tmp_path / "model")
    again = Population.load(tmp_path / "model")
    for model in (named, again):
        model.update(columns(LATER))
        np.testing.assert_array_equal(model.posterior_.dependence, D)
    np.testing.assert_array_equal(again.posterior_.utilities()[1], named.posterior_.utilities()[1])
    # Few answers are left for it, and then none.
    named.forget(columns(LATER)).forget(columns(AT_FIT[3:]))
    assert np.linalg.eigvalsh(named.posterior_.utilities()[1]).min() > 0.0
    named.save(tmp_path / "few")
    assert Population.load(tmp_path / "few").rank().equals(named.rank())
    named.forget(columns(AT_FIT[:3]))
    prior = named.posterior_.believed.covariance()
    np.testing.assert_allclose(named.posterior_.utilities()[1], prior, atol=CONVERGED)
    # And all again.
    named.update(columns(AT_FIT))
    np.testing.assert_allclose(named.posterior_.utilities()[1], posterior.utilities()[1], atol=CONVERGED)


@pytest.mark.parametrize("personal", [True, False])
def test_once_all_answers_are_taken_back_contexts_widen_the_prior_no_more(personal):
    rng = np.random.default_rng(0)
    n = 120
    left = rng.integers(4, size=n)
    right = (left + rng.integers(1, 4, n)) % 4
    context = rng.integers(6, size=n)
    liked = (rng.normal(size=4) + rng.normal(size=(6, 4)))[context]
    won = liked[np.arange(n), left] - liked[np.arange(n), right] + rng.normal(size=n) > 0
    frame = {
        "user": [f"u{k % 20}" for k in range(n)], "left": [f"i{k}" for k in left], "right": [f"i{k}" for k in right],
        "winner": np.where(won, "left", "right").tolist(), "prompt": context.tolist(),
    }  # fmt: skip
    settings = FIXED | {"consensus_variance": 2.0, "personal": personal}
    how = {"columns": {"context": "prompt"}}
    model = Population(**settings).fit(frame, **how)
    sd = model.rank()["sd"].to_numpy()
    rest = {name: column[60:] for name, column in frame.items()}
    model.forget({name: column[:60] for name, column in frame.items()}, **how)
    model.forget(rest, **how)
    np.testing.assert_allclose(model.rank()["sd"], np.sqrt(2.0 * 3 / 4), atol=ITERATIVE)
    np.testing.assert_allclose(model.update(frame, **how).rank()["sd"].sort(), np.sort(sd), atol=ITERATIVE)


@pytest.mark.parametrize(
    "more", [{"consistency": 0.4}, {"tie_threshold": (0.4, 0.4, 0.3), "ties": True}, {"clickers": 0.2}], ids=str
)
def test_once_all_answers_are_taken_back_a_model_is_described(more, tmp_path):
    frame = {"user": ["ann", "bob"] * 3, "left": ["tea"] * 6, "right": ["milk"] * 6, "winner": ["tea", "milk"] * 3}
    model = Population(**FIXED | more).fit(frame)
    model.forget(frame)
    assert model.n_answers_ == 0.0
    assert model.describe()
    model.report(tmp_path / "board.md")
    model.report(tmp_path / "board.html")
