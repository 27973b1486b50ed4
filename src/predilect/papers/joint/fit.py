"""Expectation propagation of one Gaussian process over people and items, with hyper-parameters by its evidence."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import Kernel, Own, Scaled, White
from predilect.inference.latent.ep import ep
from predilect.inference.latent.evidence import EvidenceSearch, maximise_evidence
from predilect.inference.latent.scaled import best_threshold
from predilect.inference.latent.single import Problem, SingleLatent
from predilect.inference.likelihoods.probit import starting_threshold
from predilect.inference.likelihoods.views import Probit
from predilect.models.checks import hyperparameters_by_name, make_kernel, optimises
from predilect.models.reading import Training
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.process import CellRows, JointProcess

_LARGEST = 5000  # rows or answers: dense algebra, some n² floats and n³ operations an iteration
_ROUNDS, _TOLERANCE = 8, 1e-3  # of log δ
# Of a search: the evidence is stationary in the sites, so its error is of second order in theirs.
_SEARCH_TOLERANCE, _SEARCH_GRADIENT, _SEARCH_EVIDENCE = 3e-3, 0.1, 1e-5


@dataclass(frozen=True, slots=True)
class JointAnswers:
    """Answers by the codes of people and items; arrays of shape (n_rows,)."""

    user: IntArray
    left: IntArray
    right: IntArray
    outcome: npt.NDArray[np.int8]
    weight: FloatArray

    def of_people(self, users: IntArray) -> JointAnswers:
        """Answers of some people, whose ascending codes become 0, 1, ..."""
        keep = np.isin(self.user, users)
        user = np.searchsorted(users, self.user[keep])
        return JointAnswers(user, self.left[keep], self.right[keep], self.outcome[keep], self.weight[keep])

    def rows(self, n_items: int) -> CellRows:
        """Cells that answers compare; DataError if too many for dense algebra."""
        rows = CellRows.of(self.user, self.left, self.right, n_items)
        size = min(len(rows.codes), len(self.user))
        if size > _LARGEST or len(rows.codes) > 4 * _LARGEST:
            raise DataError(
                f"{len(self.user)} different answers on {len(rows.codes)} utilities are too many for a joint process "
                f"without inducing points, which holds {_LARGEST}. Use "
                f"{either('--model population or gppl --personal yes', 'Population() or GPPL(users=...)')} with "
                "features of people and items, or fewer people"
            )
        return rows


@dataclass(frozen=True, slots=True)
class JointFit:
    """Fitted joint process; sites of all copies of each answer, EP's log evidence in nats."""

    posterior: JointProcess
    sites: Sites
    delta: float
    evidence: float
    report: Report


def tune_joint_process(
    kernel: JointKernel,
    answers: JointAnswers,
    *,
    delta: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    max_evaluations: int = 100,
) -> EvidenceSearch[JointKernel]:
    """Type-II maximum likelihood of a joint process by L-BFGS on EP's evidence; DataError as :func:`fit_joint_process`.

    vvm.md 2.3 and 4, baselines.md B4: d log Z = ½ tr[(b bᵀ - R) dG]. Each evaluation is an EP from the last one's
    sites, of about five factorisations of the smaller of answers and (person, item).
    """
    rows = answers.rows(len(kernel.items))
    return maximise_evidence(
        kernel, rows.codes, rows.left, rows.right, answers.outcome, answers.weight,
        Probit(starting_threshold(answers.outcome, answers.weight, delta)), method="ep", bounds=bounds,
        tolerance=_SEARCH_TOLERANCE, max_evaluations=max_evaluations, stop=(_SEARCH_GRADIENT, _SEARCH_EVIDENCE),
    )  # fmt: skip


