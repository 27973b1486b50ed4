"""A population before there are answers, and before there is a tie."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import predilect
from predilect import Comparisons, Population
from predilect.errors import DataError
from simulate import crowd
from simulate_updates import FIXED, columns, item_ids, user_ids
from tolerances import CONVERGED, EXACT

NOTHING = [
    None, {"user": [], "left": [], "right": [], "winner": []}, pl.DataFrame({"user": [], "left": [], "right": []}),
]  # fmt: skip


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize(
    "items", [["b", "a", "c"], pl.DataFrame({"item": ["c", "a", "b"]}), pl.Series(["a", "b", "c"])]
)
def test_a_fit_to_no_answers_is_the_prior(nothing, items, tmp_path):
    model = Population().fit(nothing, items=items)
    model.save(tmp_path / "model")
    for one in (model, predilect.load(tmp_path / "model")):
        mean, covariance = one.posterior_.crowd().dense()
        np.testing.assert_array_equal(mean, 0.0)
        np.testing.assert_array_equal(covariance, np.eye(3))
        assert (one.n_answers_, one.n_fitted_, one.needs_refit_, one.personal_) == (0.0, 0.0, None, True)
        assert list(one.items_) == ["a", "b", "c"]
        np.testing.assert_array_equal(one.predict_proba({"left": ["a"], "right": ["b"]}), [[0.5, 0.0, 0.5]])
        assert one.rank()["tied_with_leader"].all()
        assert len(one.people()) == 0
        assert "no answers" in " ".join(one.describe())


def test_what_is_given_of_the_prior_counts():
    model = Population(variance=0.3, consensus_variance=2.5).fit(None, items=["a", "b"])
    np.testing.assert_array_equal(model.posterior_.C_m, 2.5 * np.eye(2))
    np.testing.assert_array_equal(model.posterior_.Sigma, 0.3 * np.eye(2))
    table = {"item": ["a", "b", "c"], "x": [0.0, 0.1, 5.0]}
    for basis in ("items", "attributes", "inducing"):
        found = Population(basis=basis).fit(None, items=table).posterior_.crowd().dense()[1]
        assert found[0, 1] > found[0, 2]


@pytest.mark.slow
def test_answers_after_the_prior_are_those_of_a_population_with_it():
    """Whether the answers come one by one, or were there at a fit that holds the prior's population."""
    ids = item_ids(range(6))
    model = Population(ties=True).fit(None, items=ids)
    some = np.arange(24)
    for index in some.tolist():
        model.update({name: [column[0]] for name, column in columns([index]).items()})
    at_once = Population(ties=True).fit(None, items=ids).update(columns(some))
    for a, b in zip(model.posterior_.crowd().dense(), at_once.posterior_.crowd().dense(), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
    assert model.rank()["n"].sum() == 2 * len(some)
    assert model.n_answers_ == len(some)
    assert "24 answers" in model.needs_refit_
    model.fit(model.comparisons_)
    assert model.n_fitted_ == len(some)
    assert model.needs_refit_ is None


def test_after_a_fit_to_few_answers_none_is_due_until_one_more_comes():
    model = Population(**FIXED).fit(columns(range(8)))
    assert model.needs_refit_ is None
    one = {name: [column[0]] for name, column in columns([9]).items()}
    assert "since the fit to 8" in model.update(one).needs_refit_


def test_people_come_go_and_are_erased_down_to_nobody():
    model = Population().fit(None, items=["a", "b", "c"])
    before = model.posterior_.crowd().dense()
    model.update(user=7, left="a", right="b", winner="a").update(user="8", left="a", right="c", winner="a")
    assert list(model.users_) == [7]
    assert model.forget(user=7).forget(user=8).n_answers_ == 0.0
    assert len(model.users_) == 0
    for a, b in zip(model.posterior_.crowd().dense(), before, strict=True):
        np.testing.assert_allclose(a, b, atol=EXACT)


def test_what_has_no_prior_says_so():
    for items, message in (
        (None, "no items of which"),
        (["a"], "fewer than two items"),
        (["a", "a"], "fewer than two"),
    ):
        with pytest.raises(DataError, match=message):
            Population().fit(None, items=items)
    with pytest.raises(DataError):
        Population(personal=False).fit({"left": [], "right": [], "winner": []}, items=["a", "b"])
    empty = Comparisons.nothing(predilect.read({"left": ["a"], "right": ["b"], "winner": ["a"]}).items)
    assert Population().fit(empty).n_answers_ == 0.0
    with pytest.raises(DataError, match="no answers to learn from"):
        Population(personal=False).fit(empty)
    with pytest.raises(DataError, match="holds no answers yet"):
        Population().fit(empty).verdict()


STRICT = crowd(2, 6, 4, 8)
FRAME = {
    "user": user_ids(STRICT.user), "left": item_ids(STRICT.left), "right": item_ids(STRICT.right),
    "winner": ["left" if y > 0 else "right" for y in STRICT.outcome],
}  # fmt: skip
AWAITED = FIXED | {"tie_threshold": "auto", "ties": True}


@pytest.mark.parametrize("personal", [True, False])
def test_ties_are_awaited_from_the_start(personal, tmp_path):
    model = Population(**AWAITED, personal=personal).fit(FRAME)
    left, right = np.triu_indices(4, 1)
    ids = item_ids(range(4))
    asked = {"left": [ids[k] for k in left], "right": [ids[k] for k in right]}
    chance = model.predict_proba(asked)[:, 1].mean()
    assert chance == pytest.approx(1.0 / (10.0 + len(FRAME["user"])), rel=0.05)
    model.save(tmp_path / "model")
    for one in (model, predilect.load(tmp_path / "model")):
        assert one.needs_refit_ is None
        before = one.posterior_.crowd().dense()[0]
        one.update(user="person 0001", left="item 1", right="item 2", winner="tie")
        with pytest.raises(TypeError, match=r"update\(\) has no argument judge: one answer is user="):
            one.update(judge="person 0001", left="item 1", right="item 2", winner="tie")
        assert np.abs(one.posterior_.crowd().dense()[0] - before).max() > 1e-6
        assert not personal or "first tie" in one.needs_refit_


def test_only_ties_are_the_prior_with_them_added():
    rows = {"user": ["u", "v", "w"], "left": ["a", "a", "b"], "right": ["b", "c", "c"], "winner": ["tie"] * 3}
    with pytest.raises(DataError, match="all 3 answers are ties"):
        Population().fit(rows)
    model = Population(ties=True).fit(rows, items=["d"])
    assert (model.n_fitted_, model.n_answers_) == (0.0, 3.0)
    np.testing.assert_allclose(model.posterior_.crowd().dense()[0], 0.0, atol=EXACT)
    prior = Population(ties=True).fit(None, items=["a", "b", "c", "d"])
    assert prior.predict_proba({"left": ["a"], "right": ["b"]})[0, 1] == pytest.approx(0.1)
    assert model.tie_threshold_ > prior.tie_threshold_


@pytest.mark.parametrize("clickers", [0.0, 0.2])
def test_what_may_be_asked_of_a_fit_may_be_asked_before_there_are_answers(tmp_path, clickers):
    model = Population(clickers=clickers, n_jobs=1).fit(None, items=["milk", "tea"])
    np.testing.assert_allclose(model.scores(2)["score"], 50.0, atol=2.0)
    model.report(tmp_path / "page.md")
    assert "milk" in (tmp_path / "page.md").read_text()
    model.update({"user": ["ann"] * 3, "left": ["milk"] * 3, "right": ["tea"] * 3, "winner": ["milk"] * 3})
    assert model.rank()["item"].to_list()[0] == "milk"
