"""The risks of Table 1 of the valuable vector machine as they are, not in logarithms: what scores must order alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from predilect.papers.compression.criteria import log_improvement

FloatArray = npt.NDArray[np.float64]


def improvement_risk(mean: FloatArray, var: FloatArray, best: npt.ArrayLike) -> FloatArray:
    """E[-(f - best)+] = -σ (c Φ(c) + φ(c)) with c = (mean - best)/σ: minus the value of information.

    Parameters
    ----------
    mean, var : arrays of float
    best : array-like of float
        What f has to exceed, to be worth something.

    Notes
    -----
    vvm.md 3. **Differs from the paper**, whose Table 1 prints it without the minus sign while it minimises.
    """
    sigma = np.sqrt(np.asarray(var, dtype=np.float64))
    gap = np.asarray(mean, dtype=np.float64) - np.asarray(best, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        c = gap / sigma
    tail = -np.exp(log_improvement(mean, var, best))
    with np.errstate(invalid="ignore"):
        near = -sigma * (c * ndtr(c) + np.exp(-0.5 * c * c) / np.sqrt(2.0 * np.pi))
    return np.where(sigma > 0.0, np.where(c > 0.0, near, tail), -np.maximum(gap, 0.0))


def exponential_risk(mean: FloatArray, var: FloatArray, beta: float = 1.0) -> FloatArray:
    """E[-exp(β f)] = -exp(β mean + β² var / 2).

    Notes
    -----
    vvm.md 3. **Differs from the paper**, whose Table 1 prints it without the minus sign.
    """
    return -np.exp(beta * mean + 0.5 * beta**2 * var)
