"""Consistency of people: what it means, gradients, and where it comes to rest."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import predilect
from objective_slopes import assert_slopes
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.probit import margins_in_noise
from predilect.inference.likelihoods.special import Z_95
from predilect.inference.people.consistency import intervals_of_consistency
from predilect.inference.people.empirical_bayes import consistency_step
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Basis, Law
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.fit import PopulationPrior, fit_population
from simulate import laid_out
from simulate_people import DELTA, N_ITEMS, SPREAD, differing, laws
from tolerances import CONVERGED, EXACT

ROWS = differing("care", 0, 8, [1, 4, 9, 25, 90, 3, 0, 12], SPREAD)
THETA = np.linspace(-0.6, 0.5, 8)


LAWS = laws()


def crowd_of(law: Law, largest_state: int = 600):
    people = replace(laid_out(ROWS), largest_state=largest_state)
    return replace(people, traits=np.linspace(-1.0, 1.0, people.n_users)[:, None] * np.ones(law.shift.shape[1]))


def evidence(people, theta, law, sites=None):
    sites = Sites.flat(people.n_rows) if sites is None else sites
    return converge(replace(people, consistency=np.exp(theta)), sites, law, DELTA, tolerance=1e-13)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("largest_state", [600, 0])
def test_it_multiplies_the_utilities_that_answers_are_about(law, largest_state):
    # One consistency for all is the same as a population that is so much wider.
    people, a = crowd_of(law, largest_state), 1.7
    sites, same = Sites.flat(people.n_rows), Sites.flat(people.n_rows)
    one = evidence(people, np.full(8, np.log(a)), law, sites)
    wider = Law(a * a * law.Sigma, a * law.mean, law.Phi, a * a * law.rho, a * law.shift)
    other = converge(people, same, wider, DELTA, tolerance=1e-13)
    assert one.evidence == pytest.approx(other.evidence, abs=CONVERGED)
    np.testing.assert_allclose(one.H, a * a * other.H, atol=CONVERGED)
    np.testing.assert_allclose(one.D, a * a * other.D, atol=CONVERGED)
    np.testing.assert_allclose(one.r, a * other.r, atol=CONVERGED)
    np.testing.assert_allclose(one.r_traits, a * other.r_traits, atol=CONVERGED)
    np.testing.assert_allclose(one.own_D, a * a * other.own_D, atol=CONVERGED)
    posteriors, people = [], replace(people, traits=np.zeros((8, 0)))
    for scale, own, at in ((1.0, replace(people, consistency=np.full(8, a)), sites), (a, people, same)):
        basis = None
        if law.has_basis:
            basis = Basis(law.Phi, scale**2 * law.rho, np.zeros(len(law.rho)), np.zeros(len(law.rho)), 1.0)
        m = scale * (np.linspace(-1.0, 1.0, len(law.Sigma)))
        posteriors.append(PopulationPosterior(m, 0.1 * scale**2 * law.Sigma, scale**2 * law.Sigma, own, at, basis))
    users = np.repeat(np.arange(8), 3)
    left, right = np.tile([0, 1, 4], 8), np.tile([2, 3, 5], 8)
    (mean, var), (wide, wide_var) = (p.margins(users, left, right) for p in posteriors)
    np.testing.assert_allclose(a * mean, wide, atol=CONVERGED)
    np.testing.assert_allclose(a * a * var, wide_var, atol=CONVERGED)
    np.testing.assert_array_equal(posteriors[0].consistencies(np.array([3, -1]))[0], [a, 1.0])


def test_the_objective_has_the_gradient_it_says():
    prior = PopulationPrior(np.eye(N_ITEMS), 8.0, 1.0, 4.0, tie_spread=0.5, consistency_spread=SPREAD)

    def places(coordinates):
        care, ties = coordinates.care.start, coordinates.ties.start
        return [*range(care, care + 4), *range(ties, ties + 2)]

    assert_slopes(laid_out(differing("care", 3, 12, 9, SPREAD)), prior, DELTA, places)


def test_the_fit_is_a_maximum_and_finds_who_answers_with_care():
    rows = differing("care", 5, 60, 40, SPREAD)
    people = laid_out(rows)
    prior = PopulationPrior(np.eye(N_ITEMS), 8.0, 1.0, 4.0, consistency_spread=SPREAD)
    state = fit_population(people, prior, tolerance=1e-9, max_iter=1000)
    current = converge(
        state.people_with_own(people), state.sites.copy(), state.posterior(people, prior).law, state.delta
    )
    theta = consistency_step(state.log_consistency, SPREAD, current, np.inf)
    np.testing.assert_allclose(theta, state.log_consistency, atol=1e-4)
    assert np.corrcoef(state.log_consistency, rows.theta)[0, 1] > 0.8
    shared = fit_population(people, replace(prior, consistency_spread=0.0), tolerance=1e-9, max_iter=1000)
    assert state.evidence > shared.evidence + 20.0
    assert not len(shared.log_consistency)


def test_a_step_ends_at_the_mode_where_the_evidence_is_a_parabola():
    theta, spread = np.array([0.1, -0.2, 0.4]), 0.3
    mode, information = np.array([0.3, -0.5, 0.0]), np.array([40.0, 5.0, 0.0])  # the last answered nothing
    current = SimpleNamespace(care=np.column_stack([information * (mode - theta), information]))
    expected = information * mode / (information + spread**-2)
    np.testing.assert_allclose(consistency_step(theta, spread, current, np.inf), expected, atol=EXACT)


@pytest.mark.parametrize("copies", [1e4, pytest.param(1e6, marks=pytest.mark.slow)])
def test_copies_of_answers_tell_no_less_of_who_answers_with_care(copies):
    """Shares of many answers, as where a country is a person: utilities times consistency are known, and no more."""
    rng, n = np.random.default_rng(0), 20
    theta = 0.5 * rng.standard_normal(n)
    utilities = rng.standard_normal(5) + 0.5 * rng.standard_normal((n, 5))
    told = [
        (f"u{user:02d}", left, right, left if won else right, 1.0 + copies * (share if won else 1.0 - share))
        for user, f in enumerate(np.exp(theta)[:, None] * utilities)
        for left, right in itertools.combinations(range(5), 2)
        for share in [norm.cdf(f[left] - f[right])]
        for won in (True, False)
    ]
    answers = dict(zip(("user", "left", "right", "winner", "weight"), map(list, zip(*told, strict=True)), strict=True))

    given = {"strength": 8.0, "variance": 0.5, "consensus_variance": 2.0, "calibration": None, "clickers": 0.0}
    model = predilect.Population(consistency=0.5, n_jobs=1, **given)
    found = np.log(model.fit(answers, reading={"answer_is": "item", "task": "none"}).people()["consistency"])
    assert found.std() > 0.2
    assert np.corrcoef(found, theta)[0, 1] > 0.7


def test_a_margin_in_units_of_noise_is_averaged_over_the_consistency():
    mean, var = np.array([1.5, -0.4, 0.0, 40.0]), np.array([0.5, 2.0, 1.0, 0.1])
    a, sd = np.array([1.3, 0.7, 1.0, 1.0]), np.array([0.8, 0.3, 0.5, 0.2])
    found, spread = margins_in_noise(mean, var, a, sd)
    np.testing.assert_array_equal(spread, a * a * var)
    for row in range(3):

        def chance(theta, row=row):
            b = a[row] * np.exp(theta)
            return norm.pdf(theta, scale=sd[row]) * norm.cdf(b * mean[row] / np.sqrt(1.0 + b * b * var[row]))

        expected = quad(chance, -8.0 * sd[row], 8.0 * sd[row])[0]
        assert norm.cdf(found[row] / np.sqrt(1.0 + spread[row])) == pytest.approx(expected, abs=2e-4)
    assert found[2] == 0.0
    assert 15.0 < found[3] < 40.0  # digits in the tail
    plain, _ = margins_in_noise(mean, var, a, np.zeros(4))
    np.testing.assert_array_equal(plain, a * mean)


@pytest.mark.parametrize("law", LAWS)
def test_intervals_are_of_the_evidence_of_each_persons_answers(law):
    people, unit, logs = crowd_of(law), 1.3, np.linspace(-6.0, 6.0, 241)
    people = replace(people, consistency=np.exp(THETA), consistency_sd=np.full(8, 0.4))
    sites = Sites.flat(people.n_rows)
    converge(people, sites, law, DELTA)
    likelihood = np.array([
        converge(replace(people, consistency=np.full(8, np.exp(log) / unit)), sites.copy(), law, DELTA).evidences
        for log in logs
    ])  # fmt: skip
    for unsure, spreads in ((False, np.array([0.8])), (True, np.geomspace(0.03, 2.0, 60))):
        prior = np.exp(-0.5 * (logs / spreads[:, None]) ** 2) / spreads[:, None]
        joint = prior[:, :, None] * np.exp(likelihood - likelihood.max(axis=0))  # of spreads, logs, people
        total = joint.sum(axis=1)
        of_spread = np.gradient(spreads) if unsure else np.ones(1)
        answered = np.diff(people.answer_ptr) > 0
        of_spread = of_spread * np.prod(total[:, answered], axis=1)
        of_spread /= of_spread.sum()
        mean = np.einsum("slu,l->su", joint, logs) / total
        var = np.einsum("slu,l->su", joint, logs**2) / total - mean**2
        known = np.maximum((1.0 - var / spreads[:, None] ** 2)[:, answered].sum(axis=1), 1.0)
        level = unsure * (of_spread @ (spreads**2 / known))
        density = np.einsum("s,slu->lu", of_spread, joint / total[:, None])
        below = np.cumsum(density, axis=0) - 0.5 * density
        low, median, high = (
            np.array([np.interp(q, one, logs) for one in below.T]) for q in (0.025, 0.5, 0.975)
        )  # fmt: skip
        lower = np.minimum(np.exp(median - np.hypot(median - low, Z_95 * np.sqrt(level))) / unit, np.exp(THETA))
        upper = np.maximum(np.exp(median + np.hypot(high - median, Z_95 * np.sqrt(level))) / unit, np.exp(THETA))
        found = intervals_of_consistency(people, sites, law, DELTA, 0.8, unit, unsure=unsure)
        # Where five values were tried there are cubics, and a line or a curve beyond them.
        np.testing.assert_allclose(np.log(found), np.log((lower, upper)), atol=0.15 if unsure else 0.1)


def test_intervals_are_wider_where_the_spread_is_unsure_and_answers_are_few():
    law = LAWS[0]
    people = replace(crowd_of(law), consistency_sd=np.full(8, 0.3))
    sites = Sites.flat(people.n_rows)
    converge(people, sites, law, DELTA)
    (low, high), (lower, upper) = (
        intervals_of_consistency(people, sites, law, DELTA, 0.3, 1.0, unsure=unsure) for unsure in (False, True)
    )
    assert (lower < low).all()
    assert (high < upper).all()
    n, width = np.diff(people.answer_ptr), np.log(high / low)
    assert (np.diff(width[np.argsort(n)]) < 0.0).sum() >= 5
