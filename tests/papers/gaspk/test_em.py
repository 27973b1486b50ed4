"""EM over characteristics and weights: its bound, restarts, tie thresholds and how sure to be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gaspk_weights import objective_of
from predilect.inference.gaussian.kernels import Antisymmetric, Scaled, Stationary
from predilect.inference.latent.held_out import log_loss
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk import choosing
from predilect.papers.gaspk.calibration import spread_factor
from predilect.papers.gaspk.choosing import KernelCandidate, held_out_margins, judged, predict_held_out
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.fit import best_start, run
from predilect.papers.gaspk.em.mode import Newton, find_mode
from predilect.papers.gaspk.em.weights import heuristic_weights, likeliest_weights, random_weights
from predilect.papers.gaspk.posterior.basis import DenseBasis
from predilect.papers.gaspk.posterior.grid import GridBasis
from predilect.papers.gaspk.posterior.solver import ByProducts
from predilect.papers.gaspk.prior import by_evidence, length_scales_by_rule
from predilect.papers.gaspk.settings import FitSettings
from tolerances import CONVERGED, EXACT, ITERATIVE
from tradeoff_problems import problem

N_USERS = 24


def two_groups(seed=0, each=25, delta=0.0):
    """People of opposite tastes for trade-offs of two dimensions."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 2))
    user, point = np.repeat(np.arange(N_USERS), each), rng.integers(0, 40, N_USERS * each)
    z = np.where(user % 2, 1.0, -1.0) * (2.0 * points[point, 0] - 1.0 * points[point, 1])
    noisy = z + rng.normal(size=len(z))
    outcome = np.where(np.abs(noisy) <= delta, 0, np.sign(noisy)).astype(int)
    return points, TradeOffAnswers.of(user, point, outcome, n_users=N_USERS, n_points=40)


def basis_of(points, variance=3.0):
    return DenseBasis.of(Antisymmetric(Scaled(Stationary(np.full(2, 2.0), "squared-exponential"), variance)), points)


def test_exact_weights_climb_the_joint_posterior():
    at = problem(n_users=8, n=120)
    start = random_weights(8, 3, np.random.default_rng(0))
    settings = FitSettings("exact", damping=1.0, tolerance=1e-9, max_rounds=40)
    found = run(at.basis, at.answers, start, settings)
    assert len(found.objectives) > 5
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(found.objectives))
    assert found.objectives[-1] > found.objectives[0]


def test_where_exact_weights_stop_both_halves_are_at_their_best():
    at = problem(n_users=8, n=120)
    found = run(
        at.basis, at.answers, random_weights(8, 3, np.random.default_rng(0)),
        FitSettings("exact", damping=1.0, tolerance=1e-7, max_rounds=3000),
    )  # fmt: skip
    assert found.report.converged
    rng, there = np.random.default_rng(1), objective_of(at.answers, found.mode.F, found.gamma)
    for _ in range(20):
        other = 0.99 * found.gamma + 0.01 * rng.dirichlet(np.ones(3), 8)
        assert objective_of(at.answers, found.mode.F, other) <= there + 1e-6


def test_uniform_weights_are_a_saddle_that_nothing_leaves():
    at = problem()
    for estimator in ("heuristic", "exact"):
        found = run(at.basis, at.answers, np.full((5, 3), 1 / 3), FitSettings(estimator))
        np.testing.assert_allclose(found.gamma, 1 / 3, atol=CONVERGED)
        np.testing.assert_allclose(found.mode.F, np.repeat(found.mode.F[:, :1], 3, axis=1), atol=CONVERGED)


@pytest.mark.parametrize("estimator", ["heuristic", "exact"])
def test_two_groups_are_told_apart(estimator):
    points, answers = two_groups()
    found = best_start(basis_of(points), answers, 2, FitSettings(estimator, n_starts=3)).em
    first = found.gamma[:, found.gamma[1].argmax()]
    assert first[1::2].min() > 0.8 > 0.2 > first[::2].max()
    alone = run(basis_of(points), answers, np.ones((N_USERS, 1)), FitSettings(estimator))
    assert found.evidence > alone.evidence + 50.0


