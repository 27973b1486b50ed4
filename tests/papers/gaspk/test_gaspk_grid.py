"""The coordinates of a grid against the covariance of the grid written out."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from gaspk_grids import PLAIN, SYMMETRIC, covariance, kernels_of, trade_offs
from predilect.inference.gaussian.kernels import Linear, Stationary
from predilect.papers.gaspk.posterior import grid as grid_module
from predilect.papers.gaspk.posterior.axes import along, grouped
from predilect.papers.gaspk.posterior.grid import GridBasis
from tolerances import EXACT

CASES = [
    (SYMMETRIC, True),
    (SYMMETRIC, False),
    (PLAIN, False),
    ([[-1.0, 0.0, 1.0]], True),
    ([[0.0], [-1.0, 0.0, 1.0]], True),
    ([[-3.0, 3.0], [0.0]], True),
]


@pytest.fixture(params=[0.0, 10.0, 1e6], ids=["single axes", "groups", "one group"])
def group(request, monkeypatch):
    monkeypatch.setattr(grid_module, "_PASS", request.param)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "antisymmetric"), CASES)
def test_coordinates_make_the_covariance_of_the_grid(levels, antisymmetric, group):
    rng = np.random.default_rng(0)
    x, kernels = trade_offs(levels), kernels_of(levels)
    K = covariance(kernels, x, x, 2.0, antisymmetric)
    places = rng.permutation(len(x))[: max(2, 2 * len(x) // 3)]
    basis = GridBasis.of(levels, kernels, places, amplitude=2.0, antisymmetric=antisymmetric)
    whole = basis.at(np.arange(len(x)))
    assert whole @ whole.T == pytest.approx(K, abs=EXACT)
    assert basis.rank == np.linalg.matrix_rank(K, hermitian=True)
    Phi = basis.dense()
    assert Phi == pytest.approx(whole[places], abs=EXACT)
    w, v = rng.standard_normal((basis.rank, 3)), rng.standard_normal((len(places), 4))
    assert basis.forward(w) == pytest.approx(Phi @ w, abs=EXACT)
    assert basis.backward(v) == pytest.approx(Phi.T @ v, abs=EXACT)
    assert basis.gram_diagonal(v) == pytest.approx(np.square(Phi).T @ v, abs=EXACT)
    some = np.sort(rng.permutation(basis.rank)[: basis.rank // 2])
    assert basis.columns(some) == pytest.approx(Phi[:, some], abs=EXACT)
    some = rng.integers(0, len(places), 7)
    assert basis.point_rows(some) == pytest.approx(Phi[some], abs=EXACT)
    twice = basis.times(2.0, kernels[0])
    assert twice.dense() @ twice.dense().T == pytest.approx(2.0 * K[np.ix_(places, places)], abs=EXACT)


@pytest.mark.parametrize(("levels", "antisymmetric"), CASES)
def test_eigenvalues_are_those_of_the_dense_matrix(levels, antisymmetric):
    x, kernels = trade_offs(levels), kernels_of(levels)
    basis = GridBasis.of(levels, kernels, np.arange(len(x)), amplitude=3.0, antisymmetric=antisymmetric)
    dense = np.linalg.eigvalsh(covariance(kernels, x, x, 3.0, antisymmetric))[::-1]
    assert np.sort(basis.eigenvalues)[::-1] == pytest.approx(dense[: basis.rank], abs=EXACT)
    assert dense[basis.rank :] == pytest.approx(0.0, abs=EXACT)


def test_the_antisymmetric_half_has_the_eigenvalues_of_the_product_whose_parity_is_odd():
    x, kernels = trade_offs(SYMMETRIC), kernels_of(SYMMETRIC)
    values, vectors = np.linalg.eigh(covariance(kernels, x, x))
    reversal = np.einsum("ti,ti->i", vectors, vectors[::-1])  # ±1: the product's eigenvalues are simple here
    assert np.abs(reversal) == pytest.approx(1.0, abs=1e-8)
    basis = GridBasis.of(SYMMETRIC, kernels, np.arange(3), antisymmetric=True)
    assert np.sort(basis.eigenvalues) == pytest.approx(np.sort(values[reversal < 0.0]), abs=EXACT)


def test_without_antisymmetry_it_is_the_kronecker_product():
    kernels = kernels_of(PLAIN)
    basis = GridBasis.of(PLAIN, kernels, np.arange(18))
    K = reduce(np.kron, [k(np.array(x)[:, None]) for k, x in zip(kernels, PLAIN, strict=True)])
    v = np.random.default_rng(1).standard_normal((18, 2))
    assert basis.forward(basis.backward(v)) == pytest.approx(K @ v, abs=EXACT)
    assert np.sort(basis.eigenvalues)[::-1] == pytest.approx(np.linalg.eigvalsh(K)[::-1], abs=EXACT)


def test_functions_are_odd_to_rounding():
    x = trade_offs(SYMMETRIC)
    basis = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), np.arange(len(x)), antisymmetric=True)
    f = basis.forward(np.random.default_rng(0).standard_normal((basis.rank, 2)))
    assert np.abs(f + f[::-1]).max() <= 1e-12  # p(t) + p(-t) = 1
    assert np.abs(f).max() > 0.1


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_rows_off_the_grid_are_the_regression_on_it(antisymmetric):
    levels = SYMMETRIC if antisymmetric else PLAIN
    rng = np.random.default_rng(2)
    x, kernels = trade_offs(levels), kernels_of(levels)
    basis = GridBasis.of(levels, kernels, np.arange(5), amplitude=2.0, antisymmetric=antisymmetric)
    off = rng.standard_normal((6, len(levels)))
    off[0] = x[7]
    off[1] = 100.0  # far beyond the levels
    phi, left = basis.rows(off)
    whole = basis.at(np.arange(len(x)))
    k = covariance(kernels, off, x, 2.0, antisymmetric)
    own = np.diagonal(covariance(kernels, off, off, 2.0, antisymmetric))
    K = covariance(kernels, x, x, 2.0, antisymmetric)
    assert phi @ whole.T == pytest.approx(k, abs=EXACT)
    assert left == pytest.approx(own - np.einsum("qi,ij,qj->q", k, np.linalg.pinv(K, hermitian=True), k), abs=1e-8)
    assert left[0] == pytest.approx(0.0, abs=EXACT)
    assert np.array_equal(phi[0], basis.at(np.array([7]))[0])
    assert basis.prior_variance(off) == pytest.approx(own, abs=EXACT)


def test_the_cutoff_leaves_out_what_eigenvalues_below_it_add():
    levels = [np.linspace(-1.0, 1.0, 7)] * 2
    kernels = [Stationary(np.array([2.0]), "squared-exponential")] * 2
    x = trade_offs(levels)
    K = covariance(kernels, x, x)
    full = GridBasis.of(levels, kernels, np.arange(49))
    coarse = GridBasis.of(levels, kernels, np.arange(49), cutoff=1e-6)
    assert coarse.rank < full.rank < 49  # a smooth kernel is singular to rounding
    assert full.dense() @ full.dense().T == pytest.approx(K, abs=EXACT)
    lost = np.abs(coarse.dense() @ coarse.dense().T - K).max()
    assert 1e-10 < lost <= 49 * 1e-6 * full.eigenvalues.max()
    w = np.random.default_rng(0).standard_normal((coarse.rank, 2))
    assert coarse.forward(w) == pytest.approx(coarse.dense() @ w, abs=EXACT)
    v = np.random.default_rng(0).standard_normal((49, 2))
    assert coarse.backward(v) == pytest.approx(coarse.dense().T @ v, abs=EXACT)


def test_many_columns_are_worked_on_in_parts(monkeypatch):
    basis = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), np.arange(90), antisymmetric=True)
    w = np.random.default_rng(0).standard_normal((basis.rank, 25))
    whole = basis.forward(w)
    monkeypatch.setattr(grid_module, "_NUMBERS_AT_ONCE", 2 * 120 * 9)
    assert basis.forward(w) == pytest.approx(whole, abs=EXACT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": [[0.0, 1.0], [0.0, 1.0]], "antisymmetric": True}, "symmetric about 0"),
        ({"kernels": [Linear(np.array([1.0, 2.0])[:1])] * 2, "antisymmetric": True}, None),
    ],
)
def test_bad_grids_are_refused(change, message):
    given = {"levels": [[-1.0, 1.0]] * 2, "kernels": kernels_of([0, 0]), "places": [0, 1]} | change
    levels, kernels, places = (given.pop(name) for name in ("levels", "kernels", "places"))
    if message is None:
        GridBasis.of(levels, kernels, places, **given)  # k(-s, -t) = k(s, t) holds for more than stationary ones
        return
    with pytest.raises(ValueError, match=message):
        GridBasis.of(levels, kernels, places, **given)


def test_trade_offs_are_found_on_the_grid_and_nowhere_else():
    x = trade_offs(SYMMETRIC)
    basis = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), [3, 100, 7], antisymmetric=True)
    assert np.array_equal(basis.trade_offs(np.arange(120)), x)
    assert np.array_equal(basis.codes(x), np.arange(120))
    assert np.array_equal(basis.codes(x[[3, 4]] + [[0.0] * 4, [1e-9] + [0.0] * 3]), [3, -1])
    assert np.array_equal(basis.observed(x[[100, 7, 0, 19]]), [1, 2, -1, 1])  # 19 is the mirror of 100
    plain = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), [3, 100, 7])
    assert np.array_equal(plain.observed(x[[100, 7, 0, 19]]), [1, 2, -1, -1])
    assert not basis.mirrored
    assert GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), [3, 116], antisymmetric=True).mirrored


def test_dimensions_are_merged_into_groups_worth_a_pass():
    def sizes(levels, overhead=64.0):
        return [math.prod(levels[group]) for group in grouped(levels, overhead)]

    assert sizes(5 * [3] + 3 * [5]) == [27, 45, 25]
    assert sizes(6 * [9]) == [81, 81, 81]
    assert sizes([3, 4, 5, 2], 0.0) == [3, 4, 5, 2]
    assert sizes([3, 4, 5, 2], 1e6) == [120]


def test_products_along_axes_are_those_with_the_kronecker_product():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal(shape) for shape in ((2, 3), (4, 1), (5, 2))]
    x = rng.standard_normal((6, 3))
    assert along(factors, x) == pytest.approx(reduce(np.kron, factors) @ x, abs=EXACT)


def test_levels_are_symmetric_up_to_rounding():
    levels = [np.linspace(-1.0, 1.0, 25)]
    assert (levels[0] != -levels[0][::-1]).any()
    kernels = kernels_of(levels)
    x = trade_offs(levels)
    basis = GridBasis.of(levels, kernels, np.arange(25), antisymmetric=True)
    assert basis.dense() @ basis.dense().T == pytest.approx(covariance(kernels, x, x, 1.0, True), abs=EXACT)
