"""The kernel with a share of its own: under the contract, and what it is (vvm.md 5)."""

from __future__ import annotations

import numpy as np

from contracts.kernel import KernelContract, X
from predilect.gaussian.kernels import Own, Scaled, Stationary, matern
from tolerances import EXACT


class TestOwn(KernelContract):
    kernel = Own(matern([0.8, 1.3, 2.1]), 0.4)


class TestOwnScaled(KernelContract):
    kernel = Scaled(Own.of_share(Stationary(1.1, "squared-exponential"), 0.3), 2.5)


class TestOwnOfAnotherVariance(KernelContract):
    kernel = Own(Scaled(matern([0.8, 1.3, 2.1]), 2.5), 0.4)


def test_it_is_a_one_hot_of_the_id_beside_the_features():
    """Two rows differ in two columns of the one-hot: exp(-(1 + 1) / (2 ℓ²))."""
    scale = 1.7
    with_ids = np.hstack([X, np.eye(len(X))])
    product = Stationary([0.8, 1.3, 2.1, *[scale] * len(X)], "squared-exponential")(with_ids)
    own = Own.of_share(Stationary([0.8, 1.3, 2.1], "squared-exponential"), 1.0 - np.exp(-1.0 / scale**2))
    np.testing.assert_allclose(own(X), product, atol=EXACT)
    assert abs(own(X)[1, 4] - np.exp(-1.0 / scale**2)) < EXACT  # equal features, different rows
