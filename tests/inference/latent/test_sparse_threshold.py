"""The tie threshold that is learned with a sparse fit."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.latent.sparse.fit import ScalePrior, fit_sparse, fit_with_threshold
from simulate_sparse import small

PRIOR = ScalePrior(2.0, 1.5)


def fitting(data, seen):
    def fit(delta, start):
        seen.append(delta)
        return fit_sparse(data.answers, data.projection(), PRIOR, delta=delta, tolerance=1e-10, start=start)

    return fit


def test_it_is_where_the_bound_is_highest():
    data, seen, told = small(1, n_rows=400, delta=0.5), [], []
    found = fit_with_threshold(data.answers, fitting(data, seen), told.append)
    assert told == list(range(1, len(seen)))
    assert found.delta == seen[-1]
    assert found.delta == pytest.approx(0.5, abs=0.15)
    # The threshold stands still within 1e-3 of its logarithm, where the bound is flat.
    below, above = (fitting(data, [])(found.delta * np.exp(step), None).bound for step in (-0.02, 0.02))
    assert found.bound > max(below, above)


def test_without_ties_there_is_none():
    data, seen = small(2), []
    assert fit_with_threshold(data.answers, fitting(data, seen)).delta == 0.0
    assert seen == [0.0]
