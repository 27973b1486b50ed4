"""What is kept: how much, by which criterion, in which order; and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from predilect import load
from predilect.errors import DataError
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.papers.compression import IVM, UCB, VOI
from predilect.papers.compression.criteria import (
    criterion_for,
    find_criterion,
    in_order,
    items_a_person,
    items_in_all,
    representative,
)
from predilect.papers.compression.losses import LOSSES, expected_loss
from predilect.papers.compression.sparsify import people_of_model, select, sparsify
from predilect.papers.gppl.separate import SeparatePosterior
from referees.risks import exponential_risk
from simulate_joint import N_ITEMS, N_USERS, joint_model, other_models
from tolerances import EXACT

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model():
    return joint_model()


@pytest.fixture(scope="module")
def models():
    return other_models()


def lists(selection):
    return [selection.items[a:b].tolist() for a, b in zip(selection.ptr, selection.ptr[1:], strict=False)]


@pytest.mark.parametrize(
    ("keep", "n_items", "r"),
    [
        (3, 10, 3), ("3", 10, 3), (10, 10, 10), (1.0, 10, 10), ("100%", 10, 10), (0.2, 50, 10), ("20%", 50, 10),
        ("20 %", 50, 10), (0.07, 100, 7), (0.201, 50, 11), (0.001, 50, 1), (1, 1, 1), (np.int64(2), 5, 2),
        (np.float64(0.5), 5, 3),
    ],
)  # fmt: skip
def test_how_much_to_keep(keep, n_items, r):
    assert items_a_person(keep, n_items) == r


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (0, "keeps nothing"), (0.0, "keeps nothing"), ("0%", "keeps nothing"), (-2, "keeps nothing"),
        (float("nan"), "is no number"), (51, "more than all: there are 50"), ("51", "more than all"),
        (1.2, "a share is at most 100 %"), ("101%", "a share is at most"), (3.0, "a share is at most"),
        (1e-12, "rounds to none"), ("few", "neither a number of items nor a share"), (True, "got True"),
        ([2], "must be a number"), (float("inf"), "is no number"), ("nan%", "is no number"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(keep, said):
    with pytest.raises(DataError, match=said):
        items_a_person(keep, 50)


def test_a_budget_is_between_one_and_all():
    assert items_in_all(7, 5, 4) == 7
    for budget in (4, 21, 2.5, True):
        with pytest.raises(DataError, match="budget"):
            items_in_all(budget, 5, 4)


MEAN = np.array([0.0, 2.0, 1.9, 1.0, -1.0])
VAR = np.array([0.1, 0.1, 1.5, 2.5, 9.0])


@pytest.mark.parametrize(
    ("criterion", "order"),
    [
        # μ + σ²/2: .05, 2.05, 2.65, 2.25, 3.5
        ("ucb", [4, 2, 3, 1, 0]),
        ("ivm", [0, 1, 2, 3, 4]),
        # σ (c Φ(c) + φ(c)): 0, .126, .441, .253, .250
        ("voi", [2, 3, 4, 1, 0]),
        # as the paper has it, at its noise of 3: μ + 1.5 σ² is .15, 2.15, 4.15, 4.75, 12.5
        (UCB(beta=3.0), [4, 3, 2, 1, 0]),
    ],
)
def test_the_order_of_a_case_made_by_hand(criterion, order):
    assert in_order(find_criterion(criterion)(0, centred(MEAN, VAR))).tolist() == order


def test_exponential_utility_is_the_risk_with_its_beta():
    for beta in (0.5, 1.0, 3.0):
        score = UCB(beta=beta)(0, centred(MEAN, VAR))
        np.testing.assert_allclose(np.log(-exponential_risk(MEAN, VAR, beta)) / beta, score, atol=EXACT)


def test_the_papers_series_prefers_a_bad_item():
    mean, var = np.array([-3.0, 0.2]), np.array([0.1, 0.1])
    assert np.argmax(UCB(beta=3.0, taylor=True)(0, centred(mean, var))) == 0
    assert np.argmax(UCB(beta=3.0)(0, centred(mean, var))) == 1
    np.testing.assert_allclose(UCB(taylor=True)(0, centred(MEAN, VAR)), MEAN + 0.5 * (VAR + MEAN**2), atol=EXACT)


def test_raw_utilities_have_the_constant_that_centred_ones_lack():
    everybody = Utilities.of(MEAN, np.diag(VAR) + 100.0)
    np.testing.assert_allclose(-IVM(raw=True)(0, everybody), VAR + 100.0, atol=EXACT)
    np.testing.assert_allclose(-IVM()(0, everybody), Utilities.of(MEAN, np.diag(VAR)).centred_marginals()[1], atol=1e-9)
    np.testing.assert_allclose(VOI(raw=True)(0, Utilities.of(MEAN, np.diag(VAR))), VOI()(0, centred(MEAN, VAR)))


def test_criteria_with_settings_are_told_in_the_report_and_wrong_ones_refused(model, tmp_path):
    small = model.compress(3, criterion=UCB(beta=3.0, taylor=True, raw=True))
    assert small.report_["compressed"]["criterion"] == "UCB(raw=True, beta=3.0, taylor=True)"
    small.save(tmp_path / "small")
    assert load(tmp_path / "small").describe() == small.describe()
    by_function = model.compress(3, criterion=lambda user, utilities: utilities.mean)
    assert by_function.report_["compressed"]["criterion"] == "<lambda>"
    for wrong in ({"beta": 0.0}, {"beta": "auto"}, {"taylor": 1}, {"raw": "no"}):
        with pytest.raises(DataError, match=f"{next(iter(wrong))} must be"):
            UCB(**wrong)


class centred:
    def __init__(self, mean, var):
        self.moments = mean, var

    def centred_marginals(self):
        return self.moments


def test_pairs_keeps_the_item_after_which_all_pairs_are_told_best(model, models):
    """Against the predictions of the compressed model itself, tried with every item."""
    every = np.triu_indices(N_ITEMS, 1)
    for full in (model, models["population"], models["pooled"]):
        found = sparsify(full, 3, "pairs")
        for user in range(3 if full.personal_ else 1):
            mean = (full.posterior_.person(user) if full.personal_ else full.posterior_.crowd()).mean
            law, kept = found.law, []

            def loss(S, mean=mean, law=law):
                C = law.dense()[1]
                told = law.mean + C[:, S] @ np.linalg.solve(C[np.ix_(S, S)], (mean - law.mean)[S])
                return sum(((mean - told)[every[0]] - (mean - told)[every[1]]) ** 2)

            for _ in range(3):
                kept.append(min((i for i in range(N_ITEMS) if i not in kept), key=lambda i: loss([*kept, i])))
            assert found.kept(user).tolist() == sorted(kept)
            told = replace(found, pooled=False).person(user).mean
            assert loss(kept) == pytest.approx(sum(((mean - told)[every[0]] - (mean - told)[every[1]]) ** 2), abs=1e-9)
            assert loss(kept) <= loss(sparsify(full, 3, "ivm").kept(user).tolist())
    with pytest.raises(DataError, match="give keep, not budget"):
        sparsify(model, budget=20, criterion="pairs")


def test_items_that_others_tell_already_are_kept_last():
    C = np.kron(np.eye(3), np.ones((2, 2)))  # each item twice
    assert representative(np.array([1.0, 1.0, -2.0, -2.0, 0.5, 0.5]), C, 3).tolist() == [0, 2, 4]
    assert representative(np.zeros(6), C, 6).tolist() == list(range(6))


def test_equal_scores_keep_the_first_items():
    for name in ("ucb", "voi", "ivm"):
        score = find_criterion(name)(0, centred(np.zeros(6), np.ones(6)))
        assert in_order(score).tolist() == list(range(6))


@dataclass
class OfPeople(Posterior):
    people: list[Utilities]
    law: Utilities

    def person(self, user=-1):
        return self.people[user] if user >= 0 else self.law

    def crowd(self):
        return self.law


def of_people(means, covariances):
    """A model with the people that are given."""
    people = [Utilities.of(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]
    n = len(means[0])
    law = Utilities.of(np.zeros(n), 4.0 * np.eye(n))
    return SimpleNamespace(
        posterior_=OfPeople(people, law), personal_=True, users_=range(len(means)), items_=range(n), _added_users={},
        _answers_of_people=lambda a, b: np.zeros((b - a, n)),
    )  # fmt: skip


@pytest.mark.parametrize("criterion", ["ucb", "voi", "ivm"])
def test_the_order_of_the_items_does_not_matter(criterion):
    rng = np.random.default_rng(4)
    means, roots = rng.normal(size=(5, 7)), rng.normal(size=(5, 7, 7))
    covariances = roots @ roots.transpose(0, 2, 1)
    order = rng.permutation(7)
    before = select(of_people(means, covariances), 3, criterion)
    moved = of_people(means[:, order], covariances[:, order][:, :, order])
    after = select(moved, 3, criterion)
    assert [sorted(order[items].tolist()) for items in map(np.array, lists(after))] == lists(before)


def by_mean(user, utilities):
    return utilities.mean


def test_a_budget_takes_the_best_of_all_and_one_of_each():
    means = np.array([[3.0, 2.0, 1.0, -6.0], [0.3, 0.2, 0.1, -0.6], [9.0, 0.0, 0.0, -9.0]])
    model = of_people(means, np.full((3, 4, 4), 0.0) + np.eye(4))
    found = lists(select(model, criterion=by_mean, budget=6))
    assert sum(map(len, found)) == 6
    assert found == [[0, 1, 2], [0, 1], [0]]
    assert lists(select(model, criterion=by_mean, budget=12)) == [[0, 1, 2, 3]] * 3
    subset = sparsify(model, criterion=by_mean, budget=6)
    assert subset.kept(1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"keep": 0}, "keeps nothing"), ({"keep": 99}, "more than all"), ({}, "give keep"),
        ({"keep": 2, "budget": 30}, "give keep"), ({"keep": 2, "criterion": "best"}, "criterion must be one of"),
        ({"budget": 30, "criterion": "pairs"}, "give keep, not budget"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(model, arguments, said):
    with pytest.raises(DataError, match=said):
        sparsify(model, **arguments)


def test_models_that_have_no_such_thing_are_refused(models):
    with pytest.raises(DataError, match="is not fitted"):
        sparsify(type(models["population"])(), 2)
    with pytest.raises(DataError, match="one process of people and items"):
        sparsify(models["population"], 2, local=False)
    nobody = type(models["population"])(n_jobs=1).fit(None, items=["tea", "milk", "juice"])
    with pytest.raises(DataError, match="knows nobody"):
        nobody.compress(keep=2)
    nobody.update(user="ann", left="tea", right="milk", winner="tea")
    assert nobody.compress(keep=2).rank()["item"].to_list() == nobody.rank()["item"].to_list()


def test_every_model_keeps_everything_and_loses_nothing(model, models):
    for name, full in ({"joint": model} | models).items():
        subset = sparsify(full, "100%")
        for loss in LOSSES:
            found = expected_loss(full, subset, loss, n_draws=20)
            assert abs(found.excess) < EXACT, (name, loss)
            assert found.full > 0.0


def test_the_expected_loss_of_the_full_model_is_least(model):
    """Of losses whose best answer is what is given: the item with the largest mean, and the probabilities."""
    for criterion in ("ivm", lambda user, utilities: RNG.random(N_ITEMS)):
        subset = sparsify(model, 2, criterion)
        for loss in ("regret", "log"):
            found = expected_loss(model, subset, loss, n_draws=400)
            assert found.excess > -2.0 * found.error
            assert found.compressed > found.full
    few = expected_loss(model, sparsify(model, 2, "voi"), "regret")
    many = expected_loss(model, sparsify(model, 2, "ivm"), "regret")
    assert few.excess < many.excess
    assert {criterion_for(loss) for loss in LOSSES} == {"voi", "ucb", "pairs"}
    assert criterion_for("log", 501) == criterion_for("log", has_budget=True) == "ivm"


def test_people_who_are_not_remembered_are_the_same(model, models, monkeypatch):
    users = np.array([3, 0, 7])
    for full in (model, models["gppl-separate"]):
        remembered = list(people_of_model(full)(users))
        with monkeypatch.context() as patch:
            patch.setattr("predilect.papers.compression.sparsify._MOST_REMEMBERED", 0)
            made = list(people_of_model(full)(users))
        for one, other in zip(remembered, made, strict=True):
            np.testing.assert_allclose(one.mean, other.mean, atol=EXACT)
            np.testing.assert_allclose(one.covariance, other.covariance, atol=EXACT)
    assert isinstance(models["gppl-separate"].posterior_, SeparatePosterior)


def test_an_added_person_is_compressed_too(models):
    posterior = models["population"].posterior_
    subset = sparsify(models["population"], 3)
    assert subset.n_users == posterior.n_users == N_USERS
    assert replace(subset).n_users == N_USERS
