"""Sweeps of the Gibbs sampler of the mixed logit, compiled; names of arrays as in the loops of this folder."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect._compile import inner_kernel, kernel
from predilect._types import FloatArray, IntArray
from predilect.models.mixed_logit.loops import (
    cholesky,
    coefficients,
    copy,
    fill,
    inverse,
    log_likelihood,
    log_normal,
    solve_lower,
    solve_upper,
)

_DEGREES = 2.0  # of the half-t prior of what people differ by; with two all correlations are as likely
_NEW = 0.9  # share of a step that is new, and of the old state
_OLD = math.sqrt(1.0 - _NEW * _NEW)
_BETWEEN = 3  # sweeps from one joint move to the next, which takes nearly as long as a sweep without


@inner_kernel
def _draw_covariance(
    scatter: FloatArray, df: float, diagonal: bool, n: int, rng: np.random.Generator, out: FloatArray,
) -> None:  # fmt: skip
    """Draw a covariance (n, n) from the inverse Wishart; ``diagonal``: each variance from its inverse gamma."""
    if diagonal:
        for k in range(n):
            fill(out[k], 0.0)
            out[k, k] = scatter[k, k] / rng.chisquare(df)
        return
    C, A = np.zeros((n, n)), np.zeros((n, n))
    cholesky(scatter, C, n)
    for i in range(n):
        A[i, i] = math.sqrt(rng.chisquare(df - i))
        for j in range(i):
            A[i, j] = rng.standard_normal()
    # Ω = C A⁻ᵀ A⁻¹ Cᵀ: row i of M = C A⁻ᵀ solves A M_i = C_i.
    for i in range(n):
        solve_lower(A, C[i], n)
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += C[i, k] * C[j, k]
            out[i, j] = s


@inner_kernel
def _draw_scale(
    Omega_inverse: FloatArray, df: float, width: float, n: int, rng: np.random.Generator, scale: FloatArray
) -> None:
    """Draw the diagonal 2ν/a of the inverse Wishart's scale matrix given Ω."""
    for i in range(n):
        rate = _DEGREES * Omega_inverse[i, i] + 1.0 / (width * width)
        scale[i] = 2.0 * _DEGREES * rng.standard_gamma(0.5 * (df + 1.0)) / rate


@inner_kernel
def _log_prior(
    B: FloatArray, Omega_inverse: FloatArray, log_det: float, base: FloatArray, strength: FloatArray, df: float,
    scale: FloatArray, n: int, diagonal: bool,
) -> float:  # fmt: skip
    """Log prior of one class's B (G, d) and Ω given ``scale`` (n,), the diagonal of the inverse Wishart's."""
    G = len(B)
    total = -0.5 * (df + (2.0 if diagonal else n + 1.0)) * log_det
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


