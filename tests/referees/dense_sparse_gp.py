"""The sparse model of crowdgppl.md 2.2 written as its equations are: K_mm⁻¹, a dense D A, loops over answers' sites."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln, ndtr

from predilect.inference.likelihoods.expectation import expected


def design(left, right, n_items):
    D = np.zeros((len(left), n_items))
    D[np.arange(len(left)), left] += 1.0
    D[np.arange(len(left)), right] -= 1.0
    return D


class DenseModel:
    """q(f_m) = N(m, S), q(s) = Gamma(alpha, beta); everything by explicit inverses."""

    def __init__(self, K_nn, K_nm, K_mm, left, right, outcome, weight, shape, rate, delta=0.0):
        self.K_inv, self.K_mm = np.linalg.inv(K_mm), K_mm
        A = K_nm @ self.K_inv
        D = design(left, right, len(K_nn))
        self.X = D @ A
        self.residual = np.maximum(np.einsum("pi,ij,pj->p", D, K_nn - A @ K_nm.T, D), 0.0)
        self.prior = np.einsum("pi,ij,pj->p", D, K_nn, D)
        self.outcome, self.weight, self.delta = np.asarray(outcome), weight, delta
        self.shape, self.rate = shape, rate

    def start(self):
        M = len(self.K_mm)
        self.alpha = self.shape + 0.5 * M
        self.beta = self.alpha * self.rate / self.shape
        return np.zeros(M), self.K_mm / self.s

    @property
    def s(self):
        return self.alpha / self.beta

    def moments(self, m, S):
        return self.X @ m, np.einsum("pi,ij,pj->p", self.X, S, self.X) + self.residual / self.s

    def target(self, tau, nu):
        Lambda = self.s * self.K_inv + self.X.T @ ((self.weight * tau)[:, None] * self.X)
        S = np.linalg.inv(Lambda)
        return S @ (self.X.T @ (self.weight * nu)), S

    def expected_step(self, m, S):
        mean, var = self.moments(m, S)
        _, g, lam = expected(self.outcome, mean, var, self.delta)
        return *self.target(lam, g + lam * mean), lam

    def linearised_step(self, m, Q):
        z = self.X @ m
        g = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        y = (self.outcome + 1) / 2
        return self.target(g**2 / Q, g / Q * (y - ndtr(z) + g * z))

    def square(self, m, S):
        return m @ self.K_inv @ m + np.trace(self.K_inv @ S)

    def bound(self, m, S):
        """crowdgppl.md 2.6, term by term."""
        M, alpha, beta = len(m), self.alpha, self.beta
        E_log_s = digamma(alpha) - math.log(beta)
        data = self.weight @ expected(self.outcome, *self.moments(m, S), self.delta)[0]
        gaussian = -0.5 * (
            np.linalg.slogdet(self.K_mm)[1] - M * E_log_s - np.linalg.slogdet(S)[1] - M + self.s * self.square(m, S)
        )
        gamma = (
            gammaln(alpha) - gammaln(self.shape) + self.shape * math.log(self.rate)
            + (self.shape - alpha) * E_log_s + (beta - self.rate) * self.s - alpha * math.log(beta)
        )  # fmt: skip
        return data + gaussian + gamma
