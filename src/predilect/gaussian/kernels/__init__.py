"""Covariance functions of features.

>>> import numpy as np
>>> from predilect.gaussian.kernels import White, matern
>>> kernel = matern([1.0, 2.0], order=1.5)
>>> kernel(np.array([[0.0, 0.0], [1.0, 2.0]])).round(3)
array([[1.   , 0.298],
       [0.298, 1.   ]])
>>> (4.0 * kernel + White(0.1)).names
('scaled.variance', 'scaled.length_scale[0]', 'scaled.length_scale[1]', 'white.variance')
"""

from predilect.gaussian.kernels.base import Kernel
from predilect.gaussian.kernels.combine import Combinable, Product, Scaled, Selected, Sum
from predilect.gaussian.kernels.simple import Antisymmetric, Linear, Own, White
from predilect.gaussian.kernels.stationary import (
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
