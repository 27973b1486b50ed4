"""Exact evidence of probit answers about a Gaussian function: the mass of a box under a multivariate normal.

An answer with noise t ~ N(0, 1) is a window on z + t: (δ, ∞) left, (-δ, δ) tie, (-∞, -δ) right. So p(answers) is the
mass of the box of windows under N(A mean, A K Aᵀ + I), by Genz's transformation and scrambled Sobol points.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc


def windows(outcome, delta):
    low = np.array([{1: delta, 0: -delta, -1: -math.inf}[int(y)] for y in outcome])
    high = np.array([{1: math.inf, 0: delta, -1: -delta}[int(y)] for y in outcome])
    return low, high


def log_box(mean, covariance, low, high, log2_points=14, n_scrambles=8):
    """Log of the mass of a box and its standard error; n <= 12 or so."""
    n = len(mean)
    L = np.linalg.cholesky(covariance)
    masses = []
    for seed in range(n_scrambles):
        u = qmc.Sobol(max(n - 1, 1), seed=seed).random_base2(log2_points)
        total = np.ones(len(u))
        draws = np.zeros((len(u), n))
        for i in range(n):
            centre = mean[i] + draws[:, :i] @ L[i, :i]
            a, b = ndtr((low[i] - centre) / L[i, i]), ndtr((high[i] - centre) / L[i, i])
            total *= b - a
            if i < n - 1:
                draws[:, i] = ndtri(np.clip(a + u[:, i] * (b - a), 1e-300, 1.0 - 1e-16))
        masses.append(total.mean())
    mass = np.mean(masses)
    return math.log(mass), float(np.std(masses) / math.sqrt(n_scrambles) / mass)


def exact_evidence(K, A, outcome, delta=0.0, mean=None):
    """(log p(answers), its standard error) for f ~ N(mean, K) and margins A f."""
    m = np.zeros(len(K)) if mean is None else mean
    return log_box(A @ m, A @ K @ A.T + np.eye(len(A)), *windows(outcome, delta))
