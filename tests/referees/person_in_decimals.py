"""One person's Gaussian posterior under given sites, in 60 digits: no rounding is left to be seen."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

__all__ = ["margins_in_decimals"]

FloatArray = npt.NDArray[np.float64]


def margins_in_decimals(
    Sigma: FloatArray,
    m: FloatArray,
    answers: list[tuple[int, int, float, float, float]],
    pairs: list[tuple[int, int]],
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of margins of ``pairs`` after ``answers``: left, right, copies, and λ and η of one copy."""
    k = len(m)
    with localcontext(prec=60):
        S, mu = [[Decimal(float(x)) for x in row] for row in Sigma], [Decimal(float(x)) for x in m]
        for a, b, copies, precision, linear in answers:
            lam, eta = Decimal(copies) * Decimal(precision), Decimal(copies) * Decimal(linear)
            c = [S[i][a] - S[i][b] for i in range(k)]
            left_over = 1 + lam * (c[a] - c[b])
            gain, shift = lam / left_over, (eta - lam * (mu[a] - mu[b])) / left_over
            mu = [mu[i] + shift * c[i] for i in range(k)]
            S = [[S[i][j] - gain * c[i] * c[j] for j in range(k)] for i in range(k)]
        mean = [float(mu[a] - mu[b]) for a, b in pairs]
        return np.array(mean), np.array([float(S[a][a] + S[b][b] - 2 * S[a][b]) for a, b in pairs])
