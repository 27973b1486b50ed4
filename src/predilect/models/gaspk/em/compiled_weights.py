"""Maximum-likelihood weights on the simplex: a concave function of each person, climbed in a compiled loop.

One person's function of the weights γ is, with z = γᵀf the margin of an answer,

    L(γ) = Σ_i weight_i ℓ_i(γᵀF_i)                                     characteristics known: F
    L(γ) = Σ_i weight_i Σ_q ω_q ℓ_i(γᵀF_i + x_q s_i),  s_i = √(γᵀV_i γ)    known with covariance V

for nodes x_q symmetric about 0. Both are concave: γᵀF is linear, s is convex, and ℓ(m + xs) + ℓ(m - xs) is concave in
(m, s) and falls in s >= 0. With b = Vγ/s, κ = -ℓ'' and k_j = Σ_q ω_q κ x_q^j, the gradient and minus the Hessian of an
answer are

    (Σ ω ℓ') F + (Σ ω x ℓ') b       k_0 FFᵀ + k_1 (Fbᵀ + bFᵀ) + k_2 bbᵀ - (Σ ω x ℓ') (V - bbᵀ)/s .

Each step maximises the quadratic model of L on the simplex exactly, by an active set, followed by a line search:
feasible at once, and Newton's method on the final face.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect._compile import inner_kernel, kernel
from predilect._types import FloatArray, IntArray
from predilect.likelihoods.expectation import value_and_slope
from predilect.likelihoods.probit import tilted_scalar
from predilect.likelihoods.special import mills_curvature_scalar
from predilect.likelihoods.tabulated import log_ndtr_both

OutcomeArray = npt.NDArray[np.int8]

# Ridge, as a share of the mean curvature: where fewer answers than weights leave the model singular, the shortest
# step is taken, and rounding has no influence.
_RIDGE = 1e-9
_SUFFICIENT = 1e-4  # share of the rise that the gradient promises, as usual
_ROUNDING = 1e-14  # relative rounding error of L
_SHORTEST = 1e-10
_SHORT_OF_THE_EDGE = 0.9  # of a step that ends there
_TAIL = -5.0  # where ρ + r loses digits
_SMALL_VARIANCE = 0.01  # below it, -Σ ω x ℓ' / s has lost digits, and k_0 differs from it in none


@kernel
def add_log_likelihoods(
    user: IntArray, point: IntArray, outcome: OutcomeArray, weight: FloatArray, delta: float, F: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Add each answer's log-likelihood to ``out``, (n_users, n_c), for each margin F_tc by itself.

    Consecutive answers about one point share the evaluations.
    """
    n_c = F.shape[1]
    found = np.empty((3, n_c))  # of refusals, ties and acceptances
    last, last_tied = -1, -1
    for i in range(user.shape[0]):
        t, y, share = point[i], outcome[i], weight[i]
        f = F[t]
        if t != last:
            last = t
            for c in range(n_c):
                found[2, c], found[0, c] = log_ndtr_both(f[c], delta)
        if y == 0 and t != last_tied:
            last_tied = t
            for c in range(n_c):
                found[1, c] = tilted_scalar(0, f[c], 0.0, delta)[0]
        sums, values = out[user[i]], found[y + 1]
        for c in range(n_c):
            sums[c] += share * values[c]


@inner_kernel
def _log_likelihood(outcome: int, z: float, delta: float) -> tuple[float, float, float]:
    """(ℓ, ℓ', -ℓ'') of one answer."""
    if outcome == 0:
        value, slope, curvature, _, _ = tilted_scalar(outcome, z, 0.0, delta)
        return value, slope, curvature
    value, slope = value_and_slope(outcome, z, delta)
    r = outcome * z - delta
    if r < _TAIL:
        return value, slope, mills_curvature_scalar(r)
    return value, slope, slope * (slope + outcome * r)


