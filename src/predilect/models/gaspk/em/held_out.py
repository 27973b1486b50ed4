"""Held-out answers: how sure predictions may be, and the trials that choose a prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from predilect._types import FloatArray, IntArray
from predilect.gaussian.kernels import Kernel
from predilect.likelihoods.probit import tilted
from predilect.models.gaspk.em.answers import TradeOffAnswers
from predilect.models.gaspk.em.fit import EM, Settings, run, weights_to_start
from predilect.models.gaspk.em.mode import curvature_at
from predilect.models.gaspk.posterior.curvature import in_parts
from predilect.models.gaspk.posterior.grid import GridBasis
from predilect.models.gaspk.posterior.low_rank import LowRank
from predilect.models.gaspk.posterior.scores import Basis, mixed
from predilect.models.gaspk.posterior.solver import ByProducts

_WIDEST = math.log(100.0)
_RATE = 1.0  # of an exponential prior of log T²: a handful of answers must not widen everything
_TOLERANCE = 1e-3
_NUMBERS_AT_ONCE = 20_000_000


def held_out_margins(
    found: EM, answers: TradeOffAnswers, n_eigenpairs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n,) of the margins of answers at the points of a fit.

    Where a curvature on a grid is not factorised, ``n_eigenpairs`` gives variances from so many eigenpairs of each
    characteristic, as predictions do: 1 500 solutions of equations took 100 s where these take one. None is exact.
    """
    gamma, basis = found.gamma[answers.user], found.mode.state.basis
    mean = np.einsum("ic,ic->i", gamma, found.mode.F[answers.point])
    curvature = curvature_at(found.mode.state)
    if n_eigenpairs is not None and isinstance(curvature, ByProducts) and isinstance(basis, GridBasis):
        points, code = np.unique(answers.point, return_inverse=True)
        low_rank = LowRank.of(basis, found.mode.state.B, n_eigenpairs)
        return mean, low_rank.variances(basis.trade_offs(basis.places[points]), gamma, code)[0]
    var = np.empty(answers.n_rows)
    for some in in_parts(answers.n_rows, basis.rank, _NUMBERS_AT_ONCE):
        var[some] = curvature.variances(_rows(basis, answers.point[some]), gamma[some])
    return mean, var


def variances_by_weights(found: EM, answers: TradeOffAnswers) -> FloatArray:
    """Variance (n,) of the margins of answers by what is left open of people's weights; 0 without a prior of them."""
    if found.left_open is None:
        return np.zeros(answers.n_rows)
    # Σ F_c C_cd F_d is a mixture of the people's covariances by the characteristics at the trade-offs.
    return mixed(answers.point, answers.user, found.mode.F, found.gamma, found.left_open)[1]


def _rows(basis: Basis, points: IntArray) -> FloatArray:
    """Rows of Φ, without ever forming all of it on a large grid."""
    if isinstance(basis, GridBasis) and basis.Phi is None:
        return basis.at(basis.places[points])
    return basis.dense()[points]


def spread_factor(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float
) -> float:
    """Calibration of Φ(mean / (T √(1 + var))) on held-out answers: mode of T² ≥ 1 under an exponential prior of log T².

    Characteristics and weights are fitted to each other, and weights are then taken as known: margins come out too
    sure. Two passes over the answers where a little wider is worse, else some 20. Without ties the loss has one
    minimum in T: with x the standardised margin, the slope along log T of an answer foretold rightly falls no faster
    than 1/T, that of one foretold wrongly no slower, so that their sum changes its sign once.
    """

    def loss(log_factor: float) -> float:
        wider = math.exp(log_factor) * (1.0 + var) - 1.0
        return float(-weight @ tilted(outcome, mean, wider, delta)[0])

    return _likeliest_factor(loss)


def _likeliest_factor(loss: Callable[[float], float]) -> float:
    """The factor from 1 up whose logarithm has the least ``loss`` (nats), the exponential prior included."""

    def penalised(log_factor: float) -> float:
        return loss(log_factor) + _RATE * log_factor

    least = penalised(0.0)
    if penalised(_TOLERANCE) >= least:
        return 1.0
    found = minimize_scalar(penalised, bounds=(0.0, _WIDEST), method="bounded", options={"xatol": _TOLERANCE})
    return math.exp(float(found.x)) if found.fun < least else 1.0


