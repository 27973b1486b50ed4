"""Parameters of Gaussian-process estimators: checks, and the kernels and points that they stand for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import numpy as np

from predilect._base.arguments import check_choice, check_flag, check_number, check_positive, check_positives
from predilect._base.json import plain
from predilect._base.stored import LARGEST
from predilect._base.text import either, quoted
from predilect._base.types import BoolArray, FloatArray
from predilect.data.features import FeatureSpace
from predilect.errors import DataError, DataWarning
from predilect.inference.gaussian.kernels import (
    MEDIAN_RULES,
    Kernel,
    Product,
    Scaled,
    Selected,
    Stationary,
    Sum,
    White,
    median_length_scales,
)
from predilect.inference.gaussian.kernels.base import CovarianceFunction
from predilect.inference.gaussian.kernels.stationary import DISTANCE_RULES, FORMS, SHAPES, median_distance_scales
from predilect.inference.gaussian.projection import inducing_points

__all__ = ["LARGEST"]

_SCORERS = "sklearn.utils._response"  # the module from which scorers ask for predictions


def hyperparameters_by_name(kernel: CovarianceFunction) -> dict[str, float]:
    """Hyper-parameters of a kernel as plain values."""
    return dict(zip(kernel.names, np.exp(kernel.theta).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class KernelHyperparameters:
    """Hyper-parameters of a prior with a kernel."""

    kernel: Kernel

    def to_dict(self) -> dict[str, Any]:
        """As plain values, those of the kernel by their names."""
        others = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "kernel"}
        return hyperparameters_by_name(self.kernel) | others


def check_gamma(name: str, value: Any) -> tuple[float, float]:
    """Shape and rate of a Gamma distribution; DataError if they are not two positive numbers."""
    try:
        shape, rate = value
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be two numbers, shape and rate of a Gamma prior, not {quoted(value)}") from error
    check_positive(f"the shape in {name}", shape)
    check_positive(f"the rate in {name}", rate)
    return float(shape), float(rate)


def check_kernel(name: str, value: Any, *words: str) -> None:
    """Raise DataError unless ``value`` is a kernel, the name of one, or one of ``words``."""
    if not isinstance(value, Kernel):
        check_choice(name, value, (*words, *SHAPES))


def check_own_share(value: Any) -> None:
    """DataError unless ``value`` is "auto" or a number from 0 to below 1."""
    check_number("own_share", value, "auto", low=0.0, high=1.0)
    if value == 1.0:
        raise DataError("own_share must be below 1: at 1 items would have nothing in common")


def check_search(model: Any, *, medians: Iterable[str] = MEDIAN_RULES) -> None:
    """Check length-scales and computing parameters that several models share; DataError if out of range."""
    check_choice("kernel_form", model.kernel_form, FORMS)
    check_choice("median", model.median, ("auto", *medians))
    check_positives("length_scale", model.length_scale, "median", "optimise")
    check_positive("tol", model.tol, "auto")


def make_kernel(
    model: Any, kernel: Any, features: FloatArray, length_scale: Any = None, *, median: str | None = None
) -> Kernel:
    """Kernel of a model's parameters, at the start of a search of length-scales; ``features`` (n, d) of what has some.

    ``length_scale`` is the model's by default, ``median`` the rule that is the model's "auto". DataError if there are
    several length-scales, but not one for each feature.
    """
    if isinstance(kernel, Kernel):
        return kernel
    n_features = features.shape[1]
    scales = model.length_scale if length_scale is None else length_scale
    if not n_features or not len(features):
        scales = np.ones(1)
    elif isinstance(scales, str):
        rule = model.median
        if rule == "auto":
            rule = median or ("code" if getattr(model, "preset", None) == "paper" else "root")
        chosen = median_distance_scales if rule in DISTANCE_RULES else median_length_scales
        scales = chosen(features, rule, model.seed_)
    else:
        scales = np.atleast_1d(np.asarray(scales, dtype=np.float64))
        if len(scales) not in (1, n_features):
            raise DataError(
                f"length_scale holds {len(scales)} numbers, but the features make {n_features} columns. Give one "
                "number for all, or one for each column"
            )
    return Stationary(scales, kernel, model.kernel_form)


def optimises(model: Any) -> bool:
    """Whether length-scales are learned."""
    return isinstance(model.length_scale, str) and model.length_scale == "optimise"


def scales_of(kernel: Kernel, n_features: int) -> FloatArray:
    """Length-scales by feature, (n_features,), for distances between items; ones where a kernel has none."""
    scales = np.ones(n_features)
    for part in kernel.kernels if isinstance(kernel, Product) else (kernel,):
        inner, columns = (part.kernel, list(part.columns)) if isinstance(part, Selected) else (part, slice(None))
        if isinstance(inner, Stationary):
            scales[columns] = inner.length_scales
    return scales


def refuse_scorer() -> None:
    """DataError if a scorer of scikit-learn asks for the caller's probabilities: it takes columns for sorted by class.

    Only its stack tells: scikit-learn hands a score the probabilities without ``classes_``.
    """
    frame = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "sklearn":
        if frame.f_globals["__name__"] == _SCORERS:
            raise DataError(
                "scorers of scikit-learn that take probabilities, such as neg_log_loss, expect columns sorted by class "
                "and here they are left, tie, right, as classes_ says. Leave scoring out: score() is the mean "
                "log-likelihood. Beside other scorers give predilect.evaluation.neg_log_loss"
            )
        frame = frame.f_back  # type: ignore[assignment]


def check_flags(model: Any) -> None:
    """DataError if an argument whose default is True or False is neither."""
    given = model.get_params(deep=False)
    for name, parameter in signature(type(model)).parameters.items():
        if isinstance(parameter.default, bool):
            check_flag(name, given[name])


def given_threshold(value: Any) -> float | None:
    """The tie threshold, or None for "auto"; DataError if it is neither "auto" nor a number from 0 to 1e4."""
    if _is_auto(value):
        return None
    return _number("tie_threshold", value, 0.0, 1e4)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _number(name: str, value: Any, low: float, high: float) -> float:
    check_number(name, value, "auto", low=low, high=high)
    return float(value)


MOST_ITEMS = 3000  # items x items algebra, some 12 n² floats


def check_process(model: Any, *, learned: bool, share_is_searched: bool = False) -> None:
    """Check kernel, length-scales ("optimise" if ``learned``), own share, tolerance and seed, or raise DataError."""
    check_kernel("kernel", model.kernel)
    check_search(model)
    if isinstance(model.length_scale, str) and not learned:
        check_choice("length_scale", model.length_scale, ("median",))
    check_number("own_share", model.own_share, *["auto"] * share_is_searched, low=0.0, high=1.0)


def item_kernel(model: Any, space: FeatureSpace, own: float, length_scale: Any = None) -> Kernel:
    """(1 - w) k + w 1[same item], w = ``own``, with a model's kernel and its length-scales, or ``length_scale``."""
    kernel = make_kernel(model, model.kernel, space.matrix[space.known], length_scale)
    if own >= 1.0:
        return White(1.0)
    return Sum((Scaled(kernel, 1.0 - own), White(own)), ("features", "own")) if own > 0.0 else kernel


def number_or(value: Any, automatic: float) -> float:
    """A number, or the value of "auto"."""
    return automatic if isinstance(value, str) else float(value)


def refuse_many_items(n_items: int) -> None:
    """Raise DataError if there are more items than dense algebra can hold."""
    if n_items > MOST_ITEMS:
        raise DataError(
            f"{n_items} items are too many for this baseline, which holds {MOST_ITEMS}. Use Population() or CrowdGPPL()"
        )


def choose_points(
    asked: int | str | None,
    automatic: int | None,
    most: int,
    kernel: Kernel,
    features: FloatArray,
    known: BoolArray,
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
            f"{what}, and dense algebra holds {most}. Give features of the items "
            f"({either('--items FILE', 'items=...')}) and n_inducing=500"
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
