"""EP against exact orthants, quadrature, closed forms, and its two schedules against each other (T2)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predilect.inference.latent.ep import ep
from predilect.inference.latent.laplace import laplace
from predilect.inference.likelihoods.probit import outcome_probabilities, tilted
from referees.orthants import exact_evidence
from single_problems import small
from tolerances import CONVERGED


@pytest.mark.parametrize(
    ("pairs", "delta"),
    [(True, 0.5), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(True, 0.0), (False, 0.0), (False, 0.5)])],
)
def test_evidence_and_predictions_against_orthants(delta, pairs):
    for seed in range(3):
        s = small(seed, n_items=8, n_answers=7, delta=delta, pairs=pairs)
        exact, error = exact_evidence(s.K, s.A, s.outcome, delta, s.mean)
        assert error < 1e-4
        fit = s.fit(ep)
        assert abs(fit.evidence - exact) < 0.02
        assert abs(fit.evidence - exact) < abs(s.fit(laplace).evidence - exact)
        # One more answer, by a ratio of two boxes
        a = np.zeros(8)
        a[0], a[7] = 1.0, -1.0
        wider, _ = exact_evidence(s.K, np.vstack([s.A, a]), [*s.outcome, 1], delta, s.mean)
        m, v = a @ fit.mean, a @ fit.covariance() @ a
        predicted = outcome_probabilities(np.array([m]), np.array([v]), delta)[0, 0]
        assert abs(predicted - math.exp(wider - exact)) < 0.01


def test_one_answer_is_exact():
    # One tilted Gaussian is all there is.
    for outcome, delta in ((1, 0.0), (-1, 0.3), (0, 0.3)):
        s = small(3, n_answers=1, delta=delta)._replace(outcome=np.array([outcome]))
        fit = s.fit(ep, tolerance=1e-12)
        m, v = s.A @ s.mean, np.array([(s.A @ s.K @ s.A.T)[0, 0]])
        value, slope, curvature, *_ = tilted(s.outcome, m, v, delta)
        assert abs(fit.evidence - value[0]) < 1e-12
        assert abs(fit.state.margin_mean - (m + v * slope))[0] < 1e-12
        assert abs(fit.state.margin_var - (v - v * v * curvature))[0] < 1e-12
    s = small(4, n_answers=1, mean=False)
    assert abs(s.fit(ep).evidence - math.log(0.5)) < 1e-12


def test_marginals_of_two_answers_against_quadrature():
    # By a fine grid in the plane of the two margins
    s = small(5, n_items=4, n_answers=2, delta=0.4, scale=2.0)._replace(outcome=np.array([1, 0]))
    fit = s.fit(ep)
    G, m = s.A @ s.K @ s.A.T, s.A @ s.mean
    axis = np.linspace(-9.0, 9.0, 401)
    z = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    e = z - m
    log_p = -0.5 * np.einsum("pi,ij,pj->p", e, np.linalg.inv(G), e)
    for k in range(2):
        log_p += s.likelihood.at(np.full(len(z), s.outcome[k]), z[:, k])[0]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ z
    np.testing.assert_allclose(fit.state.margin_mean, mean, atol=0.01)
    np.testing.assert_allclose(fit.state.margin_var, p @ (z - mean) ** 2, atol=0.01 * G.max())


@pytest.mark.parametrize(
    ("space", "pairs"),
    [
        ("items", True),
        ("answers", False),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [("items", False), ("answers", True)]),
    ],
)
def test_sequential_equals_parallel_in_any_order(pairs, space):
    s = small(6, n_items=6, n_answers=15, delta=0.3, scale=4.0, pairs=pairs, repeated=True)
    parallel = s.fit(ep, tolerance=1e-11, space=space)
    order = np.random.default_rng(0).permutation(15)
    moved = {
        name: None if getattr(s, name) is None else getattr(s, name)[order]
        for name in ("left", "right", "outcome", "weight")
    }
    for changes in ({}, moved):
        sequential = s.fit(ep, tolerance=1e-11, space=space, schedule="sequential", **changes)
        assert sequential.report.converged
        assert sequential.report.iterations <= parallel.report.iterations
        assert abs(sequential.evidence - parallel.evidence) < CONVERGED
        np.testing.assert_allclose(sequential.mean, parallel.mean, atol=CONVERGED)
        np.testing.assert_allclose(sequential.covariance(), parallel.covariance(), atol=CONVERGED)
    assert np.all(parallel.sites.precision > 0)


def test_the_posterior_is_the_tilted_one_answer_by_answer():
    # The definition of EP's fixed point, with a cavity that lacks one copy of the answer.
    s = small(7, n_items=6, n_answers=15, delta=0.3, scale=4.0, repeated=True)
    fit = s.fit(ep, tolerance=1e-12)
    m, v, tau, nu = fit.state.margin_mean, fit.state.margin_var, fit.sites.precision, fit.sites.linear
    v_c = 1.0 / (1.0 / v - tau)
    m_c = v_c * (m / v - nu)
    _, slope, curvature = s.likelihood.tilted(s.outcome, m_c, v_c)
    np.testing.assert_allclose(m_c + v_c * slope, m, atol=CONVERGED)
    np.testing.assert_allclose(v_c - v_c**2 * curvature, v, atol=CONVERGED)


class Improper:
    """A likelihood whose third answer has no finite moments: its site must stay what it was."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def tilted(self, outcome, m, v):
        value, slope, curvature = self.inner.tilted(outcome, m, v)
        slope = slope.copy()
        if len(slope) > 1:
            slope[2] = np.nan
        return value, slope, curvature


def test_a_site_that_cannot_be_refreshed_keeps_its_value():
    s = small(8, n_items=6, n_answers=7)
    fit = s.fit(ep, likelihood=Improper(s.likelihood))
    keep = np.arange(7) != 2
    without = s.fit(ep, left=s.left[keep], right=s.right[keep], outcome=s.outcome[keep], weight=s.weight[keep])
    assert fit.sites.precision[2] == 0.0
    np.testing.assert_allclose(fit.mean, without.mean, atol=1e-7)
