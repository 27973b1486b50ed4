"""Training of ``CollaborativeGP``: the choice of its prior, and the corrected algorithm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from predilect._base.progress import Report, Watcher
from predilect._base.text import either, setting
from predilect._base.types import BoolArray, FloatArray
from predilect.data import Comparisons
from predilect.data.features import Traits
from predilect.errors import DataError
from predilect.inference.factors.answers import CrowdWeights, FactorAnswers, ItemDesign
from predilect.inference.factors.posterior import (
    FactorPosterior,
    FactorState,
    assemble,
    assemble_with_prior,
    moments,
    random_start,
)
from predilect.inference.factors.sweep import WeightRegression, item_sweep, people_step
from predilect.inference.gaussian.design import Sites
from predilect.inference.gaussian.kernels import Kernel, Scaled, Stationary, Sum, White
from predilect.inference.gaussian.kernels.stationary import median_distance_scales
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.single import change_of_margin
from predilect.inference.likelihoods.probit import moved_threshold
from predilect.models.checks import KernelHyperparameters, choose_points, make_kernel, optimises
from predilect.models.estimator import Learned
from predilect.models.people_models import traits_of_people
from predilect.models.reading import Training
from predilect.papers.collaborative.functions import (
    CollaborativeFit,
    ExactFunctions,
    ExactWeights,
    Process,
    PseudoFunctions,
    PseudoWeights,
    importances,
    spanning_pairs,
)
from predilect.papers.collaborative.paper import fit_paper
from predilect.papers.collaborative.sites import answer_evidence, refreshed_sites

_SMALLEST_STEP = 0.1
_STEP_GROWTH = 1.2
_FIRST_EFFECTS = 3  # sweeps before the weights have a mean


def fit_modern(
    answers: FactorAnswers, projection: Projection, *, n_components: int = 20, traits: FloatArray | None = None,
    fixed_weights: bool = False, delta: float | None = None, tolerance: float = 0.1, max_iter: int = 200,
    random_state: int = 0, watch: Callable[[int, float], None] | None = None,
) -> CollaborativeFit:  # fmt: skip
    """Posterior of f_u = Σ_d w_ud h_d by q = Π_d q(h_d) Π_u q(w_u), with EP messages of answers.

    ``traits`` (n_users, n_traits): standardised features of people, zeros where unknown. ``fixed_weights``: all weights
    are 1 and known, one function is then Gaussian process classification, several a ValueError. ``delta=None`` follows
    the evidence where there are ties. Stops once an undamped update would move no margin by more than ``tolerance``, in
    noise units.

    modern.md 3 without the consensus and with scales of 1: the blocks are those of the factor model. n_rows D² +
    n_users D³ + D (items of the design) operations a sweep.

    **Differs from modern.md**, as measured on Sushi: sites are those of expectation propagation, not of the expected
    logarithm of the likelihood (same time; log loss .310 against .315 nats, and .580 against .587 from five answers a
    person); and weights have a mean, w_u ~ N(b + B x_u, I), estimated over people (log loss .312 and .559).
    """
    began = time.perf_counter()
    if fixed_weights and n_components != 1:
        raise ValueError("weights that are fixed at 1 need one function")
    design = ItemDesign.of(projection, answers.left, answers.right)
    n_users, active = answers.n_users, np.diff(answers.user_ptr) > 0
    rows = np.ones((n_users, 1)) if traits is None else np.column_stack([np.ones(n_users), traits])
    effects = None if fixed_weights else WeightRegression.start(rows, n_components, active)
    prior = np.ones((n_users, 1)) if effects is None else effects.prior_mean()
    rng = np.random.default_rng(random_state)
    state = random_start(answers, design, n_components, False, prior, delta, rng, s=1.0)
    if fixed_weights:
        state.mu[:], state.Sigma[:] = 1.0, 0.0
    run = _CollaborativeRun(state, Sites.flat(len(answers.user)), effects)
    _advance(run, answers, design, delta is None, tolerance, max_iter, watch)
    report = Report(
        "EP of shared functions", run.sweeps, run.residual, tolerance, run.residual <= tolerance,
        projection.factor.jitter, time.perf_counter() - began,
        "noise units of the largest change of a margin without damping", "allow more iterations.",
    )  # fmt: skip
    parts = importances(answers.user, answers.pair, answers.weight, state.mu, state.delta)
    posterior = _posterior(run, projection, rows)
    return CollaborativeFit(posterior, state.threshold, run.evidence, parts, run.n_improper, run.sites, report)


@dataclass(slots=True)
class _CollaborativeRun:
    """State of a fit."""

    state: FactorState
    sites: Sites
    effects: WeightRegression | None
    evidence: float = -math.inf
    residual: float = math.inf
    sweeps: int = 0
    n_improper: int = 0


def _advance(
    run: _CollaborativeRun, answers: FactorAnswers, design: ItemDesign, learn_delta: bool, tolerance: float, most: int,
    watch: Callable[[int, float], None] | None,
) -> None:  # fmt: skip
    """Sweeps to convergence, or ``most``; the site step is halved where the residual grew, else grows by a fifth."""
    y, w, state = answers.outcome, answers.weight, run.state
    mean, var = moments(state, answers)
    moved, last, step = math.inf, math.inf, 1.0
    while True:
        new = refreshed_sites(y, w, run.sites, mean, var, state.threshold, keep=False)
        change = change_of_margin(w, run.sites, new.sites, mean, var)
        run.residual = max(change, moved)
        if watch is not None and run.sweeps:
            watch(run.sweeps, run.residual)
        if run.residual <= tolerance or run.sweeps == most:
            return
        step = max(0.5 * step, _SMALLEST_STEP) if change > last else min(_STEP_GROWTH * step, 1.0)
        last = change
        run.sites = run.sites.towards(new.sites, step)
        run.n_improper = int(new.improper.sum())
        if run.effects is not None:
            people_step(state, run.sites, answers)
        item_sweep(state, run.sites, moments(state, answers)[0], answers, design)
        if run.effects is not None and run.sweeps >= _FIRST_EFFECTS:
            run.effects = run.effects.converged(state)
        before = mean
        mean, var = moments(state, answers)
        moved = float(np.max(np.abs(mean - before)))
        found = answer_evidence(y, w, run.sites, mean, var, state.threshold)
        run.evidence = found.value - _divergence(run)
        if learn_delta and state.threshold > 0.0:
            state.threshold = moved_threshold(state.threshold, found.slope, found.curvature)
        run.sweeps += 1


def _divergence(run: _CollaborativeRun) -> float:
    """KL of functions, weights and their mean from their priors."""
    state = run.state
    total = sum(function.divergence(1.0) for function in state.components)
    if run.effects is None:
        return total
    square = np.einsum("ucc->", state.Sigma) + np.sum((state.mu - state.prior) ** 2)
    return total + 0.5 * float(square - state.mu.size - state.log_det.sum()) + run.effects.divergence()


def _posterior(run: _CollaborativeRun, projection: Projection, rows: FloatArray) -> FactorPosterior:
    """Posterior of a state; people without answers follow their traits, ``rows`` without the intercept."""
    state, effects = run.state, run.effects
    if effects is None:
        return assemble(state, projection, state.mu, state.Sigma, CrowdWeights.average(state.mu, state.Sigma[:, :, 0]))
    weights = CrowdWeights(effects.mean, effects.covariance, np.ones(state.n_components))
    return assemble_with_prior(state, projection, weights, effects.active, rows[:, 1:])


PRESETS = ("modern", "paper")
_SHAPE = {"modern": "matern-3/2", "paper": "squared-exponential"}
_MEDIAN = {"modern": "root", "paper": "half-distance"}
_OWN_SHARE = {"modern": 0.5, "paper": 5e-6}  # of two items 1e-5, as in the authors' code
_ITERATIONS = {"modern": 200, "paper": 400}
_TOLERANCE = 0.1
_MOST_ITEMS_EXACT, _POINTS = 200, (50, 300)  # beyond it twice the root of the answers, within these
_MOST_POINTS_EVER = 3000  # D M³ operations per sweep, D M² floats
_PEOPLE_AS_POINTS = 25
_USER_NUGGET = 0.1  # variance of weights that features do not explain: in the authors' code, not in the paper
_EXPONENTS, _MOST_REFINED = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0), 6  # of 2; fits of a search of length-scales


@dataclass(frozen=True, slots=True)
class CollaborativeHyperparameters(KernelHyperparameters):
    """Prior of the functions; the kernel is the covariance of each."""


def fit_collaborative(
    model: Any, training: Training, delta: float | None, watch: Watcher | None
) -> tuple[Learned, Traits | None]:
    """Fit of a CollaborativeGP; DataError for too many items without features, or missing user features."""
    comparisons, space = training.comparisons, training.space
    personal = training.personal
    answers = FactorAnswers.of_comparisons(comparisons)
    kernel = _item_kernel(model, comparisons, space.matrix, space.known)
    traits, rows = _traits(model, training) if personal else (None, None)
    shared: dict[str, Any] = {
        "n_components": int(model.n_components) if personal else 1, "fixed_weights": not personal, "delta": delta,
        "tolerance": _TOLERANCE if isinstance(model.tol, str) else float(model.tol),
        "max_iter": _ITERATIONS[model.preset] if isinstance(model.max_iter, str) else model.max_iter,
        "random_state": model.seed_,
        "watch": None if watch is None else lambda sweep, residual: watch("fitting shared functions", sweep),
    }  # fmt: skip

    def fit(kernel: Kernel) -> tuple[CollaborativeFit, int | None]:
        if model.preset == "paper":
            functions = _functions(model, kernel, space.matrix, space.known, answers)
            people = None if rows is None else _people(model, rows)
            found = fit_paper(answers, functions, people=people, **shared)
            return found, len(functions.first) if isinstance(functions, PseudoFunctions) else None
        points = _points(model, kernel, space.matrix, space.known, answers)
        projection = Projection.of(kernel, space.matrix, space.known, points)
        found = fit_modern(answers, projection, traits=rows, **shared)
        return found, None if projection.A is None else projection.n_points

    trials: list[dict[str, float]] = []
    if optimises(model) and space.known.any() and any("length_scale" in name for name in kernel.names):
        factor, trials = best_factor(lambda factor: fit(_rescaled(kernel, factor))[0].evidence)
        kernel = _rescaled(kernel, factor)
    found, pseudo = fit(kernel)
    search = {
        "preset": model.preset, "n_inducing": pseudo, "component_importances": found.importances.tolist(),
        "n_rejected": found.n_rejected, "trials": trials,
    }  # fmt: skip
    h = CollaborativeHyperparameters(kernel)
    return Learned(found.posterior, h, personal, found.delta, found.evidence, found.report, search), traits


def best_factor(evidence: Callable[[float], float]) -> tuple[float, list[dict[str, float]]]:
    """Factor of the length-scales with the most evidence, from 1/8 to 8 times the start, and all that were tried.

    Powers of 2 first, for the evidence can have several maxima; then by Brent's method around the best of them.
    """
    trials: list[dict[str, float]] = []

    def tried(exponent: float) -> float:
        trials.append({"factor": 2.0**exponent, "log_evidence": evidence(2.0**exponent)})
        return -trials[-1]["log_evidence"]

    best = min(_EXPONENTS, key=tried)
    limits = (max(best - 1.0, _EXPONENTS[0]), min(best + 1.0, _EXPONENTS[-1]))
    minimize_scalar(tried, bounds=limits, method="bounded", options={"xatol": 0.1, "maxiter": _MOST_REFINED})
    return max(trials, key=lambda trial: trial["log_evidence"])["factor"], trials


def _rescaled(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with all its length-scales multiplied."""
    scales = np.array(["length_scale" in name for name in kernel.names])
    return kernel.with_theta(kernel.theta + math.log(factor) * scales)


