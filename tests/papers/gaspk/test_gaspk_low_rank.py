"""Variances of characteristics, exact and from a few eigenvectors, against dense covariances of the grid."""

from __future__ import annotations

import numpy as np
import pytest

from gaspk_grids import covariance, kernels_of, problem
from predilect.papers.gaspk.posterior import solver as products_module
from predilect.papers.gaspk.posterior.grid import GridBasis, LowRank
from predilect.papers.gaspk.posterior.solver import ByProducts, largest_coordinates
from tolerances import CONVERGED, EXACT

PROBLEMS = [
    pytest.param({}, id="antisymmetric"),
    pytest.param({"antisymmetric": False, "n_answers": 60}, id="plain"),
    pytest.param({"n_answers": 2000, "amplitude": 5.0}, id="much data"),
]


def split(data, n_e):
    """Q S Qᵀ over the whole grid, and Λ as in K̃ = Q S Qᵀ + Λ: odd where the kernel is, to have K̃(t, -t) = K(t, -t)."""
    Q = data.basis.at(np.arange(len(data.K)), largest_coordinates(data.basis, n_e))
    low = Q @ Q.T
    slack = np.diag(np.diagonal(data.K - low))
    return low, slack - slack[:, ::-1] if data.basis.antisymmetric else slack


def written(data, n_e, codes):
    """Eq. 9 written out with K̃ ⊗ I over the whole grid."""
    low, slack = split(data, n_e)
    n, n_c = len(data.K), data.n_c
    eye = np.eye(n_c)
    W = np.zeros((n, n_c, n, n_c))
    W[data.basis.places, :, data.basis.places, :] = data.B
    W = W.reshape(n * n_c, -1)
    K = np.kron(low + slack, eye)
    V = K - K @ W @ np.linalg.solve(np.eye(len(W)) + K @ W, K)
    return V.reshape(n, n_c, n, n_c)[codes, :, codes, :]


@pytest.mark.slow
@pytest.mark.parametrize("options", PROBLEMS)
@pytest.mark.parametrize("n_e", [1, 4, 12])
def test_blocks_are_those_of_the_formula(options, n_e):
    data = problem(**options)
    codes = np.arange(len(data.K))
    found = LowRank.of(data.basis, data.B, n_e).blocks(data.basis.trade_offs(codes))
    assert found == pytest.approx(written(data, n_e, codes), abs=CONVERGED)
    assert np.array_equal(found, found.transpose(0, 2, 1))
    if data.basis.antisymmetric:
        assert found == pytest.approx(found[::-1], abs=EXACT)  # V(-t) = V(t)


@pytest.mark.parametrize("options", PROBLEMS)
def test_all_eigenvectors_make_it_exact(options):
    data = problem(**options)
    codes = np.arange(0, len(data.K), 3)
    exact = data.posterior(codes)
    model = LowRank.of(data.basis, data.B, 10**6)
    assert len(model.chosen) == data.basis.rank
    assert model.blocks(data.basis.trade_offs(codes)) == pytest.approx(exact, abs=CONVERGED)
    points = np.arange(5)
    assert model.point_blocks(points) == pytest.approx(data.posterior(data.basis.places[points]), abs=CONVERGED)


def test_variances_are_never_negative():
    data = problem(n_answers=20_000, amplitude=10.0)
    blocks = LowRank.of(data.basis, data.B, 1).blocks(data.basis.trade_offs(np.arange(len(data.K))))
    assert np.linalg.eigvalsh(blocks).min() >= -1e-12


