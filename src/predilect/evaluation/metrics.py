"""Accuracy, log loss, Brier score and calibration of predicted answers; Kendall's tau of predicted scores.

Measures of answers take ``outcome``, int of shape (n,) (+1 left, 0 tie, -1 right), ``log_proba`` of shape (n, 3) (left,
tie, right) and ``weight`` of shape (n,), answers a row stands for. They raise DataError if these do not fit. Nothing is
clipped: an outcome that was given probability 0 costs infinity.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit
from scipy.stats import kendalltau

from predilect._types import FloatArray, IntArray
from predilect.errors import DataError

N_BINS = 10
_COLUMN = np.array([2, 1, 0])  # of outcome -1, 0, +1 in (left, tie, right)


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


def accuracy(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Share of answers whose outcome is the likeliest of the three; equally likely ones share the credit."""
    y, logp, w = _checked(outcome, log_proba, weight)
    return float(np.average(credit_of(y, logp), weights=w))


def strict_accuracy(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Share of the answers other than ties whose winner is the likelier of the two items; NaN if all are ties."""
    y, logp, w = _checked(outcome, log_proba, weight)
    strict = y != 0
    if not strict.any():
        return float("nan")
    two = logp[strict].copy()
    two[:, 1] = -np.inf
    return float(np.average(credit_of(y[strict], two), weights=w[strict]))


def answer_losses(outcome: npt.ArrayLike, log_proba: npt.ArrayLike) -> FloatArray:
    """Log loss per answer in nats, shape (n,)."""
    y, logp, _ = _checked(outcome, log_proba, None)
    losses: FloatArray = -logp[np.arange(len(y)), _COLUMN[y + 1]]
    return losses


def log_loss(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Mean three-class log loss in nats an answer; the two-class one if ties have probability 0."""
    _, _, w = _checked(outcome, log_proba, weight)
    return float(np.average(answer_losses(outcome, log_proba), weights=w))


def brier(outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Three-class Brier score, 0 to 2; without ties it is twice the two-class score."""
    y, logp, w = _checked(outcome, log_proba, weight)
    error = np.exp(logp)
    error[np.arange(len(y)), _COLUMN[y + 1]] -= 1.0
    return float(np.average((error**2).sum(axis=1), weights=w))


def calibration_bins(
    outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> CalibrationBins:
    """Reliability diagram of predicted probabilities, for :func:`calibration_error` and plots."""
    y, logp, w = _checked(outcome, log_proba, weight)
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


def credit_of(y: IntArray, logp: FloatArray) -> FloatArray:
    """1 where the outcome alone is likeliest, 1/k where it is one of k that are equally likely, else 0."""
    best = logp == logp.max(axis=1, keepdims=True)
    credit: FloatArray = best[np.arange(len(y)), _COLUMN[y + 1]] / best.sum(axis=1)
    return credit


def _checked(
    outcome: npt.ArrayLike, log_proba: npt.ArrayLike, weight: npt.ArrayLike | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    y = np.asarray(outcome).astype(np.int64)
    logp = np.asarray(log_proba, dtype=float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    if logp.shape != (len(y), 3) or w.shape != y.shape or not len(y):
        raise DataError(
            f"expected n > 0 outcomes, log-probabilities of shape (n, 3) and n weights, got shapes {y.shape}, "
            f"{logp.shape} and {w.shape}."
        )
    if not np.isin(y, (-1, 0, 1)).all():
        raise DataError("outcomes must be 1 (left), 0 (tie) or -1 (right).")
    if np.isnan(logp).any() or (logp > 1e-9).any():
        raise DataError("log-probabilities must be at most 0 and not NaN. Were probabilities given instead?")
    return y, logp, w


_CELLS = 4_000_000  # resampled counts held at once


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference of two losses, its standard error and its 95 % interval.

    Attributes
    ----------
    mean : float
        Of a - b, in the unit of the losses, an answer; negative where a is better.
    standard_error : float
        From the spread between groups (answers of one person are not independent). NaN for a single group.
    lower, upper : float
        95 % interval from a bootstrap over groups, expanded as Student's t is for so few. NaN for a single group.
    n_groups : int
    """

    mean: float
    standard_error: float
    lower: float
    upper: float
    n_groups: int

    def to_dict(self) -> dict[str, float]:
        """As plain values, for JSON."""
        return asdict(self)


def paired_difference(
    losses_a: npt.ArrayLike,
    losses_b: npt.ArrayLike,
    groups: npt.ArrayLike,
    random_state: int | np.random.SeedSequence | np.random.Generator = 0,
    *,
    weight: npt.ArrayLike | None = None,
    n_resamples: int = 2000,
) -> PairedDifference:
    """Mean of ``losses_a - losses_b`` with a standard error and a bootstrap interval over groups.

    Parameters
    ----------
    losses_a, losses_b : arrays of float, shape (n,)
        Loss of each answer under two models.
    groups : array, shape (n,)
        Who gave it.
    random_state : int, SeedSequence or Generator
        Of the bootstrap.
    weight : array of float, shape (n,), optional
        Answers that each row stands for; 1 by default.
    n_resamples : int, default 2000

    Raises
    ------
    DataError
        If shapes differ, or a loss of either model is not finite (then the difference is not defined).

    Notes
    -----
    The mean is a ratio, Σ_g (sum of the group) / Σ_g (answers of the group); its standard error is the linearised one,
    sqrt(G/(G-1) Σ_g (d_g - n_g mean)²) / n. Resampled means spread too little by √((G-1)/G), and say nothing of how
    little is known of the spread itself: the distances of their quantiles from the mean are multiplied by √(G/(G-1))
    t/z, the 97.5 % quantiles of Student's t with G - 1 degrees of freedom and of the normal (Hesterberg 2015, expanded
    percentile interval): by 1.6 for five groups, 1.04 for fifty. O(n log n + groups x resamples) time.
    """
    a, b = np.asarray(losses_a, dtype=float), np.asarray(losses_b, dtype=float)
    w = np.ones(a.shape) if weight is None else np.asarray(weight, dtype=float)
    labels, code = np.unique(np.asarray(groups), return_inverse=True)
    if not a.shape == b.shape == w.shape == code.shape or a.ndim != 1 or not len(a):
        raise DataError(
            f"expected losses, groups and weights of one shape (n,), n > 0, got {a.shape}, {b.shape}, {code.shape} "
            f"and {w.shape}."
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("a loss is infinite or NaN: one of the models gave an outcome that happened probability 0.")
    n_groups = len(labels)
    sums: FloatArray = np.bincount(code, w * (a - b), n_groups).astype(float)
    counts: FloatArray = np.bincount(code, w, n_groups).astype(float)
    n = counts.sum()
    mean = float(sums.sum() / n)
    if n_groups < 2:
        return PairedDifference(mean, float("nan"), float("nan"), float("nan"), n_groups)
    spread = ((sums - counts * mean) ** 2).sum() * n_groups / (n_groups - 1)
    draws = _resampled(sums, counts, n_resamples, np.random.default_rng(random_state))
    expansion = np.sqrt(n_groups / (n_groups - 1)) * stdtrit(n_groups - 1, 0.975) / ndtri(0.975)
    lower, upper = mean + expansion * (np.quantile(draws, [0.025, 0.975]) - mean)
    return PairedDifference(mean, float(np.sqrt(spread) / n), float(lower), float(upper), n_groups)


def _resampled(sums: FloatArray, counts: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Means of groups drawn with replacement, shape (n_resamples,)."""
    n_groups = len(sums)
    share = np.full(n_groups, 1.0 / n_groups)
    block = max(1, _CELLS // n_groups)
    means = []
    for start in range(0, n_resamples, block):
        times = rng.multinomial(n_groups, share, size=min(block, n_resamples - start))
        means.append((times @ sums) / (times @ counts))
    return np.concatenate(means)
