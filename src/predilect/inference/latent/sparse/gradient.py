"""Gradient of the bound in a kernel's hyper-parameters, by the envelope theorem."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from predilect._base.types import FloatArray, IntArray
from predilect.inference.gaussian.dense import solve_lower
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.projection import Projection, item_covariance_gradient, variance_gradient
from predilect.inference.latent.evidence import KernelSearch, search_kernel
from predilect.inference.latent.pooled import PooledAnswers
from predilect.inference.latent.sparse.fit import ScalePrior, SparseFit, solve
from predilect.inference.latent.sparse.problem import InverseScale, SparseGaussian, SparseProblem, sparse_laplacian
from predilect.inference.latent.sparse.stochastic import Schedule, view

_ROWS_AT_ONCE = 10_000
_PAIRS_IN_A_BLOCK = 512


@runtime_checkable
class PairsGradient(Protocol):
    """Optional method of a kernel, for quicker learning with fewer points than items."""

    def pairs_gradient(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Σ_i weights_i ∂k(x_i, y_i)/∂theta, shape (n_parameters,); ``weights`` has shape (n,)."""
        ...


def bound_gradient(
    projection: Projection, problem: SparseProblem, q: SparseGaussian, scale: InverseScale
) -> FloatArray:
    """Gradient of the re-optimised bound in theta, shape (n_parameters,), by the envelope theorem.

    ``q``, ``scale`` are from :func:`~predilect.inference.latent.sparse.stochastic.ascend` at convergence; the paper's
    linearised sites make no bound stationary, so this is not its slope there.

    crowdgppl.md 2.5, modern.md 6. At fixed (m, S, q(s)) the bound depends on theta by K_mm in the divergence (the
    paper's eq. 39), and through A = K_nm K_mm⁻¹ and the residual variances in the answers (left out there):

        ½ tr[(ŝ K⁻¹(m mᵀ + S)K⁻¹ - K⁻¹) dK_mm] + Σ_p w_p (g_p dm_p - ½ λ_p dv_p),

    with γ = Dᵀ(w g), W = Dᵀ diag(w λ) D, dA = (dK_nm - A dK_mm) K_mm⁻¹ and everything in whitened values

        dK_nm : γ (L⁻ᵀu)ᵀ + W B (I/ŝ - Λ⁻¹) L⁻¹        dk(a, b) : w λ/ŝ of each pair, -diag(W)/(2 ŝ) of each item
        dK_mm : L⁻ᵀ {½ ŝ (u uᵀ + Λ⁻¹) - ½ I - Bᵀγ uᵀ + H Λ⁻¹ - H/(2 ŝ)} L⁻¹,  H = Bᵀ W B.

    n_items M² + M³ operations and as much of the kernel's gradient; what jitter was added to K_mm is held.
    """
    batch = problem.all()
    seen = view(batch, q, scale, problem.likelihood)
    lower, s, u = projection.factor.lower, scale.value, q.mean
    inverse = q.factor.inverse()
    inner = 0.5 * s * (np.outer(u, u) + inverse)
    inner[np.diag_indices(len(u))] -= 0.5
    if projection.A is None:
        weights = _sandwich(lower, inner)
        return item_covariance_gradient(projection.kernel, projection.points, projection.known_points, weights)
    n_items, B = projection.n_items, problem.B
    flow, stiff = problem.weight * seen.slope, problem.weight * seen.curvature
    gamma = np.bincount(problem.left, flow, n_items) - np.bincount(problem.right, flow, n_items)
    H = batch.margins.information(stiff)
    inner += H @ inverse - H / (2.0 * s) - np.outer(gamma @ B, u)

    back = solve_lower(lower, (np.eye(len(u)) / s - inverse).T, transposed=True).T
    direction = solve_lower(lower, u, transposed=True)
    W = sparse_laplacian(n_items, problem.left, problem.right, stiff)

    def into_rows(some: slice) -> FloatArray:
        return np.asarray(np.outer(gamma[some], direction) + (W[some] @ B) @ back)

    return projection_gradient(
        projection, _sandwich(lower, inner), into_rows, problem.left, problem.right, stiff / (-2.0 * s)
    )


