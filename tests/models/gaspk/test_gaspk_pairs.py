"""Sums over pairs of coordinates against einsum."""

from __future__ import annotations

import numpy as np
import pytest

from gaspk_grids import problem
from predilect.models.gaspk.posterior import curvature as curvature_module
from predilect.models.gaspk.posterior import curvature as pairs_module
from predilect.models.gaspk.posterior import grid as low_rank_module
from predilect.models.gaspk.posterior.curvature import (
    pair_table,
    quadratic_forms,
    quadratic_forms_by_pairs,
    weighted_grams,
)
from predilect.models.gaspk.posterior.grid import LowRank
from predilect.models.gaspk.posterior.solver import assembled
from tolerances import EXACT


@pytest.fixture(params=[(500_000, 256), (1, 256), (80, 7), (500_000, 1)])
def parts(request, monkeypatch):
    monkeypatch.setattr(pairs_module, "_PRODUCTS_AT_ONCE", request.param[0])
    monkeypatch.setattr(pairs_module, "_POINTS_AT_ONCE", request.param[1])


@pytest.mark.slow
@pytest.mark.parametrize(("q", "n_e", "n_c"), [(30, 12, 3), (300, 5, 9), (7, 1, 1), (0, 4, 2)])
def test_pairs_of_coordinates_are_summed_as_written(q, n_e, n_c, parts):
    rng = np.random.default_rng(0)
    rows, root = rng.standard_normal((q, n_e)), rng.standard_normal((n_e * n_c, n_e * n_c))
    M = (root @ root.T).reshape(n_e, n_c, n_e, n_c)
    expected = np.einsum("qe,ecfd,qf->qcd", rows, M, rows)
    assert quadratic_forms(rows, M) == pytest.approx(expected, abs=EXACT)
    assert quadratic_forms_by_pairs(rows, pair_table(M), n_c) == pytest.approx(expected, abs=EXACT)
    weights = rng.standard_normal((q, 4))
    whole = np.einsum("qe,qf,qk->kef", rows, rows, weights)
    assert weighted_grams(rows, weights) == pytest.approx(whole[:, *np.tril_indices(n_e)], abs=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("many", [1, 100])
def test_few_and_many_characteristics_are_worked_out_alike(many, parts, monkeypatch):
    for module in (low_rank_module, curvature_module):
        monkeypatch.setattr(module, "MANY", many)
    data = problem(dense=False)
    everything = np.arange(data.basis.rank)
    assert assembled(data.basis, data.B, everything) == pytest.approx(data.precision(), abs=EXACT)
    low_rank = LowRank.of(data.basis, data.B, data.basis.rank)  # all of them: exact
    codes = np.arange(len(data.K))
    found = low_rank.blocks(data.basis.trade_offs(codes))
    assert found == pytest.approx(data.posterior(codes), abs=1e-9)
