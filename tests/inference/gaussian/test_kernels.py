"""Every kernel under the contract, and what each is."""

from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np
import pytest

from contracts.kernel import KernelContract, X, Y
from predilect.inference.gaussian.dense import factorise
from predilect.inference.gaussian.kernels import (
    Antisymmetric,
    Linear,
    Own,
    Product,
    Scaled,
    Selected,
    Stationary,
    Sum,
    White,
    matern,
)
from tolerances import EXACT, ITERATIVE

SCALES = [0.8, 1.3, 2.1]
SOFT_AND = Product(tuple(Selected(matern(scale), (d,)) for d, scale in enumerate(SCALES)))


KERNELS = {
    "squared exponential": Stationary(SCALES, "squared-exponential"),
    "squared exponential, one scale": Stationary(1.1, "squared-exponential"),
    "matern 1/2": matern(SCALES, 0.5),
    "matern 3/2": matern(SCALES),
    "matern 3/2, one scale": matern(0.9),
    "matern 5/2": matern(SCALES, 2.5),
    "matern 1/2, product": matern(SCALES, 0.5, "product"),
    "matern 3/2, product": matern(SCALES, 1.5, "product"),
    "matern 5/2, product, one scale": matern(0.9, 2.5, "product"),
    "antisymmetric": Antisymmetric(Scaled(Stationary(SCALES, "squared-exponential"), 1.7)),
    "antisymmetric matern": Antisymmetric(matern(1.1)),
    "linear": Linear(0.7),
    "linear, each feature": Linear([0.7, 1.5, 3.0]),
    "white": White(0.3),
    "sum": matern(SCALES) + Linear(0.7) + White(0.3),
    "product": matern(SCALES) * Linear(0.7) * Stationary(1.0, "squared-exponential"),
    "product with white": Product((matern(1.2), White(0.5))),
    "scaled": 3.0 * matern(SCALES, 2.5),
    "selected": Selected(matern([0.8, 1.3]), (2, 0)),
    "soft and": SOFT_AND,
    "soft or": Sum(
        (Selected(Scaled(matern(0.8), 2.0), (0,)), Selected(matern(1.3), (1,)), Selected(Linear(0.5), (2,))),
        labels=("a", "b", "c"),
    ),
    "people times items": Product(
        (Selected(matern(1.0), (0,)), Scaled(Selected(matern([1.0, 2.0], 2.5), (1, 2)), 4.0) + White(0.1)),
        labels=("people", "items"),
    ),
    "own": Own(matern(SCALES), 0.4),
    "own, scaled": Scaled(Own.of_share(Stationary(1.1, "squared-exponential"), 0.3), 2.5),
    "own of another variance": Own(Scaled(matern(SCALES), 2.5), 0.4),
}


class TestEveryKernel(KernelContract):
    @pytest.fixture(autouse=True, params=KERNELS.values(), ids=KERNELS)
    def given(self, request):
        self.kernel = request.param


# What each is


def test_matern_of_a_hand_computed_distance():
    r = 2.0 / 0.5
    a, b = np.array([[1.0]]), np.array([[3.0]])
    s3, s5 = np.sqrt(3.0) * r, np.sqrt(5.0) * r
    expected = {0.5: np.exp(-r), 1.5: (1 + s3) * np.exp(-s3), 2.5: (1 + s5 + s5**2 / 3) * np.exp(-s5)}
    for order, value in expected.items():
        assert abs(matern(0.5, order)(a, b)[0, 0] - value) < EXACT
    with pytest.raises(ValueError, match=r"0.5, 1.5 or 2.5"):
        matern(1.0, 3.5)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_derivative_of_matern_32_as_printed(scale):
    # crowdgppl.md 2.5 (eq. 43): 3 r² / l³ exp(-√3 r / l), by l; by log l it is l times that.
    r = 1.7
    found = matern(scale).gradient(np.array([[0.0]]), np.array([[r]]), np.ones((1, 1)))
    assert abs(found[0] / scale - 3 * r**2 / scale**3 * np.exp(-np.sqrt(3) * r / scale)) < EXACT


def test_forms_agree_on_one_feature_and_for_the_squared_exponential_on_all():
    for order in (0.5, 1.5, 2.5):
        one, other = matern(0.7, order), matern(0.7, order, "product")
        np.testing.assert_allclose(one(X[:, :1], Y[:, :1]), other(X[:, :1], Y[:, :1]), atol=EXACT)
        assert not np.allclose(one(X, Y), other(X, Y))
    one, other = (Stationary(SCALES, "squared-exponential", form) for form in ("isotropic", "product"))
    np.testing.assert_allclose(one(X, Y), other(X, Y), atol=EXACT)


