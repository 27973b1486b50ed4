"""Designs of choice studies: errors by hand, what is promised beside what a fit says, what cannot be had."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from predilect import MixedLogit
from predilect.decisions import design
from predilect.errors import DataError
from referees import coordinate_exchange
from tolerances import EXACT

LEVELS = {"price": [1, 2, 3], "brand": ["A", "B", "C"], "size": ["s", "m", "l"], "care": ["yes", "no"]}
PRIORS = {"price": -0.6, "brand": {"A": 0.5}, "care": {"yes": 0.3}}
EFFECTS = np.vstack([np.eye(2), [-1.0, -1.0]])
CODINGS = [np.array([[-1.0], [0.0], [1.0]]), EFFECTS, EFFECTS, np.array([[1.0], [-1.0]])]
B = np.array([-0.6, 1 / 3, -1 / 6, 0.0, 0.0, 0.15])


def coded(table, n_tasks, k):
    """Columns (T, k, P) of a design's table."""
    parts = [
        one[[LEVELS[name].index(value) for value in table[name]]] for name, one in zip(LEVELS, CODINGS, strict=True)
    ]
    return np.concatenate(parts, axis=1).reshape(n_tasks, k, -1)


def test_the_error_of_a_design_is_that_of_its_table():
    found = design(LEVELS, 8, 3, priors=PRIORS, n_starts=3)
    X = coded(found.table, 8, 3)
    assert found.d_error == pytest.approx(coordinate_exchange.d_error(X, B), rel=EXACT)
    H = sum(x.T @ (np.diag(p) - np.outer(p, p)) @ x for x in X for p in [np.exp(x @ B) / np.exp(x @ B).sum()])
    V = np.linalg.inv(H) / 50
    se = found.expected(50).filter(pl.col("attribute").is_in(["price", "care"]))["se"]
    np.testing.assert_allclose(se, np.sqrt(np.diagonal(V))[[0, 5, 5]], rtol=EXACT)
    last = np.array([0, -1.0, -1.0, 0, 0, 0])
    row = found.expected(50).filter(attribute="brand", level="C")
    assert row["se"][0] == pytest.approx(np.sqrt(last @ V @ last), rel=EXACT)
    # The people that a width needs have it.
    n = found.people_needed(width=0.2).filter(attribute="price")["people"][0]
    assert found.expected(n).filter(attribute="price")["width"][0] <= 0.2 < found.expected(n - 1).filter(
        attribute="price")["width"][0]  # fmt: skip
    n = found.people_needed(power=0.8).filter(attribute="price")["people"][0]
    assert found.expected(n).filter(attribute="price")["power"][0] == pytest.approx(0.8, abs=0.05)
    assert found.people_needed(power=0.8).filter(attribute="size")["people"].null_count() == 3


@pytest.mark.slow
def test_the_error_is_about_the_least_that_a_referee_finds():
    found = design(LEVELS, 6, 3, priors=PRIORS)
    assert found.d_error <= 1.02 * coordinate_exchange.best_of(CODINGS, 6, 3, B, 10, 0)


def test_a_fit_to_made_up_answers_has_the_errors_that_were_promised():
    found = design(
        LEVELS, 6, 2, priors=PRIORS | {"None": (-0.5, 0.0)}, outside=True, n_blocks=2, balanced=True, n_starts=2
    )
    summary = MixedLogit(distributions="fixed").fit(found.answers(300)).summary().table
    both = found.expected(300).join(pl.DataFrame(summary), on=["attribute", "level"])
    assert len(both) == 10
    np.testing.assert_allclose(both["hessian"], both["se"], rtol=0.05)
    z = (both["estimate"] - both["prior"]) / both["se"]
    assert z.abs().max() < 4.0
    assert set(found.balance["count"].to_list()) == {8, 12}
    assert found.table.filter(alternative="None")["price"].null_count() == 12
    assert found.table["block"].unique().to_list() == [1, 2]


@pytest.mark.slow
def test_a_bayesian_design_is_the_best_on_average():
    priors = PRIORS | {"price": (-0.6, 0.5)}
    bayes = design(LEVELS, 6, 3, priors=priors, n_starts=4)
    sure = design(LEVELS, 6, 3, priors=PRIORS, n_starts=4)
    draws = bayes._priors
    assert draws.shape == (64, 6)
    np.testing.assert_allclose(draws.mean(axis=0), B, atol=EXACT)
    errors = [np.mean([coordinate_exchange.d_error(coded(one.table, 6, 3), b) for b in draws]) for one in (bayes, sure)]
    assert bayes.d_error == pytest.approx(errors[0], rel=EXACT)
    assert errors[0] <= errors[1] * 1.001


@pytest.mark.slow
def test_prohibitions_hold_and_no_task_shows_an_alternative_twice():
    prohibited = [{"brand": "A", "price": 3}, {"size": "l", "care": "no"}]
    for balanced in (False, True):
        table = design(LEVELS, 12, 3, prohibited=prohibited, balanced=balanced, n_starts=2).table
        assert not len(table.filter(brand="A", price=3))
        assert not len(table.filter(size="l", care="no"))
        assert not table.select("task", *LEVELS).is_duplicated().any()


