"""Gaussian-process preference learning (GPPL) for one utility function, one a person, or one of both."""

from predilect.models.gppl.model import GPPL, GPClassifier, SingleUserGP

__all__ = ["GPPL", "GPClassifier", "SingleUserGP"]
