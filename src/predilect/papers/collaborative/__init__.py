"""The collaborative Gaussian process: shared functions of the items, weighted for each person."""

from predilect.papers.collaborative.model import CollaborativeGP

__all__ = ["CollaborativeGP"]
