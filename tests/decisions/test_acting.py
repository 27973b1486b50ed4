"""Act, ask or defer: hand-computed costs, the best question against every other, bad input."""

from __future__ import annotations

import doctest
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from predilect import Population
from predilect.data import Vocabulary
from predilect.decisions.acting import decide, weigh
from predilect.errors import DataError
from predilect.models import asking
from simulate import comparisons, crowd
from tolerances import EXACT


class Told:
    """A model that says how likely each option is."""

    personal_ = True

    def __init__(self, **chances):
        self.chances = chances
        self.items_, self.users_, self._added_users = Vocabulary(list(chances)), Vocabulary(["ann"]), {}

    def predict_choice(self, X):
        return np.array([self.chances[item] for item in X["item"]])


def told(**chances):
    def found(**costs):
        return decide(Told(**chances), "ann", list(chances), **costs)

    return found


def test_two_options_by_hand():
    choice = told(a=0.3, b=0.7)
    found = choice(cost_wrong=10.0, cost_question=1.0)
    assert (found.action, found.question, found.option) == ("ask", ("b", "a"), None)
    assert found.costs == pytest.approx({"act": 3.0, "ask": 1.0, "defer": 1.0}, abs=EXACT)
    assert found.value == pytest.approx(3.0, abs=EXACT)
    assert (found.probability, found.expected_loss) == pytest.approx((1.0, 0.0), abs=EXACT)
    assert found.reason.startswith("Ask which of b, a, and take the answer. Acting on b is right with probability 0.7")
    found = choice(cost_wrong=10.0, cost_question=3.0)  # as good as asking
    assert (found.action, found.option, found.question) == ("act", "b", ())
    assert (found.probability, found.expected_loss) == pytest.approx((0.7, 3.0), abs=EXACT)
    assert found.reason.startswith("Act: take b. ")


def test_what_is_known_is_acted_on_even_where_questions_are_free():
    found = told(a=0.0, b=1.0)(cost_question=0.0)
    assert (found.action, found.option, found.value, found.expected_loss) == ("act", "b", 0.0, 0.0)


@pytest.mark.parametrize("p", [0.5, 0.2, 1e-9])
def test_free_questions_are_asked_while_anything_is_uncertain(p):
    assert told(a=p, b=1.0 - p)(cost_question=0.0).action == "ask"
    found = told(a=p, b=1.0 - p, c=0.0)(cost_question=0.0)
    assert (found.action, set(found.question)) == ("ask", {"a", "b"})
    assert told(a=p, b=0.9 - p, c=0.1)(cost_question=0.0).action == "defer"  # all are asked about


def test_dear_questions_are_not_asked():
    choice = told(a=0.4, b=0.35, c=0.25)
    found = choice(cost_question=1e6)
    assert (found.action, found.option) == ("act", "a")
    found = choice(cost_question=1e6, cost_defer=0.3)
    assert (found.action, found.option, found.expected_loss) == ("defer", None, 0.0)
    assert found.costs["defer"] == pytest.approx(0.3, abs=EXACT)
    assert choice(cost_question=1e6, cost_defer=0.7).action == "act"


def test_a_question_is_about_the_options_that_are_worth_it():
    choice = told(a=0.02, b=0.55, c=0.43)
    found = choice()
    assert (found.action, found.question) == ("ask", ("b", "c"))
    assert found.costs == pytest.approx({"act": 0.45, "ask": 0.12, "defer": 0.1 * math.log2(3)}, abs=EXACT)
    assert found.probability == pytest.approx(0.98, abs=EXACT)
    found = told(a=0.32, b=0.33, c=0.31, d=0.02, e=0.02)()
    assert (found.action, found.question) == ("ask", ("b", "a", "c"))
    assert found.value == pytest.approx(0.63, abs=EXACT)
    # Where all are likely the choice is the person's.
    assert told(a=0.4, b=0.35, c=0.25)().action == "defer"


def test_the_default_stands_unless_the_person_objects():
    choice = told(a=0.8, b=0.2)
    found = choice(default="a")
    assert (found.action, found.option) == ("defer", "a")
    assert found.costs["defer"] == pytest.approx(0.1 * 0.2, abs=EXACT)
    assert found.reason.startswith("Defer: a stands unless the person objects. ")
    found = choice(default="b", cost_question=0.5, cost_wrong=1.0)  # so likely another that it is changed for them
    assert (found.action, found.option) == ("act", "a")
    assert choice(default="b", cost_question=0.2).action == "defer"
    assert told(a=0.5, b=0.5)(default="b", cost_question=9.0).option == "b"
    assert told(a=0.5, b=0.5)(cost_question=9.0).option == "a"


