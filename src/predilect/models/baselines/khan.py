"""``GPVU``: shared factors, and an independent Gaussian process for each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from predilect.covariance.kernels import Kernel
from predilect.inference.khan import fit_khan
from predilect.inference.training import Watcher
from predilect.models.baselines.people import CROWD_ARRAYS, crowd_margins, pack_crowd, unpack_crowd, with_new_items
from predilect.models.baselines.settings import check_process, item_kernel, refuse_many_items
from predilect.models.boards import Ranking
from predilect.models.fields import Fields, numbers
from predilect.models.fitting import Fitting, Learned
from predilect.models.inputs import Training
from predilect.models.kernels import hyperparameters_by_name
from predilect.models.predictions import Predicting
from predilect.models.process_parameters import check_count, check_positive
from predilect.models.queries import Queries
from predilect.posteriors.people import lay_out
from predilect.posteriors.population import PopulationPosterior
from predilect.posteriors.projection import Projection
from predilect.scale.shards import workers

__all__ = ["GPVU", "FactorHyperparameters"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FactorHyperparameters:
    """Learned hyper-parameters of the processes.

    Attributes
    ----------
    kernel : Kernel
        k of item features.
    scale : float
        g: each user's own process is N(0, g K).
    """

    kernel: Kernel
    scale: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        values = hyperparameters_by_name(self.kernel)
        return {"scale": self.scale, **values}


class GPVU(Fitting, Predicting, Ranking, BaseEstimator):
    """Factors and Gaussian processes of Khan, Ko and Seeger: f_u = μ + V w_u + g_u, g_u ~ N(0, g K).

    The weights w_u ~ N(0, I) are integrated out, f_u ~ N(μ, V Vᵀ + g K), and μ, V and g are learned by EM.

    Parameters
    ----------
    n_factors : int, default 3
        C; at most one less than there are items is used.
    kernel : str or Kernel, default "squared-exponential"
        Of item features; items without features are uncorrelated with all others.
    kernel_form, length_scales, median
        As in :class:`~predilect.GPPL`; length-scales are not learned.
    own_share : float, default 0.5
        Item-specific share of K. The paper's is 0.
    scale : float or "auto", default "auto"
        g, or learn it.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tolerance : float or "auto", default "auto"
        Stop when the evidence rises by less in an iteration, in nats per answer; "auto": 3e-5.
    max_iterations : int, default 300
    n_jobs : int, optional
        Threads; by default all cores. Results have the same bits for any number.
    random_state : int, default 0
        Seed of the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : PopulationPosterior
        ``m`` is μ, ``Sigma`` is V Vᵀ + g K.
    factors_ : array of float, shape (n_items, n_factors)
        V, up to a rotation; columns in the order of the variance they explain.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`.

    Notes
    -----
    baselines.md B7. **Differs from the paper**: expectation propagation; an M step that is exact with the weights
    integrated out; g is learned, and length-scales are set by the median heuristic. A new item follows from its
    features and all users' utilities of the others; features of users are not used.

    Examples
    --------
    >>> from predilect.models.baselines import GPVU
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]}
    >>> GPVU(n_factors=1).fit(answers).rank()["item"].to_list()
    ['tea', 'milk']
    """

    model_name: ClassVar[str] = "gpvu"
    hyperparameters_type: ClassVar[Any] = FactorHyperparameters

    def __init__(
        self,
        n_factors: int = 3,
        kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "isotropic",
        length_scales: Any = "median",
        median: str = "auto",
        own_share: float = 0.5,
        scale: float | str = "auto",
        tie_threshold: float | str = "auto",
        tolerance: float | str = "auto",
        max_iterations: int = 300,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        self.n_factors = n_factors
        self.kernel = kernel
        self.kernel_form = kernel_form
        self.length_scales = length_scales
        self.median = median
        self.own_share = own_share
        self.scale = scale
        self.tie_threshold = tie_threshold
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.strict = strict

    def _check(self) -> None:
        check_process(self, learned=False)
        check_count("n_factors", self.n_factors, 1)
        check_count("max_iterations", self.max_iterations, 1)
        check_positive("scale", self.scale, "auto")

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        answers, space = training.comparisons, training.space
        refuse_many_items(answers.n_items)
        kernel = item_kernel(self, space, float(self.own_share))
        root = Projection.of(kernel, space.matrix, space.known, None).factor
        with workers(self.n_jobs) as executor:
            found = fit_khan(
                lay_out(answers), root, int(self.n_factors),
                scale=None if isinstance(self.scale, str) else float(self.scale), delta=delta,
                tolerance=3e-5 if isinstance(self.tolerance, str) else float(self.tolerance),
                max_iterations=self.max_iterations, executor=executor,
                progress=None if watch is None else lambda done: watch("learning factors", done),
            )  # fmt: skip
        self.factors_ = found.factors
        h = FactorHyperparameters(kernel, found.scale)
        return Learned(found.posterior, h, training.personal, found.delta, found.evidence, found.report, {})

    def _margins(self, queries: Queries, items: Any, users: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new, h = self.posterior_, self._new_items(queries, items), self.hyperparameters_
        assert isinstance(posterior, PopulationPosterior)
        if new is not None:
            prior = Projection.of(h.kernel, self.space_.matrix, self.space_.known, None)
            posterior = with_new_items(posterior, prior, new, spread=h.scale, consensus_spread=h.scale)
        return crowd_margins(self, queries, posterior)

    def describe(self) -> list[str]:
        """What was learned, in sentences."""
        shared = float(np.mean(np.sum(self.factors_**2, axis=1)))
        own = self.hyperparameters_.scale
        return [
            f"{self.factors_.shape[1]} factors have {shared / (shared + own):.0%} of the variance between people; "
            "the rest is each person's own."
        ]

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        assert isinstance(self.posterior_, PopulationPosterior)
        return {}, pack_crowd(self.posterior_) | {"factors": self.factors_}

    @classmethod
    def _fields(cls, document: dict[str, Any]) -> Fields:
        return CROWD_ARRAYS | {"factors": numbers("I C")}

    def _unpack(self, values: dict[str, Any], arrays: dict[str, Any]) -> Any:
        self.factors_ = arrays["factors"]
        return unpack_crowd(arrays, len(self.items_))
