"""The gradient of the evidence by finite differences, and the search for hyper-parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.errors import DataError, PredilectError
from predilect.inference.gaussian.kernels import Scaled, Stationary, squared_exponential
from predilect.inference.latent.evidence import METHODS, evidence_gradient, maximise_evidence
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.views import Probit
from simulate import random_pairs
from single_problems import small
from tolerances import ITERATIVE

every_method = pytest.mark.parametrize("method", list(METHODS))


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("space", ["items", "answers"])
def test_the_gradient_in_every_direction_of_the_covariance(method, pairs, space):
    s = small(40, n_items=6, n_answers=14, delta=0.4, scale=2.0, pairs=pairs, repeated=True)
    s = s._replace(K=s.K + 0.1 * np.eye(6))
    strict = {"tolerance": 1e-12, "space": space}
    gradient = evidence_gradient(s.fit(METHODS[method], **strict))
    rng = np.random.default_rng(1)
    step = 1e-5
    for _ in range(3):
        direction = rng.standard_normal((6, 6))
        direction = 0.5 * (direction + direction.T)
        up, down = (s.fit(METHODS[method], K=s.K + sign * step * direction, **strict).evidence for sign in (1, -1))
        slope = (up - down) / (2 * step)
        assert abs(slope - np.sum(gradient * direction)) < ITERATIVE * max(1.0, abs(slope))


def test_without_the_path_through_the_mode_laplace_fails_that_test():
    s = small(41, n_items=6, n_answers=14, scale=2.0)
    fit = s.fit(METHODS["laplace"], tolerance=1e-12)
    whole = evidence_gradient(fit)
    explicit = evidence_gradient(replace(fit, method="ep"))
    assert np.abs(whole - explicit).max() > 1e-3


def answers(seed=0, n_items=25, n_answers=300, amplitude=4.0, length=0.8):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n_items, 2))
    K = amplitude * squared_exponential(x, x, length) + 1e-9 * np.eye(n_items)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n_items)
    left, right = random_pairs(rng, n_answers, n_items)
    t = f[left] - f[right] + rng.standard_normal(n_answers)
    outcome = np.where(t > 0.3, 1, np.where(t < -0.3, -1, 0))
    return x, left, right, outcome, None, Probit(0.3)


KERNEL = Scaled(Stationary(np.array([1.0]), "squared-exponential"), 1.0)


@pytest.mark.parametrize(
    "method",
    [pytest.param(method, marks=pytest.mark.slow) if method == "variational" else method for method in METHODS],
)
def test_the_search_finds_a_maximum_near_the_truth(method):
    data = answers()
    found = maximise_evidence(KERNEL, *data, method=method)
    assert found.report.converged
    assert found.at_bound == ()
    variance, length = np.exp(found.kernel.theta)
    assert 1.0 < variance < 16.0
    assert 0.5 < length < 1.3
    # a maximum: every neighbour is worse, and the gradient is that of the search
    for shift in np.vstack([np.eye(2), -np.eye(2)]) * 0.05:
        neighbour = found.kernel.with_theta(found.kernel.theta + shift)
        assert METHODS[method](Problem.of(neighbour(data[0]), *data[1:])).evidence < found.fit.evidence
    assert np.abs(found.gradient).max() < 0.01


@every_method
def test_the_gradient_in_hyper_parameters(method):
    x, *columns = answers(1, n_items=8, n_answers=30)
    theta, step = np.array([0.4, 0.2]), 1e-5
    kernel = KERNEL.with_theta(theta)

    def evidence(theta):
        return METHODS[method](Problem.of(KERNEL.with_theta(theta)(x), *columns), tolerance=1e-12)

    gradient = kernel.gradient(x, None, evidence_gradient(evidence(theta)))
    for k, e in enumerate(np.eye(2)):
        slope = (evidence(theta + step * e).evidence - evidence(theta - step * e).evidence) / (2 * step)
        assert abs(slope - gradient[k]) < ITERATIVE * max(1.0, abs(slope))


def test_bounds_hold_fix_and_are_reported():
    data = answers(2, n_items=12, n_answers=100)
    held = maximise_evidence(KERNEL, *data, bounds={"length_scale": (1.0, 1.0)})
    assert held.kernel.kernel.length_scales[0] == pytest.approx(1.0, abs=1e-12)
    assert held.at_bound == ()
    narrow = maximise_evidence(KERNEL, *data, bounds={"variance": (0.5, 1.1), "length_scale": (0.9, 5.0)})
    assert "variance at its upper bound 1.1" in narrow.at_bound
    assert narrow.gradient[0] > 0
    assert narrow.report.converged
    everything = maximise_evidence(KERNEL, *data, bounds={"variance": (1, 1), "length_scale": (1, 1)})
    np.testing.assert_array_equal(everything.kernel.theta, KERNEL.theta)
    with pytest.raises(DataError, match="hyper-parameters that the kernel does not have: scale; it has variance, len"):
        maximise_evidence(KERNEL, *data, bounds={"scale": (1, 2)})
    with pytest.raises(DataError, match=r"length_scale starts at 1, outside its bounds \(2, 3\)"):
        maximise_evidence(KERNEL, *data, bounds={"length_scale": (2, 3)})
    with pytest.raises(DataError, match="method must be one of laplace, ep, variational"):
        maximise_evidence(KERNEL, *data, method="magic")


def test_an_unfinished_search_says_so():
    report = maximise_evidence(KERNEL, *answers(3), max_evaluations=2).report
    assert not report.converged
    assert report.residual > report.tolerance


def test_a_gradient_that_is_not_finite_is_refused():
    class Broken(Scaled):
        def gradient(self, x, y, weights):
            return np.array([1.0, np.nan])

    with pytest.raises(PredilectError, match="gradient of the evidence in length_scale is not finite at variance = 1"):
        maximise_evidence(Broken(KERNEL.kernel, 1.0), *answers(4, n_items=6, n_answers=10))
