"""``GPClassifier``: one Gaussian process for the pooled answers of all users."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from predilect.gaussian.kernels import Kernel
from predilect.latent.sparse.posterior import SparsePosterior
from predilect.models.boards import Ranking
from predilect.models.checks import (
    check_choice,
    check_count,
    check_gamma,
    check_positive,
    check_process,
    item_kernel,
    refuse_many_items,
)
from predilect.models.estimator import Fitting, Learned
from predilect.models.fields import Fields
from predilect.models.gppl.model import GPPLHyperparameters
from predilect.models.gppl.pooled import SPARSE_ARRAYS, fit_pooled_gppl, pack_sparse, unpack_sparse
from predilect.models.predictions import Predicting
from predilect.models.reading import Queries, Training
from predilect.progress import Watcher

FloatArray = npt.NDArray[np.float64]

INFERENCE = ("ep", "laplace", "variational")
# Of GPPL, of which this is a setting: all items, all answers at once, exact expectations.
_SETTINGS = {
    "n_inducing": None, "sites": "expected", "surrogate": "corrected", "batch_size": "auto", "forgetting_rate": 0.9,
    "delay": 1.0, "noise_variance": 0.5,
}  # fmt: skip


class GPClassifier(Fitting, Predicting, Ranking, BaseEstimator):
    """Gaussian-process classification of pairs with the preference kernel, pooled over users.

    f ~ N(0, K/s), so margins of pairs (i, j) and (k, l) covary by k(i, k) + k(j, l) - k(i, l) - k(j, k). The algebra is
    that of different answers or of items, whichever are fewer: the results are the same.

    Parameters
    ----------
    inference : {"ep", "laplace", "variational"}, default "ep"
    kernel, kernel_form, length_scale, median, variance, scale_prior
        As in :class:`~predilect.models.gppl.single_user.SingleUserGP`.
    own_share : float, default 0.0
        Share of the prior variance of a utility that is item-specific.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        For "variational": stop when the bound rises by less, in nats per answer; "auto": 1e-6. The others run to
        convergence.
    max_iter : int, default 200
        For "variational".
    n_jobs : int, optional
        Not used: there is one function.
    random_state : int, default 0
        Seed of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : SparsePosterior
        With the items as its points.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`.

    Notes
    -----
    baselines.md B1. The setting ``n_inducing=None`` of pooled :class:`~predilect.GPPL`. Features of users are not
    used. min(n_answers, n_items)³ operations per iteration.

    Examples
    --------
    >>> from predilect import GPClassifier
    >>> GPClassifier().fit({"left": ["tea"], "right": ["milk"], "winner": ["tea"]}).rank()["item"].to_list()
    ['tea', 'milk']
    """

    model_name: ClassVar[str] = "gp-classifier"
    hyperparameters_type: ClassVar[Any] = GPPLHyperparameters

    def __init__(
        self,
        inference: str = "ep",
        kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "isotropic",
        length_scale: Any = "median",
        median: str = "auto",
        own_share: float = 0.0,
        variance: float | str = "auto",
        scale_prior: tuple[float, float] = (1.0, 1.0),
        tie_threshold: float | str = "auto",
        tol: float | str = "auto",
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        self.inference = inference
        self.kernel = kernel
        self.kernel_form = kernel_form
        self.length_scale = length_scale
        self.median = median
        self.own_share = own_share
        self.variance = variance
        self.scale_prior = scale_prior
        self.tie_threshold = tie_threshold
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.strict = strict

    def _check(self) -> None:
        check_process(self, learned=True)
        check_choice("inference", self.inference, INFERENCE)
        check_positive("variance", self.variance, "auto")
        check_gamma("scale_prior", self.scale_prior)
        check_count("max_iter", self.max_iter, 1)

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        refuse_many_items(training.comparisons.n_items)
        kernel = item_kernel(self, training.space, float(self.own_share))
        settings = SimpleNamespace(**_SETTINGS | self.get_params(deep=False) | {"kernel": kernel})
        found = fit_pooled_gppl(settings, training, delta, watch)
        return Learned(
            found.posterior, GPPLHyperparameters(1.0 / found.scale, found.kernel), False, found.delta, found.evidence,
            found.report, found.search,
        )  # fmt: skip

    def _margins(self, queries: Queries, items: Any, users: Any) -> tuple[FloatArray, FloatArray]:
        new, posterior = self._new_items(queries, items), self.posterior_
        assert isinstance(posterior, SparsePosterior)
        if new is not None:
            posterior = posterior.with_items(new.matrix, new.known)
        return posterior.margins(queries.users, queries.left, queries.right)

    def describe(self) -> list[str]:
        """What was learned, in sentences."""
        return [f"Prior variance of a utility {self.hyperparameters_.variance:.2g}."]

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert isinstance(self.posterior_, SparsePosterior)
        return pack_sparse(self.posterior_)

    @classmethod
    def _fields(cls, document: dict[str, Any]) -> Fields:
        return SPARSE_ARRAYS

    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> Any:
        return unpack_sparse(values, arrays, self.hyperparameters_.kernel, self.space_.matrix, self.space_.known)
