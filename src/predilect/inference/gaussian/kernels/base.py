"""Protocol of kernels, and checks of their input."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from predilect._base.types import FloatArray


class CovarianceFunction(Protocol):
    """Covariance function k of rows, immutable, whose hyper-parameters can be searched.

    They are positive, and searched by their logarithms: ``theta``, shape (n_parameters,), named by ``names``. Rows are
    float arrays of shape (n, d); n may be 0. Where ``y`` is left out, the second rows are the first, row by row the
    same points: white noise covaries with itself only then.
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
        """k(x_i, y_j), shape (n, m), the caller's to write into; exactly symmetric where ``y`` is left out."""
        ...

    def gradient(self, x: FloatArray, y: FloatArray | None, weights: FloatArray) -> FloatArray:
        """Σ_ij weights_ij ∂k(x_i, y_j)/∂theta, shape (n_parameters,); ``weights`` has shape (n, m)."""
        ...


@runtime_checkable
class Kernel(CovarianceFunction, Protocol):
    """Covariance function of features; ``tests/contracts/kernel.py`` tests the properties that every one must have."""

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x_i, x_i), shape (n,), the caller's to write into."""
        ...

    def pairs(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """k(x_i, y_i) of different points, row by row; shape (n,), the caller's to write into."""
        ...

    def diagonal_gradient(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """Σ_i weights_i ∂k(x_i, x_i)/∂theta, shape (n_parameters,)."""
        ...


def check_rows(x: FloatArray, y: FloatArray | None, n_features: int | None = None) -> None:
    """Raise ValueError for rows that are not two-dimensional, or of unequal or unexpected numbers of features."""
    for rows in (x,) if y is None else (x, y):
        if not isinstance(rows, np.ndarray) or rows.ndim != 2:
            came = f"shape {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
            raise ValueError(
                f"rows of features must be an array of shape (rows, features), not {came}. "
                "Reduce a sparse matrix first, for instance with sklearn.decomposition.TruncatedSVD"
            )
        if rows.shape[1] != (x.shape[1] if n_features is None else n_features):
            expected = f"the kernel is made for {n_features}" if n_features is not None else f"others {x.shape[1]}"
            raise ValueError(f"the rows have {rows.shape[1]} features, but {expected}")


def positive(values: npt.ArrayLike, what: str, n: int | None = None) -> FloatArray:
    """Hyper-parameters as a read-only copy, (p,); ``what`` and the expected number ``n`` are for the message.

    ValueError unless all lie in [1e-100, 1e100]: beyond, squares of scaled features leave the range of a float.
    """
    out = np.array(values, dtype=np.float64, ndmin=1)
    if out.ndim != 1 or not len(out) or not ((out >= 1e-100) & (out <= 1e100)).all():
        raise ValueError(f"{what} must be positive finite numbers (1e-100 to 1e100), not {values!r}")
    if n is not None and len(out) != n:
        raise ValueError(f"expected {n} {what}, not {len(out)}")
    out.flags.writeable = False
    return out


def theta_of(theta: npt.ArrayLike, n: int) -> FloatArray:
    """Hyper-parameters whose logarithms are ``theta``, (n,); ValueError if there are not n of them."""
    logs = np.asarray(theta, dtype=np.float64)
    if logs.shape != (n,):
        raise ValueError(f"this kernel has {n} hyper-parameters, but theta has shape {logs.shape}")
    with np.errstate(over="ignore"):
        return np.exp(logs)
