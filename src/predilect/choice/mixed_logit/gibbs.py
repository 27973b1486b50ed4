"""Sweeps of the Gibbs sampler of the mixed logit, compiled; names of arrays as in the loops of this folder."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import FloatArray
from predilect.choice.mixed_logit.loops import ChoiceRows, coefficients, log_likelihood, log_normal, room_of
from predilect.choice.mixed_logit.trajectories import (
    ClassState,
    Hyperprior,
    LogitQuadratics,
    PeopleState,
    Trajectories,
    change_scale,
    move,
)
from predilect.inference.gaussian.small import (
    DEGREES,
    cholesky,
    copy,
    draw_covariance,
    draw_normal,
    draw_scale,
    inverse,
    solve_lower,
    solve_upper,
)

_NEW = 0.9  # share of a step that is new, and of the old state
_OLD = math.sqrt(1.0 - _NEW * _NEW)
BETWEEN = 3  # sweeps from one joint move to the next


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
def _centre(u: int, k: int, traits: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Write the mean of person u's state in class k."""
    for i in range(len(out)):
        out[i] = 0.0
        for a in range(traits.shape[1]):
            out[i] += traits[u, a] * B[k, a, i]


@inner_kernel
def _move_people(
    walk: bool, rows: ChoiceRows, traits: FloatArray, people: PeopleState, B: FloatArray, quadratics: LogitQuadratics,
    walk_root: FloatArray, work: _Work, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Draw each person's state: by a random walk, or within the Gaussian that quadratic and population make."""
    z, linear, curvature, P, L, x, m, trial = (
        people.z, quadratics.linear, quadratics.curvature, work.P, work.L, work.x, work.m, work.trial,
    )  # fmt: skip
    n = len(x)
    mean, level, c_new, room = np.empty(n), np.empty(n), np.empty(len(trial)), room_of(rows)
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
                    trial[i] += walk_root[u, i, j] * x[j]
        else:
            for i in range(n):
                level[i] = linear[u, i]
                for j in range(n, len(trial)):
                    level[i] -= curvature[u, i, j] * trial[j]
                m[i] = level[i]
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
        now = log_likelihood(u, c_new, rows, room)
        log_ratio = now - people.value[u]
        if walk:
            log_ratio += log_normal(trial, mean, inverse_k, n) - log_normal(z[u], mean, inverse_k, n)
        else:
            for i in range(n):
                log_ratio -= level[i] * (trial[i] - z[u, i])
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
    B, traits, inverse_k, x, m, L = classes.B[k], prior.traits, work.inverses[k], work.x, work.m, work.L
    n, G = len(x), traits.shape[1]
    scatter, cross, gram = np.zeros((n, n)), np.zeros((G, n)), np.zeros((G, G))
    draw_scale(inverse_k, work.df, prior.width, n, rng, work.scale[k])
    size = 0.0
    for i in range(n):
        scatter[i, i] = work.scale[k, i]
    for u in range(len(people.label)):
        if people.label[u] != k:
            continue
        size += 1.0
        for i in range(n):
            m[i] = people.z[u, i]
            for a in range(G):
                m[i] -= traits[u, a] * B[a, i]
                cross[a, i] += traits[u, a] * people.z[u, i]
        for i in range(n):
            for j in range(i + 1):
                scatter[i, j] += m[i] * m[j]
        for a in range(G):
            for b in range(G):
                gram[a, b] += traits[u, a] * traits[u, b]
    draw_covariance(scatter, work.df + size, prior.diagonal, n, rng, classes.Omega[k])
    work.log_det[k] = inverse(classes.Omega[k], L, inverse_k, n)
    for a in range(G):  # a row of B given the others
        for i in range(n):
            for b in range(G):
                cross[a, i] -= gram[a, b] * B[b, i] if b != a else 0.0
        for i in range(n):
            x[i] = 0.0
            for j in range(n):
                x[i] += inverse_k[i, j] * cross[a, j] + prior.precision[i, j] * prior.base[a, j]
                work.P[i, j] = gram[a, a] * inverse_k[i, j] + prior.precision[i, j]
        draw_normal(work.P, L, x, n, rng)
        for i in range(n):
            B[a, i] = x[i]


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


@kernel
def sweeps(
    first: int, n_sweeps: int, rows: ChoiceRows, prior: Hyperprior, people: PeopleState, classes: ClassState,
    quadratics: LogitQuadratics, walk_root: FloatArray, how: Trajectories, rng: np.random.Generator, kept: Kept,
) -> None:  # fmt: skip
    """Sweeps of the sampler from number ``first`` on; the state is changed.

    One sweep: each person's z; classes; Ω and B of each class; and in some a joint move; mixed-logit.md section 3.
    ``walk_root``: factors of steps of people's random walks, (U, n, n).
    """
    d = people.z.shape[1]
    K, n, _ = classes.Omega.shape
    work = _Work(
        np.empty((K, n)), np.empty((K, n, n)), np.empty(K), DEGREES + (0.0 if prior.diagonal else n - 1.0),
        np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n), np.empty(d),
    )  # fmt: skip
    for sweep in range(first, first + n_sweeps):
        for k in range(K):
            work.log_det[k] = inverse(classes.Omega[k], work.L, work.inverses[k], n)
        _move_people(sweep % 2 == 1, rows, prior.traits, people, classes.B, quadratics, walk_root, work, rng)
        if K > 1:
            _draw_classes(people, classes, prior.traits, work, rng)
        for k in range(K):
            _draw_population(k, people, classes, prior, work, rng)
        gain = 1.0 / math.sqrt(1.0 + sweep / 60.0) if sweep < kept.burn else 0.0
        change_scale(gain, rows, prior, people, classes, work.inverses, how, rng)
        if sweep % BETWEEN == 0:
            move(sweep // BETWEEN, gain, rows, prior, people, classes, quadratics, how, rng)
        _keep(sweep, people, classes, kept)
