"""Sweeps of the Gibbs sampler of the mixed logit, compiled; names of arrays as in the loops of this folder."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray, IntArray
from predilect.choice.mixed_logit.loops import ChoiceRows, coefficients, log_likelihood, log_normal
from predilect.inference.gaussian.small import (
    DEGREES,
    cholesky,
    copy,
    draw_covariance,
    draw_scale,
    inverse,
    solve_lower,
    solve_upper,
)

_NEW = 0.9  # share of a step that is new, and of the old state
_OLD = math.sqrt(1.0 - _NEW * _NEW)
_BETWEEN = 3  # sweeps from one joint move to the next, which takes nearly as long as a sweep without


class Hyperprior(NamedTuple):
    """Priors of the population, and the traits of people that its means depend on."""

    traits: FloatArray  # (U, G)
    base: FloatArray  # prior mean of B, (G, d), and how many people it is worth, (G,)
    strength: FloatArray
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


class Proposals(NamedTuple):
    """What steps are drawn from."""

    linear: FloatArray  # (U, d), with ``curvature`` the quadratic that stands for each person's log-likelihood
    curvature: FloatArray  # (U, d, d)
    walk_root: FloatArray  # factors of steps of random walks, (U, n, n)
    root: FloatArray  # factor of shifts, (d, d)
    along: FloatArray  # rows q, (n, n), of stretches I + (s - 1) q pᵀ of what people differ by
    across: FloatArray  # rows p, qᵀ p = 1
    step: FloatArray  # (3, max(n, 1)): logarithms of the sizes of joint moves, adapted until the burn-in ends


class Kept(NamedTuple):
    """Draws that are kept, every ``thin``-th sweep from ``burn`` on, of people every ``thin_people``-th."""

    burn: int
    thin: int
    thin_people: int
    B: FloatArray
    Omega: FloatArray
    share: FloatArray
    people: npt.NDArray[np.float32]


class _Work(NamedTuple):
    """What follows from the population, and room."""

    scale: FloatArray  # diagonal of the inverse Wishart's scale matrix, (K, n)
    inverses: FloatArray  # Ω⁻¹, (K, n, n), and log |Ω|, (K,)
    log_det: FloatArray
    df: float
    L: FloatArray  # (n, n)
    P: FloatArray
    x: FloatArray  # (n,)
    m: FloatArray
    trial: FloatArray  # (d,)


@inner_kernel
def _log_prior(
    B: FloatArray, Omega_inverse: FloatArray, log_det: float, prior: Hyperprior, df: float, scale: FloatArray
) -> float:
    """Log prior of one class's B (G, d) and Ω given ``scale`` (n,), the diagonal of the inverse Wishart's."""
    base, strength = prior.base, prior.strength
    G, n = len(B), len(scale)
    total = -0.5 * (df + (2.0 if prior.diagonal else n + 1.0)) * log_det
    for k in range(n):
        total -= 0.5 * scale[k] * Omega_inverse[k, k]
    for a in range(G):
        if strength[a] > 0.0:
            total -= 0.5 * log_det
            for i in range(n):
                for j in range(n):
                    total -= 0.5 * strength[a] * (B[a, i] - base[a, i]) * Omega_inverse[i, j] * (B[a, j] - base[a, j])
    return total


@inner_kernel
def _stretched(
    S: FloatArray, q: FloatArray, dual: FloatArray, factor: float, n: int, work: FloatArray, out: FloatArray
) -> None:
    """Write A S Aᵀ for A = I + (factor - 1) q dualᵀ."""
    total = 0.0
    for i in range(n):
        work[i] = 0.0
        for j in range(n):
            work[i] += S[i, j] * dual[j]
        total += dual[i] * work[i]
    more = factor - 1.0
    for i in range(n):
        for j in range(n):
            out[i, j] = S[i, j] + more * (q[i] * work[j] + work[i] * q[j]) + more * more * total * q[i] * q[j]


@inner_kernel
def _centre(u: int, k: int, traits: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Write the mean of person u's state in class k."""
    for i in range(len(out)):
        out[i] = 0.0
        for a in range(traits.shape[1]):
            out[i] += traits[u, a] * B[k, a, i]


