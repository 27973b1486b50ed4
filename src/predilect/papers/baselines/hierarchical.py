"""``HierarchicalGP``: utilities of users drawn from one Gaussian population distribution, which is learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from predilect._base.arguments import check_choice, check_count, check_positive
from predilect._base.progress import Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART
from predilect._base.types import FloatArray
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.projection import Projection
from predilect.inference.people.empirical_bayes import GaussianPrior, HierarchicalFit, fit_hierarchical
from predilect.inference.people.layout import lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.checks import KernelHyperparameters, check_process, item_kernel, number_or, refuse_many_items
from predilect.models.estimator import Estimator, Learned
from predilect.models.people_models import crowd_margins, with_new_items
from predilect.models.reading import PairQueries, Training

PRESETS = ("modern", "paper")
_SHARES = (0.1, 0.5, 1.0)  # of "auto"
_STRENGTH = 20.0
_START = 30.0  # s before it is learned: hardly identified up to a factor of 2, and EM is slow to leave small values
_SEARCH_TOLERANCE = 1e-4
_PAPER_NUGGET = 1e-5
# Tolerance and most iterations of each preset.
_STOP = {"modern": (1e-5, 300), "paper": (1e-3, 20)}


@dataclass(frozen=True, slots=True)
class HierarchicalHyperparameters(KernelHyperparameters):
    """Prior of the population distribution; the kernel is of item features, with the item-specific share."""

    variance: float  # s: the prior mode of Σ is s K
    # strength, consensus_strength: ν₀ and κ₀, in users
    strength: float
    consensus_strength: float


@dataclass(eq=False, repr=False)
class HierarchicalGP(Estimator):
    """Hierarchical Gaussian process of Birlutiu, Groot and Heskes ("BI"): f_u ~ N(μ, Σ), learned by EM.

    Parameters
    ----------
    preset : {"modern", "paper"}, default "modern"
        "modern": a normal-inverse-Wishart prior of μ and Σ, set by ``strength``, ``consensus_strength``,
        ``variance`` and ``own_share``. "paper": plain maximum likelihood from Σ = K on, with length-scale 1 and 20
        iterations. "auto" in the other arguments is the preset's value.
    kernel : str or Kernel, default "squared-exponential"
        Of item features; items without features are uncorrelated with all others.
    kernel_form, length_scale, median
        As in :class:`~predilect.GPPL`; length-scales are not learned, and "median" is 1 for "paper".
    own_share : float or "auto", default "auto"
        w, the item-specific share of K; "auto" is the one of .1, .5 and 1 with the highest objective where items have
        features, for "paper" 1e-5.
    strength : float or "auto", default "auto"
        ν₀, weight of the prior Σ = sK in numbers of users; "auto" is 20, for "paper" 0.
    consensus_strength : float or "auto", default "auto"
        κ₀, weight of the prior μ = 0 in numbers of users; "auto" is 1, for "paper" 0.
    variance : float or "auto", default "auto"
        s; "auto" learns it, for "paper" 1.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Stop when the objective rises by less in an iteration, in nats per answer; "auto": 1e-5, for "paper" 1e-3.
    max_iter : int or "auto", default "auto"
        "auto": 300, for "paper" 20.
    n_jobs, random_state, strict
        As in :class:`~predilect.Population`.

    Attributes
    ----------
    posterior_ : PopulationPosterior
        ``m`` is μ, ``Sigma`` Σ.
    items_, users_, personal_, hyperparameters_, tie_threshold_, log_evidence_, report_, n_answers_, comparisons_
        As in :class:`~predilect.GPPL`; ``log_evidence_`` is Σ_u log Z_u at μ and Σ.

    Notes
    -----
    baselines.md B3. **Differs from the paper**: expectation propagation in the space of utilities, and the prior of
    "modern"; the stop rule looks at the objective, not at entries of μ and Σ. An unseen user has N(μ, Σ); a new item
    follows from its features and all users' utilities of the others; features of users are not used.
    :class:`~predilect.Population` is this model with a better search, and with its prior chosen by held-out answers.

    Examples
    --------
    >>> from predilect.models import HierarchicalGP
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]}
    >>> HierarchicalGP().fit(answers).rank()["item"].to_list()
    ['tea', 'milk']
    """

    _hyperparameters_type: ClassVar[Any] = HierarchicalHyperparameters
    _each: ClassVar[str] = "The utilities of {} people are draws from one Gaussian, which is learned"
    posterior_: Annotated[PopulationPosterior, PART] = field(init=False)

    preset: str = "modern"
    kernel: str | Kernel = "squared-exponential"
    kernel_form: str = "isotropic"
    length_scale: Any = "median"
    median: str = "auto"
    own_share: float | str = "auto"
    strength: float | str = "auto"
    consensus_strength: float | str = "auto"
    variance: float | str = "auto"
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int | str = "auto"
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        answers, space = training.comparisons, training.space
        refuse_many_items(answers.n_items)
        people, paper = lay_out(answers, likelihood=self._likelihood), self.preset == "paper"
        tolerance, most = _STOP[self.preset]
        tolerance = number_or(self.tol, tolerance)
        strength = number_or(self.strength, 0.0 if paper else _STRENGTH)
        consensus_strength = number_or(self.consensus_strength, 0.0 if paper else 1.0)
        automatic = isinstance(self.variance, str)
        shares: tuple[float, ...] = (number_or(self.own_share, _PAPER_NUGGET),)
        if isinstance(self.own_share, str) and not paper:
            shares = _SHARES if space.informative and strength else (1.0,)
        of_paper = 1.0 if paper and isinstance(self.length_scale, str) else None
        kernels = [item_kernel(self, space, own, of_paper) for own in shares]
        with workers(self.n_jobs) as executor:

            def fit(kernel: Kernel, tolerance: float, stage: str) -> HierarchicalFit:
                K = Projection.of(kernel, space.matrix, space.known, None).factor.lower
                return fit_hierarchical(
                    people, GaussianPrior(K @ K.T, strength, consensus_strength),
                    scale=(1.0 if paper else _START) if automatic else float(self.variance),
                    learn_scale=automatic and strength > 0.0, delta=delta, tolerance=tolerance,
                    max_iter=int(number_or(self.max_iter, most)), executor=executor,
                    progress=None if watch is None else lambda done: watch(stage, done),
                )  # fmt: skip

            best, objectives = 0, []
            if len(kernels) > 1:
                at_search = max(tolerance, _SEARCH_TOLERANCE)
                objectives = [fit(kernel, at_search, "choosing the items' own share").objective for kernel in kernels]
                best = int(np.argmax(objectives))
            found = fit(kernels[best], tolerance, "learning the population")
        trials = dict(zip(map(str, shares), objectives, strict=True)) if objectives else {}
        h = HierarchicalHyperparameters(kernels[best], found.scale, strength, consensus_strength)
        prior = {"own_share": shares[best], "trials": trials}
        return Learned(found.posterior, h, training.personal, found.delta, found.evidence, found.report, prior)

    def _check(self) -> None:
        check_choice("preset", self.preset, PRESETS)
        check_process(self, learned=False, share_is_searched=True)
        check_count("max_iter", self.max_iter, 1, "auto")
        check_positive("variance", self.variance, "auto")
        for name in ("strength", "consensus_strength"):
            value = getattr(self, name)
            if isinstance(value, str) or value != 0.0:  # 0: no prior
                check_positive(name, value, "auto")

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new, h = self.posterior_, self._new_items(queries, items), self.hyperparameters_
        if new is not None:
            prior = Projection.of(h.kernel, self._space.matrix, self._space.known, None)
            n, half = posterior.n_items, prior.factor.solve_lower(posterior.Sigma)
            # Variance over users of a new item: the inverse-Wishart's mean given Σ of the others.
            trace = float(np.trace(prior.factor.solve_lower(half.T)))
            spread = (h.strength * h.variance + trace) / (h.strength + n)
            posterior = with_new_items(
                posterior, prior, new, spread=spread, consensus_spread=spread / (h.consensus_strength or 1.0)
            )
        return crowd_margins(self, queries, posterior)

    def describe(self) -> list[str]:
        posterior, h = self.posterior_, self.hyperparameters_
        n = posterior.n_items
        spread = (np.trace(posterior.Sigma) - posterior.Sigma.sum() / n) / max(n - 1, 1)
        lines = [f"People differ by {np.sqrt(spread):.2g} noise units in a utility (standard deviation)."]
        if h.strength:
            lines.append(f"Prior variance of a utility {h.variance:.2g}, worth {h.strength:g} people.")
        return lines
