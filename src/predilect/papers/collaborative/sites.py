"""Compiled variational Bayes for z = Σ_d w_ud h_dq, with both factors Gaussian and independent."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predilect._base.compile import inner_kernel, kernel
from predilect._base.types import BoolArray, FloatArray
from predilect.inference.gaussian.design import Sites
from predilect.inference.likelihoods.expectation import expected
from predilect.inference.likelihoods.probit import tilted_scalar
from predilect.inference.people.ep import refresh_site


@inner_kernel
def _divergence(mean, var, prior_mean, prior_var):
    """Σ KL(N(mean, var) || N(prior_mean, prior_var)); entries without prior variance are fixed and do not count."""
    total = 0.0
    for i in range(mean.shape[0]):
        for d in range(mean.shape[1]):
            v = prior_var[i, d]
            if v > 0.0:
                gap = mean[i, d] - prior_mean[i, d]
                total += 0.5 * (math.log(v / var[i, d]) + (var[i, d] + gap * gap) / v - 1.0)
    return total


@kernel
def product_moments(user, pair, w_mean, w_var, h_mean, h_var, mean, var):
    """Mean and variance of the margin of every row, set in place: collaborative.md 3, m_g and v_g."""
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        m = 0.0
        v = 0.0
        for d in range(w_mean.shape[1]):
            m += w_mean[u, d] * h_mean[q, d]
            v += w_mean[u, d] ** 2 * h_var[q, d] + w_var[u, d] * (h_mean[q, d] ** 2 + h_var[q, d])
        mean[p] = m
        var[p] = v


class Factors(NamedTuple):
    """Means and variances of weights (n_users, D) and of values (n_pairs, D)."""

    w_mean: FloatArray
    w_var: FloatArray
    h_mean: FloatArray
    h_var: FloatArray


@kernel
def product_passes(user, pair, precision, linear, prior, factors, margin, tolerance, most, bounds):
    """Coordinate ascent over the functions, weights and then values of each, to convergence; number of passes.

    ``precision, linear`` (n_rows,): message of all copies of each answer, log p ~ linear z - precision z²/2. The
    ``prior`` is f̂3 of the weights, where a variance of 0 holds a weight, and f̂4 of the values. Changed in place: the
    ``factors`` Q(W) and Q(H), ``margin`` (n_rows,), and ``bounds`` (most,) after each pass, without the terms that are
    in the messages only.

    collaborative.md 3, f̂2: each update is exact given the others, so that the bound never falls. Its form here divides
    by no variance, so that a prior variance may be 0. 16 n_rows D operations a pass.
    """
    w_prior_mean, w_prior_var, h_prior_mean, h_prior_var = prior
    w_mean, w_var, h_mean, h_var = factors
    n, D = user.shape[0], w_mean.shape[1]
    n_users, n_pairs = w_mean.shape[0], h_mean.shape[0]
    S, H = np.empty(max(n_users, n_pairs)), np.empty(max(n_users, n_pairs))
    for p in range(n):
        z = 0.0
        for d in range(D):
            z += w_mean[user[p], d] * h_mean[pair[p], d]
        margin[p] = z
    last = -math.inf
    for done in range(most):
        for d in range(D):
            S[:n_users] = 0.0
            H[:n_users] = 0.0
            for p in range(n):
                u, q = user[p], pair[p]
                m = h_mean[q, d]
                margin[p] -= w_mean[u, d] * m  # of the other functions, until the weight has moved
                S[u] += precision[p] * (m * m + h_var[q, d])
                H[u] += m * (linear[p] - precision[p] * margin[p])
            for u in range(n_users):
                v = w_prior_var[u, d]
                w_var[u, d] = v / (1.0 + v * S[u])
                w_mean[u, d] = (w_prior_mean[u, d] + v * H[u]) / (1.0 + v * S[u])
            S[:n_pairs] = 0.0
            H[:n_pairs] = 0.0
            for p in range(n):
                u, q = user[p], pair[p]
                m = w_mean[u, d]
                S[q] += precision[p] * (m * m + w_var[u, d])
                H[q] += m * (linear[p] - precision[p] * margin[p])
            for q in range(n_pairs):
                v = h_prior_var[q, d]
                h_var[q, d] = v / (1.0 + v * S[q])
                h_mean[q, d] = (h_prior_mean[q, d] + v * H[q]) / (1.0 + v * S[q])
            for p in range(n):
                margin[p] += w_mean[user[p], d] * h_mean[pair[p], d]
        bound = -_divergence(w_mean, w_var, w_prior_mean, w_prior_var)
        bound -= _divergence(h_mean, h_var, h_prior_mean, h_prior_var)
        for p in range(n):
            u, q = user[p], pair[p]
            v = 0.0
            for d in range(D):
                v += w_mean[u, d] ** 2 * h_var[q, d] + w_var[u, d] * (h_mean[q, d] ** 2 + h_var[q, d])
            bound += linear[p] * margin[p] - 0.5 * precision[p] * (margin[p] ** 2 + v)
        bounds[done] = bound
        if bound - last < tolerance:
            return done + 1
        last = bound
    return most


@inner_kernel
def _proper(weight, precision, var):
    """Whether the cavity without any of the copies, and without one of them where they are less than one, is proper."""
    return 1.0 - max(weight, 1.0) * precision * var > 0.0


@kernel
def refresh(outcome, weight, mean, var, precision, linear, threshold, improper):
    """:func:`predilect.papers.collaborative.sites.refreshed_sites` in place; improper sites are kept."""
    for p in range(outcome.shape[0]):
        improper[p] = True
        if not _proper(weight[p], precision[p], var[p]):
            continue
        share = 1.0 - weight[p] * precision[p] * var[p]
        lam, eta = refresh_site(
            outcome[p], weight[p], mean[p], var[p], share, precision[p], linear[p], threshold, 0.0, 0.0
        )
        if np.isfinite(lam) and np.isfinite(eta) and lam >= 0.0:
            precision[p], linear[p], improper[p] = lam, eta, False


@kernel
def add_evidence(outcome, weight, mean, var, precision, linear, threshold, improper, out):
    """:func:`predilect.papers.collaborative.sites.answer_evidence` of proper rows, added to ``out``.

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
    without what cancels: see :mod:`predilect.papers.collaborative.sites`.
    """
    out = np.zeros(3)
    improper = np.zeros(len(outcome), dtype=np.bool_)
    add_evidence(outcome, weight, mean, var, sites.precision, sites.linear, threshold, improper, out)
    if improper.any():
        value = expected(outcome[improper], mean[improper], var[improper], threshold)[0]
        out[0] += float(weight[improper] @ value)
    return AnswerEvidence(*out.tolist())


# With q(h_d) = N(h_d; 0, K) Π exp(messages) / Z_d, the four ln s̃ of collaborative.md 3 and the log-partitions G add up
# to
#
#   ln Z = Σ_p [ln Ẑ_p + G(cavity_p) - G(posterior_p) + E_Q log f̂1_p]          sites.answer_evidence
#          + Σ_d (ln Z_d - E_Q log messages_d)  for the functions, and likewise for the weights
#
# since every G of a weight or a value meets itself with the other sign once f̂2 = Q/f̂3, Q/f̂4. The sums in brackets are
# minus the Kullback-Leibler divergence of q(h_d) from its prior; nothing is divided by a precision, which may be 0.


def process_divergence(log_z: float, sites: Sites, mean: FloatArray, var: FloatArray) -> float:
    """E_Q log messages - ln Z_d of one function or of one weight of all people; messages f̂2, moments under Q."""
    return float(sites.linear @ mean - 0.5 * (sites.precision @ (mean * mean + var))) - log_z


def gaussian_divergence(mean: FloatArray, var: FloatArray, prior_var: FloatArray) -> float:
    """Σ KL(N(mean, var) || N(0, prior_var)); entries of prior variance 0 do not count."""
    free = prior_var > 0.0
    m, v, p = mean[free], var[free], prior_var[free]
    return 0.5 * float(np.sum(np.log(p / v) + (v + m * m) / p - 1.0))
