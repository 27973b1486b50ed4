"""When to stop: what further answers do to the board, by dense algebra, and what is said of it."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import predilect
from predilect import Population
from predilect.decisions.outlook import _answers_needed, _Claim, _Future, _rounded
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
        rows, (left, right, _) = posterior.answers_of(user).rows, posterior.answered_rows(user)
        X = np.eye(N_ITEMS)[left] - np.eye(N_ITEMS)[right]
        H += X.T @ np.linalg.inv(np.diag(1.0 / (rows.weight * rows.precision)) + X @ posterior.Sigma @ X.T) @ X
        total += rows.weight.sum()
    after = np.linalg.inv(np.linalg.inv(V) + n * H / total)
    future, some = _Future.of(model, rivals, None), np.ix_(rivals, rivals)
    np.testing.assert_allclose(future.left(n), after[some], atol=ITERATIVE)
    np.testing.assert_allclose(future.left(0.0), V[some], atol=ITERATIVE)
    # A closed list of people: all that they can tell is Σ⁻¹ each.
    limit = 30 * np.linalg.inv(posterior.Sigma) - H
    np.testing.assert_allclose(posterior.information_of_answers(30)[1], limit, atol=ITERATIVE)
    floor = np.linalg.inv(np.linalg.inv(V) + limit)
    D = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])  # answers are about differences
    closed = _Future.of(model, rivals, 30)
    np.testing.assert_allclose(D @ closed.left(1e9) @ D.T, D @ floor[some] @ D.T, atol=1e-5)
    assert np.linalg.eigvalsh(D @ (closed.left(n) - after[some]) @ D.T)[0] > -EXACT  # no more than an open list


@pytest.mark.slow
def test_a_claim_is_settled_when_its_probability_first_reaches_the_level():
    """Two items: against paths of a mean that learns of a difference d ~ N(μ, v), by answers of precision j."""
    mu, v, j, level, rng = 0.3, 0.5, 0.05, 0.95, np.random.default_rng(3)
    n_paths, n_answers = 2000, 4000
    d = mu + np.sqrt(v) * rng.standard_normal(n_paths)
    mean, precision, first = np.full(n_paths, mu), 1.0 / v, np.full(n_paths, np.inf)
    for n in range(1, n_answers + 1):
        mean = (precision * mean + j * (d + rng.standard_normal(n_paths) / np.sqrt(j))) / (precision + j)
        precision += j
        first[(norm.cdf(np.abs(mean) * np.sqrt(precision)) >= level) & np.isinf(first)] = n
    # V of two items of which the difference has variance v, and answers that tell of it alone.
    e = np.array([[1.0, -1.0]]) / np.sqrt(2.0)
    future = _Future(e.T * np.sqrt(v / 2.0), np.zeros(2), np.array([[j * v]]), None)
    rng, m = np.random.default_rng(0), np.array([mu, 0.0])
    found = [_answers_needed(future, _Claim(np.arange(2), 1), m, level, 20_000.0, rng) for _ in range(10)]
    for share, told in zip((0.5, 0.8), zip(*found, strict=True), strict=True):
        assert np.mean(np.log(told)) == pytest.approx(np.log(np.quantile(first, share)), abs=0.2)


def test_all_answers_that_may_come_are_looked_at():
    """Of two items, where one answer tells the difference almost for certain, and two may come."""
    e = np.array([[1.0, -1.0]]) / np.sqrt(2.0)
    future = _Future(e.T * np.sqrt(0.5), np.zeros(2), np.array([[1e6]]), None)
    claim, rng = _Claim(np.arange(2), 1), np.random.default_rng(0)
    assert _answers_needed(future, claim, np.zeros(2), 0.95, 2.0, rng) == [2, 2]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("model", ["items", "basis"])
def test_a_claim_is_about_the_items_that_are_left(model):
    """Against the board's draws of these items."""
    fit = fitted() if model == "items" else Population(**FIXED | {"tie_threshold": "auto"}).fit(
        answers(), items={"item": IDS, "x": np.arange(6.0), "z": [0.3, 0.1, 0.9, 0.2, 0.4, 0.7]}
    )  # fmt: skip
    first, second = fit.rank()["item"][:2]
    found = fit.outlook(retired=[first, "i4"])
    assert found.items == (second,)
    mean, covariance = fit.posterior_.crowd().dense()
    left = [k for k, item in enumerate(IDS) if item not in (first, "i4")]
    draws = np.random.default_rng(1).multivariate_normal(mean[left], covariance[np.ix_(left, left)], size=20_000)
    best = np.bincount(draws.argmax(axis=1), minlength=4) / 20_000
    assert found.probability == pytest.approx(best[left.index(IDS.index(second))], abs=0.03)
    assert found.more_answers != fit.outlook().more_answers
    some = fit.posterior_.crowd().among(np.array(left))
    np.testing.assert_allclose(some.dense()[1], covariance[np.ix_(left, left)], atol=EXACT)
    assert set(fit.outlook("top", k=3, retired=[first, "i4"]).items) < set(IDS) - {first, "i4"}
    tiers = fit.outlook("tiers", retired=[first]).items
    assert sorted(item for tier in tiers for item in tier) == sorted(set(IDS) - {first})
    for retired, message in ((IDS[1:], "needs two"), (["i9"], "i9"), (IDS[:3], "k must be .* from 1 to 2")):
        with pytest.raises(DataError, match=message):
            fit.outlook("top", k=3, retired=retired)


