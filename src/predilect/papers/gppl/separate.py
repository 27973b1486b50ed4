"""Independent Gaussian processes, one per user."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from predilect._base.progress import Report, Watcher
from predilect._base.shards import workers
from predilect._base.stored import PART, numbers
from predilect._base.text import either
from predilect._base.types import BoolArray, FloatArray, IntArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataError
from predilect.inference.factors.answers import GammaPrior
from predilect.inference.gaussian.dense import covariances, symmetrise
from predilect.inference.gaussian.design import Sites, pair_variance
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.posterior import Posterior, Utilities
from predilect.inference.gaussian.projection import Projection, item_covariance, item_covariance_gradient
from predilect.inference.latent.evidence import maximise
from predilect.inference.likelihoods.probit import threshold_for_tie_share
from predilect.inference.people.expectation import Expectation, converge
from predilect.inference.people.law import Law
from predilect.inference.people.layout import People, lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.checks import item_kernel, optimises
from predilect.models.reading import PairQueries, Training
from predilect.papers.gppl.pooled import PooledFit, scale_prior


@dataclass(frozen=True, slots=True)
class SeparatePosterior(Posterior):
    """f_u ~ N(0, K/s) for every user u, independent of each other, given that user's answers.

    An unseen user, of whom the model knows only the prior, is predicted as a random one of those who answered.
    """

    people: Annotated[PopulationPosterior, PART]  # population model with consensus 0 and Σ = K/s
    mean: Annotated[FloatArray, numbers("I")]  # of the average of the users who answered
    covariance: Annotated[FloatArray, covariances("I I")]
    spread: Annotated[FloatArray, covariances("I I")]  # covariance of the utilities of a random one of them

    @classmethod
    def of(cls, people: PopulationPosterior, H: FloatArray, D: FloatArray, r: FloatArray) -> SeparatePosterior:
        """Posterior and population average from all sites, and the sums H, D, r over users.

        User u has mean Σ Xᵀα and covariance Σ - Σ XᵀQX Σ, so the average has mean m = Σ r / U and, as users are
        independent, covariance (U Σ - Σ H Σ) / U²; the covariances of all, and of their means about m, add up to Σ + Σ
        D Σ / U - m mᵀ. Sums as in :class:`~predilect.inference.people.expectation.Expectation`.
        """
        U, Sigma = people.people.n_active, people.Sigma
        mean = Sigma @ r / U
        spread = Sigma + Sigma @ D @ Sigma / U - np.outer(mean, mean)
        return cls(people, mean, symmetrise((U * Sigma - Sigma @ H @ Sigma) / U**2), symmetrise(spread))

    @property
    def n_items(self) -> int:
        return len(self.mean)

    def margins(
        self, users: IntArray, left: IntArray, right: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        mean, var = self.mean[left] - self.mean[right], pair_variance(self.spread, left, right)
        known = users >= 0
        if known.any():
            mean[known], var[known] = self.people.margins(users[known], left[known], right[known], executor=executor)
        return mean, var

    def person(self, user: int = -1) -> Utilities:
        return self.people.person(user) if user >= 0 else Utilities.of(self.mean, self.spread)

    def prior_of(self, user: int) -> Utilities:
        return self.people.person(-1)

    def answered_rows(self, user: int) -> tuple[IntArray, IntArray, IntArray]:
        return self.people.answered_rows(user)

    def crowd(self) -> Utilities:
        return Utilities.of(self.mean, self.covariance)

    def centred_utilities(
        self, users: IntArray, *, executor: ThreadPoolExecutor | None = None
    ) -> tuple[FloatArray, FloatArray]:
        return self.people.centred_utilities(users, executor=executor)

    def with_items(self, everything: Projection, scale: float) -> SeparatePosterior:
        """Over more items, of which the first are these: ``everything`` projects from these to all; ``scale`` is s."""
        A, R = everything.A, everything.residual() / scale
        assert A is not None
        Sigma = A @ self.people.Sigma @ A.T + R
        people = replace(self.people.people, n_items=len(Sigma))
        posterior = PopulationPosterior(np.zeros(len(Sigma)), np.zeros_like(Sigma), Sigma, people, self.people.sites)
        average = A @ self.covariance @ A.T + R / people.n_active
        return SeparatePosterior(posterior, A @ self.mean, average, A @ self.spread @ A.T + R)


# Bounds of log prior variance and log δ, and how far the kernel may go from where it starts.
_VARIANCE, _DELTA, _REACH = (math.log(1e-4), math.log(1e6)), (math.log(1e-4), math.log(1e3)), math.log(1e3)
_LOOSE = 1e-6  # of sites, while hyper-parameters move


def fit_separate(
    people: People,
    kernel: Kernel,
    features: FloatArray,
    known: BoolArray,
    *,
    prior: GammaPrior,
    scale: float | None = None,
    delta: float | None = None,
    learn_kernel: bool = False,
    tolerance: float = 1e-5,
    max_iter: int = 100,
    executor: ThreadPoolExecutor | None = None,
    progress: Callable[[int], None] | None = None,
) -> PooledFit:
    """Posterior of each person under f_u ~ N(0, K/s), K by
    :func:`~predilect.inference.gaussian.projection.item_covariance`.

    s is given or the mode, in log s, of its posterior under its Gamma ``prior``; δ is given or learned where there are
    ties; ``learn_kernel`` learns the kernel within a factor of 1000 of its start. ``tolerance`` is of the evidence, in
    nats an answer. PredilectError if the evidence or its gradient is not finite.

    crowdgppl.md 1, "GPPL per user". **Differs from the paper**: expectation propagation instead of the linearised
    variational approximation, and one s for all people instead of one each, which a few answers do not determine. With
    G = ½ Σ_u (α αᵀ - Q), the gradient of the evidence in K/s, that in log s is -tr(G K/s). Each evaluation sweeps the
    sites of all people, Σ_u n_u min(n_u, k_u)².
    """
    began = time.perf_counter()
    tied = float(people.weight[people.outcome == 0].sum())
    n_kernel = len(kernel.theta) if learn_kernel else 0
    free = np.array([scale is None, delta is None and tied > 0.0, *[True] * n_kernel])
    begin = np.array([
        math.log(prior.rate / prior.shape) if scale is None else -math.log(scale),
        math.log(delta or threshold_for_tie_share(tied / people.n_answers)), *kernel.theta[:n_kernel],
    ])  # fmt: skip
    bounds = np.array([_VARIANCE, _DELTA, *[(theta - _REACH, theta + _REACH) for theta in begin[2:]]])
    low, high = np.where(free, bounds.T, begin)
    sites, n_evaluations = Sites.flat(people.n_rows), 0
    zero = np.zeros(people.n_items)
    has_ties = delta != 0.0 and (delta is not None or tied > 0.0)

    def converged_at(at: FloatArray, to: float) -> tuple[Expectation, Kernel, FloatArray, float]:
        nonlocal n_evaluations
        n_evaluations += 1
        there = kernel.with_theta(at[2:]) if learn_kernel else kernel
        Sigma = item_covariance(there, features, known) / math.exp(-at[0])  # K/s, to the bit
        threshold = math.exp(at[1]) if has_ties else 0.0
        return (
            converge(people, sites, Law(Sigma, zero), threshold, tolerance=to, executor=executor),
            there,
            Sigma,
            threshold,
        )

    def objective(at: FloatArray) -> tuple[float, FloatArray]:
        found, there, Sigma, threshold = converged_at(at, _LOOSE)
        if progress:
            progress(n_evaluations)
        G = 0.5 * found.D
        slope = np.zeros(len(at))
        slope[0] = float(np.sum(G * Sigma)) - prior.shape + prior.rate * math.exp(-at[0])
        slope[1] = threshold * found.slope_delta
        if learn_kernel:
            slope[2:] = math.exp(at[0]) * item_covariance_gradient(there, features, known, G)
        return found.evidence - prior.shape * at[0] - prior.rate * math.exp(-at[0]), slope

    residual, converged = 0.0, True
    if free.any():
        best = maximise(
            objective, ("prior variance", "tie threshold", *kernel.names[:n_kernel]), begin, low, high,
            unit=people.n_answers, options={"ftol": tolerance, "gtol": tolerance, "maxiter": max_iter},
        )  # fmt: skip
        begin, converged = best.theta, best.converged
        residual = float(np.max(np.abs(best.gradient[free]))) / people.n_answers
    final, there, Sigma, threshold = converged_at(begin, 1e-9)
    converged = converged and final.is_sound
    posterior = PopulationPosterior(zero, np.zeros_like(Sigma), Sigma, people, sites)
    report = Report(
        method="EP person by person", iterations=n_evaluations, residual=residual, tolerance=tolerance,
        converged=converged, jitter=0.0, seconds=time.perf_counter() - began,
        unit="nats an answer for a step in a logarithm",
        advice=either("look for extreme weights", "allow more iterations (max_iter=...), or fix the scale"),
    )  # fmt: skip
    everybody = SeparatePosterior.of(posterior, final.H, final.D, final.r)
    return PooledFit(everybody, math.exp(-begin[0]), there, threshold, final.evidence, report, {})


_MOST_ITEMS = 3000  # items x items algebra, some 12 n² floats


def fit_separate_gppl(
    model: Any, training: Training, delta: float | None, executor: ThreadPoolExecutor | None, watch: Watcher | None
) -> PooledFit:
    """Fit of a GPPL with ``users="separate"``; DataError if there are more items than dense algebra can hold."""
    answers, space = training.comparisons, training.space
    if answers.n_items > _MOST_ITEMS:
        raise DataError(
            f'{answers.n_items} items are too many for users="separate", which holds {_MOST_ITEMS}. Use '
            'Population(), CrowdGPPL() or users="pooled"'
        )
    kernel = item_kernel(model, space, float(model.own_share))
    prior = scale_prior(model)
    return fit_separate(
        lay_out(answers, likelihood=model._likelihood), kernel, space.matrix, space.known,
        prior=GammaPrior(prior.shape, prior.rate / (2.0 * prior.noise_var)),
        scale=None if prior.learned else prior.shape / prior.rate, delta=delta,
        learn_kernel=optimises(model) and space.informative,
        tolerance=1e-5 if isinstance(model.tol, str) else float(model.tol),
        max_iter=model.max_iter, executor=executor,
        progress=None if watch is None else lambda done: watch("choosing the prior by the evidence", done),
    )  # fmt: skip


def separate_margins(model: Any, queries: PairQueries, new: FeatureSpace | None) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the queried margins, (n,); ``new`` items have codes after those of the fit."""
    posterior, h, space = model.posterior_, model.hyperparameters_, model._space
    assert isinstance(posterior, SeparatePosterior)
    if new is not None:
        prior = Projection.of(h.kernel, space.matrix, space.known, None)
        posterior = posterior.with_items(prior.with_items(new.matrix, new.known), 1.0 / h.variance)
    with workers(model.n_jobs) as executor:
        return posterior.margins(queries.users, queries.left, queries.right, executor=executor)
