"""How sure predictions may be: the calibration of held-out answers. docs/math/gaspk.md section 2."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray
from predilect.inference.latent.held_out import likeliest_factor, log_loss, log_prior
from predilect.inference.likelihoods.probit import tilted
from predilect.papers.gaspk.em.answers import TradeOffAnswers

_SHARES = (1.0, 0.5, 0.25)


@dataclass(frozen=True, slots=True)
class MarginCalibration:
    """Variances of held-out margins: T² (1 + v + s w), for v of the characteristics and w of the weights, is 1 + them.

    The conditional variances v and w count twice what answers leave open of both at once, hence the share s. For
    people with fewer answers than those who were held out had, v is multiplied by κ^(1 - n/usual).
    """

    spread: float = 1.0  # T² ≥ 1
    open_share: float = 1.0  # s, up to 1
    newcomer_factor: float = 1.0  # κ ≥ 1
    usual: float = 0.0  # answers known of the person of an answer held out, on average

    def factors(self, n_answers: FloatArray) -> FloatArray:
        """Factors of v, shape (n,), one a person; ``n_answers`` (n,) counts the answers known of each."""
        missing = 1.0 - n_answers / self.usual if self.usual > 0.0 else np.zeros(len(n_answers))
        return np.asarray(self.newcomer_factor ** np.maximum(missing, 0.0))

    def factors_of(self, answers: TradeOffAnswers) -> FloatArray | None:
        """Those of all people, and last of an unseen one, 1; (n_users + 1,), or None where all are 1."""
        if self.newcomer_factor == 1.0:
            return None
        return np.append(self.factors(answers.per_person), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutMargins:
    """Answers held out, and what fits without them say of their margins; (n,) each."""

    outcome: npt.NDArray[np.int8]
    mean: FloatArray
    var: FloatArray  # by the characteristics
    by_weights: FloatArray | None  # by what is left open of weights; None without a prior of them
    weight: FloatArray
    n_known: FloatArray  # answers known of the person
    delta: float  # tie threshold

    def total(self, calibration: MarginCalibration) -> FloatArray:
        """V of the characteristics and s w of the weights, before T²."""
        var = calibration.factors(self.n_known) * self.var
        return var if self.by_weights is None else var + calibration.open_share * self.by_weights


def calibrated(out: HeldOutMargins) -> tuple[MarginCalibration, float]:
    """The calibration of held-out answers, and its log loss; s is 1, a half or a quarter, 1/s with the prior of T²."""
    best: tuple[float, MarginCalibration, float] | None = None
    for share in (1.0,) if out.by_weights is None else _SHARES:
        total = out.total(MarginCalibration(open_share=share))
        spread = spread_factor(out.outcome, out.mean, total, out.weight, out.delta)
        loss = log_loss(out.outcome, out.mean, spread * (1.0 + total) - 1.0, out.weight, out.delta)
        penalised = loss * float(out.weight.sum()) + log_prior(math.log(spread) - math.log(share))
        if best is None or penalised < best[0]:
            best = penalised, MarginCalibration(spread, share), loss
    assert best is not None
    return best[1:]


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

    return likeliest_factor(loss)


def with_newcomers(
    calibration: MarginCalibration, held_out: HeldOutMargins, newcomers: HeldOutMargins
) -> MarginCalibration:
    """The calibration with κ by answers held out of newcomers, and those of others, who must not lose by it."""
    found = replace(calibration, usual=float(np.average(held_out.n_known, weights=held_out.weight)))

    def loss(log_factor: float) -> float:
        trial, total = replace(found, newcomer_factor=math.exp(log_factor)), 0.0
        for some in (newcomers, held_out):
            wider = trial.spread * (1.0 + some.total(trial)) - 1.0
            total -= float(some.weight @ tilted(some.outcome, some.mean, wider, some.delta)[0])
        return total

    return replace(found, newcomer_factor=likeliest_factor(loss))
