"""Expectation propagation for one person, and what follows from it, with explicit inverses of tiny matrices.

Written from population.md sections 2-4 and 6. Letters are those of the specification; X is n x I with +1 and -1.
Repeated answers are separate rows here, or rows with a weight, whose copies then move one at a time on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def moments(y: int, m: float, v: float, delta: float) -> tuple[float, float, float, float]:
    """log Ẑ, d1 = ∂/∂m, h = -∂²/∂m², ∂/∂δ (population.md section 2; for moderate margins)."""
    s = math.sqrt(1.0 + v)
    if y != 0:
        r = (y * m - delta) / s
        rho = math.sqrt(2.0 / math.pi) / erfcx(-r / math.sqrt(2.0))
        return float(log_ndtr(r)), y * rho / s, rho * (rho + r) / s**2, -rho / s
    a, b = (-delta - m) / s, (delta - m) / s
    if m < 0.0:  # Φ(b) - Φ(a) = Φ(-a) - Φ(-b), the accurate side
        log_z = float(np.real(logsumexp([log_ndtr(-a), log_ndtr(-b)], b=[1.0, -1.0])))
    else:
        log_z = float(np.real(logsumexp([log_ndtr(b), log_ndtr(a)], b=[1.0, -1.0])))
    phi_a, phi_b = (math.exp(-0.5 * x * x - _HALF_LOG_2PI - log_z) for x in (a, b))  # over Z
    d1 = (phi_a - phi_b) / s
    return log_z, d1, d1**2 - (a * phi_a - b * phi_b) / s**2, (phi_a + phi_b) / s


@dataclass
class Person:
    """Converged EP of one person."""

    X: np.ndarray  # n x I
    lam: np.ndarray  # of one copy
    eta: np.ndarray
    evidence: float  # by the formula of the specification
    evidence_by_integral: float  # sites times their normalisers, integrated in item space
    r: np.ndarray
    H: np.ndarray
    N: np.ndarray
    slope_delta: float
    Sigma: np.ndarray
    w: np.ndarray

    def utilities(self, m: np.ndarray, C_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of f_u by the law of total variance over the consensus, in precision form."""
        prior_precision = np.linalg.inv(self.Sigma)
        S = np.linalg.inv(prior_precision + self.X.T @ np.diag(self.w * self.lam) @ self.X)
        B = S @ prior_precision  # d E[f | m] / d m
        return S @ (prior_precision @ m + self.X.T @ (self.w * self.eta)), S + B @ C_m @ B.T


def design(left: np.ndarray, right: np.ndarray, n_items: int) -> np.ndarray:
    """X."""
    X = np.zeros((len(left), n_items))
    rows = np.arange(len(left))
    X[rows, left] = 1.0
    X[rows, right] = -1.0
    return X


