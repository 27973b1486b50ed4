"""Checks of the parameters of Gaussian-process estimators, and their kernels."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from predilect.covariance.kernels import MEDIAN_RULES, Kernel, Product, Selected, Stationary, median_length_scales
from predilect.covariance.kernels.stationary import FORMS, SHAPES

__all__ = [
    "check_choice",
    "check_count",
    "check_gamma",
    "check_positive",
    "check_search",
    "make_kernel",
    "optimises",
    "scales_of",
]

FloatArray = npt.NDArray[np.float64]


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise ValueError unless ``value`` is one of those allowed."""
    allowed = list(allowed)
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def check_count(name: str, value: Any, least: int, *words: Any) -> None:
    """Raise ValueError unless ``value`` is a whole number from ``least`` up, or one of ``words``."""
    if any(value is word or (isinstance(value, str) and value == word) for word in words):
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        also = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {also}a whole number from {least} up, not {value!r}")


def check_positive(name: str, value: Any, *words: Any) -> None:
    """Raise ValueError unless ``value`` is a positive finite number, or one of ``words``."""
    if any(isinstance(value, str) and value == word for word in words):
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < float("inf"):
        also = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {also}a positive number, not {value!r}")


def check_gamma(name: str, value: Any) -> tuple[float, float]:
    """Shape and rate of a Gamma distribution; ValueError if they are not two positive numbers."""
    try:
        shape, rate = value
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be two numbers, shape and rate of a Gamma prior, not {value!r}") from error
    check_positive(f"the shape in {name}", shape)
    check_positive(f"the rate in {name}", rate)
    return float(shape), float(rate)


def check_search(model: Any) -> None:
    """Check kernel, length-scales and computing parameters that several models share; ValueError if out of range."""
    if not isinstance(model.kernel, Kernel):
        check_choice("kernel", model.kernel, SHAPES)
    check_choice("kernel_form", model.kernel_form, FORMS)
    check_choice("median", model.median, ("auto", *MEDIAN_RULES))
    scales = model.length_scales
    if isinstance(scales, str):
        check_choice("length_scales", scales, ("median", "optimise"))
    else:
        numbers = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if numbers.ndim != 1 or not (np.isfinite(numbers).all() and (numbers > 0.0).all()):
            raise ValueError(f'length_scales must be "median", "optimise" or positive numbers, not {scales!r}')
    check_positive("tolerance", model.tolerance, "auto")
    check_count("random_state", model.random_state, 0)


def make_kernel(model: Any, kernel: Any, features: FloatArray, random_state: int) -> Kernel:
    """Kernel of a model's parameters, at the start of a search of length-scales; ``features`` (n, d) of what has some.

    ValueError if there are several length-scales, but not one for each feature.
    """
    if isinstance(kernel, Kernel):
        return kernel
    n_features = features.shape[1]
    scales = model.length_scales
    if not n_features or not len(features):
        scales = np.ones(1)
    elif isinstance(scales, str):
        rule = model.median
        if rule == "auto":
            rule = "code" if getattr(model, "preset", None) == "paper" else "root"
        scales = median_length_scales(features, rule, random_state)
    else:
        scales = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if len(scales) not in (1, n_features):
            raise ValueError(
                f"length_scales holds {len(scales)} numbers, but the features make {n_features} columns. Give one "
                "number for all, or one for each column"
            )
    return Stationary(scales, kernel, model.kernel_form)


def optimises(model: Any) -> bool:
    """Whether length-scales are learned."""
    return isinstance(model.length_scales, str) and model.length_scales == "optimise"


def scales_of(kernel: Kernel, n_features: int) -> FloatArray:
    """Length-scales by feature, (n_features,), for distances between items; ones where a kernel has none."""
    scales = np.ones(n_features)
    for part in kernel.kernels if isinstance(kernel, Product) else (kernel,):
        inner, columns = (part.kernel, list(part.columns)) if isinstance(part, Selected) else (part, slice(None))
        if isinstance(inner, Stationary):
            scales[columns] = inner.length_scales
    return scales
