"""Covariance matrices by their structure: what they do to a vector, without being written out.

>>> import numpy as np
>>> from predilect.covariance.kernels import matern
>>> from predilect.covariance.operators import Diagonal, Kronecker
>>> levels = np.linspace(-1.0, 1.0, 5)[:, None]
>>> grid = Kronecker((matern(1.0)(levels), matern(0.5)(levels), Diagonal(np.ones(2))))
>>> grid.shape
(50, 50)
>>> x = np.arange(50.0)
>>> np.allclose(grid.matvec(x), grid.dense() @ x)
True
"""

from predilect.covariance.operators.base import Operator, SolvableOperator
from predilect.covariance.operators.block import BlockDiagonal
from predilect.covariance.operators.dense import Dense
from predilect.covariance.operators.diagonal import Diagonal
from predilect.covariance.operators.kronecker import Kronecker
from predilect.covariance.operators.low_rank import LowRankPlusDiagonal

__all__ = ["BlockDiagonal", "Dense", "Diagonal", "Kronecker", "LowRankPlusDiagonal", "Operator", "SolvableOperator"]
