"""When to stop: what further answers do to the board, by dense algebra, and what is said of it."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

import predilect
from predilect import Population
from predilect.decisions.outlook import _Claim, _Future, _rounded
from predilect.errors import DataError
from simulate_updates import FIXED
from tolerances import EXACT, ITERATIVE

N_ITEMS, N_PEOPLE = 6, 25
IDS = [f"i{k}" for k in range(N_ITEMS)]


def answers(seed: int = 0, apart: float = 0.5, n: int = 250) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    f = apart * np.arange(N_ITEMS)[::-1] + 0.7 * rng.standard_normal((N_PEOPLE, N_ITEMS))
    who = rng.integers(N_PEOPLE, size=n)
    a = rng.integers(N_ITEMS, size=n)
    b = (a + rng.integers(1, N_ITEMS, size=n)) % N_ITEMS
    z = f[who, a] - f[who, b] + rng.standard_normal(n)
    return {
        "user": [f"u{k}" for k in who], "left": [IDS[k] for k in a], "right": [IDS[k] for k in b],
        "winner": ["left" if one > 0.0 else "right" for one in z],
    }  # fmt: skip


@functools.cache
def _fitted(apart: float) -> Population:
    return Population(**FIXED | {"tie_threshold": "auto"}).fit(answers(apart=apart))


def fitted(apart: float = 0.5) -> Population:
    return copy.deepcopy(_fitted(apart))


@pytest.mark.parametrize("n", [1.0, 40.0, 1e4])
def test_what_n_answers_do_to_the_board_is_that_of_dense_algebra(n):
    model = fitted().update(user="u1", left="i0", right="i1", winner="i1")
    posterior, rivals = model.posterior_, np.array([0, 3, 4])
    V = posterior.now.C
    H, total = np.zeros_like(V), 0.0
    for user in range(posterior.n_users):
        person = posterior.answers_of(user)
        X = np.zeros((len(person.outcome), N_ITEMS))
        X[np.arange(len(X)), person.items[person.left]] = 1.0
        X[np.arange(len(X)), person.items[person.right]] -= 1.0
        H += X.T @ np.linalg.inv(np.diag(1.0 / (person.weight * person.precision)) + X @ posterior.Sigma @ X.T) @ X
        total += person.weight.sum()
    after = np.linalg.inv(np.linalg.inv(V) + n * H / total)
    move, rest = _Future.of(model, rivals, None).roots(n)
    some = np.ix_(rivals, rivals)
    np.testing.assert_allclose(rest @ rest.T, after[some], atol=ITERATIVE)
    np.testing.assert_allclose(move @ move.T, (V - after)[some], atol=ITERATIVE)
    # A closed list of people: all that they can tell is Σ⁻¹ each.
    limit = 30 * np.linalg.inv(posterior.Sigma) - H
    np.testing.assert_allclose(posterior.information_of_answers(30)[1], limit, atol=ITERATIVE)
    floor = np.linalg.inv(np.linalg.inv(V) + limit)
    _, rest = _Future.of(model, rivals, 30).roots(1e9)
    D = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])  # answers are about differences
    np.testing.assert_allclose(D @ rest @ rest.T @ D.T, D @ floor[some] @ D.T, atol=1e-5)
    _, few = _Future.of(model, rivals, 30).roots(n)
    assert np.linalg.eigvalsh(D @ (few @ few.T - after[some]) @ D.T)[0] > -EXACT  # no more than an open list


def test_a_claim_is_as_probable_as_on_the_board(tmp_path):
    model = fitted()
    model.save(tmp_path / "model")
    for one in (model, predilect.load(tmp_path / "model")):
        found, board = one.outlook(), one.rank()
        assert found.items == (board["item"][0],)
        assert found.probability == pytest.approx(board["p_best"][0], abs=0.03)
        assert found.claim == "best"
        assert one.outlook("top", k=2).items == tuple(board["item"][:2])
        assert one.outlook().more_answers == found.more_answers
    tiers = model.outlook("tiers")
    assert [item for tier in tiers.items for item in tier] == board["item"].to_list()


def test_claims_are_judged_by_their_draws():
    draws = np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]])
    mean = np.array([3.0, 2.0, 1.0])
    every = np.arange(3)
    assert _Claim(every, 1).holds(draws, mean).tolist() == [True, False, False]
    assert _Claim(every, 2).holds(draws, mean).tolist() == [True, True, False]
    assert _Claim(every, 0).holds(draws, mean).tolist() == [True, False, False]


def test_what_is_said(monkeypatch):
    clear = Population(**FIXED | {"tie_threshold": "auto"}).fit(answers(apart=2.0, n=500)).outlook()
    assert clear.enough
    assert (clear.more_answers, clear.may_never) == (0, False)
    assert str(clear).startswith("Settled with probability")
    monkeypatch.setattr("predilect.decisions.outlook._MOST_TIMES", 2.0)
    found = fitted(0.0).outlook()
    assert not found.enough
    assert found.may_never
    assert found.more_answers is None
    assert str(found).startswith("It may never be settled: first place (now i")
    open_ = fitted(0.5).outlook("top", 0.9, k=3)
    if not open_.enough and open_.more_answers:
        assert str(open_).startswith("About ")
    assert [_rounded(n) for n in (3, 47, 471, 4712)] == [3, 47, 470, 4700]


def test_more_is_needed_for_more_certainty_and_less_after_more_answers():
    model = Population(**FIXED | {"tie_threshold": "auto"}).fit(answers(apart=1.0, n=120))
    needed = [model.outlook(level=level).more_answers for level in (0.9, 0.95, 0.99)]
    known = [np.inf if n is None else n for n in needed]
    assert known == sorted(known)
    closed = model.outlook(level=0.99, n_people=N_PEOPLE).more_answers
    assert closed is None or closed >= known[2]


def test_before_there_are_answers_and_of_other_models():
    prior = Population().fit(None, items=IDS)
    found = prior.outlook()
    assert found.probability < 0.4
    assert not found.enough
    with pytest.raises(DataError, match="one tier"):
        prior.outlook("tiers")
    pooled = Population(personal=False).fit(answers())
    assert 0.0 < pooled.outlook().probability <= 1.0
    J, limit = prior.posterior_.information_of_answers()
    assert limit is None
    np.testing.assert_allclose(J.sum(axis=1), 0.0, atol=EXACT)  # answers are about differences
    assert np.linalg.eigvalsh(J)[1] > 0.0


def test_settings_that_cannot_be_used():
    model = fitted()
    for settings, message in (
        ({"claim": "worst"}, "no claim"), ({"level": 1.0}, "level must be"), ({"level": 0.3}, "level must be"),
        ({"claim": "top", "k": 6}, "k must be"), ({"n_people": 3, "level": 0.999}, "fewer than"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            model.outlook(**settings)
