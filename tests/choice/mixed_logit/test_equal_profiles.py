"""Alternatives with equal attributes in one task: as many as were shown, in the fit, in scores and in predictions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from predilect import Comparisons, MixedLogit, read
from predilect.data.choices import choices_of
from tolerances import EXACT, ITERATIVE

NAMES = ("price", "milk")


def study(n_tasks, seed=0, n_people=1, size=3):
    """Tasks of profiles that are drawn with replacement, (n_tasks, size, 2), what was chosen, and as a table."""
    rng = np.random.default_rng(seed)
    price, milk = rng.integers(1, 4, (n_tasks, size)), rng.integers(0, 2, (n_tasks, size))
    X = np.stack([price, milk], axis=2).astype(float)
    best = (X @ [-0.7, 1.0] + rng.gumbel(size=(n_tasks, size))).argmax(axis=1)
    table = {"task": np.repeat(np.arange(n_tasks), size), **dict(zip(NAMES, X.reshape(-1, 2).T, strict=True))}
    table["chosen"] = (np.arange(size) == best[:, None]).astype(int).ravel()
    if n_people > 1:
        table["person"] = table["task"] % n_people
    return X, best, pl.DataFrame(table)


def log_likelihood(b, X, best):
    V = X @ b
    return float((V[np.arange(len(V)), best] - logsumexp(V, axis=1)).sum())


def fitted(answers, items, **settings):
    return MixedLogit(**{"distributions": "fixed", "n_jobs": 1, "random_state": 3} | settings).fit(answers, items=items)


def described(table):
    """The same study of which every alternative is an item of its own, and the items."""
    own = table.with_row_index("item").with_columns(pl.format("a{}", "item").alias("item"))
    return Comparisons.from_frame(own.drop(NAMES)), own.select("item", *NAMES)


@pytest.mark.parametrize("n_tasks", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_the_conditional_logit_counts_every_alternative(n_tasks):
    X, best, table = study(n_tasks)
    answers = Comparisons.from_frame(table)
    model = fitted(answers, answers.item_table)
    found = minimize(lambda b: -log_likelihood(b, X, best), np.zeros(2), method="BFGS", options={"gtol": 1e-8})
    summary = model.summary()
    estimates = dict(summary.table.select("attribute", "estimate").rows())
    assert [estimates[name] for name in NAMES] == pytest.approx(found.x, rel=ITERATIVE)
    assert summary.facts["log likelihood"] == pytest.approx(-found.fun, abs=ITERATIVE)
    assert summary.facts["log likelihood at 0"] == pytest.approx(-n_tasks * np.log(3.0))
    assert summary.facts["choices"] == n_tasks
    score = model.score(answers)  # over draws of the coefficients
    assert score == pytest.approx(-found.fun / n_tasks, abs=2.0 / n_tasks)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gibbs sampler stopped")  # few draws are the same draws
@pytest.mark.parametrize(
    "settings",
    [{}, {"n_classes": 2}, {"method": "simulated", "n_draws": 50, "distributions": "normal"},
     {"n_draws": 40, "distributions": "normal"}],
)  # fmt: skip
def test_profiles_are_as_items_with_names_of_their_own(settings):
    _, _, table = study(240, seed=1, n_people=30)
    answers = Comparisons.from_frame(table)
    assert answers.copies is not None
    apart, items = described(table)
    one, other = fitted(answers, answers.item_table, **settings), fitted(apart, items, **settings)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, abs=ITERATIVE)
    tables = [model.worth.coefficients().sort("attribute").select("mean", "sd").to_numpy() for model in (one, other)]
    np.testing.assert_allclose(*tables, rtol=ITERATIVE)
    assert one.score(answers) == pytest.approx(other.score(apart), abs=ITERATIVE)
    fits = [model.worth.fit_of_people().sort("user").select("choices", "rlh", "p_guessing").to_numpy()
            for model in (one, other)]  # fmt: skip
    np.testing.assert_allclose(*fits, rtol=ITERATIVE)


def test_orders_and_best_worst_peel_equal_profiles_one_by_one():
    table = {"task": [1] * 4, "alt": [1, 2, 3, 4], "price": [5, 5, 7, 8]}
    worst = choices_of(Comparisons.from_frame({**table, "response": [0, 1, -1, 0]}))
    prices = ["price=5", "price=7", "price=8"]
    sets = [
        sorted(prices[code] for code in worst.item[a:b]) for a, b in zip(worst.ptr[:-1], worst.ptr[1:], strict=True)
    ]
    assert sets == [["price=5", "price=5", "price=7", "price=8"], ["price=5", "price=7", "price=8"]]
    assert worst.sign.tolist() == [1, -1]
    ranked = choices_of(Comparisons.from_frame({**table, "rank": [1, 3, 2, 4]}))
    heads = [prices[code] for code in ranked.item[ranked.ptr[:-1]]]
    assert (heads, np.diff(ranked.ptr).tolist()) == (["price=5", "price=7", "price=5"], [4, 3, 2])


def test_chances_of_equal_alternatives_are_those_of_as_many():
    _, _, table = study(600, seed=2)
    answers = Comparisons.from_frame(table)
    model = fitted(answers, answers.item_table)
    b = dict(model.summary().table.select("attribute", "estimate").rows())
    first, second = "milk=0, price=1", "milk=1, price=2"
    assert {first, second} <= set(answers.items.ids)
    asked = {"task": [0] * 3, "item": [first, second, second]}
    odds = np.exp([b["price"], *[2 * b["price"] + b["milk"]] * 2])
    np.testing.assert_allclose(model.predict_choice(asked), odds / odds.sum(), atol=2e-3)  # over draws
    # In a market what is alike has names.
    new = {"item": ["copy"], "price": [2.0], "milk": [1.0]}
    market = pl.DataFrame(model.worth.simulate([first, second, "copy"], items=new))
    shares = dict(market.select("item", "share").rows())
    np.testing.assert_allclose([shares[one] for one in (first, second, "copy")], model.predict_choice(asked), atol=1e-4)
    assert shares[second] == pytest.approx(shares["copy"], abs=EXACT)


def test_a_file_of_equal_profiles_says_so(tmp_path):
    _, _, table = study(30, seed=3)
    table.write_csv(tmp_path / "study.csv")
    assert "each counts, as often as it was shown" in " ".join(read(tmp_path / "study.csv").intake.notes)
