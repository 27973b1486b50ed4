"""Models that the papers compare with. Those that only set arguments of another model are in ``settings``."""

from predilect.papers.baselines.gpvu import GPVU
from predilect.papers.baselines.hierarchical import HierarchicalGP
from predilect.papers.baselines.settings import BonillaGP, GPClassifier, SingleUserGP

__all__ = ["GPVU", "BonillaGP", "GPClassifier", "HierarchicalGP", "SingleUserGP"]
