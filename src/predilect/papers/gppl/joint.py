"""GPPL of one function of people and items: the process of :mod:`predilect.papers.joint`, through inducing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from predilect._base.progress import Watcher
from predilect._base.text import either
from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Kernel, Product, Selected, White
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.pooled import PooledAnswers
from predilect.models.checks import scales_of
from predilect.models.reading import Training
from predilect.papers.gppl.pooled import PooledFit, fit_sparse_gppl, points_of
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.fit import tables
from predilect.papers.joint.process import CellProcess, CellRows


def fit_joint_gppl(model: Any, training: Training, delta: float | None, watch: Watcher | None) -> PooledFit:
    """Fit of a GPPL with ``users="joint"``; DataError without features of the items, or of the users.

    crowdgppl.md 1. The values at inducing cells, (user, item), are those of any sparse GPPL at inducing points.
    """
    answers = training.comparisons
    given = (("users", training.people, "people"), ("items", training.features, "items"))
    for what, features, name in given:
        if features is None or not features.matrix.shape[1]:
            how = either(f"--{name} FILE", f"{name}=...")
            raise DataError(f'users="joint" needs features of the {what} that differ. Give them ({how})')
    kernel = tables(model, training)
    rows = CellRows.of(answers.user, answers.left, answers.right, answers.n_items)
    chosen = inducing_cells(model, kernel, rows.codes)
    everything = np.ones(len(rows.codes), dtype=bool)
    projection = Projection.of(kernel, rows.codes, everything, None if chosen is None else rows.codes[chosen])
    pooled = PooledAnswers(
        rows.left, rows.right, answers.outcome, answers.weight, len(rows.codes), model._likelihood
    )  # fmt: skip
    found = fit_sparse_gppl(
        model, pooled, projection, delta, watch, lambda fit: CellProcess.of_fit(fit, answers.n_users)
    )  # fmt: skip
    return found._replace(kernel=_product(found.kernel))


def inducing_cells(model: Any, kernel: JointKernel, codes: FloatArray) -> IntArray | None:
    """Cells that are inducing points, as ``model.n_inducing`` says, by their places among ``codes``; None: all.

    The nearest to centres of the features of all; a cell of an item without features is one, beyond ``n_inducing``.
    """
    users, items = codes.T.astype(np.int64)
    rows, known = np.hstack([_scaled(kernel.users, users), _scaled(kernel.items, items)]), kernel.items.known[items]
    centres = points_of(model, White(1.0), rows, known)
    if centres is None:
        return None
    near = np.flatnonzero(known)[cKDTree(rows[known]).query(centres)[1]]
    return np.union1d(near, np.flatnonzero(~known))


def _scaled(table: KernelTable, codes: IntArray) -> FloatArray:
    """Features in units of length-scales."""
    return np.asarray((table.features / scales_of(table.kernel, table.features.shape[1]))[codes])


def _product(kernel: Any) -> Kernel:
    """The kernel of features of a user and then of an item."""
    n, d = (table.features.shape[1] for table in (kernel.users, kernel.items))
    of_users = Selected(kernel.users.kernel, tuple(range(n)))
    return Product((of_users, Selected(kernel.items.kernel, tuple(range(n, n + d)))), ("users", "items"))
