"""The collaborative Gaussian process: shared functions of the items, weighted for each person."""

from predilect.models.collaborative.model import CollaborativeGP

__all__ = ["CollaborativeGP"]
