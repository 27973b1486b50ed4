"""crowdGPPL: a consensus plus latent factors of people and items."""

from predilect.papers.crowd.model import CrowdGPPL

__all__ = ["CrowdGPPL"]