def projection_gradient(
    projection: Projection,
    into_points: FloatArray,
    into_rows: Callable[[slice], FloatArray],
    left: IntArray,
    right: IntArray,
    into_pairs: FloatArray,
) -> FloatArray:
    """Gradient in theta (n_parameters,) from weights of the covariances of points, items and pairs; M < n_items.

    ``into_points`` (M, M) weighs dK_mm; ``into_rows(slice)`` gives weights (n, M) of dK_nm in parts; ``into_pairs``
    (n_pairs,) weighs d(k(a, a) + k(b, b) - 2 k(a, b)). Quickest with pairs in the order of ``left``.
    """
    kernel, features, known, n_items = projection.kernel, projection.features, projection.known, projection.n_items
    total = item_covariance_gradient(kernel, projection.points, projection.known_points, into_points)
    place_of = np.full(n_items, -1)
    place_of[~known] = np.flatnonzero(~projection.known_points)[: int((~known).sum())]
    points, apart = projection.points[projection.known_points], 0.0
    for start in range(0, n_items, _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        weights, has = into_rows(some), known[some]
        if has.any():
            total += kernel.gradient(features[some][has], points, weights[np.ix_(has, projection.known_points)])
        apart += float(weights[~has, place_of[some][~has]].sum())
    own: FloatArray = np.zeros(n_items)
    own += np.bincount(left, into_pairs, n_items) + np.bincount(right, into_pairs, n_items)
    total += kernel.diagonal_gradient(features[known], own[known])
    apart += float(own[~known].sum())
    both = np.flatnonzero(known[left] & known[right])
    total += _pairs_gradient(kernel, features, left[both], right[both], -2.0 * into_pairs[both])
    return np.asarray(total + variance_gradient(kernel, features.shape[1], apart))


def _pairs_gradient(
    kernel: Kernel, features: FloatArray, left: IntArray, right: IntArray, weights: FloatArray
) -> FloatArray:
    """Σ_p weights_p ∂k(left_p, right_p)/∂theta for pairs in the order of ``left``, (n_parameters,)."""
    total = np.zeros(len(kernel.theta))
    quick = isinstance(kernel, PairsGradient)
    size = _ROWS_AT_ONCE if quick else _PAIRS_IN_A_BLOCK
    for start in range(0, len(left), size):
        a, b, w = left[start : start + size], right[start : start + size], weights[start : start + size]
        if isinstance(kernel, PairsGradient):
            total += kernel.pairs_gradient(features[a], features[b], w)
            continue
        items, place = np.unique(a, return_inverse=True)
        block = np.zeros((len(items), len(b)))
        block[place, np.arange(len(b))] = w
        total += kernel.gradient(features[items], features[b], block)
    return total


def _sandwich(lower: FloatArray, inner: FloatArray) -> FloatArray:
    """L⁻ᵀ inner L⁻¹."""
    half = solve_lower(lower, inner, transposed=True)
    return solve_lower(lower, half.T, transposed=True).T


def optimise_length_scales(
    answers: PooledAnswers,
    projection: Projection,
    prior: ScalePrior | None = None,
    *,
    delta: float = 0.0,
    reach: float = 100.0,
    max_evaluations: int = 20,
    max_iter: int = 200,
    tolerance: float = 1e-8,
) -> tuple[SparseFit, KernelSearch]:
    """Kernel hyper-parameters of the largest bound, by L-BFGS-B in their logarithms; inducing points stay in place.

    Every evaluation passes over all answers: for very many, give some. PredilectError if bound or gradient is not
    finite. crowdgppl.md 2.5, modern.md 6: exact expectations, whose optimum the gradient belongs to, each fit starting
    from the last one's whitened values.
    """
    prior = prior or ScalePrior()
    last: SparseFit | None = None
    best: SparseFit | None = None

    def fit(there: Projection) -> tuple[float, FloatArray]:
        nonlocal last, best
        problem = SparseProblem.of(there, answers, delta)
        last = solve(there, problem, prior, schedule=Schedule(), max_iter=max_iter, tolerance=tolerance, start=last)
        if best is None or last.bound > best.bound:
            best = last
        return last.bound, bound_gradient(there, problem, last.q, last.scale)

    found = search_kernel(
        projection, fit, reach=math.log(reach), max_evaluations=max_evaluations, unit=answers.n_answers
    )
    assert best is not None
    return best, found
