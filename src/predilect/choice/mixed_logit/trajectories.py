"""Joint moves of the population and all people: Hamiltonian steps of the population.

A population is a vector θ: for each class the means of what varies, x of the standard deviations σ = s log(1 + eˣ) with
a fixed s and, unless the covariance is diagonal, y = artanh of the canonical partial correlations; and then what people
share. People are held at ξ, their places within the Gaussians that their quadratics and the population make;
mixed-logit.md section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.loops import (
    ChoiceRows,
    coefficients,
    log_likelihood,
    log_likelihood_and_slope,
    room_of,
)
from predilect.inference.gaussian.small import DEGREES, cholesky, copy, fill, inverse, solve_lower, solve_upper

_LENGTH, _MOST_STEPS = 2.5, 8  # of a trajectory, in standard deviations, up to a third more or less
_WANTED, _WANTED_SCALES = 0.8, 0.4  # shares of moves that are accepted
_LEAST_X, _LARGEST_X = -15.0, 1e6
_LARGEST_Y = 18.0  # tanh of more is 1


class Hyperprior(NamedTuple):
    """Priors of the population, and the traits of people that its means depend on."""

    traits: FloatArray  # (U, G)
    base: FloatArray  # prior mean of B, (G, d), and prior precision of each of its rows, (n, n)
    precision: FloatArray
    fixed: float  # prior precision of what people share, whose prior mean is 0
    width: float  # of the prior of standard deviations
    diagonal: bool  # no correlations


class PeopleState(NamedTuple):
    """State of the people."""

    z: FloatArray  # (U, d)
    c: FloatArray  # coefficients, (U, d)
    value: FloatArray  # log-likelihoods, (U,)
    label: IntArray  # classes, (U,)


class ClassState(NamedTuple):
    """State of the population."""

    B: FloatArray  # (K, G, d)
    Omega: FloatArray  # (K, n, n)
    share: FloatArray  # (K,)


class LogitQuadratics(NamedTuple):
    """Quadratics linearᵀz - ½ zᵀ curvature z that stand for people's log-likelihoods."""

    linear: FloatArray  # (U, d)
    curvature: FloatArray  # (U, d, d)


class Trajectories(NamedTuple):
    """How moves are drawn."""

    scale: FloatArray  # s, (n,)
    root: FloatArray  # factor of about the covariance of θ, (D, D)
    step: FloatArray  # logarithms of the sizes of steps and of changes of scale, adapted until the burn-in ends, (2,)
    trail: FloatArray  # θ before each move of this call, (moves, D)


class _MoveRoom(NamedTuple):
    """Arrays that a move writes: people at its end, their places ξ, and the population."""

    new: PeopleState
    xi: FloatArray  # (U, n)
    B: FloatArray
    L: FloatArray  # factors of Ω, (K, n, n)


@kernel
def packed(B: FloatArray, Omega: FloatArray, diagonal: bool, scale: FloatArray, theta: FloatArray) -> None:
    """Write θ of a population."""
    K, G, d = B.shape
    n = Omega.shape[1]
    L, place = np.empty((n, n)), 0
    for k in range(K):
        for a in range(G):
            for i in range(n):
                theta[place] = B[k, a, i]
                place += 1
        for i in range(n):
            size = math.sqrt(Omega[k, i, i]) / scale[i]
            theta[place] = max(size + math.log(-math.expm1(-size)), 0.9 * _LEAST_X)
            place += 1
        if diagonal:
            continue
        cholesky(Omega[k], L, n)
        for i in range(n):
            left = Omega[k, i, i]
            for j in range(i):
                t = L[i, j] / math.sqrt(max(left, 1e-300))
                theta[place] = max(-_LARGEST_Y, min(_LARGEST_Y, math.atanh(max(-1.0, min(1.0, t)))))
                left -= L[i, j] * L[i, j]
                place += 1
    for i in range(n, d):
        theta[place] = B[0, 0, i]
        place += 1


