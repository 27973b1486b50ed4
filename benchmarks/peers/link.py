"""From a peer's margin to probabilities of left, tie and right.

P(left) = F(s z - d), P(right) = F(-s z - d) and a tie is the rest (Rao and Kupper 1967 for the logistic F). Most peers
know no ties, and some give scores that are no log-odds: both get the same link, fitted on held-out training answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_expit, log_ndtr

__all__ = ["Link", "fit_link"]

FloatArray = npt.NDArray[np.float64]

_LEAST_THRESHOLD = 1e-6  # at 0 a tie would be impossible


@dataclass(frozen=True, slots=True)
class Link:
    """A link from margins to probabilities.

    Attributes
    ----------
    scale, threshold : float
        s and d; a threshold of 0 says that there are no ties.
    normal : bool
        Whether F is Φ rather than the logistic function.
    """

    scale: float = 1.0
    threshold: float = 0.0
    normal: bool = False

    def log_proba(self, margin: npt.ArrayLike) -> FloatArray:
        """Log-probabilities of left, tie and right, shape (n, 3)."""
        z, d = self.scale * np.asarray(margin, dtype=float), self.threshold
        log_f = log_ndtr if self.normal else log_expit
        left, right = log_f(z - d), log_f(-z - d)
        if d == 0.0:
            tie = np.full(len(z), -np.inf)
        elif self.normal:
            # F(z + d) - F(z - d) is even in z: on the side where both are small, nothing cancels.
            upper, lower = log_ndtr(d - np.abs(z)), log_ndtr(-d - np.abs(z))
            tie = upper + np.log(-np.expm1(lower - upper))
        else:
            tie = np.log(np.expm1(2.0 * d)) + left + right
        return np.column_stack([left, tie, right])


def fit_link(
    margin: npt.ArrayLike,
    outcome: npt.ArrayLike,
    weight: npt.ArrayLike,
    *,
    normal: bool = False,
    ties: bool = False,
) -> tuple[Link, float]:
    """The link with the smallest log loss on some answers, and that loss in nats an answer.

    Parameters
    ----------
    margin : array of float, shape (n,)
        Of answers that the margins were not fitted to.
    outcome, weight : arrays, shape (n,)
        +1 left, 0 tie, -1 right; how many answers a row stands for.
    normal : bool, default False
        See :class:`Link`.
    ties : bool, default False
        Fit d; otherwise it is 0.

    Notes
    -----
    The loss is convex in (s, d) where log F is concave. s cannot be negative: margins that are worth nothing become
    coin flips.
    """
    z, y = np.asarray(margin, dtype=float), np.asarray(outcome)
    w = np.asarray(weight, dtype=float)
    spread = float(np.sqrt(np.average(z**2, weights=w))) or 1.0
    column = (1 - y).astype(np.intp)
    rows = np.arange(len(z))

    def link(x: FloatArray) -> Link:
        return Link(float(x[0]) / spread, float(x[1]) if ties else 0.0, normal)

    def loss(x: FloatArray) -> float:
        return -float(np.average(link(x).log_proba(z)[rows, column], weights=w))

    start: list[float] = [1.0]
    bounds: list[tuple[float, None]] = [(0.0, None)]
    if ties:
        share = float(np.average(y == 0, weights=w))
        start.append(np.arctanh(min(max(share, 1e-3), 0.999)) * (0.6 if normal else 2.0))
        bounds.append((_LEAST_THRESHOLD, None))
    found = minimize(loss, np.array(start), method="L-BFGS-B", bounds=bounds)
    return link(found.x), float(found.fun)
