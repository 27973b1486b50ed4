"""Predictions of the factor model against a Gibbs sampler."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import GammaPrior
from predilect.inference.factors.posterior import FactorPriors
from predilect.inference.likelihoods.probit import outcome_probabilities
from predilect.papers.crowd.fit import fit_factor
from referees.gibbs import gibbs_probabilities
from simulate_factor import simulate_factor


@pytest.mark.slow
def test_predictions_are_near_those_of_the_sampler():
    data = simulate_factor(seed=2, n_users=30, n_items=10, n_components=3, n_answers=360)
    s_0, s = 1.0, 0.5
    priors = FactorPriors(GammaPrior(1e9 * s_0, 1e9), GammaPrior(1e9 * s, 1e9))
    fit = fit_factor(data.answers, data.projection, n_components=3, priors=priors, tolerance=1e-6, max_iter=300)
    rng = np.random.default_rng(0)
    a = rng.integers(10, size=300)
    test = rng.integers(30, size=300), a, (a + rng.integers(1, 10, size=300)) % 10
    K = data.projection.factor.lower @ data.projection.factor.lower.T
    truth = gibbs_probabilities(
        data.user, data.left, data.right, data.outcome, K, 30, 3, test, s_0=s_0, s=s, sweeps=4000, seed=1
    )  # fmt: skip
    ours = outcome_probabilities(*fit.posterior.margins(*test))[:, 0]
    assert np.mean(np.abs(ours - truth)) < 0.02
    # A point estimate would not do: the uncertainty is needed.
    mean, _ = fit.posterior.margins(*test)
    assert np.mean(np.abs(outcome_probabilities(mean, np.zeros(300))[:, 0] - truth)) > 0.03
