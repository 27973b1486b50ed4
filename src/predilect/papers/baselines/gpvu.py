"""Factor analysis with a process a person, f_u ~ N(μ, V Vᵀ + g K), by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from predilect._base.arguments import check_count, check_positive
from predilect._base.progress import Report, Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART, numbers
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import Factor, eigenpairs, symmetrise
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.projection import Projection
from predilect.inference.people.empirical_bayes import Moments, consensus_covariance, em_over_people
from predilect.inference.people.layout import People, lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.checks import KernelHyperparameters, check_process, item_kernel, refuse_many_items
from predilect.models.estimator import Estimator, Learned
from predilect.models.people_models import crowd_margins, with_new_items
from predilect.models.reading import PairQueries, Training

_LEAST_SCALE = 1e-6  # of g: with as many factors as directions in which people differ it would be 0


@dataclass(frozen=True, slots=True)
class KhanFit:
    """Fitted factor analysis."""

    posterior: PopulationPosterior
    factors: FloatArray  # V, (n_items, n_components), up to a rotation; columns by the variance they explain
    scale: float  # g
    delta: float
    evidence: float  # Σ_u log Z_u, in nats: what EM raises
    report: Report


def best_factors(
    found: Moments, root: Factor, n_components: int, scale: float | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """M step of probabilistic principal component analysis: shift of μ (n_items,), V (n_items, n_components), and g.

    ``root`` is L with K = L Lᵀ. With T = L⁻¹ (Σ_u E (f_u - μ')(f_u - μ')ᵀ / U) L⁻ᵀ = Q Λ Qᵀ (Tipping and Bishop 1999) g
    is the mean of the eigenvalues that are left out, V = L Q_C (Λ_C - g)^½. n_items³ operations.
    """
    shift = found.first / found.n_users
    half = root.solve_lower(found.about(shift) / found.n_users)
    values, vectors = eigenpairs(symmetrise(root.solve_lower(half.T)))
    if scale is None:
        scale = max(float(values[n_components:].mean()), _LEAST_SCALE)
    size = np.sqrt(np.maximum(values[:n_components] - scale, 0.0))
    return shift, root.lower @ (vectors[:, :n_components] * size), scale


def fit_khan(people: People, root: Factor, n_components: int, *, scale: float | None = None, **options: Any) -> KhanFit:
    """EM for μ, V and g, starting at V = 0; at most n_items - 1 factors; K = root rootᵀ.

    ``options`` as of :func:`~predilect.inference.people.empirical_bayes.em_over_people`.

    baselines.md B7 (Khan, Ko and Seeger 2014). **Differs from the paper**: expectation propagation, and an M step that
    has integrated the weights w_u out. The paper's, which holds them at their posterior, climbs less in a step, and
    stays at V = 0. An iteration takes the time of the E step and some 15 n_items³ operations.
    """
    K, n_items = root.lower @ root.lower.T, people.n_items
    n_components = min(n_components, n_items - 1)
    V, g = np.zeros((n_items, n_components)), 1.0 if scale is None else scale

    def maximum(mu: FloatArray, found: Moments) -> tuple[FloatArray, FloatArray]:
        nonlocal V, g
        shift, V, g = best_factors(found, root, n_components, scale)
        return mu + shift, symmetrise(V @ V.T + g * K)

    found = em_over_people(people, g * K, maximum, lambda mu, Sigma: 0.0, **options)
    C = consensus_covariance(found.Sigma, found.expectation, 1.0)
    posterior = PopulationPosterior(found.mu, C, found.Sigma, people, found.sites)
    report = replace(found.report, jitter=root.jitter)
    return KhanFit(posterior, V, g, found.delta, found.expectation.evidence, report)


@dataclass(frozen=True, slots=True)
class FactorHyperparameters(KernelHyperparameters):
    """Learned hyper-parameters of the processes; the kernel is of item features."""

    variance: float  # g: each user's own process is N(0, g K)


@dataclass(eq=False, repr=False)
class GPVU(Estimator):
    """Factors and Gaussian processes of Khan, Ko and Seeger: f_u = μ + V w_u + g_u, g_u ~ N(0, g K).

    The weights w_u ~ N(0, I) are integrated out, f_u ~ N(μ, V Vᵀ + g K), and μ, V and g are learned by EM.

    Parameters
    ----------
    n_components : int, default 3
        C; at most one less than there are items is used.
    kernel : str or Kernel, default "squared-exponential"
        Of item features; items without features are uncorrelated with all others.
    kernel_form, length_scale, median
        As in :class:`~predilect.GPPL`; length-scales are not learned.
    own_share : float, default 0.5
        Item-specific share of K. The paper's is 0.
    variance : float or "auto", default "auto"
        g, or learn it.
    tie_threshold : float or "auto", default "auto"
        δ; "auto" learns it if there are ties, and is 0 otherwise.
    tol : float or "auto", default "auto"
        Stop when the evidence rises by less in an iteration, in nats per answer; "auto": 3e-5.
    max_iter : int, default 300
    n_jobs, random_state, strict
        As in :class:`~predilect.Population`.

    Attributes
    ----------
    posterior_ : PopulationPosterior
        ``m`` is μ, ``Sigma`` is V Vᵀ + g K.
    factors_ : array of float, shape (n_items, n_components)
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
    >>> from predilect.models import GPVU
    >>> answers = {"user": ["ann", "bob"], "left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]}
    >>> GPVU(n_components=1).fit(answers).rank()["item"].to_list()
    ['tea', 'milk']
    """

    _hyperparameters_type: ClassVar[Any] = FactorHyperparameters
    _each: ClassVar[str] = "The utilities of {} people are shared factors, and a process of each one's own"
    posterior_: Annotated[PopulationPosterior, PART] = field(init=False)
    factors_: Annotated[FloatArray, numbers("I C")] = field(init=False)

    n_components: int = 3
    kernel: str | Kernel = "squared-exponential"
    kernel_form: str = "isotropic"
    length_scale: Any = "median"
    median: str = "auto"
    own_share: float = 0.5
    variance: float | str = "auto"
    tie_threshold: float | str = "auto"
    tol: float | str = "auto"
    max_iter: int = 300
    n_jobs: int | None = None
    random_state: int | None = 0
    strict: bool = False

    def _check(self) -> None:
        check_process(self, learned=False)
        check_count("n_components", self.n_components, 1)
        check_count("max_iter", self.max_iter, 1)
        check_positive("variance", self.variance, "auto")

    def _learn(self, training: Training, delta: float | None, watch: Watcher | None) -> Learned:
        answers, space = training.comparisons, training.space
        refuse_many_items(answers.n_items)
        kernel = item_kernel(self, space, float(self.own_share))
        root = Projection.of(kernel, space.matrix, space.known, None).factor
        with workers(self.n_jobs) as executor:
            found = fit_khan(
                lay_out(answers, likelihood=self._likelihood), root, int(self.n_components),
                scale=None if isinstance(self.variance, str) else float(self.variance), delta=delta,
                tolerance=3e-5 if isinstance(self.tol, str) else float(self.tol),
                max_iter=self.max_iter, executor=executor,
                progress=None if watch is None else lambda done: watch("learning factors", done),
            )  # fmt: skip
        self.factors_ = found.factors
        h = FactorHyperparameters(kernel, found.scale)
        return Learned(found.posterior, h, training.personal, found.delta, found.evidence, found.report, {})

    def _margins(self, queries: PairQueries, items: Any, people: Any) -> tuple[FloatArray, FloatArray]:
        posterior, new, h = self.posterior_, self._new_items(queries, items), self.hyperparameters_
        if new is not None:
            prior = Projection.of(h.kernel, self._space.matrix, self._space.known, None)
            posterior = with_new_items(posterior, prior, new, spread=h.variance, consensus_spread=h.variance)
        return crowd_margins(self, queries, posterior)

    def describe(self) -> list[str]:
        shared = float(np.mean(np.sum(self.factors_**2, axis=1)))
        own = self.hyperparameters_.variance
        return [
            f"{self.factors_.shape[1]} factors have {shared / (shared + own):.0%} of the variance between people; "
            "the rest is each person's own."
        ]

    def _restored(self, parts: dict[str, Any]) -> None:
        self.hyperparameters_.kernel.diagonal(self._space.matrix[:1])  # ValueError if it is made for other features
