"""Folded grids against Kronecker products written out."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from gaspk_grids import SYMMETRIC, kernels_of
from predilect.models.gaspk.posterior.axes import along
from predilect.models.gaspk.posterior.grid import GridBasis
from tolerances import EXACT


def test_products_along_axes_are_those_with_the_kronecker_product():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal(shape) for shape in ((2, 3), (4, 1), (5, 2))]
    x = rng.standard_normal((6, 3))
    assert along(factors, (3, 1, 2), x) == pytest.approx(reduce(np.kron, factors) @ x, abs=EXACT)


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_folded_values_are_those_of_the_grid_at_each_entry(antisymmetric):
    rng = np.random.default_rng(1)
    basis = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), np.arange(4), antisymmetric=antisymmetric, dense=False)
    folding, codes = basis.folding, np.arange(120)
    w = rng.standard_normal((basis.rank, 2))
    entry, sign = folding.index(codes)
    values = folding.unfolded(w)
    assert len(values) == folding.n_entries
    signed = values[entry] if sign is None else sign * values[entry]
    assert signed == pytest.approx(basis.at(codes) @ w, abs=EXACT)
    if antisymmetric:
        assert np.array_equal(entry, entry[::-1])  # a point and its mirror are one entry, of opposite signs
        moved = np.abs(signed).max(axis=1) > EXACT
        assert np.array_equal(sign[moved], -sign[::-1][moved])


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_folding_back_is_the_transpose(antisymmetric):
    rng = np.random.default_rng(2)
    basis = GridBasis.of(SYMMETRIC, kernels_of(SYMMETRIC), np.arange(4), antisymmetric=antisymmetric)
    folding = basis.folding
    whole = folding.unfolded(np.eye(basis.rank))
    x = rng.standard_normal((folding.n_entries, 3))
    back = folding.refolded(x.reshape(len(folding.parts), -1), 3)
    assert back == pytest.approx(whole.T @ x, abs=EXACT)
