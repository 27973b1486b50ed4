"""A population before there are answers: the prior; and a threshold for ties where none has been given yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from predilect._base.progress import Report
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.law import Basis
from predilect.inference.people.layout import lay_out
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.prior import Functions, Hyperparameters, PopulationPrior
from predilect.models.population.search.plan import Plan

# Variances of the consensus and of people about it, where nobody has answered and none is given.
PRIOR = {"variance": 1.0, "consensus_variance": 1.0}
_MOST_PAIRS = 5000
_LARGEST_THRESHOLD = 50.0


def prior_posterior(
    plan: Plan, h: Hyperparameters, functions: Functions | None
) -> tuple[PopulationPosterior, float]:  # fmt: skip
    """The population of the prior, in which nobody is known, and its tie threshold: all items are alike.

    Where ties may come δ is :func:`threshold_of_ties`.
    """
    prior = PopulationPrior.of(h, plan.space, functions)
    people = lay_out(plan.answers, likelihood=plan.likelihood)
    K_t = prior.K if prior.K_consensus is None else prior.K_consensus
    basis = None
    if prior.Phi is not None:
        own = len(prior.own_share) > 0
        basis = Basis(
            prior.Phi, h.variance * prior.own_share, np.zeros(len(prior.Phi) if own else 0),
            h.consensus_variance * prior.own_share, h.variance,
        )  # fmt: skip
    posterior = PopulationPosterior(
        np.zeros(prior.n_functions), h.consensus_variance * K_t, h.variance * prior.K, people, Sites.flat(0), basis,
        calibration=h.calibration_of_predictions,
    )  # fmt: skip
    delta = plan.delta or 0.0
    if plan.ties and plan.delta is None:
        delta = threshold_of_ties(posterior, n_ties=plan.n_ties, n_answers=plan.n_ties, seed=plan.random_state)
    return posterior, delta


def nothing_learned() -> Report:
    """The report of a fit to no answers."""
    return Report(
        method="prior", iterations=0, residual=0.0, tolerance=0.0, converged=True, jitter=0.0, seconds=0.0,
        unit="nats an answer", advice="",
    )  # fmt: skip


def threshold_of_ties(posterior: Any, *, n_ties: float, n_answers: float, seed: int) -> float:
    """δ at which the mean probability of a tie is (1 + n_ties) / (10 + n_answers), for somebody without answers.

    population.md section 4, "Without answers". The mean is over all pairs of items, or 5 000 of them.
    """
    n = posterior.n_items
    left, right = np.triu_indices(n, 1)
    if len(left) > _MOST_PAIRS:
        some = np.random.default_rng(seed).choice(len(left), _MOST_PAIRS, replace=False)
        left, right = left[some], right[some]
    mean, var = posterior.margins(np.full(len(left), -1), left, right)
    s = np.sqrt(1.0 + var)
    wanted = (1.0 + n_ties) / (10.0 + n_answers)

    def excess(delta: float) -> float:
        return float(np.mean(ndtr((delta - mean) / s) - ndtr((-delta - mean) / s))) - wanted

    most = _LARGEST_THRESHOLD * float(s.max())
    return float(brentq(excess, 0.0, most, xtol=1e-12))
