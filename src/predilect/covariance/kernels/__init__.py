"""Covariance functions of features.

>>> import numpy as np
>>> from predilect.covariance.kernels import matern
>>> kernel = matern([1.0, 2.0], order=1.5)
>>> kernel(np.array([[0.0, 0.0], [1.0, 2.0]])).round(3)
array([[1.   , 0.298],
       [0.298, 1.   ]])
"""

from predilect.covariance.kernels.base import Kernel
from predilect.covariance.kernels.squared_exponential import squared_exponential
from predilect.covariance.kernels.stationary import Stationary, matern

__all__ = ["Kernel", "Stationary", "matern", "squared_exponential"]
