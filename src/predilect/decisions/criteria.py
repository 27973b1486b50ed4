"""Criteria for keeping a person's items: scores from the marginals of the posterior."""

from __future__ import annotations
from dataclasses import dataclass
import numpy as np
import numpy.typing as npt
from predilect.decisions.risks import UCB_VARIANTS, confidence_score, entropy_risk, log_improvement
from predilect.errors import DataError

__all__ = ["CRITERIA", "Criterion", "criterion_for", "in_order"]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CRITERIA = ("ucb", "voi", "ivm", "adf", "random", "mean")
IVM_VARIANTS = ("min_posterior_entropy", "max_posterior_entropy", "max_reduction")
BEST = ("all", "selected")
# The criterion of the nearest loss: a decision by the largest mean needs the items that may be best, a prediction of
# any pair those that are known best.
_FOR = {"regret": "voi", "recommendation": "ucb", "zero_one": "ivm", "log": "ivm"}


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion with its options.

    "ucb": exponential utility, with ``beta``, ``ucb`` and ``kappa`` of
    :func:`~predilect.decisions.risks.confidence_score`; "voi": value of information; "ivm": entropy of the item's
    utility; "random" and "mean" (largest posterior mean) are controls; "adf", the original informative vector machine,
    orders answers and has no scores.

    vvm.md 3. Marginals do not depend on what else is kept, so the greedy loop of the paper is a sort: for "voi" with
    "selected" too, where the first item is the one with the largest mean, after which f* is constant.
    """

    name: str = "ucb"
    beta: float = 1.0
    ucb: str = "exact"
    kappa: float = 1.0
    best: str = "all"  # f* of "voi": largest mean of all the person's items, or of those selected so far
    ivm: str = "min_posterior_entropy"  # keep the least entropy (the paper), the most, or the largest reduction
    random_state: int = 0

    def __post_init__(self) -> None:
        choices = {"name": CRITERIA, "ucb": UCB_VARIANTS, "best": BEST, "ivm": IVM_VARIANTS}
        for field, known in choices.items():
            if getattr(self, field) not in known:
                what = "criterion" if field == "name" else field
                raise DataError(f"{what} must be one of {', '.join(known)}; got {getattr(self, field)!r}")
        for field in ("beta", "kappa"):
            if not np.isfinite(getattr(self, field)) or getattr(self, field) <= 0.0:
                raise DataError(f"{field} must be a positive number; got {getattr(self, field)!r}")

    def scores(self, mean: FloatArray, var: FloatArray, prior_var: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Scores (n_items,), the larger the better; ``prior_var`` are variances before the person's own answers."""
        if self.name == "ucb":
            return confidence_score(mean, var, self.beta, self.ucb, self.kappa)
        if self.name == "voi":
            score = log_improvement(mean, var, mean.max())
            if self.best == "selected":
                score[mean.argmax()] = np.inf
            return score
        if self.name == "ivm":
            risk = entropy_risk(var)
            if self.ivm == "max_reduction":
                return entropy_risk(prior_var) - risk
            return -risk if self.ivm == "min_posterior_entropy" else risk
        if self.name == "mean":
            return mean
        if self.name == "random":
            return rng.random(len(mean))
        raise DataError('criterion "adf" orders answers, not items by their marginals')


def criterion_for(loss: str) -> str:
    """Name of the criterion that goes with a named loss; "ucb" for a custom loss."""
    return _FOR.get(loss, "ucb")


def in_order(scores: FloatArray) -> IntArray:
    """Positions by score, the largest first, equal ones by the lowest position."""
    return np.lexsort((np.arange(len(scores)), -scores))
