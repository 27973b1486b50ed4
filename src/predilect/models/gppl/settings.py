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
    kernel, kernel_form, length_scale, median, variance, scale_prior
        As in :class:`~predilect.models.gppl.settings.SingleUserGP`.
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

    _INFERENCE: ClassVar[tuple[str, ...]] = ("ep", "laplace", "variational")

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
        super().__init__(
            kernel=kernel, kernel_form=kernel_form, length_scale=length_scale, median=median, n_inducing=None,
            inference=inference, variance=variance, scale_prior=scale_prior, tie_threshold=tie_threshold, tol=tol,
            max_iter=max_iter, n_jobs=n_jobs, random_state=random_state, strict=strict,
        )  # fmt: skip
        self.own_share = own_share

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        refuse_many_items(training.comparisons.n_items)
        return super()._learn(training, delta, watch)


class SingleUserGP(GPPL):
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

    _IS_SEPARATE: ClassVar[bool] = True
    _LEARNED: ClassVar[dict[str, str]] = {"separate": "learned from their own answers alone"}

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
        super().__init__(
            users="separate", kernel=kernel, kernel_form=kernel_form, length_scale=length_scale, median=median,
            variance=variance, scale_prior=scale_prior, tie_threshold=tie_threshold, tol=tol, max_iter=max_iter,
            n_jobs=n_jobs, random_state=random_state, strict=strict,
        )  # fmt: skip
        self.own_share = own_share