@pytest.fixture(scope="module")
def model():
    return Population(strength=10.0, variance=1.0, consensus_variance=2.0, calibration=None, consistency=0.0,
                      n_jobs=1).fit(comparisons(crowd(1, 12, 7, 10)))  # fmt: skip


@pytest.mark.parametrize(("user", "size", "cost"), [(0, 2, 0.15), (8, 3, 0.1)])
def test_the_value_of_the_best_question_is_what_answers_bring(model, user, size, cost):
    """People drawn from the posterior are asked every question, and what their answers leave is acted on."""
    options = model.items_.ids[:5]
    mean, covariance = model.posterior_.person(user).dense()
    rng, n = np.random.default_rng(0), 200_000
    felt = rng.multivariate_normal(mean[:5], covariance[:5, :5], size=n) + math.sqrt(0.5) * rng.standard_normal((n, 5))
    choice = felt.argmax(axis=1)
    right = {}
    for asked in itertools.combinations(range(5), size):
        answer = np.array(asked)[felt[:, asked].argmax(axis=1)]
        # The likeliest choice of all who gave the same answer.
        right[asked] = np.bincount(answer * 5 + choice, minlength=25).reshape(5, 5).max(axis=1).sum() / n
    found = decide(model, user, options, cost_question=cost, cost_defer=1e9)
    assert found.action == "ask"
    asked = tuple(sorted(options.index(option) for option in found.question))
    assert right[asked] == max(right.values())
    error = 0.012  # of expectation propagation, and of the draws
    assert found.value == pytest.approx(right[asked] - np.bincount(choice).max() / n, abs=error)
    answer = np.array(asked)[felt[:, asked].argmax(axis=1)]
    assert found.costs["ask"] == pytest.approx((answer != choice).mean() + cost * math.log2(size), abs=error)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_no_question_about_whatever_with_as_many_answers_leaves_less(k):
    rng = np.random.default_rng(k)
    joint = rng.dirichlet(np.full(k * 40, 0.1)).reshape(k, 40)  # of the choice, and of anything else
    found = weigh(np.sort(joint.sum(axis=1))[::-1], 1.0, 1e-9, cost_defer=2.0)
    assert (found.action, found.n_asked) == ("ask", k - 1)
    for _ in range(300):
        answer = rng.integers(k - 1, size=joint.shape)
        right = sum(np.where(answer == said, joint, 0.0).sum(axis=1).max() for said in range(k - 1))
        assert 1.0 - right >= found.losses["ask"] - EXACT


def test_the_order_of_options_does_not_matter(model):
    options = model.items_.ids[1:5]
    one, other = (model.decide(3, order, default=options[2]) for order in (options, options[::-1]))
    assert one == other


def test_it_is_plain_values(model):
    found = json.loads(json.dumps(model.decide(3, np.array([4, 0, 2])).to_dict()))
    assert sorted(found["options"]) == [0, 2, 4]
    assert set(found) == {"action", "option", "question", "probability", "expected_loss", "value", "costs", "options",
                          "probabilities", "reason"}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        ([0], {}, "two options or more; got 1"),
        ([], {}, "two options or more; got 0"),
        ([0, 1, 0], {}, "hold 0 twice"),
        ([0, 99], {}, r"1 of 2 item ids are not known \(first: 99\)"),
        ("01", {}, "expected a list"),
        ([0, 1], {"default": 2}, "the default 2 is none of the options"),
        ([0, 1], {"default": 99}, "not known"),
        (
            [0, 1],
            {"cost_wrong": -1.0},
            "cost_wrong must be a number from 0 up, or a mapping from options to such, not -1",
        ),
        ([0, 1], {"cost_question": float("nan")}, "cost_question must be a number from 0 up"),
        ([0, 1], {"cost_question": True}, "cost_question must be a number"),
        ([0, 1], {"cost_question": None}, "cost_question must be a number"),
        ([0, 1], {"cost_defer": float("inf")}, "cost_defer must be a number"),
    ],
)
def test_what_cannot_be_decided(model, options, settings, said):
    with pytest.raises(DataError, match=said):
        model.decide(3, options, **settings)


