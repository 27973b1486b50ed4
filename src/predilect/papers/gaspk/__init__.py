"""GaSPK: evaluations of trade-offs as mixtures of a few Gaussian processes."""

from predilect.papers.gaspk.model import GaSPK

__all__ = ["GaSPK"]
