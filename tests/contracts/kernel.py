"""What every kernel keeps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse

from predilect.inference.gaussian.kernels import Kernel
from tolerances import EXACT, ITERATIVE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
X[4] = X[1]  # two items with the same features
X[6] = X[2] + 1e-9  # and two with almost the same
X_CONSTANT = np.column_stack([RNG.normal(size=(7, 2)), np.full(7, 2.0)])
Y = np.vstack([RNG.normal(size=(5, 3)), X[:1]])
STEP = 1e-5


def slope(function, theta):
    """Central differences of a function of theta, one for each entry."""
    out = []
    for k in range(len(theta)):
        d = np.zeros(len(theta))
        d[k] = STEP
        out.append((function(theta + d) - function(theta - d)) / (2 * STEP))
    return np.array(out)


class KernelContract:
    """Inherit, and give kernels of three features by a fixture."""

    kernel: Kernel

    def test_it_is_a_kernel(self):
        assert isinstance(self.kernel, Kernel)
        assert len(self.kernel.names) == len(set(self.kernel.names)) == len(self.kernel.theta)
        assert all(name and name == name.strip() for name in self.kernel.names)

    def test_it_does_not_change(self):
        for field in dataclasses.fields(self.kernel):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(self.kernel, field.name, None)
            value = getattr(self.kernel, field.name)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable

    def test_results_are_the_callers_to_write_into(self):
        for make in (lambda: self.kernel(X), lambda: self.kernel(X, Y), lambda: self.kernel.diagonal(X),
                     lambda: self.kernel.pairs(X[:6], Y)):  # fmt: skip
            first = make()
            kept = first.copy()
            first *= 0.0
            np.testing.assert_array_equal(make(), kept)

    @pytest.mark.parametrize("x", [X, X_CONSTANT], ids=["duplicates", "a constant column"])
    def test_symmetric_and_positive_semidefinite(self, x):
        K = self.kernel(x)
        np.testing.assert_array_equal(K, K.T)
        assert np.linalg.eigvalsh(K).min() > -EXACT
        np.testing.assert_allclose(np.diagonal(K), self.kernel.diagonal(x), atol=EXACT)

    def test_other_rows(self):
        K = self.kernel(X, Y)
        assert K.shape == (9, 6)
        np.testing.assert_allclose(self.kernel(Y, X), K.T, atol=EXACT)
        np.testing.assert_allclose(np.diagonal(self.kernel(X[:6], Y)), self.kernel.pairs(X[:6], Y), atol=EXACT)

    def test_leaving_out_the_second_rows_matters_on_the_diagonal_only(self):
        other = ~np.eye(len(X), dtype=bool)
        np.testing.assert_allclose(self.kernel(X)[other], self.kernel(X, X.copy())[other], atol=EXACT)
        np.testing.assert_allclose(self.kernel.pairs(X, X.copy()), np.diagonal(self.kernel(X, X.copy())), atol=EXACT)

    def test_a_row_alone_is_what_it_is_among_others(self):
        np.testing.assert_allclose(self.kernel(X[3:4], Y), self.kernel(X, Y)[3:4], atol=EXACT)
        np.testing.assert_allclose(self.kernel(X[2:5]), self.kernel(X)[2:5, 2:5], atol=EXACT)

    def test_there_and_back(self):
        theta = np.linspace(-0.4, 0.3, len(self.kernel.theta))
        other = self.kernel.with_theta(theta)
        assert type(other) is type(self.kernel)
        assert other.names == self.kernel.names
        np.testing.assert_allclose(other.theta, theta, atol=EXACT)
        again = other.with_theta(self.kernel.theta)
        np.testing.assert_allclose(again(X, Y), self.kernel(X, Y), atol=EXACT)
        assert not np.allclose(
            np.append(other(X), other.diagonal(X)), np.append(self.kernel(X), self.kernel.diagonal(X))
        )

    @pytest.mark.parametrize("y", [None, Y, X.copy()], ids=["same rows", "other rows", "equal rows"])
    def test_gradient_against_finite_differences(self, y):
        weights = RNG.normal(size=(len(X), len(X if y is None else y)))
        kept = weights.copy()
        found = self.kernel.gradient(X, y, weights)
        expected = slope(lambda theta: np.sum(weights * self.kernel.with_theta(theta)(X, y)), self.kernel.theta)
        np.testing.assert_allclose(found, expected, atol=ITERATIVE)
        np.testing.assert_array_equal(weights, kept)

    def test_gradient_of_the_diagonal_against_finite_differences(self):
        weights = RNG.normal(size=len(X))
        found = self.kernel.diagonal_gradient(X, weights)
        expected = slope(lambda theta: weights @ self.kernel.with_theta(theta).diagonal(X), self.kernel.theta)
        np.testing.assert_allclose(found, expected, atol=ITERATIVE)

    def test_the_gradient_with_one_weight_is_that_of_one_entry(self):
        weights = np.zeros((9, 6))
        weights[2, 3] = 1.0
        found = self.kernel.gradient(X, Y, weights)
        expected = slope(lambda theta: self.kernel.with_theta(theta)(X, Y)[2, 3], self.kernel.theta)
        np.testing.assert_allclose(found, expected, atol=ITERATIVE)

    def test_no_rows(self):
        none = X[:0]
        assert self.kernel(none).shape == (0, 0)
        assert self.kernel(none, Y).shape == (0, 6)
        assert self.kernel(X, none).shape == (9, 0)
        assert self.kernel.diagonal(none).shape == self.kernel.pairs(none, none).shape == (0,)
        n = len(self.kernel.theta)
        np.testing.assert_array_equal(self.kernel.gradient(none, Y, np.zeros((0, 6))), np.zeros(n))
        np.testing.assert_array_equal(self.kernel.gradient(none, None, np.zeros((0, 0))), np.zeros(n))
        np.testing.assert_array_equal(self.kernel.diagonal_gradient(none, np.zeros(0)), np.zeros(n))

    @pytest.mark.parametrize("theta", [np.nan, np.inf, -np.inf, 1e4])
    def test_hyper_parameters_that_are_no_positive_numbers(self, theta):
        with pytest.raises(ValueError, match="must be positive finite numbers"):
            self.kernel.with_theta(np.full(len(self.kernel.theta), theta))

    def test_another_number_of_hyper_parameters(self):
        for n in (len(self.kernel.theta) - 1, len(self.kernel.theta) + 1):
            with pytest.raises(ValueError, match=f"has {len(self.kernel.theta)} hyper-parameters"):
                self.kernel.with_theta(np.zeros(n))

    def test_rows_that_do_not_fit(self):
        with pytest.raises(ValueError, match="features"):
            self.kernel(X, Y[:, :2])
        with pytest.raises(ValueError, match="features"):
            self.kernel.pairs(X[:6], Y[:, :1])  # would broadcast
        for rows in (X[0], X.tolist(), scipy.sparse.csr_array(X)):
            with pytest.raises(ValueError, match=r"array of shape .*TruncatedSVD"):
                self.kernel(rows)
            with pytest.raises(ValueError, match="array of shape"):
                self.kernel.diagonal(rows)
