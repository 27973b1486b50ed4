"""Covariance functions of features, for the ``kernel`` of a model.

>>> import numpy as np
>>> from predilect.kernels import White, matern
>>> kernel = matern([1.0, 2.0], order=1.5)
>>> kernel(np.array([[0.0, 0.0], [1.0, 2.0]])).round(3)
array([[1.   , 0.298],
       [0.298, 1.   ]])
>>> (4.0 * kernel + White(0.1)).names
('scaled.variance', 'scaled.length_scale[0]', 'scaled.length_scale[1]', 'white.variance')
"""

from predilect.inference.gaussian.kernels import (
    MEDIAN_RULES,
    Antisymmetric,
    Combinable,
    Kernel,
    Linear,
    Own,
    Product,
    Scaled,
    Selected,
    Stationary,
    Sum,
    White,
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
