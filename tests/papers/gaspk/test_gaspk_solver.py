"""Conjugate gradients in the coordinates of a basis, and the log-determinant, against the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from gaspk_grids import problem
from predilect.inference.gaussian.kernels import Stationary, matern
from predilect.papers.gaspk.posterior import solver as solver_module
from predilect.papers.gaspk.posterior.basis import DenseBasis
from predilect.papers.gaspk.posterior.solver import (
    Preconditioner,
    assembled,
    largest_coordinates,
    log_determinant,
    precision_product,
    solve,
    telling_coordinates,
)
from tolerances import CONVERGED, EXACT, STATISTICAL

PROBLEMS = [
    pytest.param({}, id="along axes"),
    pytest.param({"antisymmetric": False}, id="plain"),
    pytest.param({"n_c": 1}, id="one characteristic"),
    pytest.param({"n_answers": 3000, "amplitude": 10.0}, id="much data"),
]


@pytest.mark.parametrize("options", PROBLEMS)
@pytest.mark.parametrize("n_together", [0, 5, 10_000])
def test_solutions_are_those_of_the_dense_matrix(options, n_together):
    data = problem(**options)
    basis, B, H = data.basis, data.B, data.precision()
    rng = np.random.default_rng(1)
    right = rng.standard_normal((basis.rank, data.n_c, 3))
    flat = right.reshape(len(H), 3)
    assert precision_product(basis, B, flat) == pytest.approx(H @ flat, abs=CONVERGED)
    assert precision_product(basis, B, flat[:, :1]) == pytest.approx(H @ flat[:, :1], abs=CONVERGED)
    packed = B[:, *np.tril_indices(data.n_c)]  # lower triangles serve as well
    for some in (flat, flat[:, :1]):
        assert precision_product(basis, packed, some) == pytest.approx(H @ some, abs=CONVERGED)
    P = Preconditioner.of(basis, B, largest_coordinates(basis, n_together))
    same = Preconditioner.of(basis, packed, largest_coordinates(basis, n_together))
    assert np.array_equal(same.solve(flat), P.solve(flat))
    expected = np.linalg.solve(H, flat).reshape(right.shape)
    found = solve(basis, B, right, preconditioner=P, tolerance=1e-12)
    assert found.converged
    assert found.x == pytest.approx(expected, abs=EXACT)
    one = solve(basis, B, right[:, :, 0], preconditioner=P, tolerance=1e-12)
    assert one.x == pytest.approx(expected[:, :, 0], abs=EXACT)
    assert solve(basis, packed, right[:, :, 0], tolerance=1e-12).x == pytest.approx(expected[:, :, 0], abs=EXACT)
    if n_together > basis.rank:
        assert found.iterations == 1  # P is H
    assert solve(basis, B, right, tolerance=1e-12).x == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("n_together", [0, 5, 10_000])
def test_the_preconditioner_is_the_blocks_of_the_matrix(n_together):
    data = problem()
    H, n_c, rank = data.precision(), data.n_c, data.basis.rank
    together = largest_coordinates(data.basis, n_together)
    group = np.arange(rank)
    group[together] = -1
    P = Preconditioner.of(data.basis, data.B, together)
    quiet = np.ones(rank, dtype=bool)
    quiet[P.alone] = quiet[together] = False
    same = np.repeat(group, n_c)[:, None] == np.repeat(group, n_c)
    written = np.where(same, H, 0.0)
    left = np.repeat(quiet, n_c)
    assert np.abs(written[np.ix_(left, left)] - np.eye(left.sum())).max(initial=0.0) <= 1e-3
    written[np.ix_(left, left)] = np.eye(left.sum())
    x = np.random.default_rng(0).standard_normal((len(H), 2))
    assert P.solve(x) == pytest.approx(np.linalg.solve(written, x), abs=EXACT)
    assert P.solve(x[:, :1]) == pytest.approx(np.linalg.solve(written, x[:, :1]), abs=EXACT)
    assert P.half_transposed(P.half(x)) == pytest.approx(P.solve(x), abs=EXACT)
    assert np.einsum("nk,nl->kl", P.half(x), P.half(x)) == pytest.approx(x.T @ P.solve(x), abs=EXACT)
    assert P.log_det() == pytest.approx(np.linalg.slogdet(written)[1], abs=EXACT)
    if n_together > rank:
        assert P.log_det() == pytest.approx(np.linalg.slogdet(H)[1], abs=EXACT)


def test_the_preconditioner_saves_iterations_and_a_stale_one_is_only_slower():
    data = problem(n_answers=3000, amplitude=10.0, share=1.0)
    right = np.random.default_rng(1).standard_normal((data.basis.rank, data.n_c))
    identity = Preconditioner.of(data.basis, 0.0 * data.B)
    assert len(identity.alone) == 0
    plain = solve(data.basis, data.B, right, preconditioner=identity)
    alone = solve(data.basis, data.B, right)
    stale = solve(data.basis, data.B, right, preconditioner=Preconditioner.of(data.basis, 0.5 * data.B))
    together = Preconditioner.of(data.basis, data.B, largest_coordinates(data.basis, 20))
    both = solve(data.basis, data.B, right, preconditioner=together)
    assert both.iterations < alone.iterations < 0.7 * plain.iterations
    assert stale.x == pytest.approx(alone.x, abs=1e-6)


def test_restricted_matrices_are_rows_and_columns_of_the_whole():
    data = problem()
    H, n_c = data.precision(), data.n_c
    some = np.array([0, 4, 5, 17])
    rows = (some[:, None] * n_c + np.arange(n_c)).ravel()
    assert assembled(data.basis, data.B, some) == pytest.approx(H[np.ix_(rows, rows)], abs=EXACT)


def test_the_largest_coordinates_have_the_largest_eigenvalues():
    basis = problem().basis
    chosen = largest_coordinates(basis, 9)
    rest = np.setdiff1d(np.arange(basis.rank), chosen)
    assert (np.diff(chosen) > 0).all()
    assert basis.eigenvalues[chosen].min() >= basis.eigenvalues[rest].max() * (1.0 - 1e-9)
    assert len(largest_coordinates(basis, 10**6)) == basis.rank


def test_a_basis_without_a_grid_is_as_good():
    rng = np.random.default_rng(0)
    basis = DenseBasis.of(matern([1.0, 2.0]), rng.standard_normal((20, 2)))
    G = rng.standard_normal((20, 2, 2))
    B = G @ G.transpose(0, 2, 1)
    Phi = basis.dense()
    H = np.einsum("tj,tcd,tk->jckd", Phi, B, Phi).reshape(40, 40) + np.eye(40)
    right = rng.standard_normal((20, 2))
    expected = np.linalg.solve(H, right.ravel()).reshape(20, 2)
    P = Preconditioner.of(basis, B, largest_coordinates(basis, 4))
    assert solve(basis, B, right, preconditioner=P, tolerance=1e-12).x == pytest.approx(expected, abs=EXACT)
    assert solve(basis, B, right, tolerance=1e-12).x == pytest.approx(expected, abs=EXACT)
    assert log_determinant(basis, B).value == pytest.approx(np.linalg.slogdet(H)[1], abs=EXACT)


def test_right_hand_sides_are_worked_on_in_parts(monkeypatch):
    data = problem()
    right = np.random.default_rng(1).standard_normal((data.basis.rank, data.n_c, 5))
    whole = solve(data.basis, data.B, right, tolerance=1e-12)
    monkeypatch.setattr(solver_module, "_NUMBERS_AT_ONCE", 2 * data.basis.rank * data.n_c)
    parts = solve(data.basis, data.B, right, tolerance=1e-12)
    assert parts.x == pytest.approx(whole.x, abs=EXACT)
    assert solve(data.basis, data.B, right[:, :, :0]).x.shape == right[:, :, :0].shape


def test_a_solution_that_ran_out_of_iterations_says_so():
    data = problem(n_answers=3000, amplitude=10.0)
    right = np.random.default_rng(1).standard_normal((data.basis.rank, data.n_c))
    found = solve(data.basis, data.B, right, max_iter=2)
    assert not found.converged
    assert found.residual > 1e-8


@pytest.mark.parametrize("options", PROBLEMS)
def test_the_log_determinant_is_exact_where_it_is_small(options):
    data = problem(**options)
    found = log_determinant(data.basis, data.B)
    assert found.value == pytest.approx(np.linalg.slogdet(data.precision())[1], abs=CONVERGED)
    assert found.standard_error == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("options", PROBLEMS)
@pytest.mark.parametrize("n_together", [0, 10])
def test_probes_estimate_the_log_determinant_and_their_error(options, n_together):
    data = problem(**options)
    exact = np.linalg.slogdet(data.precision())[1]
    P = Preconditioner.of(data.basis, data.B, largest_coordinates(data.basis, n_together))
    found = [
        log_determinant(data.basis, data.B, preconditioner=P, exact=False, random_state=seed) for seed in range(12)
    ]
    errors = np.array([one.value - exact for one in found])
    claimed = np.array([one.standard_error for one in found])
    assert (np.abs(errors) <= STATISTICAL * claimed + CONVERGED * exact).all()
    assert np.sqrt(np.mean(errors**2)) >= 0.4 * np.sqrt(np.mean(claimed**2))  # and it is not too careful
    assert claimed.max() <= 0.02 * exact
    again = log_determinant(data.basis, data.B, preconditioner=P, exact=False, random_state=3)
    assert again == found[3]


def test_enough_probes_find_it_closely():
    data = problem()
    exact = np.linalg.slogdet(data.precision())[1]
    found = log_determinant(data.basis, data.B, exact=False, n_probes=300)
    P = Preconditioner.of(data.basis, data.B, np.arange(data.basis.rank))
    assert found.value == pytest.approx(exact, abs=1e-3 * exact)
    whole = log_determinant(data.basis, data.B, preconditioner=P, exact=False)
    assert whole.value == pytest.approx(exact, abs=CONVERGED)
    assert whole.standard_error <= CONVERGED
    with pytest.raises(ValueError, match="at least 2 probes"):
        log_determinant(data.basis, data.B, exact=False, n_probes=1)


def test_a_basis_of_the_coordinates_that_tell_most_leaves_out_no_more_than_it_may():
    on_grid = problem().basis
    points = np.random.default_rng(0).normal(size=(60, 2))
    over_points = DenseBasis.of(Stationary(np.array([1.0, 2.0]), "squared-exponential"), points)
    for basis, all_of_them in ((on_grid, on_grid.eigenvalues.sum()), (over_points, 60.0)):
        for rest in (0.1, 1e-3):
            chosen = telling_coordinates(basis, rest)
            short = basis.only(chosen)
            assert short.rank == len(chosen) < basis.rank
            left = np.sort(basis.sizes)
            n_left = basis.rank - short.rank
            assert left[:n_left].sum() <= rest * all_of_them < left[: n_left + 1].sum()
            np.testing.assert_array_equal(short.dense(), basis.dense()[:, chosen])
            x = points[:5] if basis is over_points else basis.trade_offs(basis.places[:5])
            np.testing.assert_allclose(short.rows(x)[0], basis.rows(x)[0][:, chosen], atol=EXACT)
    assert len(telling_coordinates(on_grid, 0.0)) == on_grid.rank
