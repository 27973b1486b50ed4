"""Natural-gradient sweep over all blocks: modern.md sections 3 and 4, and a step of the tie threshold."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from predilect.factors.answers import FactorAnswers
from predilect.factors.blocks import component_sums, update_people
from predilect.factors.items import FunctionState, ItemDesign, scale_step
from predilect.factors.state import FactorPriors, FactorState, moments
from predilect.gaussian.sites import Sites
from predilect.latent.sparse.margins import natural_parameters
from predilect.likelihoods.expectation import expected
from predilect.likelihoods.probit import at

FloatArray = npt.NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_LARGEST_MOVE = 0.5  # of log δ


def refreshed(
    state: FactorState, answers: FactorAnswers, old: Sites | None, step: float
) -> tuple[Sites, FloatArray, FloatArray]:
    """Sites at the present moments, a convex mix with share ``step`` of the new; slope and value (n_rows,) of E log p.

    With λ and g of modern.md (3.2): precision λ, linear g + λ E z. To mix sites is to mix natural parameters
    (modern.md 4, "damped form"), for all blocks at once and without their old precisions.
    """
    mean, var = moments(state, answers)
    value, slope, curvature = expected(answers.outcome, mean, var, state.threshold)
    new = Sites(curvature, slope + curvature * mean)
    return new if old is None else old.towards(new, step), slope, value


def blocks(
    state: FactorState, sites: Sites, answers: FactorAnswers, design: ItemDesign, priors: FactorPriors, *, scales: bool
) -> None:
    """Update of every block once at the given sites, in place.

    With the sites held, each block maximises the same bound, of a Gaussian likelihood, given the others; so a sweep
    needs one pass of quadrature, and not the C + 2 of modern.md 4. n_rows C² + n_users C³ + C (items of the design)
    operations.
    """
    people_step(state, sites, answers)
    margin, _ = moments(state, answers)
    item_sweep(state, sites, margin, answers, design)
    if scales:
        scales_step(state, sites, answers, design, priors)


def people_step(state: FactorState, sites: Sites, answers: FactorAnswers) -> None:
    """Update of all people's weights: modern.md (3.4)."""
    if state.n_components:
        update_people(
            0, answers.n_users, answers.user_ptr, answers.pair, answers.weight, sites.precision, sites.linear,
            state.delta_0, state.delta, state.D, state.prior, state.mu, state.Sigma, state.log_det,
        )  # fmt: skip


def item_sweep(
    state: FactorState, sites: Sites, margin: FloatArray, answers: FactorAnswers, design: ItemDesign
) -> None:
    """Update of the consensus, then of each component: modern.md (3.5), (3.6). ``margin``: current mean margins."""
    if state.consensus is not None:
        margin = margin + consensus_step(state, sites, margin, answers, design)[answers.pair]
    W, H = np.empty((2, len(answers.left)))
    for c in range(state.n_components):
        W[:], H[:] = 0.0, 0.0
        component_sums(
            c, answers.user, answers.pair, answers.weight, sites.precision, sites.linear, margin, state.delta,
            state.mu, state.Sigma, W, H,
        )  # fmt: skip
        natural = natural_parameters(design.margins, W, H, state.s[c])
        old = state.delta[:, c].copy()
        state.set_component(c, FunctionState.of(design.margins, *natural), design)
        margin = margin + state.mu[answers.user, c] * (state.delta[:, c] - old)[answers.pair]


def consensus_step(
    state: FactorState, sites: Sites, margin: FloatArray, answers: FactorAnswers, design: ItemDesign
) -> FloatArray:
    """Update of q(t); the change of its mean margin of each pair, shape (n_pairs,)."""
    W, H = consensus_sums(answers.pair, sites.times(answers.weight), margin, state.delta_0)
    natural = natural_parameters(design.margins, W, H, state.s_0)
    old = state.delta_0
    state.set_consensus(FunctionState.of(design.margins, *natural), design)
    return np.asarray(state.delta_0 - old)


def consensus_sums(
    pair: npt.NDArray[np.int64], sites: Sites, margin: FloatArray, delta_0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums W and H (n_pairs,) for q(t): modern.md (3.5); sites of all copies, margins with the consensus."""
    n = len(delta_0)
    W = np.asarray(np.bincount(pair, sites.precision, n), dtype=np.float64)
    return W, np.bincount(pair, sites.linear - sites.precision * margin, n) + W * delta_0


def scales_step(
    state: FactorState, sites: Sites, answers: FactorAnswers, design: ItemDesign, priors: FactorPriors
) -> None:
    """Update of E s_t and E s_c: modern.md 6."""
    M = design.n_points
    uncertain = answers.weight * sites.precision * design.residual[answers.pair]
    if state.consensus is not None:
        s = scale_step(priors.consensus, M, state.consensus.square, float(uncertain.sum()))
        state.set_scale(-1, s, design)
    by_user = np.bincount(answers.user, uncertain, answers.n_users)
    second = state.mu**2 + np.einsum("ucc->uc", state.Sigma)
    for c, left_over in enumerate(by_user @ second):
        state.set_scale(c, scale_step(priors.components, M, state.components[c].square, float(left_over)), design)


def threshold_step(state: FactorState, answers: FactorAnswers, slope: FloatArray) -> None:
    """Newton step of the tie threshold in log δ, on the expected log-likelihood at the present q.

    A strict answer depends on y z - δ only, so its derivative in δ is minus y times its slope, and the second one its
    second one in the mean; a tie is integrated by quadrature.
    """
    tie = answers.outcome == 0
    if not tie.any():
        return
    mean, var = moments(state, answers)
    delta, w = state.threshold, answers.weight
    curvature = expected(answers.outcome[~tie], mean[~tie], var[~tie], delta)[2]
    gradient = -float(w[~tie] @ (answers.outcome[~tie] * slope[~tie]))
    second = -float(w[~tie] @ curvature)
    omega = _WEIGHTS / _WEIGHTS.sum()
    for x, share in zip(_NODES, omega, strict=True):
        z = mean[tie] + np.sqrt(var[tie]) * x
        parts = at(np.zeros(len(z), dtype=np.int8), z, delta)
        gradient += share * float(w[tie] @ parts[3])
        second += share * float(w[tie] @ parts[4])
    # In log δ: derivative δ g, second derivative δ² h + δ g, negative for a log-concave likelihood near its maximum.
    bend = min(delta * delta * second + delta * gradient, -1e-12 - 0.5 * abs(delta * gradient))
    state.threshold = delta * math.exp(float(np.clip(-delta * gradient / bend, -_LARGEST_MOVE, _LARGEST_MOVE)))
