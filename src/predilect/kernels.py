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

from predilect.inference.gaussian import kernels as _home
from predilect.inference.gaussian.kernels import *  # noqa: F403  all that it names

__all__: list[str] = []
__all__ += _home.__all__
