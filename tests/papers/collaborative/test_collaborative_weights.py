"""The law of the weights of somebody without answers."""

from __future__ import annotations

import numpy as np

from predilect.inference.factors.answers import CrowdWeights
from tolerances import EXACT


def test_a_person_drawn_from_among_the_people():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(7, 3)), rng.uniform(0.1, 1.0, size=(7, 3))
    law = CrowdWeights.average(mean, variance)
    found = law.law(3, None)
    np.testing.assert_allclose(found[0], mean.mean(axis=0)[None], atol=EXACT)
    # The variance of a mixture of seven Gaussians.
    np.testing.assert_allclose(found[1], (mean**2 + variance).mean(axis=0)[None] - found[0] ** 2, atol=EXACT)
    assert law.law(3, np.zeros((2, 0)))[0].shape == (2, 3)


def test_traits_move_the_mean_and_their_doubt_the_variance():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 3, 3))
    effects, covariance = rng.normal(size=(2, 3)), root @ root.transpose(0, 2, 1)
    law = CrowdWeights(effects, covariance, np.array([1.0, 2.0]))
    traits = rng.normal(size=(4, 2))
    mean, var = law.law(2, traits)
    draws = np.stack([rng.multivariate_normal(effects[c], covariance[c], 400_000) for c in range(2)])
    for k in range(4):
        values = draws @ np.array([1.0, *traits[k]])
        np.testing.assert_allclose(mean[k], values.mean(axis=1), atol=0.03)
        np.testing.assert_allclose(var[k] - law.spread, values.var(axis=1), rtol=0.02)
    nobody = law.law(2, None)
    np.testing.assert_allclose(nobody[0][0], effects[:, 0], atol=EXACT)
    np.testing.assert_allclose(nobody[1][0], law.spread + covariance[:, 0, 0], atol=EXACT)
