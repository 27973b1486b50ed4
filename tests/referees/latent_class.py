"""Conditional and latent-class logit written once more, from whole arrays: likelihood, EM with random starts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def log_chances(X, b):
    """Log probability of the first alternative of each choice, X (T, k, d)."""
    return X[:, 0] @ b - logsumexp(X @ b, axis=1)


def scores(X, b):
    """Slopes of the log-likelihood of each choice, (T, d)."""
    p = np.exp(X @ b - logsumexp(X @ b, axis=1, keepdims=True))
    return X[:, 0] - np.einsum("tk,tkd->td", p, X)


def information(X, b, weight=None):
    """Minus the Hessian of the log-likelihood, (d, d)."""
    w = np.ones(len(X)) if weight is None else weight
    p = np.exp(X @ b - logsumexp(X @ b, axis=1, keepdims=True))
    mean = np.einsum("tk,tkd->td", p, X)
    return np.einsum("t,tk,tkd,tke->de", w, p, X, X) - np.einsum("t,td,te->de", w, mean, mean)


def logit(X, weight=None, start=None):
    """Coefficients of the maximum."""
    b, w = np.zeros(X.shape[2]) if start is None else start, np.ones(len(X)) if weight is None else weight
    for _ in range(50):
        step = np.linalg.solve(information(X, b, w) + 1e-9 * np.eye(len(b)), w @ scores(X, b))
        b = b + step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-12:
            break
    return b


def classes_log_likelihood(theta, X, person, K):
    """Σ_u log Σ_k π_k Π P of coefficients (K, d) and log odds against the first class, in one vector."""
    d, U = X.shape[2], person.max() + 1
    odds = np.append(0.0, theta[K * d :])
    joint = np.stack([np.bincount(person, log_chances(X, b), U) for b in theta[: K * d].reshape(K, d)], axis=1)
    return float(logsumexp(joint + odds - logsumexp(odds), axis=1).sum())


def best_of_em(X, person, K, n_starts, seed, n_steps=300):
    """The largest log-likelihood of EM from random coefficients, and where."""
    rng, U, found = np.random.default_rng(seed), person.max() + 1, []
    for _ in range(n_starts):
        c, share, before = rng.normal(size=(K, X.shape[2])), np.full(K, 1.0 / K), -np.inf
        for _ in range(n_steps):
            joint = np.stack([np.bincount(person, log_chances(X, b), U) for b in c], axis=1) + np.log(share)
            value = float(logsumexp(joint, axis=1).sum())
            if value - before < 1e-5:
                break
            before, w = value, np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
            share = np.maximum(w.mean(axis=0), 1e-12)
            c = np.stack([logit(X, w[person, k], c[k]) for k in range(K)])
        found.append((value, np.concatenate([c.ravel(), np.log(share[1:] / share[0])])))
    return max(found, key=lambda one: one[0])


def polished(theta, X, person, K):
    """The maximum near a point by BFGS on differences of the likelihood alone."""
    found = minimize(lambda t: -classes_log_likelihood(t, X, person, K), theta, method="BFGS", options={"gtol": 1e-7})
    return -found.fun, found.x
