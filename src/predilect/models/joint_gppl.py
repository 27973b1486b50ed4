"""``GPPL`` with one utility function of users and items."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Kernel, Product, Selected
from predilect.data import ItemFeatures, Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.inference.pooled import PooledAnswers
from predilect.inference.training import Watcher
from predilect.models.fields import Fields, numbers
from predilect.models.inputs import Training
from predilect.models.pooled_gppl import SPARSE_ARRAYS, Fitted, fit_sparse_gppl, pack_sparse, points_of, unpack_sparse
from predilect.models.process_parameters import make_kernel
from predilect.posteriors.joint import JointPosterior
from predilect.posteriors.projection import Projection

__all__ = ["JOINT_ARRAYS", "aligned", "fit_joint_gppl", "pack_joint", "unpack_joint"]

FloatArray = npt.NDArray[np.float64]

JOINT_ARRAYS: Fields = SPARSE_ARRAYS | {
    "points": numbers("M D"), "user_rows": numbers("U G"), "item_rows": numbers("I F"),
}  # fmt: skip


def fit_joint_gppl(model: Any, training: Training, delta: float | None, watch: Watcher | None) -> Fitted:
    """Fit of a GPPL with ``users="joint"``; DataError without features of the items, or of the users."""
    answers = training.comparisons
    users = aligned(training.people, answers.users, "people", "users=..., --people FILE")
    items = aligned(training.features, answers.items, "items", "items=..., --items FILE")
    pairs = np.concatenate([answers.user, answers.user]).astype(np.int64) * answers.n_items
    pairs += np.concatenate([answers.left, answers.right])
    unique, place = np.unique(pairs, return_inverse=True)
    features = np.hstack([users[unique // answers.n_items], items[unique % answers.n_items]])
    known = np.ones(len(unique), dtype=bool)
    n, d = users.shape[1], features.shape[1]
    kernel = Product(
        (
            Selected(make_kernel(model, model.user_kernel, users, model.random_state), tuple(range(n))),
            Selected(make_kernel(model, model.kernel, items, model.random_state), tuple(range(n, d))),
        ),
        ("users", "items"),
    )
    projection = Projection.of(kernel, features, known, points_of(model, kernel, features, known))
    left, right = place[: answers.n_rows], place[answers.n_rows :]
    rows = PooledAnswers(left, right, answers.outcome, answers.weight, len(unique))
    found = fit_sparse_gppl(model, rows, projection, delta, watch)
    return found._replace(posterior=_posterior(found.posterior, found.kernel, users, items))


def aligned(features: ItemFeatures | None, ids: Vocabulary, what: str, how: str) -> FloatArray:
    """Rows of features for ids, zeros (the mean) where there are none, with a warning.

    DataError if there are no features at all, or none that differ.
    """
    if features is None or not features.matrix.shape[1]:
        raise DataError(f'users="joint" needs features of the {what} that differ. Give them ({how})')
    matrix, has_features = features.align(ids)
    if not has_features.all():
        lost = ids.ids[int(np.argmin(has_features))]
        warnings.warn(
            f"{int((~has_features).sum())} of {len(ids)} {what} have no features (first: {lost!r}): the mean of the "
            "others is taken for them", DataWarning, stacklevel=5,
        )  # fmt: skip
    return matrix


def pack_joint(posterior: JointPosterior) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain values and arrays of a posterior."""
    process = posterior.process
    values, arrays = pack_sparse(process)
    arrays["points"] = process.projection.points
    return values, arrays | {"user_rows": posterior.user_features, "item_rows": posterior.item_features}


def unpack_joint(values: dict[str, Any], arrays: dict[str, Any], kernel: Kernel) -> JointPosterior:
    """The posterior that :func:`pack_joint` packed."""
    points = arrays["points"]
    users, items = arrays["user_rows"], arrays["item_rows"]
    columns = list(range(points.shape[1]))
    parts = kernel.kernels if isinstance(kernel, Product) else ()
    looked_at = [list(part.columns) for part in parts if isinstance(part, Selected)]
    if looked_at != [columns[: users.shape[1]], columns[users.shape[1] :]] or len(looked_at[1]) != items.shape[1]:
        raise ValueError("a kernel of other features than those of people, and of items")
    process = unpack_sparse(values, arrays, kernel, points[:0], np.zeros(0, dtype=bool))
    return _posterior(process, kernel, users, items)


def _posterior(process: Any, kernel: Kernel, users: FloatArray, items: FloatArray) -> JointPosterior:
    assert isinstance(kernel, Product)
    user_kernel, item_kernel = (part.kernel for part in kernel.kernels if isinstance(part, Selected))
    return JointPosterior(process, user_kernel, item_kernel, users, items)
