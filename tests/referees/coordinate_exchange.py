"""Coordinate exchange for designs of choices written once more, each design weighed from its beginning."""

from __future__ import annotations

import numpy as np


def d_error(X, b):
    """det(V)^(1/P) of a logit with coefficients b by tasks X (T, k, P)."""
    H = np.zeros((X.shape[2], X.shape[2]))
    for x in X:
        p = np.exp(x @ b)
        p /= p.sum()
        H += x.T @ (np.diag(p) - np.outer(p, p)) @ x
    sign, log_det = np.linalg.slogdet(H)
    return np.exp(-log_det / len(H)) if sign > 0.0 else np.inf


def best_of(codings, n_tasks, k, b, n_starts, seed):
    """The least D-error of so many starts; ``codings``: columns of each attribute's levels, (n_levels, n_columns)."""
    rng, best = np.random.default_rng(seed), np.inf

    def error(D):
        return d_error(np.concatenate([one[D[..., a]] for a, one in enumerate(codings)], axis=-1), b)

    for _ in range(n_starts):
        D = np.stack([rng.integers(0, len(one), (n_tasks, k)) for one in codings], axis=-1)
        value, moved = error(D), True
        while moved:
            moved = False
            for index in np.ndindex(D.shape):
                before = D[index]
                for level in range(len(codings[index[2]])):
                    D[index] = level
                    if (now := error(D)) < value - 1e-10:
                        value, before, moved = now, level, True
                D[index] = before
        best = min(best, value)
    return best
