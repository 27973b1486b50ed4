"""Sparse inference on little, extreme and useless input, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from predilect.errors import DataError
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.sparse.fit import ScalePrior, fit_sparse
from predilect.inference.latent.sparse.stochastic import Schedule
from simulate_sparse import small

PRIOR = ScalePrior(2.0, 1.5)


@pytest.mark.parametrize("rule", ["expected", "linearised"])
@pytest.mark.parametrize("sparse", [True, False])
def test_answers_without_a_contradiction_and_with_weight_1e5(rule, sparse):
    data = small(15)
    left, right = np.arange(19), np.arange(1, 20)
    ones = np.ones(19, dtype=np.int8)
    answers = PooledAnswers(left, right, ones, np.full(19, 1e5), 20)
    fit = fit_sparse(answers, data.projection(sparse=sparse), PRIOR, rule=rule)
    m, v = fit.posterior().margins(np.zeros(19), left, right)
    assert np.isfinite(fit.bound)
    assert np.isfinite(m).all()
    assert np.all((v > 0.0) & np.isfinite(v))
    if rule == "expected" and not sparse:
        assert m.min() > 1.0


@pytest.mark.parametrize("rule", ["expected", "linearised"])
def test_one_answer(rule):
    data = small(16)
    answers = PooledAnswers(np.array([3]), np.array([5]), np.array([1], dtype=np.int8), np.ones(1), 20)
    fit = fit_sparse(answers, data.projection(), PRIOR, rule=rule, schedule=Schedule(batch_size=1))
    m, v = fit.posterior().margins(np.zeros(1), np.array([3, 5]), np.array([5, 3]))
    assert m[0] > 0.0
    assert m[0] == -m[1]
    assert v[0] > 0.0


@pytest.mark.parametrize("rule", ["expected", "linearised"])
def test_features_that_say_nothing(rule):
    data = small(17)
    same = np.ones((20, 2))
    for points in (None, np.ones((1, 2)), np.ones((3, 2))):
        projection = Projection.of(data.kernel, same, data.known, points)
        fit = fit_sparse(data.answers, projection, PRIOR, rule=rule)
        m, v = fit.posterior().margins(np.zeros(120), data.answers.left, data.answers.right)
        np.testing.assert_allclose(m, 0.0, atol=1e-2)
        assert np.isfinite(v).all()
        assert v.max() < 0.01


def test_close_points_are_as_good_as_one():
    data = small(18)
    twice = np.vstack([data.points, data.points + 1e-9])
    once = fit_sparse(data.answers, data.projection(), PRIOR, tolerance=1e-10)
    both = fit_sparse(data.answers, Projection.of(data.kernel, data.X, data.known, twice), ScalePrior(2.0, 1.5))
    assert both.report.jitter > 0.0
    assert np.isfinite(both.bound)
    m, _ = once.posterior().utilities()
    again, _ = both.posterior().utilities()
    assert np.corrcoef(m, again)[0, 1] > 0.98


def test_items_without_features_are_learned_apart():
    data = small(19)
    known = data.known
    known[[4, 11]] = False
    data.X[~known] = 0.0
    fit = fit_sparse(data.answers, Projection.of(data.kernel, data.X, known, data.points), PRIOR)
    assert fit.projection.n_points == 8
    _, C = fit.posterior().utilities()
    assert np.all(np.diag(C)[~known] < 1.0 / fit.scale.value)  # their answers were not lost


def test_what_cannot_be_fitted_is_refused():
    data = small(20)
    a, projection = data.answers, data.projection()
    with pytest.raises(DataError, match="at least one answer"):
        fit_sparse(PooledAnswers(a.left[:0], a.right[:0], a.outcome[:0], a.weight[:0], 20), projection)
    with pytest.raises(DataError, match="21 items"):
        fit_sparse(dataclasses.replace(a, n_items=21), projection)
    with pytest.raises(DataError, match="threshold is 0"):
        fit_sparse(dataclasses.replace(a, outcome=np.zeros(120, dtype=np.int8)), projection)
    with pytest.raises(ValueError, match="expected, linearised"):
        fit_sparse(a, projection, rule="laplace")
    with pytest.raises(ValueError, match="positive shape and rate"):
        fit_sparse(a, projection, ScalePrior(0.0, 1.0))
    for wrong in ({"batch_size": 0}, {"forgetting_rate": 2.0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=r"batch|forgetting|iteration"):
            Schedule(**wrong)
