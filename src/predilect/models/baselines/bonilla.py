"""``BonillaGP``: one Gaussian process of people and items together, by the features of both."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from predilect.covariance.joint import JointKernel, Table
from predilect.covariance.kernels import Kernel, Scaled, Sum, White
from predilect.errors import DataError, DataWarning
from predilect.inference.joint_process import JointAnswers, fit_joint_process, tune_joint_process
from predilect.inference.training import Watcher
from predilect.models.baselines.settings import number_or
from predilect.models.boards import Ranking
from predilect.models.inputs import Training, read_training
from predilect.models.keeping import Keeping
from predilect.models.parameters import given_threshold
from predilect.models.predictions import Predicting
from predilect.models.process_parameters import (
    check_choice,
    check_count,
    check_positive,
    check_search,
    make_kernel,
    optimises,
)
from predilect.models.queries import Queries, rows_of_features
from predilect.posteriors.joint_process import JointProcess, Rows
from predilect.posteriors.sites import Sites

__all__ = ["BonillaGP", "BonillaHyperparameters"]

FloatArray = npt.NDArray[np.float64]

NUGGETS = ("user", "observation")
_NUGGET = math.exp(-2.0)  # where the authors start
_SCALE = 0.1  # where the inverse prior variance starts
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class BonillaHyperparameters:
    """What was learned of the process.

    Attributes
    ----------
    user_kernel, item_kernel : Kernel
        k_u and k_x; the prior variance of a utility is in k_x. With ``nugget="user"`` white noise is in both.
    user_nugget, item_nugget : float
        σ_u² and σ_x² of single answers; 0 with ``nugget="user"``.
    """

    user_kernel: Kernel
    item_kernel: Kernel
    user_nugget: float
    item_nugget: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        values: dict[str, Any] = {"user_nugget": self.user_nugget, "item_nugget": self.item_nugget}
        for what, kernel in (("users", self.user_kernel), ("items", self.item_kernel)):
            values |= {f"{what}.{n}": float(v) for n, v in zip(kernel.names, np.exp(kernel.theta), strict=True)}
        return values


class BonillaGP(Keeping, Predicting, Ranking, BaseEstimator):
    """Joint Gaussian process of Bonilla, Guo and Sanner ("BO"): cov(f_u(i), f_v(j)) = k_u(x_u, x_v) k_x(x_i, x_j).

    Expectation propagation on all answers at once, with one length-scale a feature, the prior variance and two nuggets
    by the evidence of some people's answers. It needs features of people.

    Parameters
    ----------
    kernel, user_kernel : str or Kernel, default "squared-exponential"
        Of item features, and of features of people. Without item features items are alike to no other.
    kernel_form : {"product", "isotropic"}, default "product"
        As in :class:`~predilect.GPPL`.
    length_scales : "optimise", "median", float or array of float, default "optimise"
        "optimise": from the median heuristic by L-BFGS on the evidence. A number or numbers are those of item features;
        those of people are the median's then.
    median : str, default "auto"
        As in :class:`~predilect.GPPL`.
    nugget : {"user", "observation"}, default "user"
        What the covariances have beyond the features: "user" adds σ_u² where the person is the same and σ_x² where the
        item is, so that nobody is quite like their features; "observation", as in the code of Houlsby et al., adds both
        for each answer alone, which is more noise.
    user_nugget, item_nugget : float, default e^-2
        σ_u² and σ_x², or where their search starts.
    scale : float or "auto", default "auto"
        The inverse of the prior variance of a utility, or learn it from 0.1 on. The authors' is 1.
    n_tuning : int, default 25
        People, drawn at random, on whose answers hyper-parameters are tuned; 0: they stay as they are given.
    max_evaluations : int, default 50
        Of the evidence while tuning.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tolerance : float or "auto", default "auto"
        Of expectation propagation: the largest change of a margin, in units of the answer noise; "auto": 1e-6.
    max_iterations : int, default 300
        Of expectation propagation.
    n_jobs : int, optional
        Not used.
    random_state : int, default 0
        Seed of the people who are drawn, and of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : JointProcess
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As those of :class:`~predilect.GPPL`.

    Notes
    -----
    baselines.md B4, vvm.md 2. **Differs from the papers**: expectation propagation for Bonilla's Laplace; the nugget of
    people is the person's, not the answer's, by default. Dense: min(n_answers, n_cells)³ operations an iteration, where
    cells are the (person, item) with an answer; some thousand at most. :class:`~predilect.GPPL` with ``users="joint"``
    has inducing points.

    Examples
    --------
    >>> from predilect.models.baselines import BonillaGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = BonillaGP(n_tuning=0).fit(answers, users={"user": ["ann", "bob"], "age": [20, 60]})
    >>> model.rank("ann")["item"].to_list()
    ['tea', 'milk']
    """

    model_name: ClassVar[str] = "bonilla-gp"
    hyperparameters_type: ClassVar[Any] = BonillaHyperparameters

    def __init__(
        self,
        kernel: str | Kernel = "squared-exponential",
        user_kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "product",
        length_scales: Any = "optimise",
        median: str = "auto",
        nugget: str = "user",
        user_nugget: float = _NUGGET,
        item_nugget: float = _NUGGET,
        scale: float | str = "auto",
        n_tuning: int = 25,
        max_evaluations: int = 50,
        tie_threshold: float | str = "auto",
        tolerance: float | str = "auto",
        max_iterations: int = 300,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        self.kernel = kernel
        self.user_kernel = user_kernel
        self.kernel_form = kernel_form
        self.length_scales = length_scales
        self.median = median
        self.nugget = nugget
        self.user_nugget = user_nugget
        self.item_nugget = item_nugget
        self.scale = scale
        self.n_tuning = n_tuning
        self.max_evaluations = max_evaluations
        self.tie_threshold = tie_threshold
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.strict = strict

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        items: Any = None,
        users: Any = None,
        watch: Watcher | None = None,
    ) -> Self:
        """Learn from answers.

        Parameters
        ----------
        X, y, items, watch
            As :meth:`GPPL.fit <predilect.GPPL.fit>` takes them.
        users : data frame or PersonFeatures
            Features of people, one row a person.

        Raises
        ------
        DataError
            If the input cannot be used, there are no features of people, or too many answers for dense algebra.
        """
        self._check()
        delta = given_threshold(self.tie_threshold)
        training = read_training(X, y, items, users, delta)
        rows = training.comparisons
        answers = JointAnswers(rows.user, rows.left, rows.right, rows.outcome, rows.weight)
        kernel = self._kernel(training)
        answers.rows(kernel)  # refuses too many of them before anything takes time
        prior: dict[str, Any] = {"n_tuning": 0}
        if self.n_tuning:
            if watch:
                watch("tuning hyper-parameters by the evidence", 1)
            kernel, prior = self._tuned(kernel, answers, delta)
        found = fit_joint_process(
            kernel, answers, delta=delta, tolerance=number_or(self.tolerance, _TOLERANCE),
            max_iterations=self.max_iterations,
            progress=None if watch is None else lambda done: watch("learning the tie threshold", done),
        )  # fmt: skip
        self.sites_ = found.sites
        self._keep(
            training, posterior=found.posterior,
            hyperparameters=BonillaHyperparameters(
                kernel.users.kernel, kernel.items.kernel, *(kernel.nuggets or (0.0, 0.0))
            ),
            personal=rows.has_users and rows.n_users > 1, delta=found.delta, evidence=found.evidence, fit=found.report,
            prior=prior,
        )  # fmt: skip
        found.report.require(self.strict)
        return self

    def _check(self) -> None:
        check_search(self)
        if not isinstance(self.user_kernel, Kernel):
            check_search(SimpleNamespace(**self.get_params(deep=False) | {"kernel": self.user_kernel}))
        check_choice("nugget", self.nugget, NUGGETS)
        check_count("n_tuning", self.n_tuning, 0)
        for name in ("max_evaluations", "max_iterations"):
            check_count(name, getattr(self, name), 1)
        for name in ("user_nugget", "item_nugget"):
            check_positive(name, getattr(self, name))
        check_positive("scale", self.scale, "auto")

    def _kernel(self, training: Training) -> JointKernel:
        """Where the search starts."""
        rows, space = training.comparisons, training.space
        if not rows.has_users:
            raise DataError(
                "a joint process needs to know who answered, and no column of the answers says so. Name it user, or "
                "use a model of everybody as one: GPClassifier()"
            )
        if training.people is None or not training.people.matrix.shape[1]:
            raise DataError(
                "a joint process needs features of the people that differ. Give them (users=..., --people FILE), or "
                "use a model that does without: HierarchicalGP(), Population()"
            )
        people, known = training.people.align(rows.users)
        if not known.all():
            warnings.warn(
                f"{int((~known).sum())} of {len(known)} people have no features (first: "
                f"{rows.users.ids[int(np.argmin(known))]!r}): the mean of the others is taken for them", DataWarning,
                stacklevel=3,
            )  # fmt: skip
        how = SimpleNamespace(kernel_form=self.kernel_form, length_scales=self.length_scales, median=self.median)
        of_items = make_kernel(how, self.kernel, space.matrix[space.known], self.random_state)
        how.length_scales = "median"
        of_people = make_kernel(how, self.user_kernel, people, self.random_state)
        of_items = Scaled(of_items, 1.0 / number_or(self.scale, _SCALE))
        nuggets = float(self.user_nugget), float(self.item_nugget)
        if self.nugget == "observation":
            return JointKernel(Table.of(of_people, people), Table.of(of_items, space.matrix, space.known), nuggets)
        of_people, of_items = (
            Sum((kernel, White(nugget)), ("features", "own"))
            for kernel, nugget in zip((of_people, of_items), nuggets, strict=True)
        )
        return JointKernel(Table.of(of_people, people), Table.of(of_items, space.matrix, space.known))

    def _tuned(
        self, kernel: JointKernel, answers: JointAnswers, delta: float | None
    ) -> tuple[JointKernel, dict[str, Any]]:
        """The kernel with hyper-parameters by the evidence of some people's answers, and how the search went."""
        n_users = len(kernel.users)
        drawn = np.random.default_rng(self.random_state).permutation(n_users)[: self.n_tuning]
        some = np.sort(drawn)
        users = replace(kernel.users, features=kernel.users.features[some], known=kernel.users.known[some])
        fixed = [] if optimises(self) else [name for name in kernel.names if "length_scale" in name]
        if not isinstance(self.scale, str):
            fixed.append("items.variance" if kernel.nuggets else "items.features.variance")
        at = dict(zip(kernel.names, np.exp(kernel.theta).tolist(), strict=True))
        found = tune_joint_process(
            replace(kernel, users=users), answers.of_people(some), delta=delta,
            bounds={name: (at[name], at[name]) for name in fixed}, max_evaluations=self.max_evaluations,
        )  # fmt: skip
        search = {"n_tuning": len(some), "search": found.report.to_dict(), "at_bound": list(found.at_bound)}
        return kernel.with_theta(found.kernel.theta), search

    def _margins(self, queries: Queries, items: Any, users: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new = self.posterior_, self._new_items(queries, items)
        assert isinstance(posterior, JointProcess)
        if new is not None:
            posterior = posterior.with_items(new.matrix, new.known)
        who = queries.users
        if users is not None and queries.new_users and self.user_features_ is not None:
            rows, _ = rows_of_features(queries.new_users, self.user_features_, users)
            who = np.where(queries.unknown_users >= 0, posterior.n_users + queries.unknown_users, who)
            posterior = posterior.with_users(rows)
        return posterior.margins(who, queries.left, queries.right)

    def describe(self) -> list[str]:
        """What was learned, in sentences."""
        h = self.hyperparameters_
        far = np.zeros((1, 0)) if self.user_features_ is None else np.zeros((1, self.user_features_.matrix.shape[1]))
        whole = float(h.user_kernel.diagonal(far)[0]) + h.user_nugget
        of_features = float(h.user_kernel.pairs(far, far)[0])
        return [f"People with the same features share {of_features / whole:.0%} of the variance of their utilities."]

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        posterior = self.posterior_
        assert isinstance(posterior, JointProcess)
        m, C_m = posterior.consensus()
        rows, people = posterior.rows, posterior.kernel.users.features
        arrays: dict[str, Any] = {
            "m": m, "C_m": C_m, "codes": rows.codes, "row_left": rows.left, "user_rows": people,
            "site_precision": self.sites_.precision, "site_linear": self.sites_.linear,
        }  # fmt: skip
        if rows.right is not None:
            arrays["row_right"] = rows.right
        return {}, arrays

    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> Any:
        h, space, m, C_m = self.hyperparameters_, self.space_, arrays["m"], arrays["C_m"]
        if m.shape != (len(self.items_),) or C_m.shape != (len(m), len(m)):
            raise ValueError(f"{len(self.items_)} items, but {len(m)} utilities")
        nuggets = (h.user_nugget, h.item_nugget) if h.user_nugget else None
        users, items = Table.of(h.user_kernel, arrays["user_rows"]), Table.of(h.item_kernel, space.matrix, space.known)
        rows = Rows(arrays["codes"], arrays["row_left"], arrays.get("row_right"))
        self.sites_ = Sites(arrays["site_precision"], arrays["site_linear"])
        return JointProcess.of(JointKernel(users, items, nuggets), rows, self.sites_)
