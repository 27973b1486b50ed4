"""Inducing points from an estimator's arguments."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import Kernel
from predilect.errors import DataError, DataWarning
from predilect.inference.inducing import inducing_points
from predilect.models.process_parameters import scales_of

__all__ = ["choose_points"]

FloatArray = npt.NDArray[np.float64]


def choose_points(
    asked: int | str | None,
    automatic: int | None,
    most: int,
    kernel: Kernel,
    features: FloatArray,
    known: npt.NDArray[np.bool_],
    random_state: int,
) -> FloatArray | None:
    """Inducing points, shape (n_points, d), or None: the items, as ``asked`` None says.

    ``automatic`` is what "auto" stands for; distances are in units of the kernel's length-scales. Raises DataError for
    more than ``most`` points.
    """
    n_points = automatic if isinstance(asked, str) else asked
    if not known.any():
        n_points = None
    n_alone = len(features) if n_points is None else int((~known).sum())
    if n_alone > most or (n_points or 0) > most:
        what = f"n_inducing asks for {n_points} points"
        if n_alone > most:
            what = f"{n_alone} items would each be a point"
        raise DataError(
            f"{what}, and dense algebra holds {most}. Give features of the items (items=..., --items FILE) and "
            "n_inducing=500"
        )
    if n_points is None:
        return None
    found = inducing_points(features, known, scales_of(kernel, features.shape[1]), int(n_points), random_state)
    if found.n_dropped and not isinstance(asked, str):
        warnings.warn(
            f"n_inducing={n_points}, but only {n_points - found.n_dropped} items differ in their features: there are "
            "so many points", DataWarning, stacklevel=6,
        )  # fmt: skip
    return found.points
