"""Populations and people are found again at the rate that intervals promise, on many simulated data sets."""

from __future__ import annotations

import numpy as np
import pytest
from simulate_choices import MEAN, OMEGA, choices

from predilect import MixedLogit

N_SETS = 24


@pytest.mark.slow
@pytest.mark.timeout(900)  # three minutes of an idle processor
def test_intervals_cover_and_scales_are_right():
    means, spreads, people, scale, wider = [], [], [], [], []
    truth = np.sqrt(np.diagonal(OMEGA))
    for seed in range(100, 100 + N_SETS):
        data = choices(seed, n_users=300, n_tasks=10, n_options=4)
        model = MixedLogit(tol=1.2, n_jobs=1).fit(data.answers, items=data.items)
        table = model.worth.coefficients()
        means.append((table["lower"].to_numpy() < MEAN) & (table["upper"].to_numpy() > MEAN))
        scale.append(table["mean"].to_numpy())
        back = model.columns_.report
        sd = np.sqrt(np.einsum("ld,kde,le->kl", back, model.posterior_.law.Omega[:, 0], back))
        lower, upper = np.quantile(sd, [0.025, 0.975], axis=0)
        spreads.append((lower < truth) & (truth < upper))
        wider.append(sd.mean(axis=0))
        worths = model.worth.parts()
        inside = [worths[name].to_numpy().reshape(300, 3) for name in ("lower", "upper")]
        people.append(((inside[0] < data.coefficients) & (data.coefficients < inside[1])).mean())
    assert 0.925 <= np.mean(means) <= 0.98
    assert 0.89 <= np.mean(spreads) <= 1.0
    assert 0.925 <= np.mean(people) <= 0.97
    np.testing.assert_allclose(np.mean(scale, axis=0), MEAN, atol=0.03)
    np.testing.assert_allclose(np.mean(wider, axis=0), truth, rtol=0.05)
