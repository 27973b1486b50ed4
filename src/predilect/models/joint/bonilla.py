"""``BonillaGP``: the joint process of Bonilla, Guo and Sanner, with the nuggets of Houlsby et al."""

from __future__ import annotations

import math
from typing import Any

from predilect.gaussian.kernels import Kernel
from predilect.models.checks import check_choice, check_positive
from predilect.models.joint.model import JointGP
from predilect.models.joint.training import Start

NUGGETS = ("user", "observation")
_NUGGET = math.exp(-2.0)  # where the authors start
_SCALE = 0.1  # where the inverse prior variance starts


class BonillaGP(JointGP):
    """Joint Gaussian process ("BO"): (k_u + σ_u² 1[same]) ⊗ (k_x / s + σ_x² 1[same]), by expectation propagation.

    :class:`~predilect.JointGP` with other parameters for its shares, tuned by the evidence of some users' answers.

    Parameters
    ----------
    kernel, user_kernel, kernel_form, length_scales, median
        As in :class:`~predilect.JointGP`.
    nugget : {"user", "observation"}, default "user"
        Variance that the features do not explain: "user" adds σ_u² where the user is the same and σ_x² where the item
        is; "observation", as in the code of Houlsby et al., adds both per answer, which is more noise.
    user_nugget, item_nugget : float, default e^-2
        σ_u² and σ_x², or where their search starts.
    scale : float or "auto", default "auto"
        The inverse s of the prior variance, or learn it from 0.1 on. The authors' is 1.
    n_tuning : int or None, default 25
        Number of randomly drawn users on whose answers hyper-parameters are tuned; 0: no tuning; None: all users.
    max_evaluations, tie_threshold, tolerance, max_iter, n_jobs, random_state, strict
        As in :class:`~predilect.JointGP`.

    Notes
    -----
    baselines.md B4 (Bonilla, Guo and Sanner 2010; Houlsby et al. 2012). **Differs from the papers**: expectation
    propagation instead of Bonilla's Laplace approximation; by default the users' nugget is one of the user, not of the
    answer.

    Examples
    --------
    >>> from predilect import BonillaGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "milk"]}
    >>> model = BonillaGP(n_tuning=0).fit(answers, users={"user": ["ann", "bob"], "age": [20, 60]})
    >>> model.rank("ann")["item"].to_list()
    ['tea', 'milk']
    """

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
        n_tuning: int | None = 25,
        max_evaluations: int = 50,
        tie_threshold: float | str = "auto",
        tolerance: float | str = "auto",
        max_iter: int = 300,
        n_jobs: int | None = None,
        random_state: int = 0,
        strict: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel, user_kernel=user_kernel, kernel_form=kernel_form, length_scales=length_scales, median=median,
            n_tuning=n_tuning, max_evaluations=max_evaluations, tie_threshold=tie_threshold, tolerance=tolerance,
            max_iter=max_iter, n_jobs=n_jobs, random_state=random_state, strict=strict,
        )  # fmt: skip
        self.nugget = nugget
        self.user_nugget = user_nugget
        self.item_nugget = item_nugget
        self.scale = scale

    def _start(self) -> Start:
        check_choice("nugget", self.nugget, NUGGETS)
        for name in ("user_nugget", "item_nugget"):
            check_positive(name, getattr(self, name))
        check_positive("scale", self.scale, "auto")
        of_users, of_items = float(self.user_nugget), float(self.item_nugget)
        variance = 1.0 / (_SCALE if isinstance(self.scale, str) else float(self.scale))
        held = () if isinstance(self.scale, str) else ("variance",)
        if self.nugget == "observation":
            return Start(0.0, 0.0, variance, (of_users, of_items), held)
        whole = (1.0 + of_users) * (variance + of_items)
        return Start(of_users / (1.0 + of_users), of_items / (variance + of_items), whole, None, held)
