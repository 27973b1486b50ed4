"""``GPClassifier``: a setting of GPPL, one Gaussian process for the pooled answers of all users."""

from __future__ import annotations

from typing import Any, ClassVar

from predilect.gaussian.kernels import Kernel
from predilect.models.checks import refuse_many_items
from predilect.models.estimator import Learned
from predilect.models.gppl.model import GPPL
from predilect.models.reading import Training
from predilect.progress import Watcher


class GPClassifier(GPPL):
    """Gaussian-process classification of pairs with the preference kernel, pooled over users.

    f ~ N(0, K/s), so margins of pairs (i, j) and (k, l) covary by k(i, k) + k(j, l) - k(i, l) - k(j, k). The algebra is
    that of different answers or of items, whichever are fewer: the results are the same.

    Parameters
    ----------
    inference : {"ep", "laplace", "variational"}, default "ep"
    kernel, kernel_form, length_scales, median, scale, scale_prior
        As in :class:`~predilect.models.gppl.single_user.SingleUserGP`.
    own_share : float, default 0.0
        Share of the prior variance of a utility that is item-specific.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tolerance : float or "auto", default "auto"
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

    _INFERENCE: ClassVar[tuple[str, ...]] = ("ep", "laplace", "variational")

    def __init__(
        self,
        inference: str = "ep",
        kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "isotropic",
        length_scales: Any = "median",
        median: str = "auto",
        own_share: float = 0.0,
        scale: float | str = "auto",
        scale_prior: tuple[float, float] = (1.0, 1.0),
        tie_threshold: float | str = "auto",
        tolerance: float | str = "auto",
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel, kernel_form=kernel_form, length_scales=length_scales, median=median, n_inducing=None,
            inference=inference, scale=scale, scale_prior=scale_prior, tie_threshold=tie_threshold, tolerance=tolerance,
            max_iter=max_iter, n_jobs=n_jobs, random_state=random_state, strict=strict,
        )  # fmt: skip
        self.own_share = own_share

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        refuse_many_items(training.comparisons.n_items)
        return super()._learn(training, delta, watch)
