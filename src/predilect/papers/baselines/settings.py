"""Baselines that are settings of GPPL, and of the joint process."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from predilect._base.arguments import check_positive
from predilect._base.progress import Watcher
from predilect.inference.gaussian.kernels import Kernel
from predilect.models.checks import refuse_many_items
from predilect.models.estimator import Learned
from predilect.models.reading import Training
from predilect.papers.gppl import GPPL
from predilect.papers.joint import JointGP
from predilect.papers.joint.fit import JointStart

_NUGGET = math.exp(-2.0)  # where the authors start
_VARIANCE = 10.0  # where the inverse prior variance starts


@dataclass(eq=False, repr=False)
class _Baseline(GPPL):
    """GPPL with an item-specific share, and without what concerns inducing points, batches and features of users."""

    kernel: str | Kernel = "squared-exponential"
    own_share: float = 0.0
    preset: str = field(default="modern", init=False)
    users: str = field(default="pooled", init=False)
    user_kernel: str | Kernel = field(default="matern-3/2", init=False)
    n_inducing: int | str | None = field(default=None, init=False)
    sites: str = field(default="auto", init=False)
    surrogate: str = field(default="auto", init=False)
    noise_variance: float = field(default=0.5, init=False)
    batch_size: int | str = field(default="auto", init=False)
    forgetting_rate: float = field(default=0.9, init=False)
    delay: float = field(default=1.0, init=False)


@dataclass(eq=False, repr=False)
class GPClassifier(_Baseline):
    """Gaussian-process classification of pairs with the preference kernel, pooled over users.

    f ~ N(0, K/s), so margins of pairs (i, j) and (k, l) covary by k(i, k) + k(j, l) - k(i, l) - k(j, k). The algebra is
    that of different answers or of items, whichever are fewer: the results are the same.

    Parameters
    ----------
    kernel : str or Kernel, default "squared-exponential"
    inference : {"ep", "laplace", "variational"}, default "ep"
    tol : float or "auto", default "auto"
        For "variational": stop when the bound rises by less, in nats per answer; "auto": 1e-6. The others run to
        convergence.
    max_iter : int, default 200
        For "variational".
    own_share : float, default 0.0
        Share of the prior variance of a utility that is item-specific.
    kernel_form, length_scale, median, variance, scale_prior, tie_threshold, n_jobs, random_state, strict
        As in :class:`~predilect.GPPL`. There is one function, so ``n_jobs`` is not used.

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
    >>> from predilect.models import GPClassifier
    >>> GPClassifier().fit({"left": ["tea"], "right": ["milk"], "winner": ["tea"]}).rank()["item"].to_list()
    ['tea', 'milk']
    """

    _INFERENCE: ClassVar[tuple[str, ...]] = ("ep", "laplace", "variational")

    inference: str = "ep"

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        refuse_many_items(training.comparisons.n_items)
        return super()._learn(training, delta, watch)


@dataclass(eq=False, repr=False)
class SingleUserGP(_Baseline):
    """Gaussian-process classification of each user's pairs separately, by expectation propagation ("SU").

    f_u ~ N(0, K/s) for every user, independent of each other; the kernel and s are shared.

    Parameters
    ----------
    kernel : str or Kernel, default "squared-exponential"
    variance : float or "auto", default "auto"
        1/s, or learn it. The paper's is 1.
    tol : float or "auto", default "auto"
        Stop when the evidence rises by less, in nats per answer; "auto": 1e-5.
    max_iter : int, default 100
        Of the search for s, δ and length-scales.
    own_share : float, default 0.5
        Share of the prior variance of a utility that is item-specific. The paper's is 0.
    kernel_form, length_scale, median, scale_prior, tie_threshold, n_jobs, random_state, strict
        As in :class:`~predilect.GPPL`.

    Attributes
    ----------
    posterior_ : SeparatePosterior
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`.

    Notes
    -----
    baselines.md B2 (Houlsby et al. 2012). The setting ``users="separate"`` of :class:`~predilect.GPPL`, also for one
    person. **Differs from the paper**: s is learned, and items have an item-specific share of the variance; an unseen
    user is predicted as a random one of those who answered, where the paper says 1/2. Features of users are not used.
    Σ_u n_u min(n_u, k_u)² operations per evaluation, for n_u answers on k_u items.

    Examples
    --------
    >>> from predilect.models import SingleUserGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = SingleUserGP().fit(answers)
    >>> model.rank("ann")["item"].to_list(), model.rank("bob")["item"].to_list()
    (['tea', 'milk'], ['milk', 'tea'])
    """

    _IS_SEPARATE: ClassVar[bool] = True
    _LEARNED: ClassVar[dict[str, str]] = {"separate": "learned from their own answers alone"}

    max_iter: int = 100
    own_share: float = 0.5
    users: str = field(default="separate", init=False)
    inference: str = field(default="auto", init=False)


@dataclass(eq=False, repr=False)
class BonillaGP(JointGP):
    """Joint Gaussian process ("BO"): (k_u + σ_u² 1[same]) ⊗ (k_x / s + σ_x² 1[same]), by expectation propagation.

    :class:`~predilect.JointGP` with other parameters for its shares, tuned by the evidence of some users' answers.

    Parameters
    ----------
    kernel, user_kernel, kernel_form, length_scale, median
        As in :class:`~predilect.JointGP`.
    user_nugget, item_nugget : float, default e^-2
        Variance that the features do not explain, σ_u² where the user is the same and σ_x² where the item is, or where
        its search starts.
    variance : float or "auto", default "auto"
        Prior variance 1/s of a utility, or learn it from 10 on. The authors' is 1.
    n_tuning : int or None, default 25
        Number of randomly drawn users on whose answers hyper-parameters are tuned; 0: no tuning; None: all users.
    max_evaluations, tie_threshold, tol, max_iter, n_jobs, random_state, strict
        As in :class:`~predilect.JointGP`.

    Notes
    -----
    baselines.md B4 (Bonilla, Guo and Sanner 2010; Houlsby et al. 2012). **Differs from the papers**: expectation
    propagation instead of Bonilla's Laplace approximation. Nuggets are those of the text of Houlsby et al.; their code
    adds both to every single answer, which is more noise.

    Examples
    --------
    >>> from predilect.models import BonillaGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = BonillaGP(n_tuning=0).fit(answers, people={"user": ["ann", "bob"], "age": [20, 60]})
    >>> model.rank("ann")["item"].to_list()
    ['tea', 'milk']
    """

    n_tuning: int | None = 25
    user_nugget: float = _NUGGET
    item_nugget: float = _NUGGET
    user_share: float | str = field(default="auto", init=False)  # by the nuggets, as the noise is 1
    item_share: float | str = field(default="auto", init=False)
    noise: float = field(default=3.0, init=False)

    def _start(self) -> JointStart:
        for name in ("user_nugget", "item_nugget"):
            check_positive(name, getattr(self, name))
        check_positive("variance", self.variance, "auto")
        of_users, of_items = float(self.user_nugget), float(self.item_nugget)
        variance = _VARIANCE if isinstance(self.variance, str) else float(self.variance)
        held = () if isinstance(self.variance, str) else ("variance",)
        whole = (1.0 + of_users) * (variance + of_items)
        return JointStart(of_users / (1.0 + of_users), of_items / (variance + of_items), whole, held)
