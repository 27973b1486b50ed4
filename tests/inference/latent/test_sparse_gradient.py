"""The slope of the bound in length-scales against re-optimised fits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from predilect.errors import PredilectError
from predilect.inference.gaussian.kernels import Linear, Product, Scaled, Sum, White, matern
from predilect.inference.gaussian.projection import Projection
from predilect.inference.latent.sparse.fit import ScalePrior, fit_sparse
from predilect.inference.latent.sparse.gradient import bound_gradient, optimise_length_scales
from predilect.inference.latent.sparse.problem import SparseProblem
from simulate_sparse import small
from tolerances import ITERATIVE

TIGHT = {"max_iter": 400, "tolerance": 1e-15}
STEP = 1e-4


def bound(data, prior, theta, sparse, known=None):
    known = data.known if known is None else known
    kernel = data.kernel.with_theta(theta)
    projection = Projection.of(kernel, data.X, known, data.points if sparse else None)
    return fit_sparse(data.answers, projection, prior, delta=data.delta, **TIGHT)


def differences(data, prior, sparse, known=None):
    theta, out = data.kernel.theta, []
    for d in range(len(theta)):
        h = np.zeros(len(theta))
        h[d] = STEP
        up, down = (bound(data, prior, theta + s * h, sparse, known).bound for s in (1.0, -1.0))
        out.append((up - down) / (2 * STEP))
    return np.array(out)


def gradient(data, fit):
    return bound_gradient(fit.projection, SparseProblem.of(fit.projection, data.answers, data.delta), fit.q, fit.scale)


def only_eq_39(fit):
    """½ tr[(s K⁻¹(m mᵀ + S)K⁻¹ - K⁻¹) dK]: the paper's, which holds A and the residual."""
    lower = fit.projection.factor.lower
    K_inv = np.linalg.inv(lower @ lower.T)
    posterior = fit.posterior()
    second = np.outer(posterior.mean, posterior.mean) + posterior.covariance
    weights = 0.5 * (fit.scale.value * K_inv @ second @ K_inv - K_inv)
    return fit.projection.kernel.gradient(fit.projection.points, None, weights)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("delta", "form"), [(0.0, "isotropic"), (0.5, "isotropic"), (0.0, "product")])
def test_fewer_points_than_items(learned, delta, form):
    data, prior = small(1, delta=delta, form=form), ScalePrior(2.0, 1.0, learned=learned)
    fit = bound(data, prior, data.kernel.theta, True)
    expected = differences(data, prior, True)
    np.testing.assert_allclose(gradient(data, fit), expected, rtol=1e-4, atol=1e-4)
    # What the paper has is another number: this test can tell.
    assert np.abs(only_eq_39(fit) - expected).max() > 0.1 * np.abs(expected).max()


def test_eq_39_is_all_there_is_where_the_points_are_the_items():
    data, prior = small(2), ScalePrior(2.0, 1.0)
    fit = bound(data, prior, data.kernel.theta, False)
    np.testing.assert_allclose(gradient(data, fit), differences(data, prior, False), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradient(data, fit), only_eq_39(fit), rtol=ITERATIVE)


def test_one_length_scale_and_items_without_features():
    data = small(4)
    data = data._replace(kernel=matern(1.1))
    known = data.known
    known[[2, 9]] = False
    data.X[~known] = 0.0
    prior = ScalePrior(2.0, 1.0)
    fit = bound(data, prior, data.kernel.theta, True, known)
    np.testing.assert_allclose(gradient(data, fit), differences(data, prior, True, known), rtol=1e-4, atol=1e-4)


KERNELS = {
    "variance": Scaled(matern([0.8, 1.4]), 1.3),
    "sum": Sum((matern([0.8, 1.4]), Scaled(Linear([1.0, 2.0]), 0.5), White(0.2))),
    "product": Product((matern(0.9), Linear(1.0))),
}


@pytest.mark.parametrize("name", list(KERNELS))
def test_any_kernel_with_some_items_without_features(name):
    # Hyper-parameters that diagonals and items without features hang on.
    data = small(5)
    known = data.known
    known[[0, 7, 13]] = False
    data.X[~known] = 0.0
    data = data._replace(kernel=KERNELS[name])
    prior = ScalePrior(2.0, 1.0, learned=False)
    if name == "product":  # it is 0 at the mean features, where items without any have their variance from
        known = data.known
        data.X[[0, 7, 13]] = 0.5
    fit = bound(data, prior, data.kernel.theta, True, known)
    np.testing.assert_allclose(gradient(data, fit), differences(data, prior, True, known), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["isotropic", "product"])
@pytest.mark.parametrize("order", [0.5, 1.5, 2.5])
def test_the_gradient_of_pairs_is_that_of_a_diagonal(form, order):
    rng = np.random.default_rng(0)
    x, y, weights = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    for scales in ([0.7], [0.7, 1.0, 1.6]):
        kernel = matern(scales, order, form)
        np.testing.assert_allclose(
            kernel.pairs_gradient(x, y, weights), kernel.gradient(x, y, np.diag(weights)), rtol=1e-10
        )


def test_a_search_finds_the_feature_that_matters():
    rng = np.random.default_rng(0)
    data = small(6, n_items=40, n_rows=600, n_points=12)
    f = 2.0 * np.sin(2.0 * data.X[:, 0])
    z = f[data.answers.left] - f[data.answers.right] + rng.normal(size=600)
    data = data._replace(answers=dataclasses.replace(data.answers, outcome=np.where(z > 0, 1, -1).astype(np.int8)))
    before = bound(data, ScalePrior(), data.kernel.theta, True)
    fit, found = optimise_length_scales(data.answers, data.projection(), reach=20.0, max_evaluations=25)
    assert fit.bound == found.bound
    np.testing.assert_array_equal(fit.projection.kernel.theta, found.kernel.theta)
    scales = np.exp(found.kernel.theta)
    assert fit.bound > before.bound + 5.0
    assert scales[1] > 5.0 * scales[0]
    _, again = optimise_length_scales(data.answers, data.projection(), reach=1.05, max_evaluations=25)
    assert "length_scale[1]" in again.at_bounds
    assert set(found.at_bounds) <= {"length_scale[1]"}


class Broken:
    """A kernel whose gradient is lost."""

    def __init__(self, base):
        self.base = base

    def __getattr__(self, name):
        return getattr(self.base, name)

    def __call__(self, x, y=None):
        return self.base(x, y)

    def with_theta(self, theta):
        return type(self)(self.base.with_theta(theta))

    def gradient(self, x, y, weights):
        return np.full(2, np.nan)


def test_a_gradient_that_is_not_finite_is_refused():
    data = small(7)
    projection = Projection.of(Broken(data.kernel), data.X, data.known, data.points)
    with pytest.raises(PredilectError, match=r"not finite at length_scale\[0\] = 0.8"):
        optimise_length_scales(data.answers, projection)
