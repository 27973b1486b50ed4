"""``SingleUserGP``: a setting of GPPL, an independent Gaussian process for each user."""

from __future__ import annotations

from typing import Any, ClassVar

from predilect.gaussian.kernels import Kernel
from predilect.models.gppl.model import GPPL


class SingleUserGP(GPPL):
    """Gaussian-process classification of each user's pairs separately, by expectation propagation ("SU").

    f_u ~ N(0, K/s) for every user, independent of each other; the kernel and s are shared.

    Parameters
    ----------
    kernel : str or Kernel, default "squared-exponential"
        Of item features; items without features are uncorrelated with all others.
    kernel_form, length_scales, median
        As in :class:`~predilect.GPPL`.
    own_share : float, default 0.5
        Share of the prior variance of a utility that is item-specific. The paper's is 0.
    scale : float or "auto", default "auto"
        s, or learn it. The paper's is 1.
    scale_prior : pair of float, default (1.0, 1.0)
        Shape and rate of the Gamma prior of s.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tolerance : float or "auto", default "auto"
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

    _IS_SEPARATE: ClassVar[bool] = True
    _LEARNED: ClassVar[dict[str, str]] = {"separate": "learned from their own answers alone"}

    def __init__(
        self,
        kernel: str | Kernel = "squared-exponential",
        kernel_form: str = "isotropic",
        length_scales: Any = "median",
        median: str = "auto",
        own_share: float = 0.5,
        scale: float | str = "auto",
        scale_prior: tuple[float, float] = (1.0, 1.0),
        tie_threshold: float | str = "auto",
        tolerance: float | str = "auto",
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        super().__init__(
            users="separate", kernel=kernel, kernel_form=kernel_form, length_scales=length_scales, median=median,
            scale=scale, scale_prior=scale_prior, tie_threshold=tie_threshold, tolerance=tolerance, max_iter=max_iter,
            n_jobs=n_jobs, random_state=random_state, strict=strict,
        )  # fmt: skip
        self.own_share = own_share
