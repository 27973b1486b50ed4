"""Piecewise polynomials against the functions that they stand for, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

from predilect.errors import DataError
from predilect.inference.likelihoods import probit, tabulated
from predilect.inference.likelihoods.special import log_ndtr, mills_curvature_scalar, mills_ratio
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em.weights import add_log_likelihoods

DIGITS = 1e-13  # relative, as is asked of the functions themselves
ENDS = np.arange(-40, 41) / 8.0
Z = np.concatenate([
    np.random.default_rng(0).uniform(-5.5, 5.5, 20_000), ENDS, np.nextafter(ENDS, np.inf), np.nextafter(ENDS, -np.inf),
    np.linspace(-40.0, 40.0, 801), [-1e4, 1e4],
])  # fmt: skip


def test_value_slope_and_curvature_are_those_of_the_normal_law():
    for y in (-1, 1):
        value, slope, curvature = tabulated.at(np.full(Z.shape, y), y * Z)
        np.testing.assert_allclose(value, log_ndtr(Z), rtol=DIGITS)
        np.testing.assert_allclose(slope, y * mills_ratio(Z), rtol=DIGITS)
        # ρ + z loses a digit or two above -5 whichever way ρ comes about.
        expected = [mills_curvature_scalar(z) for z in Z.tolist()]
        np.testing.assert_allclose(curvature, expected, rtol=20.0 * DIGITS)
    inside = np.abs(Z) < 5.0
    value, slope, _ = tabulated.at(np.ones(inside.sum()), Z[inside])
    np.testing.assert_allclose(value, scipy.special.log_ndtr(Z[inside]), rtol=DIGITS)
    np.testing.assert_allclose(slope, scipy.stats.norm.pdf(Z[inside]) / scipy.special.ndtr(Z[inside]), rtol=DIGITS)


@pytest.mark.parametrize("delta", [0.05, 0.7, 3.0])
def test_with_ties_it_is_the_likelihood_of_one_answer(delta):
    for y in (-1, 0, 1):
        outcome = np.full(Z.shape, y)
        found, expected = tabulated.at(outcome, Z, delta), probit.tilted(outcome, Z, 0.0, delta)[:3]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=20.0 * DIGITS, atol=1e-300)


def test_neighbouring_pieces_meet():
    below, above = np.nextafter(ENDS, -np.inf), np.nextafter(ENDS, np.inf)
    for one, other in zip(tabulated.at(1, below), tabulated.at(1, above), strict=True):
        np.testing.assert_allclose(one, other, rtol=20.0 * DIGITS)


def test_columns_of_any_kind():
    outcome, z = np.array([1, -1, 1, -1], dtype=np.int8), np.array([0.3, -0.2, 7.0, 1.0])
    expected = tabulated.at(outcome, z)
    for column in (outcome, z):
        column.flags.writeable = False
    for y, m in ((outcome, z), (outcome.astype(np.int64), np.repeat(z, 2)[::2]), (outcome.tolist(), z.tolist())):
        np.testing.assert_array_equal(tabulated.at(y, m), expected)
    np.testing.assert_allclose(tabulated.at(1, z)[0], log_ndtr_of(z, 1), rtol=DIGITS)
    assert tabulated.at(np.empty(0), np.empty(0))[0].shape == (0,)
    assert np.isnan(tabulated.at([1], [np.nan])[0][0])


def log_ndtr_of(z: np.ndarray, outcome: int, delta: float = 0.0) -> np.ndarray:
    """The logarithms that the loop over answers adds up: one person a margin."""
    n = len(z)
    out, y = np.zeros((n, 1)), np.full(n, outcome, dtype=np.int8)
    add_log_likelihoods(np.arange(n), np.arange(n), y, np.ones(n), delta, z[:, None].copy(), out)
    return out[:, 0]


@pytest.mark.parametrize("delta", [0.0, 0.7])
def test_both_sides_at_once(delta):
    for y in (-1, 1):
        np.testing.assert_allclose(log_ndtr_of(Z, y, delta), log_ndtr(y * Z - delta), rtol=DIGITS)


def test_outcomes_that_are_none_are_refused():
    for likelihood, bad in ((Probit(), [1, 2]), (Probit(), [1, 0]), (Probit(0.3), [0.5, 1.0])):
        with pytest.raises(DataError):
            likelihood.check(np.array(bad))
    Probit(0.3).check(np.array([1.0, 0.0, -1.0]))
