"""Settings of a fit of ``GaSPK``, after presets and "auto" are resolved, and the hyper-parameters it chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predilect._base.arguments import (
    check_choice,
    check_count,
    check_function,
    check_mapping,
    check_names,
    check_number,
    check_positive,
    check_positives,
)
from predilect._base.text import quoted
from predilect.errors import DataError
from predilect.inference.gaussian.kernels import Kernel
from predilect.inference.gaussian.kernels.stationary import SHAPES
from predilect.models.checks import KernelHyperparameters
from predilect.papers.gaspk.calibration import MarginCalibration

PRESETS = ("modern", "paper")
BACKENDS = ("auto", "grid", "function")
VARIANCES = ("auto", "exact", "low-rank")
ESTIMATORS = ("heuristic", "exact")
LENGTH_RULES = ("median", "per-dimension")

_NUMBERS = (1, 2, 3, 5, 10)
_CONCENTRATIONS = (0.03, 0.3, 3.0, 30.0)


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Settings of a fit; the tuples are tried on held-out answers."""

    # The iteration: docs/math/gaspk.md section 3.
    estimator: str = "heuristic"  # of weights
    damping: float = 0.7  # first share of the new weights, in (0, 1]
    tolerance: float = 1e-2  # largest undamped change of a weight in the last round
    max_rounds: int = 100
    concentration: float = 0.0  # α of the Dirichlet prior of people's weights; 0 is maximum likelihood
    n_starts: int = 1
    delta: float | None = None  # tie threshold; None learns it
    random_state: int = 0

    # The prior of the characteristics.
    numbers: tuple[int, ...] = (10,)  # of characteristics
    concentrations: tuple[float, ...] = (0.0,)
    amplitude: float | str = "auto"  # or "evidence"
    antisymmetric: bool = True
    kernel: str = "squared-exponential"
    length_scale: Any = "median"
    backend: str = "auto"

    # The trade-offs.
    tau: Any = "difference"
    attributes: Iterable[str] | None = None
    units: Mapping[str, str] | None = None
    levels: Any = None

    # Predictions.
    variances: str = "auto"
    n_eigenpairs: int = 100
    spread: float | None = None  # T²; None: by held-out answers

    @classmethod
    def of(cls, model: Any, delta: float | None = None, random_state: int = 0) -> FitSettings:
        """Settings of a GaSPK, with "auto" replaced where a preset decides.

        Modern: antisymmetric, a prior of the weights, amplitude and calibration by held-out answers, the start of the
        answers. Paper: none of these, an amplitude of 1, a grid, the low-rank variances of its algorithm 3, random
        starts.
        """
        paper = model.preset == "paper"
        backend = "grid" if model.variances == "low-rank" else "auto"

        def automatic(name: str, modern: Any, of_paper: Any) -> Any:
            value = getattr(model, name)
            return (of_paper if paper else modern) if isinstance(value, str) and value == "auto" else value

        alpha = automatic("concentration", _CONCENTRATIONS, 0.0)
        number = automatic("n_components", _NUMBERS, _NUMBERS)
        starts = 5 if isinstance(alpha, int | float) and alpha == 0.0 else 3
        return cls(
            estimator=automatic("gamma", "exact", "heuristic"), damping=1.0 if paper else 0.7,
            tolerance=float(model.tol), max_rounds=int(model.max_iter),
            n_starts=automatic("n_restarts", starts, starts), delta=delta, random_state=random_state,
            numbers=number if isinstance(number, tuple) else (int(number),),
            concentrations=alpha if isinstance(alpha, tuple) else (float(alpha),),
            amplitude=automatic("variance", "auto", 1.0), antisymmetric=bool(automatic("antisymmetric", True, False)),
            kernel=model.kernel, length_scale=model.length_scale, backend=automatic("backend", backend, "grid"),
            tau=model.tau, attributes=model.attributes, units=model.units,
            levels=model.levels, variances=automatic("variances", "auto", "low-rank"),
            n_eigenpairs=int(model.n_eigenpairs), spread=automatic("spread", None, 1.0),
        )  # fmt: skip


def check_gaspk(model: Any) -> None:
    """Raise DataError if an argument is out of its range."""
    check_choice("gamma", model.gamma, ("auto", *ESTIMATORS))
    check_choice("preset", model.preset, PRESETS)
    check_choice("backend", model.backend, BACKENDS)
    check_choice("variances", model.variances, VARIANCES)
    if model.variances == "low-rank" and model.backend == "function":
        raise ValueError('variances="low-rank" are those of a grid: leave backend at "auto", or take "grid"')
    check_choice("kernel", model.kernel, SHAPES)
    check_choice("antisymmetric", model.antisymmetric, ("auto", True, False))
    check_count("n_components", model.n_components, 1, "auto")
    check_count("n_restarts", model.n_restarts, 1, "auto")
    for name in ("max_iter", "n_eigenpairs"):
        check_count(name, getattr(model, name), 1)
    check_positive("variance", model.variance, "auto", "evidence")
    check_positive("tol", model.tol)
    check_number("concentration", model.concentration, "auto", low=0.0)
    check_number("spread", model.spread, "auto", low=1.0)
    check_function("tau", model.tau, 2, ("difference", "relative"))
    if not isinstance(model.attributes, str):
        check_names("attributes", model.attributes, None)
    check_mapping("units", model.units, None)
    check_positives("length_scale", model.length_scale, *LENGTH_RULES, "evidence")
    levels = model.levels
    if levels is not None and (
        isinstance(levels, str) or not isinstance(levels, int | Sequence | Mapping | np.ndarray)
    ):
        raise DataError(
            f"levels must be a number, a list for each dimension or a mapping of names, not {quoted(levels)}"
        )


@dataclass(frozen=True, slots=True)
class GaSPKHyperparameters(KernelHyperparameters):
    """Hyper-parameters of the prior; the kernel is of a characteristic, as a function of trade-offs."""

    n_components: int
    spread: float  # T² ≥ 1, the calibration: factor of 1 + variance of a margin
    concentration: float = 0.0  # α of the Dirichlet prior of weights; 0 is none
    open_share: float = 1.0  # of the covariance of weights, how much predictions count
    newcomer_factor: float = 1.0  # κ ≥ 1; to the power 1 - n/usual it multiplies V for people with n answers
    usual: float = 0.0  # answers of a person that T² was chosen for

    @classmethod
    def of(cls, kernel: Kernel, n_c: int, concentration: float, calibration: MarginCalibration) -> GaSPKHyperparameters:
        """Those of a prior and a calibration."""
        return cls(
            kernel, n_c, calibration.spread, concentration, calibration.open_share, calibration.newcomer_factor,
            calibration.usual,
        )  # fmt: skip

    @property
    def calibration(self) -> MarginCalibration:
        """How sure predictions may be."""
        return MarginCalibration(self.spread, self.open_share, self.newcomer_factor, self.usual)