@pytest.mark.parametrize("estimator", ["heuristic", "exact"])
def test_where_it_stops_the_mode_that_is_kept_leaves_weights_where_they_are(estimator):
    points, answers = two_groups(each=12)
    found = best_start(basis_of(points), answers, 3, FitSettings(estimator, n_starts=2)).em
    assert found.report.converged
    again = find_mode(basis_of(points), answers, found.gamma, Probit(), Newton(), tolerance=1e-12)
    np.testing.assert_allclose(again.F, found.mode.F, atol=ITERATIVE)
    if estimator == "heuristic":
        new = heuristic_weights(answers, again.F)
    else:
        new = likeliest_weights(answers, again.F, start=found.gamma).weights
    np.testing.assert_allclose(np.abs(new - found.gamma).max(), found.report.residual, atol=1e-3)
    assert found.report.residual < FitSettings().tolerance
    assert found.gamma.min() >= 0.0  # however far steps go
    np.testing.assert_allclose(found.gamma.sum(axis=1), 1.0, atol=EXACT)


def test_the_order_of_answers_changes_no_bit():
    at = problem(n_users=8, n=60)
    y, order = at.answers, np.random.default_rng(0).permutation(at.answers.n_rows)
    turned = TradeOffAnswers.of(
        y.user[order], y.point[order], y.outcome[order], y.weight[order], n_users=8, n_points=y.n_points
    )
    start = random_weights(8, 3, np.random.default_rng(0))
    one, other = (run(at.basis, rows, start, FitSettings()) for rows in (y, turned))
    np.testing.assert_array_equal(one.mode.w, other.mode.w)
    np.testing.assert_array_equal(one.gamma, other.gamma)
    assert one.evidence == other.evidence


def test_without_evidence_all_else_is_the_same():
    at = problem(n_users=8, n=60)
    start = random_weights(8, 3, np.random.default_rng(0))
    one, other = (run(at.basis, at.answers, start, FitSettings(), with_evidence=some) for some in (True, False))
    np.testing.assert_array_equal(one.mode.w, other.mode.w)
    assert np.isfinite(one.evidence)
    assert np.isnan(other.evidence)