@inner_kernel
def _move_people(
    walk: bool, rows: ChoiceRows, traits: FloatArray, people: PeopleState, B: FloatArray, proposals: Proposals,
    work: _Work, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Draw each person's state: by a random walk, or within the Gaussian that quadratic and population make."""
    z, linear, curvature, P, L, x, m, trial = (
        people.z, proposals.linear, proposals.curvature, work.P, work.L, work.x, work.m, work.trial,
    )  # fmt: skip
    n = len(x)
    mean, c_new = np.empty(n), np.empty(len(trial))
    for u in range(len(z)):
        k = people.label[u]
        inverse_k = work.inverses[k]
        copy(trial, z[u])
        _centre(u, k, traits, B, mean)
        for i in range(n):
            x[i] = rng.standard_normal()
        if walk:
            for i in range(n):
                for j in range(i + 1):
                    trial[i] += proposals.walk_root[u, i, j] * x[j]
        else:
            for i in range(n):
                m[i] = linear[u, i]
                for j in range(n):
                    P[i, j] = curvature[u, i, j] + inverse_k[i, j]
                    m[i] += inverse_k[i, j] * mean[j]
            cholesky(P, L, n)
            solve_lower(L, m, n)
            for i in range(n):  # L⁻ᵀ (m + new x) is the mean and the new part at once
                x[i] = (1.0 - _OLD) * m[i] + _NEW * x[i]
            solve_upper(L, x, n)
            for i in range(n):
                trial[i] = _OLD * z[u, i] + x[i]
        coefficients(trial, rows.kind, rows.price, c_new)
        now = log_likelihood(u, c_new, rows)
        log_ratio = now - people.value[u]
        if walk:
            log_ratio += log_normal(trial, mean, inverse_k, n) - log_normal(z[u], mean, inverse_k, n)
        else:
            for i in range(n):
                log_ratio -= linear[u, i] * (trial[i] - z[u, i])
                for j in range(n):
                    log_ratio += 0.5 * curvature[u, i, j] * (trial[i] * trial[j] - z[u, i] * z[u, j])
        if math.log(rng.random()) < log_ratio:
            copy(z[u], trial)
            copy(people.c[u], c_new)
            people.value[u] = now


@inner_kernel
def _draw_classes(
    people: PeopleState, classes: ClassState, traits: FloatArray, work: _Work, rng: np.random.Generator
) -> None:
    """Draw the class of each person, and then the shares."""
    share, x = classes.share, work.x
    K = len(share)
    chance, counts = np.empty(K), np.zeros(K)
    for u in range(len(people.label)):
        top = -math.inf
        for k in range(K):
            _centre(u, k, traits, classes.B, x)
            chance[k] = math.log(share[k]) - 0.5 * work.log_det[k]
            chance[k] += log_normal(people.z[u], x, work.inverses[k], len(x))
            top = max(top, chance[k])
        total = 0.0
        for k in range(K):
            chance[k] = math.exp(chance[k] - top)
            total += chance[k]
        left = rng.random() * total
        k = 0
        while k < K - 1 and left > chance[k]:
            left -= chance[k]
            k += 1
        people.label[u] = k
        counts[k] += 1.0
    total = 0.0
    for k in range(K):
        share[k] = rng.standard_gamma(1.0 + counts[k])
        total += share[k]
    for k in range(K):
        share[k] = max(share[k] / total, 1e-12)


@inner_kernel
def _draw_population(
    k: int, people: PeopleState, classes: ClassState, prior: Hyperprior, work: _Work, rng: np.random.Generator
) -> None:
    """Draw Ω and B of class k."""
    B, traits, base, strength, x, m, L = classes.B, prior.traits, prior.base, prior.strength, work.x, work.m, work.L
    n, G = len(x), len(strength)
    scatter, cross, noise = np.zeros((n, n)), np.empty((n, G)), np.empty((n, G))
    gram, gram_L = np.zeros((G, G)), np.empty((G, G))
    size = 0.0
    for i in range(n):
        scatter[i, i] = work.scale[k, i]
    for a in range(G):
        gram[a, a] = strength[a]
        if strength[a] > 0.0:
            size += 1.0
        for i in range(n):
            cross[i, a] = strength[a] * base[a, i]
            for j in range(n):
                scatter[i, j] += strength[a] * (B[k, a, i] - base[a, i]) * (B[k, a, j] - base[a, j])
    for u in range(len(people.label)):
        if people.label[u] != k:
            continue
        size += 1.0
        for i in range(n):
            m[i] = people.z[u, i]
            for a in range(G):
                m[i] -= traits[u, a] * B[k, a, i]
                cross[i, a] += traits[u, a] * people.z[u, i]
        for i in range(n):
            for j in range(i + 1):
                scatter[i, j] += m[i] * m[j]
        for a in range(G):
            for b in range(G):
                gram[a, b] += traits[u, a] * traits[u, b]
    draw_covariance(scatter, work.df + size, prior.diagonal, n, rng, classes.Omega[k])
    work.log_det[k] = inverse(classes.Omega[k], L, work.inverses[k], n)
    draw_scale(work.inverses[k], work.df, prior.width, n, rng, work.scale[k])
    cholesky(gram, gram_L, G)
    for a in range(G):
        for i in range(n):
            x[i] = rng.standard_normal()
        for i in range(n):
            noise[i, a] = 0.0
            for j in range(i + 1):
                noise[i, a] += L[i, j] * x[j]
    for i in range(n):
        solve_lower(gram_L, cross[i], G)
        for a in range(G):
            cross[i, a] += noise[i, a]
        solve_upper(gram_L, cross[i], G)
        for a in range(G):
            B[k, a, i] = cross[i, a]


@inner_kernel
def _keep(sweep: int, people: PeopleState, classes: ClassState, kept: Kept) -> None:
    """Write the state to the draws that are kept, if its turn has come."""
    if sweep < kept.burn or (sweep - kept.burn) % kept.thin != 0:
        return
    place = (sweep - kept.burn) // kept.thin
    copy(kept.share[place], classes.share)
    for k in range(len(classes.share)):
        for a in range(classes.B.shape[1]):
            copy(kept.B[place, k, a], classes.B[k, a])
        for i in range(classes.Omega.shape[1]):
            copy(kept.Omega[place, k, i], classes.Omega[k, i])
    if (sweep - kept.burn) % kept.thin_people == 0:
        for u in range(len(people.c)):
            copy(kept.people[u, (sweep - kept.burn) // kept.thin_people], people.c[u])


class _Move(NamedTuple):
    """A joint move of all people and the population: a shift (0), a scaling (1) or a stretch (2) of the states."""

    kind: int
    slot: int  # which direction is stretched
    A: FloatArray  # factors of the coordinates, (d,)
    shift: FloatArray  # (d,)
    factor: float  # of a stretch
    log_jacobian: float


@inner_kernel
def _joint_move(sweep: int, n: int, rows: ChoiceRows, proposals: Proposals, rng: np.random.Generator) -> _Move:
    """Draw a joint move; kinds and slots take turns."""
    kind, price = rows.kind, rows.price
    d = len(kind)
    turn = (sweep // _BETWEEN) % 4
    move = 0 if n == 0 or turn == 0 else 1 if turn == 2 else 2
    slot = (sweep // (4 * _BETWEEN)) % n if turn == 3 and n > 0 else 0
    A, shift, x = np.ones(d), np.zeros(d), np.empty(d)
    size, factor = math.exp(proposals.step[move, slot]), 1.0
    if move == 0:
        for i in range(d):
            x[i] = rng.standard_normal()
        for i in range(d):
            for j in range(i + 1):
                shift[i] += size * proposals.root[i, j] * x[j]
    else:
        log_factor = size * rng.standard_normal()
        if move == 1:
            for i in range(d):
                if price >= 0:
                    shift[i] = log_factor if i == price else 0.0
                elif kind[i] == 0:
                    A[i] = math.exp(log_factor)
                else:
                    shift[i] = log_factor
        else:
            factor = math.exp(log_factor)
    log_jacobian = math.log(factor)
    for i in range(n):
        log_jacobian += math.log(A[i])
    return _Move(move, slot, A, shift, factor, log_jacobian)


@inner_kernel
def _moved_population(
    move: _Move, classes: ClassState, prior: Hyperprior, proposals: Proposals, work: _Work, B_new: FloatArray,
    Omega_new: FloatArray,
) -> float:  # fmt: skip
    """Write the population after a joint move; the logarithm of the ratio of priors and Jacobians."""
    B, Omega, A, m = classes.B, classes.Omega, move.A, work.m
    K, G, d = B.shape
    n = len(m)
    strength, moved_inverse = prior.strength, np.empty((n, n))
    q, dual = proposals.along[move.slot], proposals.across[move.slot]
    log_ratio = 0.0
    for k in range(K):
        if move.kind == 2:
            _stretched(Omega[k], q, dual, move.factor, n, m, Omega_new[k])
            _stretched(work.inverses[k], dual, q, 1.0 / move.factor, n, m, moved_inverse)
        else:
            for i in range(n):
                for j in range(n):
                    Omega_new[k, i, j] = A[i] * A[j] * Omega[k, i, j]
                    moved_inverse[i, j] = work.inverses[k, i, j] / (A[i] * A[j])
        for a in range(G):
            for i in range(d):
                B_new[k, a, i] = B[k, a, i] if move.kind == 2 else A[i] * B[k, a, i]
        for i in range(d):
            if move.kind != 2:
                B_new[k, 0, i] += move.shift[i]
        log_det = work.log_det[k]
        log_ratio += _log_prior(
            B_new[k], moved_inverse, log_det + 2.0 * move.log_jacobian, prior, work.df, work.scale[k]
        )
        log_ratio -= _log_prior(B[k], work.inverses[k], log_det, prior, work.df, work.scale[k])
        log_ratio += (2.0 if prior.diagonal else n + 1.0) * move.log_jacobian
        if move.kind == 1:
            log_ratio += G * move.log_jacobian
        if k == 0:
            for i in range(n, d):  # what people share has a normal prior
                log_ratio += math.log(A[i]) if move.kind == 1 else 0.0
                log_ratio -= 0.5 * strength[0] * (B_new[k, 0, i] ** 2 - B[k, 0, i] ** 2)
    return log_ratio


@inner_kernel
def _moved_people(
    move: _Move,
    rows: ChoiceRows,
    traits: FloatArray,
    people: PeopleState,
    B: FloatArray,
    proposals: Proposals,
    new: PeopleState,
) -> float:
    """Write the people after a joint move; the logarithm of the ratio of likelihoods of all choices."""
    n, d = len(proposals.along), people.z.shape[1]
    q, dual = proposals.along[move.slot], proposals.across[move.slot]
    log_ratio, centre = 0.0, np.empty(n)
    for u in range(len(people.z)):
        along_q = 0.0
        if move.kind == 2:
            _centre(u, people.label[u], traits, B, centre)
            for i in range(n):
                along_q += (move.factor - 1.0) * dual[i] * (people.z[u, i] - centre[i])
        for i in range(d):
            new.z[u, i] = move.A[i] * people.z[u, i] + move.shift[i]
            if move.kind == 2 and i < n:
                new.z[u, i] += along_q * q[i]
        coefficients(new.z[u], rows.kind, rows.price, new.c[u])
        new.value[u] = log_likelihood(u, new.c[u], rows)
        log_ratio += new.value[u] - people.value[u]
    return log_ratio


@kernel
def sweeps(
    first: int, n_sweeps: int, rows: ChoiceRows, prior: Hyperprior, people: PeopleState, classes: ClassState,
    proposals: Proposals, rng: np.random.Generator, kept: Kept,
) -> None:  # fmt: skip
    """Sweeps of the sampler from number ``first`` on; the state is changed.

    One sweep: each person's z; classes; Ω and B of each class; and in some a joint move; mixed-logit.md section 3.
    """
    U, d = people.z.shape
    B, Omega = classes.B, classes.Omega
    K, G, _ = B.shape
    n = Omega.shape[1]
    work = _Work(
        np.empty((K, n)), np.empty((K, n, n)), np.empty(K), DEGREES + (0.0 if prior.diagonal else n - 1.0),
        np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n), np.empty(d),
    )  # fmt: skip
    new = PeopleState(np.empty((U, d)), np.empty((U, d)), np.empty(U), people.label)
    B_new, Omega_new = np.empty((K, G, d)), np.empty((K, n, n))
    for k in range(K):
        work.log_det[k] = inverse(Omega[k], work.L, work.inverses[k], n)
        draw_scale(work.inverses[k], work.df, prior.width, n, rng, work.scale[k])
    for sweep in range(first, first + n_sweeps):
        _move_people(sweep % 2 == 1, rows, prior.traits, people, B, proposals, work, rng)
        if K > 1:
            _draw_classes(people, classes, prior.traits, work, rng)
        for k in range(K):
            _draw_population(k, people, classes, prior, work, rng)
        _keep(sweep, people, classes, kept)
        if sweep % _BETWEEN != 0:
            continue
        move = _joint_move(sweep, n, rows, proposals, rng)
        log_ratio = _moved_population(move, classes, prior, proposals, work, B_new, Omega_new)
        log_ratio += _moved_people(move, rows, prior.traits, people, B, proposals, new)
        accepted = math.log(rng.random()) < log_ratio
        if accepted:
            copy(people.value, new.value)
            for u in range(U):
                copy(people.z[u], new.z[u])
                copy(people.c[u], new.c[u])
            for k in range(K):
                for a in range(G):
                    copy(B[k, a], B_new[k, a])
                if move.kind != 0:
                    for i in range(n):
                        copy(Omega[k, i], Omega_new[k, i])
                    work.log_det[k] = inverse(Omega[k], work.L, work.inverses[k], n)
        if sweep < kept.burn:
            gain = ((1.0 if accepted else 0.0) - 0.3) / math.sqrt(1.0 + sweep / 60.0)
            proposals.step[move.kind, move.slot] += gain
