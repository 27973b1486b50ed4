"""The information in an answer (BALD) by quadrature, and as the paper and its released code have it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect.decisions.information import _entropy_at, _expected_by_quadrature

FloatArray = npt.NDArray[np.float64]

C2 = 0.5 * math.pi * math.log(2.0)  # C² of eq. 11: one Gaussian of that variance, largest error 0.0027


def answer_entropy(mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
    """Entropy of the answer in bits, the criterion of maximum entropy search: at most 1, with ties log2(3).

    Notes
    -----
    collaborative.md section 5, first term. Relative error of a few ulps up to |mean| / sqrt(1 + var) = 37, where the
    entropy leaves the range of floating-point numbers, and 0 from there.
    """
    s = np.sqrt(1.0 + np.asarray(var, dtype=float))
    return _entropy_at(np.asarray(mean, dtype=float) / s, np.asarray(delta, dtype=float) / s)


def bald_by_quadrature(mean: npt.ArrayLike, var: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> FloatArray:
    """The same information by quadrature, to 1e-14 bits; parameters as :func:`answer_entropy`.

    Notes
    -----
    Trapezoids on 160 nodes and more about where density times entropy is large, so that wide margins (var = 50) and
    settled ones (mean = 40) are as exact as others. 10 µs a margin.
    """
    mean, var, delta = (np.asarray(part, dtype=float) for part in (mean, var, delta))
    return answer_entropy(mean, var, delta) - _expected_by_quadrature(mean, var, delta)


def bald_corrected(mean: npt.ArrayLike, var: npt.ArrayLike) -> FloatArray:
    """Eq. 11 of the paper with its units right: within 0.003 bits, and as far below 0; without ties. Shape (n,)."""
    mean, var = np.asarray(mean, dtype=float), np.asarray(var, dtype=float)
    second = np.sqrt(C2 / (C2 + var)) * np.exp(-0.5 * mean * mean / (C2 + var))
    return answer_entropy(mean, var) - second


def bald_released_code(mean: npt.ArrayLike, var: npt.ArrayLike) -> FloatArray:
    """What the authors' released scripts maximise: nats less bits, and C / (sqrt(v) + C²); without ties. Shape (n,).

    Notes
    -----
    collaborative.md section 5. Only to repeat their experiments: not an amount of information.
    """
    mean, var = np.asarray(mean, dtype=float), np.asarray(var, dtype=float)
    second = math.sqrt(C2) / (np.sqrt(var) + C2) * np.exp(-0.5 * mean * mean / (var + C2))
    return np.asarray(answer_entropy(mean, var) * math.log(2.0) - second)
