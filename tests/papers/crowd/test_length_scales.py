"""The slope of the bound in length-scales against finite differences of the bound fitted again."""

from __future__ import annotations

import numpy as np
import pytest

from predilect.inference.factors.answers import FactorAnswers, GammaPrior, ItemDesign
from predilect.inference.factors.posterior import FactorPriors, random_start
from predilect.inference.factors.sweep import blocks, refreshed
from predilect.inference.gaussian.kernels import Linear, Scaled, Sum, White, matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.evidence import search_kernel
from predilect.papers.crowd.fit import theta_gradient
from simulate_factor import simulate_factor

PRIORS = FactorPriors(GammaPrior(2.0, 3.0), GammaPrior(2.0, 3.0))


def fitted(data, projection, sweeps=600, scales=True):
    answers = FactorAnswers.of(*data.columns)
    design = ItemDesign.of(projection, answers.left, answers.right)
    C = 1
    state = random_start(
        answers, design, C, True, np.zeros((data.n_users, C)), None, np.random.default_rng(3)
    )  # fmt: skip
    sites = refreshed(state, answers, None, 1.0)[0]
    for k in range(sweeps):
        blocks(state, sites, answers, design, PRIORS, scales=scales and k > 2)
        before = sites
        sites, _, value = refreshed(state, answers, sites, 0.7)
        change = max(np.abs(sites.linear - before.linear).max(), np.abs(sites.precision - before.precision).max())
        if k > 2 and change < 1e-13:  # the sites stand still to the last digits: further sweeps change nothing
            break
    return float(answers.weight @ value) - state.divergence(PRIORS, design), state, answers, design


@pytest.mark.parametrize("n_points", [pytest.param(None, marks=pytest.mark.slow), 4])
def test_gradient_is_that_of_the_optimised_bound(n_points):
    """The first term alone, eq. 39, fails where points are not items."""
    data = simulate_factor(n_points=n_points, n_users=5, n_answers=120)
    p = data.projection
    _, state, answers, design = fitted(data, p)
    gradient = theta_gradient(state, answers, design)
    h = 1e-3
    for d in range(2):
        step = h * np.eye(2)[d]
        up, down = (fitted(data, p.with_kernel(p.kernel.with_theta(p.kernel.theta + e)))[0] for e in (step, -step))
        assert gradient[d] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-5)
    if n_points is not None:
        inverse = p.factor.inverse()
        weights = np.zeros_like(inverse)
        for f, s in [(state.consensus, state.s_0), *zip(state.components, state.s, strict=True)]:
            m, S = p.at_points(f.mean, f.lower)
            weights += 0.5 * (s * inverse @ (np.outer(m, m) + S) @ inverse - inverse)
        alone = p.kernel.gradient(p.points, None, weights)
        assert np.abs(alone - gradient).max() > 0.05 * np.abs(gradient).max()


KERNELS = {
    "variance": Scaled(matern([1.2, 1.7]), 1.3),
    "sum": Sum((matern([1.5, 1.5]), Scaled(Linear([1.0, 2.0]), 0.5), White(0.2))),
}


@pytest.mark.parametrize("n_points", [pytest.param(None, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("name", list(KERNELS))
def test_items_without_features_count(name, n_points):
    """Their prior variance is that of the mean features, and hangs on hyper-parameters too."""
    data, kernel = simulate_factor(n_points=n_points, n_users=5, n_answers=120), KERNELS[name]
    known = np.ones(len(data.X), dtype=bool)
    known[[2, 7]] = False
    X = np.where(known[:, None], data.X, 0.0)
    p = Projection.of(kernel, X, known, None if n_points is None else X[[0, 1, 3, 4]] + 0.1)
    _, state, answers, design = fitted(data, p, scales=False)
    gradient = theta_gradient(state, answers, design)
    step = 1e-3 * np.random.default_rng(1).normal(size=len(kernel.theta))
    thetas = kernel.theta + step, kernel.theta - step
    up, down = (fitted(data, p.with_kernel(kernel.with_theta(theta)), scales=False)[0] for theta in thetas)
    assert gradient @ step == pytest.approx((up - down) / 2, rel=1e-4)


@pytest.mark.slow
def test_the_search_raises_the_bound():
    data = simulate_factor(n_users=5, n_answers=120)
    kernel = data.projection.kernel
    far = data.projection.with_kernel(kernel.with_theta(kernel.theta - 1.5))

    def fit(projection):
        value, state, answers, design = fitted(data, projection, 80)
        return value, theta_gradient(state, answers, design)

    found = search_kernel(far, fit, reach=3.0, max_evaluations=8)
    assert found.bound > fit(far)[0] + 0.5
    assert np.all(found.kernel.theta > far.kernel.theta)
