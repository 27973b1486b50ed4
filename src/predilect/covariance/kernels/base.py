"""What a kernel is."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["Kernel"]

FloatArray = npt.NDArray[np.float64]


@runtime_checkable
class Kernel(Protocol):
    """A covariance function k of rows of features, immutable.

    Its hyper-parameters are positive, and searched by their logarithms: ``theta``, shape (n_parameters,), named by
    ``names``. Rows are given as float arrays of shape (n, d). Where ``y`` is left out, the second rows are the first,
    row by row the same points: white noise covaries with itself only then.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Of the hyper-parameters, in the order of ``theta``."""
        ...

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the hyper-parameters, shape (n_parameters,)."""
        ...

    def with_theta(self, theta: FloatArray) -> Self:
        """The kernel at other hyper-parameters, given by their logarithms."""
        ...

    def __call__(self, x: FloatArray, y: FloatArray | None = None) -> FloatArray:
        """k(x_i, y_j), shape (n, m); exactly symmetric where ``y`` is left out."""
        ...

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x_i, x_i), shape (n,)."""
        ...

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """k(x_i, y_i) of different points, row by row; shape (n,)."""
        ...

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Σ_ij weights_ij ∂k(x_i, y_j)/∂theta, shape (n_parameters,); ``weights`` has shape (n, m)."""
        ...

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Σ_i weights_i ∂k(x_i, x_i)/∂theta, shape (n_parameters,)."""
        ...
