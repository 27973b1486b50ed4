"""Log Φ and φ/Φ in both tails."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

from predilect.inference.likelihoods.special import log_ndtr, log_ndtr_scalar, mills_ratio, mills_ratio_scalar
from tolerances import EXACT

DIGITS = 1e-13  # relative
GRID = np.concatenate([np.linspace(-40.0, 40.0, 8001), -np.logspace(-9, 0, 50), np.logspace(-9, 0, 50), [-5.0, 5.0]])


def test_log_ndtr_equals_scipy():
    # Beyond 37.5 the complement is a denormal number, of which neither side keeps 13 digits.
    z = GRID[GRID <= 37.5]
    np.testing.assert_allclose(log_ndtr(z), scipy.special.log_ndtr(z), rtol=DIGITS, atol=0)
    assert np.all(np.abs(log_ndtr(np.linspace(37.5, 1e4, 1000))) < 1e-300)


def test_log_ndtr_far_in_the_lower_tail():
    # log Φ(z) = log φ(z) - log(-z) - 1/z² + O(z⁻⁴)
    z = -np.logspace(2, 4, 200)
    series = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(-z) + np.log1p(-1 / z**2 + 3 / z**4 - 15 / z**6)
    np.testing.assert_allclose(log_ndtr(z), series, rtol=DIGITS)
    np.testing.assert_allclose(log_ndtr(z), scipy.special.log_ndtr(z), rtol=DIGITS)


def test_mills_ratio_equals_erfcx():
    # Above, erfcx overflows slowly and rounding its argument already costs digits; there ρ is the density itself.
    low, high = GRID[GRID <= 9.0], GRID[(GRID > 9.0) & (GRID <= 37.0)]
    by_erfcx = np.sqrt(2 / np.pi) / scipy.special.erfcx(-low / np.sqrt(2))
    np.testing.assert_allclose(mills_ratio(low), by_erfcx, rtol=DIGITS)
    np.testing.assert_allclose(mills_ratio(high), scipy.stats.norm.pdf(high), rtol=DIGITS)


@pytest.mark.parametrize(
    ("z", "value", "last_digit"),
    [
        (-40.0, 40.024968847207, 1e-12),
        (-10.0, 10.0980932339625, 1e-13),
        (0.0, 0.7978845608, 1e-10),
        (-1e4, 10000.0001, 1e-4),
    ],
)
def test_mills_ratio_at_the_printed_values(z, value, last_digit):
    assert abs(mills_ratio(z) - value) <= last_digit


def test_nothing_overflows_or_is_lost_up_to_ten_thousand():
    z = np.linspace(-1e4, 1e4, 20001)
    for values in (mills_ratio(z), log_ndtr(z)):
        assert np.all(np.isfinite(values))
    assert np.all(mills_ratio(z) >= 0)
    assert np.all(mills_ratio(z[z < 38]) > 0)
    assert np.all(log_ndtr(z) <= 0)
    assert np.all(np.diff(log_ndtr(z[z < 37])) > 0)


def test_no_step_where_the_two_formulas_meet():
    # The continued fraction takes over below -5 (60 terms), and 16 terms suffice below -12.
    for joint in (-5.0, -12.0):
        near = joint + np.array([-1e-9, 1e-9])
        rho = mills_ratio(joint)
        for function, slope in ((mills_ratio, -rho * (rho + joint)), (log_ndtr, rho)):
            rise = np.diff(function(near))[0]
            assert abs(rise - 2e-9 * slope) < DIGITS * abs(function(joint))


def test_the_curvature_of_log_ndtr_lies_between_zero_and_one():
    # Beyond 37 ρ is so small that w = ρ (ρ + z) underflows; 1 - w is 1/z², above rounding up to 1e3.
    z = np.linspace(-1e3, 37.0, 40001)
    w = mills_ratio(z) * (mills_ratio(z) + z)
    assert np.all(w > 0)
    assert np.all(w < 1)
    assert np.all(np.diff(w[z > -30]) < 0)


def test_derivatives_by_finite_differences():
    z = np.linspace(-38.0, 8.0, 461)
    step = 1e-5
    rho = mills_ratio(z)
    slope = (log_ndtr(z + step) - log_ndtr(z - step)) / (2 * step)
    np.testing.assert_allclose(slope, rho, rtol=1e-7, atol=1e-9)
    curvature = (mills_ratio(z + step) - mills_ratio(z - step)) / (2 * step)
    np.testing.assert_allclose(curvature, -rho * (rho + z), rtol=1e-6, atol=1e-9)


def test_scalar_and_array_forms_are_one_function():
    for z in (-1e4, -41.0, -12.0, -5.0, -4.999, 0.0, 3.0, 45.0):
        assert log_ndtr_scalar(z) == log_ndtr(z)
        assert mills_ratio_scalar(z) == mills_ratio(z)


def test_both_tails_add_up():
    z = np.linspace(0.0, 36.0, 361)
    np.testing.assert_allclose(np.exp(log_ndtr(z)) + np.exp(log_ndtr(-z)), 1.0, rtol=EXACT)
