"""The characteristics that are likeliest given answers and people's weights: Newton's method in the coordinates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predilect.inference.gaspk.answers import TradeOffAnswers
from predilect.inference.report import Report
from predilect.likelihoods.views import Likelihood
from predilect.posteriors.gaspk.basis import Basis
from predilect.posteriors.gaspk.blocks import blocks, gather, scatter

__all__ = ["Direction", "Mode", "State", "find_mode", "margins_of", "state_at"]

FloatArray = npt.NDArray[np.float64]

_MAX_HALVINGS = 40


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where the curvature is taken: what a direction is made from.

    Attributes
    ----------
    basis : Basis
    answers : TradeOffAnswers
    gamma : array of float, shape (n_users, n_c)
    precision : array of float, shape (n,)
        Curvature of each answer, times its weight.
    B : array of float, shape (n_points, n_c, n_c)
        Σ over the answers about a trade-off of precision γ γᵀ.
    """

    basis: Basis
    answers: TradeOffAnswers
    gamma: FloatArray
    precision: FloatArray
    B: FloatArray


Direction = Callable[[State, FloatArray, float], FloatArray]
"""Newton's direction H⁻¹ gradient at a state, to a relative accuracy."""


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """The mode, and what is known there.

    Attributes
    ----------
    w : array of float, shape (rank, n_c)
        Coordinates.
    F : array of float, shape (n_points, n_c)
        The characteristics at the points.
    margin : array of float, shape (n,)
        γ_uᵀ F_t of each answer.
    psi : float
        Σ weight log p - |w|²/2 in nats.
    state : State
        With the curvature at the mode.
    report : Report
    """

    w: FloatArray
    F: FloatArray
    margin: FloatArray
    psi: float
    state: State
    report: Report


def margins_of(answers: TradeOffAnswers, gamma: FloatArray, F: FloatArray) -> FloatArray:
    """γ_uᵀ F_t of each answer, shape (n,)."""
    return gather(answers.user, answers.point, gamma, F)


def state_at(basis: Basis, answers: TradeOffAnswers, gamma: FloatArray, likelihood: Likelihood, w: FloatArray) -> State:
    """The curvature at coordinates w of shape (rank, n_c)."""
    z = margins_of(answers, gamma, basis.forward(w))
    return _state(basis, answers, gamma, answers.weight * likelihood.at(answers.outcome, z)[2])


def _state(basis: Basis, answers: TradeOffAnswers, gamma: FloatArray, precision: FloatArray) -> State:
    B = blocks(answers.user, answers.point, precision, gamma, basis.n_points)
    return State(basis, answers, gamma, precision, B)


def find_mode(
    basis: Basis,
    answers: TradeOffAnswers,
    gamma: FloatArray,
    likelihood: Likelihood,
    direction: Direction,
    *,
    start: FloatArray | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
) -> Mode:
    """Maximise ψ(w) = Σ_i weight_i log p(y_i | γ_uᵀ F_t) - |w|²/2 with F = Φ w, which is concave.

    Parameters
    ----------
    basis : Basis
    answers : TradeOffAnswers
    gamma : array of float, shape (n_users, n_c)
    likelihood : Likelihood
    direction : callable
        How linear equations are solved.
    start : array of float, shape (rank, n_c), optional
        Coordinates to begin at; the mode does not depend on them.
    tolerance : float
        Largest last step of a margin, relative to 1 + the largest margin.
    max_iterations : int

    Notes
    -----
    gaspk.md 2, eqs. 6, 10, 11 with the corrections there, in whitened coordinates: gradient Φᵀ(Σ γ slope) - w, Hessian
    -(I + Φᵀ B Φ). **Differs from the paper**: no factor of W, which is singular where a trade-off has one answer. A
    step is halved while it lowers ψ. Equations are solved no more exactly than the step that follows needs.
    """
    began = time.perf_counter()
    n_c = gamma.shape[1]
    w = np.zeros((basis.rank, n_c)) if start is None else start.copy()
    y, weight = answers.outcome, answers.weight
    F = basis.forward(w)
    z = margins_of(answers, gamma, F)
    value, slope, curvature = likelihood.at(y, z)
    psi = float(weight @ value) - 0.5 * float(np.vdot(w, w))
    iterations, size, exact = 0, np.inf, 1e-2
    while True:
        gradient = basis.backward(scatter(answers.user, answers.point, weight * slope, gamma, basis.n_points)) - w
        state = _state(basis, answers, gamma, weight * curvature)
        if size <= tolerance or iterations == max_iterations:
            break
        step_w = direction(state, gradient, exact)
        step_F = basis.forward(step_w)
        step_z = margins_of(answers, gamma, step_F)
        reach = float(np.abs(step_z).max(initial=0.0) / (1.0 + np.abs(z).max(initial=0.0)))
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            new_w, new_z = w + step * step_w, z + step * step_z
            value, slope, curvature = likelihood.at(y, new_z)
            new_psi = float(weight @ value) - 0.5 * float(np.vdot(new_w, new_w))
            if new_psi >= psi - 1e-12 * abs(psi):  # rounding alone may lower it at the mode
                break
            step *= 0.5
        w, F, z, psi = new_w, F + step * step_F, new_z, new_psi
        iterations += 1
        size, exact = reach, min(1e-2, max(0.1 * reach, 1e-10))
    report = Report(
        method="Laplace", iterations=iterations, residual=size, tolerance=tolerance, converged=size <= tolerance,
        jitter=0.0, seconds=time.perf_counter() - began, unit="of the largest last step of a margin",
        advice="look for extreme weights or scales, or raise max_iterations.",
    )  # fmt: skip
    return Mode(w, F, z, psi, state, report)
