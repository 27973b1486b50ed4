"""The papers' likelihood of an answer: a number y in {0, ½, 1} about Φ(z) with a fixed variance, linearised in z."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

__all__ = ["FORMS", "answer_variances", "linearised_sites", "variance_of_probability"]

FloatArray = npt.NDArray[np.float64]

FORMS = ("corrected", "2020")


def variance_of_probability(margin_variance: FloatArray) -> FloatArray:
    """Var Φ(z) for z ~ N(0, V): arcsin(V/(1 + V))/(2π), crowdgppl.md 2.1 (the authors draw it by Monte Carlo)."""
    return np.asarray(np.arcsin(margin_variance / (1.0 + margin_variance)) / (2.0 * math.pi))


def answer_variances(outcome: npt.NDArray[np.generic], margin_variance: FloatArray, form: str) -> FloatArray:
    """Q, the expected variance of an answer whose probability has a Beta prior that matches Φ(z), z ~ N(0, V).

    Parameters
    ----------
    outcome : array of int, shape (n,)
        +1, 0 or -1; a tie counts as half an answer for either side.
    margin_variance : array of float, shape (n,)
        V, the prior variance of the margin.
    form : {"corrected", "2020"}
        AB/(n(n + 1)), or the article's and the code's AB/n², where A, B are the parameters of the Beta posterior and
        n = A + B.

    Notes
    -----
    crowdgppl.md 2.1, eq. 9; the preprint prints AB/n less a term, which may exceed ¼.
    """
    gamma = 0.5 * (0.25 / variance_of_probability(margin_variance) - 1.0)
    y = 0.5 * (1.0 + np.asarray(outcome, dtype=float))
    n = 2.0 * gamma + 1.0
    product = (gamma + y) * (gamma + 1.0 - y)
    return np.asarray(product / (n * (n + 1.0) if form == "corrected" else n * n))


def linearised_sites(
    outcome: npt.NDArray[np.generic], margin: FloatArray, Q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision and linear term of an answer in z, about its present mean margin.

    Notes
    -----
    crowdgppl.md 2.1: y ~ N(Φ(ẑ) + φ(ẑ)(z - ẑ), Q). **Differs from the paper**: the derivative is φ(ẑ), where eqs. 11
    and 25 print that of the logistic function times 2y - 1.
    """
    slope = np.exp(-0.5 * margin * margin) / math.sqrt(2.0 * math.pi)
    precision = slope * slope / Q
    error = 0.5 * (1.0 + np.asarray(outcome, dtype=float)) - ndtr(margin)
    return precision, precision * margin + slope * error / Q