def _item_kernel(model: Any, comparisons: Comparisons, features: FloatArray, known: BoolArray) -> Kernel:
    """Covariance of every function: as given, or of the preset's shape at the median of the items seen."""
    if isinstance(model.kernel, Kernel):
        return model.kernel
    seen = np.zeros(len(known), dtype=bool)
    seen[comparisons.left] = seen[comparisons.right] = True
    rows = features[known & seen] if (known & seen).any() else features[known]
    shape = _SHAPE[model.preset] if model.kernel == "auto" else model.kernel
    kernel = make_kernel(model, shape, rows, median=_MEDIAN[model.preset])
    own = _OWN_SHARE[model.preset] if isinstance(model.own_share, str) else float(model.own_share)
    if own > 0.0 and _is_exact(model, known):
        kernel = Sum((Scaled(kernel, 1.0 - own), White(own)), ("features", "own"))
    elif own > 0.0 and not isinstance(model.own_share, str):
        raise DataError(
            f"own_share={own:g} needs every item for itself, for inducing points do not know what is an item's own. "
            f"Use {setting('n_inducing', None)}, or own_share=0"
        )
    return kernel if model.variance == 1.0 else Scaled(kernel, float(model.variance))


def _is_exact(model: Any, known: BoolArray) -> bool:
    """Whether functions are kept at every item, rather than through inducing points."""
    few = model.n_inducing == "auto" and len(known) <= _MOST_ITEMS_EXACT
    return few or model.n_inducing is None or not known.any()


