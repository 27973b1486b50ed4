"""Compiled site updates and evidence of answers whose margins are sums of products."""

from __future__ import annotations

import numpy as np

from predilect._compile import inner_kernel, kernel
from predilect.inference.compiled.person_ep import refresh_site
from predilect.likelihoods.probit import tilted_scalar

__all__ = ["add_evidence", "refresh"]


@inner_kernel
def _proper(weight, precision, var):
    """Whether the cavity without any of the copies, and without one of them where they are less than one, is proper."""
    return 1.0 - max(weight, 1.0) * precision * var > 0.0


@kernel
def refresh(outcome, weight, mean, var, precision, linear, threshold, improper):
    """:func:`predilect.inference.collaborative.sites.refreshed_sites` in place; improper sites are kept."""
    for p in range(outcome.shape[0]):
        improper[p] = True
        if not _proper(weight[p], precision[p], var[p]):
            continue
        share = 1.0 - weight[p] * precision[p] * var[p]
        lam, eta = refresh_site(outcome[p], weight[p], mean[p], var[p], share, precision[p], linear[p], threshold)
        if np.isfinite(lam) and np.isfinite(eta) and lam >= 0.0:
            precision[p], linear[p], improper[p] = lam, eta, False


@kernel
def add_evidence(outcome, weight, mean, var, precision, linear, threshold, improper, out):
    """:func:`predilect.inference.collaborative.sites.answer_evidence` of proper rows, added to ``out``.

    Slope and curvature in the threshold are of all rows.
    """
    for p in range(outcome.shape[0]):
        lam, eta, m, v = precision[p], linear[p], mean[p], var[p]
        share = 1.0 - lam * v
        if _proper(weight[p], lam, v):
            log_z, _, _, slope, curvature = tilted_scalar(outcome[p], (m - v * eta) / share, v / share, threshold)
            message = 0.5 * ((lam * m - 2.0 * eta) * m + eta * eta * v) / share - 0.5 * np.log(share)
            out[0] += weight[p] * (log_z + message + eta * m - 0.5 * lam * (m * m + v))
        else:
            improper[p] = True
            _, _, _, slope, curvature = tilted_scalar(outcome[p], m, v, threshold)
        out[1] += weight[p] * slope
        out[2] += weight[p] * curvature
