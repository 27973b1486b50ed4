"""Posterior of one utility function of user and item features, through inducing points."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from predilect._types import FloatArray, IntArray
from predilect.data import ItemFeatures, Vocabulary
from predilect.errors import DataError, DataWarning
from predilect.gaussian.dense import symmetrise
from predilect.gaussian.kernels import Kernel, Product, Selected
from predilect.gaussian.posterior import Posterior, Utilities
from predilect.gaussian.projection import Projection
from predilect.latent.pooled import PooledAnswers
from predilect.latent.sparse.fit import SparsePosterior
from predilect.models.checks import make_kernel
from predilect.models.gppl.pooled import SPARSE_ARRAYS, Fitted, fit_sparse_gppl, pack_sparse, points_of, unpack_sparse
from predilect.models.reading import Training
from predilect.models.saving import Fields, numbers
from predilect.progress import Watcher

_ROWS_AT_ONCE = 20_000
_PEOPLE_FOR_AVERAGE = 2000


@dataclass(frozen=True, slots=True)
class JointPosterior(Posterior):
    """f(x_u, x_i) ~ GP with covariance k_users(x_u, x_u') k_items(x_i, x_i') / s, given the answers. crowdgppl.md 1.

    Guo, Bonilla and others. A user without features, such as an unseen one, has the mean features, zeros.
    """

    process: SparsePosterior  # over (user, item) pairs: rows of user features, then item features
    user_kernel: Kernel
    item_kernel: Kernel
    user_features: FloatArray  # (n_users, d_users)
    item_features: FloatArray  # (n_items, d_items)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_features)

    def margins(
        self,
        users: IntArray,
        left: IntArray,
        right: IntArray,
        *,
        traits: FloatArray | None = None,
        executor: ThreadPoolExecutor | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f_u(left) - f_u(right), (n,); ``traits`` (n, d_users) are read where ``users`` is -1."""
        people = self._people(users, traits)
        mean, var = np.empty(len(users)), np.empty(len(users))
        for start in range(0, len(users), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            who, n = people[some], len(people[some])
            rows = np.vstack([np.hstack([who, self.item_features[side[some]]]) for side in (left, right)])
            here = self._at(rows)
            index = np.arange(n)
            mean[some], var[some] = here.margins(index, index, index + n)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        """Utilities of one user; -1: a user with the mean features."""
        who = np.repeat(self._people(np.array([user]), None), self.n_items, axis=0)
        return self._at(np.hstack([who, self.item_features])).person()

    def prior(self) -> None:
        """Every user has a prior of their own, by their features."""
        return

    def crowd(self) -> Utilities:
        """Average utilities of the users: a product kernel again, so that rows of all users need not be made.

        Beyond 2 000 users a regular subsample enters the prior variance of the average.
        """
        projection, S, s = self.process.projection, self.process.covariance, self.process.scale
        n = self.user_features.shape[1]
        points, some = projection.points, self.user_features[:: 1 + len(self.user_features) // _PEOPLE_FOR_AVERAGE]
        alike = self.user_kernel(points[:, :n], self.user_features).mean(axis=1)
        A = projection.factor.solve(self.item_kernel(points[:, n:], self.item_features) * alike[:, None]).T
        root = A @ projection.factor.lower
        prior = float(self.user_kernel(some, some).mean()) * self.item_kernel(self.item_features)
        covariance = symmetrise(A @ S @ A.T + (prior - root @ root.T) / s)
        return Utilities.of(A @ self.process.mean, covariance)

    def with_items(self, features: FloatArray) -> JointPosterior:
        """With more items, by their features (n_new, d_items)."""
        items = np.vstack([self.item_features, features])
        return JointPosterior(self.process, self.user_kernel, self.item_kernel, self.user_features, items)

    def _people(self, users: IntArray, traits: FloatArray | None) -> FloatArray:
        unknown = np.zeros((len(users), self.user_features.shape[1])) if traits is None else traits
        return np.where((users >= 0)[:, None], self.user_features[users], unknown)

    def _at(self, rows: FloatArray) -> SparsePosterior:
        p = self.process
        return SparsePosterior(p.projection.at(rows, np.ones(len(rows), dtype=bool)), p.mean, p.covariance, p.scale)


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
            Selected(make_kernel(model, model.user_kernel, users), tuple(range(n))),
            Selected(make_kernel(model, model.kernel, items), tuple(range(n, d))),
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