@inner_kernel
def _softplus(x: float) -> float:
    """log(1 + eˣ)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner_kernel
def _unpacked(theta: FloatArray, diagonal: bool, scale: FloatArray, B: FloatArray, L: FloatArray) -> None:
    """Write the means and the factors of the covariances at θ."""
    K, G, d = B.shape
    n, place = L.shape[1], 0
    for k in range(K):
        for a in range(G):
            for i in range(n):
                B[k, a, i] = theta[place]
                place += 1
        y = place + n
        for i in range(n):
            fill(L[k, i], 0.0)
            left = scale[i] * _softplus(theta[place + i])
            for j in range(0 if diagonal else i):
                L[k, i, j] = left * math.tanh(theta[y])
                left /= math.cosh(theta[y])
                y += 1
            L[k, i, i] = left
        place = y
    for i in range(n, d):
        for k in range(K):
            B[k, 0, i] = theta[place]
        place += 1


@inner_kernel
def _of_factor(
    theta: FloatArray, at: int, L: FloatArray, G: FloatArray, diagonal: bool, scale: FloatArray, slope: FloatArray
) -> float:  # fmt: skip
    """Turn the slope G in L (n, n) into that in x and y, from ``at`` on; return the logarithm of |dΩ / d(x, y)|."""
    n = len(L)
    y, total, power = at + n, 0.0, 1.0 if diagonal else float(n)
    for i in range(n):
        x = theta[at + i]
        left, of_x = scale[i] * _softplus(x), 1.0 / (1.0 + math.exp(-x))  # dσ / dx = s of_x
        total += power * math.log(left) + math.log(of_x)
        rest = G[i, i] * L[i, i]
        for j in range(0 if diagonal else i):
            rest += G[i, j] * L[i, j]
        slope[at + i] = (power + rest) * scale[i] * of_x / left + 1.0 - of_x
        for j in range(0 if diagonal else i):
            t, narrow = math.tanh(theta[y]), 1.0 / math.cosh(theta[y])
            rest -= G[i, j] * L[i, j]
            slope[y] = G[i, j] * left * narrow * narrow - t * rest - (n - j) * t
            total += (n - j) * math.log(narrow)
            left *= narrow
            y += 1
    return total


@inner_kernel
def _of_population(
    theta: FloatArray, prior: Hyperprior, scale: FloatArray, room: _MoveRoom, Q: FloatArray, log_det: FloatArray,
    count: FloatArray, sums: FloatArray, cross: FloatArray, shared: FloatArray, slope: FloatArray,
) -> float:  # fmt: skip
    """Log prior of θ; writes the slope of all in θ, from what people's answers add to it.

    ``sums`` (K, n, n): the slope in Ω⁻¹; ``cross`` (K, G, n) and ``shared`` (d,): those in the means.
    """
    B, L = room.B, room.L
    K, G, d = B.shape
    n = L.shape[1]
    P, total = np.empty((n, n)), 0.0
    size = 1.0 if prior.diagonal else float(n)
    place = 0
    for k in range(K):
        for a in range(G):
            for i in range(n):
                slope[place] = cross[k, a, i]
                for j in range(n):
                    pull = prior.precision[i, j] * (B[k, a, j] - prior.base[a, j])
                    total -= 0.5 * (B[k, a, i] - prior.base[a, i]) * pull
                    slope[place] -= pull
                place += 1
        total -= 0.5 * (DEGREES + 2.0 * size) * log_det[k]
        for i in range(n):
            inner = 1.0 / (prior.width * prior.width) + DEGREES * Q[k, i, i]
            total -= 0.5 * (DEGREES + size) * math.log(inner)
            sums[k, i, i] += 0.5 * (DEGREES + size) * DEGREES / inner
        for i in range(n):  # (Ω⁻¹ sums - count) L⁻ᵀ, the slope in L
            for j in range(n):
                P[i, j] = -(count[k] + DEGREES + 2.0 * size) if i == j else 0.0
                for h in range(n):
                    P[i, j] += Q[k, i, h] * (sums[k, h, j] + sums[k, j, h])
            solve_lower(L[k], P[i], n)
        total += _of_factor(theta, place, L[k], P, prior.diagonal, scale, slope)
        place += n if prior.diagonal else n + n * (n - 1) // 2
    for i in range(n, d):
        total -= 0.5 * prior.fixed * B[0, 0, i] * B[0, 0, i]
        slope[place] = shared[i] - prior.fixed * B[0, 0, i]
        place += 1
    return total


@inner_kernel
def _density(
    theta: FloatArray, places: bool, rows: ChoiceRows, quadratics: LogitQuadratics, prior: Hyperprior,
    scale: FloatArray, room: _MoveRoom, slope: FloatArray,
) -> float:  # fmt: skip
    """Log density of θ and ξ, but for a constant; writes people's states at their places ξ, and the slope in θ.

    ``places``: writes the places of the states instead. Who calls computes it, since Numba compiles a function anew for
    each constant that it is called with.
    """
    linear, curvature = quadratics.linear, quadratics.curvature
    B, L, xi, people, traits = room.B, room.L, room.xi, room.new, prior.traits
    z, label = people.z, people.label
    K, G, d = B.shape
    n = L.shape[1]
    _unpacked(theta, prior.diagonal, scale, B, L)
    Q, sums, cross = np.empty((K, n, n)), np.zeros((K, n, n)), np.zeros((K, G, n))
    count, log_det, shared = np.zeros(K), np.empty(K), np.zeros(d)
    P, F, W, M, above = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n)
    mean, e, m, w, g, odds = np.empty(d), np.empty(n), np.empty(n), np.empty(n), np.empty(d), room_of(rows)
    for k in range(K):
        for i in range(n):
            for j in range(n):
                P[i, j] = 0.0
                for h in range(min(i, j) + 1):
                    P[i, j] += L[k, i, h] * L[k, j, h]
        log_det[k] = inverse(P, F, Q[k], n)
    total = 0.0
    for u in range(len(label)):
        k = label[u]
        count[k] += 1.0
        for i in range(d):
            mean[i] = B[k, 0, i]
            if i < n:
                for a in range(1, G):
                    mean[i] += traits[u, a] * B[k, a, i]
        # Their Gaussian N(m, P⁻¹) of e = z - mean, P = FFᵀ.
        for i in range(n):
            m[i] = linear[u, i]
            for j in range(d):
                m[i] -= curvature[u, i, j] * mean[j]
            for j in range(i + 1):
                P[i, j] = curvature[u, i, j] + Q[k, i, j]
        cholesky(P, F, n)
        solve_lower(F, m, n)
        if places:
            for i in range(n):
                xi[u, i] = -m[i]
                for j in range(i, n):
                    xi[u, i] += F[j, i] * (z[u, j] - mean[j])
        else:
            for i in range(n):
                e[i] = m[i] + xi[u, i]
            solve_upper(F, e, n)
            for i in range(n, d):
                z[u, i] = mean[i]
            for i in range(n):
                z[u, i] = mean[i] + e[i]
        solve_upper(F, m, n)
        people.value[u] = log_likelihood_and_slope(u, z[u], rows, people.c[u], g, odds)
        total += people.value[u] - 0.5 * log_det[k]
        # Slopes in the mean and Ω⁻¹ with people at ξ.
        for i in range(n):
            e[i] = z[u, i] - mean[i]
            total -= math.log(F[i, i])
        for i in range(n):
            w[i] = g[i]
            for j in range(n):
                total -= 0.5 * e[i] * Q[k, i, j] * e[j]
                w[i] -= Q[k, i, j] * e[j]
        solve_lower(F, w, n)
        # W = F⁻¹, whose rows M become those of the slope of -log|F| and F⁻ᵀξ in FFᵀ.
        fill(above, 0.0)
        for i in range(n):
            fill(W[i], 0.0)
            for h in range(i):
                for j in range(h + 1):
                    W[i, j] -= F[i, h] * W[h, j]
            W[i, i] = 1.0
            half = 0.5 * (1.0 + xi[u, i] * w[i])
            for j in range(i + 1):
                W[i, j] /= F[i, i]
                M[j] = half * W[i, j] + xi[u, i] * above[j]
                above[j] += w[i] * W[i, j]
            for h in range(i + 1):
                for j in range(i + 1):
                    sums[k, h, j] += W[i, h] * M[j]
        solve_upper(F, w, n)
        for i in range(n):
            s = g[i]
            for j in range(n):
                sums[k, i, j] += 0.5 * e[i] * e[j] + w[i] * m[j]
                s -= curvature[u, i, j] * w[j]
            for a in range(G):
                cross[k, a, i] += traits[u, a] * s
        for i in range(n, d):
            shared[i] += g[i]
            for j in range(n):
                shared[i] -= curvature[u, i, j] * w[j]
    return total + _of_population(theta, prior, scale, room, Q, log_det, count, sums, cross, shared, slope)


@inner_kernel
def _room(people: PeopleState, classes: ClassState) -> _MoveRoom:
    """Room for a move from the state."""
    U, d = people.z.shape
    n = classes.Omega.shape[1]
    new = PeopleState(people.z.copy(), np.empty((U, d)), np.empty(U), people.label)
    return _MoveRoom(new, np.empty((U, n)), np.zeros(classes.B.shape), np.empty(classes.Omega.shape))


@kernel
def slopes_near(
    points: FloatArray, rows: ChoiceRows, people: PeopleState, classes: ClassState, quadratics: LogitQuadratics,
    prior: Hyperprior, scale: FloatArray, slopes: FloatArray,
) -> FloatArray:  # fmt: skip
    """Write slopes at points (S, D) with people at their places in the state; return log densities, plus a constant."""
    theta, found = np.empty(points.shape[1]), np.empty(len(points))
    room = _room(people, classes)
    packed(classes.B, classes.Omega, prior.diagonal, scale, theta)
    _density(theta, len(points) > 0, rows, quadratics, prior, scale, room, slopes[0])
    for i in range(len(points)):
        found[i] = _density(points[i], i < 0, rows, quadratics, prior, scale, room, slopes[i])
    return found


@inner_kernel
def move(
    turn: int, gain: float, rows: ChoiceRows, prior: Hyperprior, people: PeopleState, classes: ClassState,
    quadratics: LogitQuadratics, how: Trajectories, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Move the population and all people with it along a trajectory; its step size learns by ``gain``."""
    B, Omega = classes.B, classes.Omega
    K, G, _ = B.shape
    n, D = Omega.shape[1], len(how.root)
    room = _room(people, classes)
    new = room.new
    theta, slope, p = np.empty(D), np.empty(D), np.empty(D)
    packed(B, Omega, prior.diagonal, how.scale, theta)
    copy(how.trail[turn % len(how.trail)], theta)
    size = math.exp(how.step[0])
    log_ratio = -_density(theta, D > 0, rows, quadratics, prior, how.scale, room, slope)
    for i in range(D):
        p[i] = rng.standard_normal()
        log_ratio += 0.5 * p[i] * p[i]
    _push(how.root, slope, 0.5 * size, p)
    steps, now = int(min(_LENGTH / size, _MOST_STEPS) * (0.7 + 0.6 * rng.random()) + 1.0), 0.0
    for step in range(steps):
        for i in range(D):
            for j in range(i + 1):
                theta[i] += size * how.root[i, j] * p[j]
        now = -math.inf
        if _is_far(theta, K, G, n, prior.diagonal):
            break
        now = _density(theta, step < 0, rows, quadratics, prior, how.scale, room, slope)
        _push(how.root, slope, size if step < steps - 1 else 0.5 * size, p)
    log_ratio += now
    for i in range(D):
        log_ratio -= 0.5 * p[i] * p[i]
    chance = math.exp(min(log_ratio, 0.0)) if log_ratio == log_ratio else 0.0
    how.step[0] += gain * (chance - _WANTED)
    if rng.random() >= chance:
        return
    copy(people.value, new.value)
    for u in range(len(new.z)):
        copy(people.z[u], new.z[u])
        copy(people.c[u], new.c[u])
    for k in range(K):
        for a in range(G):
            copy(B[k, a], room.B[k, a])
        for i in range(n):
            for j in range(n):
                Omega[k, i, j] = 0.0
                for h in range(min(i, j) + 1):
                    Omega[k, i, j] += room.L[k, i, h] * room.L[k, j, h]


