"""``CollaborativeGP``: shared latent functions of the items, with weights for each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from predilect._base.arguments import check_choice, check_count, check_positive
from predilect._base.estimator import check_is_fitted
from predilect._base.types import FloatArray
from predilect.inference.gaussian.kernels import MEDIAN_RULES, Kernel
from predilect.inference.gaussian.kernels.stationary import DISTANCE_RULES
from predilect.models.checks import check_kernel, check_own_share, check_search
from predilect.models.people_models import FactorEstimator, describe_features
from predilect.papers.collaborative.functions import USED
from predilect.papers.collaborative.training import (
    PRESETS,
    CollaborativeHyperparameters,
    fit_collaborative,
)


@dataclass(eq=False, repr=False)
class CollaborativeGP(FactorEstimator):
    """Collaborative Gaussian processes: f_u(i) = Σ_d w_ud h_d(i), with D functions shared by all users.

    The functions h_d are Gaussian processes of the features of items, and w_ud is the weight of each for a user. An
    answer to "left or right?" is left with probability Φ(f_u(left) - f_u(right)): a utility is measured in units of the
    noise of one answer. With features of users in the weights this is the paper's CPU, without them its CP.

    Parameters
    ----------
    n_components : int, default 20
        D. More than needed do no harm: see ``component_importances_``.
    user_features : bool, default False
        Whether features of users predict their weights: through a linear prior mean ("modern"), or a Gaussian process
        with ``user_kernel`` ("paper").
    preset : {"modern", "paper"}, default "modern"
        "modern": functions over the items, weights with the full covariance of each user and a learned mean. "paper":
        expectation propagation with variational Bayes over pairs of Houlsby and others, fully factorised, as corrected;
        weights have mean zero.
    n_inducing : int, None or "auto", default "auto"
        Inducing points: items ("modern"), or pairs among those compared ("paper", FITC). None: none, the functions are
        kept at all items. "auto": none up to 200 items; beyond, twice the square root of the number of answers, from
        50 to 300.
    n_inducing_users : int, None or "auto", default "auto"
        Users as inducing points of the weights, for "paper" with features of users. None: all; "auto": 25.
    kernel : str or Kernel, default "auto"
        Of item features; "auto": "matern-3/2" ("modern") or "squared-exponential" ("paper"). A Kernel is used with its
        hyper-parameters.
    kernel_form
        As in :class:`~predilect.GPPL`.
    length_scale : float, array or {"median", "optimise"}, default "median"
        Of item features. "optimise": the median's times the factor from 1/8 to 8 that has the most evidence, for some
        thirteen times the time. "modern", with its item-specific share, gains nothing. For "paper" the evidence is no
        bound: among metals, where the median is far too long, test error falls from .19 to .14; on Sushi, where it is
        right, it rises from .15 to .19.
    median : str, default "auto"
        Meaning of "median": a rule of :class:`~predilect.GPPL`, or one length-scale for standardised features:
        "distance", the median distance of the paper, or "half-distance", the root of half the median squared distance
        of its authors' code. "auto": "root" ("modern") or "half-distance" ("paper").
    own_share : float or "auto", default "auto"
        Item-specific share of a function's variance; "auto": 0 with inducing points; without, 1/2 for "modern", and for
        "paper" the 5e-6 that its authors' code adds for numerical reasons.
    variance : float, default 1.0
        Prior variance of a function at an item.
    user_kernel : str or Kernel, default "squared-exponential"
        Of features of users, for "paper".
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise. The paper has no ties.
    tol : float or "auto", default "auto"
        Stop once a step without damping would move no margin of an answer by more, in units of the noise of an answer;
        "auto": 0.1.
    max_iter : int or "auto", default "auto"
        "auto": 200, for "paper" 400.
    n_jobs : int, optional
        Not used yet; results have the same bits for any number.
    random_state : int or None, default 0
        Seed of starts, inducing points, and the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : FactorPosterior
    component_importances_ : array of float, shape (n_components,)
        Mean square contribution of each function to the margins of the answers; near 0 for one that is pruned.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`. Where users are not identified there is one function, Gaussian process
        classification; ``log_evidence_`` is by expectation propagation, not a bound; ``report_`` also tells of messages
        that were rejected, and of functions that are used.

    Notes
    -----
    collaborative.md; Houlsby, Huszár, Ghahramani and Hernández-Lobato (2012). A sweep takes D (n_answers D + M³) +
    n_users D³ operations ("modern") or 16 passes n_answers D + D M³ ("paper").

    **Differs from the paper**: an unseen user is predicted as one drawn from among the others, where the paper's
    weights of mean zero predict nothing. Differences in the algorithm are listed in
    :func:`predilect.papers.collaborative.paper.fit_paper`.

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]}
    >>> model = predilect.CollaborativeGP(n_components=2).fit(answers)
    >>> model.rank()["item"].to_list()
    ['tea', 'milk']
    """

    _hyperparameters_type: ClassVar[Any] = CollaborativeHyperparameters
    _each: ClassVar[str] = "Functions that {} people share, each with own weights"

    n_components: int = 20
    user_features: bool = False
    preset: str = "modern"
    n_inducing: int | str | None = "auto"
    n_inducing_users: int | str | None = "auto"
    kernel: str | Kernel = "auto"
    kernel_form: str = "isotropic"
    length_scale: Any = "median"
    median: str = "auto"
    own_share: float | str = "auto"
    variance: float = 1.0
    user_kernel: str | Kernel = "squared-exponential"
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int | str = "auto"
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    _fit = fit_collaborative

    @property
    def component_importances_(self) -> FloatArray:
        """Mean square contribution of each function to the margins of the answers, shape (n_components,)."""
        check_is_fitted(self)
        return np.array(self.report_["prior"]["component_importances"], dtype=np.float64)

    def _check(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_kernel("kernel", self.kernel, "auto")
        check_kernel("user_kernel", self.user_kernel)
        check_search(self, medians=(*MEDIAN_RULES, *DISTANCE_RULES))
        check_own_share(self.own_share)
        check_count("n_components", self.n_components, 1)
        check_count("n_inducing", self.n_inducing, 1, None, "auto")
        check_count("n_inducing_users", self.n_inducing_users, 1, None, "auto")
        check_count("max_iter", self.max_iter, 1, "auto")
        check_choice("user_features", self.user_features, (True, False))
        check_positive("variance", self.variance)

    def describe(self) -> list[str]:
        importances = self.component_importances_
        used = int((importances > USED * importances.max()).sum())
        lines = [f"{used} of {len(importances)} functions are used; the others are pruned."]
        if not self.personal_:
            lines = ["One function for all: Gaussian process classification."]
        lines += describe_features(self)
        if trials := self.report_["prior"].get("trials"):
            best = max(trials, key=lambda trial: trial["log_evidence"])
            lines.append(
                f"Length-scales are {best['factor']:.2g} times the median's, by the evidence of {len(trials)} fits."
            )
        if n_rejected := self.report_["prior"]["n_rejected"]:
            lines.append(f"{n_rejected} messages of answers had no proper cavity.")
        return lines
