"""The search of hyper-parameters on bounds that are known."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.errors import PredilectError
from predilect.inference.gaussian.kernels import Scaled, matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.evidence import search_kernel
from tolerances import ITERATIVE

X = np.random.default_rng(0).normal(size=(5, 2))
KERNEL = Scaled(matern([0.8, 1.4]), 1.3)
PROJECTION = Projection.of(KERNEL, X, np.ones(5, dtype=bool), X[:2])
TARGET = np.log([2.0, 0.5, 30.0])
STEEP = np.array([1.0, 3.0, 0.2])


def hill(projection):
    """The bound is highest at TARGET."""
    away = projection.kernel.theta - TARGET
    np.testing.assert_array_equal(projection.points, PROJECTION.points)
    return 7.0 - float(away @ (STEEP * away)), -2.0 * STEEP * away


def test_it_ends_at_the_top():
    found = search_kernel(PROJECTION, hill, reach=5.0, unit=10.0)
    np.testing.assert_allclose(found.kernel.theta, TARGET, atol=1e-4)
    assert found.bound == pytest.approx(7.0, abs=ITERATIVE)
    assert found.converged
    assert found.at_bounds == ()


def test_it_stays_within_its_reach_and_what_is_held_where_it_is():
    found = search_kernel(PROJECTION, hill, reach=1.0, held=["length_scale[0]"])
    expected = [TARGET[0], np.log(0.8), np.log(1.4) + 1.0]
    np.testing.assert_allclose(found.kernel.theta, expected, atol=1e-4)
    assert found.at_bounds == ("length_scale[1]",)


def test_it_gives_the_best_that_it_saw():
    seen = []

    def noted(projection):
        seen.append(hill(projection)[0])
        return hill(projection)

    found = search_kernel(PROJECTION, noted, reach=5.0, max_evaluations=3)
    assert found.evaluations == len(seen) <= 4
    assert found.bound == max(seen)
    assert not found.converged


@pytest.mark.parametrize("lost", [(np.nan, np.zeros(3)), (0.0, np.array([0.0, np.inf, 0.0]))])
def test_what_is_not_finite_is_refused(lost):
    with pytest.raises(PredilectError, match=r"not finite at variance = 1.3, length_scale\[0\] = 0.8"):
        search_kernel(PROJECTION, lambda _: lost, reach=1.0)
