"""``CrowdGPPL``: a consensus, and users' deviations from it along shared components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from predilect._base.arguments import check_choice, check_count, check_positive
from predilect._base.estimator import check_is_fitted
from predilect._base.types import FloatArray
from predilect.inference.gaussian.kernels import Kernel
from predilect.models.checks import check_gamma, check_kernel, check_own_share, check_search
from predilect.models.people_models import FactorEstimator, describe_features
from predilect.papers.crowd.training import PRESETS, CrowdHyperparameters, fit_crowd


@dataclass(eq=False, repr=False)
class CrowdGPPL(FactorEstimator):
    """Preference learning from crowds: f_u(i) = t(i) + Σ_c w_uc v_c(i).

    The consensus t and the components v_c are Gaussian processes of the features of items, t ~ N(0, K/s_t) and v_c ~
    N(0, K/s_c); w_u are a user's weights of the components. An answer to "left or right?" is left with probability
    Φ(f_u(left) - f_u(right)): a utility is measured in units of the noise of one answer.

    Parameters
    ----------
    preset : {"modern", "paper"}, default "modern"
        "modern": variational inference with exact one-dimensional expectations and a full covariance of each user's
        weights. "paper": the linearised likelihood and factorised weights of Simpson and Gurevych, as corrected.
    n_components : int, default 20
        C. More cost more and predict a little better: 30 on Sushi-A.
    user_features : bool, default False
        Whether features of users predict their weights: through a linear prior mean ("modern"), or a Gaussian process
        for half of the components ("paper"). Both papers that tried found that it seldom helps.
    item_features : bool, default True
        False: items are uncorrelated whatever is given (Bayesian matrix factorisation).
    with_consensus : bool, default True
        False leaves t out; the crowd's board is then the average user's.
    n_inducing : int, None or "auto", default "auto"
        Inducing points M; None: the items. "auto": the items up to 200; beyond, twice the square root of the
        number of answers, from 50 to 300.
    n_inducing_users : int, None or "auto", default "auto"
        Users as inducing points of the weights, for "paper" with features of users: centres of their features. None:
        all; "auto": 500, the papers' M on their larger data (25 on the smaller).
    kernel, kernel_form, length_scale, median
        As in :class:`~predilect.GPPL`; for "paper" the median's "auto" is "code".
    own_share : float or "auto", default "auto"
        Item-specific share w of the prior variance of a utility: K becomes (1 - w) K + w I. "auto": 1/2 for "modern"
        where the items are the inducing points, and 0 otherwise.
    user_kernel : str or Kernel, default "matern-3/2"
        Of features of users, for "paper".
    consensus_prior, component_prior : pair of float or "auto", default "auto"
        Shape and rate of the Gamma priors of s_t and s_c. "auto" for "modern": (1, 10), and for the components the one
        of (10, 100), (10, 10) and (10, 1) under which held-out answers are likeliest; (1, 10) beyond 20 000 different
        answers. "auto" for "paper": (1, 100) and (1, 10); its weights have inverse scales of (1, 10).
    noise_variance : float, default 0.5
        Noise of one item in one answer in the units of the rates: 1/2 in the paper, 1 in its authors' code.
    batch_size : int, None or "auto", default "auto"
        Different answers in a batch, for "paper"; None: all at once.
    forgetting_rate, delay : float, default 0.9 and 1.0
        r and ε of the steps ρ_i = (i + ε)^-r of batches, for "paper".
    n_restarts : int or "auto", default "auto"
        Random starts, of which the best is continued; "auto": 3, and 1 beyond 20 000 different answers or 100 points.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Stop when the bound rises by less in a sweep, in nats per answer; "auto": 3e-3, and 1e-3 beyond 20 000 different
        answers. For "paper" the relative change of its bound; "auto": 3.5e-3. Both stop early on purpose: longer runs
        raise the bound and predict new answers no better.
    max_iter : int or "auto", default "auto"
        Sweeps over all functions and users; "auto": 60, for "paper" 200 batches, but at least one pass.
    n_jobs : int, optional
        Not used yet; results have the same bits for any number.
    random_state : int or None, default 0
        Seed of starts, inducing points, batches, and the draws behind rank intervals.
    strict : bool, default False
        Raise ConvergenceError instead of warning.

    Attributes
    ----------
    posterior_ : FactorPosterior
    component_importances_ : array of float, shape (n_components,)
        Prior variance that each component gives to a utility, 1/s_c; near 0 for one that is not used.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`. Where users are not identified there is only a consensus; ``log_evidence_`` is
        an approximate lower bound.

    Notes
    -----
    modern.md 2 to 6, crowdgppl.md 2.3. A sweep takes C (P C + M³) + n_users C³ operations for P different answers;
    memory C M² + n_users C² + n_items M. An unseen user is predicted by the consensus, with the spread between users.

    Examples
    --------
    >>> import predilect
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]}
    >>> model = predilect.CrowdGPPL(n_components=2).fit(answers)
    >>> model.rank()["item"].to_list()
    ['tea', 'milk']
    """

    _hyperparameters_type: ClassVar[Any] = CrowdHyperparameters

    preset: str = "modern"
    n_components: int = 20
    user_features: bool = False
    item_features: bool = True
    with_consensus: bool = True
    n_inducing: int | str | None = "auto"
    n_inducing_users: int | str | None = "auto"
    kernel: str | Kernel = "matern-3/2"
    kernel_form: str = "isotropic"
    length_scale: Any = "median"
    median: str = "auto"
    own_share: float | str = "auto"
    user_kernel: str | Kernel = "matern-3/2"
    consensus_prior: Any = "auto"
    component_prior: Any = "auto"
    noise_variance: float = 0.5
    batch_size: int | str | None = "auto"
    forgetting_rate: float = 0.9
    delay: float = 1.0
    n_restarts: int | str = "auto"
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int | str = "auto"
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    _fit = fit_crowd

    @property
    def component_importances_(self) -> FloatArray:
        """Prior variance that each component gives to a utility, shape (n_components,)."""
        check_is_fitted(self)
        return self.posterior_.importances

    def _check(self) -> None:
        check_kernel("kernel", self.kernel)
        check_search(self)
        check_choice("preset", self.preset, PRESETS)
        check_own_share(self.own_share)
        if self.preset == "paper" and isinstance(self.length_scale, str):
            check_choice("length_scale", self.length_scale, ("median",))  # its bound is not one, and has no maximum
        check_count("n_inducing", self.n_inducing, 1, None, "auto")
        check_count("n_inducing_users", self.n_inducing_users, 1, None, "auto")
        check_count("batch_size", self.batch_size, 1, None, "auto")
        check_count("n_restarts", self.n_restarts, 1, "auto")
        check_count("max_iter", self.max_iter, 1, "auto")
        for name in ("user_features", "item_features", "with_consensus"):
            check_choice(name, getattr(self, name), (True, False))
        check_count("n_components", self.n_components, 0 if self.with_consensus else 1)
        for name in ("consensus_prior", "component_prior"):
            if not isinstance(getattr(self, name), str):
                check_gamma(name, getattr(self, name))
            else:
                check_choice(name, getattr(self, name), ("auto",))
        for name in ("noise_variance", "forgetting_rate"):
            check_positive(name, getattr(self, name))

    def _relation(self) -> str:
        n = len(self.users_ or [None])
        return f"The crowd's utilities, and how each of {n} people differs along components"

    def describe(self) -> list[str]:
        importances = self.component_importances_
        used = int((importances > 0.01 * max(importances.max(initial=0.0), 1e-300)).sum())
        largest = importances.max(initial=0.0)
        lines = [f"{used} of {len(importances)} components matter; the largest has prior variance {largest:.2g}."]
        lines += describe_features(self, item_features=self.item_features)
        if bound := self.report_["prior"].get("at_bound"):
            lines.append(f"The search of length-scales ended at its bounds: {', '.join(bound)}.")
        return lines
