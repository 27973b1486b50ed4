"""What an operator is: a covariance matrix that is known by what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from predilect.covariance.dense import FloatArray

__all__ = ["Operator", "SolvableOperator", "by_columns", "check_length"]

IntArray = npt.NDArray[np.integer]


@runtime_checkable
class Operator(Protocol):
    """A symmetric matrix of shape (n, n), immutable.

    What every operator keeps is in ``tests/contracts/operator.py``.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        ...

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector, shape (n,), or with each column of a matrix, shape (n, k)."""
        ...

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        ...

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n), without the others."""
        ...

    def dense(self) -> FloatArray:
        """The whole matrix, shape (n, n); for tests and small n."""
        ...


@runtime_checkable
class SolvableOperator(Operator, Protocol):
    """An operator that is positive definite and whose structure makes its inverse cheap and exact."""

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right, for a vector of shape (n,) or the columns of a matrix of shape (n, k)."""
        ...

    def log_det(self) -> float:
        """Log |A|."""
        ...


def check_length(x: FloatArray, n: int) -> None:
    """Refuse what is neither a vector of n values nor a matrix of n rows.

    Raises
    ------
    ValueError
    """
    if x.ndim not in (1, 2) or len(x) != n:
        raise ValueError(f"expected an array of shape ({n},) or ({n}, k), not {x.shape}")


def by_columns(apply: Callable[[FloatArray], FloatArray], x: FloatArray, n: int) -> FloatArray:
    """``apply``, which takes matrices of shape (n, k), to a vector or a matrix."""
    check_length(x, n)
    return apply(x) if x.ndim == 2 else np.asarray(apply(x[:, None])[:, 0])
