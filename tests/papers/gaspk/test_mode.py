"""The mode of the characteristics and its curvature, against dense algebra and finite differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from predilect.inference.latent.laplace import laplace
from predilect.inference.latent.single import Problem
from predilect.inference.likelihoods.views import Probit
from predilect.papers.gaspk.em import answers as answers_module
from predilect.papers.gaspk.em import mode as solve
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.em.mode import Newton, curvature_at, find_mode, log_det_at
from predilect.papers.gaspk.posterior.curvature import ByAnswers, ByCoordinates
from predilect.papers.gaspk.posterior.solver import Preconditioner
from predilect.papers.gaspk.posterior.sums import gather
from tolerances import CONVERGED, EXACT, ITERATIVE
from tradeoff_problems import problem


def fit(at, delta=0.0, **options):
    return find_mode(at.basis, at.answers, at.gamma, Probit(delta), Newton(), **{"tolerance": 1e-12, **options})


def psi(at, w, delta=0.0):
    z = gather(at.answers.user, at.answers.point, at.gamma, at.basis.forward(w))
    value, *_ = Probit(delta).at(at.answers.outcome, z)
    return at.answers.weight @ value - 0.5 * np.sum(w**2)


@pytest.mark.parametrize("delta", [0.0, 0.4])
def test_the_mode_is_stationary_and_its_curvature_is_the_hessian(delta):
    at = problem(ties=delta > 0.0)
    found = fit(at, delta)
    rng = np.random.default_rng(1)
    inverse = curvature_at(found.state).covariance_matrix()
    for _ in range(3):
        step = rng.normal(size=found.w.shape)
        h = 1e-4
        up, down = psi(at, found.w + h * step, delta), psi(at, found.w - h * step, delta)
        assert abs(up - down) / (2 * h) < 1e-7
        second = -(up - 2 * psi(at, found.w, delta) + down) / h**2
        product = step + at.basis.backward(np.einsum("tcd,td->tc", found.state.B, at.basis.forward(step)))
        np.testing.assert_allclose(np.sum(step * product), second, rtol=1e-5)
        np.testing.assert_allclose(inverse @ product.ravel(), step.ravel(), atol=CONVERGED)


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_one_characteristic_is_classification_of_the_points(antisymmetric):
    at = problem(n_c=1, antisymmetric=antisymmetric)
    found, y = fit(at), at.answers
    referee = laplace(Problem.of(at.kernel(at.points), y.point, None, y.outcome, y.weight), tolerance=1e-12)
    np.testing.assert_allclose(found.F[:, 0], referee.mean, atol=CONVERGED)
    np.testing.assert_allclose(found.psi - 0.5 * log_det_at(found.state, 0), referee.evidence, atol=CONVERGED)
    covariance = at.basis.root @ curvature_at(found.state).mixed(np.ones(1)) @ at.basis.root.T
    np.testing.assert_allclose(covariance, referee.covariance(), atol=CONVERGED)


@pytest.mark.parametrize("n", [12, 90])  # the matrices of answers, and those of coordinates
def test_given_the_weights_it_is_classification_of_the_answers(n):
    at = problem(n=n, n_points=14)
    found, y = fit(at), at.answers
    G = (at.gamma[y.user] @ at.gamma[y.user].T) * at.kernel(at.points[y.point])
    referee = laplace(Problem.of(G, np.arange(y.n_rows), None, y.outcome, y.weight), tolerance=1e-12)
    curvature = curvature_at(found.state)
    assert isinstance(curvature, ByAnswers if n == 12 else ByCoordinates)
    np.testing.assert_allclose(found.margin, referee.mean, atol=CONVERGED)
    np.testing.assert_allclose(found.psi - 0.5 * log_det_at(found.state, 0), referee.evidence, atol=CONVERGED)
    var = curvature.variances(at.basis.root[y.point], at.gamma[y.user])
    np.testing.assert_allclose(var, np.diagonal(referee.covariance()), atol=CONVERGED)


@pytest.mark.parametrize("n", [12, 90])
def test_covariances_against_the_dense_posterior(n):
    at = problem(n=n, n_points=14, seed=3)
    found = fit(at)
    K = np.kron(at.kernel(at.points), np.eye(3))  # entry (t, c) is row 3 t + c
    W = np.zeros_like(K)
    for t, block in enumerate(found.state.B):
        W[3 * t : 3 * t + 3, 3 * t : 3 * t + 3] = block
    Sigma = K - K @ W @ np.linalg.inv(np.eye(len(K)) + K @ W) @ K
    dense = Sigma.reshape(14, 3, 14, 3)
    curvature, rows = curvature_at(found.state), at.basis.root
    np.testing.assert_allclose(curvature.blocks(rows), np.einsum("tctd->tcd", dense), atol=CONVERGED)
    gamma = np.random.default_rng(0).dirichlet(np.ones(3), 14)
    expected = np.einsum("tctd,tc,td->t", dense, gamma, gamma)
    np.testing.assert_allclose(curvature.variances(rows, gamma), expected, atol=CONVERGED)
    mixed = np.einsum("tcsd,c,d->ts", dense, gamma[0], gamma[0])
    np.testing.assert_allclose(rows @ curvature.mixed(gamma[0]) @ rows.T, mixed, atol=CONVERGED)
    # The variances of the characteristics alone, which the paper's algorithm 3 returns, are not enough.
    alone = np.einsum("tctc,tc->t", dense, gamma**2)
    assert np.abs(alone - expected).max() > 1e-3


def test_nothing_hangs_on_where_it_starts_or_on_the_order_of_characteristics():
    at = problem()
    found = fit(at)
    again = fit(at, start=np.random.default_rng(5).normal(size=found.w.shape) * 3.0)
    np.testing.assert_allclose(again.F, found.F, atol=CONVERGED)
    order = np.array([2, 0, 1])
    turned = find_mode(at.basis, at.answers, at.gamma[:, order], Probit(), Newton(), tolerance=1e-12)
    np.testing.assert_allclose(turned.F, found.F[:, order], atol=CONVERGED)
    np.testing.assert_allclose(turned.margin, found.margin, atol=CONVERGED)


def test_psi_rises_even_from_far_away():
    at = problem(variance=500.0)
    far = np.full((at.basis.rank, 3), 8.0)
    values = [psi(at, fit(at, start=far, max_iter=n).w) for n in range(1, 8)]
    assert values[0] > psi(at, far)
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(values))


def test_a_thousand_contradictory_answers():
    answers = TradeOffAnswers.of([0] * 2000, [0] * 2000, [1, -1] * 1000, n_users=1, n_points=9)
    assert answers.n_rows == 2
    at = problem()._replace(answers=answers, gamma=np.array([[1.0]]))
    found = fit(at)
    np.testing.assert_allclose(found.F, 0.0, atol=ITERATIVE)
    left = curvature_at(found.state).variances(at.basis.root[:1], np.ones((1, 1)))
    assert 0.0 < left[0] < 1e-3


def test_a_preconditioner_serves_on_until_the_curvature_has_moved(monkeypatch):
    monkeypatch.setattr(solve, "_FACTORISED_STEP", 0)  # by products, however few coordinates
    at = problem(n=400, n_points=30)
    state = fit(at).state
    right = np.random.default_rng(0).normal(size=(at.basis.rank, 3))
    expected = {f: Newton()(replace(state, by_point=f * state.by_point), right, 1e-10) for f in (1.0, 1.05, 1.5)}
    made = []

    def of(*arguments):
        made.append(arguments)
        return Preconditioner.of(*arguments)

    monkeypatch.setattr(solve, "Preconditioner", SimpleNamespace(of=of))
    newton = Newton()
    for factor, n_made in ((1.0, 1), (1.05, 1), (1.5, 2), (1.5, 2)):
        found = newton(replace(state, by_point=factor * state.by_point), right, 1e-10)
        np.testing.assert_allclose(found, expected[factor], atol=CONVERGED)
        assert len(made) == n_made


@pytest.mark.parametrize("more", [0, 1])
def test_few_equations_are_factorised_and_more_are_not(more, monkeypatch):
    at = problem()
    state = fit(at).state
    monkeypatch.setattr(solve, "_FACTORISED_STEP", at.basis.rank * 3 - more)
    made = []
    monkeypatch.setattr(solve, "Preconditioner", SimpleNamespace(of=lambda *_: made.append(1) or made_of(*_)))
    made_of = Preconditioner.of
    Newton()(state, np.ones((at.basis.rank, 3)), 1e-10)
    assert len(made) == more


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_a_mode_is_as_near_as_it_says(tolerance):
    at = problem(n=300, n_points=60)
    exact = fit(at)
    for seed in range(5):
        start = exact.w + 0.3 * np.random.default_rng(seed).normal(size=exact.w.shape)
        found = fit(at, start=start, tolerance=tolerance)
        assert found.report.converged
        off = np.abs(found.margin - exact.margin).max() / (1.0 + np.abs(exact.margin).max())
        assert off <= 5.0 * tolerance


def test_a_mode_under_other_weights_is_a_start_like_any_other():
    at = problem()
    other = SimpleNamespace(basis=at.basis, answers=at.answers, gamma=at.gamma[:, ::-1])
    before = fit(other)
    kept = before.w.copy(), before.F.copy()
    found, referee = fit(at, start=before), fit(at)
    np.testing.assert_allclose(found.w, referee.w, atol=CONVERGED)
    np.testing.assert_allclose(found.F, at.basis.forward(found.w), atol=EXACT)
    assert np.array_equal(before.w, kept[0])
    assert np.array_equal(before.F, kept[1])


def test_many_people_come_in_blocks_within_which_answers_are_by_trade_off(monkeypatch):
    monkeypatch.setattr(answers_module, "_PEOPLE_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    answers = TradeOffAnswers.of(
        rng.integers(0, 11, 90), rng.integers(0, 6, 90), rng.choice([-1, 1], 90), n_users=11, n_points=6
    )
    rows = answers.by_point
    assert np.array_equal(rows.rows(rows.weight), answers.weight)
    assert np.array_equal(rows.rows(rows.point.astype(float)), answers.point)
    told = list(zip(rows.user // 4, rows.point, rows.user, strict=True))
    assert told == sorted(told)
