"""Mixed logit."""

from predilect.models.mixed_logit.model import MixedLogit

__all__ = ["MixedLogit"]
