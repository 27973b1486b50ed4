"""Judges: agreement with the rest, infit and outfit, against refits without each judge, simulation and clickers."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from predilect import Population
from simulate import random_pairs

N_ITEMS = 12
POOLED = {"personal": False, "consensus_variance": 2.0, "calibration": None, "n_jobs": 1}
PERSONAL = {"consensus_variance": 2.0, "strength": 30.0, "variance": 0.5, "calibration": None, "n_jobs": 1,
            "consistency": 0.0, "clickers": 0.0}  # fmt: skip


def votes(seed: int, *, n: int = 16, each: int = 50, clickers: int = 0, taste: float = 0.0, ties: float = 0.0):
    """Answers of judges who share an order but for their taste; the first ones click at random."""
    rng = np.random.default_rng(seed)
    f = 1.2 * rng.standard_normal(N_ITEMS) + taste * rng.standard_normal((n, N_ITEMS))
    user = np.repeat(np.arange(n), each)
    left, right = random_pairs(rng, len(user), N_ITEMS)
    z = f[user, left] - f[user, right] + rng.standard_normal(len(user))
    z[user < clickers] = rng.standard_normal(clickers * each)
    return {"user": user, "left": left, "right": right}, np.where(np.abs(z) < ties, 0, np.sign(z)).astype(int)


def by_hand(frame, outcome, judge: int) -> tuple[float, float, float]:
    """Agreement, infit and outfit of a judge, by a fit to the answers of all others, answer by answer."""
    rest = frame["user"] != judge
    model = Population(**POOLED, tie_threshold=0.0).fit({k: v[rest] for k, v in frame.items()}, outcome[rest])
    place = {item: k for k, item in enumerate(model.items_.ids)}
    mean, C = model.posterior_.mean, model.posterior_.covariance
    agreed, squares, information, alike, n = 0, 0.0, 0.0, 0.0, 0
    for left, right, y in zip(*(frame[k][~rest] for k in ("left", "right")), outcome[~rest], strict=True):
        i, j = place[left], place[right]
        gap, v = mean[i] - mean[j], C[i, i] + C[j, j] - 2 * C[i, j]
        p = 0.5 * math.erfc(-gap / math.sqrt(2 * (1 + v)))
        x = 1.0 if y > 0 else 0.0
        agreed += (gap > 0) == (x == 1.0)
        squares, information = squares + (x - p) ** 2, information + p * (1 - p)
        alike, n = alike + (x - p) ** 2 / (p * (1 - p)), n + 1
    return agreed / n, squares / information, alike / n


def test_a_judge_is_held_against_a_fit_without_that_judge():
    frame, y = votes(1, clickers=1)
    table = Population(**POOLED).fit(frame, y).people()
    for judge in (0, 3, 7):
        agreement, infit, outfit = by_hand(frame, y, judge)
        row = table.row(judge, named=True)
        assert row["agreement"] == pytest.approx(agreement, abs=0.021)  # an answer between near equals may turn
        assert row["infit"] == pytest.approx(infit, rel=0.01)  # one Newton step in place of a fit
        assert row["outfit"] == pytest.approx(outfit, rel=0.03)


@pytest.mark.parametrize(("given", "taste"), [(POOLED, 0.0), (PERSONAL, 0.7)])
def test_a_clicker_misfits_and_hardly_anybody_else(given, taste):
    caught = wrong = others = 0
    for seed in range(10):
        frame, y = votes(seed, clickers=2, taste=taste)
        table = Population(**given).fit(frame, y).people()
        caught += int(table["misfit"][:2].sum())
        wrong, others = wrong + int(table["misfit"][2:].sum()), others + 14
        assert table["agreement"][:2].mean() < table["agreement"][2:].mean() - 0.1
    assert caught >= 16  # of 20
    assert wrong <= 0.05 * others


@pytest.mark.slow
@pytest.mark.parametrize(("given", "taste", "ties"), [(POOLED, 0.0, 0.0), (POOLED, 0.0, 0.5), (PERSONAL, 0.7, 0.0)])
def test_by_chance_infit_is_one_and_its_z_standard_normal(given, taste, ties):
    tables = [Population(**given).fit(*votes(seed, taste=taste, ties=ties)).people() for seed in range(40)]
    found = pl.concat(tables)
    z = found["infit_z"].to_numpy()
    assert abs(found["infit"].mean() - 1.0) < 0.05
    assert abs(z.mean()) < 0.15
    assert 0.9 < z.std() < 1.1
    for name in ("infit_z", "outfit_z"):  # of outfit, whose tail is heavy, the upper end is what counts
        assert (found[name] > 2.0).mean() < 0.04  # 0.023 of a normal
    assert found["misfit"].sum() <= 0.01 * len(found)


def test_weights_stand_for_equal_answers_and_rows_may_come_in_any_order():
    frame, y = votes(3)
    order = np.random.default_rng(0).permutation(len(y))
    one = Population(**POOLED).fit(frame, y).people()
    twice = Population(**POOLED).fit({k: v[order] for k, v in frame.items()}, y[order]).people()
    assert one.equals(twice)
    table = pl.DataFrame({**frame, "y": y}).group_by("user", "left", "right", "y", maintain_order=True).len("weight")
    weighted = Population(**POOLED).fit(table.drop("y"), table["y"].to_numpy()).people()
    for name in ("n", "agreement", "infit", "infit_z", "outfit_z"):
        np.testing.assert_allclose(weighted[name].to_numpy(), one[name].to_numpy(), rtol=1e-9)


@pytest.mark.parametrize("many", [30, 300])
def test_after_an_update_the_rest_is_what_a_refit_says(many):
    frame, y = votes(7, n=6, each=6)
    rng = np.random.default_rng(0)
    left, right = random_pairs(rng, many, N_ITEMS)
    late, said = {"user": rng.integers(2, size=many), "left": left, "right": right}, rng.choice([-1, 1], many)
    model = Population(**PERSONAL).fit(frame, y, reading={"task": "none"})
    updated = model.update(late, said, reading={"task": "none"}).people()
    both, said = {name: np.concatenate([frame[name], late[name]]) for name in frame}, np.concatenate([y, said])
    rest = both["user"] != 5
    for ours, rows in ((updated, rest | True), (model.forget(user=5).people(), rest)):
        refit = Population(**PERSONAL).fit(
            {name: values[rows] for name, values in both.items()}, said[rows], reading={"task": "none"}
        ).people()  # fmt: skip
        for name in ("n", "infit", "outfit"):  # an agreement turns with a sign
            np.testing.assert_allclose(ours[name].to_numpy(), refit[name].to_numpy(), rtol=0.06)


def test_of_one_judge_there_is_no_rest():
    frame, y = votes(4, n=1)
    row = Population(**POOLED).fit(frame, y, reading={"task": "none"}).people().row(0, named=True)
    assert row["agreement"] is None
    assert row["infit"] == pytest.approx(1.0, abs=0.05)  # of half a chance each


def test_where_either_answer_is_as_likely_no_answer_is_odd():
    frame = {"user": ["u"] * 5, "left": ["a"] * 5, "right": ["b"] * 5}
    row = Population(**POOLED, tie_threshold=0.0).fit(frame, [1, 1, 1, -1, 1]).people().row(0, named=True)
    assert row["infit_z"] is None
    assert row["outfit_z"] is None
    assert row["misfit"] is False


def test_answers_about_several_alternatives_have_no_fit():
    rng = np.random.default_rng(5)
    rows = {"user": [], "task": [], "item": [], "chosen": []}
    for user in range(6):
        for task in range(8):
            items = rng.permutation(6)[:3]
            best = int(np.argmax(0.5 * items + rng.gumbel(size=3)))
            for k, item in enumerate(items):
                for name, value in zip(rows, (user, f"{user}-{task}", f"i{item}", int(k == best)), strict=True):
                    rows[name].append(value)
    table = Population(n_jobs=1, personal=True).fit(pl.DataFrame(rows)).people()
    assert table["infit"].null_count() == table["outfit_z"].null_count() == 6
    assert table["agreement"].null_count() == 0
    assert not table["misfit"].any()


@pytest.mark.slow
def test_separation_reliability_promises_no_more_than_the_squared_correlation_with_the_truth():
    said, true = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        f, user = rng.standard_normal(20), np.repeat(np.arange(10), 12)
        left, right = random_pairs(rng, len(user), 20)
        y = np.where(f[left] - f[right] + rng.standard_normal(len(user)) > 0, 1, -1)
        model = Population(personal=False, n_jobs=1).fit({"user": user, "left": left, "right": right}, y)
        said.append(model.separation_reliability())
        true.append(np.corrcoef(f[list(model.items_.ids)], model.utilities(ranks=False)["mean"].to_numpy())[0, 1] ** 2)
    # Standard errors of a board of ten judges allow for judges who differ: a little less is promised.
    assert np.mean(true) - 0.1 < np.mean(said) < np.mean(true) + 0.01


def test_boards_count_wins_ties_and_losses():
    frame, y = votes(6, ties=0.4)
    for model in (Population(**POOLED).fit(frame, y), Population(**PERSONAL).fit(frame, y)):
        for user in (None, 3) if model.personal_ else (None,):
            board = model.rank(user)
            mine = np.ones(len(y), bool) if user is None else frame["user"] == user
            for row in board.iter_rows(named=True):
                sides = [(frame["left"] == row["item"]) & mine, (frame["right"] == row["item"]) & mine]
                wins = int(((y > 0) & sides[0]).sum() + ((y < 0) & sides[1]).sum())
                ties = int(((y == 0) & (sides[0] | sides[1])).sum())
                n = int((sides[0] | sides[1]).sum())
                assert (row["wins"], row["ties"], row["losses"], row["n"]) == (wins, ties, n - wins - ties, n)
                assert row["win_share"] == pytest.approx((wins + 0.5 * ties) / n)