@pytest.mark.slow
def test_examples_of_the_page_and_of_the_methods():
    page = Path(__file__).parents[2] / "docs" / "howto" / "ask-and-decide.md"
    for found in (
        doctest.testfile(str(page), module_relative=False, encoding="utf-8"),
        doctest.testmod(asking),
    ):
        assert found.attempted > 4
        assert found.failed == 0


def test_a_loss_by_option_is_weighed_by_hand():
    choice = told(a=0.3, b=0.7)
    found = choice(cost_wrong={"a": 1.0, "b": 10.0}, cost_question=5.0)
    assert (found.action, found.option) == ("act", "a")  # less likely, and wrong at a tenth of the cost
    assert (found.probability, found.expected_loss) == pytest.approx((0.3, 0.7), abs=EXACT)
    assert found.reason.startswith(
        "Act: take a. Acting on a is right with probability 0.3 and has the expected loss 0.7;"
    )
    same = choice(cost_wrong={"a": {"b": 1.0}, "b": {"a": 10.0}}, cost_question=5.0)
    assert same.costs == pytest.approx(found.costs, abs=EXACT)


def test_questions_under_a_matrix_of_losses_against_all_answers():
    """By Luce's axiom, who would choose none of the options asked about names one by its chance among them."""
    rng = np.random.default_rng(0)
    names, p = ["a", "b", "c", "d"], np.array([0.4, 0.3, 0.2, 0.1])
    L = rng.uniform(1.0, 9.0, (4, 4)) * (1.0 - np.eye(4))
    matrix = {one: dict(zip(names, row.tolist(), strict=True)) for one, row in zip(names, L, strict=True)}
    found = told(**dict(zip(names, p.tolist(), strict=True)))(cost_wrong=matrix, cost_question=0.5)
    asking = {}
    for m in (2, 3):
        odds = np.exp(np.log(p) + rng.gumbel(size=(400_000, 4)))  # utilities of people who choose so
        best, named = odds.argmax(axis=1), odds[:, :m].argmax(axis=1)
        asking[m] = 0.5 * np.log2(m) + L[named, best].mean()
    assert found.costs["ask"] == pytest.approx(min(asking.values()), abs=0.02)
    assert found.costs["act"] == pytest.approx((L @ p).min(), abs=EXACT)


def test_decisions_for_many_are_those_one_by_one():
    model = Population(calibration=None, n_jobs=1).fit(
        {
            "user": ["ann", "bob", "cas", "dan"] * 3,
            "left": ["tea"] * 4 + ["milk"] * 4 + ["tea"] * 4,
            "right": ["milk"] * 4 + ["juice"] * 4 + ["juice"] * 4,
            "winner": ["tea", "milk", "tea", "milk"] + ["milk", "juice"] * 2 + ["tea", "juice"] * 2,
        }
    )
    options = ["tea", "juice", "milk"]
    for costs in ({}, {"cost_question": 0.01}, {"cost_wrong": {"tea": 1, "milk": 3, "juice": 2}},
                  {"cost_defer": 0.1, "default": "tea"}):  # fmt: skip
        table = model.decide_many(options, **costs)
        assert len(table) == 4
        for row in table.iter_rows(named=True):
            one = model.decide(row["user"], options, **costs)
            assert (row["action"], row["option"]) == (one.action, one.option)
            assert row["question"] == (" | ".join(one.question) or None)
            assert row["probability"] == pytest.approx(one.probability, abs=EXACT)
            assert row["cost"] == pytest.approx(min(one.costs.values()), abs=EXACT)
            assert row["value"] == pytest.approx(one.value, abs=EXACT)
    assert model.decide_many(options, ["cas"])["user"].to_list() == ["cas"]
    with pytest.raises(DataError, match="does not know 'eve'"):
        model.decide_many(options, ["eve"])


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ({"a": 1.0}, "names no amount for b"), ({"a": 1.0, "b": -1.0}, "the loss of taking b is -1"),
        ({"a": {}, "b": 1.0}, "taking a names no amount for where b is wanted"),
        ({"a": "much", "b": 1.0}, "the loss of taking a is"),
    ],
)  # fmt: skip
def test_losses_that_do_not_fit(loss, said):
    with pytest.raises(DataError, match=said):
        told(a=0.3, b=0.7)(cost_wrong=loss)
