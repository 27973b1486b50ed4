"""A covariance of groups that know nothing of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from predilect.covariance.dense import FloatArray
from predilect.covariance.operators.base import IntArray, Operator, SolvableOperator, by_columns
from predilect.covariance.operators.dense import Dense

__all__ = ["BlockDiagonal"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class BlockDiagonal:
    """Blocks along the diagonal, zeros elsewhere.

    Attributes
    ----------
    blocks : tuple of Operator
        Arrays are taken too, as ``Dense``. They may differ in size. Equal ones are cheaper as
        ``Kronecker((Diagonal(np.ones(k)), block))``.

    Notes
    -----
    Costs what the blocks cost, one after the other.
    """

    blocks: tuple[Operator, ...]

    def __post_init__(self) -> None:
        blocks = tuple(block if isinstance(block, Operator) else Dense(block) for block in self.blocks)
        object.__setattr__(self, "blocks", blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = sum(block.shape[0] for block in self.blocks)
        return n, n

    def matvec(self, x: FloatArray) -> FloatArray:
        """The product with a vector or with each column of a matrix."""
        return self._each(x, [block.matvec for block in self.blocks])

    def diagonal(self) -> FloatArray:
        """Shape (n,)."""
        return np.concatenate([np.zeros(0), *(block.diagonal() for block in self.blocks)])

    def rows(self, indices: IntArray) -> FloatArray:
        """Some rows, shape (len(indices), n)."""
        ends = self._ends()
        indices = np.arange(self.shape[0])[np.asarray(indices)]  # counted from the front, and in range
        out = np.zeros((len(indices), self.shape[0]))
        for block, start, end in zip(self.blocks, ends[:-1], ends[1:], strict=True):
            mine = np.flatnonzero((indices >= start) & (indices < end))
            if len(mine):
                out[mine, start:end] = block.rows(indices[mine] - start)
        return out

    def dense(self) -> FloatArray:
        """The whole matrix, shape (n, n)."""
        ends = self._ends()
        out = np.zeros(self.shape)
        for block, start, end in zip(self.blocks, ends[:-1], ends[1:], strict=True):
            out[start:end, start:end] = block.dense()
        return out

    def solve(self, right: FloatArray) -> FloatArray:
        """A⁻¹ right.

        Raises
        ------
        TypeError
            If a block has no inverse of its own.
        """
        return self._each(right, [block.solve for block in solvable(self.blocks)])

    def log_det(self) -> float:
        """Log |A|.

        Raises
        ------
        TypeError
            If a block has no determinant of its own.
        """
        return sum(block.log_det() for block in solvable(self.blocks))

    def _ends(self) -> list[int]:
        return [0, *np.cumsum([block.shape[0] for block in self.blocks]).tolist()]

    def _each(self, x: FloatArray, apply: Sequence[Callable[[FloatArray], FloatArray]]) -> FloatArray:
        ends = self._ends()

        def whole(columns: FloatArray) -> FloatArray:
            out = np.empty(columns.shape)
            for function, start, end in zip(apply, ends[:-1], ends[1:], strict=True):
                out[start:end] = function(columns[start:end])
            return out

        return by_columns(whole, x, self.shape[0])


def solvable(parts: Sequence[Operator]) -> list[SolvableOperator]:
    """The parts, if each has an inverse.

    Raises
    ------
    TypeError
        If one has not.
    """
    found = [part for part in parts if isinstance(part, SolvableOperator)]
    if len(found) < len(parts):
        without = next(part for part in parts if not isinstance(part, SolvableOperator))
        raise TypeError(
            f"{type(without).__name__} has no exact inverse; solve by conjugate_gradients with its matvec instead"
        )
    return found