def test_more_eigenvectors_come_nearer():
    data = problem(n_answers=400)
    codes = np.arange(len(data.K))
    exact = data.posterior(codes)
    errors = [
        np.abs(LowRank.of(data.basis, data.B, n).blocks(data.basis.trade_offs(codes)) - exact).mean()
        for n in (1, 5, 20, 60)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < CONVERGED < 1e-3 < errors[0]


def test_eigenvectors_are_counted_per_characteristic():
    data = problem()
    assert len(LowRank.of(data.basis, data.B, 7).chosen) == 7
    with pytest.raises(ValueError, match="at least one"):
        LowRank.of(data.basis, data.B, 0)


def test_the_trade_off_of_nothing_has_no_variance():
    levels = [[-1.0, 0.0, 1.0]] * 2
    basis = GridBasis.of(levels, kernels_of(levels), [4, 5], antisymmetric=True)
    model = LowRank.of(basis, np.ones((2, 1, 1)), 2)
    assert model.blocks(np.zeros((1, 2))) == pytest.approx(0.0, abs=EXACT)


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_off_the_grid_a_trade_off_has_what_the_eigenvectors_say_and_more_of_its_own(antisymmetric):
    data = problem(antisymmetric)
    basis, rng = data.basis, np.random.default_rng(4)
    x = rng.standard_normal((5, len(basis.axes)))
    kernels, grid = [axis.kernel for axis in basis.axes], basis.trade_offs(np.arange(len(data.K)))
    k = covariance(kernels, x, grid, 2.0, antisymmetric)
    own = np.diagonal(covariance(kernels, x, x, 2.0, antisymmetric))
    Q = basis.at(np.arange(len(data.K)), largest_coordinates(basis, 6))
    values = np.einsum("te,te->e", Q, Q)
    phi = k @ Q / values  # eigenvectors as functions
    model = LowRank.of(basis, data.B, 6)
    slack = np.diagonal(data.K)[basis.places] - np.einsum("te,te->t", Q[basis.places], Q[basis.places])
    Pi = np.linalg.solve(np.eye(data.n_c) + slack[:, None, None] * data.B, data.B)
    Pi_Q = np.einsum("te,tcd,tf->ecfd", Q[basis.places], Pi, Q[basis.places]).reshape(6 * data.n_c, -1)
    inverse = np.linalg.inv(np.eye(6 * data.n_c) + Pi_Q).reshape(6, data.n_c, 6, data.n_c)
    expected = np.einsum("qe,ecfd,qf->qcd", phi, inverse, phi)
    expected += (own - np.einsum("qe,qe->q", phi, phi))[:, None, None] * np.eye(data.n_c)
    assert model.blocks(x) == pytest.approx(expected, abs=CONVERGED)
    assert basis.observed(x).max() == -1


def test_a_trade_off_and_its_mirror_cannot_both_be_points():
    levels = [[-1.0, 0.0, 1.0]] * 2
    basis = GridBasis.of(levels, kernels_of(levels), [0, 5, 8], antisymmetric=True)
    with pytest.raises(ValueError, match="mirror"):
        LowRank.of(basis, np.ones((3, 1, 1)), 2)


@pytest.mark.parametrize("options", PROBLEMS)
def test_solutions_give_exact_variances(options, monkeypatch):
    data = problem(**options)
    codes = np.arange(0, len(data.K), 4)
    exact = data.posterior(codes)
    model = ByProducts(data.basis, data.B, tolerance=1e-12)
    rows = data.basis.at(codes)
    assert model.blocks(rows) == pytest.approx(exact, abs=CONVERGED)
    gamma = np.random.default_rng(0).dirichlet(np.ones(data.n_c), len(codes))
    expected = np.einsum("qc,qcd,qd->q", gamma, exact, gamma)
    assert model.variances(rows, gamma) == pytest.approx(expected, abs=CONVERGED)
    H = data.precision()
    directions = np.einsum("qj,c->qjc", rows, gamma[0]).reshape(len(rows), -1)
    assert model.covariance(rows, gamma[0]) == pytest.approx(
        directions @ np.linalg.solve(H, directions.T), abs=CONVERGED
    )
    every = np.kron(np.eye(data.basis.rank), gamma[0])
    assert model.mixed(gamma[0]) == pytest.approx(every @ np.linalg.solve(H, every.T), abs=CONVERGED)
    assert model.log_det() == pytest.approx(np.linalg.slogdet(H)[1], abs=CONVERGED)
    monkeypatch.setattr(products_module, "_COLUMNS", 7)
    assert model.blocks(rows) == pytest.approx(exact, abs=CONVERGED)
    assert model.variances(rows, gamma) == pytest.approx(expected, abs=CONVERGED)


def test_variances_stay_exact_where_solutions_are_rough(monkeypatch):
    data = problem(n_answers=2000, amplitude=5.0)
    monkeypatch.setattr(products_module, "_TOGETHER", 0)  # blocks of single coordinates, and more iterations
    codes = np.arange(0, len(data.K), 4)
    gamma = np.random.default_rng(0).dirichlet(np.ones(data.n_c), len(codes))
    expected = np.einsum("qc,qcd,qd->q", gamma, data.posterior(codes), gamma)
    found = ByProducts(data.basis, data.B).variances(data.basis.at(codes), gamma)
    assert found == pytest.approx(expected, abs=CONVERGED)
    monkeypatch.setattr(products_module, "_VARIANCE", 1e-2)
    rough = ByProducts(data.basis, data.B).variances(data.basis.at(codes), gamma)
    assert 1e-10 < np.abs(rough - expected).max() <= 1e-4 * 5.0