@inner_kernel
def _assess(
    first: int, last: int, point: IntArray, outcome: OutcomeArray, weight: FloatArray, delta: float, F: FloatArray,
    V: FloatArray, rule: IntArray, nodes: FloatArray, omega: FloatArray, counts: IntArray, gamma: FloatArray,
    g: FloatArray, H: FloatArray, b: FloatArray,
) -> float:  # fmt: skip
    """L of one person; its gradient goes to ``g`` and minus its Hessian to the lower triangle of ``H``."""
    n_c = F.shape[1]
    total = 0.0
    for c in range(n_c):
        g[c] = 0.0
        b[c] = 0.0
        for k in range(c + 1):
            H[c, k] = 0.0
    for p in range(first, last):
        t = point[p]
        f = F[t]
        m = 0.0
        for c in range(n_c):
            m += gamma[c] * f[c]
        v = 0.0
        s = 0.0
        if V.shape[0] > 0:
            for c in range(n_c):
                b[c] = 0.0
                for k in range(n_c):
                    b[c] += V[t, c, k] * gamma[k]
                v += gamma[c] * b[c]
            s = math.sqrt(max(v, 0.0))
            for c in range(n_c):
                b[c] = b[c] / s if s > 0.0 else 0.0
        d_m = d_s = k_0 = k_1 = k_2 = 0.0
        for q in range(counts[rule[t]]):
            x = nodes[rule[t], q]
            share = weight[p] * omega[rule[t], q]
            value, slope, curvature = _log_likelihood(outcome[p], m + s * x, delta)
            total += share * value
            d_m += share * slope
            d_s += share * slope * x
            k_0 += share * curvature
            k_1 += share * curvature * x
            k_2 += share * curvature * x * x
        k_v = -d_s / s if v >= _SMALL_VARIANCE else k_0
        for c in range(n_c):
            g[c] += d_m * f[c] + d_s * b[c]
            of_f = k_0 * f[c] + k_1 * b[c]
            for k in range(c + 1):
                H[c, k] += of_f * f[k]
            if V.shape[0] > 0:
                of_b = k_1 * f[c] + (k_2 - k_v) * b[c]
                for k in range(c + 1):
                    H[c, k] += of_b * b[k] + k_v * V[t, c, k]
    return total


@inner_kernel
def _direction(
    gamma: FloatArray, g: FloatArray, H: FloatArray, slack: float, d: FloatArray, r: FloatArray, s: FloatArray,
    L: FloatArray, face: IntArray, is_free: IntArray,
) -> float:  # fmt: skip
    """Maximise gᵀd - dᵀHd/2 over γ + d in the simplex, by a primal active set; returns gᵀd."""
    n_c = gamma.shape[0]
    ridge = 0.0
    for c in range(n_c):
        ridge += _RIDGE * H[c, c] / n_c
    for c in range(n_c):
        H[c, c] += ridge
        for k in range(c):
            H[k, c] = H[c, k]
        d[c] = 0.0
        r[c] = g[c]
        is_free[c] = gamma[c] > 0.0
    for _ in range(10 * n_c):
        n = -1  # of free weights, without the one that pays for the others: Σ s = 0
        payer = 0
        for c in range(n_c):
            if is_free[c]:
                if n < 0:
                    payer = c
                else:
                    face[n] = c
                n += 1
        for j in range(n + 1):  # Cholesky, row by row; the right-hand side as the last row
            for k in range(min(j + 1, n)):
                if j < n:
                    a = H[face[j], face[k]] - H[face[j], payer] - H[payer, face[k]] + H[payer, payer]
                else:
                    a = r[face[k]] - r[payer]
                for i in range(k):
                    a -= L[j, i] * L[k, i]
                L[j, k] = math.sqrt(a) if j == k else a / L[k, k]
        for c in range(n_c):
            s[c] = 0.0
        for j in range(n - 1, -1, -1):
            a = L[n, j]
            for i in range(j + 1, n):
                a -= L[i, j] * s[face[i]]
            s[face[j]] = a / L[j, j]
            s[payer] -= a / L[j, j]
        step = 1.0
        blocking = -1
        for c in range(n_c):
            if s[c] < 0.0 and gamma[c] + d[c] + step * s[c] < 0.0:
                step = -(gamma[c] + d[c]) / s[c]
                blocking = c
        for c in range(n_c):
            d[c] += step * s[c]
            for k in range(n_c):
                r[k] -= step * s[c] * H[c, k]
        if blocking >= 0:
            d[blocking] = -gamma[blocking]
            is_free[blocking] = 0
            continue
        best = -1
        most = r[payer] + slack  # all of the face have the gradient of the payer
        for c in range(n_c):
            if not is_free[c] and r[c] > most:
                best = c
                most = r[c]
        if best < 0:
            break
        is_free[best] = 1
    rise = 0.0
    for c in range(n_c):
        rise += g[c] * d[c]
    return rise


