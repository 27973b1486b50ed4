"""Gaussian-process preference learning (GPPL) for one utility function, one a person, or one of both."""

from predilect.papers.gppl.model import GPPL

__all__ = ["GPPL"]
