"""GPVU by expectation maximisation: the step, the climb, and factors that are found again (baselines.md B7)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from predilect.inference.gaussian.dense import factorise
from predilect.inference.people.empirical_bayes import Moments
from predilect.papers.baselines.gpvu import best_factors, fit_khan
from simulate import answers, crowd, laid_out, random_covariance, random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE

RNG = np.random.default_rng(6)
K = random_covariance(RNG, 6)
ROOT = factorise(K)
PEOPLE = laid_out(crowd(5, 30, 6, 12, delta=0.3))


def found_moments(n=40):
    f = RNG.normal(size=(n, 6)) @ np.diag([3.0, 2.0, 1.0, 1.0, 0.5, 0.5]) + 0.7
    return Moments(n, f.sum(axis=0), f.T @ f)


def value(found, shift, Sigma):
    """E log Π N(f_u; shift, Σ), up to a constant."""
    log_det = np.linalg.slogdet(Sigma)[1]
    return -0.5 * (found.n_users * log_det + np.sum(np.linalg.inv(Sigma) * found.about(shift)))


@pytest.mark.parametrize("scale", [None, 0.6])
def test_the_step_is_a_maximum(scale):
    found = found_moments()
    shift, V, g = best_factors(found, ROOT, 2, scale)
    best = value(found, shift, V @ V.T + g * K)
    assert scale is None or g == scale
    for _ in range(20):
        d, e, f = 1e-2 * RNG.normal(size=6), 1e-2 * RNG.normal(size=(6, 2)), 1e-2 * RNG.normal()
        other = g * np.exp(f) if scale is None else g
        assert value(found, shift + d, (V + e) @ (V + e).T + other * K) < best
    step = 1e-5 * RNG.normal(size=(6, 2))
    slopes = [value(found, shift, (V + s * step) @ (V + s * step).T + g * K) for s in (1.0, -1.0)]
    assert abs(slopes[0] - slopes[1]) / 2e-5 < 40 * ITERATIVE
    if scale is None:
        slopes = [value(found, shift, V @ V.T + g * np.exp(s * 1e-5) * K) for s in (1.0, -1.0)]
        assert abs(slopes[0] - slopes[1]) / 2e-5 < 40 * ITERATIVE


def test_factors_are_those_of_the_paper_where_it_stands_still():
    """The paper's step V ← (Σ E f wᵀ)(Σ E w wᵀ)⁻¹ leaves the V of the maximum as it is."""
    found = found_moments()
    shift, V, g = best_factors(found, ROOT, 2)
    inverse = np.linalg.inv(g * K)
    M = np.linalg.inv(np.eye(2) + V.T @ inverse @ V)
    S = found.about(shift) / found.n_users
    f_w = S @ inverse @ V @ M
    w_w = M + M @ V.T @ inverse @ S @ inverse @ V @ M
    np.testing.assert_allclose(f_w @ np.linalg.inv(w_w), V, atol=CONVERGED)
    assert np.linalg.norm(V) > 1.0


def test_the_evidence_never_falls():
    values = [fit_khan(PEOPLE, ROOT, 2, tolerance=1e-12, max_iter=n).evidence for n in (0, 1, 2, 4, 8, 16, 32)]
    assert np.all(np.diff(values) > 0.0)


def test_as_many_factors_as_differences_leave_something_for_the_processes():
    found = fit_khan(PEOPLE, ROOT, 50, tolerance=1e-5)
    assert found.factors.shape == (6, 5)
    assert found.scale > 0.0
    Sigma = found.factors @ found.factors.T + found.scale * K
    np.testing.assert_allclose(found.posterior.Sigma, Sigma, atol=EXACT)


def test_the_subspace_is_recovered():
    """200 people, 8 items, two factors of size 2: answers show differences of items only."""
    rng = np.random.default_rng(0)
    n_users, n_items, n_each = 200, 8, 40
    V = 2.0 * rng.normal(size=(n_items, 2))
    f = rng.normal(size=(n_users, 2)) @ V.T + 0.3 * rng.normal(size=(n_users, n_items))
    user = np.repeat(np.arange(n_users), n_each)
    left, right = random_pairs(rng, len(user), n_items)
    outcome = np.where(f[user, left] - f[user, right] + rng.normal(size=len(user)) > 0.0, 1, -1)
    people = laid_out(answers(user, left, right, outcome, n_items=n_items))
    found = fit_khan(people, factorise(np.eye(n_items)), 2, tolerance=1e-4)
    centre = np.eye(n_items) - 1.0 / n_items
    angles = subspace_angles(centre @ found.factors, centre @ V)
    assert np.degrees(angles).max() < 10.0
    assert np.degrees(subspace_angles(centre @ V, centre @ rng.normal(size=V.shape))).max() > 30.0
    spread = np.trace(centre @ found.factors @ found.factors.T @ centre) / np.trace(centre @ V @ V.T @ centre)
    assert 0.7 < spread < 1.3
