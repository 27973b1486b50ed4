"""The median heuristic by its definition, for each rule."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from predilect.inference.gaussian.kernels import MEDIAN_RULES, matern, median_length_scales
from tolerances import EXACT

X = np.column_stack([
    np.random.default_rng(0).normal(size=21),
    np.arange(21) % 3 == 0,  # two thirds of the pairs of 0/1 are equal ... the median difference is 0
    np.arange(21) ** 2.0,
    np.full(21, 5.0),
])  # fmt: skip


def by_definition(column, only_different):
    differences = [abs(a - b) for a, b in combinations(column.tolist(), 2)]
    different = [d for d in differences if d > 0]
    median = float(np.median(different if only_different else differences)) if different else 0.0
    return median or (float(np.median(different)) if different else 0.0)


@pytest.mark.parametrize("rule", MEDIAN_RULES)
def test_each_rule_by_its_definition(rule):
    only = rule in ("per-feature", "root", "code")
    factor = {"preprint": 4.0, "arguments": 40.0, "root": 2.0}.get(rule, 1.0)
    expected = [factor * by_definition(X[:, d], only) for d in range(3)] + [1.0]
    np.testing.assert_allclose(median_length_scales(X, rule), expected, atol=EXACT)


def test_rules_differ_where_differences_are_often_zero():
    # Half of 0, a quarter each of 1 and 4: differences 0, 1, 3, 4; the median of all is smaller than of those not zero.
    column = np.repeat([0.0, 1.0, 4.0], [10, 5, 5])[:, None]
    assert median_length_scales(column, "2020")[0] == by_definition(column[:, 0], False) == 1.0
    assert median_length_scales(column, "code")[0] == by_definition(column[:, 0], True) == 3.0
    half = np.array([[0.0], [0.0], [0.0], [1.0]])  # three differences of 0, three of 1
    assert median_length_scales(half, "2020")[0] == by_definition(half[:, 0], False) == 0.5


@pytest.mark.parametrize("n_features", [200, 201])
def test_more_than_two_hundred_features(n_features):
    x = np.random.default_rng(1).normal(size=(15, n_features))
    plain = np.array([by_definition(x[:, d], True) for d in range(n_features)])
    root = np.sqrt(n_features)
    expected = {
        "per-feature": plain * (root if n_features > 200 else 1.0),
        "code": plain * (root if n_features > 200 else 1.0),
        "root": plain * root,
        "2020": plain,
        "preprint": plain * n_features,
        "arguments": plain * 20.0 * root,
    }
    for rule in MEDIAN_RULES:
        np.testing.assert_allclose(median_length_scales(x, rule), expected[rule], rtol=EXACT)


def test_many_rows_are_drawn_by_the_seed():
    x = np.random.default_rng(2).normal(size=(3000, 2))
    found = median_length_scales(x)
    np.testing.assert_array_equal(median_length_scales(x), found)
    assert not np.array_equal(median_length_scales(x, random_state=1), found)
    # The median of |a - b| of two standard normals is √2 · 0.6745; a thousand rows give it to 2 % or so.
    np.testing.assert_allclose(found, 0.9539, rtol=0.06)
    np.testing.assert_array_equal(median_length_scales(x[:1000]), median_length_scales(x[:1000], random_state=1))


def test_a_feature_that_is_rarely_not_zero_is_not_taken_for_a_constant():
    x = np.zeros((5000, 2))
    x[[17, 2345, 4999], 0] = 3.0
    for rule, seed in (("2020", 0), ("2020", 1), ("per-feature", 0), ("per-feature", 1)):
        assert median_length_scales(x, rule, random_state=seed).tolist() == [3.0, 1.0]


@pytest.mark.slow
def test_ten_thousand_sparse_features():
    rng = np.random.default_rng(3)
    x = (rng.random((200, 10_000)) < 0.02) * rng.uniform(0.5, 1.5, size=(200, 10_000))
    found = median_length_scales(x)
    filled = x.any(axis=0)
    assert np.all(found[filled] > 0.3 * np.sqrt(10_000))
    assert np.all(found[~filled] == 1.0)
    assert np.isfinite(matern(found)(x[:5])).all()


def test_few_rows():
    assert median_length_scales(np.zeros((0, 2))).tolist() == [1.0, 1.0]
    assert median_length_scales(np.ones((1, 2))).tolist() == [1.0, 1.0]
    assert median_length_scales(np.array([[1.0], [4.0]])).tolist() == [3.0]
    assert median_length_scales(np.zeros((3, 0))).shape == (0,)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="the rule must be one of per-feature"):
        median_length_scales(X, "mean")
    with pytest.raises(ValueError, match="finite numbers; fill gaps"):
        median_length_scales(np.array([[np.nan], [1.0]]))
    with pytest.raises(ValueError, match="array of shape"):
        median_length_scales(X[:, 0])
