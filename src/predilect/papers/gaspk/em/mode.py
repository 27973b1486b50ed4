"""Posterior mode of the characteristics given people's weights, by Newton-Raphson with step halving."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from predilect._base.progress import Report
from predilect._base.text import either
from predilect._base.types import FloatArray
from predilect.inference.gaussian.dense import factorise
from predilect.inference.likelihoods.views import Likelihood
from predilect.papers.gaspk.em.answers import TradeOffAnswers
from predilect.papers.gaspk.posterior.basis import CovarianceApproximation, PointBasis
from predilect.papers.gaspk.posterior.curvature import Curvature, factorised, precision_of
from predilect.papers.gaspk.posterior.solver import ByProducts, Preconditioner, log_determinant, solve
from predilect.papers.gaspk.posterior.sums import gather, packed_blocks, packed_product, scatter, unpacked
from predilect.papers.gaspk.settings import FitSettings

_MAX_HALVINGS = 40
_FIRST, _FINEST = 3e-2, 1e-10  # relative accuracy of the first equations, and of the last
_MORE = 0.1  # accuracy of the equations, relative to the next step's expected size


@dataclass(frozen=True, eq=False)
class CurvaturePoint:
    """Point at which the curvature of the log-likelihood is evaluated."""

    basis: PointBasis
    answers: TradeOffAnswers
    gamma: FloatArray  # (n_users, n_c)
    by_point: FloatArray  # (n,), curvature of each answer times its weight, in the order of answers.by_point
    penalty: FloatArray | None = None  # (n_points, n_c (n_c + 1)/2), triangles that are added to those of the answers

    @cached_property
    def B(self) -> FloatArray:
        """Σ over the answers about a trade-off of precision γ γᵀ, shape (n_points, n_c, n_c)."""
        return unpacked(self.packed)

    @cached_property
    def packed(self) -> FloatArray:
        """The lower triangles of ``B``, shape (n_points, n_c (n_c + 1)/2)."""
        rows = self.answers.by_point
        packed = packed_blocks(rows.user, rows.point, self.by_point, self.gamma, self.basis.n_points)
        return packed if self.penalty is None else packed + self.penalty

    @cached_property
    def precision(self) -> FloatArray:
        """Curvature of each row of answers, times its weight, shape (n,)."""
        return self.answers.by_point.rows(self.by_point)


Direction = Callable[[CurvaturePoint, FloatArray, float], FloatArray]
"""Newton's direction H⁻¹ gradient at a state, to a relative accuracy."""


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode, and the quantities evaluated there."""

    w: FloatArray  # (rank, n_c), coordinates
    F: FloatArray  # (n_points, n_c), the characteristics at the points
    z: FloatArray  # (n,), γ_uᵀ F_t of each answer, in the order of answers.by_point
    psi: float  # Σ weight log p - |w|²/2 - Σ_t F_tᵀ Q_t F_t/2, nats
    state: CurvaturePoint
    report: Report

    @cached_property
    def margin(self) -> FloatArray:
        """γ_uᵀ F_t of each row of answers, shape (n,)."""
        return self.state.answers.by_point.rows(self.z)


def state_at(
    basis: PointBasis, answers: TradeOffAnswers, gamma: FloatArray, likelihood: Likelihood, w: FloatArray
) -> CurvaturePoint:
    """The curvature at coordinates w of shape (rank, n_c)."""
    rows = answers.by_point
    z = gather(rows.user, rows.point, gamma, basis.forward(w))
    return CurvaturePoint(basis, answers, gamma, rows.weight * likelihood.at(rows.outcome, z)[2])


def find_mode(
    basis: PointBasis,
    answers: TradeOffAnswers,
    gamma: FloatArray,
    likelihood: Likelihood,
    direction: Direction,
    *,
    start: Mode | FloatArray | None = None,
    centre: FloatArray | float = 0.0,
    penalty: FloatArray | None = None,
    tolerance: float = 1e-8,
    max_iter: int = 100,
) -> Mode:
    """Maximum of ψ(w) = Σ_i weight_i log p(y_i | γ_uᵀ F_t) - |w - centre|²/2 with F = Φ w, which is concave.

    ``penalty`` holds the lower triangles of Q_t, (n_points, n_c (n_c + 1)/2): Σ_t F_tᵀ Q_t F_t/2 is subtracted.
    ``start`` is coordinates (rank, n_c) or a mode under other weights. ``tolerance`` bounds a margin's distance from
    the mode, relative to 1 + the largest margin.

    docs/math/gaspk.md section 2, eqs. 6, 10, 11 with the corrections there, in whitened coordinates: gradient Φᵀ(Σ γ
    slope) - w, Hessian -(I + Φᵀ B Φ). **Differs from the paper**: no factor of W, which is singular where a trade-off
    has one answer. A step is halved while it lowers ψ. After a step of relative size s whose equations were solved to a
    relative accuracy η margins are some max(s, η) s from the mode, Newton's method being quadratic: that ends the
    search, without a further step to confirm it, and says how exactly equations need be solved.
    """
    began = time.perf_counter()
    n_c = gamma.shape[1]
    if start is None:
        w, F = np.zeros((basis.rank, n_c)), np.zeros((basis.n_points, n_c))
    else:
        w, F = (start.w, start.F) if isinstance(start, Mode) else (start, basis.forward(start))
    rows = answers.by_point
    y, weight = rows.outcome, rows.weight
    z = gather(rows.user, rows.point, gamma, F)
    value, slope, curvature = _weighted(likelihood, y, z, weight)
    against, cost = _cost(penalty, F)
    psi = value - 0.5 * float(np.square(w - centre).sum()) - cost
    iterations, error, exact = 0, np.inf, _FIRST
    state = CurvaturePoint(basis, answers, gamma, curvature, penalty)
    while error > tolerance and iterations < max_iter:
        gradient = basis.backward(scatter(rows.user, rows.point, slope, gamma, basis.n_points) - against) - (w - centre)
        step_w = direction(state, gradient, exact)
        step_F = basis.forward(step_w)
        step_z = gather(rows.user, rows.point, gamma, step_F)
        reach = _largest(step_z) / (1.0 + _largest(z))
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            new_w, new_z = _along(w, step, step_w), _along(z, step, step_z)
            value, slope, curvature = _weighted(likelihood, y, new_z, weight)
            new_F = _along(F, step, step_F)
            against, cost = _cost(penalty, new_F)
            new_psi = value - 0.5 * float(np.square(new_w - centre).sum()) - cost
            if new_psi >= psi - 1e-12 * abs(psi):  # rounding alone may lower it at the mode
                break
            step *= 0.5
        w, F, z, psi = new_w, new_F, new_z, new_psi
        iterations += 1
        state = CurvaturePoint(basis, answers, gamma, curvature, penalty)
        error = max(reach, exact) * reach if step == 1.0 else reach
        # The next step has about the size ``error``, and itself leaves an error of about its square.
        exact = min(_FIRST, max(_MORE * error, 0.5 * tolerance / max(error, tolerance), _FINEST))
    report = Report(
        method="Laplace", iterations=iterations, residual=error, tolerance=tolerance, converged=error <= tolerance,
        jitter=0.0, seconds=time.perf_counter() - began, unit="of the largest error of a margin",
        advice=f"look for extreme weights or scales{either('', ', or raise max_iter')}.",
    )  # fmt: skip
    return Mode(w, F, z, psi, state, report)


def _weighted(
    likelihood: Likelihood, outcome: npt.NDArray[np.int8], z: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Σ weight log p, and each answer's slope and curvature times its weight."""
    value, slope, curvature = likelihood.at(outcome, z)
    return float(weight @ value), slope * weight, curvature * weight


