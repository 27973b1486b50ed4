"""One Gaussian process over people and items."""

from predilect.models.joint.model import BonillaGP, JointGP

__all__ = ["BonillaGP", "JointGP"]
