"""Brier score and calibration of predicted answers, Kendall's tau of predicted scores, and the tie-share baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from predilect._base.types import FloatArray, IntArray
from predilect.errors import DataError
from predilect.evaluation.metrics import COLUMN, checked, credit_of

N_BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationBins:
    """Reliability diagram: sums over answers by the probability of their likeliest outcome, in ten bins of (0, 1].

    Arrays have shape (10,): number of answers; sum of the probabilities of their likeliest outcomes; number that had
    that outcome. Bins of different test sets are pooled by ``+``.
    """

    count: FloatArray
    confidence: FloatArray
    correct: FloatArray

    def __add__(self, other: CalibrationBins) -> CalibrationBins:
        return CalibrationBins(
            self.count + other.count, self.confidence + other.confidence, self.correct + other.correct
        )


def strict_accuracy(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Share of the answers other than ties whose winner is the likelier of the two items; NaN if all are ties."""
    y, logp, w = checked(outcome, log_proba, weight)
    strict = y != 0
    if not strict.any():
        return float("nan")
    two = logp[strict].copy()
    two[:, 1] = -np.inf
    return float(np.average(credit_of(y[strict], two), weights=w[strict]))


def brier(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Three-class Brier score, 0 to 2; without ties it is twice the two-class score."""
    y, logp, w = checked(outcome, log_proba, weight)
    error = np.exp(logp)
    error[np.arange(len(y)), COLUMN[y + 1]] -= 1.0
    return float(np.average((error**2).sum(axis=1), weights=w))


def calibration_bins(
    outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> CalibrationBins:
    """Reliability diagram of predicted probabilities, for :func:`calibration_error` and plots."""
    y, logp, w = checked(outcome, log_proba, weight)
    confidence = np.exp(logp.max(axis=1))
    place = bin_of(confidence)
    count, sum_confidence, correct = (
        np.bincount(place, w * value, N_BINS).astype(float)
        for value in (np.ones_like(confidence), confidence, credit_of(y, logp))
    )
    return CalibrationBins(count, sum_confidence, correct)


def bin_of(confidence: FloatArray) -> IntArray:
    """Bin of each probability, shape (n,)."""
    # A bin is open below and closed above; the small step back keeps .7 (held as .7000000000000001) in (.6, .7].
    return np.clip(np.ceil(confidence * N_BINS - 1e-9).astype(np.int64) - 1, 0, N_BINS - 1)


def calibration_error(bins: CalibrationBins) -> float:
    """Expected calibration error: mean over answers of |share right - mean probability| of their bin.

    Noise alone makes it positive, the more so the fewer answers: pool the bins of several test sets before judging.
    """
    return float(np.abs(bins.correct - bins.confidence).sum() / bins.count.sum())


def tie_share_log_proba(train_outcome: npt.ArrayLike, train_weight: npt.ArrayLike | None = None) -> FloatArray:
    """Log-probabilities (left, tie, right) of the tie-share baseline, shape (3,)."""
    tied = np.asarray(train_outcome) == 0
    weight = np.ones(len(tied)) if train_weight is None else np.asarray(train_weight, dtype=float)
    share = float(np.average(tied, weights=weight))
    with np.errstate(divide="ignore"):
        log_proba: FloatArray = np.log(np.array([(1.0 - share) / 2.0, share, (1.0 - share) / 2.0]))
    return log_proba


def kendall_tau_per_person(predicted: npt.ArrayLike, gold: npt.ArrayLike, person: npt.ArrayLike) -> float:
    """Mean over people of Kendall's tau-b between predicted and true scores; arrays have one entry a (person, item).

    Constant predictions count as 0; people whose true scores are all equal, or who have one item, are left out. NaN if
    nobody remains.
    """
    predicted, gold, starts = _sorted_by(person, predicted, gold)
    taus = [_tau(p, g) for p, g in zip(np.split(predicted, starts), np.split(gold, starts), strict=True)]
    known = [tau for tau in taus if tau is not None]
    return float(np.mean(known)) if known else float("nan")


def kendall_tau_pooled(predicted: npt.ArrayLike, gold: npt.ArrayLike, person: npt.ArrayLike) -> float:
    """Pooled Kendall's tau-b over all entries of all people, each person's predicted scores centred first.

    ``gold`` must be on one scale for everybody (ranks, say). crowdGPPL's tables hold this one. Only differences of
    utilities are identified, hence the centring.
    """
    predicted, gold, starts = _sorted_by(person, predicted, gold)
    sizes = np.diff(np.r_[0, starts, len(predicted)])
    means = np.add.reduceat(predicted, np.r_[0, starts]) / sizes
    tau = _tau(predicted - np.repeat(means, sizes), gold)
    return float("nan") if tau is None else tau


def _tau(predicted: FloatArray, gold: FloatArray) -> float | None:
    if np.ptp(gold) == 0:
        return None
    if np.ptp(predicted) == 0:
        return 0.0
    return float(kendalltau(predicted, gold).statistic)


def _sorted_by(
    person: npt.ArrayLike, predicted: npt.ArrayLike, gold: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Both scores sorted by person, and where each person but the first starts."""
    _, code = np.unique(np.asarray(person), return_inverse=True)
    p, g = np.asarray(predicted, dtype=float), np.asarray(gold, dtype=float)
    if not len(code) == len(p) == len(g) > 0:
        raise DataError(f"need as many scores as people's entries, got {len(p)} and {len(g)} for {len(code)}.")
    if not (np.isfinite(p).all() and np.isfinite(g).all()):
        raise DataError("scores must be finite. Leave out items without one.")
    order = np.argsort(code, kind="stable")
    return p[order], g[order], np.flatnonzero(np.diff(code[order])) + 1