@inner_kernel
def _log_prior(
    B: FloatArray, Q: FloatArray, A: FloatArray, shift: FloatArray, prior: Hyperprior
) -> float:  # fmt: skip
    """Log prior of a class's means A B + shift and covariance AΩA, whose Ω has inverse Q."""
    n, size, total = len(Q), 1.0 if prior.diagonal else float(len(Q)), 0.0
    at = np.empty(n)
    for a in range(len(B)):
        for i in range(n):
            at[i] = A[i] * B[a, i] + (shift[i] if a == 0 else 0.0) - prior.base[a, i]
        for i in range(n):
            for j in range(n):
                total -= 0.5 * at[i] * prior.precision[i, j] * at[j]
    for i in range(n):
        inner = 1.0 / (prior.width * prior.width) + DEGREES * Q[i, i] / (A[i] * A[i])
        total -= (DEGREES + 2.0 * size) * math.log(A[i]) + 0.5 * (DEGREES + size) * math.log(inner)
    return total


@inner_kernel
def change_scale(
    gain: float, rows: ChoiceRows, prior: Hyperprior, people: PeopleState, classes: ClassState, inverses: FloatArray,
    how: Trajectories, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Multiply all coefficients, of people and of the population, by one number; a step of a random walk."""
    B, Omega, kind, price = classes.B, classes.Omega, rows.kind, rows.price
    K, G, d = B.shape
    n = Omega.shape[1]
    r = math.exp(how.step[1]) * rng.standard_normal()
    A, shift, ones, zeros = np.ones(d), np.zeros(d), np.ones(d), np.zeros(d)
    log_det, log_ratio = 0.0, 0.0
    for i in range(d):
        if price >= 0 or kind[i] != 0:
            shift[i] = r if price < 0 or i == price else 0.0
            continue
        A[i] = math.exp(r)
        log_det += r if i < n else 0.0
        log_ratio += r if i >= n else 0.0
    for k in range(K):
        log_ratio += _log_prior(B[k], inverses[k], A, shift, prior) - _log_prior(B[k], inverses[k], ones, zeros, prior)
        log_ratio += (G + (2.0 if prior.diagonal else n + 1.0)) * log_det
    for i in range(n, d):
        log_ratio -= 0.5 * prior.fixed * ((A[i] * B[0, 0, i] + shift[i]) ** 2 - B[0, 0, i] ** 2)
    z, c, value = np.empty(people.z.shape), np.empty(people.z.shape), np.empty(len(people.z))
    room = room_of(rows)
    for u in range(len(z)):
        for i in range(d):
            z[u, i] = A[i] * people.z[u, i] + shift[i]
        coefficients(z[u], kind, price, c[u])
        value[u] = log_likelihood(u, c[u], rows, room)
        log_ratio += value[u] - people.value[u]
    accepted = math.log(rng.random()) < log_ratio
    how.step[1] += gain * ((1.0 if accepted else 0.0) - _WANTED_SCALES)
    if not accepted:
        return
    copy(people.value, value)
    for u in range(len(z)):
        copy(people.z[u], z[u])
        copy(people.c[u], c[u])
    for k in range(K):
        for i in range(d):
            for a in range(G):
                B[k, a, i] = A[i] * B[k, a, i] + (shift[i] if a == 0 else 0.0)
        for i in range(n):
            for j in range(n):
                Omega[k, i, j] *= A[i] * A[j]
                inverses[k, i, j] /= A[i] * A[j]


@inner_kernel
def _push(root: FloatArray, slope: FloatArray, size: float, p: FloatArray) -> None:
    """Add size rootᵀ slope to the momenta."""
    for j in range(len(p)):
        for i in range(j, len(p)):
            p[j] += size * root[i, j] * slope[i]


@inner_kernel
def _is_far(theta: FloatArray, K: int, G: int, n: int, diagonal: bool) -> bool:
    """Whether numbers of θ would overflow, of a trajectory that goes astray."""
    place = 0
    for _ in range(K):
        place += G * n
        for _ in range(n):
            if not _LEAST_X < theta[place] < _LARGEST_X:
                return True
            place += 1
        for _ in range(0 if diagonal else n * (n - 1) // 2):
            if not abs(theta[place]) < _LARGEST_Y:
                return True
            place += 1
    return False