def fit_joint_process(
    kernel: JointKernel,
    answers: JointAnswers,
    *,
    delta: float | None = None,
    start: Sites | None = None,
    tolerance: float = 1e-6,
    max_iter: int = 300,
    progress: Callable[[int], None] | None = None,
) -> JointFit:
    """Posterior of f ~ GP(0, K_users ⊗ K_items) by EP; the tie threshold is learned unless given.

    ``start`` holds the sites of one copy of each answer. DataError if the answers are too many for dense algebra.
    vvm.md 2. The noise α of a margin is 1 here: a process with α and variance a is one with 1 and a/α².
    """
    began = time.perf_counter()
    rows = answers.rows(len(kernel.items))
    K, threshold = kernel(rows.codes), starting_threshold(answers.outcome, answers.weight, delta)
    learn_delta = delta is None and threshold > 0.0
    found: SingleLatent | None = None
    iterations = 0
    for done in range(_ROUNDS if learn_delta else 1):
        problem = Problem.of(K, rows.left, rows.right, answers.outcome, answers.weight, Probit(threshold))
        found = ep(problem, tolerance=tolerance, max_iter=max_iter, start=start if found is None else found.sites)
        iterations += found.report.iterations
        if progress:
            progress(done + 1)
        if not learn_delta or done == _ROUNDS - 1:
            break
        at = found.state
        better = best_threshold(answers.outcome, answers.weight, at.margin_mean, at.margin_var, threshold)
        if abs(better - threshold) <= _TOLERANCE * threshold:
            break
        threshold = better
    assert found is not None
    report = replace(found.report, iterations=iterations, seconds=time.perf_counter() - began)
    sites = found.sites.times(answers.weight)
    return JointFit(JointProcess.of(kernel, rows, sites), sites, threshold, found.evidence, report)


@dataclass(frozen=True, slots=True)
class JointStart:
    """Start of the search of hyper-parameters."""

    user_share: float  # user- and item-specific shares of the variance, from 0 to 1
    item_share: float
    variance: float  # prior variance of a utility, in units of the noise of one answer
    held: tuple[str, ...]  # "user_share", "item_share", "variance": not searched


@dataclass(frozen=True, slots=True)
class Tuned:
    """Kernel with tuned hyper-parameters, the sites there if all answers counted, and how the search went."""

    kernel: JointKernel
    sites: Sites | None
    search: dict[str, Any]


def tables(model: Any, training: Training) -> JointKernel:
    """Kernels of the features of users and of items, as a model's arguments have them.

    Users without features have the mean of the others, with a warning; length-scales that are given are those of items.
    """
    rows, space = training.comparisons, training.space
    people = np.zeros((rows.n_users, 0))
    if training.people is not None and rows.has_users and training.people.matrix.shape[1]:
        people, known = training.people.align(rows.users)
        if not known.all():
            warnings.warn(
                f"{int((~known).sum())} of {len(known)} people have no features: the mean of the others is taken for "
                "them", DataWarning, stacklevel=5,
            )  # fmt: skip
    of_items = make_kernel(model, model.kernel, space.matrix[space.known])
    of_people = make_kernel(model, model.user_kernel, people, "median")
    return JointKernel(KernelTable.of(of_people, people), KernelTable.of(of_items, space.matrix, space.known))


def start_kernel(model: Any, training: Training, start: JointStart) -> JointKernel:
    """Kernel of users and items at the start of the search; without features of users, only their share differs."""
    plain = tables(model, training)
    users = replace(plain.users, kernel=_with_share(plain.users.kernel, start.user_share))
    scaled = Scaled(_with_share(plain.items.kernel, start.item_share), start.variance)
    return JointKernel(users, replace(plain.items, kernel=scaled))


def tune(model: Any, kernel: JointKernel, answers: JointAnswers, delta: float | None, held: tuple[str, ...]) -> Tuned:
    """Hyper-parameters by the evidence of all answers, or of those of ``n_tuning`` users drawn at random."""
    n_users = len(kernel.users)
    drawn = np.random.default_rng(model.seed_).permutation(n_users)[: model.n_tuning]
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
    return Tuned(kernel.with_theta(found.kernel.theta), found.fit.sites if len(some) == n_users else None, search)


def _with_share(kernel: Kernel, share: float) -> Kernel:
    if share >= 1.0:
        return White(1.0)
    return Own.of_share(kernel, share) if share > 0.0 else kernel