def person_ep(
    Sigma: np.ndarray,
    m: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    outcome: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    slope_columns: np.ndarray | None = None,
    delta: float = 0.0,
    n_sweeps: int = 2000,
    tolerance: float = 1e-14,
) -> Person:
    """Sequential EP in pair space until nothing moves; raises if it does not come to rest.

    Covariates ``slope_columns`` (n, n_effects) are the last columns of X, and their effects the last utilities in Σ
    and m.
    """
    n = len(left)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    X = design(left, right, len(m))
    if slope_columns is not None:
        X[:, len(m) - slope_columns.shape[1] :] = slope_columns
    G, z_bar = X @ Sigma @ X.T, X @ m
    lam, eta = np.zeros(n), np.zeros(n)

    def posterior() -> tuple[np.ndarray, np.ndarray]:
        # (G⁻¹ + Λ)⁻¹ = (I + G Λ)⁻¹ G: exists for singular G, such as a pair asked twice
        inverse = np.linalg.inv(np.eye(n) + G * (w * lam))
        return inverse @ G, inverse @ (z_bar + G @ (w * eta))

    def cavity(p: int, C: np.ndarray, mu: np.ndarray) -> tuple[float, float]:
        scale = 1.0 - lam[p] * C[p, p]
        return C[p, p] / scale, (mu[p] - C[p, p] * eta[p]) / scale

    for _ in range(n_sweeps):
        largest = 0.0
        for p in range(n):
            v_c, m_c = cavity(p, *posterior())
            _, d1, h, _ = moments(int(outcome[p]), m_c, v_c, delta)
            new_lam, new_eta = h / (1.0 - h * v_c), (d1 + h * m_c) / (1.0 - h * v_c)
            largest = max(largest, abs(new_lam - lam[p]), abs(new_eta - eta[p]))
            # w copies taken to the new site one after the other, each changed 1/w of the way
            lam[p] += (new_lam - lam[p]) / max(1.0, w[p])
            eta[p] += (new_eta - eta[p]) / max(1.0, w[p])
        if largest < tolerance * (1.0 + np.abs(eta).max(initial=0.0)):
            break
    else:
        raise RuntimeError(f"the referee's EP still moves by {largest:g}")

    C, mu = posterior()
    W = w * lam
    log_sites = 0.0  # Σ of log normalisers of the sites, each as exp(-λ z²/2 + η z)
    slope_delta = 0.0
    formula = 0.0
    for p in range(n):
        v_c, m_c = cavity(p, C, mu)
        log_z, _, _, slope = moments(int(outcome[p]), m_c, v_c, delta)
        one = 1.0 + lam[p] * v_c
        # log ∫ N(z; m_c, v_c) exp(-λ z²/2 + η z) dz
        log_overlap = -0.5 * math.log(one) + 0.5 * (2 * m_c * eta[p] + v_c * eta[p] ** 2 - lam[p] * m_c**2) / one
        log_sites += w[p] * (log_z - log_overlap)
        formula += w[p] * (
            log_z + 0.5 * math.log(one) + 0.5 * (lam[p] * m_c**2 - 2 * m_c * eta[p] - v_c * eta[p] ** 2) / one
        )
        slope_delta += w[p] * slope
    root = np.sqrt(W)
    e = w * eta - W * z_bar
    formula += -0.5 * np.linalg.slogdet(np.eye(n) + root[:, None] * G * root)[1] + 0.5 * e @ C @ e
    formula += (w * eta) @ z_bar - 0.5 * z_bar @ (W * z_bar)

    Q = np.linalg.inv(np.diag(1.0 / W) + G)
    alpha = Q @ (eta / lam - z_bar)
    return Person(
        X, lam, eta, formula, log_sites + gaussian_integral(Sigma, m, X, W, w * eta), X.T @ alpha, X.T @ Q @ X,
        np.outer(X.T @ alpha, X.T @ alpha), slope_delta, Sigma, w,
    )  # fmt: skip


def gaussian_integral(Sigma: np.ndarray, m: np.ndarray, X: np.ndarray, W: np.ndarray, linear: np.ndarray) -> float:
    """Log of ∫ N(f; m, Σ) exp(-½ fᵀXᵀWXf + fᵀXᵀ linear) df, in item space, by dense determinants."""
    if np.linalg.matrix_rank(Sigma) < len(Sigma):  # no Σ⁻¹: complete the square about m
        P, e = X.T @ (W[:, None] * X), X.T @ (linear - W * (X @ m))
        B = np.eye(len(m)) + Sigma @ P
        spread = 0.5 * e @ np.linalg.solve(B, Sigma @ e) - 0.5 * np.linalg.slogdet(B)[1]
        return float(spread - 0.5 * (X @ m) @ (W * (X @ m)) + linear @ (X @ m))
    prior_precision = np.linalg.inv(Sigma)
    precision = prior_precision + X.T @ (W[:, None] * X)
    b = prior_precision @ m + X.T @ linear
    return 0.5 * (
        -np.linalg.slogdet(Sigma)[1]
        - np.linalg.slogdet(precision)[1]
        + b @ np.linalg.solve(precision, b)
        - m @ prior_precision @ m
    )


def crowd_ep(Sigma: np.ndarray, m: np.ndarray, rows, delta: float = 0.0) -> list[Person]:
    """Every person of ``rows`` (see simulate.answers), in order."""
    people = []
    for u in range(rows.n_users):
        own = rows.user == u
        people.append(
            person_ep(
                Sigma, m, rows.left[own], rows.right[own], rows.outcome[own], weight=rows.weight[own], delta=delta
            )
        )
    return people


def centred(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Utilities minus their mean over the items."""
    P = np.eye(len(mean)) - 1.0 / len(mean)
    return P @ mean, P @ covariance @ P
