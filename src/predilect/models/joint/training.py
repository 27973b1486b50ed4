"""Kernel of a joint process from the estimator's parameters, and its tuning by the evidence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from predilect.errors import DataWarning
from predilect.gaussian.kernels import Kernel, Own, Scaled, White
from predilect.gaussian.sites import Sites
from predilect.models.checks import make_kernel, optimises
from predilect.models.joint.covariance import JointKernel, Table
from predilect.models.joint.fit import JointAnswers, tune_joint_process
from predilect.models.kernels import hyperparameters_by_name
from predilect.models.reading import Training


@dataclass(frozen=True, slots=True)
class Start:
    """Start of the search of hyper-parameters."""

    user_share: float  # user- and item-specific shares of the variance, from 0 to 1
    item_share: float
    variance: float  # prior variance of a utility, in units of the noise of one answer
    nuggets: tuple[float, float] | None  # those of single answers
    held: tuple[str, ...]  # "user_share", "item_share", "variance": not searched


@dataclass(frozen=True, slots=True)
class Tuned:
    """Kernel with tuned hyper-parameters, the sites there if all answers counted, and how the search went."""

    kernel: JointKernel
    sites: Sites | None
    search: dict[str, Any]


def start_kernel(model: Any, training: Training, start: Start) -> JointKernel:
    """Kernel of users and items at the start of the search.

    Users without features have the mean of the others, with a warning; if all are without, only their share differs.
    """
    rows, space = training.comparisons, training.space
    people = np.zeros((rows.n_users, 0))
    if training.people is not None and rows.has_users and training.people.matrix.shape[1]:
        people, known = training.people.align(rows.users)
        if not known.all():
            warnings.warn(
                f"{int((~known).sum())} of {len(known)} people have no features (first: "
                f"{rows.users.ids[int(np.argmin(known))]!r}): the mean of the others is taken for them", DataWarning,
                stacklevel=4,
            )  # fmt: skip
    of_items = make_kernel(model, model.kernel, space.matrix[space.known])
    of_people = make_kernel(model, model.user_kernel, people, "median")
    users = Table.of(_with_share(of_people, start.user_share), people)
    scaled = Scaled(_with_share(of_items, start.item_share), start.variance)
    return JointKernel(users, Table.of(scaled, space.matrix, space.known), start.nuggets)


def tune(model: Any, kernel: JointKernel, answers: JointAnswers, delta: float | None, held: tuple[str, ...]) -> Tuned:
    """Hyper-parameters by the evidence of all answers, or of those of ``n_tuning`` users drawn at random."""
    n_users = len(kernel.users)
    drawn = np.random.default_rng(model.random_state).permutation(n_users)[: model.n_tuning]
    some = np.sort(drawn)
    fixed = [name for name in kernel.names if name.endswith("white.variance") or name == "users.variance"]
    if not optimises(model):
        fixed += [name for name in kernel.names if "length_scale" in name]
    if not kernel.users.features.shape[1]:
        fixed += [name for name in kernel.names if name.startswith("users.length_scale")]
    words = {"user_share": "users.odds", "item_share": "items.odds", "variance": "items.variance"}
    fixed += [words[name] for name in held if words[name] in kernel.names]
    at = hyperparameters_by_name(kernel)
    users = replace(kernel.users, features=kernel.users.features[some], known=kernel.users.known[some])
    found = tune_joint_process(
        replace(kernel, users=users), answers.of_people(some), delta=delta,
        bounds={name: (at[name], at[name]) for name in fixed}, max_evaluations=model.max_evaluations,
    )  # fmt: skip
    search = {"n_tuning": len(some), "search": found.report.to_dict(), "at_bound": list(found.at_bound)}
    return Tuned(kernel.with_theta(found.kernel.theta), found.sites if len(some) == n_users else None, search)


def _with_share(kernel: Kernel, share: float) -> Kernel:
    if share >= 1.0:
        return White(1.0)
    return Own.of_share(kernel, share) if share > 0.0 else kernel
