"""The one Cholesky of the package: solves, determinants, jitter and what cannot be factorised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, solve_triangular

from predilect.inference.gaussian.dense import (
    NotPositiveDefiniteError,
    eigenpairs,
    factorise,
    gram_of_lower,
    inverse_and_log_det,
    inverse_root,
    lower_times,
    mirror,
    over_lower,
    root_of_difference,
    sandwiched,
    semidefinite_root,
    solve_lower,
    symmetrise,
    times_lower,
    widened,
)
from predilect.inference.gaussian.kernels import squared_exponential
from tolerances import CONVERGED, EXACT, ITERATIVE


def with_condition(condition: float, n: int = 8, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return symmetrise((basis * np.geomspace(1.0, 1.0 / condition, n)) @ basis.T)


def test_factor_solve_inverse_and_log_determinant():
    A = with_condition(1e4)
    factor = factorise(A)
    assert factor.jitter == 0.0
    np.testing.assert_allclose(factor.lower @ factor.lower.T, A, atol=EXACT)
    np.testing.assert_array_equal(np.triu(factor.lower, 1), 0.0)
    right = np.random.default_rng(1).standard_normal((8, 3))
    np.testing.assert_allclose(A @ factor.solve(right), right, atol=EXACT)
    np.testing.assert_allclose(A @ factor.solve(right[:, 0]), right[:, 0], atol=EXACT)
    np.testing.assert_allclose(factor.lower @ factor.solve_lower(right), right, atol=EXACT)
    np.testing.assert_allclose(factor.inverse() @ A, np.eye(8), atol=EXACT)
    np.testing.assert_array_equal(factor.inverse(), factor.inverse().T)
    assert abs(factor.log_det() - np.linalg.slogdet(A)[1]) < EXACT


@pytest.mark.parametrize("n", [1, 30, 249, 251, 700])  # whole, halved once, and twice
def test_inverse_and_log_determinant_at_once(n):
    A = with_condition(1e4, n, seed=n)
    inverse, log_det = inverse_and_log_det(A)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=EXACT)
    np.testing.assert_allclose(inverse, inverse.T, atol=EXACT)
    assert abs(log_det - np.linalg.slogdet(A)[1]) < CONVERGED


@pytest.mark.parametrize("n", [0, 1, 30, 249, 700])
def test_a_root_of_the_inverse_is_a_triangle(n):
    A = with_condition(1e4, n, seed=n)
    W, log_det = inverse_root(A)
    np.testing.assert_array_equal(np.triu(W, 1), 0.0)
    np.testing.assert_allclose(W @ A @ W.T, np.eye(n), atol=EXACT)
    np.testing.assert_allclose(gram_of_lower(W), W.T @ W, atol=EXACT * (np.abs(W).max(initial=0.0)) ** 2)
    assert abs(log_det - np.linalg.slogdet(A)[1]) < CONVERGED


@pytest.mark.parametrize("n", [0, 1, 30, 300])
def test_products_with_triangles_are_products(n):
    rng = np.random.default_rng(n)
    B, L = rng.standard_normal((n, n)), np.tril(rng.standard_normal((n, n)))
    held = B.copy(), L.copy()
    for order in ("C", "F"):
        lower = np.array(L, order=order)
        np.testing.assert_allclose(lower_times(lower, B), L @ B, atol=EXACT)
        np.testing.assert_allclose(lower_times(lower, B, transposed=True), L.T @ B, atol=EXACT)
        np.testing.assert_allclose(times_lower(B, lower), B @ L, atol=EXACT)
        well = lower / max(n, 1) + np.eye(n)
        np.testing.assert_allclose(over_lower(B, well) @ well, B, atol=EXACT)
        np.testing.assert_allclose(over_lower(B, well, transposed=True) @ well.T, B, atol=EXACT)
    np.testing.assert_array_equal(B, held[0])
    np.testing.assert_array_equal(L, held[1])


@pytest.mark.parametrize("n", [1, 40, 700])
def test_a_product_of_three_is_that_of_all_its_elements(n):
    rng = np.random.default_rng(n)
    A, B = (symmetrise(rng.standard_normal((n, n))) for _ in range(2))
    found = sandwiched(A, B)
    np.testing.assert_allclose(found, A @ B @ A, rtol=0.0, atol=EXACT * np.abs(found).max())


def test_a_diagonal_matrix_is_its_own_root():
    variances = np.array([4.0, 0.25, 1e-30, 9.0])
    factor = factorise(np.diag(variances))
    assert factor.jitter == 0.0
    np.testing.assert_array_equal(factor.lower, np.diag(np.sqrt(variances)))
    np.testing.assert_allclose(factor.inverse(), np.diag(1.0 / variances), rtol=EXACT)
    A = with_condition(100.0, 4)
    lower = factorise(A).lower
    np.testing.assert_allclose(lower @ factorise(A).solve_lower(np.diag(variances)), np.diag(variances), atol=EXACT)
    # and one that is nearly so is not taken for it
    A = np.eye(20)
    A[19, 18] = A[18, 19] = 0.5
    np.testing.assert_allclose(factorise(A).inverse(), np.linalg.inv(A), atol=EXACT)


def test_a_condition_of_ten_billion_needs_no_jitter():
    A = with_condition(1e10)
    factor = factorise(A)
    assert factor.jitter == 0.0
    # log |A| and A⁻¹ are known to the condition times rounding.
    assert abs(factor.log_det() - 8 * np.log(1e-5)) < ITERATIVE * 10
    np.testing.assert_allclose(A @ factor.inverse(), np.eye(8), atol=1e-5)


def test_only_the_lower_triangle_is_read():
    A = with_condition(10.0)
    np.testing.assert_array_equal(factorise(np.tril(A)).lower, factorise(A).lower)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_singular_matrix_gets_jitter_relative_to_its_diagonal(scale):
    # Two items with the very same features.
    root = np.random.default_rng(3).standard_normal((3, 2))
    A = scale * np.vstack([root, root]) @ np.vstack([root, root]).T
    factor = factorise(A)
    mean = np.mean(np.diagonal(A))
    assert 1e-11 * mean < factor.jitter <= 1.0001e-6 * mean
    np.testing.assert_allclose(factor.lower @ factor.lower.T, A + factor.jitter * np.eye(6), atol=EXACT * mean)


def test_jitter_escalates_only_as_far_as_needed():
    for negative in (1e-9, 1e-7, 1e-5):
        A = np.diag([1.0, 1.0, 1.0, -negative])
        jitter = factorise(A).jitter
        assert negative < jitter <= 20 * negative


def test_beyond_the_ladder_it_is_an_error_that_says_why():
    with pytest.raises(NotPositiveDefiniteError, match="identical rows of features"):
        factorise(np.diag([1.0, 1.0, -0.01]))
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        factorise(np.full((2, 2), np.nan))


@pytest.mark.parametrize("place", [(1, 0), (2, 2)])
def test_a_single_value_that_is_not_finite_is_refused(place):
    A = np.eye(3)
    A[place] = A[place[::-1]] = np.nan
    with pytest.raises(NotPositiveDefiniteError):
        factorise(A)


def test_squared_exponential_is_its_formula_and_positive_definite():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((6, 3)), rng.standard_normal((4, 3))
    K = squared_exponential(x, y, 0.7)
    for i in range(6):
        for j in range(4):
            assert abs(K[i, j] - np.exp(-np.sum((x[i] - y[j]) ** 2) / (2 * 0.49))) < EXACT
    own = squared_exponential(x, x, 0.7)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(np.diagonal(own), 1.0)
    assert np.linalg.eigvalsh(own).min() > -EXACT


def test_the_root_of_a_singular_matrix_has_the_columns_of_its_rank():
    rng = np.random.default_rng(2)
    tall = rng.standard_normal((9, 4))
    for matrix, rank in ((tall @ tall.T, 4), (with_condition(1e4), 8), (np.zeros((3, 3)), 0), (np.ones((5, 5)), 1)):
        root = semidefinite_root(matrix)
        assert root.shape == (len(matrix), rank)
        np.testing.assert_allclose(root @ root.T, matrix, atol=EXACT)


def test_no_root_of_what_is_clearly_indefinite_or_not_finite():
    slightly = np.diag([1.0, 1.0, -1e-6])  # little, and no rounding
    for matrix in (-np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), slightly):
        with pytest.raises(NotPositiveDefiniteError, match="not positive semi-definite"):
            semidefinite_root(matrix)
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        semidefinite_root(np.array([[1.0, np.nan], [np.nan, 1.0]]))


def test_eigenpairs_are_sorted_and_signed():
    A = with_condition(30.0, 4, seed=1)
    values, vectors = eigenpairs(A)
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=EXACT)
    assert np.all(vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0)
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        eigenpairs(np.full((2, 2), np.nan))
    assert eigenpairs(np.zeros((0, 0)))[1].shape == (0, 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 0)])
def test_a_triangular_system_is_solved_as_scipy_solves_it(order, transposed, shape):
    rng = np.random.default_rng(0)
    L = np.asarray(np.tril(rng.standard_normal((5, 5)) + 3.0 * np.eye(5)), order=order)
    right = rng.standard_normal(shape)
    expected = solve_triangular(L, right, lower=True, trans=int(transposed))
    np.testing.assert_array_equal(solve_lower(L, right, transposed), expected)


def test_a_triangular_system_with_a_zero_on_the_diagonal_is_refused():
    with pytest.raises(LinAlgError, match="row 2 of a triangular matrix"):
        solve_lower(np.diag([1.0, 0.0, 2.0]), np.ones(3))
    assert solve_lower(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    assert factorise(np.zeros((0, 0))).solve(np.zeros(0)).shape == (0,)  # failed with the lowest SciPy alone
    assert factorise(np.zeros((0, 0))).solve(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("n", [0, 1, 5, 256, 600])
def test_a_lower_triangle_is_mirrored(n):
    lower = np.tril(np.random.default_rng(n).standard_normal((n, n)))
    expected = lower + np.tril(lower, -1).T
    mirror(lower)
    np.testing.assert_array_equal(lower, expected)


def test_a_change_of_a_covariance_is_halved_until_the_sum_is_one():
    C = np.diag([1.0, 2.0])
    np.testing.assert_array_equal(widened(C, np.eye(2)), C + np.eye(2))
    np.testing.assert_array_equal(widened(C, np.diag([-3.0, 1.0])), np.diag([0.25, 2.25]))
    np.testing.assert_array_equal(widened(np.diag([-1.0, 1.0]), np.diag([-1.0, 0.0])), np.diag([-1.0, 1.0]))  # it ends


def test_the_root_of_a_difference_takes_what_rounding_left_below_zero_for_zero():
    basis, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))
    values = np.array([5.0, 2.0, 1.0, -2e-4])
    matrix = symmetrise((basis * values) @ basis.T)
    with pytest.raises(NotPositiveDefiniteError):
        semidefinite_root(matrix)
    root = root_of_difference(matrix)
    np.testing.assert_allclose(root @ root.T, (basis * np.maximum(values, 0.0)) @ basis.T, atol=EXACT)
    proper = with_condition(100.0)
    np.testing.assert_array_equal(root_of_difference(proper), semidefinite_root(proper))
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        root_of_difference(np.full((2, 2), np.nan))
