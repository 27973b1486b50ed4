"""EP sites of answers whose margins are sums of products, where a cavity need not be proper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect.inference.compiled.product_sites import add_evidence, refresh
from predilect.likelihoods.expectation import expected
from predilect.posteriors.sites import Sites

__all__ = ["AnswerEvidence", "Refreshed", "answer_evidence", "refreshed_sites"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Outcomes = npt.NDArray[np.int8]


class Refreshed(NamedTuple):
    """New sites of one copy of each answer; ``improper`` (n_rows,): cavity or new site not proper."""

    sites: Sites
    improper: BoolArray


class AnswerEvidence(NamedTuple):
    """Evidence of the answers, and its slope and curvature in the tie threshold."""

    value: float
    slope: float
    curvature: float


def refreshed_sites(
    outcome: Outcomes, weight: FloatArray, sites: Sites, mean: FloatArray, var: FloatArray, threshold: float, *,
    keep: bool,
) -> Refreshed:  # fmt: skip
    """Undamped site updates, given mean and variance (n_rows,) of the margins with all sites in them.

    The ``weight`` copies of each answer move together, to their fixed point given everything else. Without a proper
    cavity a site stays if ``keep``; otherwise it becomes that of the expected log-likelihood, which needs none and is
    always proper.

    collaborative.md 3, f̂1; modern.md (3.2). The variance of a product of two uncertain factors can exceed that of the
    message in it: with the message taken out there is then no Gaussian left.
    """
    precision, linear = sites.precision.copy(), sites.linear.copy()
    improper = np.zeros(len(outcome), dtype=np.bool_)
    refresh(outcome, weight, mean, var, precision, linear, threshold, improper)
    if not keep and improper.any():
        m = mean[improper]
        _, slope, curvature = expected(outcome[improper], m, var[improper], threshold)
        precision[improper], linear[improper] = curvature, slope + curvature * m
    return Refreshed(Sites(precision, linear), improper)


def answer_evidence(
    outcome: Outcomes, weight: FloatArray, sites: Sites, mean: FloatArray, var: FloatArray, threshold: float
) -> AnswerEvidence:
    """Σ_p w_p (log Ẑ_p + F(cavity) - F(posterior) + E log site_p), with F the log-partition of a Gaussian.

    A row without a proper cavity counts by E log p(answer), as in a variational bound. collaborative.md 3, "Evidence",
    without what cancels: see :mod:`predilect.inference.collaborative.evidence`.
    """
    out = np.zeros(3)
    improper = np.zeros(len(outcome), dtype=np.bool_)
    add_evidence(outcome, weight, mean, var, sites.precision, sites.linear, threshold, improper, out)
    if improper.any():
        value = expected(outcome[improper], mean[improper], var[improper], threshold)[0]
        out[0] += float(weight[improper] @ value)
    return AnswerEvidence(*out.tolist())
