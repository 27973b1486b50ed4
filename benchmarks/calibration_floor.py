"""How large a calibration error chance alone makes: what a perfect forecaster would be charged with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.metrics import N_BINS, bin_of, calibration_bins
from predilect.errors import DataError
from predilect.evaluation.metrics import credit_of

__all__ = ["CalibrationFloor", "calibration_floor"]

FloatArray = npt.NDArray[np.float64]

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CalibrationFloor:
    """Calibration error of these very probabilities if they were right.

    Attributes
    ----------
    mean, upper : float
        Its mean, and what it stays below in 95 of 100 cases.
    """

    mean: float
    upper: float


def calibration_floor(
    log_proba: npt.ArrayLike,
    answer: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    *,
    n_draws: int = 1000,
    random_state: int = 0,
) -> CalibrationFloor:
    """Distribution of the calibration error of a perfect forecaster, by drawing outcomes from the probabilities.

    Parameters
    ----------
    log_proba : array of float, shape (n, 3)
        Log-probabilities of left, tie, right, of one test set or of several together.
    answer : array, shape (n,), optional
        Names of the answers. Rows with the same name are one answer, in several test sets or weighed: they share their
        draw. By default every row is an answer of its own.
    weight : array of float, shape (n,), optional
        Answers that each row stands for. They count as one draw: identical answers of a person are hardly independent.
    n_draws : int, default 1000
        Parametric bootstrap samples.
    random_state : int, default 0

    Returns
    -------
    CalibrationFloor

    Raises
    ------
    DataError
        If shapes do not fit, or a row does not hold log-probabilities.

    Notes
    -----
    One uniform number an answer gives left, tie or right by the cumulative probabilities of each of its rows, so that
    two forecasts of one answer see one outcome, as far as they agree on it. Answers are taken for independent given the
    probabilities; those of one person, whose utilities are not known exactly, are not quite, which puts the true floor
    higher. O(n n_draws).
    """
    logp = np.asarray(log_proba, dtype=float)
    n = len(logp)
    name = np.arange(n) if answer is None else np.asarray(answer)
    if name.shape != (n,):
        raise DataError(f"expected the names of {n} answers, got an array of shape {name.shape}.")
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    n_in_all = calibration_bins(np.ones(n), logp, w).count.sum()  # checks what is given
    _, code = np.unique(name, return_inverse=True)
    until = np.cumsum(np.exp(logp), axis=1)[:, :2]
    confidence = np.exp(logp.max(axis=1))
    place = bin_of(confidence)
    credit = np.column_stack([credit_of(np.full(n, y), logp) for y in (1, 0, -1)])
    rows, n_answers = np.arange(n), int(code.max()) + 1
    rng = np.random.default_rng(random_state)
    found = np.empty(n_draws)
    for draw in range(n_draws):
        u = rng.random(n_answers)[code]
        right = credit[rows, (u >= until[:, 0]).astype(np.int64) + (u >= until[:, 1])]
        found[draw] = np.abs(np.bincount(place, w * (right - confidence), N_BINS)).sum() / n_in_all
    return CalibrationFloor(float(found.mean()), float(np.quantile(found, _LEVEL)))
