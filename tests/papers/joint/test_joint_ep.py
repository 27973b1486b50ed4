"""EP of a joint process: evidence against orthants, its gradient, both spaces (vvm.md 2)."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.kernel import slope
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Own, Scaled, Stationary
from predilect.inference.latent.ep import ep
from predilect.inference.latent.evidence import evidence_gradient
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import Probit
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.fit import JointAnswers, fit_joint_process, tune_joint_process
from referees.orthants import exact_evidence
from simulate import random_pairs
from tolerances import CONVERGED, EXACT, ITERATIVE

RNG = np.random.default_rng(7)
N_USERS, N_ITEMS = 3, 4
USERS, ITEMS = RNG.normal(size=(N_USERS, 2)), RNG.normal(size=(N_ITEMS, 2))
ALPHA = 3.0
PROBIT = Probit(0.3)


def kernel(variance=1.0 / ALPHA**2):
    return JointKernel(
        KernelTable.of(Own(Stationary([1.0, 2.0], "squared-exponential"), 0.5), USERS),
        KernelTable.of(Scaled(Own(Stationary([1.0, 0.7], "squared-exponential"), 0.2), variance), ITEMS),
    )


def answers(n, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    left, right = random_pairs(rng, n, N_ITEMS)
    outcome = rng.choice([1, 0, -1] if ties else [1, -1], size=n).astype(np.int8)
    weight = 1.0 + (np.arange(n) % 5 == 0) * (n > 10)
    return JointAnswers(rng.integers(N_USERS, size=n), left, right, outcome, weight)


def of_margins(joint, given):
    """Covariance of the margins of answers."""
    rows = given.rows(N_ITEMS)
    A = np.eye(len(rows.codes))[rows.left] - np.eye(len(rows.codes))[rows.right]
    return A @ joint(rows.codes) @ A.T


@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_evidence_is_that_of_orthants(delta):
    """N = 8, α = 3, unit amplitude: within 1e-3 of exact."""
    given, joint = answers(8, ties=delta > 0.0), kernel()
    found = fit_joint_process(joint, given, delta=delta, tolerance=1e-10)
    G = of_margins(joint, given)
    exact, error = exact_evidence(G, np.eye(8), given.outcome, delta)
    assert error < 1e-4
    assert abs(found.evidence - exact) < 1e-3
    # Not so where people and items do not matter.
    blind = exact_evidence(G * np.eye(8), np.eye(8), given.outcome, delta)[0]
    assert abs(blind - exact) > 1e-3


@pytest.mark.slow
def test_gradient_of_the_evidence():
    given = answers(30, 1, ties=True)
    joint = kernel(2.0)
    rows = given.rows(N_ITEMS)

    def fit(at):
        problem = Problem.of(at(rows.codes), rows.left, rows.right, given.outcome, given.weight, PROBIT)
        return ep(problem, tolerance=1e-12)

    found = joint.gradient(rows.codes, None, evidence_gradient(fit(joint)))
    expected = slope(lambda theta: fit(joint.with_theta(theta)).evidence, joint.theta)
    np.testing.assert_allclose(found, expected, atol=ITERATIVE)
    assert np.abs(found).max() > 0.1


def test_answer_space_is_the_space_of_people_and_items():
    given, joint = answers(30, 2), kernel(2.0)
    rows = given.rows(N_ITEMS)
    fits = [
        ep(
            Problem.of(joint(rows.codes), rows.left, rows.right, given.outcome, given.weight, space=space),
            tolerance=1e-13,
        )
        for space in ("answers", "items")
    ]
    assert abs(fits[0].evidence - fits[1].evidence) < EXACT
    np.testing.assert_allclose(fits[0].state.margin_mean, fits[1].state.margin_mean, atol=EXACT)
    np.testing.assert_allclose(fits[0].state.margin_var, fits[1].state.margin_var, atol=EXACT)
    margins = of_margins(joint, given)
    direct = ep(Problem.of(margins, np.arange(30), None, given.outcome, given.weight), tolerance=1e-13)
    assert abs(direct.evidence - fits[0].evidence) < EXACT


def test_the_search_climbs_and_its_sites_are_where_the_fit_ends():
    given = answers(60, 3)
    start = kernel(2.0)
    found = tune_joint_process(start, given, delta=0.0, bounds={"users.odds": (0.5, 0.5)})
    before = fit_joint_process(start, given, delta=0.0).evidence
    after = fit_joint_process(found.kernel, given, delta=0.0, start=found.fit.sites, tolerance=1e-11)
    assert after.evidence > before + 0.1
    assert found.kernel.users.kernel.odds == pytest.approx(0.5, abs=EXACT)
    fresh = fit_joint_process(found.kernel, given, delta=0.0, tolerance=1e-11)
    assert abs(fresh.evidence - after.evidence) < CONVERGED
    assert after.report.iterations < fresh.report.iterations


def test_the_tie_threshold_is_learned():
    given = answers(80, 4, ties=True)
    found = fit_joint_process(kernel(30.0), given)
    first = starting_threshold(given.outcome, given.weight)
    tried = [first, 0.97 * found.delta, 1.03 * found.delta]
    assert abs(np.log(found.delta / first)) > 0.02
    assert max(fit_joint_process(kernel(30.0), given, delta=delta).evidence for delta in tried) < found.evidence


def test_answers_of_some_people():
    """The evidence of people 0 and 2 by themselves, and of all where the others answered nothing."""
    given, joint = answers(40, 5), kernel(2.0)
    some = np.array([0, 2])
    part = given.of_people(some)
    assert set(part.user.tolist()) == {0, 1}
    table = KernelTable.of(joint.users.kernel, USERS[some])
    keep = given.user != 1
    left = JointAnswers(*(getattr(given, name)[keep] for name in ("user", "left", "right", "outcome", "weight")))
    one = fit_joint_process(JointKernel(table, joint.items), part, delta=0.0, tolerance=1e-12)
    other = fit_joint_process(joint, left, delta=0.0, tolerance=1e-12)
    assert abs(one.evidence - other.evidence) < EXACT


def test_too_many_answers():
    n = 5001
    many = JointAnswers(
        np.arange(n) % 2001, np.zeros(n, dtype=int), 1 + np.arange(n) // 2001, np.ones(n, np.int8), np.ones(n)
    )
    with pytest.raises(DataError, match="too many for a joint process"):
        many.rows(N_ITEMS)
