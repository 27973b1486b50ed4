"""One Gaussian process over people and items."""

from predilect.models.joint.model import JointGP

__all__ = ["JointGP"]
