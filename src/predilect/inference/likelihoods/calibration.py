"""Calibration: probabilities of answers from the mean and variance of their margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect._base.arguments import check_number
from predilect._base.json import plain, typed
from predilect._base.stored import Value
from predilect._base.types import BoolArray, FloatArray
from predilect.inference.likelihoods.probit import outcome_log_probabilities
from predilect.inference.likelihoods.special import Z_95
from predilect.inference.likelihoods.views import PairLikelihood, Probit

# Variance of the noise of an answer given with little care, in units of the fit's: five times its standard deviation.
# Learned, it gained nothing on any data set.
LAPSE_NOISE = 25.0
_FEW_LAPSES, _UNSURE_UNIT = 0.005, 0.05  # of which something is said
# Powers of the ratio R by the kind of a pair: with 0, 1 and 2 items without an answer, and implied by answers.
POWERS = np.array([0.0, 0.25, 1.0, -6.0])
_WIDER = 1.2  # a factor of a person's variances below it is left out
# Smallest and largest value of each number.
RANGES = {
    "variance_factor": (0.0, 1e100),
    "unseen_ratio": (1.0, 1e6),
    "newcomer_factor": (0.0, 1e100),
    "newcomer_weight": (0.0, 1.0),
    "lapse_rate": (0.0, 0.5),
    "omitted_ties": (0.0, 1e6),
    "consistency_spread": (0.0, 3.0),  # whose noise differs by factors of hundreds has none, or nothing else
    "click_rate": (0.0, 0.99),
    "unit": (1e-100, 1e100),
    "unit_sd": (0.0, 1e100),
    "tie_spread": (0.0, 10.0),  # a threshold e¹⁰ times the crowd's is never, or always, reached
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of the probabilities of answers: what they take in place of the posterior's margins.

    A margin has the mean E z and the variance κ Var z. A share λ of the answers is given with little care, by noise
    of variance 25, the others by noise of variance 1. ``Calibration()`` is none.

    Parameters
    ----------
    variance_factor : float, default 1
        κ: smaller than 1 where people are easier to predict than the posterior has it, larger where its point estimate
        of the population is overconfident.
    unseen_ratio : float, default 1
        R, from 1: two items on which the person has no answer take R κ, and a pair with one such item R^¼ κ; an answer
        that follows from others of the person by transitivity, where a tie is level, takes κ / R⁶.
    newcomer_factor : float, default 1
        κ_n, by which all of these are multiplied for a newcomer: somebody unknown, without answers, or who came after
        the fit (``update``), so that the population was learned without them.
    newcomer_weight : float, default 0
        w, from 0 to 1: how far the mean of newcomers' utilities goes from the consensus, in which people count equally,
        to that at which the answers of the fit, each counted once, are likeliest as answers of strangers. It moves
        their boards and questions too, and takes effect in a fit.
    lapse_rate : float, default 0
        λ, from 0 to .5.
    omitted_ties : float, default 0
        δ_0, the tie threshold of data that leave ties out, as pairs of unequal ratings do, in units of the noise: an
        answer takes the probability of its side over that of either side, and the best of a set leads all others by as
        much. Of no effect where ties are answers. Where it is learned κ = 1: of the two, held-out answers choose one.
    tie_spread, consistency_spread, click_rate : float, default 0
        σ_δ of the thresholds and σ_a of the consistency of unseen people, and the chance that one of them clicks at
        random, which a fitted model sets: they are arguments of the model.
    unit : float, default 1
        Consistency of the median person, by which a fitted model has multiplied utilities; unseen people have 1 / it.
    unit_sd : float, default 0
        How unsure a fitted model is of the noise in which the crowd's utilities are told: sd of a factor of them all.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """

    variance_factor: float = 1.0
    unseen_ratio: float = 1.0
    lapse_rate: float = 0.0
    newcomer_factor: float = 1.0
    newcomer_weight: float = 0.0
    tie_spread: float = 0.0
    consistency_spread: float = 0.0
    omitted_ties: float = 0.0
    click_rate: float = 0.0
    unit: float = 1.0
    unit_sd: float = 0.0

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            check_number(name, value, low=low, high=high)
            object.__setattr__(self, name, float(value))

    def describe(self, delta: float) -> list[str]:
        """What probabilities and intervals take besides the margins, in sentences; ``delta`` is the tie threshold."""
        lines = []
        if self.lapse_rate >= _FEW_LAPSES:
            lines.append(
                f"Predicted probabilities take {100 * self.lapse_rate:.0f} % of the answers for ones given with little "
                f"care, by {math.sqrt(LAPSE_NOISE):.0f} times the noise, as held-out answers ask for."
            )
        if self.omitted_ties and not delta:
            lines.append(
                "Predicted probabilities reckon that ties were left out of the answers, as held-out answers ask for: "
                f"they are of a side, given that one side leads by {self.omitted_ties:.3g} times the noise."
            )
        if self.unit_sd >= _UNSURE_UNIT:
            lines.append(
                "All scores of the crowd may be larger or smaller by one factor, within "
                f"{100 * Z_95 * self.unit_sd:.0f} % with probability .95: few answers hardly tell tastes from noise. "
                "Intervals of scores allow for it; no order and no chance depends on it."
            )
        return lines

    @property
    def depends_on_pair(self) -> bool:
        """Whether it depends on how a pair stands to its person's answers."""
        return self.unseen_ratio != 1.0 or self.newcomer_factor != 1.0

    def widening(self, unseen: FloatArray, newcomer: BoolArray) -> FloatArray:
        """Factors of the variances of people's utilities in boards and questions, (n,): those of margins, above 1.2.

        ``unseen``: share of the items without an answer, of which a pair has none, one or two; ``newcomer``: whether
        the population was learned without them. A factor below 1 is none: it may stand for tastes that no Gaussian has,
        as well as for variances that are too large; so may δ_0, with which the others say which variances are
        larger, and not how large they are.
        """
        if self.omitted_ties:
            return np.ones(len(unseen))
        power = 2.0 * unseen * (1.0 - unseen) * POWERS[1] + unseen * unseen * POWERS[2]
        of_known = self.variance_factor * self.unseen_ratio**power
        factor = np.where(newcomer, self.newcomer_factor * of_known, of_known)
        return np.where(factor > _WIDER, factor, 1.0)

    def components(self, var: FloatArray, kind: npt.ArrayLike = 0) -> list[tuple[float, FloatArray, float]]:
        """Mixture components: shares, variances (n,) of the margins and of the noise; ``kind`` from ``pair_kinds``."""
        of_known = self.variance_factor * self.unseen_ratio**POWERS
        factors = np.concatenate([of_known, self.newcomer_factor * of_known])
        spread = np.asarray(factors[np.asarray(kind)] * var)
        if self.lapse_rate == 0.0:
            return [(1.0, spread, 1.0)]
        return [(1.0 - self.lapse_rate, spread, 1.0), (self.lapse_rate, spread, LAPSE_NOISE)]

    def log_chances(
        self, log_likelihood: Callable[[FloatArray, float], FloatArray], var: FloatArray, kind: npt.ArrayLike = 0
    ) -> FloatArray:
        """Log probabilities under the mixture, from those at given variances of the margins and of the noise."""
        parts = [math.log(share) + log_likelihood(v, noise) for share, v, noise in self.components(var, kind)]
        return parts[0] if len(parts) == 1 else np.asarray(np.logaddexp(*parts))

    def outcome_proba(
        self, mean: FloatArray, var: FloatArray, delta: float, tie_factor: FloatArray | float, silent: BoolArray | None,
        kind: npt.ArrayLike, likelihood: type[PairLikelihood] = Probit,
    ) -> FloatArray:  # fmt: skip
        """Probabilities of left, tie and right, (n, 3); averaged over the thresholds of ``silent`` people, (n,)."""
        tilted = likelihood.all_tilted
        chances = np.zeros((len(mean), 3))
        for share, v, noise in self.components(var, kind):
            v = v + (noise - 1.0)  # a variance like the margin's own
            if self.omitted_ties and not delta:
                part = np.exp(_decided(mean, v, self.omitted_ties, tilted))
            else:
                part = likelihood.probabilities(mean, v, delta * tie_factor)
            if silent is not None and silent.any():
                log_p = outcome_log_probabilities(
                    mean[silent], v[silent], delta * _some(tie_factor, silent), self.tie_spread, tilted
                )  # fmt: skip
                part[silent] = np.exp(log_p)
            chances += share * part
        return chances

    def outcome_log_proba(
        self, mean: FloatArray, var: FloatArray, delta: float, tie_factor: FloatArray | float, silent: BoolArray | None,
        kind: npt.ArrayLike, likelihood: type[PairLikelihood] = Probit,
    ) -> FloatArray:  # fmt: skip
        """Logarithms of :meth:`outcome_proba`, accurate however small a probability is."""
        tilted = likelihood.all_tilted

        def log_likelihood(v: FloatArray, noise: float) -> FloatArray:
            v = v + (noise - 1.0)
            if self.omitted_ties and not delta:
                return _decided(mean, v, self.omitted_ties, tilted)
            log_p = outcome_log_probabilities(mean, v, delta * tie_factor, 0.0, tilted)
            if silent is not None and silent.any():
                log_p[silent] = outcome_log_probabilities(
                    mean[silent], v[silent], delta * _some(tie_factor, silent), self.tie_spread, tilted
                )  # fmt: skip
            return log_p

        return self.log_chances(log_likelihood, var, kind)


def _decided(
    mean: FloatArray, v: FloatArray, delta: float, tilted: Callable[..., tuple[FloatArray, ...]]
) -> FloatArray:
    """Log-probabilities of left, tie and right, (n, 3), where ties are left out."""
    left, _, right = outcome_log_probabilities(mean, v, delta, 0.0, tilted).T
    return -np.column_stack(
        [np.logaddexp(0.0, right - left), np.full(len(mean), np.inf), np.logaddexp(0.0, left - right)]
    )


def _some(factor: FloatArray | float, rows: BoolArray) -> FloatArray | float:
    return factor if isinstance(factor, float) else factor[rows]


UNCALIBRATED = Calibration()
_SMALLEST_SPREAD = 1e-15  # whose square is divided by


def restored_calibration(values: Mapping[str, Any]) -> Calibration:
    """Calibration of a saved model; ValueError or TypeError if a value is out of its range."""
    found: Calibration = typed(Calibration, dict(values), "calibration")
    if 0.0 < found.tie_spread < _SMALLEST_SPREAD:
        raise ValueError(f"tie_spread must be 0 or at least {_SMALLEST_SPREAD:g}, not {found.tie_spread!r}")
    return found


CALIBRATION = Value(plain, lambda _, value, __: restored_calibration(value))