def test_soft_and_is_the_product_form_and_soft_or_the_sum():
    product = matern(SCALES, 1.5, "product")
    weights = np.random.default_rng(3).normal(size=(9, 6))
    np.testing.assert_allclose(SOFT_AND(X, Y), product(X, Y), atol=EXACT)
    np.testing.assert_allclose(SOFT_AND.gradient(X, Y, weights), product.gradient(X, Y, weights), atol=EXACT)
    soft_or = Sum(SOFT_AND.kernels)
    parts = [matern(scale)(X[:, [d]], Y[:, [d]]) for d, scale in enumerate(SCALES)]
    np.testing.assert_allclose(soft_or(X, Y), np.sum(parts, axis=0), atol=EXACT)
    # Alike in the first feature only: for the product that is nothing, for the sum a third.
    near = np.array([[0.0, 0.0, 0.0]]), np.array([[0.0, 90.0, 90.0]])
    assert SOFT_AND(*near)[0, 0] < EXACT
    assert abs(soft_or(*near)[0, 0] - 1.0) < EXACT


def test_a_linear_kernel_is_that_of_random_part_worths():
    variances = np.array([0.7, 1.5, 3.0])
    np.testing.assert_allclose(Linear(variances)(X, Y), X @ np.diag(variances / 3) @ Y.T, atol=EXACT)
    np.testing.assert_allclose(Linear(2.0)(X, Y), Linear([2.0] * 3)(X, Y), atol=EXACT)


def test_white_noise_does_not_leak_between_equal_rows():
    white = White(0.3)
    np.testing.assert_array_equal(white(X), 0.3 * np.eye(9))  # rows 1 and 4 are equal
    np.testing.assert_array_equal(white(X, X), 0.0)
    np.testing.assert_array_equal(white.pairs(X, X), 0.0)
    np.testing.assert_array_equal(white.diagonal(X), 0.3)
    assert factorise((matern(1.0) + white)(X)).jitter == 0.0


def test_a_product_over_people_and_items_is_a_kronecker_product():
    people, items = X[:3, :1], X[2:7, 1:]
    of_people, of_items = matern(1.0), Stationary([1.0, 2.0], "squared-exponential")
    both = Product((Selected(of_people, (0,)), Selected(of_items, (1, 2))))
    rows = np.hstack([np.repeat(people, 5, axis=0), np.tile(items, (3, 1))])
    np.testing.assert_allclose(both(rows), np.kron(of_people(people), of_items(items)), atol=EXACT)


def test_a_kernel_over_a_grid_is_the_kronecker_product_of_its_factors():
    levels = [np.linspace(-1, 1, 4), np.array([-1.0, 0.0, 1.0]), np.array([0.0, 2.0])]
    grid = np.array(list(product(*levels)))  # row-major
    for kernel, one in (
        (Stationary(SCALES, "squared-exponential"), lambda scale: Stationary(scale, "squared-exponential")),
        (matern(SCALES, 1.5, "product"), matern),
    ):
        factors = [one(scale)(level[:, None]) for scale, level in zip(SCALES, levels, strict=True)]
        np.testing.assert_allclose(kernel(grid), reduce(np.kron, factors), atol=EXACT)


# Operators and names


def test_names_are_unique_and_readable():
    items, own = Scaled(matern(SCALES), 2.0), White(0.1)
    whole = Sum((items, own), labels=("items", "own"))
    assert whole.names == (
        "items.variance", "items.length_scale[0]", "items.length_scale[1]", "items.length_scale[2]", "own.variance",
    )  # fmt: skip
    assert (matern(1.0) + matern(2.0)).names == ("stationary#1.length_scale", "stationary#2.length_scale")
    assert Scaled(Linear(1.0), 2.0).names == ("variance", "linear.variance")
    assert SOFT_AND.names == tuple(f"features[{d}].length_scale" for d in range(3))
    assert Sum((Selected(matern(1.0), (1, 2, 3)), Selected(matern(1.0), (4, 0)))).names == (
        "features[1-3].length_scale", "features[4,0].length_scale",
    )  # fmt: skip
    nested = Product((whole, matern(1.0)), labels=("people", "x"))
    assert nested.names[2] == "people.items.length_scale[1]"
    assert len(set(nested.names)) == 6


