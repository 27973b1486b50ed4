"""One Gaussian process over people and items."""

from predilect.papers.joint.model import JointGP

__all__ = ["JointGP"]
