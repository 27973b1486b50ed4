"""What an answer is worth: closed forms against quadrature and sampling, and their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predilect.decisions.information import bald, expected_best, expected_entropy, remaining_entropy
from predilect.inference.likelihoods.probit import outcome_log_probabilities, outcome_probabilities
from referees.information import answer_entropy, bald_by_quadrature, bald_corrected, bald_released_code
from tolerances import EXACT

MEAN, VAR = (grid.ravel() for grid in np.meshgrid(np.linspace(-4.0, 4.0, 41), np.geomspace(1e-3, 50.0, 30)))
THRESHOLDS = (0.05, 0.3, 0.7, 1.5, 3.0)


def entropy_bits(z: np.ndarray, delta: float) -> np.ndarray:
    """Of answers at known margins, in logarithms."""
    logs = outcome_log_probabilities(z, np.zeros(len(z)), delta)[:, :: 1 if delta else 2]  # no ties: left and right
    return -(np.exp(logs) * logs).sum(axis=1) / math.log(2.0)


def piece_by_piece(mean: float, var: float, delta: float) -> float:
    """E h(answer | z) by Gauss-Legendre rules on short pieces of the whole line."""
    reach = 12.0 * math.sqrt(var)
    edges = np.linspace(min(mean - reach, -15.0), max(mean + reach, 15.0), 200)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * (edges[1] - edges[0])
    z = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    density = np.exp(-0.5 * (z - mean) ** 2 / var) / math.sqrt(2.0 * math.pi * var)
    return float((half * np.tile(weights, len(edges) - 1) * density * entropy_bits(z, delta)).sum())


@pytest.mark.parametrize(
    ("mean", "var", "delta"),
    [
        (0.0, 1.0, 0.0),
        (2.0, 0.5, 0.0),
        (-40.0, 50.0, 0.0),
        (4.0, 50.0, 0.0),
        (1.0, 2.0, 0.7),
        (2.0, 20.0, 3.0),
        (9.0, 2.0, 10.5),
        (41.0, 5.0, 40.0),
    ],
)
def test_the_quadrature_is_right_also_for_wide_and_for_settled_margins(mean, var, delta):
    expected = piece_by_piece(mean, var, delta)
    s = math.sqrt(1.0 + var)
    first = entropy_bits(np.array([mean / s]), delta / s)[0]
    assert float(answer_entropy(mean, var, delta)) == pytest.approx(first, rel=1e-12)
    assert float(bald_by_quadrature(mean, var, delta)) == pytest.approx(first - expected, abs=EXACT * first)


def test_where_nothing_is_open_nothing_can_be_learned():
    far = np.array([0.0, 3.0, 40.0, 1e4])
    np.testing.assert_array_equal(bald(far, np.zeros(4)), 0.0)
    for delta in (0.0, 0.7):
        assert np.abs(bald_by_quadrature(far, np.zeros(4), delta)).max() < EXACT
        assert np.isfinite(bald(far, np.full(4, 50.0), delta)).all()


def test_closed_forms_against_quadrature():
    exact = bald_by_quadrature(MEAN, VAR)
    assert exact.min() > -1e-9
    assert np.abs(bald_corrected(MEAN, VAR) - exact).max() < 0.003
    assert np.abs(bald(MEAN, VAR) - exact).max() < 3e-7
    assert bald(MEAN, VAR).min() > 0.0


@pytest.mark.parametrize("delta", THRESHOLDS)
def test_ties_against_quadrature(delta):
    exact = bald_by_quadrature(MEAN, VAR, delta)
    assert exact.min() > -1e-9
    assert np.abs(bald(MEAN, VAR, delta) - exact).max() < 3e-5


@pytest.mark.parametrize("smallest", [0.0, 1e-6, 0.3])
def test_many_thresholds_are_as_good_as_each_by_itself(smallest):
    delta = np.append(smallest, np.geomspace(max(smallest, 0.01), 9.0, len(MEAN) - 1))[::-1]
    exact = np.array([bald_by_quadrature(MEAN[i : i + 1], VAR[i : i + 1], delta[i])[0] for i in range(len(MEAN))])
    assert np.abs(bald(MEAN, VAR, delta) - exact).max() < 3e-5


def test_ties_against_sampling():
    rng = np.random.default_rng(0)
    mean, var, delta = 0.6, 2.0, 0.5
    p = outcome_probabilities(mean + math.sqrt(var) * rng.standard_normal(200_000), np.zeros(200_000), delta)
    noise = -(p * np.log2(p)).sum(axis=1)
    total = p.mean(axis=0)
    sampled = -(total * np.log2(total)).sum() - noise.mean()
    assert abs(sampled - float(bald(mean, var, delta))) < 4.0 * noise.std() / math.sqrt(len(noise))


def test_a_threshold_of_zero_has_no_ties_and_each_margin_may_have_its_own():
    delta = np.resize(THRESHOLDS, len(MEAN))
    each = bald(MEAN, VAR, delta)
    for threshold in THRESHOLDS:
        rows = delta == threshold
        assert np.abs(each[rows] - bald(MEAN[rows], VAR[rows], threshold)).max() < 6e-5  # other bumps, fitted as well
    assert np.abs(bald(MEAN, VAR, 1e-9) - bald(MEAN, VAR)).max() < 3e-5
    assert np.abs(answer_entropy(MEAN, VAR, 0.0) - remaining_entropy(MEAN, VAR)).max() < 2e-7


@pytest.mark.parametrize("delta", [9.9, 10.1, 40.0])
def test_wide_thresholds_against_quadrature(delta):
    exact = bald_by_quadrature(MEAN + delta, VAR, delta)
    assert np.abs(bald(MEAN + delta, VAR, delta) - exact).max() < 3e-5
    each = np.where(MEAN > 0.0, delta, 0.7)
    some = MEAN > 0.0
    together, apart = bald(MEAN + each, VAR, each)[some], bald(MEAN + delta, VAR, delta)[some]
    np.testing.assert_allclose(together, apart, atol=EXACT)


def test_a_threshold_beyond_all_margins_takes_no_more_memory():
    assert float(bald(3.0, 2.0, 1e15)) == 0.0
    assert float(bald(3.0, 2.0, 1e15, resolved=1.0)) == 0.0


@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_symmetric_in_the_mean_and_monotone_in_the_variance(delta):
    for measure in (bald, bald_by_quadrature, answer_entropy, expected_entropy):
        np.testing.assert_array_equal(measure(MEAN, VAR, delta), measure(-MEAN, VAR, delta))
    var = np.geomspace(1e-3, 1e3, 50)
    for measure in (bald, bald_by_quadrature):
        assert (np.diff(measure(np.zeros(50), var, delta)) > 0.0).all()


def test_the_paper_and_the_released_code_as_they_are_written():
    C = math.sqrt(math.pi * math.log(2.0) / 2.0)
    for m, v in ((0.3, 0.2), (-2.0, 1.7)):
        p = outcome_probabilities(np.array([m]), np.array([v]))[0, [0, 2]]
        nats = -float((p * np.log(p)).sum())
        corrected = nats / math.log(2.0) - C / math.sqrt(v + C**2) * math.exp(-(m**2) / (2.0 * (v + C**2)))
        released = nats - C / (math.sqrt(v) + C**2) * math.exp(-(m**2) / (2.0 * (v + C**2)))
        assert float(bald_corrected(m, v)) == pytest.approx(corrected, abs=EXACT)
        assert float(bald_released_code(m, v)) == pytest.approx(released, abs=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.6])
def test_information_beyond_that_of_another_question_against_sampling(delta):
    """The other question is an observation with noise 1 of a margin with covariance 1.5."""
    rng = np.random.default_rng(1)
    m, v, v_other, c = 0.4, 3.0, 2.0, 1.5
    resolved = c * c / (v_other + 1.0)
    heard = rng.standard_normal(20_000) * math.sqrt(v_other + 1.0)
    means = m + c / (v_other + 1.0) * heard
    each = bald_by_quadrature(means, np.full(len(means), v - resolved), delta)
    found = float(bald(m, v, delta, resolved=resolved))
    assert abs(each.mean() - found) < 4.0 * each.std() / math.sqrt(len(each))
    assert found < float(bald(m, v, delta))
    # Nothing resolved, and everything.
    assert float(bald(m, v, delta, resolved=0.0)) == pytest.approx(float(bald(m, v, delta)), abs=EXACT)
    assert abs(float(bald(m, v, delta, resolved=v))) < 3e-5


def test_expected_utility_of_the_better_item():
    rng = np.random.default_rng(2)
    for mean, C in (([0.3, -0.1], [[1.0, 0.3], [0.3, 2.0]]), ([5.0, -3.0], [[1.0, -0.5], [-0.5, 1.0]])):
        best = multivariate_normal(mean, C).rvs(200_000, random_state=rng).max(axis=1)
        found = float(expected_best(mean[0], mean[1], C[0][0] + C[1][1] - 2.0 * C[0][1]))
        assert abs(best.mean() - found) < 4.0 * best.std() / math.sqrt(len(best))
    np.testing.assert_array_equal(
        expected_best([1.0, -2.0, 40.0], [3.0, -2.0, 0.0], [0.0, 0.0, 1e-300]), [3.0, -2.0, 40.0]
    )
