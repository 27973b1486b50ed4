"""Covariance functions of features; ``predilect.kernels`` is their name outside."""

from predilect.inference.gaussian.kernels.base import Kernel
from predilect.inference.gaussian.kernels.combine import Combinable, Product, Scaled, Selected, Sum
from predilect.inference.gaussian.kernels.simple import Antisymmetric, Linear, Own, White
from predilect.inference.gaussian.kernels.stationary import (
    MEDIAN_RULES,
    Stationary,
    matern,
    median_length_scales,
    squared_exponential,
)

__all__ = [
    "MEDIAN_RULES",
    "Antisymmetric",
    "Combinable",
    "Kernel",
    "Linear",
    "Own",
    "Product",
    "Scaled",
    "Selected",
    "Stationary",
    "Sum",
    "White",
    "matern",
    "median_length_scales",
    "squared_exponential",
]
