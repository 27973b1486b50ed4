"""The three views of a likelihood: what belongs together, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp
from scipy.stats import norm

from predilect.errors import DataError
from predilect.inference.likelihoods import probit
from predilect.inference.likelihoods.expectation import expected_arrays, value_and_slope
from predilect.inference.likelihoods.logit import Logit, tilted_scalar
from predilect.inference.likelihoods.views import Likelihood, PairLikelihood, Probit
from predilect.inference.people.ep import answers_evidence, em_pass, refresh_sites
from referees.gaussian_likelihood import Gaussian
from tolerances import EXACT, ITERATIVE

CASES = [
    (Probit(), np.array([1, -1, 1, -1, 1, -1])),
    (Probit(0.4), np.array([1, 0, -1, 0, 0, 1])),
    (Logit(), np.array([1, -1, 1, -1, 1, -1])),
    (Logit(0.4), np.array([1, 0, -1, 0, 0, 1])),
    (Gaussian(0.3), np.array([0.2, -1.0, 3.0, 0.0, 1.0, 2.0])),
]
M = np.array([-4.0, -1.0, 0.0, 0.5, 2.0, 7.0])
STEP = 1e-5


@pytest.mark.parametrize(("likelihood", "y"), CASES)
def test_derivatives_of_every_view(likelihood, y):
    assert isinstance(likelihood, Likelihood)
    v = np.full(6, 0.8)
    for view in (likelihood.at, lambda y, z: likelihood.tilted(y, z, v), lambda y, z: likelihood.expected(y, z, v)):
        _, slope, curvature = view(y, M)
        up, down = view(y, M + STEP), view(y, M - STEP)
        np.testing.assert_allclose((up[0] - down[0]) / (2 * STEP), slope, rtol=ITERATIVE, atol=ITERATIVE)
        # -2 ∂/∂v of the expected view equals its -∂²/∂m² up to the quadrature's own error
        np.testing.assert_allclose(-(up[1] - down[1]) / (2 * STEP), curvature, rtol=ITERATIVE, atol=ITERATIVE)
        assert np.all(curvature >= 0)


@pytest.mark.parametrize(
    ("likelihood", "y"), [case for case in CASES if isinstance(case[0], PairLikelihood) and case[0].delta]
)
def test_derivatives_in_the_tie_threshold(likelihood, y):
    v = np.full(6, 0.8)
    *_, slope, curvature = likelihood.all_tilted(y, M, v, likelihood.delta)
    up, down = (likelihood.all_tilted(y, M, v, likelihood.delta + step) for step in (STEP, -STEP))
    np.testing.assert_allclose((up[0] - down[0]) / (2 * STEP), slope, rtol=ITERATIVE, atol=ITERATIVE)
    np.testing.assert_allclose((up[3] - down[3]) / (2 * STEP), curvature, rtol=ITERATIVE, atol=ITERATIVE)


@pytest.mark.parametrize(("likelihood", "y"), CASES)
def test_the_slope_of_the_curvature(likelihood, y):
    up, down = likelihood.at(y, M + STEP)[2], likelihood.at(y, M - STEP)[2]
    np.testing.assert_allclose((up - down) / (2 * STEP), likelihood.curvature_slope(y, M), atol=1e-8)


def test_the_slope_of_the_curvature_in_the_tails():
    for y, delta, limit in ((1, 0.0, 0.0), (0, 0.5, 0.0), (-1, 0.5, 0.0)):
        for z in (-60.0, 60.0):
            # c goes to 0 or to 1 - 1/r², whose slope is of the order of 2/|r|³
            value = Probit(delta).curvature_slope(np.array([y]), np.array([z]))[0]
            assert abs(value - limit) < 3.0 / 59.0**3 + 1e-8


def test_jensen_orders_the_views_and_without_variance_they_are_one():
    v = np.array([0.1, 1.0, 3.0, 10.0, 0.5, 2.0])
    for likelihood, y in CASES:
        if isinstance(likelihood, PairLikelihood):
            assert np.all(likelihood.expected(y, M, v)[0] < likelihood.tilted(y, M, v)[0])
        for view in (likelihood.tilted, likelihood.expected):
            for one, other in zip(view(y, M, np.zeros(6)), likelihood.at(y, M), strict=True):
                np.testing.assert_allclose(one, other, rtol=EXACT, atol=EXACT)


def test_the_gaussian_views_are_densities():
    y, v = np.array([0.3, -2.0]), np.array([0.5, 4.0])
    likelihood = Gaussian(0.25)
    np.testing.assert_allclose(likelihood.at(y, M[:2])[0], norm.logpdf(y, M[:2], 0.5), atol=EXACT)
    np.testing.assert_allclose(likelihood.tilted(y, M[:2], v)[0], norm.logpdf(y, M[:2], np.sqrt(0.25 + v)), atol=EXACT)
    x, omega = np.polynomial.hermite_e.hermegauss(10)
    expectation = [
        omega @ norm.logpdf(a, b + np.sqrt(c) * x, 0.5) / omega.sum() for a, b, c in zip(y, M, v, strict=False)
    ]
    np.testing.assert_allclose(likelihood.expected(y, M[:2], v)[0], expectation, atol=EXACT)


@pytest.mark.parametrize("likelihood", [case[0] for case in CASES if isinstance(case[0], PairLikelihood)])
def test_probabilities_of_pairs_sum_to_1_and_nothing_is_lost_far_out(likelihood):
    m, v = np.array([-40.0, -3.0, 0.0, 2.0, 40.0]), np.array([0.5, 4.0, 0.0, 0.7, 2.0])
    chances = likelihood.probabilities(m, v, likelihood.delta)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=EXACT)
    for column, y in ((0, 1), (2, -1)):
        value, slope, curvature = likelihood.tilted(np.full(5, y), m, v)
        np.testing.assert_allclose(np.exp(value), chances[:, column], atol=EXACT)
        assert np.isfinite(value).all()
        assert np.all(value[[0, 4]] != 0.0)
        assert np.all(y * slope > 0.0)
        assert np.all(curvature >= 0.0)


def test_loops_of_another_likelihood_do_without_the_probits_functions():
    def called(loop):
        source = loop.py_func
        for f in (source.__globals__.get(name) for name in source.__code__.co_names):
            if isinstance(f, type(loop)):
                yield f
                if f is not tilted_scalar:  # which takes from the probit what it needs
                    yield from called(f)

    loops = [em_pass, refresh_sites, answers_evidence, probit.tilted_arrays, expected_arrays]
    for loop in loops:
        inside = set(called(Logit.compiled(loop)))
        assert tilted_scalar in inside
        assert Probit.compiled(loop) is loop
        assert not {probit.tilted_scalar, probit.moments_scalar, value_and_slope} & inside
        assert not [f for f in inside if f.py_func.__module__.startswith("predilect.inference.likelihoods.special")]


def logistic_quadrature(y, m, v, delta):
    """log E P(y | z) by adaptive quadrature over z in pieces, between peaks and turns."""
    s = np.sqrt(v)

    def log_p(z):
        if y:
            return log_expit(y * z - delta)
        return np.log(-np.expm1(-2.0 * delta)) + log_expit(delta + z) + log_expit(delta - z)

    turns = [side * delta + t for side in (-1, 1) for t in (-90, -40, -15, -5, 0, 5, 15, 40, 90)]
    peaks = [m + side * v + t * s for side in (-1, 0, 1) for t in (-12, -8, -5, -3, -1.5, 0, 1.5, 3, 5, 8, 12)]
    edges = np.unique([z for z in turns + peaks if abs(z - m) <= max(v, 0.0) + 13.0 * s])
    x, weight = np.polynomial.legendre.leggauss(60)
    low, high = edges[:-1, None], edges[1:, None]
    z, half = 0.5 * (low + high + (high - low) * x), 0.5 * (high - low)
    return logsumexp(log_p(z) + norm.logpdf(z, m, s), b=half * weight)


@pytest.mark.parametrize("v", [1.0, 15.9, 16.0, 300.0, 1e4, 1e7])
@pytest.mark.parametrize("of_v", [0.0, 0.3, -0.3, -0.49, -0.52, -3.0])
def test_the_logistic_quadrature_holds_for_any_variance(v, of_v):
    for y, delta in ((1, 0.0), (-1, 0.4), (0, 0.4), (0, 6.0)):
        m = of_v * v + 0.7
        value, slope, curvature, slope_delta, second_delta = (part[0] for part in Logit.all_tilted(y, m, v, delta))
        assert value == pytest.approx(logistic_quadrature(y, m, v, delta), rel=EXACT, abs=EXACT)
        step, unit = 1e-4 * np.sqrt(v), np.sqrt(v)
        up, down = (Logit.all_tilted(y, m + sign * step, v, delta) for sign in (1, -1))
        near = ITERATIVE + 1e-8 * abs(value)  # what differences of large values leave
        assert slope * unit == pytest.approx((up[0] - down[0])[0] / (2 * step) * unit, rel=1e-5, abs=near)
        assert curvature * v == pytest.approx(-(up[1] - down[1])[0] / (2 * step) * v, rel=1e-4, abs=near)
        if delta:
            up, down = (Logit.all_tilted(y, m, v, delta + sign * 1e-4) for sign in (1, -1))
            assert slope_delta == pytest.approx((up[0] - down[0])[0] / 2e-4, rel=1e-5, abs=near)
            assert second_delta == pytest.approx((up[3] - down[3])[0] / 2e-4, rel=1e-4, abs=near)


def test_the_logistic_quadrature_ends_and_becomes_that_of_the_normal():
    for v in (1e12, 1e18, 1e26):  # the noise is nothing beside it
        m = np.array([-3.0, 0.0, 0.5]) * np.sqrt(v)
        np.testing.assert_allclose(Logit.all_tilted(1, m, v)[0], norm.logcdf(m / np.sqrt(v)), rtol=EXACT)


def test_refusals_say_what_came():
    with pytest.raises(
        DataError, match=r"2 outcomes are none of \+1 \(left\), 0 \(tie\) and -1 .*row 1, np.int64\(3\)"
    ):
        Probit().check(np.array([1, 3, 5]))
    with pytest.raises(DataError, match=r"1 outcomes are ties.*Probit\(delta=\.\.\.\)"):
        Probit().check(np.array([1, 0]))
    with pytest.raises(DataError, match="tie threshold must be"):
        Probit(-1.0)
    with pytest.raises(DataError, match="tie threshold must be"):
        Probit(float("nan"))
    with pytest.raises(DataError, match="variance of the noise"):
        Gaussian(0.0)
    with pytest.raises(DataError, match=r"1 outcomes are not finite numbers \(first: row 1\)"):
        Gaussian().check(np.array([1.0, np.nan]))
