"""Variances of margins by the covariance and by its root."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.gaussian.design import MarginMatrix
from tolerances import EXACT


@pytest.mark.parametrize(("n_items", "n_answers"), [(6, 9), (40, 12), (400, 3000)])  # by S; by rows, once and twice
def test_variances_of_a_root(n_items, n_answers):
    rng = np.random.default_rng(n_items)
    root = rng.normal(size=(n_items, 7))
    left, right = rng.integers(n_items, size=n_answers), rng.integers(n_items, size=n_answers)
    S = root @ root.T
    expected = S[left, left] + S[right, right] - 2.0 * S[left, right]
    design = MarginMatrix(left, right, n_items)
    np.testing.assert_allclose(design.variances_of_root(root), expected, atol=EXACT)
    np.testing.assert_allclose(MarginMatrix(left, None, n_items).variances_of_root(root), S[left, left], atol=EXACT)