@kernel
def climb(
    start: int, stop: int, people: IntArray, user_ptr: IntArray, point: IntArray, outcome: OutcomeArray,
    weight: FloatArray, delta: float, F: FloatArray, V: FloatArray, rule: IntArray, nodes: FloatArray,
    omega: FloatArray, counts: IntArray, concentration: float, tolerance: float, max_steps: int, gamma: FloatArray,
    value: FloatArray, gap: FloatArray, vectors: FloatArray, matrices: FloatArray, codes: IntArray,
) -> int:  # fmt: skip
    """Maximum of L + α Σ_c log γ_c for ``start`` to ``stop`` of ``people``; returns the most steps that anyone took.

    ``V`` is (n_points, n_c, n_c), or (0, n_c, n_c) where the characteristics are known; ``rule`` (n_points,) is the row
    of each point in the quadrature rules ``nodes`` and ``omega`` (n_rules, n), of ``counts`` nodes with weights that
    add up to 1 (one node, 0, for known characteristics). Converged once max_c g_c - gᵀγ <= ``tolerance`` per answer,
    which bounds how much higher L is anywhere on the simplex; ``max_steps`` 0 only evaluates. ``gamma`` is changed in
    place (not for people without answers), ``value`` and ``gap`` (n_users,) are written; ``vectors`` (7, n_c),
    ``matrices`` (3, n_c, n_c) and ``codes`` (2, n_c) are workspace, one set a thread.
    """
    n_c = F.shape[1]
    g, new_g, d, r, s, b, candidate = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6]
    H, new_H, L = matrices[0], matrices[1], matrices[2]
    most_steps = 0
    for u in people[start:stop]:
        n_answers = 0.0
        for p in range(user_ptr[u], user_ptr[u + 1]):
            n_answers += weight[p]
        value[u] = 0.0
        gap[u] = 0.0
        if n_answers == 0.0:
            continue
        for c in range(n_c):
            candidate[c] = gamma[u, c]
        value[u] = -math.inf  # so that the start is accepted
        gap[u] = math.inf
        rise = 0.0
        step = 1.0
        n_steps = -1
        while step > _SHORTEST:  # where the line search fails, the gap shows it
            new = _assess(
                user_ptr[u], user_ptr[u + 1], point, outcome, weight, delta, F, V, rule, nodes, omega, counts,
                candidate, new_g, new_H, b,
            )  # fmt: skip
            if concentration > 0.0:
                for c in range(n_c):
                    new += concentration * math.log(candidate[c])
                    new_g[c] += concentration / candidate[c]
                    new_H[c, c] += concentration / candidate[c] ** 2
            if new >= value[u] + _SUFFICIENT * step * rise - _ROUNDING * abs(value[u]):
                value[u] = new
                g, new_g = new_g, g
                H, new_H = new_H, H
                n_steps += 1
                largest = g[0]
                mean = 0.0
                for c in range(n_c):
                    gamma[u, c] = candidate[c]
                    largest = max(largest, g[c])
                    mean += g[c] * candidate[c]
                gap[u] = (largest - mean) / n_answers
                if gap[u] <= tolerance or n_steps == max_steps:
                    break
                rise = _direction(gamma[u], g, H, 0.1 * tolerance * n_answers, d, r, s, L, codes[0], codes[1])
                if not rise > 0.0:
                    break
                step = 1.0
                if concentration > 0.0:  # the prior keeps weights off the edge
                    for c in range(n_c):
                        if gamma[u, c] + d[c] <= 0.0:
                            step = _SHORT_OF_THE_EDGE
            else:
                step *= 0.5
            total = 0.0
            for c in range(n_c):
                candidate[c] = max(gamma[u, c] + step * d[c], 0.0)
                total += candidate[c]
            for c in range(n_c):
                candidate[c] /= total
        most_steps = max(most_steps, n_steps)
    return most_steps
