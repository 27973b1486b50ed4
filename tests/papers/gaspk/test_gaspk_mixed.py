"""Many questions at once against each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from gaspk_grids import PLAIN, SYMMETRIC, kernels_of
from predilect.papers.gaspk.posterior import grid as grid_module
from predilect.papers.gaspk.posterior.grid import GridBasis
from predilect.papers.gaspk.posterior.sums import mixed


def test_mixtures_are_those_of_each_question():
    rng = np.random.default_rng(0)
    gamma, mean = rng.dirichlet(np.full(4, 0.5), 6), rng.standard_normal((5, 4))
    gamma[0] = [0.0, 1.0, 0.0, 0.0]
    root = rng.standard_normal((5, 4, 4))
    V = root @ root.transpose(0, 2, 1)
    user, point = rng.integers(-1, 6, 80).astype(np.int32), rng.integers(0, 5, 80)
    m, v = mixed(user, point, gamma, mean, V)
    for i in range(80):
        g = gamma[user[i]] * (user[i] >= 0)
        assert m[i] == pytest.approx(g @ mean[point[i]], abs=1e-14)
        assert v[i] == pytest.approx(g @ V[point[i]] @ g, abs=1e-14)


@pytest.mark.parametrize("antisymmetric", [True, False])
@pytest.mark.parametrize("n_at_once", [1, 20_000_000])
def test_means_at_trade_offs_are_those_of_their_rows(antisymmetric, n_at_once, monkeypatch):
    monkeypatch.setattr(grid_module, "_ROWS_NUMBERS", n_at_once)
    rng = np.random.default_rng(1)
    levels = SYMMETRIC if antisymmetric else PLAIN
    basis = GridBasis.of(levels, kernels_of(levels), np.arange(4), antisymmetric=antisymmetric)
    n_grid = np.prod(basis.shape)
    w = rng.standard_normal((basis.rank, 3))
    many = rng.integers(0, n_grid, 40 * n_grid)  # again and again: a product with the whole grid is cheaper than rows
    x = basis.trade_offs(many)
    x[::7] += 0.01  # and some are off the grid
    for asked in (x, x[:9], x[:0]):
        assert basis.at_trade_offs(asked, w) == pytest.approx(basis.rows(asked)[0] @ w, abs=1e-13)
