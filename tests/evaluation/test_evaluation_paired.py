"""Paired differences: by hand, against a plain t test, and whether the interval covers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predilect.errors import DataError
from predilect.evaluation import paired_difference
from tolerances import EXACT, STATISTICAL


def test_by_hand() -> None:
    result = paired_difference([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], ["a", "a", "b"])
    # Groups: a (sum 3, n 2), b (3, 1), mean 2; residuals -1 and 1; 2/1 * 2 = 4; sqrt(4)/3.
    assert result.mean == 2.0
    assert abs(result.standard_error - 2 / 3) < EXACT
    assert result.n_groups == 2
    assert result.to_dict()["mean"] == 2.0


def test_one_answer_each_is_the_usual_standard_error() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(400), rng.random(400)
    result = paired_difference(a, b, np.arange(400))
    assert abs(result.mean - (a - b).mean()) < EXACT
    assert abs(result.standard_error - (a - b).std(ddof=1) / 20) < EXACT
    assert abs((result.upper - result.lower) / (2 * 1.96 * result.standard_error) - 1) < 0.1


def test_weights_are_repeats() -> None:
    rng = np.random.default_rng(1)
    a, b, w, who = rng.random(30), rng.random(30), rng.integers(1, 4, 30), rng.integers(0, 8, 30)
    weighted = paired_difference(a, b, who, weight=w)
    repeated = paired_difference(np.repeat(a, w), np.repeat(b, w), np.repeat(who, w))
    np.testing.assert_allclose(list(weighted.to_dict().values()), list(repeated.to_dict().values()), rtol=EXACT)


def test_people_are_resampled_and_not_answers() -> None:
    # 20 answers of a person say the same: the effective sample is people.
    rng = np.random.default_rng(2)
    each = rng.standard_normal(50)
    once = paired_difference(each, np.zeros(50), np.arange(50))
    often = paired_difference(np.repeat(each, 20), np.zeros(1000), np.repeat(np.arange(50), 20))
    np.testing.assert_allclose(list(once.to_dict().values()), list(often.to_dict().values()), rtol=EXACT)


def test_interval_covers() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for seed in range(200):
        who = np.repeat(np.arange(40), 5)
        loss = 0.3 + rng.standard_normal(40)[who] + rng.standard_normal(200)
        result = paired_difference(loss, np.zeros(200), who, seed, n_resamples=300)
        hits += result.lower < 0.3 < result.upper
    assert abs(hits / 200 - 0.94) < STATISTICAL * math.sqrt(0.94 * 0.06 / 200)


@pytest.mark.parametrize("n_groups", [5, 9])
def test_interval_covers_where_people_are_few(n_groups) -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for seed in range(400):
        who = np.repeat(np.arange(n_groups), rng.integers(5, 40, n_groups))
        loss = 0.3 + rng.standard_normal(n_groups)[who] + rng.standard_normal(len(who))
        result = paired_difference(loss, np.zeros(len(who)), who, seed, n_resamples=300)
        hits += result.lower < 0.3 < result.upper
    assert abs(hits / 400 - 0.94) < STATISTICAL * math.sqrt(0.94 * 0.06 / 400)


def test_same_seed_same_interval() -> None:
    rng = np.random.default_rng(5)
    a, b, who = rng.random(90), rng.random(90), np.repeat(np.arange(30), 3)
    assert paired_difference(a, b, who, 7) == paired_difference(a, b, who, 7)
    assert paired_difference(a, b, who, 7) != paired_difference(a, b, who, 8)


def test_a_single_person_has_no_error() -> None:
    result = paired_difference([1.0, 2.0], [0.0, 0.0], [3, 3])
    assert result.mean == 1.5
    assert math.isnan(result.standard_error)
    assert math.isnan(result.lower)


def test_wrong_input_is_named() -> None:
    with pytest.raises(DataError, match="one shape"):
        paired_difference([1.0], [1.0, 2.0], [0, 0])
    with pytest.raises(DataError, match="infinite"):
        paired_difference([1.0, np.inf], [1.0, 2.0], [0, 1])