def log_loss(
    outcome: npt.NDArray[np.int8], mean: FloatArray, var: FloatArray, weight: FloatArray, delta: float, spread: float
) -> float:
    """Mean log loss in nats an answer, with 1 + var multiplied by T²."""
    value = tilted(outcome, mean, spread * (1.0 + var) - 1.0, delta)[0]
    return float(-(weight @ value) / weight.sum())


def _answers_of_people(answers: TradeOffAnswers) -> FloatArray:
    """How many answers each of the people gave, (n_users,)."""
    return np.asarray(np.bincount(answers.user, answers.weight, answers.n_users), dtype=np.float64)


_SHARES = (1.0, 0.5, 0.25)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Variances of held-out margins: T² (1 + v + s w), for v of the characteristics and w of the weights, is 1 + them.

    The conditional variances v and w count twice what answers leave open of both at once, hence the share s. For
    people with fewer answers than those who were held out had, v is multiplied by κ^(1 - n/usual).
    """

    spread: float = 1.0  # T² ≥ 1
    open_share: float = 1.0  # s, up to 1
    newcomer_factor: float = 1.0  # κ ≥ 1
    usual: float = 0.0  # answers known of the person of an answer held out, on average

    def factors(self, n_answers: FloatArray) -> FloatArray:
        """Factors of v for people of whom ``n_answers`` (n,) are known."""
        missing = 1.0 - n_answers / self.usual if self.usual > 0.0 else np.zeros(len(n_answers))
        return np.asarray(self.newcomer_factor ** np.maximum(missing, 0.0))

    def factors_of(self, answers: TradeOffAnswers) -> FloatArray | None:
        """Those of all people, and last of an unseen one, 1; (n_users + 1,), or None where all are 1."""
        if self.newcomer_factor == 1.0:
            return None
        return np.append(self.factors(_answers_of_people(answers)), 1.0)


def calibrated(out: HeldOut) -> tuple[Calibration, float]:
    """The calibration of held-out answers, and its log loss; s is 1, a half or a quarter, 1/s with the prior of T²."""
    best: tuple[float, Calibration, float] | None = None
    for share in (1.0,) if out.by_weights is None else _SHARES:
        total = out.var if out.by_weights is None else out.var + share * out.by_weights
        spread = spread_factor(out.outcome, out.mean, total, out.weight, out.delta)
        loss = log_loss(out.outcome, out.mean, total, out.weight, out.delta, spread)
        penalised = loss * float(out.weight.sum()) + _RATE * (math.log(spread) - math.log(share))
        if best is None or penalised < best[0]:
            best = penalised, Calibration(spread, share), loss
    assert best is not None
    return best[1:]


def with_newcomers(calibration: Calibration, held_out: HeldOut, newcomers: HeldOut) -> Calibration:
    """The calibration with κ by answers held out of newcomers, and those of others, who must not lose by it."""
    found = replace(calibration, usual=float(np.average(held_out.n_known, weights=held_out.weight)))

    def loss(log_factor: float) -> float:
        trial, total = replace(found, newcomer_factor=math.exp(log_factor)), 0.0
        for some in (newcomers, held_out):
            var = trial.factors(some.n_known) * some.var
            var += 0.0 if some.by_weights is None else trial.open_share * some.by_weights
            wider = trial.spread * (1.0 + var) - 1.0
            total -= float(some.weight @ tilted(some.outcome, some.mean, wider, some.delta)[0])
        return total

    return replace(found, newcomer_factor=_likeliest_factor(loss))


_TRIAL_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel of the characteristics, their number, and α of the prior of people's weights."""

    kernel: Kernel
    n_c: int
    concentration: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Answers held out, and what fits without them say of their margins; (n,) each."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    var: FloatArray  # by the characteristics
    by_weights: FloatArray | None  # by what is left open of weights; None without a prior of them
    weight: FloatArray
    n_known: FloatArray  # answers known of the person
    delta: float  # tie threshold


