"""Models that the papers compare with. Those that only set arguments of another model are in ``settings``."""

from predilect.models.baselines.gpvu import GPVU
from predilect.models.baselines.hierarchical import HierarchicalGP
from predilect.models.baselines.settings import BonillaGP, GPClassifier, SingleUserGP

__all__ = ["GPVU", "BonillaGP", "GPClassifier", "HierarchicalGP", "SingleUserGP"]
