"""The population model, the default: one consensus, and people who differ from it."""

from predilect.models.population.model import Population

__all__ = ["Population"]
