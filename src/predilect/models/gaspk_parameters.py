"""Validation of the arguments of ``GaSPK``, and what its presets stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from predilect.covariance.kernels.stationary import SHAPES
from predilect.inference.gaspk.em import ESTIMATORS
from predilect.inference.gaspk.hyperparameters import LENGTH_RULES
from predilect.models.process_parameters import check_choice, check_count, check_positive

__all__ = ["BACKENDS", "PRESETS", "VARIANCES", "Resolved", "check_gaspk", "resolve"]

PRESETS = ("modern", "paper")
BACKENDS = ("auto", "grid", "function")
VARIANCES = ("auto", "exact", "consistent", "paper")


class Resolved(NamedTuple):
    """Arguments with every "auto" that a preset decides replaced; ``spread`` None: by held-out answers."""

    antisymmetric: bool
    amplitude: float | str
    backend: str
    variances: str
    damping: float
    spread: float | None


def resolve(model: Any) -> Resolved:
    """Values of "auto" under a preset.

    Modern: antisymmetric, amplitude and calibration by held-out answers. Paper: neither, an amplitude of 1, a grid, and
    the low-rank variances of its algorithm 3.
    """
    paper = model.preset == "paper"
    swap = model.antisymmetric
    return Resolved(
        antisymmetric=(not paper) if isinstance(swap, str) else bool(swap),
        amplitude=1.0 if paper and isinstance(model.amplitude, str) and model.amplitude == "auto" else model.amplitude,
        backend="grid" if paper and model.backend == "auto" else model.backend,
        variances="paper" if paper and model.variances == "auto" else model.variances,
        damping=(1.0 if paper else 0.7) if isinstance(model.damping, str) else float(model.damping),
        spread=(1.0 if paper else None) if isinstance(model.spread, str) else float(model.spread),
    )


def check_gaspk(model: Any) -> None:
    """Raise ValueError if an argument is out of its range."""
    check_choice("gamma", model.gamma, ESTIMATORS)
    check_choice("preset", model.preset, PRESETS)
    check_choice("backend", model.backend, BACKENDS)
    check_choice("variances", model.variances, VARIANCES)
    check_choice("kernel", model.kernel, SHAPES)
    check_choice("antisymmetric", model.antisymmetric, ("auto", True, False))
    check_count("n_characteristics", model.n_characteristics, 1, "auto")
    for name, words in (("n_restarts", ()), ("max_iterations", ()), ("n_eigenpairs", ()), ("n_dimensions", (None,))):
        check_count(name, getattr(model, name), 1, *words)
    check_count("random_state", model.random_state, 0)
    check_positive("amplitude", model.amplitude, "auto", "evidence")
    check_positive("tolerance", model.tolerance)
    check_positive("damping", model.damping, "auto")
    check_positive("spread", model.spread, "auto")
    if not isinstance(model.spread, str) and model.spread < 1.0:
        raise ValueError(f'spread must be "auto" or a number from 1 up, not {model.spread!r}')
    if not isinstance(model.damping, str) and model.damping > 1.0:
        raise ValueError(f'damping must be "auto" or a number in (0, 1], not {model.damping!r}')
    if not callable(model.tau):
        check_choice("tau", model.tau, ("difference", "relative"))
    scales = model.length_scales
    if isinstance(scales, str):
        check_choice("length_scales", scales, (*LENGTH_RULES, "evidence"))
    else:
        numbers = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if numbers.ndim != 1 or not (np.isfinite(numbers).all() and (numbers > 0.0).all()):
            raise ValueError(f"length_scales must be a rule or positive numbers, not {scales!r}")
    levels = model.levels
    if levels is not None and (
        isinstance(levels, str) or not isinstance(levels, int | Sequence | Mapping | np.ndarray)
    ):
        raise ValueError(f"levels must be a number, a list for each dimension or a mapping of names, not {levels!r}")
