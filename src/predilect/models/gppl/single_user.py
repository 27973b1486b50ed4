"""``SingleUserGP``: an independent Gaussian process for each user."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from predilect.gaussian.kernels import Kernel
from predilect.models.boards import Ranking
from predilect.models.checks import check_count, check_gamma, check_positive, check_process, item_kernel
from predilect.models.estimator import Fitting, Learned
from predilect.models.fields import Fields
from predilect.models.gppl.model import GPPLHyperparameters
from predilect.models.gppl.separate import (
    SEPARATE_ARRAYS,
    SeparatePosterior,
    fit_separate_gppl,
    pack_separate,
    separate_margins,
    unpack_separate,
)
from predilect.models.predictions import Predicting
from predilect.models.reading import Queries, Training
from predilect.progress import Watcher
from predilect.shards import workers

FloatArray = npt.NDArray[np.float64]


class SingleUserGP(Fitting, Predicting, Ranking, BaseEstimator):
    """Gaussian-process classification of each user's pairs separately, by expectation propagation ("SU").

    f_u ~ N(0, K/s) for every user, independent of each other; the kernel and s are shared.

    Parameters
    ----------
    kernel : str or Kernel, default "squared-exponential"
        Of item features; items without features are uncorrelated with all others.
    kernel_form, length_scale, median
        As in :class:`~predilect.GPPL`.
    own_share : float, default 0.5
        Share of the prior variance of a utility that is item-specific. The paper's is 0.
    variance : float or "auto", default "auto"
        s, or learn it. The paper's is 1.
    scale_prior : pair of float, default (1.0, 1.0)
        Shape and rate of the Gamma prior of s.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Stop when the evidence rises by less, in nats per answer; "auto": 1e-5.
    max_iter : int, default 100
        Of the search for s, δ and length-scales.
    n_jobs : int, optional
        Threads; by default all cores. Results have the same bits for any number.
    random_state : int, default 0
        Seed of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : SeparatePosterior
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`.

    Notes
    -----
    baselines.md B2 (Houlsby et al. 2012). **Differs from the paper**: s is learned, and items have an item-specific
    share of the variance; an unseen user is predicted as a random one of those who answered, where the paper says 1/2.
    Features of users are not used. Σ_u n_u min(n_u, k_u)² operations per evaluation, for n_u answers on k_u items.

    Examples
    --------
    >>> from predilect import SingleUserGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = SingleUserGP().fit(answers)
    >>> model.rank("ann")["item"].to_list(), model.rank("bob")["item"].to_list()
    (['tea', 'milk'], ['milk', 'tea'])
    """

    model_name: ClassVar[str] = "single-user-gp"
    hyperparameters_type: ClassVar[Any] = GPPLHyperparameters

    def __init__(
        self,
        kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "isotropic",
        length_scale: Any = "median",
        median: str = "auto",
        own_share: float = 0.5,
        variance: float | str = "auto",
        scale_prior: tuple[float, float] = (1.0, 1.0),
        tie_threshold: float | str = "auto",
        tol: float | str = "auto",
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
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
        check_positive("variance", self.variance, "auto")
        check_gamma("scale_prior", self.scale_prior)
        check_count("max_iter", self.max_iter, 1)

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        settings = SimpleNamespace(
            **self.get_params(deep=False) | {"kernel": item_kernel(self, training.space, float(self.own_share))},
            noise_variance=0.5,
        )
        with workers(self.n_jobs) as executor:
            found = fit_separate_gppl(settings, training, delta, executor, watch)
        return Learned(
            found.posterior, GPPLHyperparameters(1.0 / found.scale, found.kernel), training.personal, found.delta,
            found.evidence, found.report, found.search,
        )  # fmt: skip

    def _margins(self, queries: Queries, items: Any, users: Any) -> tuple[FloatArray, FloatArray]:
        return separate_margins(self, queries, self._new_items(queries, items))

    def describe(self) -> list[str]:
        """What was learned, in sentences."""
        return [f"Prior variance of a utility {self.hyperparameters_.variance:.2g}, the same for every person."]

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert isinstance(self.posterior_, SeparatePosterior)
        return pack_separate(self.posterior_)

    @classmethod
    def _fields(cls, document: dict[str, Any]) -> Fields:
        return SEPARATE_ARRAYS

    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> Any:
        h = self.hyperparameters_
        return unpack_separate(arrays, h.kernel, 1.0 / h.variance, self.space_)
