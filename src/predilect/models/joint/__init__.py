"""One Gaussian process over people and items."""

from predilect.models.joint.bonilla import BonillaGP
from predilect.models.joint.model import JointGP

__all__ = ["BonillaGP", "JointGP"]
