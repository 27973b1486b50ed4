"""Candidate bases of the population model."""

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
    """Basis to try: functions of the items' features, Φ (n_items, M); None: the items themselves."""

    functions: Functions | None
    Phi: FloatArray | None

    @classmethod
    def of(cls, functions: Functions | None, space: FeatureSpace) -> Candidate:
        """Candidate with the rows of the items of a space."""
        return cls(functions, None if functions is None else functions.rows(space))

    @property
    def kind(self) -> str:
        """Name of the basis."""
        return "items" if self.functions is None else self.functions.kind

    def prior(self, setting: Hyperparameters, space: FeatureSpace) -> PopulationPrior:
        """Prior with these hyper-parameters."""
        return PopulationPrior.of(setting, space, self.functions, self.Phi)

    @property
    def has_kernel(self) -> bool:
        """Whether there are inducing points."""
        return self.functions is not None and len(self.functions.points) > 0

    def with_length(self, length_scale: float, space: FeatureSpace) -> Candidate:
        """Candidate with another length scale; unchanged where there are no inducing points."""
        if self.functions is None or not self.has_kernel or self.functions.length_scale == length_scale:
            return self
        return Candidate.of(replace(self.functions, length_scale=length_scale), space)