def test_operators_make_flat_sums_and_products():
    a, b, c = matern(1.0), Linear(1.0), White(1.0)
    assert (a + b + c).kernels == (a, b, c)
    assert (a * b * c).kernels == (a, b, c)
    labelled = Sum((a, b), labels=("items", "rest"))
    assert (labelled + c).kernels == (labelled, c)  # labels somebody gave are kept
    assert (a * b + c).names == ("product.stationary.length_scale", "product.linear.variance", "white.variance")
    for twice in (2.0 * a, a * 2.0, np.float64(2.0) * a, 2 * a):
        assert isinstance(twice, Scaled)
        assert twice.variance == 2.0
        np.testing.assert_array_equal(twice(X), 2.0 * a(X))


def test_a_kernel_does_not_hang_on_the_callers_array():
    scales = np.array([1.0, 2.0, 3.0])
    kernel = matern(scales)
    before = kernel(X)
    scales[:] = 9.0
    np.testing.assert_array_equal(kernel(X), before)


# Bad input


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, np.nan], [], [[1.0, 2.0]], 1e-200])
@pytest.mark.parametrize("make", [matern, Linear, White, lambda value: Scaled(matern(1.0), value)])
def test_hyper_parameters_that_cannot_be(make, bad):
    with pytest.raises(ValueError, match="must be positive finite numbers"):
        make(bad)


def test_a_kernel_for_three_features_refuses_two():
    for kernel in (matern(SCALES), Linear([1.0, 2.0, 3.0]), Selected(matern(1.0), (0, 2))):
        with pytest.raises(ValueError, match="2 features"):
            kernel(X[:, :2])
        with pytest.raises(ValueError, match="2 features"):
            kernel.diagonal(X[:, :2])
        with pytest.raises(ValueError, match="2 features"):
            kernel.pairs(X[:, :2], X[:, :2])


@pytest.mark.parametrize("kind", [Sum, Product])
def test_combinations_that_cannot_be(kind):
    with pytest.raises(ValueError, match="at least one kernel"):
        kind(())
    with pytest.raises(ValueError, match="different labels"):
        kind((matern(1.0), White()), labels=("a", "a"))
    with pytest.raises(ValueError, match="different labels"):
        kind((matern(1.0), White()), labels=("a",))


@pytest.mark.parametrize("columns", [(), (0, 0), (-1,)])
def test_columns_that_cannot_be(columns):
    with pytest.raises(ValueError, match="columns must be different numbers"):
        Selected(matern(1.0), columns)


def test_shapes_and_forms_that_there_are_not():
    with pytest.raises(ValueError, match="the shape of a kernel must be one of"):
        Stationary(1.0, "cubic")
    with pytest.raises(ValueError, match="the form of a kernel must be one of"):
        Stationary(1.0, form="sum")


@pytest.mark.parametrize("order", [0.5, 1.5, 2.5, None])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_length_scales_at_their_bounds_stay_finite(order, scale):
    kernel = Stationary(scale, "squared-exponential") if order is None else matern(scale, order)
    for one in (kernel, Product((kernel, Linear(1.0)))):
        assert np.isfinite(one(X)).all()
        assert np.isfinite(one.gradient(X, None, np.ones((9, 9)))).all()
    K = kernel(X[[0, 3, 5]])
    np.testing.assert_allclose(K, np.eye(3) if scale < 1.0 else 1.0, atol=ITERATIVE)


def test_antisymmetric_functions_change_sign_with_their_argument():
    kernel = Antisymmetric(Scaled(matern(SCALES), 1.7))
    np.testing.assert_allclose(kernel(-X, Y), -kernel(X, Y), atol=EXACT)
    np.testing.assert_array_equal(kernel.diagonal(np.zeros((2, 3))), 0.0)
    both = np.vstack([X, -X])  # f(x) + f(-x) is 0 with certainty
    total = np.hstack([np.eye(len(X)), np.eye(len(X))])
    np.testing.assert_allclose(total @ kernel(both) @ total.T, 0.0, atol=EXACT)


def test_an_antisymmetric_linear_kernel_is_the_linear_kernel():
    np.testing.assert_allclose(Antisymmetric(Linear(SCALES))(X, Y), Linear(SCALES)(X, Y), atol=EXACT)


def test_a_share_of_its_own_is_a_one_hot_of_the_id_beside_the_features():
    """Two rows differ in two columns of the one-hot: exp(-(1 + 1) / (2 ℓ²))."""
    scale = 1.7
    with_ids = np.hstack([X, np.eye(len(X))])
    product = Stationary([*SCALES, *[scale] * len(X)], "squared-exponential")(with_ids)
    own = Own.of_share(Stationary(SCALES, "squared-exponential"), 1.0 - np.exp(-1.0 / scale**2))
    np.testing.assert_allclose(own(X), product, atol=EXACT)
    assert abs(own(X)[1, 4] - np.exp(-1.0 / scale**2)) < EXACT  # equal features, different rows