def _n_inducing(n_rows: int) -> int:
    return int(np.clip(2.0 * math.sqrt(n_rows), *_POINTS))


def _points(
    model: Any, kernel: Kernel, features: FloatArray, known: BoolArray, answers: FactorAnswers
) -> FloatArray | None:
    automatic = None if _is_exact(model, known) else _n_inducing(len(answers.user))
    return choose_points(model.n_inducing, automatic, _MOST_POINTS_EVER, kernel, features, known, model.seed_)


def _functions(
    model: Any, kernel: Kernel, features: FloatArray, known: BoolArray, answers: FactorAnswers
) -> ExactFunctions | PseudoFunctions:
    """Functions through all items, or through pairs drawn from those compared."""
    exact = _is_exact(model, known)
    if (len(known) if exact else int((~known).sum())) > _MOST_POINTS_EVER:
        raise DataError(
            f"{len(known)} items would each be a point, and dense algebra holds {_MOST_POINTS_EVER}. Give features of "
            f"the items ({either('--items FILE', 'items=...')}) and n_inducing=100"
        )
    if exact:
        projection = Projection.of(kernel, features, known, None)
        return ExactFunctions(ItemDesign.of(projection, answers.left, answers.right))
    n_pairs = _n_inducing(len(answers.user)) if isinstance(model.n_inducing, str) else int(model.n_inducing)
    pseudo = spanning_pairs(answers.left, answers.right, n_pairs, np.random.default_rng(model.seed_))
    return PseudoFunctions.of(kernel, features, known, answers.left, answers.right, pseudo)


