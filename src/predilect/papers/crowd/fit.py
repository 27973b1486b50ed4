"""The variational fit of crowdGPPL, and the gradient of its bound in the item kernel: modern.md 6, crowdgppl.md 2.5."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from predilect._base.progress import Report
from predilect._base.types import FloatArray
from predilect.inference.factors.answers import FactorAnswers, ItemDesign, StandardWeights
from predilect.inference.factors.posterior import (
    FactorPosterior,
    FactorPriors,
    FactorState,
    assemble,
    assemble_with_prior,
    random_start,
)
from predilect.inference.factors.sweep import WeightRegression, blocks, refreshed, threshold_step
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.projection import Projection, item_covariance_gradient
from predilect.inference.latent.sparse.gradient import projection_gradient
from predilect.inference.latent.sparse.problem import gathered, graph_laplacian


def theta_gradient(state: FactorState, answers: FactorAnswers, design: ItemDesign) -> FloatArray:
    """∂ bound / ∂ theta of the kernel at a fixed point, shape (n_parameters,).

    The bound at held q in f_m coordinates, where its derivative needs no derivative of q (envelope theorem):

    - KL: ½ Σ_c tr[(s_c K⁻¹(m mᵀ + S)K⁻¹ - K⁻¹) dK_mm];
    - through A = K_nm K⁻¹: with Ē = ∂ data/∂A from the means and covariances at the items, dA = (dK_nm - A dK_mm) K⁻¹;
    - through the residual between the points: dR = dK_nn - dA K_mn - A dK_mn over pairs, weighed -λ E w²/(2 s).

    crowdgppl.md eq. 39 has only the first term, exact only where the points are the items. n_items M C + M³ C
    operations, n_pairs M, and the kernel's gradient.
    """
    projection = design.projection
    sites, slope, _ = refreshed(state, answers, None, 1.0)
    # ∂ data/∂ mean and ∂ data/∂ variance of the margin of each row
    slope_mean, slope_var = answers.weight * slope, -0.5 * answers.weight * sites.precision
    functions = [(f, s, c) for c, (f, s) in enumerate(zip(state.components, state.s, strict=True))]
    if state.consensus is not None:
        functions.append((state.consensus, state.s_0, -1))
    M, n = design.n_points, len(design.G)
    inverse = projection.factor.inverse()
    G_mm = np.zeros((M, M))
    into_A = np.zeros((n, M))
    into_R = np.zeros(len(design.left))
    for f, s, c in functions:
        m, S = projection.at_points(f.mean, f.lower)
        G_mm += 0.5 * (s * inverse @ (np.outer(m, m) + S) @ inverse - inverse)
        if projection.A is None:
            continue
        if c < 0:
            first, second = slope_mean, slope_var
        else:
            weight = state.mu[answers.user, c]
            # ∂V/∂δ_c = 2 (Σ_u δ)_c beside the mean's part
            cross = np.einsum("pk,pk->p", state.Sigma[answers.user, c], state.delta[answers.pair])
            first = slope_mean * weight + 2.0 * slope_var * cross
            second = slope_var * (weight**2 + state.Sigma[answers.user, c, c])
        H: FloatArray = np.asarray(np.bincount(answers.pair, first, len(design.left)), dtype=np.float64)
        W: FloatArray = np.asarray(np.bincount(answers.pair, second, len(design.left)), dtype=np.float64)
        into_A += np.outer(gathered(n, design.left, design.right, H), m)
        into_A += 2.0 * np.asarray(graph_laplacian(n, design.left, design.right, W) @ (projection.A @ S))
        into_R += W / s
    if projection.A is None:
        return item_covariance_gradient(projection.kernel, projection.points, projection.known_points, G_mm)
    # R = K_nn - A K_mn, with K_mn = K_mm Aᵀ: dR = dK_nn - dK_nm Aᵀ - A dK_mn + A dK_mm Aᵀ, over pairs d R dᵀ.
    A = projection.A
    LA = np.asarray(graph_laplacian(n, design.left, design.right, into_R) @ A)
    G_nm = into_A @ inverse - 2.0 * LA
    G_mm += -A.T @ into_A @ inverse + A.T @ LA
    return projection_gradient(projection, G_mm, G_nm.__getitem__, design.left, design.right, into_R)


Watch = Callable[[int, float], None]

_STEP = 0.7
_SMALLEST_STEP = 0.05
_FIRST_SCALES = 3  # sweeps before scales, the tie threshold and effects of traits move
_TRIAL_SWEEPS = 8  # of each restart; the best of them goes on
# With more rows, or points, one start has to do: each costs a third of the fit.
_MOST_RESTART_ROWS, _MOST_RESTART_POINTS = 20_000, 100


@dataclass(frozen=True, slots=True)
class FactorFit:
    """Fitted factor model."""

    posterior: FactorPosterior
    delta: float
    bound: float  # approximate lower bound of the log evidence, in nats
    consensus_scale: float  # E s_t
    component_scales: FloatArray  # E s_c, (C,)
    report: Report
    # Of the bound in the kernel's log hyper-parameters; exact only at convergence of the bound
    theta_gradient: Callable[[], FloatArray] | None = None


@dataclass(slots=True)
class _Run:
    """One start, swept for a while."""

    state: FactorState
    sites: Sites
    slope: FloatArray
    bound: float
    effects: WeightRegression | None
    step: float = _STEP
    sweeps: int = 0
    change: float = np.inf


def fit_factor(
    answers: FactorAnswers, projection: Projection, *, n_components: int = 20, consensus: bool = True,
    traits: FloatArray | None = None, priors: FactorPriors | None = None, delta: float | None = None,
    n_restarts: int | None = None, tolerance: float = 1e-3, max_iter: int = 60,
    random_state: int | np.random.Generator | None = 0, watch: Watch | None = None,
) -> FactorFit:  # fmt: skip
    """Mean-field variational inference of f_u(i) = t(i) + Σ_c w_uc v_c(i) (preset ``modern``).

    ``n_components=0`` is one function for all people; ``consensus``: whether there is t; ``traits`` (n_users,
    n_traits): standardised features of people, zeros where unknown, which move the prior mean of the weights;
    ``delta=None`` maximises the bound where there are ties. Of ``n_restarts`` random starts (3, or 1 with more than
    20 000 rows or 100 points) the one with the largest bound after 8 sweeps goes on, until the bound rises by less than
    ``tolerance`` in nats an answer in a sweep.

    modern.md 3-6. **Differs from the paper**: one pass of quadrature a sweep instead of C + 2, with sites mixed at 0.7
    from the beginning to the end; at step 1 the bound may oscillate between two values.
    """
    began = time.perf_counter()
    design = ItemDesign.of(projection, answers.left, answers.right)
    priors = FactorPriors() if priors is None else priors
    if n_components == 0 and not consensus:
        raise ValueError("a factor model without consensus needs at least one component")
    rng = np.random.default_rng(random_state)
    if n_restarts is None:
        few = len(answers.user) <= _MOST_RESTART_ROWS and design.n_points <= _MOST_RESTART_POINTS
        n_restarts = 3 if n_components and few else 1
    active = np.diff(answers.user_ptr) > 0
    runs = []
    for _ in range(n_restarts):
        effects = (
            None if traits is None else WeightRegression.start(np.asarray(traits, dtype=float), n_components, active)
        )
        prior = np.zeros((answers.n_users, n_components)) if effects is None else effects.prior_mean()
        state = random_start(answers, design, n_components, consensus, prior, delta, rng)
        sites, slope, _ = refreshed(state, answers, None, 1.0)
        run = _Run(state, sites, slope, -np.inf, effects)
        if n_restarts > 1:
            _advance(run, answers, design, priors, delta is None, tolerance, min(_TRIAL_SWEEPS, max_iter), None)
        runs.append(run)
    best = max(runs, key=lambda run: run.bound)
    _advance(best, answers, design, priors, delta is None, tolerance, max_iter, watch)
    report = Report(
        "Variational inference of the factor model", best.sweeps, best.change, tolerance, best.change < tolerance,
        projection.factor.jitter, time.perf_counter() - began, "nats an answer and sweep", "allow more iterations.",
    )  # fmt: skip
    state = best.state
    return FactorFit(
        _posterior(state, projection, best.effects), state.threshold, best.bound, state.s_0, state.s, report,
        partial(theta_gradient, state, answers, design),
    )  # fmt: skip


def _posterior(state: FactorState, projection: Projection, effects: WeightRegression | None) -> FactorPosterior:
    """Posterior of a state; people without answers follow their traits."""
    if effects is None:
        return assemble(state, projection, state.mu, state.Sigma, StandardWeights())
    return assemble_with_prior(state, projection, effects.law(), effects.active, effects.traits)


def _advance(
    run: _Run, answers: FactorAnswers, design: ItemDesign, priors: FactorPriors, learn_delta: bool, tolerance: float,
    most: int, watch: Watch | None,
) -> None:  # fmt: skip
    """Sweeps until the bound converges, or ``most`` sweeps in all are done; modern.md 4.4."""
    n = answers.n_answers
    while run.sweeps < most:
        before, sites, effects = run.state.copy(), run.sites, run.effects
        moving = run.sweeps >= _FIRST_SCALES
        blocks(run.state, run.sites, answers, design, priors, scales=moving)
        if moving and learn_delta:
            threshold_step(run.state, answers, run.slope)
        if moving and run.effects is not None:
            run.effects = run.effects.converged(run.state)
        run.sites, slope, value = refreshed(run.state, answers, run.sites, run.step)
        bound = float(answers.weight @ value) - run.state.divergence(priors, design)
        if run.effects is not None:
            bound -= run.effects.divergence()
        run.sweeps += 1
        if watch is not None:
            watch(run.sweeps, bound)
        if bound < run.bound - tolerance * n and run.sweeps > _FIRST_SCALES + 2 and run.step > _SMALLEST_STEP:
            run.state, run.effects, run.step = before, effects, 0.5 * run.step
            run.sites, run.slope, _ = refreshed(before, answers, sites, run.step)
            continue
        run.change, run.bound, run.slope = abs(bound - run.bound) / n, bound, slope
        if run.change < tolerance and moving:
            return