@pytest.mark.parametrize("n_answers", [0, 5, 250])
def test_the_probability_is_that_of_the_board(n_answers):
    """Of many items, most of which are no strong rivals."""
    ids = [f"i{k}" for k in range(40)]
    model = Population(**FIXED | {"tie_threshold": 0.3}).fit(None, items=ids)
    said = answers()
    for k in range(n_answers):
        model.update(
            user=said["user"][k], left=said["left"][k], right=said["right"][k], winner=said[said["winner"][k]][k]
        )
    board, found = model.rank(), model.outlook()
    assert found.items == (board["item"][0],)
    assert found.probability == board["p_best"][0]
    assert found.too_early == (n_answers < 40)


def test_claims_are_judged_by_their_draws():
    draws = np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]])
    mean = np.array([3.0, 2.0, 1.0])
    every = np.arange(3)
    assert _Claim(every, 1).holds(draws, mean).tolist() == [True, False, False]
    assert _Claim(every, 2).holds(draws, mean).tolist() == [True, True, False]
    assert _Claim(every, 0).holds(draws, mean).tolist() == [True, False, False]


@pytest.mark.slow
def test_what_is_said(monkeypatch):
    clear = Population(**FIXED | {"tie_threshold": "auto"}).fit(answers(apart=2.0, n=500)).outlook()
    assert clear.enough
    assert (clear.more_answers, clear.likely_answers, clear.may_never) == (0, 0, False)
    assert str(clear).startswith("Clear: first place, i")
    monkeypatch.setattr("predilect.decisions.outlook._MOST_TIMES", 2.0)
    found = fitted(0.0).outlook()
    assert not found.enough
    assert found.may_never
    assert found.more_answers is None
    assert str(found).startswith("Not clear, and perhaps never with this crowd: first place, now i")
    half = replace(found, more_answers=120, may_never=False)
    assert str(half).startswith(
        "With about 120 more answers first place may be clear; perhaps it never is with this crowd. Now i"
    )
    assert "may be clear; 1 200 make it likely. Now i" in str(replace(half, likely_answers=1200))
    assert [_rounded(n) for n in (3, 47, 47.2, 471, 4712, 99.1)] == [3, 47, 48, 480, 4800, 100]


@pytest.mark.slow
def test_more_is_needed_for_more_certainty_and_less_after_more_answers():
    model = Population(**FIXED | {"tie_threshold": "auto"}).fit(answers(apart=1.0, n=120))
    needed = [model.outlook(level=level).more_answers for level in (0.9, 0.95, 0.99)]
    known = [np.inf if n is None else n for n in needed]
    assert known == sorted(known)
    for level in (0.9, 0.95, 0.99):
        found = model.outlook(level=level)
        assert found.likely_answers is None or found.more_answers <= found.likely_answers
    closed = model.outlook(level=0.99, n_people=N_PEOPLE).more_answers
    assert closed is None or closed >= known[2]


def test_before_there_are_answers_and_of_other_models():
    prior = Population().fit(None, items=IDS)
    found = prior.outlook()
    assert found.probability < 0.4
    assert not found.enough
    assert (found.more_answers, found.likely_answers, found.may_never, found.too_early) == (None, None, False, True)
    assert str(found).endswith("There are too few answers to say how many more it takes.")
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
        ({"claim": "worst"}, "claim must be"), ({"level": 1.0}, "level must be"), ({"level": 0.3}, "level must be"),
        ({"claim": "top", "k": 6}, "k must be"), ({"n_people": 3, "level": 0.999}, "fewer than"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            model.outlook(**settings)
