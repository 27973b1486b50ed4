"""What every structured covariance keeps: it is its dense matrix."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from predilect.covariance.operators import Operator, SolvableOperator
from tolerances import EXACT


class OperatorContract:
    """Inherit, and give an operator and the matrix that it stands for, made by another route."""

    operator: ClassVar[Operator]
    matrix: ClassVar[np.ndarray]

    def test_it_is_an_operator(self):
        assert isinstance(self.operator, Operator)
        assert self.operator.shape == self.matrix.shape

    def test_dense(self):
        np.testing.assert_allclose(self.operator.dense(), self.matrix, atol=EXACT)
        self.operator.dense()[:] = np.nan  # a copy
        np.testing.assert_allclose(self.operator.dense(), self.matrix, atol=EXACT)

    def test_products(self):
        x = np.random.default_rng(1).normal(size=(len(self.matrix), 4))
        kept = x.copy()
        np.testing.assert_allclose(self.operator.matvec(x), self.matrix @ x, atol=EXACT)
        np.testing.assert_allclose(self.operator.matvec(x[:, 0]), self.matrix @ x[:, 0], atol=EXACT)
        np.testing.assert_allclose(self.operator.matvec(x[:, ::2]), self.matrix @ x[:, ::2], atol=EXACT)  # strided
        np.testing.assert_allclose(self.operator.matvec(np.asfortranarray(x)), self.matrix @ x, atol=EXACT)
        assert self.operator.matvec(x[:, :0]).shape == (len(x), 0)
        np.testing.assert_array_equal(x, kept)

    def test_diagonal_and_rows(self):
        np.testing.assert_allclose(self.operator.diagonal(), np.diagonal(self.matrix), atol=EXACT)
        some = np.array([2, 0, len(self.matrix) - 1, 2])
        np.testing.assert_allclose(self.operator.rows(some), self.matrix[some], atol=EXACT)
        np.testing.assert_allclose(self.operator.rows(some[:1]), self.matrix[some[:1]], atol=EXACT)
        assert self.operator.rows(np.array([], dtype=int)).shape == (0, len(self.matrix))
        with pytest.raises(IndexError):
            self.operator.rows(np.array([len(self.matrix)]))

    def test_symmetric_and_positive_semidefinite(self):
        dense = self.operator.dense()
        np.testing.assert_allclose(dense, dense.T, atol=EXACT)
        assert np.linalg.eigvalsh(dense).min() > -EXACT

    def test_a_vector_of_another_length(self):
        for shape in ((len(self.matrix) + 1,), (1, len(self.matrix)), ()):
            with pytest.raises(ValueError, match="expected an array of shape"):
                self.operator.matvec(np.zeros(shape))


class SolvableOperatorContract(OperatorContract):
    """For operators with an inverse of their own."""

    def test_solve_against_the_dense_inverse(self):
        assert isinstance(self.operator, SolvableOperator)
        right = np.random.default_rng(2).normal(size=(len(self.matrix), 3))
        kept = right.copy()
        expected = np.linalg.solve(self.matrix, right)
        np.testing.assert_allclose(self.operator.solve(right), expected, atol=EXACT)
        np.testing.assert_allclose(self.operator.solve(right[:, 0]), expected[:, 0], atol=EXACT)
        np.testing.assert_allclose(self.operator.solve(self.operator.matvec(right)), right, atol=EXACT)
        np.testing.assert_array_equal(right, kept)

    def test_log_determinant(self):
        sign, expected = np.linalg.slogdet(self.matrix)
        assert sign == 1.0
        assert abs(self.operator.log_det() - expected) < EXACT

    def test_a_right_hand_side_of_another_length(self):
        with pytest.raises(ValueError, match="expected an array of shape"):
            self.operator.solve(np.zeros(len(self.matrix) + 1))