@kernel
def sweeps(
    first: int, n_sweeps: int, burn: int, thin: int, thin_people: int, D: FloatArray, weight: FloatArray,
    row_ptr: IntArray, choice_ptr: IntArray, kind: npt.NDArray[np.int8], price: int, n: int, traits: FloatArray,
    base: FloatArray, strength: FloatArray, width: float, diagonal: bool, z: FloatArray, c: FloatArray,
    value: FloatArray, label: IntArray, B: FloatArray, Omega: FloatArray, share: FloatArray, linear: FloatArray,
    curvature: FloatArray, walk_root: FloatArray, root: FloatArray, along: FloatArray, across: FloatArray,
    step: FloatArray, rng: np.random.Generator, kept_B: FloatArray, kept_Omega: FloatArray, kept_share: FloatArray,
    kept_people: npt.NDArray[np.float32],
) -> None:  # fmt: skip
    """Sweeps of the sampler from number ``first`` on, of which those from ``burn`` on are kept; the state is changed.

    One sweep: each person's z; classes; Ω and B of each class; and in some a joint move. ``linear`` (U, d) and
    ``curvature`` (U, d, d) are the quadratic that stands for each person's log-likelihood, ``walk_root`` (U, n, n) the
    factors of steps of random walks, ``root`` (d, d) that of shifts. ``along`` and ``across`` (n, n) hold rows q and p,
    qᵀp = 1, of stretches I + (s - 1) q pᵀ of what people differ by. ``step`` (3, ...) are logarithms of the sizes of
    joint moves, which are adapted until ``burn``; ``width`` is that of the prior of standard deviations;
    mixed-logit.md section 3.
    """
    U, d = z.shape
    K, G = B.shape[0], B.shape[1]
    df = _DEGREES + (0.0 if diagonal else n - 1.0)
    scale, inverses, log_det = np.empty((K, n)), np.empty((K, n, n)), np.empty(K)
    P, L, work = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    m, x, trial, c_new = np.empty(n), np.empty(n), np.empty(d), np.empty(d)
    mean = np.empty((U, n))
    z_new, c_all, value_new = np.empty((U, d)), np.empty((U, d)), np.empty(U)
    B_new, Omega_new, scatter = np.empty((K, G, d)), np.empty((K, n, n)), np.empty((n, n))
    cross, gram, gram_L = np.empty((n, G)), np.empty((G, G)), np.empty((G, G))
    noise = np.empty((n, G))
    A, shift = np.empty(d), np.empty(d)
    for k in range(K):
        log_det[k] = inverse(Omega[k], L, inverses[k], n)
        _draw_scale(inverses[k], df, width, n, rng, scale[k])
    for sweep in range(first, first + n_sweeps):
        # People: by turns a random walk, and a step within the Gaussian that the quadratic and the population make.
        walk = sweep % 2 == 1
        for u in range(U):
            k = label[u]
            copy(trial, z[u])
            for i in range(n):
                x[i] = rng.standard_normal()
                mean[u, i] = 0.0
                for a in range(G):
                    mean[u, i] += traits[u, a] * B[k, a, i]
            if walk:
                for i in range(n):
                    for j in range(i + 1):
                        trial[i] += walk_root[u, i, j] * x[j]
            else:
                for i in range(n):
                    m[i] = linear[u, i]
                    for j in range(n):
                        P[i, j] = curvature[u, i, j] + inverses[k, i, j]
                        m[i] += inverses[k, i, j] * mean[u, j]
                cholesky(P, L, n)
                solve_lower(L, m, n)
                for i in range(n):  # L⁻ᵀ (m + new x) is the mean and the new part at once
                    x[i] = (1.0 - _OLD) * m[i] + _NEW * x[i]
                solve_upper(L, x, n)
                for i in range(n):
                    trial[i] = _OLD * z[u, i] + x[i]
            coefficients(trial, kind, price, c_new)
            now = log_likelihood(c_new, D, weight, row_ptr, choice_ptr[u], choice_ptr[u + 1])
            log_ratio = now - value[u]
            if walk:
                log_ratio += log_normal(trial, mean[u], inverses[k], n) - log_normal(z[u], mean[u], inverses[k], n)
            else:
                for i in range(n):
                    log_ratio -= linear[u, i] * (trial[i] - z[u, i])
                    for j in range(n):
                        log_ratio += 0.5 * curvature[u, i, j] * (trial[i] * trial[j] - z[u, i] * z[u, j])
            if math.log(rng.random()) < log_ratio:
                copy(z[u], trial)
                copy(c[u], c_new)
                value[u] = now
        # Classes.
        if K > 1:
            chance = np.empty(K)
            counts = np.zeros(K)
            for u in range(U):
                top = -math.inf
                for k in range(K):
                    for i in range(n):
                        x[i] = 0.0
                        for a in range(G):
                            x[i] += traits[u, a] * B[k, a, i]
                    chance[k] = math.log(share[k]) - 0.5 * log_det[k] + log_normal(z[u], x, inverses[k], n)
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
                label[u] = k
                counts[k] += 1.0
            total = 0.0
            for k in range(K):
                share[k] = rng.standard_gamma(1.0 + counts[k])
                total += share[k]
            for k in range(K):
                share[k] = max(share[k] / total, 1e-12)
        # Population of each class.
        for k in range(K):
            size = 0.0
            for i in range(n):
                fill(scatter[i], 0.0)
                scatter[i, i] = scale[k, i]
            for a in range(G):
                fill(gram[a], 0.0)
                gram[a, a] = strength[a]
                if strength[a] > 0.0:
                    size += 1.0
                for i in range(n):
                    cross[i, a] = strength[a] * base[a, i]
                    for j in range(n):
                        scatter[i, j] += strength[a] * (B[k, a, i] - base[a, i]) * (B[k, a, j] - base[a, j])
            for u in range(U):
                if label[u] != k:
                    continue
                size += 1.0
                for i in range(n):
                    m[i] = z[u, i]
                    for a in range(G):
                        m[i] -= traits[u, a] * B[k, a, i]
                        cross[i, a] += traits[u, a] * z[u, i]
                for i in range(n):
                    for j in range(i + 1):
                        scatter[i, j] += m[i] * m[j]
                for a in range(G):
                    for b in range(G):
                        gram[a, b] += traits[u, a] * traits[u, b]
            _draw_covariance(scatter, df + size, diagonal, n, rng, Omega[k])
            log_det[k] = inverse(Omega[k], L, inverses[k], n)
            _draw_scale(inverses[k], df, width, n, rng, scale[k])
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
        if sweep >= burn and (sweep - burn) % thin == 0:
            place = (sweep - burn) // thin
            copy(kept_share[place], share)
            for k in range(K):
                for a in range(G):
                    copy(kept_B[place, k, a], B[k, a])
                for i in range(n):
                    copy(kept_Omega[place, k, i], Omega[k, i])
            if (sweep - burn) % thin_people == 0:
                for u in range(U):
                    copy(kept_people[u, (sweep - burn) // thin_people], c[u])
        # A joint move: all people and the population together, against the likelihood of all choices.
        if sweep % _BETWEEN != 0:
            continue
        turn = (sweep // _BETWEEN) % 4
        move = 0 if n == 0 or turn == 0 else 1 if turn == 2 else 2
        slot = (sweep // (4 * _BETWEEN)) % n if turn == 3 and n > 0 else 0
        fill(A, 1.0)
        fill(shift, 0.0)
        size, factor = math.exp(step[move, slot]), 1.0
        if move == 0:
            for i in range(d):
                trial[i] = rng.standard_normal()
            for i in range(d):
                for j in range(i + 1):
                    shift[i] += size * root[i, j] * trial[j]
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
        log_ratio = 0.0
        log_jacobian = math.log(factor)
        for i in range(n):
            log_jacobian += math.log(A[i])
        q, dual = along[slot], across[slot]
        for k in range(K):
            if move == 2:
                _stretched(Omega[k], q, dual, factor, n, m, Omega_new[k])
                _stretched(inverses[k], dual, q, 1.0 / factor, n, m, work)
            else:
                for i in range(n):
                    for j in range(n):
                        Omega_new[k, i, j] = A[i] * A[j] * Omega[k, i, j]
                        work[i, j] = inverses[k, i, j] / (A[i] * A[j])
            for a in range(G):
                for i in range(d):
                    B_new[k, a, i] = B[k, a, i] if move == 2 else A[i] * B[k, a, i]
            for i in range(d):
                if move != 2:
                    B_new[k, 0, i] += shift[i]
            log_ratio += _log_prior(
                B_new[k], work, log_det[k] + 2.0 * log_jacobian, base, strength, df, scale[k], n, diagonal
            )
            log_ratio -= _log_prior(B[k], inverses[k], log_det[k], base, strength, df, scale[k], n, diagonal)
            log_ratio += (2.0 if diagonal else n + 1.0) * log_jacobian
            if move == 1:
                log_ratio += G * log_jacobian
            if k == 0:
                for i in range(n, d):  # what people share has a normal prior
                    log_ratio += math.log(A[i]) if move == 1 else 0.0
                    log_ratio -= 0.5 * strength[0] * (B_new[k, 0, i] ** 2 - B[k, 0, i] ** 2)
        for u in range(U):
            along_q = 0.0
            if move == 2:
                for i in range(n):
                    centre = 0.0
                    for a in range(G):
                        centre += traits[u, a] * B[label[u], a, i]
                    along_q += (factor - 1.0) * dual[i] * (z[u, i] - centre)
            for i in range(d):
                z_new[u, i] = A[i] * z[u, i] + shift[i]
                if move == 2 and i < n:
                    z_new[u, i] += along_q * q[i]
            coefficients(z_new[u], kind, price, c_all[u])
            value_new[u] = log_likelihood(c_all[u], D, weight, row_ptr, choice_ptr[u], choice_ptr[u + 1])
            log_ratio += value_new[u] - value[u]
        accepted = math.log(rng.random()) < log_ratio
        if accepted:
            for u in range(U):
                copy(z[u], z_new[u])
                copy(c[u], c_all[u])
            copy(value, value_new)
            for k in range(K):
                for a in range(G):
                    copy(B[k, a], B_new[k, a])
                if move != 0:
                    for i in range(n):
                        copy(Omega[k, i], Omega_new[k, i])
                    log_det[k] = inverse(Omega[k], L, inverses[k], n)
        if sweep < burn:
            step[move, slot] += ((1.0 if accepted else 0.0) - 0.3) / math.sqrt(1.0 + sweep / 60.0)