def _cost(penalty: FloatArray | None, F: FloatArray) -> tuple[FloatArray | float, float]:
    """Q_t F_t at every point, and Σ_t F_tᵀ Q_t F_t/2."""
    if penalty is None:
        return 0.0, 0.0
    product = packed_product(penalty, F)
    return product, 0.5 * float(np.vdot(F, product))


def _along(x: FloatArray, step: float, direction: FloatArray) -> FloatArray:
    return x + direction if step == 1.0 else x + step * direction


def _largest(x: FloatArray) -> float:
    """The largest absolute value; two passes, but no copy."""
    return float(max(x.max(initial=0.0), -x.min(initial=0.0)))


_FACTORISED_STEP = 200  # rows: below, a Cholesky is quicker than a few products
FACTORISED = 3000  # rows up to which a curvature that is kept is factorised
_STALE = 0.1  # relative change of the curvature after which its preconditioner is made again
_FACTORISED_ANSWERS = 2500  # answers up to which the determinant is exact, where there are more coordinates


def curvature_at(state: CurvaturePoint) -> Curvature:
    """The curvature, factorised up to 3 000 rows, and by conjugate gradients beyond."""
    answers = state.answers
    if min(_rows(state), answers.n_rows) <= FACTORISED:
        return factorised(state.basis.dense(), state.B, answers.user, answers.point, state.precision, state.gamma)
    return ByProducts(state.basis, state.B)


def low_rank_at(state: CurvaturePoint, curvature: Curvature, settings: FitSettings) -> CovarianceApproximation | None:
    """Low-rank variances where they are asked for, or, if that is left open, where solving for each would take long."""
    if settings.variances == "exact" or (settings.variances == "auto" and curvature.is_factorised):
        return None
    return state.basis.low_rank(state.B, settings.n_eigenpairs)


class Newton:
    """Newton directions of successive states of one basis, with the preconditioner reused while B hardly changes.

    Only the number of iterations depends on it: an old one costs a product or two more, a new one as much as five.
    """

    def __init__(self) -> None:
        self._basis: PointBasis | None = None
        self._made_of: FloatArray | None = None
        self._preconditioner: Preconditioner | None = None

    def __call__(self, state: CurvaturePoint, gradient: FloatArray, accuracy: float) -> FloatArray:
        """H⁻¹ gradient, shape (rank, n_c), to a relative accuracy of the residual."""
        if _rows(state) <= _FACTORISED_STEP:
            H = factorise(precision_of(state.basis.dense(), state.B))
            return H.solve(gradient.ravel()).reshape(gradient.shape)
        # No entry of a block exceeds the root of the product of its two diagonal ones, so the diagonal suffices.
        n_c = state.gamma.shape[1]
        size, before = state.packed[:, np.arange(n_c) * (np.arange(n_c) + 3) // 2], self._made_of
        if (
            self._preconditioner is None
            or before is None
            or self._basis is not state.basis
            or np.linalg.norm(size - before) > _STALE * np.linalg.norm(before)
        ):
            self._basis, self._made_of = state.basis, size
            self._preconditioner = Preconditioner.of(state.basis, state.packed)
        return solve(state.basis, state.packed, gradient, preconditioner=self._preconditioner, tolerance=accuracy).x


def log_det_at(state: CurvaturePoint, random_state: int) -> float:
    """Log |H|: exact while that is cheap, then estimated with fixed probes."""
    if state.answers.n_rows <= min(_FACTORISED_ANSWERS, _rows(state)):
        return curvature_at(state).log_det()
    return log_determinant(state.basis, state.B, random_state=random_state).value


def _rows(state: CurvaturePoint) -> int:
    return int(state.basis.rank * state.gamma.shape[1])