def _people(model: Any, rows: FloatArray) -> Process:
    """Weights as a process of user features, through some users drawn at random or through all."""
    kernel: Kernel = model.user_kernel if isinstance(model.user_kernel, Kernel) else Stationary(
        median_distance_scales(rows, "half-distance", model.seed_), model.user_kernel
    )  # fmt: skip
    kernel = Sum((kernel, White(_USER_NUGGET)), ("features", "own"))
    known = np.ones(len(rows), dtype=bool)
    n_points = _PEOPLE_AS_POINTS if isinstance(model.n_inducing_users, str) else model.n_inducing_users
    if n_points is None or n_points >= len(rows):
        return ExactWeights.of(Projection.of(kernel, rows, known, None))
    drawn = np.random.default_rng(model.seed_).choice(len(rows), n_points, replace=False)
    return PseudoWeights.of(Projection.of(kernel, rows, known, rows[np.sort(drawn)]))


def _traits(model: Any, training: Training) -> tuple[Traits | None, FloatArray | None]:
    """Traits as in every factor model; for "paper" features are standardised one by one."""
    traits, rows = traits_of_people(model, training)
    if traits is None or model.preset != "paper":
        return traits, rows
    assert training.people is not None
    matrix, known = training.people.align(training.comparisons.users)
    deviation = matrix[known].std(axis=0)
    traits = Traits(traits.mean, np.diag(1.0 / np.where(deviation > 0.0, deviation, 1.0))[:, deviation > 0.0])
    return traits, traits.transform(matrix, known)
