"""Kernels and parameter checks of the baselines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from predilect.covariance.kernels import Kernel, Scaled, Sum, White
from predilect.errors import DataError
from predilect.inference.prior import FeatureSpace
from predilect.models.process_parameters import check_choice, check_search, make_kernel

__all__ = ["MOST_ITEMS", "check_process", "item_kernel", "number_or", "refuse_many_items"]

MOST_ITEMS = 3000  # items x items algebra, some 12 n² floats


def check_process(model: Any, *, learned: bool, share_is_searched: bool = False) -> None:
    """Check kernel, length-scales ("optimise" if ``learned``), own share, tolerance and seed, or raise ValueError."""
    check_search(model)
    if isinstance(model.length_scales, str) and not learned:
        check_choice("length_scales", model.length_scales, ("median",))
    own = model.own_share
    if share_is_searched and isinstance(own, str):
        check_choice("own_share", own, ("auto",))
    elif isinstance(own, str | bool) or not 0.0 <= float(own) <= 1.0:
        raise ValueError(f"own_share must be a number from 0 to 1, not {own!r}")


def item_kernel(model: Any, space: FeatureSpace, own: float, length_scales: Any = None) -> Kernel:
    """(1 - w) k + w 1[same item], w = ``own``, with a model's kernel and its length-scales, or ``length_scales``."""
    scales = model.length_scales if length_scales is None else length_scales
    how = SimpleNamespace(kernel_form=model.kernel_form, length_scales=scales, median=model.median)
    kernel = make_kernel(how, model.kernel, space.matrix[space.known], model.random_state)
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
