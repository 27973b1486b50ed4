"""Active learning in rounds: what is asked, learned and measured, and runs that are taken up again."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from benchmarks.rounds import Pools, cases_of, curve, gain, play, pools_of, resume, sign_error

from predilect import Population
from predilect.data import Comparisons
from predilect.errors import DataError

N_ITEMS, N_USERS = 6, 30
FIXED = {
    "strength": 5.0,
    "variance": 4.0,
    "consensus_variance": 4.0,
    "calibration": None,
    "consistency": 0.0,
    "tie_threshold": 0.0,
    "n_jobs": 1,
}


@pytest.fixture(scope="module")
def answers():
    """Everybody on every pair, by utilities of two groups of people."""
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(N_ITEMS, 1)
    f = rng.standard_normal((2, N_ITEMS))[np.arange(N_USERS) % 2] * 2.0 + 0.5 * rng.standard_normal((N_USERS, N_ITEMS))
    user = np.repeat(np.arange(N_USERS), len(left))
    left, right = np.tile(left, N_USERS), np.tile(right, N_USERS)
    frame = {name: codes.tolist() for name, codes in (("user", user), ("left", left), ("right", right))}
    return Comparisons.from_frame(frame, outcome=np.where(f[user, left] > f[user, right], 1, -1))


def rows(comparisons):
    return {tuple(row) for row in comparisons.to_frame().select("user", "left", "right", "winner").rows()}


def fit(start):
    return Population(**FIXED).fit(start)


def test_pools_are_dealt_out_to_everybody(answers):
    pools = pools_of(answers, 3, 2, random_state=1)
    for part, n in ((pools.start, 3), (pools.pool, 10), (pools.test, 2)):
        assert (np.bincount(part.user, minlength=N_USERS) == n).all()
    assert rows(pools.start) | rows(pools.pool) | rows(pools.test) == rows(answers)
    assert rows(pools_of(answers, 3, 2, random_state=1).pool) == rows(pools.pool)
    assert rows(pools_of(answers, 3, 2, random_state=2).pool) != rows(pools.pool)
    with pytest.raises(DataError, match="has 15 in all"):
        pools_of(answers, 10, 6)
    twice = Comparisons.from_frame({"user": ["u", "u"], "left": ["a", "a"], "right": ["b", "b"]}, outcome=[1, -1])
    with pytest.raises(DataError, match="answered a pair twice"):
        pools_of(twice, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["bald", "random"])
def test_each_round_asks_everybody_one_pair_of_their_own_pool(answers, strategy):
    pools, heard = pools_of(answers, 2, 3, random_state=0), []

    def learn(model, new, everything):
        assert new.user.tolist() == list(range(N_USERS))
        assert rows(new) <= rows(pools.pool)
        heard.append(rows(new))
        assert rows(everything) == rows(pools.start).union(*heard)
        return model.update(new)

    found = list(play(pools, strategy, fit=fit, learn=learn, measure=sign_error, n_rounds=20))
    # Ten are in each pool, and then nothing is left to ask.
    assert [record["round"] for record in found] == list(range(11))
    assert [record["n_answers"] for record in found] == [N_USERS * (2 + k) for k in range(11)]
    assert sum(map(len, heard)) == len(set().union(*heard)) == N_USERS * 10
    # In the end all strategies know the same.
    mean, _ = fit(pools.start).update(pools.pool).predict_margin(pools.test)
    assert found[-1]["error"] == np.mean(np.sign(mean) != pools.test.outcome)


@pytest.mark.slow
def test_bald_learns_faster_than_chance(answers):
    def final(strategy, seed):
        found = play(
            pools_of(answers, 2, 3, seed), strategy, fit=fit, learn=lambda model, new, _: model.update(new),
            measure=sign_error, n_rounds=4, random_state=seed,
        )  # fmt: skip
        return {"seed": seed, "rounds": list(found)}

    ahead = gain([final("bald", seed) for seed in range(8)], [final("random", seed) for seed in range(8)])
    assert ahead.n == 8
    assert ahead.mean > 2.0 * ahead.standard_error


def test_what_is_measured(answers):
    class Left:
        def predict_margin(self, X):
            return np.ones(X.n_rows), np.ones(X.n_rows)

    wrong = float((answers.outcome < 0).mean())
    assert sign_error(Left(), answers)["error"] == pytest.approx(wrong)


def test_an_empty_pool_ends_at_once(answers):
    nothing = answers.take(np.zeros(answers.n_rows, dtype=bool))
    pools = Pools(answers, nothing, answers)
    assert len(list(play(pools, "bald", fit=fit, learn=None, measure=sign_error, n_rounds=3))) == 1


def test_runs_are_taken_up_where_they_were_left(tmp_path):
    path, ran = tmp_path / "runs" / "active.jsonl", []

    def run(case):
        ran.append(case["seed"])
        if case["seed"] == 2 and len(ran) < 4:
            raise KeyboardInterrupt
        return [{"round": 0, "error": np.float64(0.5)}, {"round": 1, "error": 0.25 * case["seed"]}]

    cases = [{"strategy": "bald", "seed": seed} for seed in range(3)]
    with pytest.raises(KeyboardInterrupt):
        resume(path, cases, run)
    with path.open("a") as file:
        file.write('{"case": {"strategy": "ba')  # cut short
    runs = resume(path, cases, run)
    assert ran == [0, 1, 2, 2]
    assert runs == resume(path, cases, run)
    assert ran == [0, 1, 2, 2]
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert cases_of(path) == cases
    assert cases_of(tmp_path / "nothing") == []
    assert [json.loads(line)["case"]["seed"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_curves_and_gains_have_standard_errors():
    def runs(values):
        return [{"seed": s, "rounds": [{"error": 1.0}, {"error": v}]} for s, v in enumerate(values)]

    mean, error = curve(runs([0.1, 0.2, 0.6]))
    np.testing.assert_allclose(mean, [1.0, 0.3])
    np.testing.assert_allclose(error, [0.0, np.std([0.1, 0.2, 0.6], ddof=1) / math.sqrt(3.0)])
    assert np.isnan(curve(runs([0.1]))[1]).all()
    ahead = gain(runs([0.1, 0.2]), runs([0.4, 0.3, 0.9]))
    assert (ahead.n, ahead.mean) == (2, pytest.approx(0.2))
    assert ahead.standard_error == pytest.approx(0.1)
    assert gain(runs([]), runs([0.1])).n == 0
