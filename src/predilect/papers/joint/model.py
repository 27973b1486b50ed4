"""``JointGP``: one Gaussian process of users and items, by the features of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from predilect._base.arguments import check_count, check_number, check_positive
from predilect._base.progress import Watcher
from predilect._base.stored import PART, numbers
from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import Kernel
from predilect.models.checks import check_kernel, check_search, hyperparameters_by_name
from predilect.models.estimator import Estimator, Learned
from predilect.models.reading import PairQueries, Training
from predilect.papers.joint.covariance import JointKernel, KernelTable
from predilect.papers.joint.fit import JointAnswers, JointStart, Tuned, fit_joint_process, start_kernel, tune
from predilect.papers.joint.informative import items_of_answers, order_of_answers, vector_machine
from predilect.papers.joint.process import CellRows, JointProcess, KeptProcess

_TOLERANCE = 1e-6
_USER_SHARE, _ITEM_SHARE = 0.5, 0.2  # where "auto" starts


@dataclass(frozen=True, slots=True)
class JointHyperparameters:
    """Learned hyper-parameters of the process."""

    # user_kernel, item_kernel: k_u and k_x with the user- and item-specific shares; the prior variance of a utility
    # is in k_x, in units of the noise of one answer
    user_kernel: Kernel
    item_kernel: Kernel

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        values: dict[str, Any] = {}
        for what, kernel in (("users", self.user_kernel), ("items", self.item_kernel)):
            values |= {f"{what}.{name}": value for name, value in hyperparameters_by_name(kernel).items()}
        return values


@dataclass(eq=False, repr=False)
class JointGP(Estimator):
    """Gaussian process of users and items: cov(f_u(i), f_v(j)) = K_users[u, v] K_items[i, j].

    Each of the two is (1 - w) k(features) + w 1[the same], with one length-scale per feature. Without features of users
    K_users is (1 - w) + w 1[the same]: a shared function, and one for each user. An item without features is
    uncorrelated with all others. Expectation propagation on all answers, with hyper-parameters by their evidence.

    Parameters
    ----------
    kernel, user_kernel : str or Kernel, default "squared-exponential"
        Of item features, and of features of users.
    kernel_form : {"product", "isotropic"}, default "product"
        As in :class:`~predilect.GPPL`.
    length_scale : "optimise", "median", float or array of float, default "optimise"
        "optimise": from the median heuristic by L-BFGS on the evidence. A number or numbers are those of item features;
        those of users are then set by the median heuristic.
    median : str, default "auto"
        As in :class:`~predilect.GPPL`.
    user_share, item_share : float or "auto", default "auto"
        w, the user- or item-specific share of the variance, beyond the features; "auto" learns it.
    noise : float, default 3.0
        α, standard deviation of the noise of one answer, the unit of ``variance``.
    variance : float or "auto", default "auto"
        Prior variance a of a utility, or learn it. Only a/α² is identified by answers: with "auto", α has no effect.
    n_tuning : int, optional
        Number of randomly drawn users by whose answers hyper-parameters are tuned: by default all; 0: they stay as
        given, and where "auto" starts.
    max_evaluations : int, default 50
        Of the evidence while tuning.
    tie_threshold : float or "auto", default "auto"
        δ, in units of the noise; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Of expectation propagation: the largest change of a margin, in units of the answer noise; "auto": 1e-6.
    max_iter : int, default 300
        Of expectation propagation.
    n_jobs : int, optional
        Not used.
    random_state : int or None, default 0
        Seed of the users who are drawn, and of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : JointProcess
        In units of the noise of one answer, as all predictions.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`.

    Notes
    -----
    vvm.md 1 and 2 (Abbasnejad, Bonilla and Sanner 2013). The id as one more feature of the paper, a one-hot with one
    length-scale, is the share w. **Differs from the paper**: sites of one dimension, whose evidence is complete. Dense:
    min(n_answers, n_cells)³ operations per iteration, where cells are the (user, item) with an answer; some thousand
    at most. :class:`~predilect.GPPL` with ``users="joint"`` is this process without shares, s under a Gamma prior, by
    variational inference through inducing cells: for many answers, and in batches. Inducing cells do not know what is
    a user's or an item's own, so shares need all of them; and the evidence by which they are learned is EP's.

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = predilect.JointGP(n_tuning=0).fit(answers, people={"user": ["ann", "bob"], "age": [20, 60]})
    >>> model.rank("ann")["item"].to_list()
    ['tea', 'milk']
    """

    _hyperparameters_type: ClassVar[Any] = JointHyperparameters
    _each: ClassVar[str] = "One process of {} people and the items, by the features of both"
    posterior_: JointProcess = field(init=False)
    sites_: Annotated[Sites, PART] = field(init=False)

    kernel: str | Kernel = "squared-exponential"
    user_kernel: str | Kernel = "squared-exponential"
    kernel_form: str = "product"
    length_scale: Any = "optimise"
    median: str = "auto"
    user_share: float | str = "auto"
    item_share: float | str = "auto"
    noise: float = 3.0
    variance: float | str = "auto"
    n_tuning: int | None = None
    max_evaluations: int = 50
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int = 300
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        start, rows = self._start(), training.comparisons
        answers = JointAnswers(rows.user, rows.left, rows.right, rows.outcome, rows.weight)
        kernel = start_kernel(self, training, start)
        answers.rows(len(kernel.items))  # refuses too many of them before any long computation
        tuned = Tuned(kernel, None, {"n_tuning": 0})
        if self.n_tuning != 0:
            if watch:
                watch("tuning hyper-parameters by the evidence", 1)
            tuned = tune(self, kernel, answers, delta, start.held)
        kernel = tuned.kernel
        found = fit_joint_process(
            kernel, answers, delta=delta, start=tuned.sites,
            tolerance=_TOLERANCE if isinstance(self.tol, str) else float(self.tol),
            max_iter=self.max_iter,
            progress=None if watch is None else lambda done: watch("learning the tie threshold", done),
        )  # fmt: skip
        self.sites_ = found.sites
        h = JointHyperparameters(kernel.users.kernel, kernel.items.kernel)
        return Learned(found.posterior, h, training.personal, found.delta, found.evidence, found.report, tuned.search)

    _kept_posterior = KeptProcess

    def _check(self) -> None:
        check_kernel("kernel", self.kernel)
        check_kernel("user_kernel", self.user_kernel)
        check_search(self)
        if self.n_tuning is not None:
            check_count("n_tuning", self.n_tuning, 0)
        for name in ("max_evaluations", "max_iter"):
            check_count(name, getattr(self, name), 1)
        self._start()  # checks what it reads

    def _start(self) -> JointStart:
        """Start of the search; DataError if an argument is out of its range."""
        check_positive("noise", self.noise)
        check_positive("variance", self.variance, "auto")
        held = [] if isinstance(self.variance, str) else ["variance"]
        shares = []
        for name, start in (("user_share", _USER_SHARE), ("item_share", _ITEM_SHARE)):
            value = getattr(self, name)
            check_number(name, value, "auto", low=0.0, high=1.0)
            if isinstance(value, str):
                shares.append(start)
            else:
                shares.append(float(value))
                held.append(name)
        variance = 1.0 if isinstance(self.variance, str) else float(self.variance) / float(self.noise) ** 2
        return JointStart(shares[0], shares[1], variance, tuple(held))

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        return self.posterior_.predict(self, queries, items, people)

    def describe(self) -> list[str]:
        h, process = self.hyperparameters_, self.posterior_
        far = np.zeros((1, process.kernel.users.features.shape[1]))
        whole = float(h.user_kernel.diagonal(far)[0])
        shared = float(h.user_kernel.pairs(far, far)[0]) / whole
        who = "People with the same features" if far.size else "People"
        return [f"{who} share {shared:.0%} of the variance of their utilities."]

    @property
    def _rows(self) -> Annotated[CellRows, PART]:
        return self.posterior_.rows

    @property
    def _user_rows(self) -> Annotated[FloatArray, numbers("U G|U 0")]:
        """Features of people, as the kernel takes them."""
        return self.posterior_.kernel.users.features

    def _restored(self, parts: dict[str, Any]) -> None:
        h, space, rows = self.hyperparameters_, self._space, parts["_rows"]
        users, whole = KernelTable.of(h.user_kernel, parts["_user_rows"]), rows.codes.astype(np.int64)
        if (whole != rows.codes).any() or (whole < 0).any() or (whole >= [len(users), len(self.items_)]).any():
            raise ValueError("codes are not those of people and items")
        items = KernelTable.of(h.item_kernel, space.matrix, space.known)
        self.posterior_ = JointProcess.of(JointKernel(users, items), rows, self.sites_)

    def _informative(self, r: int, active_only: bool) -> tuple[JointProcess, list[IntArray]]:
        """By the answers that tell most: what is known, by those alone if asked, and r items that each person keeps."""
        if active_only:
            return vector_machine(self, r)
        return self.posterior_, items_of_answers(self, r, order_of_answers(self))
