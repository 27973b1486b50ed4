"""One function of people and items through inducing cells: against the sparse process that it is, and which cells."""

from __future__ import annotations

import numpy as np
import pytest

from predilect import GPPL
from predilect.errors import DataWarning
from predilect.inference.gaussian.kernels import matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.sparse.fit import ScalePrior, fit_sparse
from predilect.inference.latent.sparse.gradient import optimise_length_scales
from predilect.papers.gppl.joint import inducing_cells
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.process import CellProcess, CellRows
from simulate_joint import joint_crowd
from tolerances import CONVERGED, ITERATIVE

RNG = np.random.default_rng(0)
N_USERS, N_ITEMS, N = 5, 4, 30
USERS, ITEMS = RNG.normal(size=(N_USERS, 2)), RNG.normal(size=(N_ITEMS, 3))
KNOWN = np.array([True, True, False, True])
KERNEL = JointKernel(KernelTable.of(matern([1.0, 1.5]), USERS), KernelTable.of(matern([1.0, 2.0, 1.5]), ITEMS, KNOWN))
USER, LEFT = RNG.integers(N_USERS, size=N), RNG.integers(N_ITEMS, size=N)
RIGHT = (LEFT + RNG.integers(1, N_ITEMS, size=N)) % N_ITEMS
ROWS = CellRows.of(USER, LEFT, RIGHT, N_ITEMS)
CODES = ROWS.codes


def sparse(points, **prior):
    outcome = np.where(RNG.random(N) < 0.6, 1, -1).astype(np.int8)
    answers = PooledAnswers(ROWS.left, ROWS.right, outcome, np.ones(N), len(CODES))
    projection = Projection.of(KERNEL, CODES, np.ones(len(CODES), dtype=bool), points)
    return answers, projection, fit_sparse(answers, projection, ScalePrior(2.0, 3.0))


@pytest.mark.parametrize("few", [False, True])
def test_the_process_of_cells_is_the_sparse_process(few):
    """Mean and covariance of every answered cell, and of margins of others by features."""
    _, _, found = sparse(CODES[[0, 3, 7, 11]] if few else None)
    process, expected = CellProcess.of_fit(found, N_USERS), found.posterior()
    n = len(CODES)
    i, j = np.triu_indices(n, 1)
    same = CODES[i, 0] == CODES[j, 0]
    i, j = i[same], j[same]
    users, left, right = CODES[i, 0].astype(int), CODES[i, 1].astype(int), CODES[j, 1].astype(int)
    for a, b in zip(process.margins(users, left, right), expected.margins(users, i, j), strict=True):
        np.testing.assert_allclose(a, b, atol=ITERATIVE)
    for user in range(N_USERS):
        here = np.flatnonzero(CODES[:, 0] == user)
        some = CODES[here, 1].astype(int)
        mean, covariance = process.utilities(user)
        m, C = expected.utilities()
        np.testing.assert_allclose(mean[some], m[here], atol=ITERATIVE)
        np.testing.assert_allclose(covariance[np.ix_(some, some)], C[np.ix_(here, here)], atol=ITERATIVE)


def test_length_scales_of_both_are_optimised():
    answers, projection, found = sparse(CODES[::2])
    best, search = optimise_length_scales(answers, projection, ScalePrior(2.0, 3.0), max_evaluations=8)
    assert best.bound > found.bound
    assert search.kernel.names == KERNEL.names
    assert np.abs(search.kernel.theta - KERNEL.theta).min() > 0.0


class Asked:
    seed_ = 0

    def __init__(self, n_inducing):
        self.n_inducing = n_inducing


def test_which_cells_are_inducing():
    """So many as asked for, and every cell of an item without features; or all."""
    chosen = inducing_cells(Asked(4), KERNEL, CODES)
    alone = np.flatnonzero(CODES[:, 1] == 2)
    assert set(alone) <= set(chosen)
    assert len(chosen) - len(alone) in (3, 4)
    assert inducing_cells(Asked(None), KERNEL, CODES) is None
    assert inducing_cells(Asked("auto"), KERNEL, CODES) is None


def test_an_item_without_features_is_alike_to_no_other():
    X, y, people, items, _ = joint_crowd()
    some = {name: column[:-1] for name, column in items.items()}
    for n_inducing in (None, 30):
        with pytest.warns(DataWarning, match="no features of 1 of the 8 items"):
            model = GPPL(users="joint", n_inducing=n_inducing, variance=2.0).fit(X, y, items=some, people=people)
        covariance = model.posterior_.prior_of(0).covariance
        assert not covariance[-1, :-1].any()
        pair = {"user": ["u00"], "left": ["i00"], "right": ["i07"]}
        assert model.predict_margin(pair)[1][0] < covariance[0, 0] + covariance[-1, -1] - 0.1


def test_what_is_kept_of_all_together_says_the_same():
    """``local=False``: as of the joint process by expectation propagation."""
    X, y, people, items, _ = joint_crowd()
    model = GPPL(users="joint").fit(X, y, items=items, people=people)
    small = model.compress(8, local=False)
    for a, b in zip(small.predict_margin(X), model.predict_margin(X), strict=True):
        np.testing.assert_allclose(a, b, atol=CONVERGED)