@dataclass(frozen=True, slots=True)
class Trial:
    """Held-out log loss of a candidate (nats an answer), at its calibration."""

    candidate: Candidate
    log_loss: float
    calibration: Calibration
    held_out: HeldOut | None = None  # None if nothing could be held out


Folds = Sequence[tuple[TradeOffAnswers, TradeOffAnswers]]


def judged(candidate: Candidate, out: HeldOut) -> Trial:
    """Log loss of a candidate by answers held out of its fits.

    The evidence takes weights as known, and prefers amplitudes that fit them too well: on choices among cars it rises
    to an amplitude of 155, where held-out answers have a log loss of .30, against .25 at 20.
    """
    calibration, loss = calibrated(out)
    return Trial(candidate, loss, calibration, out)


def predict_held_out(
    candidate: Candidate,
    basis: Basis,
    folds: Folds,
    settings: Settings,
    *,
    delta: float | None,
    random_state: int,
    n_eigenpairs: int | None = None,
    executor: ThreadPoolExecutor | None = None,
    begin: Sequence[FloatArray] | None = None,
) -> tuple[HeldOut, list[FloatArray]]:
    """Margins of the answers held out of each of ``folds`` of (kept, held out); at most 6 rounds each.

    Also the weights of each fold, from which a similar candidate may ``begin``.
    """
    short = replace(settings, max_rounds=min(settings.max_rounds, _TRIAL_ROUNDS), concentration=candidate.concentration)
    said, columns, deltas, weights = [], [], [], []
    for number, (kept, out) in enumerate(folds):
        if begin is None:
            gamma = weights_to_start(basis, kept, candidate.n_c, short, delta, random_state, 0)
        else:
            gamma = begin[number]
        found = run(
            basis, kept, gamma, short, delta=delta, executor=executor, random_state=random_state, with_evidence=False
        )
        said.append(out.outcome)
        n_known = _answers_of_people(kept)[out.user]
        columns.append(
            (*held_out_margins(found, out, n_eigenpairs), variances_by_weights(found, out), out.weight, n_known)
        )
        deltas.append(found.delta)
        weights.append(found.gamma)
    mean, var, by_weights, weight, n_known = map(np.concatenate, zip(*columns, strict=True))
    uncertain = by_weights if candidate.concentration > 0.0 and candidate.n_c > 1 else None
    threshold = float(np.mean(deltas))
    return HeldOut(np.concatenate(said), mean, var, uncertain, weight, n_known, threshold), weights


def search(judge: Callable[[int, int], float], sizes: tuple[int, int], start: tuple[int, int]) -> tuple[int, int]:
    """The place on a table of losses from which no step along a row or a column goes down; places are judged once."""
    known: dict[tuple[int, int], float] = {}

    def loss(place: tuple[int, int]) -> float:
        if not all(0 <= k < n for k, n in zip(place, sizes, strict=True)):
            return math.inf
        if place not in known:
            known[place] = judge(*place)
        return known[place]

    best, stayed, axis = start, 0, 0
    while stayed < 2:
        before = best
        for by in (1, -1):
            while loss(step := (best[0] + by, best[1]) if axis == 0 else (best[0], best[1] + by)) < loss(best):
                best = step
        axis, stayed = 1 - axis, stayed + 1 if best == before else 0
    return best


def widest(
    judge: Callable[[int, int], float], sizes: tuple[int, int], best: tuple[int, int], worth: float
) -> tuple[int, int]:
    """From the best place as far down the rows and then back along the columns as costs at most ``worth``.

    Rows are prior variances and columns how alike people are. A few hundred answers hardly tell these apart, and
    predictions know nothing of that: with the smallest of several that do as well intervals were too narrow.
    """
    least = judge(*best)
    for by in ((1, 0), (0, -1)):
        row, column = best
        while (column := column + by[1]) >= 0 and (row := row + by[0]) < sizes[0]:
            loss = judge(row, column)
            if loss > least + worth:
                break
            best, least = (row, column), min(least, loss)
    return best