def test_the_same_seed_gives_the_same_design():
    first, second = (design(LEVELS, 6, 2, n_starts=2, random_state=4).table for _ in range(2))
    assert first.equals(second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attributes": {}}, "there are no attributes"),
        ({"attributes": {"a": [1]}}, "fewer than two"), ({"attributes": {"a": [1, 1]}}, "one of them twice"),
        ({"balanced": True, "n_tasks": 5}, r'"price" has 3 levels, and 5 tasks of 2 show 10 .*multiple of 3 tasks'),
        ({"prohibited": [{"price": 1}]}, "leave no alternative with price=1"),
        ({"prohibited": [{"colour": "red"}]}, 'names "colour", which is no attribute'),
        ({"prohibited": [{"price": 9}]}, "names the level 9"), ({"prohibited": [{}]}, "names no level"),
        ({"attributes": {"a": ["x", "y"], "b": ["x", "y"]}, "n_alternatives": 3,
          "prohibited": [{"a": "x", "b": "x"}, {"a": "y", "b": "y"}]}, "leave 2 alternatives, and a task shows 3"),
        ({"attributes": {"a": ["x", "y"], "b": [1, 2]}, "n_alternatives": 5}, "levels make 4 alternatives"),
        ({"priors": {"colour": 1.0}}, "priors name"), ({"priors": {"brand": 1.0}}, "is a mapping from levels"),
        ({"priors": {"brand": {"D": 1.0}}}, "names the level"), ({"priors": {"price": "low"}}, r"or \(mean, sd\)"),
        ({"n_tasks": 1}, "cannot tell the 6 coefficients apart"),
    ],
)  # fmt: skip
def test_designs_that_cannot_be_had(settings, message):
    given = {"attributes": LEVELS, "n_tasks": 6, "n_alternatives": 2, "n_starts": 2} | settings
    with pytest.raises(DataError, match=message):
        design(**given)


def test_arguments_out_of_range():
    with pytest.raises(ValueError, match="n_alternatives must be a whole number from 2 up"):
        design(LEVELS, 6, 1)
    found = design(LEVELS, 6, 2, n_starts=1)
    with pytest.raises(DataError, match="give either width"):
        found.people_needed()
    with pytest.raises(DataError, match="power is a probability"):
        found.people_needed(power=2.0)
    with pytest.raises(DataError, match="width is a positive number"):
        found.people_needed(width=0.0)


def test_print_shows_a_design_in_short():
    priors = {"price": (-0.5, 0.1), "care": {"yes": 0.3}, "None": -1.0}
    found = design({"price": [1, 2, 3], "care": ["yes", "no"]}, 3, 2, outside=True, n_blocks=2, priors=priors)
    text = str(found)
    assert repr(found) == text
    assert text.startswith("Design of 3 tasks in each of 2 versions, 2 alternatives and none of these a task; D-error ")
    assert "price: 1, 2, 3\ncare: yes, no\n" in text
    # Effects of levels sum to 0, so that .3 for one of two is .15 each way.
    assert "price -0.5, care yes 0.15, care no -0.15, None -1" in text
    lines = text.split("The first task:\n")[1].splitlines()
    assert lines[0].split() == ["alternative", "price", "care"]
    assert [line.split() for line in lines[1:3]] == [
        [str(one) for one in row] for row in found.table.drop("block", "task")[:2].iter_rows()
    ]
    assert lines[3] == "None"
    assert len(text) < 700
    assert "Priors" not in str(design({"price": [1, 2, 3]}, 3, 2))


def test_overlap_counts_levels_that_alternatives_share():
    found = design({"price": [1, 2, 3], "care": ["yes", "no"]}, 4, 3, n_starts=2)
    for row in found.overlap.iter_rows(named=True):
        shares = [3 - len(set(task)) for task in found.table[row["attribute"]].to_numpy().reshape(4, 3).tolist()]
        assert row["overlap"] == pytest.approx(np.mean(shares) / 2)
        assert row["least"] == {"price": 0.0, "care": 0.5}[row["attribute"]]


def test_people_who_differ_by_nothing_give_the_errors_of_a_logit():
    found = design(LEVELS, 6, 3, priors=PRIORS, n_starts=2)
    nothing = found.expected(50, spreads={"price": 0.0})
    assert nothing.equals(found.expected(50))
    little, more = (found.expected(50, spreads={"price": sd}).filter(attribute="price")["se"][0] for sd in (1e-4, 1.0))
    assert little == pytest.approx(found.expected(50).filter(attribute="price")["se"][0], rel=1e-3)
    assert more > 1.5 * little
    # Where people differ by far more than answers leave open, the error is that of a mean of so many people.
    for name, row in (("price", 0), ("care", 0)):
        far = found.expected(400, spreads={name: 50.0}).filter(attribute=name)["se"][row]
        assert far > 50.0 / np.sqrt(400)


@pytest.mark.slow
def test_the_errors_of_people_who_differ_are_those_of_a_mixed_logit():
    spreads = {"price": 0.6, "brand": 0.8, "care": 0.5}
    found = design(LEVELS, 8, 3, priors=PRIORS, n_starts=3, n_blocks=2)
    said = found.expected(150, spreads=spreads)
    errors = []
    for seed in range(3):
        model = MixedLogit(method="simulated", covariance="diagonal", n_draws=200, n_jobs=1)
        errors.append(model.fit(found.answers(150, seed, spreads=spreads)).summary().table.filter(what="mean"))
    mean = pl.concat(errors).group_by("attribute", "level").agg(pl.col("hessian").mean())
    both = said.join(mean, on=["attribute", "level"])
    assert len(both) == 9
    np.testing.assert_allclose(both["se"], both["hessian"], rtol=0.2)  # of one study these vary by a tenth
