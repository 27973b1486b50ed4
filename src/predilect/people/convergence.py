"""Compiled update of one person at a fixed population: sites and tie threshold run to convergence."""

from __future__ import annotations

import math

import numpy as np

from predilect._compile import inner_kernel, kernel
from predilect.likelihoods.probit import tilted_scalar
from predilect.people.ep import sweep
from predilect.people.state import direction, prior_mean, prior_state, replay

MOST_THRESHOLD_STEPS = 40
LARGEST_STEP = 1.0
# A chord's slope is accepted within these factors of the curvature with the cavities held.
LOWEST_CHORD, HIGHEST_CHORD = 0.2, 5.0
TOO_SHORT = 1e-9  # a step whose chord would be rounding
# Tolerance of the sites of one person at first, and as a share of the last step.
FIRST_REST, REST = 1e-3, 0.02
_OF_THRESHOLD = 5.0  # how much more a threshold may be left to move, in its logarithm, than a margin


@kernel
def next_threshold(theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest):
    """Chord step of a person's θ = log of the own threshold, and the tolerance of the sites after it.

    ``gradient, step, chord, last, rest`` are what the call before returned; at first anything, 0, 0, 1 and
    :data:`FIRST_REST`. Returns them with θ, and whether θ, unchanged then, and the sites have converged.
    """
    before = gradient
    gradient = slope - theta / spread**2
    if abs(step) > TOO_SHORT:
        chord = (before - gradient) / step
    hessian = max(-curvature, 0.0) + spread**-2
    if chord > 0.0:
        hessian = min(max(chord, LOWEST_CHORD * hessian), HIGHEST_CHORD * hessian)
    step = min(max(gradient / hessian, -LARGEST_STEP), LARGEST_STEP)
    earlier, last = last, abs(step)
    if last > _OF_THRESHOLD * tolerance:
        # Chords leave an error of the order of the last two steps' product: where that is little, it was the last.
        rest = tolerance if last * earlier < tolerance else max(min(rest, REST * last), tolerance)
        return theta + step, gradient, step, chord, last, rest, False
    return theta, gradient, 0.0, chord, last, tolerance, not rest > tolerance


@inner_kernel
def _pull_of_threshold(in_pair_space, la, lb, outcome, weight, lam, eta, n, d, delta, C, mu, c):
    """Gradient and curvature, with the cavities held, of the person's evidence in log δ."""
    slope = 0.0
    curvature = 0.0
    for p in range(n):
        if in_pair_space:
            v, mean = C[p, p], mu[p]
        else:
            v, mean = direction(C, mu, la[p], lb[p], d, c)
        denominator = 1.0 - lam[p] * v
        v_c = v / denominator
        m_c = (mean - v * eta[p]) / denominator
        _, _, _, slope_delta, curvature_delta = tilted_scalar(outcome[p], m_c, v_c, delta)
        slope += weight[p] * slope_delta
        curvature += weight[p] * curvature_delta
    slope *= delta
    return slope, delta * delta * curvature + slope


@kernel
def person_at_rest(
    items, la, lb, outcome, weight, traits, lam, eta, cov, Phi, rho, m, shift, delta, theta, spread, n_sweeps, tolerance
):  # fmt: skip
    """One person's sites run to convergence, in place, and with a ``spread`` the threshold δ exp(θ) with them.

    ``items`` (k,): positions of the person's own items in ``cov, Phi, rho, m, shift``, which are as in
    :func:`~predilect.people.ep.em_pass`; ``la, lb`` (n,) are positions in ``items``; ``lam, eta``
    (n,) sites of *one* copy of each answer. A spread of 0 holds θ. Returns θ and the last change of a margin, or the
    last step of θ where that is larger.

    The state lives through all values of θ: sites need not be replayed for each, nor arrays laid out.
    """
    n = la.shape[0]
    k = items.shape[0]
    in_pair_space = n <= k
    d = n if in_pair_space else k
    C = np.empty((d, d))
    mu = np.empty(d)
    c = np.empty(d)
    own = np.empty(k)
    R = np.empty((d if Phi.shape[1] else 0, Phi.shape[1]))
    prior_mean(0, items, m, shift, traits, own)
    prior_state(in_pair_space, items, la, lb, 0, n, k, cov, Phi, rho, own, C, mu, R)
    replay(in_pair_space, la, lb, weight, lam, eta, 0, n, d, C, mu, c)
    fixed = spread == 0.0
    gradient, step, chord, last, done = 0.0, 0.0, 0.0, 0.0 if fixed else 1.0, False
    rest = tolerance if fixed else max(FIRST_REST, tolerance)
    change = 0.0
    for i in range(MOST_THRESHOLD_STEPS + 1):
        own_delta = delta * math.exp(theta)
        for _ in range(n_sweeps):
            _, change = sweep(in_pair_space, la, lb, outcome, weight, lam, eta, 0, n, d, own_delta, C, mu, c)
            if change < rest:
                break
        if fixed or i == MOST_THRESHOLD_STEPS:
            break
        slope, curvature = _pull_of_threshold(
            in_pair_space, la, lb, outcome, weight, lam, eta, n, d, own_delta, C, mu, c
        )
        theta, gradient, step, chord, last, rest, done = next_threshold(
            theta, slope, curvature, spread, tolerance, gradient, step, chord, last, rest
        )
        if done:
            break
    return theta, max(change, last)