def test_seeds_differ_and_repeat():
    at = problem(n_users=8, n=60)
    runs = [best_start(at.basis, at.answers, 3, FitSettings(random_state=s)).em.gamma for s in (0, 0, 5)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 1e-3


def test_the_best_of_several_starts_is_kept():
    points, answers = two_groups(seed=3, each=8)
    found = best_start(basis_of(points), answers, 3, FitSettings(n_starts=4))
    assert len(found.evidences) == 4
    assert found.em.evidence >= max(found.evidences) - 2.0
    again = best_start(basis_of(points), answers, 3, FitSettings(random_state=int(np.argmax(found.evidences))))
    np.testing.assert_allclose(again.em.evidence, found.em.evidence, atol=0.5)


def test_the_tie_threshold_is_learned():
    points, answers = two_groups(each=60, delta=0.5)
    found = best_start(basis_of(points, 10.0), answers, 2, FitSettings(n_starts=2)).em
    assert abs(found.delta - 0.5) < 0.12
    assert run(basis_of(points), answers, found.gamma, FitSettings(delta=0.7)).delta == 0.7


def test_weights_of_a_row_are_answers():
    at = problem(n_users=6, n=30)
    y = at.answers
    twice = TradeOffAnswers.of(
        np.tile(y.user, 2), np.tile(y.point, 2), np.tile(y.outcome, 2), np.tile(y.weight, 2), n_users=6, n_points=9
    )
    heavy = TradeOffAnswers.of(y.user, y.point, y.outcome, 2.0 * y.weight, n_users=6, n_points=9)
    one, other = (run(at.basis, rows, at.gamma[[0, 1, 2, 3, 4, 0]], FitSettings()) for rows in (twice, heavy))
    np.testing.assert_array_equal(one.mode.F, other.mode.F)
    assert one.evidence == other.evidence


# How sure to be


@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_a_spread_that_was_planted_is_found(delta):
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=20_000) * 2.0, np.full(20_000, 0.3)
    p = outcome_probabilities(mean, 2.5 * (1.0 + var) - 1.0, delta)
    outcome = np.array([1, 0, -1])[(rng.random((20_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)].astype(np.int8)
    found = spread_factor(outcome, mean, var, np.ones(20_000), delta)
    assert abs(found - 2.5) < 0.25
    wider = [spread * (1.0 + var) - 1.0 for spread in (1.0, found, 6.0)]
    losses = [log_loss(outcome, mean, some, np.ones(20_000), delta) for some in wider]
    assert losses[1] < min(losses[0], losses[2])


def test_held_out_variances_by_eigenpairs_are_near_the_exact_ones(monkeypatch):
    levels = [np.linspace(-1.0, 1.0, n) for n in (5, 5, 3)]
    rng = np.random.default_rng(0)
    places = 74 - np.arange(37)  # one half of the grid
    kernels = [Stationary(np.array([1.5]), "squared-exponential")] * 3
    basis = GridBasis.of(levels, kernels, places, amplitude=3.0, antisymmetric=True)
    user, point = rng.integers(0, 6, 300), rng.integers(0, 37, 300)
    answers = TradeOffAnswers.of(user, point, rng.choice([-1, 1], 300), n_users=6, n_points=37)
    found = run(basis, answers, random_weights(6, 2, rng), FitSettings())
    rough, exact = FitSettings(n_eigenpairs=20), FitSettings(variances="exact")
    mean, var = held_out_margins(found, answers, rough)  # factorised: exact whatever is asked for
    np.testing.assert_array_equal(var, held_out_margins(found, answers, exact)[1])
    monkeypatch.setattr(choosing, "curvature_at", lambda state: ByProducts(state.basis, state.B))
    np.testing.assert_allclose(held_out_margins(found, answers, exact)[1], var, atol=CONVERGED)
    other, near = held_out_margins(found, answers, rough)
    np.testing.assert_array_equal(other, mean)
    assert 1e-9 < np.abs(near - var).max() < 0.02 * var.max()


def test_predictions_are_never_made_surer():
    mean = np.full(50, 0.3)
    assert spread_factor(np.ones(50, dtype=np.int8), mean, np.ones(50), np.ones(50), 0.0) == 1.0


def test_trials_prefer_the_right_number_of_characteristics():
    points, answers = two_groups(each=40)
    out = np.random.default_rng(2).random(answers.n_rows) < 0.2
    kept, asked = (
        TradeOffAnswers.of(*(getattr(answers, name)[rows] for name in ("user", "point", "outcome", "weight")),
                           n_users=answers.n_users, n_points=answers.n_points) for rows in (~out, out)
    )  # fmt: skip
    basis = basis_of(points)
    one, two = (
        judged(some, predict_held_out(some, basis, [(kept, asked)], FitSettings())[0])
        for some in (KernelCandidate(basis.kernel, n) for n in (1, 2))
    )
    assert two.log_loss < one.log_loss - 0.1


# Hyper-parameters


def test_length_scales_by_rule():
    points = np.array([[1.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(length_scales_by_rule(points, "median", False, 0), 4.0)
    np.testing.assert_allclose(
        length_scales_by_rule(points, "per-dimension", False, 0), np.sqrt(2.0) * np.array([2, 4])
    )
    mirrored = length_scales_by_rule(points, "median", True, 0)
    np.testing.assert_allclose(mirrored, length_scales_by_rule(np.vstack([points, -points]), "median", False, 0))


@pytest.mark.slow
def test_the_evidence_given_weights_has_no_slope_where_its_search_ends():
    points, answers = two_groups(each=12)
    gamma = np.tile([[0.9, 0.1], [0.1, 0.9]], (N_USERS // 2, 1))
    kernel = Antisymmetric(Scaled(Stationary(np.full(2, 2.0), "squared-exponential"), 3.0))
    found = by_evidence(kernel, points, answers, gamma, 0.0, fixed=(), random_state=0)

    def evidence(theta):
        basis = DenseBasis.of(kernel.with_theta(theta), points)
        return run(basis, answers, gamma, FitSettings(max_rounds=0)).evidence

    best = evidence(found.kernel.theta)
    assert best > evidence(kernel.theta)
    np.testing.assert_allclose(best, found.fit.evidence, atol=1e-5)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-3
        slope = (evidence(found.kernel.theta + step) - evidence(found.kernel.theta - step)) / 2e-3
        np.testing.assert_allclose(slope, found.gradient[k], atol=1e-3)
    held = by_evidence(kernel, points, answers, gamma, 0.0, fixed=("variance",), random_state=0)
    np.testing.assert_allclose(held.kernel.theta[0], kernel.theta[0], atol=EXACT)
