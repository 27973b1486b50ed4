"""Utilities that move, as one dense Gaussian process over (item, time): Laplace's approximation, and sequential EP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr


class Dense(NamedTuple):
    mean: np.ndarray  # (T, n_items)
    covariance: np.ndarray  # (T n_items, T n_items)
    evidence: float


def prior(times, n_items: int, level: float, variance: float, length: float):
    """Covariance of all (time, item)."""
    over_time = level + variance * np.exp(-np.abs(times[:, None] - times) / length)
    return np.kron(over_time, np.eye(n_items))


def design(at, left, right, n_items: int, n_times: int):
    A = np.zeros((len(at), n_items * n_times))
    A[np.arange(len(at)), at * n_items + left] += 1.0
    A[np.arange(len(at)), at * n_items + right] -= 1.0
    return A


def log_p(z, outcome, delta: float):
    """Log probability of answers, its slope and minus its curvature, by differences of logarithms."""

    def value(z):
        tie = np.log(np.maximum(ndtr(delta - z) - ndtr(-delta - z), 1e-300))
        return np.where(outcome == 0, tie, log_ndtr(outcome * z - delta))

    h = 1e-4
    return value(z), (value(z + h) - value(z - h)) / (2 * h), -(value(z + h) - 2 * value(z) + value(z - h)) / h**2


def laplace(K, A, outcome, delta: float = 0.0, rounds: int = 60) -> Dense:
    """Newton's method in the space of answers (Rasmussen and Williams, algorithm 3.1)."""
    G, z = A @ K @ A.T, np.zeros(len(A))
    for _ in range(rounds):
        value, slope, curvature = log_p(z, outcome, delta)
        root = np.sqrt(curvature)
        B = np.eye(len(A)) + root[:, None] * G * root
        b = curvature * z + slope
        a = b - root * np.linalg.solve(B, root * (G @ b))
        z = G @ a
    evidence = value.sum() - 0.5 * a @ z - 0.5 * np.linalg.slogdet(B)[1]
    C = K - K @ A.T @ (root[:, None] * np.linalg.solve(B, root[:, None] * (A @ K)))
    return Dense(K @ A.T @ a, C, float(evidence))


def ep(K, A, outcome, rounds: int = 30) -> Dense:
    """Sequential expectation propagation of decided answers, site by site."""
    precision, linear = np.zeros(len(A)), np.zeros(len(A))
    C, mean = K.copy(), np.zeros(len(K))
    for _ in range(rounds):
        for p, x in enumerate(A):
            v, m = x @ C @ x, x @ mean
            v_cavity = 1.0 / (1.0 / v - precision[p])
            m_cavity = v_cavity * (m / v - linear[p])
            s = np.sqrt(1.0 + v_cavity)
            r = outcome[p] * m_cavity / s
            ratio = np.exp(-0.5 * r * r - log_ndtr(r)) / np.sqrt(2 * np.pi)
            new_m = m_cavity + outcome[p] * v_cavity * ratio / s
            new_v = v_cavity - v_cavity**2 * ratio * (ratio + r) / (1.0 + v_cavity)
            change = 1.0 / new_v - 1.0 / v_cavity - precision[p]
            push = new_m / new_v - m_cavity / v_cavity - linear[p]
            precision[p], linear[p] = precision[p] + change, linear[p] + push
            c = C @ x
            mean = mean + c * (push - change * m) / (1.0 + change * v)
            C = C - np.outer(c, c) * (change / (1.0 + change * v))
    return Dense(mean, C, np.nan)
