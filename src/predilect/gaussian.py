"""The old name of :mod:`predilect.kernels`, ``predilect.gaussian.kernels``; it goes with the next version."""

import sys
import warnings

from predilect import kernels

warnings.warn("predilect.gaussian.kernels is predilect.kernels now", FutureWarning, stacklevel=2)
sys.modules[f"{__name__}.kernels"] = kernels
