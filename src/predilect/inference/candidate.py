"""A model to try: what utilities hang on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predilect.inference.basis import Functions
from predilect.inference.population_prior import PopulationPrior
from predilect.inference.prior import FeatureSpace, Hyperparameters

__all__ = ["Candidate"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """The items themselves, or functions of their features.

    Attributes
    ----------
    functions : Functions or None
        None: the items themselves.
    Phi : array of float, shape (n_items, M), or None
        Their rows.
    """

    functions: Functions | None
    Phi: FloatArray | None

    @classmethod
    def of(cls, functions: Functions | None, space: FeatureSpace) -> Candidate:
        """With the rows of the items of a space."""
        return cls(functions, None if functions is None else functions.rows(space))

    @property
    def kind(self) -> str:
        """Name of the basis."""
        return "items" if self.functions is None else self.functions.kind

    def prior(self, setting: Hyperparameters, space: FeatureSpace) -> PopulationPrior:
        """The prior with these hyper-parameters."""
        return PopulationPrior.of(setting, space, self.functions, self.Phi)

    @property
    def has_kernel(self) -> bool:
        """Whether there are inducing points."""
        return self.functions is not None and len(self.functions.points) > 0

    def with_length(self, length_scale: float, space: FeatureSpace) -> Candidate:
        """With another length scale of the kernel; the same where there are no inducing points."""
        if self.functions is None or not self.has_kernel or self.functions.length_scale == length_scale:
            return self
        return Candidate.of(replace(self.functions, length_scale=length_scale), space)
