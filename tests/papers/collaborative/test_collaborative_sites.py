"""Messages of answers on margins that are sums of products, against quadrature and a plain reading of the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import tilted
from predilect.papers.collaborative.sites import answer_evidence, refreshed_sites
from tolerances import CONVERGED, EXACT

RNG = np.random.default_rng(0)
Y = np.array([1, -1, 0, 1, -1, 0], dtype=np.int8)
MEAN, VAR = RNG.normal(size=6), RNG.uniform(0.2, 2.0, size=6)
SITES = Sites(RNG.uniform(0.0, 0.4, size=6), RNG.normal(size=6))
DELTA = 0.4
ONE = np.ones(6)


def chance(y, z):
    if y == 0:
        return ndtr(DELTA - z) - ndtr(-DELTA - z)
    return ndtr(y * z - DELTA)


def density(z, m, v):
    return math.exp(-0.5 * (z - m) ** 2 / v) / math.sqrt(2.0 * math.pi * v)


def cavity(p, sites=SITES):
    precision = 1.0 / VAR[p] - sites.precision[p]
    return (MEAN[p] / VAR[p] - sites.linear[p]) / precision, 1.0 / precision


def test_new_messages_match_the_tilted_moments_by_quadrature():
    found = refreshed_sites(Y, ONE, SITES, MEAN, VAR, DELTA, keep=True)
    assert not found.improper.any()
    for p in range(6):
        m, v = cavity(p)
        ends = (m - 12.0 * np.sqrt(v), m + 12.0 * np.sqrt(v))

        def moment(k, p=p, m=m, v=v, ends=ends):
            return quad(
                lambda z: z**k * chance(int(Y[p]), z) * density(z, m, v), *ends, epsabs=1e-13, epsrel=1e-13, limit=200
            )[0]

        total, first, second = moment(0), moment(1), moment(2)
        precision = 1.0 / v + found.sites.precision[p]
        mean = (m / v + found.sites.linear[p]) / precision
        np.testing.assert_allclose(mean, first / total, atol=CONVERGED)
        np.testing.assert_allclose(1.0 / precision, second / total - (first / total) ** 2, atol=CONVERGED)


def test_copies_move_to_their_fixed_point():
    weight = np.array([1.0, 2.0, 3.0, 40.0, 1.0, 7.0])
    few = Sites(SITES.precision / weight, SITES.linear / weight)
    found = refreshed_sites(Y, weight, few, MEAN, VAR, DELTA, keep=True).sites
    # What is left without all of the copies, with all but one of the new ones, asks for that one.
    rest_precision = 1.0 / VAR - weight * few.precision
    rest_linear = MEAN / VAR - weight * few.linear
    precision = rest_precision + (weight - 1.0) * found.precision
    linear = rest_linear + (weight - 1.0) * found.linear
    m, v = linear / precision, 1.0 / precision
    _, slope, curvature, _, _ = tilted(Y, m, v, DELTA)
    np.testing.assert_allclose(found.precision, curvature / (1.0 - curvature * v), rtol=1e-7)
    np.testing.assert_allclose(found.linear, (slope + curvature * m) / (1.0 - curvature * v), rtol=1e-7)


def test_without_a_proper_cavity_a_message_stays_or_is_that_of_the_expected_logarithm():
    sites = Sites(SITES.precision.copy(), SITES.linear.copy())
    sites.precision[1] = 1.5 / VAR[1]
    kept = refreshed_sites(Y, ONE, sites, MEAN, VAR, DELTA, keep=True)
    assert kept.improper.tolist() == [False, True, False, False, False, False]
    assert (kept.sites.precision[1], kept.sites.linear[1]) == (sites.precision[1], sites.linear[1])
    other = refreshed_sites(Y, ONE, sites, MEAN, VAR, DELTA, keep=False)
    _, slope, curvature = expected(Y, MEAN, VAR, DELTA)
    np.testing.assert_allclose(other.sites.precision[1], curvature[1], atol=EXACT)
    np.testing.assert_allclose(other.sites.linear[1], slope[1] + curvature[1] * MEAN[1], atol=EXACT)
    np.testing.assert_array_equal(np.delete(other.sites.precision, 1), np.delete(kept.sites.precision, 1))


def test_not_a_number_is_no_message():
    mean = MEAN.copy()
    mean[0] = np.nan
    found = refreshed_sites(Y, ONE, SITES, mean, VAR, DELTA, keep=True)
    assert found.improper[0]
    assert found.sites.precision[0] == SITES.precision[0]


def partition(linear, precision):
    return 0.5 * np.log(2.0 * np.pi / precision) + linear**2 / (2.0 * precision)


@pytest.mark.parametrize("improper", [False, True])
def test_the_evidence_of_answers_by_its_parts(improper):
    sites = Sites(SITES.precision.copy(), SITES.linear.copy())
    if improper:
        sites.precision[2] = 2.0 / VAR[2]
    weight = np.array([1.0, 0.5, 1.0, 1.0, 1.0, 1.0])
    found = answer_evidence(Y, weight, sites, MEAN, VAR, DELTA)
    total = 0.0
    for p in range(6):
        if improper and p == 2:
            total += weight[p] * expected(Y[[p]], MEAN[[p]], VAR[[p]], DELTA)[0][0]
            continue
        m, v = cavity(p, sites)
        log_z = tilted(Y[p], m, v, DELTA)[0][0]
        message = sites.linear[p] * MEAN[p] - 0.5 * sites.precision[p] * (MEAN[p] ** 2 + VAR[p])
        parts = partition(m / v, 1.0 / v) - partition(MEAN[p] / VAR[p], 1.0 / VAR[p])
        total += weight[p] * (log_z + parts + message)
    np.testing.assert_allclose(found.value, total, atol=EXACT)
    h = 1e-5
    for part, order in ((found.slope, 1), (found.curvature, 2)):
        m, v = MEAN.copy(), VAR.copy()
        for p in range(6):
            if not (improper and p == 2):
                m[p], v[p] = cavity(p, sites)
        up, here, down = (float(weight @ tilted(Y, m, v, DELTA + step)[0]) for step in (h, 0.0, -h))
        differences = (up - down) / (2.0 * h) if order == 1 else (up - 2.0 * here + down) / h**2
        np.testing.assert_allclose(part, differences, atol=1e-4 if order == 2 else 1e-7)


def test_one_answer_on_a_gaussian_is_exact():
    """The smallest form: prior N(.3, 1.7), one answer, log Φ."""
    m, v = np.array([0.3]), np.array([1.7])
    y, one = np.array([1], dtype=np.int8), np.ones(1)
    sites = refreshed_sites(y, one, Sites.flat(1), m, v, 0.0, keep=True).sites
    precision = 1.0 / v + sites.precision
    mean, var = (m / v + sites.linear) / precision, 1.0 / precision
    divergence = 0.5 * (np.log(v / var) + (var + (mean - m) ** 2) / v - 1.0)
    found = answer_evidence(y, one, sites, mean, var, 0.0).value - divergence[0]
    np.testing.assert_allclose(found, log_ndtr(0.3 / np.sqrt(2.7)), atol=EXACT)
